# The scenarios on three brokers of other versions of Apache Kafka, one version after the other, each on new data:
# bash tests/kafka/by_command/other_versions.sh 4.3.1 3.9.1. Without arguments the versions that the client is checked with. Prints
# a line per version: passed, failed, and not checked because the brokers lack what the scenario is about.
set -uo pipefail
cd "$(dirname "$0")/../../.."
xtask() { if [ -n "${OTTLA_XTASK:-}" ]; then "$OTTLA_XTASK" "$@"; else cargo xtask "$@"; fi; }
[ $# -gt 0 ] || set -- 4.3.1 3.9.1 3.3.2
work=$(mktemp -d)
export OTTLA_KAFKA_DATA=$work/kafka
trap 'xtask kafka destroy > "$work/destroy" 2>&1; rm -rf "$work"' EXIT
cargo test --package ottla-scenarios --no-run || exit 1
failed=0
for version; do
  export OTTLA_KAFKA_VERSION=$version OTTLA_NOT_CHECKED=$work/not_checked-$version
  : > "$OTTLA_NOT_CHECKED"
  if ! xtask kafka start 3 > "$work/start" 2>&1; then
    echo "$version: the brokers do not start: $(tail -n 3 "$work/start")"
    failed=1
    continue
  fi
  OTTLA_BOOTSTRAP=$(xtask kafka bootstrap) cargo test --package ottla-scenarios on_apache_kafka > "$work/out" 2>&1 || failed=1
  grep -e ' \.\.\. FAILED$' -e '^NOT CHECKED' "$work/out" "$OTTLA_NOT_CHECKED" | sed 's/^[^:]*://' | sort -u
  # A test that is not checked counts as one that passes.
  unchecked=$(grep -c '^NOT CHECKED: test ' "$OTTLA_NOT_CHECKED")
  echo "$version: $(($(grep -c ' \.\.\. ok$' "$work/out") - unchecked)) passed, $(grep -c ' \.\.\. FAILED$' "$work/out") failed," \
    "$(wc -l < "$OTTLA_NOT_CHECKED") not checked"
  xtask kafka destroy
done
exit $failed
