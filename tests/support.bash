# What the scripts in tests/interop and tests/kafka share. `cargo xtask test` sets OTTLA (the program), OTTLA_KAFKA_JARS,
# and for tests/kafka OTTLA_BOOTSTRAP and OTTLA_KAFKA_DATA; to run one by hand, set them and call it with bash.
set -euo pipefail
: "${OTTLA:?the path of the program ottla}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
started=()
# Apache Kafka, if the caller has it; embedded brokers take its place in OTTLA_BOOTSTRAP.
real_brokers=${OTTLA_BOOTSTRAP:-}
trap 'for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# Starts `ottla broker` with three brokers ($brokers says how many else) on free ports; OTTLA_BOOTSTRAP is theirs from then on.
embedded_brokers() {
  touch "$work/brokers"
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

# everywhere CHECK ARGS...: calls the function CHECK with embedded brokers, started with ARGS, and again with Apache Kafka where
# OTTLA_BOOTSTRAP says that there is one. Names of topics get $suffix at their end: the real brokers may know them already.
everywhere() {
  local what_to_check=$1
  shift
  suffix=
  embedded_brokers "$@"
  "$what_to_check"
  if [ -z "$real_brokers" ]; then
    echo "NOT CHECKED: the same on Apache Kafka, for none is named by OTTLA_BOOTSTRAP"
    return
  fi
  echo "and on Apache Kafka:"
  OTTLA_BOOTSTRAP=$real_brokers suffix=-$$
  "$what_to_check"
}

# new_topics PARTITIONS NAME...: creates them.
new_topics() {
  local partitions=$1
  shift
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" create "$@" --partitions "$partitions" > "$work/topics" 2>&1 ||
    fail "$(cat "$work/topics")"
}

# original PACKAGE...: Debian's packages of librdkafka and its users, taken apart in the cache, never installed. ORIGINAL is
# where they lie then. Without them there is nothing to compare with, and that is said.
original() {
  local cache=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}/debian package
  ORIGINAL=$cache/root
  mkdir -p "$ORIGINAL"
  for package; do
    [ ! -e "$cache/$package.there" ] || continue
    if ! (cd "$work" && apt-get download "$package" && dpkg-deb -x "$package"_*.deb "$ORIGINAL") > "$work/apt" 2>&1; then
      echo "NOT CHECKED: Debian's package $package can't be fetched: $(tail -1 "$work/apt")"
      return 1
    fi
    touch "$cache/$package.there"
  done
}

# xtask ARGS...: without cargo where OTTLA_XTASK names the program, so that no build holds it up.
xtask() { if [ -n "${OTTLA_XTASK:-}" ]; then "$OTTLA_XTASK" "$@"; else cargo xtask "$@"; fi; }

# kafka CLASS ARGS...: a tool of Apache Kafka.
kafka() { xtask kafka run "$@"; }

# records_in TOPIC: how many offsets its partitions have used, counted by Kafka's own tool.
records_in() {
  kafka org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "$1" |
    awk -F: '{ sum += $3 } END { print sum + 0 }'
}

# equal WHAT EXPECTED FOUND
equal() { [ "$2" = "$3" ] || fail "$1: expected $2, found $3"; echo "$1: $3"; }
