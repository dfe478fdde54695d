#!/usr/bin/env bash
# Record batches: Ottla, Apache Kafka's Java client and librdkafka each write the same records in every format and
# codec, and each reads the records of all three. Exit code 0 if all agree.
#
# OTTLA_KAFKA_JARS is a folder with kafka-clients and its codecs (default: the folder of `cargo xtask kafka fetch`).
# librdkafka is part of its Python binding, which PYTHON has, or which is installed into a virtual environment in the
# cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}
jars=${OTTLA_KAFKA_JARS:-$cache/kafka-${OTTLA_KAFKA_VERSION:-4.4.0}}
golden=tests/golden/batches
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$golden/records.txt" "$golden/large.txt" "$work"

fail() { echo "batches: $*" >&2; exit 1; }
ls "$jars"/kafka-clients-*.jar >/dev/null 2>&1 || fail "no kafka-clients in $jars: run \`cargo xtask kafka fetch\`"
command -v java >/dev/null || fail "needs java (Debian: apt-get install default-jdk-headless)"

python=${PYTHON:-python3}
if ! "$python" -c 'import confluent_kafka' 2>/dev/null; then
  python=$cache/librdkafka/bin/python
  if ! "$python" -c 'import confluent_kafka' 2>/dev/null; then
    python3 -m venv "$cache/librdkafka" || fail "needs python3 with venv (Debian: apt-get install python3-venv)"
    "$cache/librdkafka/bin/pip" install --quiet --disable-pip-version-check confluent-kafka
  fi
fi

examples=${OTTLA_EXAMPLES:-}
if [ -z "$examples" ]; then
  cargo build --quiet --package ottla-protocol --example batches
  examples=$(cargo metadata --no-deps --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')/debug/examples
fi

ottla() { "$examples/batches" "$@"; }
java_client() { java -XX:TieredStopAtLevel=1 -cp "$jars/*" "$golden/Batches.java" "$@" 2>"$work/java.log" || { cat "$work/java.log" >&2; return 1; }; }
librdkafka() { timeout 120 "$python" tests/interop/librdkafka.py "$@"; }

# The expected content of each file: the written records without the fields that the format does not have.
expected() {
  local file name first lines
  for file in "$@"; do
    name=$(basename "$file" .bin) first=0 lines=records.txt
    [[ $name == java-* ]] && first=1000
    [[ $name == *-large ]] && lines=large.txt
    echo "# $name"
    awk -v name="$name" -v first="$first" '{
      if (name ~ /-v0-/) $1 = -1
      if (name ~ /append-time/) $1 = "1800000000000"
      if (name !~ /-v2-/) $4 = "."
      print first + NR - 1, $0
    }' "$work/$lines"
  done
}

echo "writing: Ottla, Java, librdkafka $("$python" -c 'import confluent_kafka as c; print(c.libversion()[0])')"
ottla write "$work"
java_client golden "$work"
librdkafka write "$work"
rm "$work/java-control.bin"
failed=0
for reader in ottla java_client librdkafka; do
  files=()
  for file in "$work"/*.bin; do
    # Compressed batches of librdkafka in format 1 have no offsets before a broker assigns them, and librdkafka can't
    # read these.
    [[ $reader == librdkafka && $file =~ /librdkafka-v1-[^n] ]] || files+=("$file")
  done
  expected "${files[@]}" >"$work/expected"
  if "$reader" read "${files[@]}" >"$work/$reader" && diff "$work/expected" "$work/$reader" >"$work/diff"; then
    echo "$reader reads all ${#files[@]} files"
  else
    echo "$reader differs:" >&2
    cut -c1-200 "$work/diff" | head -20 >&2
    failed=1
  fi
done
exit $failed
