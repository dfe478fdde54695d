# Kafka's own clients push metrics (KIP-714) to embedded brokers that request them, also if Kafka's own tool created the
# subscription.
source "$(dirname "$0")/../support.bash"
embedded_brokers --client-metrics org.apache.kafka.producer. --client-metrics-interval 300 --topic metrics:1 --topic others:1

# pushed CLIENT METRIC [MORE]: waits for a push of a client with a value of this metric; its first line ends with MORE.
pushed() {
  for _ in $(seq 300); do
    if awk -v client="push by $1 (apache-kafka-java " -v metric="  $2" -v more="${3:-}" '
        /^push by / { ours = index($0, client) == 1 && (more == "" || index($0, more)) }
        ours && index($0, metric) == 1 { found = 1 }
        END { exit !found }' "$work/brokers"; then
      echo "$1 pushed $2${3:-}"
      return
    fi
    sleep 0.1
  done
  fail "$1 didn't push $2${3:-}: $(grep '^push' "$work/brokers" | tail -3)"
}

# One line; the input ends when metrics were pushed, and the client then sends its terminating push. Java's client leaves it out if
# another push is in flight while it closes, as on a busy machine.
produced() {
  (echo a line && pushed console-producer org.apache.kafka.producer. > "$work/pushed") |
    kafka org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "$1" > /dev/null 2> "$work/errors" ||
    fail "$(cat "$work/errors")"
  cat "$work/pushed"
}
produced metrics
for _ in 1 2 3; do
  (pushed console-producer org.apache.kafka.producer. ", its last") && break
  produced others
done
pushed console-producer org.apache.kafka.producer. ", its last"
client_metrics() {
  kafka org.apache.kafka.tools.ClientMetricsCommand --bootstrap-server "$OTTLA_BOOTSTRAP" "$@" 2>&1
}
client_metrics --alter --name consumers --metrics org.apache.kafka.consumer. --match client_id=console-consumer
equal "the subscriptions" "consumers" "$(client_metrics --list)"
kafka org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$OTTLA_BOOTSTRAP" --topic metrics --from-beginning \
  --timeout-ms 20000 > "$work/read" 2> "$work/errors" || fail "$(cat "$work/errors")"
equal "what was read" "a line" "$(cat "$work/read")"
pushed console-consumer org.apache.kafka.consumer.
