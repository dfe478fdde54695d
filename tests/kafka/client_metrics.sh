# Clients of Ottla push metrics to a real Kafka with a metrics plugin (KIP-714): Kafka's classes decode them, Kafka's tool
# creates and changes the subscriptions, and a Kafka without a plugin gets no request.
source "$(dirname "$0")/../support.bash"
port=${METRICS_PORT:-31490} controller_port=$((port + 1))
here=$PWD/tests/kafka
libraries=${OTTLA_KAFKA_JARS:-${OTTLA_CACHE:-$HOME/.cache/ottla}/kafka-${OTTLA_KAFKA_VERSION:-4.4.0}}
"${javac[@]}" -nowarn -Xlint:-removal -cp "$libraries/*" -d "$work/java" "$here/MetricsReceiver.java" || fail "the metrics plugin can't be compiled"

cat > "$work/kafka.properties" <<P
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:$controller_port
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
metric.reporters=MetricsReceiver
log.dirs=$work/log
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
P
"${java[@]}" -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$work/kafka.properties" > "$work/format" 2>&1 ||
  fail "format: $(tail -3 "$work/format")"
"${java[@]}" -Xmx400m -cp "$work/java:$libraries/*" kafka.Kafka "$work/kafka.properties" > "$work/kafka.log" 2>&1 &
started+=($!)
export OTTLA_BOOTSTRAP=127.0.0.1:$port
for try in $(seq 60); do
  "$OTTLA" metadata --timeout 2 -b "$OTTLA_BOOTSTRAP" > "$work/metadata" 2>&1 && break
  sleep 1
done
contains "broker 1 at" < "$work/metadata" || fail "no metadata: $(tail -3 "$work/metadata") $(tail -3 "$work/kafka.log")"
new_topics 2 metrics

subscribe() {
  kafka org.apache.kafka.tools.ClientMetricsCommand --bootstrap-server "$OTTLA_BOOTSTRAP" --alter "$@" > "$work/tool" 2>&1 ||
    fail "$(cat "$work/tool")"
}
# pushed CLIENT PATTERN: waits for a line of the plugin about the client.
pushed() {
  for try in $(seq 200); do
    if contains "^METRICS $1 $2" < "$work/kafka.log"; then
      echo "$1: $(grep -e "^METRICS $1 $2" "$work/kafka.log" | tail -1 | cut -d' ' -f3-)"
      return
    fi
    sleep 0.1
  done
  fail "$1 did not push $2: $(grep -e '^METRICS' "$work/kafka.log" | tail -5)"
}

subscribe --name producers --metrics org.apache.kafka.producer. --interval 200 --match client_id=measured
# Lines flow until the subscription was changed while the producer ran.
(
  for line in $(seq 40); do echo "$line"; sleep 0.1; done
  while [ ! -e "$work/changed" ]; do echo more; sleep 0.1; done
) | "$OTTLA" produce -t metrics -b "$OTTLA_BOOTSTRAP" -X client.id=measured > "$work/produce" 2>&1 &
producer=$!
echo line | "$OTTLA" produce -t metrics -b "$OTTLA_BOOTSTRAP" -X client.id=other > "$work/other" 2>&1 || fail "$(cat "$work/other")"
pushed measured 'push .* terminating=false type=OTLP'
pushed measured 'org.apache.kafka.producer.record.send.total AGGREGATION_TEMPORALITY_DELTA monotonic [1-9]'
pushed measured 'org.apache.kafka.producer.connection.creation.total AGGREGATION_TEMPORALITY_DELTA monotonic'
pushed measured 'org.apache.kafka.producer.node.request.latency.avg GAUGE .* node_id=node-1'
pushed measured 'org.apache.kafka.producer.produce.throttle.time.max GAUGE 0.0'
pushed measured 'scope ottla'
subscribe --name producers --metrics org.apache.kafka.producer.batch.,org.apache.kafka.producer.record.send.total --interval 200 --match client_id=measured
sleep 1
before=$(grep -c 'METRICS measured push' "$work/kafka.log")
pushed measured 'org.apache.kafka.producer.batch.size.avg GAUGE'
for try in $(seq 100); do [ "$(grep -c 'METRICS measured push' "$work/kafka.log")" -gt $((before + 1)) ] && break; sleep 0.1; done
since=$(awk -v skip="$before" '/METRICS measured push/ { n++ } n > skip && / org.apache/ { print $3 }' "$work/kafka.log" | sort -u | tr '\n' ' ')
equal "metrics of the changed subscription" \
  "org.apache.kafka.producer.batch.size.avg org.apache.kafka.producer.record.send.total " "$since"
touch "$work/changed"
wait "$producer" || fail "$(cat "$work/produce")"
pushed measured 'push .* terminating=true'

subscribe --name consumers --metrics org.apache.kafka.consumer. --interval 200 --match client_id=reader
"$OTTLA" consume -t metrics -b "$OTTLA_BOOTSTRAP" -G readers -o beginning -X client.id=reader > "$work/read" 2> "$work/errors" &
reader=$!
started+=($reader)
pushed reader 'org.apache.kafka.consumer.fetch.manager.fetch.latency.avg GAUGE'
pushed reader 'org.apache.kafka.consumer.coordinator.assigned.partitions GAUGE 2'
pushed reader 'org.apache.kafka.consumer.poll.idle.ratio.avg GAUGE'
pushed reader 'label group_id=readers'
pushed reader 'label group_member_id='
kill -INT "$reader"
wait "$reader" || equal "exit code after SIGINT" 130 $?
contains '^line$' < "$work/read" || fail "the consumer did not read: $(cat "$work/errors")"
pushed reader 'push .* terminating=true'

! contains 'METRICS other\|ERROR\|at a wrong time' < <(grep -e '^METRICS' "$work/kafka.log") ||
  fail "$(grep -e 'METRICS other\|METRICS .*ERROR\|at a wrong time' "$work/kafka.log" | head -3)"

# The brokers of the caller have no plugin.
if [ -n "$real_brokers" ]; then
  echo line | "$OTTLA" produce -t "metrics-$$" -b "$real_brokers" -X debug=protocol,telemetry -X topic.metadata.refresh.interval.ms=1000 \
    > "$work/plain" 2>&1 || fail "$(cat "$work/plain")"
  ! contains 'TelemetrySubscriptions\|PushTelemetry' < "$work/plain" || fail "a Kafka without a plugin was asked"
  echo "a Kafka without a plugin got no request"
fi
