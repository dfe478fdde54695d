# The time from producing a message of 100 bytes to receiving it, at a fixed rate, in one process that does both, on three
# brokers of Apache Kafka on this machine: Ottla's C library, librdkafka, franz-go and the Java client.
#
#   bash bench/tails.sh OTTLA_FOLDER LIBRDKAFKA_FOLDER     each folder has a librdkafka.so.1
#
# Needs bench/target/franz-go (`cargo xtask bench`), and three running brokers in SERVERS, or starts some. RATES (default
# "10000 100000"), RUNS (5) of SECONDS_EACH (10) after a warm-up of 3 s, in random order. All clients are idempotent producers
# with linger 0, and their own defaults otherwise; topics have six partitions with one replica. Prints medians of the runs, with
# the smallest and the largest 99th percentile.
set -euo pipefail
cd "$(dirname "$0")/.."
ottla=${1:?OTTLA_FOLDER} librdkafka=${2:?LIBRDKAFKA_FOLDER}
work=$(mktemp -d) seconds=${SECONDS_EACH:-10} partitions=6 warm=3
started=
trap '[ -z "$started" ] || cargo xtask kafka --data "$started" destroy; rm -rf "$work"' EXIT
jars=$(cargo xtask kafka fetch | tail -1)
if [ -z "${SERVERS:-}" ]; then
  started=$work/kafka
  cargo xtask kafka --data "$started" start 3 > "$work/log"
  SERVERS=$(cargo xtask kafka --data "$started" bootstrap)
fi
cc -O2 -Wall -Wextra -I crates/capi/include -o "$work/tails" bench/peers/c/tails.c -L "$ottla" -l:librdkafka.so.1 -lpthread
javac -d "$work" -cp "$jars/*" bench/peers/java/Tails.java

# run CLIENT TOPIC RATE: prints the figures of one run.
run() {
  case $1 in
    ottla) LD_LIBRARY_PATH=$ottla "$work/tails" "$SERVERS" "$2" $partitions "$3" $warm "$seconds" ;;
    librdkafka) LD_LIBRARY_PATH=$librdkafka "$work/tails" "$SERVERS" "$2" $partitions "$3" $warm "$seconds" ;;
    java) java -cp "$work:$jars/*" Tails "$SERVERS" "$2" $partitions "$3" $warm "$seconds" 2> "$work/java.log" ;;
    franz-go)
      bench/target/franz-go tails --bootstrap "$SERVERS" --topic "$2" --partitions $partitions --rate "$3" --warm $warm \
        --seconds "$seconds"
      ;;
  esac
}

# The virtual machines of cold brokers compile what they run, for which all clients wait.
bench/target/franz-go create --bootstrap "$SERVERS" --topic "tails-warm-$$" --partitions $partitions --replicas 1 > "$work/log"
bench/target/franz-go tails --bootstrap "$SERVERS" --topic "tails-warm-$$" --partitions $partitions --rate 20000 --warm 0 \
  --seconds "${WARM_UP:-30}" > "$work/log"

clients=${CLIENTS:-ottla librdkafka franz-go java}
for rate in ${RATES:-10000 100000}; do
  for number in $(seq "${RUNS:-5}"); do
    for client in $(shuf -e $clients); do
      topic=tails-$rate-$number-$client-$$
      bench/target/franz-go create --bootstrap "$SERVERS" --topic "$topic" --partitions $partitions --replicas 1 > "$work/log"
      timeout 90 bash -c "$(declare -f run); $(declare -p ottla librdkafka work SERVERS partitions warm seconds jars); run $client $topic $rate" \
        >> "$work/$client-$rate" || echo "$client failed at $rate/s" >&2
      bench/target/franz-go delete --bootstrap "$SERVERS" --topic "$topic" --partitions $partitions --replicas 1 > "$work/log"
    done
  done
done

echo "| messages per second | client | p50, us | p99, us | p99.9, us | largest, us | CPU, ns per message |"
echo "|---:|---|---:|---:|---:|---:|---:|"
for rate in ${RATES:-10000 100000}; do
  for client in $clients; do
    row="| $rate | $client"
    for column in 1 2 3 4 5; do
      sorted=$(cut -d' ' -f$column "$work/$client-$rate" | sort -n)
      middle=$(awk '{ row[NR] = $1 } END { print NR ? row[int((NR + 1) / 2)] : "failed" }' <<< "$sorted")
      [ $column != 2 ] || middle="$middle ($(head -1 <<< "$sorted") to $(tail -1 <<< "$sorted"))"
      row+=" | $middle"
    done
    echo "$row |"
  done
done
