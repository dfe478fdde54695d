# A real Kafka with SASL_PLAINTEXT and SASL_SSL listeners: each mechanism, wrong credentials, delegation tokens, tokens of an
# identity provider that the broker checks with its public key, connections that authenticate again while records flow, and
# how long records wait for that.
source "$(dirname "$0")/../support.bash"
port=${SASL_PORT:-31395} tls_port=$((port + 1)) oidc_port=$((port + 2)) plain_port=$((port - 1))
# Clients of the listeners FAR and FARS connect through relays that delay each byte by 50 ms.
far_port=$((port + 3)) fars_port=$((port + 4)) relay_port=$((port + 5)) tls_relay_port=$((port + 6)) controller_port=$((port - 3))
# The listener of the clients whose access rules are tested; all other clients are super users.
rules_port=$((port + 7))
here=$PWD/tests/kafka
libraries=${OTTLA_KAFKA_JARS:-${OTTLA_CACHE:-$HOME/.cache/ottla}/kafka-${OTTLA_KAFKA_VERSION:-4.4.0}}
cd "$work"

openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 1 -subj "/CN=Test CA" \
  -addext keyUsage=critical,keyCertSign,cRLSign 2> /dev/null
openssl req -newkey rsa:2048 -nodes -keyout broker.key -out broker.csr -subj "/CN=broker" 2> /dev/null
echo "subjectAltName=DNS:localhost,IP:127.0.0.1" > extensions
openssl x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out broker.pem -days 1 -extfile extensions 2> /dev/null
openssl pkcs8 -topk8 -nocrypt -in broker.key -out broker.pk8
cat broker.pk8 broker.pem ca.pem > broker.all.pem

# The identity provider, and the keys of its clients.
cat broker.pk8 broker.pem > tls.pem
openssl genrsa -out signing.key 2048 2> /dev/null
openssl genrsa -aes256 -passout pass:phrase -out RS256.key 2048 2> /dev/null
openssl rsa -in RS256.key -passin pass:phrase -pubout -out RS256.pub 2> /dev/null
openssl ecparam -name prime256v1 -genkey -noout -out ES256.key
openssl ec -in ES256.key -pubout -out ES256.pub 2> /dev/null
python3 "$here/identity_provider.py" "$work" > idp.errors 2>&1 &
started+=($!)
for try in $(seq 50); do [ -e idp.port ] && break; sleep 0.1; done
[ -e idp.port ] || fail "the identity provider did not start: $(cat idp.errors)"

cat > kafka.properties <<P
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:$controller_port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:$plain_port,SASLP://localhost:$port,SASLS://localhost:$tls_port,OIDC://localhost:$oidc_port,FAR://localhost:$far_port,FARS://localhost:$fars_port,RULES://localhost:$rules_port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$plain_port,SASLP://localhost:$port,SASLS://localhost:$tls_port,OIDC://localhost:$oidc_port,FAR://localhost:$relay_port,FARS://localhost:$tls_relay_port,RULES://localhost:$rules_port
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASLP:SASL_PLAINTEXT,SASLS:SASL_SSL,OIDC:SASL_PLAINTEXT,FAR:SASL_PLAINTEXT,FARS:SASL_SSL,RULES:SASL_PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location=$work/broker.all.pem
delegation.token.secret.key=some-text
log.dirs=$work/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin;User:alice;User:me
listener.name.rules.sasl.enabled.mechanisms=PLAIN
listener.name.rules.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="secret" user_bob="secret";
P
modules=org.apache.kafka.common.security
for listener in saslp sasls far fars; do
  cat >> kafka.properties <<P
listener.name.$listener.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.$listener.plain.sasl.jaas.config=$modules.plain.PlainLoginModule required user_alice="alice-secret";
listener.name.$listener.scram-sha-256.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.$listener.scram-sha-512.sasl.jaas.config=$modules.scram.ScramLoginModule required;
listener.name.$listener.oauthbearer.sasl.jaas.config=$modules.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
P
done
cat >> kafka.properties <<P
listener.name.oidc.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oidc.oauthbearer.sasl.jaas.config=$modules.oauthbearer.OAuthBearerLoginModule required;
listener.name.oidc.oauthbearer.sasl.server.callback.handler.class=$modules.oauthbearer.OAuthBearerValidatorCallbackHandler
listener.name.oidc.oauthbearer.sasl.oauthbearer.jwks.endpoint.url=file://$work/jwks.json
listener.name.oidc.oauthbearer.sasl.oauthbearer.expected.audience=kafka
listener.name.oidc.oauthbearer.sasl.oauthbearer.expected.issuer=https://idp.test
listener.name.oidc.connections.max.reauth.ms=3600000
P
for listener in saslp far fars; do echo "listener.name.$listener.connections.max.reauth.ms=3000" >> kafka.properties; done
"${java[@]}" -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c kafka.properties \
  --add-scram 'SCRAM-SHA-256=[name=alice,password=alice-secret]' \
  --add-scram 'SCRAM-SHA-512=[name=alice,password=alice-secret,iterations=8192]' > format.log 2>&1 ||
  fail "format: $(tail -3 format.log)"
"${java[@]}" -Xmx400m -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://$work/jwks.json -cp "$libraries/*" kafka.Kafka kafka.properties > kafka.log 2>&1 &
started+=($!)
for try in $(seq 60); do
  "$OTTLA" metadata --timeout 2 -b 127.0.0.1:$plain_port > metadata 2>&1 && break
  sleep 1
done
contains "broker 1 at 127.0.0.1:$plain_port" < metadata || fail "no metadata: $(tail -3 metadata) $(tail -3 kafka.log)"

user=(sasl.username=alice sasl.password=alice-secret)
oidc=(sasl.mechanisms=OAUTHBEARER sasl.oauthbearer.method=oidc https.ca.location="$work/ca.pem" "sasl.oauthbearer.scope=read write"
  sasl.oauthbearer.client.id=me sasl.oauthbearer.client.secret=hunter2)
url=sasl.oauthbearer.token.endpoint.url=https://localhost:$(cat idp.port)/token
unsecured=(sasl.mechanisms=OAUTHBEARER enable.sasl.oauthbearer.unsecure.jwt=true "sasl.oauthbearer.config=principal=alice scope=a,b")
# with OUT COMMAND PROTOCOL PROPERTY=VALUE...: runs a command of ottla with these properties at the listener of the protocol.
with() {
  local out=$1 command=$2 protocol=$3 properties=() property at=$port
  shift 3
  [ "${listener:-}" = oidc ] && at=$oidc_port
  [ "$protocol" = sasl_ssl ] && at=$tls_port && properties=(-X ssl.ca.location="$work/ca.pem")
  for property in "$@"; do properties+=(-X "$property"); done
  # shellcheck disable=SC2086
  "$OTTLA" $command -b localhost:$at -X security.protocol=$protocol "${properties[@]}" > "$out" 2>&1
}
for protocol in sasl_plaintext sasl_ssl; do
  for mechanism in PLAIN SCRAM-SHA-256 SCRAM-SHA-512; do
    with out "metadata --timeout 15" $protocol sasl.mechanisms=$mechanism "${user[@]}" || fail "$protocol $mechanism: $(tail -3 out)"
    echo "$protocol $mechanism"
  done
  with out "metadata --timeout 15" $protocol "${unsecured[@]}" || fail "$protocol OAUTHBEARER: $(tail -3 out)"
  echo "$protocol OAUTHBEARER"
done
with out "metadata --timeout 15" sasl_ssl sasl.mechanism=SCRAM-SHA-512 \
  "sasl.jaas.config=$modules.scram.ScramLoginModule required username=\"alice\" password=\"alice-secret\";" ||
  fail "sasl.jaas.config: $(tail -3 out)"

# Tokens of the identity provider, at the listener that checks their signature, audience and issuer.
assertion=("${oidc[@]:0:3}" sasl.oauthbearer.grant.type=urn:ietf:params:oauth:grant-type:jwt-bearer
  sasl.oauthbearer.assertion.claim.iss=me sasl.oauthbearer.assertion.claim.sub=alice
  sasl.oauthbearer.assertion.claim.aud=https://idp.test sasl.oauthbearer.assertion.claim.jti.include=true)
listener=oidc with out "metadata --timeout 15" sasl_plaintext "${oidc[@]}" $url/600 || fail "client secret: $(tail -3 out) $(cat idp.log)"
listener=oidc with out "metadata --timeout 15" sasl_plaintext "${assertion[@]}" $url/600 sasl.oauthbearer.assertion.algorithm=RS256 \
  sasl.oauthbearer.assertion.private.key.file="$work/RS256.key" sasl.oauthbearer.assertion.private.key.passphrase=phrase ||
  fail "RS256: $(tail -3 out) $(cat idp.log)"
listener=oidc with out "metadata --timeout 15" sasl_plaintext "${assertion[@]}" $url/600 sasl.oauthbearer.assertion.algorithm=ES256 \
  "sasl.oauthbearer.assertion.private.key.pem=$(cat ES256.key)" || fail "ES256: $(tail -3 out) $(cat idp.log)"
listener=oidc with out "metadata --timeout 15" sasl_plaintext "${oidc[@]:0:4}" $url/600 \
  "sasl.jaas.config=$modules.oauthbearer.OAuthBearerLoginModule required clientId=\"me\" clientSecret=\"hunter2\";" ||
  fail "Java's spelling: $(tail -3 out) $(cat idp.log)"
equal "grants" "secret RS256 ES256 secret " "$(tr '\n' ' ' < idp.log)"
echo "identity provider: client secret, RS256, ES256"

# refuses WORDS PROTOCOL PROPERTY=VALUE...: the client does not connect, and says why, without the password.
refuses() {
  local words=$1
  shift
  ! with out "metadata --timeout 4" "$@" || fail "$*: connected"
  contains "$words" < out || fail "$*: \"$words\" is not in: $(cat out)"
  ! contains "hunter2" < out || fail "$*: the password is in: $(cat out)"
  echo "refused: $words"
}
for mechanism in PLAIN SCRAM-SHA-256 SCRAM-SHA-512; do
  refuses "Authentication failed" sasl_plaintext sasl.mechanisms=$mechanism sasl.username=alice sasl.password=hunter2
  refuses "Authentication failed" sasl_ssl sasl.mechanisms=$mechanism sasl.username=nobody sasl.password=hunter2
done
listener=oidc refuses "check sasl.oauthbearer.client.id" sasl_plaintext "${oidc[@]}" $url/600 sasl.oauthbearer.client.secret=hunter22
listener=oidc refuses "TLS:" sasl_plaintext "${oidc[@]}" $url/600 https.ca.location=
listener=oidc refuses "already expired" sasl_plaintext "${oidc[@]}" $url/-600
listener=oidc refuses "the broker refused the token" sasl_plaintext "${unsecured[@]}"
# The listener without SASL.
! "$OTTLA" metadata --timeout 4 -b 127.0.0.1:$plain_port -X security.protocol=sasl_plaintext -X sasl.mechanisms=PLAIN \
  -X sasl.username=alice -X sasl.password=x > out 2>&1 || fail "SASL at the plaintext listener: connected"
contains "does not use SASL" < out || fail "SASL at the plaintext listener: $(cat out)"

# A delegation token, made by Java's tool.
cat > java.properties <<P
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=$modules.scram.ScramLoginModule required username="alice" password="alice-secret";
P
"${java[@]}" -cp "$libraries/*" org.apache.kafka.tools.DelegationTokenCommand --bootstrap-server localhost:$port --create \
  --max-life-time-period -1 --command-config java.properties > token.log 2>&1 || fail "token: $(tail -3 token.log)"
read -r id hmac _ < <(grep -A2 TOKENID token.log | tail -1)
with out "metadata --timeout 15" sasl_plaintext sasl.mechanisms=SCRAM-SHA-512 sasl.username="$id" sasl.password="$hmac" \
  sasl.delegation.token=true || fail "delegation token: $(tail -3 out) $(cat token.log)"
echo "delegation token"

# Records flow for three sessions of the plaintext listener, and none is lost or written twice.
for mechanism in SCRAM-SHA-256 OAUTHBEARER oidc; do
  properties=(sasl.mechanisms=$mechanism "${user[@]}") listener=
  [ $mechanism = OAUTHBEARER ] && properties=("${unsecured[@]}")
  # Sessions end with their tokens, after five seconds.
  [ $mechanism = oidc ] && properties=("${oidc[@]}" $url/5) listener=oidc
  for number in $(seq 100); do echo "$number"; sleep 0.1; done |
    with produced "produce -t again-$mechanism" sasl_plaintext "${properties[@]}" || fail "produce: $(tail -3 produced)"
  with consumed "consume -t again-$mechanism -o beginning -e" sasl_plaintext "${properties[@]}" || fail "consume: $(tail -3 consumed)"
  equal "records" "$(seq 100 | sort | cksum)" "$(grep -x '[0-9]*' consumed | sort | cksum)"
  echo "re-authentication: $mechanism"
done

# A re-authentication delays records by at most one round trip of 100 ms.
python3 "$here/delayed_relay.py" $relay_port $far_port 50 & started+=($!)
python3 "$here/delayed_relay.py" $tls_relay_port $fars_port 50 & started+=($!)
listening $relay_port $tls_relay_port
for case in sasl_plaintext/PLAIN sasl_plaintext/SCRAM-SHA-256 sasl_ssl/SCRAM-SHA-512 sasl_ssl/OAUTHBEARER; do
  protocol=${case%/*} mechanism=${case#*/} at=$relay_port
  properties=(sasl.mechanisms=$mechanism "${user[@]}")
  [ $mechanism = OAUTHBEARER ] && properties=("${unsecured[@]}")
  [ $protocol = sasl_ssl ] && properties+=(ssl.ca.location="$work/ca.pem") && at=$tls_relay_port
  again_within 250 bootstrap.servers=localhost:$at security.protocol=$protocol "${properties[@]}"
done

# Access rules: Kafka permits what was recorded, which is also what embedded brokers are compared with.
scenarios=(cargo test --quiet --workspace --test scenarios --)
[ -z "${OTTLA_SCENARIOS:-}" ] || scenarios=("$OTTLA_SCENARIOS")
(cd "$root/crates/scenarios" && OTTLA_SECURED_BOOTSTRAP=localhost:$rules_port timeout 1200 \
  "${scenarios[@]}" --exact access_rules::brokers_permit_what_kafka_permits) > rules 2>&1 ||
  fail "access rules: $(tail -20 rules)"
contains "1 passed" < rules || fail "access rules: $(tail -5 rules)"
echo "access rules"
