# Runs the examples and the test programs in C on Apache Kafka; the other scripts run them on embedded brokers. The
# examples also run with Debian's original, which has to print the same. Programs that start their own brokers, such as
# mock.c and admin.c, are not run.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
if [ -z "$real_brokers" ]; then
  not_checked "the programs in C on Apache Kafka" "Apache Kafka is not available (\`cargo xtask test\` starts it; OTTLA_BOOTSTRAP names its brokers)"
  exit 0
fi
flags=(-std=gnu90 -g -I "$OTTLA_PREFIX/include" -L "$OTTLA_PREFIX/lib")
ours=$OTTLA_PREFIX/lib

# says FOLDER PROGRAM ARGS...: prints the output of a program with the library in the folder.
says() {
  local library=$1 program=$2
  shift 2
  LD_LIBRARY_PATH=$library timeout 60 "$work/$program" "$OTTLA_BOOTSTRAP" "$@" 2>&1 || true
}
# Brokers learn of a new topic one after the other. Debian's original is too old to describe topics.
describes() {
  local said
  for _ in $(seq 50); do
    said=$(says "$ours" admin describe "$1")
    [ "$said" != "$2" ] || break
    sleep 0.1
  done
  equal "describe $1" "$2" "$said"
}
examples() {
  local library=$1 topic=$2 expected
  equal "create $topic" "$topic: created" "$(says "$library" admin create "$topic" 1 3)"
  describes "$topic" "$topic [0]: 3 replicas"
  equal "create it again" "$topic: TOPIC_ALREADY_EXISTS" "$(says "$library" admin create "$topic" 1 3)"
  equal "producer" "1000 delivered, 0 failed, 0 left" "$(says "$library" producer "$topic" 1000)"
  expected=$(for number in $(seq 0 999); do echo "$number: message $number"; done | sha256sum)
  equal "consumer" "$expected" "$(says "$library" consumer "$topic" | sha256sum)"
  equal "delete $topic" "$topic: deleted" "$(says "$library" admin delete "$topic")"
  describes "$topic" "$topic: UNKNOWN_TOPIC_OR_PART"
}
for program in producer consumer admin; do
  cc "${flags[@]}" -o "$work/$program" "examples/c/$program.c" -lrdkafka
done
examples "$ours" "example-$$"
if original librdkafka1; then
  echo "with the original:"
  examples "$ORIGINAL/usr/lib/x86_64-linux-gnu" "original-$$"
fi

# interceptors.c loads it from the folder of the program.
cc "${flags[@]}" -shared -fPIC -o "$work/plugin.so" crates/capi/tests/plugin.c -lrdkafka
on_kafka() {
  local name=$1 since=$SECONDS
  # Left by an earlier run on the same brokers.
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" delete "$name" > "$work/$name.topics" 2>&1 || true
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread
  LD_LIBRARY_PATH=$ours timeout 120 "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    fail "$name on Apache Kafka: $(head -20 "$work/$name.out")"
  echo "$name passes ($((SECONDS - since)) s)"
}
side_by_side 8 on_kafka consume describe events interceptors life misuse offsets produce robust
