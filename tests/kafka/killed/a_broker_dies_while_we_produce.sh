# Three real brokers; one is killed with SIGKILL and restarted while the perf tool produces with acks=all. Kafka's own
# tools then find every acknowledged record exactly once.
source "$(dirname "$0")/../../support.bash"
topic="dies-$$" records=1000000
kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "$OTTLA_BOOTSTRAP" --create --topic "$topic" \
  --partitions 6 --replication-factor 3 --config min.insync.replicas=2
"$OTTLA" producer-perf-test --topic "$topic" --num-records $records --record-size 100 --throughput 50000 \
  --producer-props "bootstrap.servers=$OTTLA_BOOTSTRAP" acks=all > "$work/perf" 2>&1 &
perf=$!
started+=($perf)
sleep 4
xtask kafka kill 2
sleep 4
xtask kafka restart 2
wait $perf || fail "the perf tool failed: $(tail -5 "$work/perf")"
tail -1 "$work/perf"
equal "records acknowledged" $records "$(sed -n 's/^\([0-9]*\) records sent, .* 99.9th.*/\1/p' "$work/perf" | tail -1)"
equal "records in the logs" $records "$(records_in "$topic")"
kafka org.apache.kafka.tools.ConsumerPerformance --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "$topic" \
  --num-records $records --timeout 30000 --hide-header > "$work/consumed"
equal "records consumed" $records "$(awk -F', ' '{ print $5 }' "$work/consumed" | tail -1)"
