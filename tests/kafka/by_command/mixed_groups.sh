# Groups of Java, librdkafka, franz-go and Ottla members on three brokers of Apache Kafka, in both classic protocols and the
# consumer protocol, for five minutes each (OTTLA_SECONDS): bash tests/kafka/by_command/mixed_groups.sh
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
# The consumer protocol has the timeouts of the classic members, so that lost members are noticed as soon.
xtask kafka start 3 --set group.initial.rebalance.delay.ms=0 --set group.consumer.min.session.timeout.ms=1000 \
  --set group.consumer.session.timeout.ms=6000 --set group.consumer.min.heartbeat.interval.ms=100 \
  --set group.consumer.heartbeat.interval.ms=500
OTTLA_BOOTSTRAP=$(xtask kafka bootstrap)
export OTTLA_BOOTSTRAP OTTLA_PROTOCOLS=${OTTLA_PROTOCOLS:-range cooperative-sticky consumer} OTTLA_SECONDS=${OTTLA_SECONDS:-300}
bash tests/interop/mixed_groups.sh
