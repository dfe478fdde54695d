# What large clusters and many clients cost a process: Ottla's C library and librdkafka with the same program
# (peers/c/scale.c), on embedded brokers:
#
#   bash bench/scale.sh FOLDER...     each folder has a librdkafka.so.1, and its name is that of the column
#
# Prints the medians of RUNS (default 3) interleaved runs as a table. OTTLA is the program (default target/release/ottla).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${1:?FOLDER}"
ottla=${OTTLA:-target/release/ottla}
work=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || kill -9 "$broker"; rm -rf "$work"' EXIT
cc -O2 -Wall -Wextra -I crates/capi/include -o "$work/scale" bench/peers/c/scale.c -L "$1" -l:librdkafka.so.1

# embedded BROKERS OPTIONS...: starts embedded brokers in place of those that run, and sets `servers` to the first of them.
embedded() {
  [ -z "$broker" ] || kill -9 "$broker"
  : > "$work/brokers"
  "$ottla" broker --brokers "$1" --port 0 "${@:2}" > "$work/brokers" 2>&1 &
  broker=$!
  disown "$broker"
  servers=
  for _ in $(seq 300); do
    servers=$(sed -n 's/^bootstrap.servers=\([^,]*\).*/\1/p' "$work/brokers")
    [ -z "$servers" ] || return 0
    sleep 0.1
  done
  cat "$work/brokers" >&2
  exit 1
}

# measure WHAT MODE TOPIC COUNT: prints a row per folder.
measure() {
  for _ in $(seq "${RUNS:-3}"); do
    for folder in $(shuf -e "${@:5}"); do
      LD_LIBRARY_PATH=$folder timeout 180 "$work/scale" "$2" "$servers" "$3" "$4" >> "$work/$2-$(basename "$folder")" || true
    done
  done
  local folder column values
  for folder in "${@:5}"; do
    values=
    for column in 1 2 3 4 5 6; do
      values+=" | $(cut -d' ' -f"$column" "$work/$2-$(basename "$folder")" | sort -n | awk '{ row[NR] = $1 } END { print NR ? row[int((NR + 1) / 2)] : "failed" }')"
    done
    echo "| $1 | $(basename "$folder")$values |"
  done
}

echo "| | library | first, ms | all, ms | CPU, ms | CPU of 4 s idle, ms | threads | peak MiB |"
echo "|---|---|---:|---:|---:|---:|---:|---:|"
embedded 300 --topic wide:300
measure "300 brokers, a message to each" brokers wide 300 "$@"
embedded 3 --topic few:1
measure "200 producers, a message each" clients few 200 "$@"
embedded 3 --topic many:10000
measure "10,000 partitions, ten messages each" partitions many 10000 "$@"
embedded 3 --partitions 1
seq 0 4999 | sed s/^/topic/ | xargs "$ottla" topics -b "$servers" create > "$work/log"
measure "5,000 topics, ten messages each" topics topic 5000 "$@"
embedded 3 --topic huge:100000
measure "metadata of 100,000 partitions, five times" metadata huge 100000 "$@"
embedded 3 --topic thousand:1000
"$ottla" producer-perf-test -b "$servers" --topic thousand --num-records 200000 --record-size 100 -X linger.ms=0 -X partitioner=random > "$work/log"
measure "a consumer of 1,000 partitions, a message each" consumer thousand 1000 "$@"
