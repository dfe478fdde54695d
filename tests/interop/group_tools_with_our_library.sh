# kcat -G and rdkafka_performance -G, with Ottla's library: kcat and its original read a topic together as members of one
# group, and a new group of rdkafka_performance reads all of it from the beginning.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
command -v kcat > /dev/null || fail "kcat is not installed (on Debian: apt-get install kcat)"
ln -s "$OTTLA" "$work/rdkafka_performance"

# partitions_of NAME: prints the number of partitions of the last assignment that kcat reported.
partitions_of() { sed -n 's/.*rebalanced.*assigned: //p' "$work/$1.errors" | tail -1 | tr -cd '[' | wc -c; }

# read_together SETTING...: one kcat with Ottla's library and one with its own share a topic.
read_together() {
  local which libraries=$OTTLA_PREFIX/lib group=$group-${1#*=} members=() lines
  for which in ours theirs; do
    LD_LIBRARY_PATH=$libraries timeout 90 kcat -b "$OTTLA_BOOTSTRAP" -G "$group" -X auto.offset.reset=earliest \
      -X heartbeat.interval.ms=300 -X "$1" -u -f '%p %o\n' "$topic" > "$work/$which" 2> "$work/$which.errors" &
    members+=($!)
    libraries=
  done
  started+=("${members[@]}")
  for _ in $(seq 300); do
    lines=$(sort -u "$work/ours" "$work/theirs" | wc -l)
    if [ "$lines" = 2000 ] && [ "$(partitions_of ours)" = 2 ] && [ "$(partitions_of theirs)" = 2 ]; then break; fi
    sleep 0.1
  done
  equal "$1: partitions of kcat with Ottla's library" 2 "$(partitions_of ours)"
  equal "$1: partitions of kcat with its own" 2 "$(partitions_of theirs)"
  kill "${members[@]}"
  wait "${members[@]}" || true
  equal "$1: records that the members of both libraries read" 2000 "$(sort -u "$work/ours" "$work/theirs" | wc -l)"
  # The last one that leaves has committed: nothing comes again.
  LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 60 kcat -b "$OTTLA_BOOTSTRAP" -G "$group" -X auto.offset.reset=earliest -X "$1" \
    -e -q "$topic" > "$work/again" 2> "$work/errors" || fail "$1: $(cat "$work/errors")"
  equal "$1: records that came again" 0 "$(wc -l < "$work/again")"
}

check() {
  topic=tools$suffix group=tools$suffix
  new_topics 4 "$topic"
  seq 2000 | kcat -P -b "$OTTLA_BOOTSTRAP" -t "$topic"
  read_together partition.assignment.strategy=range
  read_together partition.assignment.strategy=roundrobin
  timeout 60 "$work/rdkafka_performance" -G "performance$suffix" -t "$topic" -c 2000 -b "$OTTLA_BOOTSTRAP" > "$work/read" 2>&1 ||
    fail "rdkafka_performance -G: $(cat "$work/read")"
  grep -q '2000 messages' "$work/read" || fail "rdkafka_performance -G: $(cat "$work/read")"
  echo "rdkafka_performance -G: $(grep '2000 messages' "$work/read" | cut -d, -f1)"
}
everywhere check
