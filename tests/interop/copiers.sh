# Copiers of two clients move records from one topic to another in transactions, as members of one group: Apache Kafka's
# Java client, and Ottla's C library by confluent_kafka. copiers/driver.py ends copiers and brokers, and documents its
# checks.
#
# OTTLA_SECONDS (default 10) is the time of a run. OTTLA_COPIERS (default "ottla ottla java") names the copiers; `librdkafka`
# is the original library. OTTLA_BROKER_FAULTS has lines of NAME=COMMAND, whose commands end brokers and
# start them again.
# `tests/kafka/by_command/copiers.sh` runs all for minutes.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_PREFIX:?where the library is installed}" "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"
if [ -z "$real_brokers" ]; then
  not_checked "copiers in transactions" "Apache Kafka is not available (\`cargo xtask test\` starts it; OTTLA_BOOTSTRAP names its brokers)"
  exit 0
fi
sources=$PWD/tests/interop/copiers
"${javac[@]}" -cp "$OTTLA_KAFKA_JARS/*" -d "$work/java" "$sources/Copier.java" || fail "the Java copier can't be compiled"
declare -A commands=([java]="${java[*]} -Xmx128m -cp $OTTLA_KAFKA_JARS/*:$work/java Copier")
for which in librdkafka ottla; do
  python3 -m pip install --quiet --no-deps --only-binary :all: --target "$work/$which" confluent-kafka==2.16.0 \
    > "$work/log" 2>&1 || { not_checked "copiers in transactions" "confluent_kafka can't be fetched: $(tail -1 "$work/log")"; exit 0; }
  commands[$which]="env PYTHONPATH=$work/$which python3 $sources/copier.py"
done
# Without OTTLA_PREFIX/lib the original would be tested under our name.
cp "$OTTLA_PREFIX/lib/librdkafka.so.1" "$(find "$work/ottla/confluent_kafka.libs" -name 'librdkafka*')"

arguments=()
for copier in ${OTTLA_COPIERS:-ottla ottla java}; do
  arguments+=(--copier "$copier=${commands[$copier]}")
done
while read -r fault; do
  [ -z "$fault" ] || arguments+=(--broker-fault "$fault")
done <<< "${OTTLA_BROKER_FAULTS:-}"
new_topics 2 "copied-$$"
new_topics 3 "copies-$$"
python3 "$sources/driver.py" --servers "$real_brokers" --input "copied-$$" --output "copies-$$" --seconds "${OTTLA_SECONDS:-10}" \
  --ottla "$OTTLA" "${arguments[@]}"
