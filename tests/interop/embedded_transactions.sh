# Transactions of other clients with the embedded broker: the Java client, Kafka's tools, and librdkafka through Python,
# with transaction.version 2 and 1. Needs java and python3.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"

cat > "$work/log4j2.properties" <<'L'
status = error
appender.e.type = Console
appender.e.name = E
appender.e.target = SYSTEM_ERR
appender.e.layout.type = PatternLayout
appender.e.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = ERROR
rootLogger.appenderRef.e.ref = E
L
run_java() {
  "${java[@]}" -Xmx512m -Dlog4j2.configurationFile="$work/log4j2.properties" \
    -cp "$OTTLA_KAFKA_JARS/*" "$@"
}

python=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}/python/bin/python
if ! "$python" -c 'import confluent_kafka' 2>/dev/null; then
  python3 -m venv "${python%/bin/python}" && "${python%python}pip" install --quiet confluent-kafka ||
    fail "librdkafka is missing: pip install confluent-kafka (and, on Debian, apt-get install python3-venv)"
fi

for version in 2 1; do
  echo "== transaction.version $version"
  embedded_brokers --transaction-version "$version"
  run_java tests/interop/EmbeddedTransactionsCheck.java "$OTTLA_BOOTSTRAP"
  "$python" tests/interop/embedded_transactions.py "$OTTLA_BOOTSTRAP"

  run_java org.apache.kafka.tools.ProducerPerformance --topic perf --num-records 20000 --record-size 100 --throughput -1 \
    --transactional-id perf --transaction-duration-ms 100 --producer-props "bootstrap.servers=$OTTLA_BOOTSTRAP" \
    > "$work/produced" 2>&1
  grep -q '^20000 records sent' "$work/produced" || fail "$(cat "$work/produced")"
  run_java org.apache.kafka.tools.ConsumerPerformance --bootstrap-server "$OTTLA_BOOTSTRAP" --topic perf --group perf \
    --messages 20000 --timeout 30000 --hide-header > "$work/consumed"
  run_java org.apache.kafka.tools.TransactionsCommand --bootstrap-server "$OTTLA_BOOTSTRAP" list > "$work/listed"
  contains '^perf .*CompleteCommit' < "$work/listed" || fail "$(cat "$work/listed")"
  run_java org.apache.kafka.tools.TransactionsCommand --bootstrap-server "$OTTLA_BOOTSTRAP" describe \
    --transactional-id perf > "$work/described"
  contains 'CompleteCommit' < "$work/described" || fail "$(cat "$work/described")"
done
echo "transactions: all clients agree"
