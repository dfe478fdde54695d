# Debian's kcat, unmodified: with Ottla's librdkafka.so.1 it prints the same as with its own library.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
command -v kcat > /dev/null || fail "kcat is not installed (on Debian: apt-get install kcat)"

ours() { LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 60 kcat -b "$OTTLA_BOOTSTRAP" "$@" 2>&1; }
theirs() { timeout 60 kcat -b "$OTTLA_BOOTSTRAP" "$@" 2>&1; }
# Warnings about properties differ. rd_kafka_message_broker_id() is unimplemented, and rd_kafka_controllerid() with a
# timeout of zero knows no controller. Any broker may respond to a metadata request.
plain() {
  grep -v CONFWARN "$1" | sed -E 's/"broker":-?[0-9]+,//; s/ \(controller\)//; s/"controllerid":-?[0-9]+,//' |
    sed -E 's/ \(from broker [^)]*\)//; s/"originating_broker":\{[^}]*\},//; s/"query":\{[^}]*\},//'
}
# both WHAT ARGS...: compares the outputs line by line.
both() {
  local what=$1
  shift
  ours "$@" > "$work/ours" || fail "$what: $(cat "$work/ours")"
  theirs "$@" > "$work/theirs" || fail "$what, with the original: $(cat "$work/theirs")"
  diff <(plain "$work/theirs") <(plain "$work/ours") > "$work/difference" || fail "$what: $(head -10 "$work/difference")"
  [ -s "$work/ours" ] || fail "$what: no output"
  echo "$what: the same $(wc -l < "$work/ours") lines"
}

kcat_says=$(LD_LIBRARY_PATH=$OTTLA_PREFIX/lib kcat -V 2>&1)
[[ $kcat_says == *"librdkafka 2.16.0"* ]] || fail "kcat does not use Ottla's library: $kcat_says"

check() {
  local t=t$suffix
  new_topics 2 "$t" "spread$suffix" "quiet$suffix"
  # The properties that kcat sets by default cause no warning.
  printf 'quiet' | ours -P -t "quiet$suffix" > "$work/quiet"
  equal "warnings that every program would get" "" "$(grep -i 'termination' "$work/quiet" || true)"

  # -P: keys, headers, null values, a partition, codecs, files, properties
  printf 'k1:one\nk2:two\n:empty key\nk4:\n' | ours -P -t "$t" -p 0 -K : -Z -H a=1 -H b=two
  for codec in none gzip snappy lz4 zstd; do
    seq -f "$codec %g" 200 | ours -P -t "$t" -p 1 -z $codec -X acks=all -X linger.ms=1 -X enable.idempotence=true
  done
  printf 'a file as one message' > "$work/file"
  ours -P -t "$t" -p 0 "$work/file" "$work/file"
  printf 'x;y;z' | ours -P -t "$t" -p 0 -D ';'
  seq 1000 | ours -P -t "spread$suffix" -c 1000
  equal "records that were not spread" 1000 "$(theirs -C -t "spread$suffix" -o beginning -e -q | wc -l)"

  # -C: formats, JSON, offsets, counts; the topic is read with both libraries
  both "-C with every format" -C -t "$t" -p 0 -o beginning -e -q -f 'topic %t [%p] %o key %k (%K) value %s (%S) at %T headers %h\n'
  both "-C as JSON" -C -t "$t" -p 0 -o beginning -e -q -J
  both "-C of compressed records" -C -t "$t" -p 1 -o beginning -e -q
  both "-C from an offset" -C -t "$t" -p 1 -o 990 -e -q -f '%o %s\n'
  both "-C of the last ones" -C -t "$t" -p 1 -o -5 -e -q -f '%o %s\n'
  both "-C of so many" -C -t "$t" -p 1 -o beginning -c 7 -q -f '%o %s\n'
  both "-C with keys and delimiters" -C -t "$t" -p 0 -o beginning -e -q -K ' -> ' -D '|\n'
  both "-C between timestamps" -C -t "$t" -p 0 -o s@0 -e -q -f '%o %s\n'
  both "-C says where the end is" -C -t "$t" -p 0 -o end -e
  both "-C unpacks" -C -t "$t" -p 0 -o beginning -c 1 -q -s value=s

  # -L and -Q
  both "-L" -L -t "$t"
  both "-L as JSON" -L -J -t "$t"
  both "-Q: offsets by timestamp" -Q -t "$t:0:-1" -t "$t:1:-2"
}
everywhere check --partitions 2

# -X
ours -X list > "$work/list"
grep -q '^linger.ms\|queue.buffering.max.ms' "$work/list" || fail "-X list: $(head -3 "$work/list")"
ours -X dump -X client.id=me > "$work/dump" || true
grep -q 'client.id = me' "$work/dump" || fail "-X dump: $(head -3 "$work/dump")"
if ours -P -t t -X no.such.property=1 < /dev/null > "$work/refused"; then fail "an unknown property is accepted"; fi
echo "an unknown property: $(head -1 "$work/refused")"

# TLS and every mechanism, with properties from a file.
secured_brokers
unsecured=(-X enable.sasl.oauthbearer.unsecure.jwt=true -X sasl.oauthbearer.config=principal=alice)
for mechanism in PLAIN SCRAM-SHA-256 SCRAM-SHA-512 OAUTHBEARER; do
  more=(-F "$work/secured" -X sasl.mechanisms=$mechanism)
  [ $mechanism = OAUTHBEARER ] && more+=("${unsecured[@]}")
  seq 100 | ours "${more[@]}" -P -t secured-$mechanism > "$work/ours" || fail "SASL_SSL, $mechanism: $(cat "$work/ours")"
  ours "${more[@]}" -C -t secured-$mechanism -o beginning -e -q > "$work/ours" || fail "SASL_SSL, $mechanism: $(cat "$work/ours")"
  equal "records over SASL_SSL with $mechanism" 100 "$(grep -c '^[0-9]*$' "$work/ours")"
done
timeout 5 env LD_LIBRARY_PATH="$OTTLA_PREFIX/lib" kcat -F "$work/secured" -X sasl.password=another -L > "$work/refused" 2>&1 &&
  fail "kcat connects with a wrong password"
contains "Authentication failed" < "$work/refused" || fail "a wrong password: $(head -5 "$work/refused")"
echo "a wrong password is refused"
