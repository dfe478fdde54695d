# Times of members of groups, of Ottla's C library and of librdkafka with the same program (peers/c/group.c), on brokers that run:
#
#   bash bench/groups.sh BROKERS FOLDER_OF_LIBRDKAFKA...     each folder has a librdkafka.so.1
#
# Start the brokers with `cargo xtask kafka start 1 --set group.initial.rebalance.delay.ms=0`. OTTLA is the program
# (default target/release/ottla); its embedded brokers, whose process is stopped or killed, serve the last measurements.
set -euo pipefail
cd "$(dirname "$0")/.."
servers=${1:?BROKERS} ottla=${OTTLA:-target/release/ottla}
shift
work=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill -9 "$broker"; rm -rf "$work"' EXIT
cc -O2 -Wall -Wextra -I crates/capi/include -o "$work/group" bench/peers/c/group.c -L "${1:?FOLDER}" -l:librdkafka.so.1 -lpthread
topic=group-times-$$
"$ottla" topics -b "$servers" create "$topic" "$topic-flow" --partitions 4 > "$work/log"
seq 1000 | "$ottla" produce -X "bootstrap.servers=$servers" -t "$topic"

# embedded BROKERS TOPIC:PARTITIONS [OPTIONS]: starts embedded brokers, and sets `broker` and `embedded`.
embedded() {
  : > "$work/brokers"
  "$ottla" broker --brokers "$1" --port 0 --topic "$2" "${@:3}" > "$work/brokers" 2>&1 &
  broker=$!
  for _ in $(seq 100); do
    embedded=$(sed -n 's/^bootstrap.servers=//p' "$work/brokers")
    [ -z "$embedded" ] || break
    sleep 0.1
  done
  seq 100 | "$ottla" produce -X "bootstrap.servers=$embedded" -t "${2%:*}" -p 0
}
ended() {
  kill -9 "$broker" 2> "$work/log" || true
  wait "$broker" 2> "$work/log" || true
  broker=
}

for folder; do
  echo "== $folder"
  group() { LD_LIBRARY_PATH=$folder timeout 120 "$work/group" "$@" || echo "$1: no result within 120 s"; }
  group first "$servers" "$topic" 20
  group commit "$servers" "$topic" 500
  group close "$servers" "$topic" 20
  group idle "$servers" "$topic" 10 enable.auto.commit=false
  "$ottla" producer-perf-test --topic "$topic-flow" --num-records 60000 --record-size 100 --throughput 2000 --producer-props \
    "bootstrap.servers=$servers" linger.ms=0 > "$work/log" &
  for settings in "partition.assignment.strategy=cooperative-sticky heartbeat.interval.ms=500" group.protocol=consumer; do
    echo "$settings: $(group pause "$servers" "$topic-flow" 5 auto.offset.reset=latest $settings)"
  done
  wait
  for number in 19 9; do
    embedded 1 closed:4
    group close-without "$embedded" closed "$broker" "$number"
    ended
  done
  embedded 3 joined:300 --group-heartbeat-interval 100
  for settings in partition.assignment.strategy={range,cooperative-sticky}" heartbeat.interval.ms=100" group.protocol=consumer; do
    echo "$settings: $(group join "$embedded" joined 99 $settings | paste -sd' ')"
  done
  ended
done
