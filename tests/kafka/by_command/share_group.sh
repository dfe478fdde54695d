# Members of three clients in one share group on three brokers of Apache Kafka (KIP-932): its own Java client, franz-go and
# Ottla, each of which is killed once. tests/interop/share_group/driver.py tells what it checks. OTTLA_RECORDS (default 2000)
# is the number of records: bash tests/kafka/by_command/share_group.sh
cd "$(dirname "$0")/../../.."
xtask() { if [ -n "${OTTLA_XTASK:-}" ]; then "$OTTLA_XTASK" "$@"; else cargo xtask "$@"; fi; }
if [ -z "${OTTLA:-}" ]; then
  cargo build --release --package ottla-cli
  export OTTLA=$PWD/target/release/ottla
fi
. tests/support.bash
export OTTLA_KAFKA_JARS=${OTTLA_KAFKA_JARS:-$(xtask kafka fetch)} OTTLA_KAFKA_DATA=$work/kafka
trap 'xtask kafka destroy; rm -rf "$work"' EXIT
xtask kafka start 3
servers=$(xtask kafka bootstrap)
sources=$PWD/tests/interop/share_group
topic=shared-$$
"$OTTLA" topics -b "$servers" create "$topic" --partitions 6
cat > "$work/ottla-member" <<MEMBER
#!/usr/bin/env bash
# SERVERS GROUP TOPIC, until the end of the input. A message is printed before it is accepted. A new group begins with the
# first record.
"$OTTLA" consume -b "\$1" --share-group "\$2" -t "\$3" -o beginning -q -X max.poll.records=20 -f 'unsure %s\n' < /dev/null &
cat > /dev/null
kill \$!
wait \$!
MEMBER
chmod +x "$work/ottla-member"
java_and_go_members "$sources" ShareMember
members+=(--member "ottla=$work/ottla-member")
python3 "$sources/driver.py" --servers "$servers" --group "$topic" --topic "$topic" --records "${OTTLA_RECORDS:-2000}" \
  --ottla "$OTTLA" "${members[@]}"
"$OTTLA" share-groups -b "$servers" describe --offsets "$topic" > "$work/offsets"
contains "$topic" < "$work/offsets" || fail "no offsets: $(cat "$work/offsets")"
