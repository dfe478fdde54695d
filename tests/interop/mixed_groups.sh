# Members of four clients in one group on Apache Kafka: its own Java client, franz-go, librdkafka and Ottla's C library,
# both by confluent_kafka. mixed_groups/driver.py adds, kills, stops, continues and closes members, and documents its
# checks.
#
# OTTLA_PROTOCOLS (default cooperative-sticky; also range, consumer) are run one after the other. OTTLA_SECONDS (default 1)
# is the time for which each starts rounds of changes. `tests/kafka/by_command/mixed_groups.sh` runs all for minutes.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}" "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"
if [ -z "$real_brokers" ]; then
  not_checked "members of four clients in one group" "Apache Kafka is not available (\`cargo xtask test\` starts it; OTTLA_BOOTSTRAP names its brokers)"
  exit 0
fi
sources=$PWD/tests/interop/mixed_groups
java_and_go_members "$sources" Member
version=2.16.1
for which in librdkafka ottla; do
  python3 -m pip install --quiet --no-deps --only-binary :all: --target "$work/$which" "confluent-kafka==$version" \
    > "$work/log" 2>&1 || { not_checked "members of four clients in one group" "confluent_kafka can't be fetched: $(tail -1 "$work/log")"; exit 0; }
  members+=(--member "$which=env PYTHONPATH=$work/$which python3 $sources/member.py")
done
cp "$OTTLA_PREFIX/lib/librdkafka.so.1" "$(find "$work/ottla/confluent_kafka.libs" -name 'librdkafka*')"

for protocol in ${OTTLA_PROTOCOLS:-cooperative-sticky}; do
  new_topics 12 "mixed-$protocol-$$"
  python3 "$sources/driver.py" --servers "$real_brokers" --topic "mixed-$protocol-$$" --protocol "$protocol" \
    --partitions 12 --seconds "${OTTLA_SECONDS:-1}" --ottla "$OTTLA" "${members[@]}"
done
