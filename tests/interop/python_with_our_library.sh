# Debian's python3-confluent-kafka, built against librdkafka 2.0, with our librdkafka.so.1: producer, assigned consumer,
# topics by AdminClient. Then the sources of confluent-kafka, built against our headers and our library.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
check=$PWD/tests/interop/python_with_our_library.py

if original python3-confluent-kafka && [ -x /usr/bin/python3 ]; then
  debian() {
    LD_LIBRARY_PATH=$OTTLA_PREFIX/lib PYTHONPATH=$ORIGINAL/usr/lib/python3/dist-packages \
      timeout 100 /usr/bin/python3 "$check" "$OTTLA_BOOTSTRAP" "debian$suffix"
  }
  everywhere debian --partitions 2
fi

# The last version that asks for no newer librdkafka than the interface is.
version=2.12.1
if python3 -m venv "$work/venv" > "$work/log" 2>&1 &&
  C_INCLUDE_PATH=$OTTLA_PREFIX/include LIBRARY_PATH=$OTTLA_PREFIX/lib \
    "$work/venv/bin/pip" install --quiet --no-binary confluent-kafka "confluent-kafka==$version" > "$work/log" 2>&1; then
  sources() {
    LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 100 "$work/venv/bin/python" "$check" "$OTTLA_BOOTSTRAP" "sources$suffix"
  }
  everywhere sources --partitions 2
elif grep -qi 'error: .*rdkafka\|rdkafka.h\|undefined\|gcc.*failed' "$work/log"; then
  fail "confluent-kafka can't be built against our headers: $(tail -20 "$work/log")"
else
  echo "NOT CHECKED: the sources of confluent-kafka can't be had or built here: $(tail -3 "$work/log")"
fi
