# Kafka's own perf tools produce to the embedded brokers in every codec, count what is there, and consume it.
source "$(dirname "$0")/../support.bash"
embedded_brokers
for codec in none gzip snappy lz4 zstd; do
  kafka org.apache.kafka.tools.ProducerPerformance --topic "java-$codec" --num-records 20000 --record-size 100 \
    --throughput -1 --producer-props "bootstrap.servers=$OTTLA_BOOTSTRAP" "compression.type=$codec" > "$work/perf"
  grep -q '^20000 records sent' "$work/perf" || fail "$codec: $(tail -3 "$work/perf")"
  equal "records in java-$codec" 20000 "$(records_in "java-$codec")"
done
kafka org.apache.kafka.tools.ConsumerPerformance --bootstrap-server "$OTTLA_BOOTSTRAP" --include 'java-.*' \
  --num-records 100000 --timeout 30000 --hide-header > "$work/consumed"
equal "records consumed" 100000 "$(awk -F', ' '{ print $5 }' "$work/consumed" | tail -1)"
