# Other clients with the TLS and SASL listeners of the embedded broker: the Java client, and librdkafka through Python, with
# every mechanism over SASL_PLAINTEXT and SASL_SSL, with TLS, and with client certificates. Wrong credentials are refused.
# Needs java, python3 and openssl.
. "$(dirname "$0")/../support.bash"
: "${OTTLA_KAFKA_JARS:?the folder with the jars of Apache Kafka}"

python=${OTTLA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ottla}/python/bin/python
if ! "$python" -c 'import confluent_kafka' 2>/dev/null; then
  python3 -m venv "${python%/bin/python}" && "${python%python}pip" install --quiet confluent-kafka ||
    fail "librdkafka is missing: pip install confluent-kafka (and, on Debian, apt-get install python3-venv)"
fi

embedded_brokers --partitions 2 --listener ssl --listener sasl_plaintext --listener sasl_ssl \
  --sasl plain,scram-sha-256,scram-sha-512,oauthbearer-unsecured --sasl-user alice:alice-secret --sasl-max-session 2000
cp "$work/brokers" "$work/listeners"
embedded_brokers --partitions 2 --tls-self-signed --tls-client-auth
# The Java client wants key and certificates in one file.
cat "$(sed -n 's/^ssl.key.location=//p' "$work/brokers")" "$(sed -n 's/^ssl.certificate.location=//p' "$work/brokers")" \
  > "$work/client.pem"
{ echo; cat "$work/brokers"; } >> "$work/listeners"

cat > "$work/log4j2.properties" <<'L'
status = error
rootLogger.level = OFF
L
"${java[@]}" -Xmx256m -Dlog4j2.configurationFile="$work/log4j2.properties" \
  -cp "$OTTLA_KAFKA_JARS/*" tests/interop/EmbeddedSecurityCheck.java "$work/listeners" "$work/client.pem"
"$python" tests/interop/embedded_security.py "$work/listeners"
