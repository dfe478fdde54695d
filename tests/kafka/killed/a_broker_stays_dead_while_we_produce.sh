# Three real brokers; one is killed with SIGKILL and stays dead. Until the cluster notices, which takes seconds,
# metadata names it as the leader, also right after the connection broke. It leads the only partition, so no response of
# another broker arrives later and causes a refresh.
source "$(dirname "$0")/../../support.bash"
topic="dead-$$" records=20000
kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "$OTTLA_BOOTSTRAP" --create --topic "$topic" \
  --replica-assignment 2:3:1 --config min.insync.replicas=2
"$OTTLA" producer-perf-test --topic "$topic" --num-records $records --record-size 100 --throughput 1000 \
  --producer-props "bootstrap.servers=$OTTLA_BOOTSTRAP" acks=all message.timeout.ms=60000 > "$work/perf" 2>&1 &
perf=$!
started+=($perf)
sleep 4
leader=$(kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "$OTTLA_BOOTSTRAP" --describe --topic "$topic" |
  sed -n 's/.*Leader: \([23]\).*/\1/p')
[ -n "$leader" ] || fail "neither broker 2 nor 3 leads the partition"
xtask kafka kill "$leader"
ended=0
wait $perf || ended=$?
xtask kafka restart "$leader"
[ $ended = 0 ] || fail "the perf tool failed: $(tail -5 "$work/perf")"
tail -1 "$work/perf"
equal "records acknowledged" $records "$(sed -n 's/^\([0-9]*\) records sent, .* 99.9th.*/\1/p' "$work/perf" | tail -1)"
equal "records in the logs" $records "$(records_in "$topic")"
