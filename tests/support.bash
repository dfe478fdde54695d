# Common functions of the scripts in tests/interop, tests/abi and tests/kafka. `cargo xtask test` sets OTTLA (the
# program), OTTLA_KAFKA_JARS, and for tests/kafka OTTLA_BOOTSTRAP and OTTLA_KAFKA_DATA; to run a script by hand, set
# them and run it with bash.
set -euo pipefail
: "${OTTLA:?the path of the program ottla}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
work=$(mktemp -d)
started=()
# What is downloaded, or built from downloads alone, is kept between runs.
downloads=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}
# Java for programs that end after seconds or minutes: no collector with threads of its own, only the quick compiler.
java=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1)
# An archive of Kafka's classes, for a class path that begins with its jars. If it does not fit, the JVM says so to nobody.
if [ -n "${OTTLA_JAVA_CLASSES:-}" ]; then
  java+=("-XX:SharedArchiveFile=$OTTLA_JAVA_CLASSES" -Xlog:cds=off -Xlog:cds+dynamic=off)
fi
javac=(javac -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1)
# The brokers of Apache Kafka, if the caller has them; embedded brokers replace them in OTTLA_BOOTSTRAP.
real_brokers=${OTTLA_BOOTSTRAP:-}

# Removes the files of the script after the processes that it started have ended: a broker writes to its folder until then.
# A process that has not ended 3 seconds after SIGTERM gets SIGKILL.
clean_up() {
  local process
  for process in "${started[@]}"; do kill "$process" 2> /dev/null || true; done
  for process in "${started[@]}"; do
    for _ in $(seq 30); do kill -0 "$process" 2> /dev/null || continue 2; sleep 0.1; done
    kill -KILL "$process" 2> /dev/null || true
    for _ in $(seq 30); do kill -0 "$process" 2> /dev/null || continue 2; sleep 0.1; done
  done
  rm -rf "$work"
}
trap clean_up EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# not_checked WHAT WHY: says that something was not checked, and why. The line is counted: it is also appended to the file
# that OTTLA_NOT_CHECKED names, if it names one.
not_checked() {
  local line="NOT CHECKED: $1, because $2"
  echo "$line"
  [ -z "${OTTLA_NOT_CHECKED:-}" ] || echo "$line" >> "$OTTLA_NOT_CHECKED"
}

# side_by_side COUNT FUNCTION ARGUMENT...: calls the function with each argument, up to COUNT at a time, and fails after all
# calls if one failed. Programs that mostly wait take the time of the longest instead of the sum.
side_by_side() {
  local count=$1 call=$2 argument ended failed=0
  local -A running=()
  shift 2
  for argument; do
    if [ ${#running[@]} -ge "$count" ]; then
      # The brokers are background processes, too.
      wait -n -p ended "${!running[@]}" || failed=$((failed + 1))
      unset "running[$ended]"
    fi
    "$call" "$argument" &
    running[$!]=$argument
  done
  for ended in "${!running[@]}"; do wait "$ended" || failed=$((failed + 1)); done
  [ $failed = 0 ] || fail "$failed of $# failed: $call"
}

# contains PATTERN: whether a line of the input matches. It reads to the end, unlike grep -q: a program that still writes
# when its reader is gone dies of SIGPIPE, and pipefail makes that the result.
contains() { grep -e "$1" > /dev/null; }

# Starts `ottla broker` with three brokers (or $brokers) on free ports, and sets OTTLA_BOOTSTRAP to them.
embedded_brokers() {
  : > "$work/brokers"
  "$OTTLA" broker --brokers "${brokers:-3}" --port 0 "$@" > "$work/brokers" 2> "$work/brokers.errors" &
  started+=($!)
  for _ in $(seq 100); do
    if grep -q '^bootstrap.servers=' "$work/brokers"; then
      OTTLA_BOOTSTRAP=$(sed -n 's/^bootstrap.servers=//p' "$work/brokers")
      return
    fi
    sleep 0.1
  done
  fail "the embedded brokers did not start: $(cat "$work/brokers.errors")"
}

# Starts embedded brokers with TLS and all SASL mechanisms, sets OTTLA_BOOTSTRAP, and writes the properties of clients
# with SCRAM-SHA-512 to $work/secured.
secured_brokers() {
  embedded_brokers --partitions 1 --tls-self-signed --sasl scram-sha-512,scram-sha-256,plain,oauthbearer-unsecured \
    --sasl-user alice:alice-secret
  cp "$work/brokers" "$work/secured"
}

# everywhere CHECK ARGS...: calls the function CHECK with embedded brokers, started with ARGS, and again with Apache
# Kafka if OTTLA_BOOTSTRAP is set. The names of topics end with $suffix, because the real brokers may have topics of
# earlier runs.
everywhere() {
  local what_to_check=$1
  shift
  suffix=
  embedded_brokers "$@"
  "$what_to_check"
  if [ -z "$real_brokers" ]; then
    not_checked "the same on Apache Kafka ($what_to_check)" "OTTLA_BOOTSTRAP is not set"
    return
  fi
  echo "on Apache Kafka:"
  OTTLA_BOOTSTRAP=$real_brokers suffix=-$$
  "$what_to_check"
}

# listening PORT...: waits until a process listens at each of the ports.
listening() {
  local port
  for port; do
    for _ in $(seq 100); do (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && continue 2; sleep 0.1; done
    fail "no process listens at port $port"
  done
}

# new_topics PARTITIONS NAME...: creates topics.
new_topics() {
  local partitions=$1
  shift
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create "$@" --partitions "$partitions" > "$work/topics" 2>&1 ||
    fail "$(cat "$work/topics")"
}

# original PACKAGE...: unpacks Debian's packages of librdkafka and its users in the cache, without installing them, and
# sets ORIGINAL to the folder. If they can't be fetched, it says what is not checked and fails.
original() {
  local cache=$downloads/debian package
  ORIGINAL=$cache/root
  mkdir -p "$ORIGINAL"
  for package; do
    [ ! -e "$cache/$package.there" ] || continue
    if ! (cd "$work" && apt-get download "$package" && dpkg-deb -x "$package"_*.deb "$ORIGINAL") > "$work/apt" 2>&1; then
      not_checked "what needs Debian's package $package" "it can't be fetched: $(tail -1 "$work/apt")"
      return 1
    fi
    touch "$cache/$package.there"
  done
}

# xtask ARGS...: runs xtask; without cargo if OTTLA_XTASK names the program, so that no build delays it.
xtask() { if [ -n "${OTTLA_XTASK:-}" ]; then "$OTTLA_XTASK" "$@"; else cargo xtask "$@"; fi; }

# kafka CLASS ARGS...: runs a tool of Apache Kafka.
kafka() { xtask kafka run "$@"; }

# records_in TOPIC: prints the number of offsets in use in all partitions, counted by Kafka's own tool.
records_in() {
  kafka org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "$1" |
    awk -F: '{ sum += $3 } END { print sum + 0 }'
}

# equal WHAT EXPECTED FOUND
equal() { [ "$2" = "$3" ] || fail "$1: expected $2, found $3"; echo "$1: $3"; }

# built_example PACKAGE NAME: sets $example to an example. `cargo xtask test` has built it; another cargo would wait until nothing
# else is compiled.
built_example() {
  local folder=${OTTLA_EXAMPLES:-}
  if [ -z "$folder" ]; then
    (cd "$root" && cargo build --quiet -p "$1" --example "$2") || fail "the example $2 does not compile"
    folder=$(cd "$root" && cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')/debug/examples
  fi
  example=$folder/$2
}

# again_within PERCENT PROPERTY=VALUE...: sends records for three sessions of 3 s, and fails if those that are sent during a
# re-authentication usually take longer than this share of the usual time, which is a round trip on a machine of any speed.
again_within() {
  local share=$1 example usual median
  shift
  built_example ottla reauthentication_latency
  "$example" latency 9 "$@" > latency 2> latency.errors || fail "$*: $(tail -3 latency.errors)"
  echo "re-authentication at a distance: ${*:2:2}: $(cat latency)"
  # A busy machine may delay a few more.
  median=$(sed 's/.*: //' latency | tr ' ' '\n' | sort -n | awk '{ row[NR] = $1 } END { print int(row[int((NR + 1) / 2)]) }')
  usual=$(sed -n 's/.* p50 \([0-9]*\)[. ].*/\1/p' latency)
  [ $((median * 100)) -lt $((usual * share)) ] || fail "$*: records take $median ms while the connection authenticates again"
}

# java_and_go_members FOLDER CLASS: sets `members` to the arguments of a driver for FOLDER/CLASS.java and FOLDER/franz-go.
java_and_go_members() {
  "${javac[@]}" -cp "$OTTLA_KAFKA_JARS/*" -d "$work/java" "$1/$2.java" || fail "the Java member can't be compiled"
  members=(--member "java=${java[*]} -Xmx128m -cp $OTTLA_KAFKA_JARS/*:$work/java $2")
  if ! command -v go > /dev/null; then
    not_checked "members of franz-go" "go is not installed"
  elif ! go -C "$1/franz-go" mod download > "$work/log" 2>&1; then
    not_checked "members of franz-go" "its modules can't be fetched: $(tail -1 "$work/log")"
  else
    go -C "$1/franz-go" build -o "$work/franz-go" . > "$work/log" 2>&1 || fail "franz-go's member: $(tail -5 "$work/log")"
    members+=(--member "franz-go=$work/franz-go")
  fi
}
