# Debian's python3-confluent-kafka, built with librdkafka 2.0, runs with Ottla's librdkafka.so.1: producer, assigned
# consumer, members of groups, topics by AdminClient. Then the same with the sources of confluent-kafka, built with Ottla's
# headers and library, and with the current wheel, in which Ottla's library replaces its own.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}"
check=$PWD/tests/interop/python_with_our_library.py

if [ ! -x /usr/bin/python3 ]; then
  not_checked "Debian's python3-confluent-kafka" "there is no /usr/bin/python3"
elif original python3-confluent-kafka; then
  debian() {
    LD_LIBRARY_PATH=$OTTLA_PREFIX/lib PYTHONPATH=$ORIGINAL/usr/lib/python3/dist-packages \
      timeout 100 /usr/bin/python3 "$check" "$OTTLA_BOOTSTRAP" "debian$suffix"
  }
  everywhere debian --partitions 2
fi

# The last version that does not require a newer librdkafka than the version of the interface.
version=2.12.1
if python3 -m venv "$work/venv" > "$work/log" 2>&1 &&
  C_INCLUDE_PATH=$OTTLA_PREFIX/include LIBRARY_PATH=$OTTLA_PREFIX/lib \
    "$work/venv/bin/pip" install --quiet --no-binary confluent-kafka "confluent-kafka==$version" > "$work/log" 2>&1; then
  sources() {
    LD_LIBRARY_PATH=$OTTLA_PREFIX/lib timeout 100 "$work/venv/bin/python" "$check" "$OTTLA_BOOTSTRAP" "sources$suffix"
  }
  everywhere sources --partitions 2
elif grep -qi 'error: .*rdkafka\|rdkafka.h\|undefined\|gcc.*failed' "$work/log"; then
  fail "confluent-kafka can't be built with Ottla's headers: $(tail -20 "$work/log")"
else
  not_checked "confluent-kafka built with Ottla's headers" "its sources can't be fetched or built on this machine: $(tail -1 "$work/log")"
fi

# The package of librdkafka's own version that is closest to the interface.
version=2.16.1
wheel=$work/wheel
if "$work/venv/bin/pip" install --quiet --no-deps --only-binary :all: --target "$wheel" "confluent-kafka==$version" > "$work/log" 2>&1; then
  own=$(find "$wheel/confluent_kafka.libs" -name 'librdkafka*')
  [ -f "$own" ] || fail "the wheel has no librdkafka: $(find "$wheel" -name '*.so*')"
  cp "$OTTLA_PREFIX/lib/librdkafka.so.1" "$own"
  wheel() { PYTHONPATH=$wheel timeout 100 "$work/venv/bin/python" "$check" "$OTTLA_BOOTSTRAP" "wheel$suffix"; }
  everywhere wheel --partitions 2
  secured_brokers
  PYTHONPATH=$wheel timeout 100 "$work/venv/bin/python" tests/interop/python_over_sasl_ssl.py "$work/secured"
else
  not_checked "the wheel of confluent-kafka" "it can't be fetched: $(tail -1 "$work/log")"
fi
