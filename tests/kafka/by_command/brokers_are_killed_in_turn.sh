# Three real brokers are killed with SIGKILL and restarted in turn while an idempotent producer writes with acks=all; in
# between, leaders move back. Kafka's own tools then verify that every record is there once and in order. `cargo xtask
# kafka torture` runs this script; OTTLA_RECORDS and OTTLA_RATE override the defaults.
source "$(dirname "$0")/../../support.bash"
topic="torture-$$" records=${OTTLA_RECORDS:-2000000} rate=${OTTLA_RATE:-20000}
kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "$OTTLA_BOOTSTRAP" --create --topic "$topic" \
  --partitions 12 --replication-factor 3 --config min.insync.replicas=2
# The payloads are the numbers 0, 1, 2, ... in the order of sending, so they must increase in each partition.
"$OTTLA" producer-perf-test --topic "$topic" --num-records "$records" --payload-monotonic --throughput "$rate" \
  --producer-props "bootstrap.servers=$OTTLA_BOOTSTRAP" acks=all enable.idempotence=true > "$work/perf" 2>&1 &
perf=$!
started+=($perf)
kills=0 moves=0
sleep 3
while kill -0 $perf 2>/dev/null; do
  for broker in 2 3 1; do
    kill -0 $perf 2>/dev/null || break
    xtask kafka kill $broker && kills=$((kills + 1))
    sleep 2
    xtask kafka restart $broker
    sleep 3
    # Leaders return to their preferred replicas; while some brokers have just restarted, not all elections succeed.
    kafka org.apache.kafka.tools.LeaderElectionCommand --bootstrap-server "$OTTLA_BOOTSTRAP" \
      --election-type preferred --all-topic-partitions > "$work/elections" 2>&1 && moves=$((moves + 1))
  done
done
wait $perf || fail "the perf tool failed: $(tail -5 "$work/perf")"
echo "brokers killed: $kills; elections of preferred leaders: $moves"
tail -1 "$work/perf"
equal "records acknowledged" "$records" "$(sed -n 's/^\([0-9]*\) records sent, .* 99.9th.*/\1/p' "$work/perf" | tail -1)"
equal "offsets used in the logs" "$records" "$(records_in "$topic")"
kafka org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "$topic" \
  --from-beginning --max-messages "$records" --timeout-ms 60000 --formatter-property print.partition=true \
  --formatter-property print.value=true > "$work/consumed" 2> "$work/consumer.errors" ||
  fail "the console consumer failed: $(tail -3 "$work/consumer.errors")"
equal "records consumed" "$records" "$(wc -l < "$work/consumed")"
equal "records that were seen before" 0 "$(cut -f 2 "$work/consumed" | sort | uniq -d | wc -l)"
equal "records out of their partition's order" 0 "$(sed 's/^Partition://' "$work/consumed" |
  awk '{ if ($1 in last && $2 + 0 <= last[$1]) wrong++; last[$1] = $2 + 0 } END { print wrong + 0 }')"
