# The examples of tests with a broker of their own (examples/testing), each with its language's client.
. "$(dirname "$0")/../support.bash"
mkdir "$work/bin"
ln -s "$(realpath "$OTTLA")" "$work/bin/ottla"
export PATH=$work/bin:$PATH

# ran WHAT COMMAND...: the command succeeds within its time.
ran() {
  local what=$1
  shift
  timeout 120 "$@" > "$work/log" 2>&1 || fail "the test in $what: $(tail -20 "$work/log")"
  echo "$what: passed"
}

if python3 -m venv "$work/venv" > "$work/log" 2>&1 &&
  "$work/venv/bin/pip" install --quiet confluent-kafka==2.16.1 > "$work/log" 2>&1; then
  ran Python "$work/venv/bin/python" examples/testing/python/test_orders.py
else
  not_checked "the test in Python" "confluent-kafka can't be installed: $(tail -1 "$work/log")"
fi

mkdir "$work/node"
cp examples/testing/node/*.mjs "$work/node"
if ! command -v npm > /dev/null; then
  not_checked "the test in JavaScript" "npm is not installed"
elif npm install --prefix "$work/node" --silent --no-audit --no-fund kafkajs@2.2.4 > "$work/log" 2>&1; then
  ran JavaScript node --test "$work/node/orders.test.mjs"
else
  not_checked "the test in JavaScript" "kafkajs can't be installed: $(tail -1 "$work/log")"
fi

if ! command -v go > /dev/null; then
  not_checked "the test in Go" "go is not installed"
elif go -C examples/testing/go mod download > "$work/log" 2>&1; then
  ran Go go -C examples/testing/go test -count 1 .
else
  not_checked "the test in Go" "its modules can't be fetched: $(tail -1 "$work/log")"
fi

: "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"
mkdir "$work/java"
"${javac[@]}" -cp "$OTTLA_KAFKA_JARS/*" -d "$work/java" examples/testing/java/*.java || fail "the test in Java can't be compiled"
ran Java "${java[@]}" -cp "$work/java:$OTTLA_KAFKA_JARS/*" OrdersTest
