# Transactional copiers of Ottla and Java on three brokers of Apache Kafka, where brokers and copiers are killed and ended in
# order, for ten minutes (OTTLA_SECONDS) with each transaction.version of OTTLA_TRANSACTION_VERSIONS (default "2 1"):
# bash tests/kafka/by_command/copiers.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
xtask() { if [ -n "${OTTLA_XTASK:-}" ]; then "$OTTLA_XTASK" "$@"; else cargo xtask "$@"; fi; }
own=$(mktemp -d)
export OTTLA_KAFKA_DATA=$own/kafka
trap 'xtask kafka destroy; rm -rf "$own"' EXIT
if [ -z "${OTTLA_PREFIX:-}" ]; then
  export OTTLA_PREFIX=$own/prefix
  xtask install --profile release --prefix "$OTTLA_PREFIX" > "$own/log"
fi
export OTTLA=${OTTLA:-$OTTLA_PREFIX/bin/ottla} OTTLA_KAFKA_JARS=${OTTLA_KAFKA_JARS:-$(xtask kafka fetch)}
xtask kafka start 3 --set group.initial.rebalance.delay.ms=0 --set transaction.state.log.min.isr=2 --set min.insync.replicas=2
OTTLA_BOOTSTRAP=$(xtask kafka bootstrap)
if [ -n "${OTTLA_XTASK:-}" ]; then command=$OTTLA_XTASK; else command="cargo xtask"; fi
faults=
for broker in 1 2 3; do
  faults+="broker $broker is killed=$command kafka kill $broker; sleep 3; $command kafka restart $broker"$'\n'
  faults+="broker $broker is shut down=$command kafka stop $broker; sleep 1; $command kafka restart $broker"$'\n'
done
export OTTLA_BOOTSTRAP OTTLA_BROKER_FAULTS=${OTTLA_BROKER_FAULTS-$faults} OTTLA_SECONDS=${OTTLA_SECONDS:-600}
for version in ${OTTLA_TRANSACTION_VERSIONS:-2 1}; do
  xtask kafka run org.apache.kafka.tools.FeatureCommand --bootstrap-server "$OTTLA_BOOTSTRAP" describe |
    grep "transaction.version.*FinalizedVersionLevel: $version" > /dev/null ||
    xtask kafka run org.apache.kafka.tools.FeatureCommand --bootstrap-server "$OTTLA_BOOTSTRAP" downgrade \
      --feature "transaction.version=$version"
  echo "transaction.version=$version:"
  bash tests/interop/copiers.sh
done
