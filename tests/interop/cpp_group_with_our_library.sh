# A program in C++ with two members of a group, `RdKafka::KafkaConsumer`: the same lines with Ottla's library in all
# protocols of groups and, if it can be fetched, with Debian's original.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"

# built NAME FLAGS...: compiles the program.
built() { c++ -std=c++11 -Wall -Wextra -o "$work/$1" tests/interop/group_members.cpp "${@:2}" || fail "it can't be compiled: $1"; }
built ours $(PKG_CONFIG_PATH=$OTTLA_PREFIX/lib/pkgconfig pkg-config --cflags --libs rdkafka++)

# members PROGRAM FOLDER NAME SETTINGS...: runs it on a topic with 100 records in each of four partitions, and prints its lines.
members() {
  local topic=cpp-$3$suffix partition
  new_topics 4 "$topic"
  for partition in 0 1 2 3; do
    seq 100 | "$OTTLA" produce -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "$topic" -p "$partition"
  done
  LD_LIBRARY_PATH=$2 timeout 100 "$work/$1" "$OTTLA_BOOTSTRAP" "$topic" "${@:4}" 2> "$work/errors" ||
    fail "$3: $(cat "$work/errors")"
}

check() {
  local protocol=EAGER assignor
  for assignor in range roundrobin cooperative-sticky; do
    [ "$assignor" = cooperative-sticky ] && protocol=COOPERATIVE
    members ours "$OTTLA_PREFIX/lib" "$assignor" "partition.assignment.strategy=$assignor" heartbeat.interval.ms=300 \
      > "$work/$assignor"
    equal "$assignor" "one member: 400 records, 4 partitions, protocol $protocol" "$(head -1 "$work/$assignor")"
    equal "$assignor, repeated" "records that came again: 0" "$(tail -1 "$work/$assignor")"
  done
  members ours "$OTTLA_PREFIX/lib" consumer group.protocol=consumer > "$work/consumer"
  cmp "$work/consumer" "$work/cooperative-sticky" || fail "group.protocol=consumer: $(cat "$work/consumer")"
  [ -n "$lib" ] || return 0
  for assignor in range cooperative-sticky; do
    members original "$lib" "original-$assignor" "partition.assignment.strategy=$assignor" heartbeat.interval.ms=300 \
      > "$work/theirs"
    cmp "$work/theirs" "$work/$assignor" || fail "$assignor, the original: $(cat "$work/theirs")"
    members original "$OTTLA_PREFIX/lib" "exchanged-$assignor" "partition.assignment.strategy=$assignor" \
      heartbeat.interval.ms=300 > "$work/exchanged"
    cmp "$work/exchanged" "$work/$assignor" || fail "$assignor, exchanged: $(cat "$work/exchanged")"
    echo "$assignor: the same $(wc -l < "$work/theirs") lines with Debian's original, and with its program and our library"
  done
}
lib=
if original librdkafka1 librdkafka-dev librdkafka++1; then
  lib=$ORIGINAL/usr/lib/x86_64-linux-gnu
  built original -isystem "$ORIGINAL/usr/include" -L "$lib" -lrdkafka++ -lrdkafka
fi
everywhere check
