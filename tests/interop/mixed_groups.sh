# Members of four clients in one group on Apache Kafka: its own Java client, franz-go, librdkafka and Ottla's C library,
# both by confluent_kafka. mixed_groups/driver.py adds, kills, stops, continues and closes members, and documents its
# checks.
#
# OTTLA_PROTOCOLS (default cooperative-sticky; also range, consumer) are run one after the other. OTTLA_SECONDS (default 1)
# is the time for which each starts rounds of changes. `tests/kafka/by_command/mixed_groups.sh` runs all for minutes.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}" "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"
if [ -z "$real_brokers" ]; then
  echo "NOT CHECKED: Apache Kafka is not available (\`cargo xtask test\` starts it; OTTLA_BOOTSTRAP names its brokers)"
  exit 0
fi
sources=$PWD/tests/interop/mixed_groups
javac -cp "$OTTLA_KAFKA_JARS/*" -d "$work/java" "$sources/Member.java" || fail "the Java member can't be compiled"
members=(--member "java=java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp $OTTLA_KAFKA_JARS/*:$work/java Member")
if ! command -v go > /dev/null; then
  echo "NOT CHECKED: members of franz-go, because go is not installed"
elif ! go -C "$sources/franz-go" mod download > "$work/log" 2>&1; then
  echo "NOT CHECKED: members of franz-go, because its modules can't be fetched: $(tail -1 "$work/log")"
else
  go -C "$sources/franz-go" build -o "$work/franz-go" . > "$work/log" 2>&1 || fail "franz-go's member: $(tail -5 "$work/log")"
  members+=(--member "franz-go=$work/franz-go")
fi
version=2.16.1
for which in librdkafka ottla; do
  python3 -m pip install --quiet --no-deps --only-binary :all: --target "$work/$which" "confluent-kafka==$version" \
    > "$work/log" 2>&1 || { echo "NOT CHECKED: confluent_kafka can't be fetched: $(tail -1 "$work/log")"; exit 0; }
  members+=(--member "$which=env PYTHONPATH=$work/$which python3 $sources/member.py")
done
cp "$OTTLA_PREFIX/lib/librdkafka.so.1" "$(find "$work/ottla/confluent_kafka.libs" -name 'librdkafka*')"

for protocol in ${OTTLA_PROTOCOLS:-cooperative-sticky}; do
  new_topics 12 "mixed-$protocol-$$"
  python3 "$sources/driver.py" --servers "$real_brokers" --topic "mixed-$protocol-$$" --protocol "$protocol" \
    --partitions 12 --seconds "${OTTLA_SECONDS:-1}" --ottla "$OTTLA" "${members[@]}"
done
