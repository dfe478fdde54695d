# Schemas and bytes of ottla-schema-registry and of Confluent's Python serializers, in both directions, through the embedded
# registry. OTTLA_WRITE_SCHEMAS=1 replaces crates/schema-registry/tests/confluent.json, which the crate's tests read:
# OTTLA=target/debug/ottla bash tests/schemas/compare.sh
. "$(dirname "$0")/../support.bash"
python=$downloads/schemas/bin/python
if [ ! -x "$python" ]; then
  python3 -m venv "$downloads/schemas"
  "$python" -m pip install -q 'confluent-kafka[avro,protobuf,json,schemaregistry]' grpcio-tools
fi
table=$root/crates/schema-registry/tests/confluent.json
# with_registry COMMAND...: runs a command with the address of a fresh registry as its last argument.
with_registry() {
  coproc registry { exec "$OTTLA" broker --port 0 --schema-registry 127.0.0.1:0; }
  local broker=$registry_PID line url=
  started+=("$broker")
  # The broker prints the address when the registry answers, and ends its output if it can't start.
  while read -r line <&"${registry[0]}"; do
    case $line in schema.registry.url=*) url=${line#*=} && break ;; esac
  done
  [ -n "$url" ] || fail "the registry did not start"
  curl -sf -X PUT -H 'Content-Type: application/json' -d '{"compatibility": "NONE"}' "$url/config" > /dev/null
  "$@" "$url"
  kill "$broker"
  wait "$broker" || true
}
record_and_read() {
  OTTLA_TEST_SCHEMA_REGISTRY=$1 OTTLA_TEST_SCHEMA_RECORDS=$work/records \
    cargo test -q -p ottla-schema-registry --all-features --test confluent
  "$python" tests/schemas/confluent.py read "$work/records" "$1"
}
with_registry "$python" tests/schemas/confluent.py write "$work/table"
[ -z "${OTTLA_WRITE_SCHEMAS:-}" ] || cp "$work/table" "$table"
cmp "$work/table" "$table" || fail "Confluent's serializers write other bytes than those recorded"
with_registry record_and_read
