# A real Kafka with a TLS listener and one that requires client certificates, and keys and stores in all formats that OpenSSL and
# keytool write. OpenSSL makes the certificates; they are valid for a day.
source "$(dirname "$0")/../support.bash"
port=${TLS_PORT:-31193} mtls_port=$((port + 1)) plain_port=$((port - 1)) controller_port=$((port - 3))
libraries=${OTTLA_KAFKA_JARS:-${OTTLA_CACHE:-$HOME/.cache/ottla}/kafka-${OTTLA_KAFKA_VERSION:-4.4.0}}
cd "$work"

openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 1 -subj "/CN=Test CA" \
  -addext keyUsage=critical,keyCertSign,cRLSign 2> /dev/null
for name in broker client; do
  openssl req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj "/CN=$name" 2> /dev/null
  echo "subjectAltName=DNS:localhost,IP:127.0.0.1" > extensions
  openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 1 -extfile extensions 2> /dev/null
done
openssl pkcs8 -topk8 -nocrypt -in broker.key -out broker.pk8
cat broker.pk8 broker.pem ca.pem > broker.all.pem
openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 1 -subj "/CN=Other CA" 2> /dev/null

cat > kafka.properties <<P
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@127.0.0.1:$controller_port
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:$plain_port,SSL://localhost:$port,MTLS://localhost:$mtls_port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$plain_port,SSL://localhost:$port,MTLS://localhost:$mtls_port
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,MTLS:SSL
ssl.keystore.type=PEM
ssl.keystore.location=$work/broker.all.pem
ssl.truststore.type=PEM
ssl.truststore.location=$work/ca.pem
listener.name.mtls.ssl.client.auth=required
log.dirs=$work/log
offsets.topic.replication.factor=1
P
"${java[@]}" -cp "$libraries/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c kafka.properties > format.log 2>&1 ||
  fail "format: $(tail -3 format.log)"
"${java[@]}" -Xmx400m -cp "$libraries/*" kafka.Kafka kafka.properties > kafka.log 2>&1 &
started+=($!)
tls=(-X security.protocol=ssl -X ssl.ca.location="$work/ca.pem")
for try in $(seq 60); do
  "$OTTLA" metadata --timeout 2 -b localhost:$port "${tls[@]}" > metadata 2>&1 && break
  sleep 1
done
contains "broker 1 at localhost:$port" < metadata || fail "no metadata over TLS: $(tail -3 metadata) $(tail -3 kafka.log)"

# Makes all formats of the client's key.
openssl rsa -in client.key -traditional -out client.pkcs1 2> /dev/null
openssl rsa -in client.key -aes256 -traditional -passout pass:secret -out client.legacy 2> /dev/null
openssl rsa -in client.key -des3 -traditional -passout pass:secret -out client.legacy3des 2> /dev/null
openssl pkcs8 -topk8 -in client.key -passout pass:secret -v2 aes-256-cbc -out client.aes
openssl pkcs8 -topk8 -in client.key -passout pass:secret -v2 aes-128-cbc -v2prf hmacWithSHA512 -out client.sha512
openssl pkcs8 -topk8 -in client.key -passout pass:secret -v2 des3 -v2prf hmacWithSHA1 -out client.des3
openssl pkcs8 -topk8 -in client.key -passout pass:secret -scrypt -out client.scrypt
openssl pkcs8 -topk8 -in client.key -passout pass:secret -v1 PBE-SHA1-3DES -out client.pbes1
openssl pkcs12 -export -in client.pem -inkey client.key -certfile ca.pem -passout pass:secret -out client.p12
openssl pkcs12 -export -in client.pem -inkey client.key -certfile ca.pem -passout pass:secret -legacy -out client.rc2.p12
openssl x509 -in client.pem -outform DER -out client.der
openssl pkcs8 -topk8 -nocrypt -in client.key -outform DER -out client.key.der
# OpenSSL writes EC keys as SEC1.
openssl ecparam -name prime256v1 -genkey -noout -out ec.sec1
openssl ec -in ec.sec1 -aes128 -passout pass:secret -out ec.legacy 2> /dev/null
openssl req -new -key ec.sec1 -out ec.csr -subj "/CN=ec" 2> /dev/null
openssl x509 -req -in ec.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out ec.pem -days 1 -extfile extensions 2> /dev/null
openssl pkcs8 -topk8 -in client.key -passout pass:secret -v1 PBE-MD5-DES -provider legacy -provider default -out client.md5des
mkdir authorities
cp ca.pem authorities/ca.pem
keytool -importkeystore -srckeystore client.p12 -srcstorepass secret -destkeystore client.jks -deststoretype JKS \
  -deststorepass secret > keytool.log 2>&1 || fail "keytool: $(cat keytool.log)"
keytool -importcert -noprompt -file ca.pem -alias ca -keystore trust.p12 -storetype PKCS12 -storepass secret > keytool.log 2>&1
keytool -importcert -noprompt -file ca.pem -alias ca -keystore trust.jks -storetype JKS -storepass secret > keytool.log 2>&1

# connects PROPERTY=VALUE...: the client reaches the listener that requires a certificate.
connects() {
  local properties=() property
  for property in "$@"; do properties+=(-X "$property"); done
  "$OTTLA" metadata --timeout 10 -b localhost:$mtls_port -X security.protocol=ssl "${properties[@]}" > out 2>&1 ||
    fail "$*: $(tail -3 out)"
}
ca=ssl.ca.location=$work/ca.pem certificate=ssl.certificate.location=$work/client.pem
for key in client.key client.pkcs1 client.legacy client.legacy3des client.aes client.sha512 client.des3 client.scrypt client.pbes1; do
  connects $ca $certificate ssl.key.location=$work/$key ssl.key.password=secret
  echo "key: $key"
done
for key in ec.sec1 ec.legacy; do
  connects $ca ssl.certificate.location="$work/ec.pem" ssl.key.location=$work/$key ssl.key.password=secret
  echo "key: $key"
done
connects $ca ssl.certificate.location="$work/client.der" ssl.key.location="$work/client.key.der"
connects ssl.ca.location="$work/authorities" $certificate ssl.key.location=$work/client.key
SSL_CERT_FILE=$work/ca.pem connects $certificate ssl.key.location=$work/client.key
echo "DER, a folder of certificates, the system's certificates"
for store in client.p12 client.rc2.p12 client.jks; do
  connects $ca ssl.keystore.location=$work/$store ssl.keystore.password=secret
  echo "store: $store"
done
for store in trust.p12 trust.jks; do
  connects $certificate ssl.key.location=$work/client.key ssl.truststore.location=$work/$store ssl.truststore.password=secret
  echo "trust store: $store"
done
connects $ca $certificate ssl.key.location=$work/client.key ssl.enabled.protocols=TLSv1.2 \
  ssl.cipher.suites=ECDHE-RSA-AES128-GCM-SHA256 ssl.curves.list=P-384 ssl.sigalgs.list=RSA+SHA256:rsa_pss_rsae_sha256

# refuses WORDS PORT PROPERTY=VALUE...: the client does not connect, and says why.
refuses() {
  local words=$1 port=$2 properties=() property
  shift 2
  for property in "$@"; do properties+=(-X "$property"); done
  ! "$OTTLA" metadata --timeout 4 -b localhost:$port "${properties[@]}" > out 2>&1 || fail "$*: connected"
  contains "$words" < out || fail "$*: \"$words\" is not in: $(cat out)"
  echo "refused: $words"
}
refuses "requires a client certificate" $mtls_port security.protocol=ssl $ca
refuses "not trusted" $port security.protocol=ssl ssl.ca.location=$work/other.pem
refuses "security.protocol=ssl" $port security.protocol=plaintext
refuses "plaintext listener" $plain_port security.protocol=ssl $ca
refuses "password is wrong" $mtls_port security.protocol=ssl $ca $certificate ssl.key.location=$work/client.aes ssl.key.password=x
refuses "password is wrong" $mtls_port security.protocol=ssl $ca ssl.keystore.location=$work/client.p12 ssl.keystore.password=x
refuses "password is wrong" $mtls_port security.protocol=ssl $ca ssl.keystore.location=$work/client.jks ssl.keystore.password=x
refuses "ssl.key.password is not set" $mtls_port security.protocol=ssl $ca $certificate ssl.key.location=$work/client.legacy
refuses "openssl pkcs8 -topk8" $mtls_port security.protocol=ssl $ca $certificate ssl.key.location=$work/client.md5des \
  ssl.key.password=secret
SSL_CERT_FILE=$work/other.pem refuses "not trusted" $port security.protocol=ssl
refuses "does not belong to" $mtls_port security.protocol=ssl $ca $certificate ssl.key.location=$work/other.key

# Records in both directions, with batches larger than a TLS record.
seq 100000 > numbers
"$OTTLA" produce -b localhost:$mtls_port "${tls[@]}" -X $certificate -X ssl.key.location=$work/client.key -t tls < numbers
"$OTTLA" consume -b localhost:$port "${tls[@]}" -t tls -o beginning -e > consumed 2> consumed.err || fail "$(tail -3 consumed.err)"
equal "records" "$(sort numbers | cksum)" "$(sort consumed | cksum)"
