# Kafka's console consumer reads the lines that `ottla produce` wrote, in every codec.
source "$(dirname "$0")/../support.bash"
embedded_brokers
seq -f 'line %05g with some text that repeats, and repeats' 2000 > "$work/lines"
for codec in none gzip snappy lz4 zstd; do
  "$OTTLA" produce -X "bootstrap.servers=$OTTLA_BOOTSTRAP" -t "ours-$codec" -p 0 -z "$codec" < "$work/lines"
  kafka org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$OTTLA_BOOTSTRAP" --topic "ours-$codec" \
    --from-beginning --max-messages 2000 --timeout-ms 30000 > "$work/read" 2> "$work/errors" || fail "$codec: $(cat "$work/errors")"
  cmp "$work/lines" "$work/read" || fail "$codec: the console consumer read different lines"
  echo "$codec: the same 2000 lines"
done
