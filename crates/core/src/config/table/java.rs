//! Properties that only the Java client has. If librdkafka or Ottla has an equivalent property, the row is its alias.

use super::{Conversion, Property};

const JAVA_CLASS: &str = "it names Java classes, which this client can't load";
const OTHER_CLASS: &str = "other classes are Java code, which this client can't load";
const METRICS: &str = "Ottla has no Java metrics";
const REFRESH: &str = "a new token is requested when 80 % of a token's lifetime have passed";
const RENEWAL: &str = "the Kerberos library renews the tickets of a key table";
const CHECKED: &str = "brokers check tokens, the client doesn't";
const JAVA_TLS: &str = "it names a part of Java's TLS";

pub(super) const ROWS: &[Property] = &[
    Property::java("buffer.memory")
        .producer()
        .integer(1024, 2199023254528, "33554432")
        .high()
        .converted_to("queue.buffering.max.kbytes", Conversion::BytesToKibibytes),
    Property::java("max.block.ms")
        .producer()
        .integer(0, i64::MAX, "60000")
        .doc(
            "The longest wait of a producer's calls that have no timeout argument: for room in the queue, `send_async` and \
             `deliver_async` in Rust, and messages with `RD_KAFKA_MSG_F_BLOCK` in C, which then fail because the queue is full; \
             for the coordinator, `init_transactions_async`, `commit_async` and `abort_async`. Metadata never delays a call. \
             If it is not set, these calls wait as long as necessary.",
        ),
    Property::java("fetch.max.wait.ms").consumer().integer(0, 300000, "500").alias_of("fetch.wait.max.ms"),
    Property::java("send.buffer.bytes")
        .integer(-1, 100000000, "131072")
        .converted_to("socket.send.buffer.bytes", Conversion::MinusOneToZero),
    Property::java("receive.buffer.bytes")
        .integer(-1, 100000000, "65536")
        .converted_to("socket.receive.buffer.bytes", Conversion::MinusOneToZero),
    Property::java("key.serializer")
        .producer()
        .string("")
        .high()
        .accepted("keys and values are plain bytes in Ottla")
        .doc("The class that serializes keys."),
    Property::java("value.serializer")
        .producer()
        .string("")
        .high()
        .accepted("keys and values are plain bytes in Ottla")
        .doc("The class that serializes values."),
    Property::java("key.deserializer")
        .consumer()
        .string("")
        .high()
        .accepted("keys and values are plain bytes in Ottla")
        .doc("The class that deserializes keys."),
    Property::java("value.deserializer")
        .consumer()
        .string("")
        .high()
        .accepted("keys and values are plain bytes in Ottla")
        .doc("The class that deserializes values."),
    Property::java("partitioner.class")
        .producer()
        .string("")
        .doc(
            "Java's partitioner class: DefaultPartitioner is `partitioner=murmur2_random`, UniformStickyPartitioner is \
             `sticky`, RoundRobinPartitioner takes the partitions with leaders in turn. Others are refused. `partitioner` takes \
             precedence.",
        ),
    Property::java("partitioner.ignore.keys")
        .producer()
        .boolean("false")
        .doc("Choose partitions without regard to keys, as with `partitioner=sticky`."),
    Property::java("partitioner.rack.aware")
        .producer()
        .boolean("false")
        .doc(
            "Records without a key prefer partitions whose leaders are in the rack `client.rack`, if there are any (KIP-1123).",
        ),
    Property::java("partitioner.adaptive.partitioning.enable")
        .producer()
        .boolean("true")
        .doc(
            "Send fewer of the keyless records to slower brokers: of two random partitions, the one with fewer waiting bytes \
             is next. If it is not set, the next partition is random (KIP-794).",
        ),
    Property::java("partitioner.availability.timeout.ms")
        .producer()
        .integer(0, i64::MAX, "0")
        .doc(
            "How long records may wait in a partition before keyless records avoid it; 0 means no limit. Partitions without a \
             leader are avoided in any case (KIP-794).",
        ),
    Property::java("interceptor.classes").string("").accepted(JAVA_CLASS).doc("Interceptors."),
    Property::java("metric.reporters")
        .string("org.apache.kafka.common.metrics.JmxReporter")
        .accepted(METRICS)
        .doc("Classes that report metrics."),
    Property::java("auto.include.jmx.reporter")
        .boolean("true")
        .accepted(METRICS)
        .doc("Report metrics by JMX."),
    Property::java("metrics.num.samples")
        .integer(1, i64::MAX, "2")
        .accepted(METRICS)
        .doc("The number of samples that a metric keeps."),
    Property::java("metrics.sample.window.ms")
        .integer(0, i64::MAX, "30000")
        .accepted(METRICS)
        .doc("The duration of a metric's sample."),
    Property::java("metrics.recording.level")
        .string("INFO")
        .accepted(METRICS)
        .doc("The level of detail of metrics."),
    Property::java("metadata.max.idle.ms")
        .producer()
        .integer(5000, i64::MAX, "300000")
        .doc(
            "The periodic metadata refresh leaves out topics to which nothing was sent for this time; with the next message \
             their metadata is requested again. Batches, sequence numbers and statistics are kept. If it is not set, the \
             refresh covers all topics of the producer.",
        ),
    Property::java("socket.connection.setup.timeout.max.ms")
        .integer(0, i64::MAX, "30000")
        .doc(
            "The maximum of `socket.connection.setup.timeout.ms`, which doubles after each failure in a row (KIP-601). If it is \
             not set, all attempts have the same timeout.",
        ),
    Property::java("default.api.timeout.ms")
        .integer(0, 2147483647, "60000")
        .doc(
            "The timeout of calls that are given none: in C, of commits (if it is not set, 60 s), of options for \
             administrative calls (`socket.timeout.ms`), and of calls that query brokers with a timeout of -1 (no limit): \
             metadata, cluster and controller ID, lists of groups, offsets by time, watermarks, committed offsets, `seek`, and \
             `commit_sync` of share consumers; of `ottla` without `--timeout` (10 s). In Rust every such call has a timeout \
             argument. Polls, `flush` and `close` have limits of their own.",
        ),
    Property::java("exclude.internal.topics")
        .consumer()
        .boolean("true")
        .doc("Exclude internal topics from pattern subscriptions (`group.protocol=classic`)."),
    Property::java("bootstrap.controllers")
        .string("")
        .doc(
            "Controllers to connect to instead of brokers, as `host:port`, separated by commas (KIP-919). The active controller \
             gets every administrative call; what only brokers serve is an error. Not together with `bootstrap.servers`; in Rust \
             for admin clients only.",
        ),
    Property::java("config.providers")
        .string("")
        .accepted("they are Java code; a value that asks one of them is refused")
        .doc("Classes that provide values of properties. Their properties `config.providers.NAME...` are ignored."),
    Property::java("security.providers")
        .string("")
        .accepted(JAVA_CLASS)
        .doc("Java security providers."),
    Property::java("transaction.two.phase.commit.enable")
        .producer()
        .boolean("false")
        .accepted("transactions can't be prepared here, and end after `transaction.timeout.ms`")
        .doc("Take part in two-phase commits."),
    Property::java("ssl.protocol")
        .string("TLSv1.3")
        .accepted("the versions are those of `ssl.enabled.protocols`")
        .doc("The TLS protocol version."),
    Property::java("ssl.provider").string("").accepted(JAVA_TLS).doc("The Java security provider."),
    Property::java("ssl.enabled.protocols")
        .string("TLSv1.2,TLSv1.3")
        .doc("The allowed TLS versions: TLSv1.2, TLSv1.3 or both. Older ones in the list have no effect."),
    Property::java("ssl.keystore.type")
        .string("JKS")
        .accepted("the format of a store is recognized by its first bytes")
        .doc("The format of the key store: PKCS12, JKS or PEM."),
    Property::java("ssl.keystore.key").string("").alias_of("ssl.key.pem").doc("The private key as PEM."),
    Property::java("ssl.keystore.certificate.chain")
        .string("")
        .alias_of("ssl.certificate.pem")
        .doc("The certificate chain as PEM."),
    Property::java("ssl.truststore.location")
        .string("")
        .doc("A store of CA certificates that brokers are checked against (PKCS#12, JKS or PEM)."),
    Property::java("ssl.truststore.password").string("").doc("The password of the trust store."),
    Property::java("ssl.truststore.type")
        .string("JKS")
        .accepted("the format of a store is recognized by its first bytes")
        .doc("The format of the trust store: PKCS12, JKS or PEM."),
    Property::java("ssl.truststore.certificates")
        .string("")
        .alias_of("ssl.ca.pem")
        .doc("Trusted certificates as PEM."),
    Property::java("ssl.keymanager.algorithm")
        .string("SunX509")
        .accepted(JAVA_TLS)
        .doc("Java's key manager algorithm."),
    Property::java("ssl.trustmanager.algorithm")
        .string("PKIX")
        .accepted(JAVA_TLS)
        .doc("Java's trust manager algorithm."),
    Property::java("ssl.secure.random.implementation")
        .string("")
        .accepted(JAVA_TLS)
        .doc("Java's random generator."),
    Property::java("ssl.engine.factory.class")
        .string("")
        .accepted(JAVA_TLS)
        .doc("The class that creates TLS engines."),
    Property::java("sasl.jaas.config").string("").doc(
        "The options of a login module of Java: PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule, Krb5LoginModule or \
         IAMLoginModule. They stand for `sasl.username` and its siblings, which take precedence. Other modules are refused; other \
         options have no effect.",
    ),
    Property::java("sasl.client.callback.handler.class")
        .string("")
        .accepted(OTHER_CLASS)
        .doc("The class that handles SASL client callbacks. IAMClientCallbackHandler of MSK is built in."),
    Property::java("sasl.login.callback.handler.class")
        .string("")
        .accepted(OTHER_CLASS)
        .doc(
            "The class that handles SASL login callbacks. OAuthBearerLoginCallbackHandler of Kafka, and \
             JaasClientOauthLoginCallbackHandler of Strimzi, mean `sasl.oauthbearer.method=oidc`.",
        ),
    Property::java("sasl.oauthbearer.header.urlencode").boolean("false").doc(
        "Percent-encode the client ID and the secret in the header `Authorization` (KIP-1025), which RFC 6749 demands and many \
         identity providers do not expect.",
    ),
    Property::java("sasl.oauthbearer.assertion.template.file")
        .string("")
        .alias_of("sasl.oauthbearer.assertion.jwt.template.file"),
    Property::java("sasl.login.connect.timeout.ms")
        .integer(1, 300000, "10000")
        .doc("The timeout of a connection to the identity provider, TLS included."),
    Property::java("sasl.login.read.timeout.ms")
        .integer(1, 300000, "20000")
        .doc("The timeout of a whole exchange with the identity provider."),
    Property::java("sasl.login.retry.backoff.ms")
        .integer(1, 300000, "100")
        .doc("The time until an exchange with the identity provider is repeated; it doubles with each failure."),
    Property::java("sasl.login.retry.backoff.max.ms")
        .integer(1, 300000, "10000")
        .doc("The longest time until an exchange with the identity provider is repeated."),
    Property::java("sasl.login.refresh.window.factor")
        .float(0.5, 1.0, "0.8")
        .accepted(REFRESH)
        .doc("The part of a token's lifetime after which it is refreshed."),
    Property::java("sasl.login.refresh.window.jitter")
        .float(0.0, 0.25, "0.05")
        .accepted(REFRESH)
        .doc("The jitter of that part."),
    Property::java("sasl.login.refresh.min.period.seconds")
        .integer(0, 900, "60")
        .accepted(REFRESH)
        .doc("The shortest time between two refreshes of a token."),
    Property::java("sasl.login.refresh.buffer.seconds")
        .integer(0, 3600, "300")
        .accepted(REFRESH)
        .doc("The time before a token's end in which it is not refreshed."),
    Property::java("sasl.kerberos.ticket.renew.window.factor")
        .float(0.0, 1000000.0, "0.8")
        .accepted(RENEWAL)
        .doc("The part of a ticket's lifetime after which it is renewed."),
    Property::java("sasl.kerberos.ticket.renew.jitter")
        .float(0.0, 1000000.0, "0.05")
        .accepted(RENEWAL)
        .doc("The jitter of that part."),
    Property::java("sasl.oauthbearer.jwt.retriever.class")
        .string("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever")
        .accepted(OTHER_CLASS)
        .doc("The class that gets tokens. JwtBearerJwtRetriever means `sasl.oauthbearer.grant.type` with a signed assertion."),
    Property::java("sasl.oauthbearer.jwt.validator.class")
        .string("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator")
        .accepted(CHECKED)
        .doc("The class that checks tokens."),
    Property::java("sasl.oauthbearer.scope.claim.name")
        .string("scope")
        .accepted("the client doesn't read the scope of a token")
        .doc("The claim of the token that has its scope."),
    Property::java("sasl.oauthbearer.jwks.endpoint.url").string("").accepted(CHECKED).doc("The URL of the provider's keys."),
    Property::java("sasl.oauthbearer.jwks.endpoint.refresh.ms")
        .integer(0, i64::MAX, "3600000")
        .accepted(CHECKED)
        .doc("The interval at which the provider's keys are read again."),
    Property::java("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
        .integer(0, i64::MAX, "100")
        .accepted(CHECKED)
        .doc("The time until the provider's keys are asked for again."),
    Property::java("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
        .integer(0, i64::MAX, "10000")
        .accepted(CHECKED)
        .doc("The longest time until the provider's keys are asked for again."),
    Property::java("sasl.oauthbearer.clock.skew.seconds")
        .integer(0, 2147483647, "30")
        .accepted(CHECKED)
        .doc("The tolerated difference between clocks."),
    Property::java("sasl.oauthbearer.allow.unverified.audience")
        .boolean("false")
        .accepted(CHECKED)
        .doc("Accept tokens for every audience."),
    Property::java("sasl.oauthbearer.expected.audience").string("").accepted(CHECKED).doc("The audiences of tokens."),
    Property::java("sasl.oauthbearer.allow.unverified.issuer")
        .boolean("false")
        .accepted(CHECKED)
        .doc("Accept tokens of every issuer."),
    Property::java("sasl.oauthbearer.expected.issuer").string("").accepted(CHECKED).doc("The issuer of tokens."),
    Property::java("bootstrap.resolve.timeout.ms")
        .integer(0, i64::MAX, "0")
        .accepted("names that can't be resolved are tried again for as long as the client exists")
        .doc("The time in which the names of bootstrap servers must be resolved."),
    Property::java("metadata.cluster.check.enable")
        .boolean("true")
        .doc(
            "Connections to nodes that metadata has named state the IDs of the cluster and the node. A broker since Kafka 4.4 \
             refuses them if it is another node, or of another cluster, and the client starts again from `bootstrap.servers` \
             (KIP-1242). Without effect if `metadata.recovery.strategy` is `none`.",
        ),
    Property::java("sasl.login.class").string("").accepted(OTHER_CLASS).doc("The class that logs in."),
];
