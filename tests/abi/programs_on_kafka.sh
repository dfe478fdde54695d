# The examples and the test programs in C, which the other scripts run on embedded brokers, on Apache Kafka; the examples also
# with Debian's original, which has to say the same. Not mock.c, admin.c and the like, which bring brokers of their own.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
if [ -z "$real_brokers" ]; then
  echo "NOT CHECKED: there is no Apache Kafka (\`cargo xtask test\` starts one; OTTLA_BOOTSTRAP names one)"
  exit 0
fi
flags=(-std=gnu90 -g -I "$OTTLA_PREFIX/include" -L "$OTTLA_PREFIX/lib")
ours=$OTTLA_PREFIX/lib

# says FOLDER PROGRAM ARGS...: what it prints, with the library in the folder.
says() {
  local library=$1 program=$2
  shift 2
  LD_LIBRARY_PATH=$library timeout 60 "$work/$program" "$OTTLA_BOOTSTRAP" "$@" 2>&1 || true
}
# Brokers hear of a topic one after the other. Debian's original is too old to describe one.
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
  echo "and with the original:"
  examples "$ORIGINAL/usr/lib/x86_64-linux-gnu" "original-$$"
fi

# interceptors.c loads it from the folder in which the program lies.
cc "${flags[@]}" -shared -fPIC -o "$work/plugin.so" crates/capi/tests/plugin.c -lrdkafka
for name in consume describe events interceptors life misuse offsets produce robust; do
  # From an earlier call on the same brokers.
  "$OTTLA" topics -b "$OTTLA_BOOTSTRAP" delete "$name" > "$work/topics" 2>&1 || true
  cc "${flags[@]}" -o "$work/$name" "crates/capi/tests/c/$name.c" -lrdkafka -lpthread
  LD_LIBRARY_PATH=$ours timeout 120 "$work/$name" "$OTTLA_BOOTSTRAP" > "$work/$name.out" 2>&1 ||
    fail "$name on Apache Kafka: $(head -20 "$work/$name.out")"
  echo "$name passes ($SECONDS s)"
done
