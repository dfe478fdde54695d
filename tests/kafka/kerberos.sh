# A real Kafka with a GSSAPI listener, and a key distribution centre (MIT Kerberos, unpacked from Debian's packages): tickets from a
# key table, a command and a cache, errors, and connections that authenticate again while records flow.
source "$(dirname "$0")/../support.bash"
port=${KERBEROS_PORT:-31495} plain_port=$((port + 1)) controller_port=$((port + 2)) kdc_port=$((port + 3))
# Clients of the listener FAR connect through a relay that delays each byte by 50 ms.
far_port=$((port + 4)) relay_port=$((port + 5)) here=$PWD/tests/kafka
libraries=${OTTLA_KAFKA_JARS:-${OTTLA_CACHE:-$HOME/.cache/ottla}/kafka-${OTTLA_KAFKA_VERSION:-4.4.0}}
original krb5-kdc krb5-admin-server krb5-user libverto1 libverto-libev1 libev4 libgssrpc4 libkadm5srv-mit12 \
  libkadm5clnt-mit12 libkdb5-10 || exit 0
cd "$work"
library=$ORIGINAL/usr/lib/x86_64-linux-gnu
export KRB5_CONFIG=$work/krb5.conf KRB5_KDC_PROFILE=$work/kdc.conf
PATH=$ORIGINAL/usr/bin:$ORIGINAL/usr/sbin:$PATH
# Only these programs use the unpacked libraries.
kerberos() { LD_LIBRARY_PATH=$library "$@"; }

cat > krb5.conf <<P
[libdefaults]
default_realm = OTTLA.TEST
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
OTTLA.TEST = {
kdc = 127.0.0.1:$kdc_port
}
P
cat > kdc.conf <<P
[kdcdefaults]
kdc_listen = 127.0.0.1:$kdc_port
kdc_tcp_listen = 127.0.0.1:$kdc_port
[realms]
OTTLA.TEST = {
database_name = $work/principal
key_stash_file = $work/stash
acl_file = $work/acl
}
[dbmodules]
db_module_dir = $library/krb5/plugins/kdb
P
admin() { kerberos kadmin.local -q "$1" >> kdc.log 2>&1; }
kerberos kdb5_util create -s -r OTTLA.TEST -P master > kdc.log 2>&1 || fail "kdb5_util: $(tail -3 kdc.log)"
admin "addprinc -randkey kafka/localhost" && admin "ktadd -k $work/kafka.keytab kafka/localhost" || fail "kadmin: $(tail -3 kdc.log)"
admin "addprinc -randkey alice" && admin "ktadd -k $work/alice.keytab alice" || fail "kadmin: $(tail -3 kdc.log)"
LD_LIBRARY_PATH=$library krb5kdc -n > krb5kdc.log 2>&1 &
started+=($!)

cat > kafka.properties <<P
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:$controller_port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:$plain_port,SASLP://localhost:$port,FAR://localhost:$far_port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$plain_port,SASLP://localhost:$port,FAR://localhost:$relay_port
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASLP:SASL_PLAINTEXT,FAR:SASL_PLAINTEXT
sasl.kerberos.service.name=kafka
log.dirs=$work/log
offsets.topic.replication.factor=1
P
for listener in saslp far; do
  cat >> kafka.properties <<P
listener.name.$listener.sasl.enabled.mechanisms=GSSAPI
listener.name.$listener.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="$work/kafka.keytab" principal="kafka/localhost@OTTLA.TEST";
listener.name.$listener.connections.max.reauth.ms=3000
P
done
"${java[@]}" -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c kafka.properties > format.log 2>&1 ||
  fail "format: $(tail -3 format.log)"
"${java[@]}" -Xmx400m -Djava.security.krb5.conf="$work/krb5.conf" -cp "$libraries/*" kafka.Kafka kafka.properties > kafka.log 2>&1 &
started+=($!)
for try in $(seq 60); do
  "$OTTLA" metadata --timeout 2 -b 127.0.0.1:$plain_port > metadata 2>&1 && break
  sleep 1
done
contains "broker 1 at 127.0.0.1:$plain_port" < metadata || fail "no metadata: $(tail -3 metadata) $(tail -3 kafka.log)"

# with OUT COMMAND PROPERTY=VALUE...
with() {
  local out=$1 command=$2 properties=() property
  shift 2
  for property in "$@"; do properties+=(-X "$property"); done
  # shellcheck disable=SC2086
  "$OTTLA" $command -b localhost:$port -X security.protocol=sasl_plaintext -X sasl.mechanisms=GSSAPI "${properties[@]}" > "$out" 2>&1
}
# refuses WORDS PROPERTY=VALUE...
refuses() {
  local words=$1
  shift
  ! with out "metadata --timeout 6" "$@" || fail "$*: connected"
  contains "$words" < out || fail "$*: \"$words\" is not in: $(cat out)"
  echo "refused: $words"
}
export KRB5CCNAME=FILE:$work/cache
keytab=(sasl.kerberos.keytab="$work/alice.keytab" sasl.kerberos.principal=alice@OTTLA.TEST)
refuses "set sasl.kerberos.keytab"
with out "metadata --timeout 15" "${keytab[@]}" || fail "key table: $(tail -3 out)"
[ ! -e cache ] || fail "the client wrote to the cache of the user"
echo "key table"
with out doctor "${keytab[@]}" || fail "doctor: $(cat out)"
contains "authenticated with GSSAPI" < out || fail "doctor: $(cat out)"
! with out doctor sasl.kerberos.keytab="$work/alice.keytab" sasl.kerberos.principal=bob@OTTLA.TEST || fail "doctor: $(cat out)"
contains "has the keys of bob" < out && contains "klist" < out || fail "doctor, another principal: $(cat out)"
echo "doctor"
refuses "has the keys of bob" sasl.kerberos.keytab="$work/alice.keytab" sasl.kerberos.principal=bob@OTTLA.TEST
refuses "other@localhost" "${keytab[@]}" sasl.kerberos.service.name=other
refuses "kinit.cmd has failed: exit status: 3" sasl.kerberos.kinit.cmd="exit 3"
kinit="LD_LIBRARY_PATH=$library kinit -k -t '%{sasl.kerberos.keytab}' %{sasl.kerberos.principal}"
with out "metadata --timeout 15" "${keytab[@]}" "sasl.kerberos.kinit.cmd=$kinit" || fail "command: $(tail -3 out)"
[ -e cache ] || fail "the command wrote no cache"
echo "command"
with out "metadata --timeout 15" || fail "cache: $(tail -3 out)"
echo "cache"
for number in $(seq 100); do echo "$number"; sleep 0.1; done |
  with produced "produce -t again" "${keytab[@]}" || fail "produce: $(tail -3 produced)"
with consumed "consume -t again -o beginning -e" "${keytab[@]}" || fail "consume: $(tail -3 consumed)"
equal "records" "$(seq 100 | sort | cksum)" "$(grep -x '[0-9]*' consumed | sort | cksum)"
echo "re-authentication"

# A re-authentication delays records by two round trips of 100 ms: Kerberos has three messages of the client.
python3 "$here/delayed_relay.py" $relay_port $far_port 50 & started+=($!)
listening $relay_port
again_within 350 bootstrap.servers=localhost:$relay_port security.protocol=sasl_plaintext sasl.mechanisms=GSSAPI "${keytab[@]}"
