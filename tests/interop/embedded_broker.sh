#!/usr/bin/env bash
# Other clients with Ottla's embedded broker: the Java client and its tools, and librdkafka through Python.
#
# Needs OTTLA, the `ottla` binary, and OTTLA_KAFKA_JARS, the folder with Apache Kafka's jars; java; python3 with venv
# (or the Python package confluent-kafka). Exit code 0 on success.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${OTTLA:?the ottla binary}" "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"
work=$(mktemp -d)
broker=
finish() {
  status=$?
  [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
  [ "$status" = 0 ] || { echo "FAILED; the broker's output:"; cat "$work/broker.log" 2>/dev/null || true; }
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT

"$OTTLA" broker --brokers 3 --port 0 > "$work/broker.log" 2>&1 &
broker=$!
servers=
for _ in $(seq 100); do
  servers=$(sed -n 's/^bootstrap.servers=//p' "$work/broker.log")
  [ -z "$servers" ] || break
  kill -0 "$broker" || { echo "the broker has exited"; exit 1; }
  sleep 0.1
done
[ -n "$servers" ] || { echo "the broker did not start"; exit 1; }

cat > "$work/log4j2.properties" <<'L'
status = error
appender.e.type = Console
appender.e.name = E
appender.e.target = SYSTEM_ERR
appender.e.layout.type = PatternLayout
appender.e.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.e.ref = E
L
# An archive of Kafka's classes, if there is one.
classes=()
[ -z "${OTTLA_JAVA_CLASSES:-}" ] || classes=("-XX:SharedArchiveFile=$OTTLA_JAVA_CLASSES" -Xlog:cds=off -Xlog:cds+dynamic=off)
run_java() {
  java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${classes[@]}" -Dlog4j2.configurationFile="$work/log4j2.properties" \
    -cp "$OTTLA_KAFKA_JARS/*" "$@"
}

echo "== Java client: every codec, offsets, admin, groups, share groups"
run_java "$here/EmbeddedBrokerCheck.java" "$servers"

echo "== Kafka's tools: topics, producer-perf, consumer-perf, get-offsets, groups"
records=200000
run_java org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic perf \
  --partitions 6 --replication-factor 3
run_java org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --describe --topic perf > "$work/topic"
[ "$(grep -c 'Partition: ' "$work/topic")" = 6 ] || { cat "$work/topic"; exit 1; }
run_java org.apache.kafka.tools.ProducerPerformance --topic perf --num-records $records --record-size 100 \
  --throughput -1 --producer-props "bootstrap.servers=$servers" acks=all 2>&1 | tee "$work/produced"
grep -q "^$records records sent" "$work/produced"
run_java org.apache.kafka.tools.ConsumerPerformance --bootstrap-server "$servers" --topic perf --messages $records \
  --group perf --timeout 30000 --hide-header > "$work/consumed"
cat "$work/consumed"
awk -F', ' -v n=$records '$5 == n { ok = 1 } END { exit !ok }' "$work/consumed"
run_java org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$servers" --topic perf > "$work/offsets"
awk -F: -v n=$records '{ s += $3 } END { print "offsets add up to " s; exit s != n }' "$work/offsets"
run_java org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$servers" --describe \
  --group perf > "$work/group" 2>&1
awk -v n=$records '$1 == "perf" { s += $4 } END { print "committed offsets add up to " s; exit s != n }' "$work/group"

echo "== Kafka's tools: share groups"
# Kafka 4.4 moved it.
configs=org.apache.kafka.tools.ConfigCommand
ls "$OTTLA_KAFKA_JARS"/kafka-tools-4.[0-3]*.jar > /dev/null 2>&1 && configs=kafka.admin.ConfigCommand
run_java $configs --bootstrap-server "$servers" --alter --group share \
  --add-config share.auto.offset.reset=earliest
run_java org.apache.kafka.tools.consumer.ConsoleShareConsumer --bootstrap-server "$servers" --topic perf --group share \
  --max-messages $records --timeout-ms 60000 > "$work/shared" 2> "$work/shared.errors"
[ "$(wc -l < "$work/shared")" = $records ] || { wc -l "$work/shared"; cat "$work/shared.errors"; exit 1; }
run_java org.apache.kafka.tools.consumer.group.ShareGroupCommand --bootstrap-server "$servers" --describe \
  --group share > "$work/group" 2>&1
awk -v n=$records '$1 == "share" { s += $4; lag += $5 } END { print "start offsets add up to " s; exit s != n || lag != 0 }' \
  "$work/group"

echo "== librdkafka: every codec, idempotence, admin, groups"
python=python3
if ! python3 -c 'import confluent_kafka' 2>/dev/null; then
  venv=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}/python
  if ! "$venv/bin/python" -c 'import confluent_kafka' 2>/dev/null; then
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet confluent-kafka || {
      echo "librdkafka is missing: pip install confluent-kafka (and, on Debian, apt-get install python3-venv)"
      exit 1
    }
  fi
  python=$venv/bin/python
fi
"$python" "$here/embedded_broker.py" "$servers"
echo "embedded broker: all clients agree"
