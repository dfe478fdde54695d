//! The public properties of Kafka's Java clients, version 4.4: names, types, ranges and defaults.

use JavaKind::{Boolean, Class, Fraction, List, Password, Text, Whole, Words};

/// A property of the Java clients.
#[derive(Clone, Copy, Debug)]
pub struct JavaProperty {
    /// The name.
    pub name: &'static str,
    /// The clients that have it: `P` producer, `C` consumer and share consumer, `A` admin client.
    pub clients: &'static str,
    /// Its type and values.
    pub kind: JavaKind,
    /// Its defaults: none, one, or several of different clients.
    pub defaults: &'static [&'static str],
}

/// The type and the values of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JavaKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number from the first to the second.
    Fraction(f64, f64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Any text.
    Text,
    /// Words, separated by commas.
    List,
    /// A text that logs must not contain.
    Password,
    /// The name of a class.
    Class,
}

const fn row(
    name: &'static str,
    clients: &'static str,
    kind: JavaKind,
    defaults: &'static [&'static str],
) -> JavaProperty {
    JavaProperty { name, clients, kind, defaults }
}

/// Returns the property with this name.
pub fn find(name: &str) -> Option<&'static JavaProperty> {
    PROPERTIES.iter().find(|property| property.name == name)
}

/// All properties.
pub const PROPERTIES: &[JavaProperty] = &[
    row("bootstrap.servers", "PCA", List, &[""]),
    row(
        "client.dns.lookup",
        "PCA",
        Words(&["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]),
        &["use_all_dns_ips"],
    ),
    row("buffer.memory", "P", Whole(0, i64::MAX), &["33554432"]),
    row("retries", "PA", Whole(0, i32::MAX as i64), &["2147483647"]),
    row("acks", "P", Words(&["all", "-1", "0", "1"]), &["all"]),
    row("compression.type", "P", Words(&["none", "gzip", "snappy", "lz4", "zstd"]), &["none"]),
    row("compression.gzip.level", "P", Whole(-1, 9), &["-1"]),
    row("compression.lz4.level", "P", Whole(1, 17), &["9"]),
    row("compression.zstd.level", "P", Whole(-131072, 22), &["3"]),
    row("batch.size", "P", Whole(0, i32::MAX as i64), &["16384"]),
    row("partitioner.adaptive.partitioning.enable", "P", Boolean, &["true"]),
    row("partitioner.availability.timeout.ms", "P", Whole(0, i64::MAX), &["0"]),
    row("partitioner.ignore.keys", "P", Boolean, &["false"]),
    row("partitioner.rack.aware", "P", Boolean, &["false"]),
    row("linger.ms", "P", Whole(0, i64::MAX), &["5"]),
    row("delivery.timeout.ms", "P", Whole(0, i32::MAX as i64), &["120000"]),
    row("client.id", "PCA", Text, &[""]),
    row("client.rack", "PC", Text, &[""]),
    row("send.buffer.bytes", "PCA", Whole(-1, i32::MAX as i64), &["131072"]),
    row("receive.buffer.bytes", "PCA", Whole(-1, i32::MAX as i64), &["32768", "65536"]),
    row("max.request.size", "P", Whole(0, i32::MAX as i64), &["1048576"]),
    row("reconnect.backoff.ms", "PCA", Whole(0, i64::MAX), &["50"]),
    row("reconnect.backoff.max.ms", "PCA", Whole(0, i64::MAX), &["1000"]),
    row("retry.backoff.ms", "PCA", Whole(0, i64::MAX), &["100"]),
    row("retry.backoff.max.ms", "PCA", Whole(0, i64::MAX), &["1000"]),
    row("bootstrap.resolve.timeout.ms", "PCA", Whole(0, i64::MAX), &["0"]),
    row("enable.metrics.push", "PCA", Boolean, &["true", "false"]),
    row("max.block.ms", "P", Whole(0, i64::MAX), &["60000"]),
    row("request.timeout.ms", "PCA", Whole(0, i32::MAX as i64), &["30000"]),
    row("metadata.max.age.ms", "PCA", Whole(0, i64::MAX), &["300000"]),
    row("metadata.max.idle.ms", "P", Whole(5000, i64::MAX), &["300000"]),
    row("metrics.sample.window.ms", "PCA", Whole(0, i64::MAX), &["30000"]),
    row("metrics.num.samples", "PCA", Whole(1, i32::MAX as i64), &["2"]),
    row("metrics.recording.level", "PCA", Words(&["INFO", "DEBUG", "TRACE"]), &["INFO"]),
    row("metric.reporters", "PCA", List, &["org.apache.kafka.common.metrics.JmxReporter"]),
    row("max.in.flight.requests.per.connection", "P", Whole(1, i32::MAX as i64), &["5"]),
    row("key.serializer", "P", Class, &[]),
    row("value.serializer", "P", Class, &[]),
    row("socket.connection.setup.timeout.ms", "PCA", Whole(i64::MIN, i64::MAX), &["10000"]),
    row("socket.connection.setup.timeout.max.ms", "PCA", Whole(i64::MIN, i64::MAX), &["30000"]),
    row("connections.max.idle.ms", "PCA", Whole(i64::MIN, i64::MAX), &["540000", "300000"]),
    row("partitioner.class", "P", Class, &[]),
    row("interceptor.classes", "PC", List, &[""]),
    row(
        "security.protocol",
        "PCA",
        Words(&["SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"]),
        &["PLAINTEXT"],
    ),
    row("security.providers", "PCA", Text, &[]),
    row("ssl.protocol", "PCA", Text, &["TLSv1.3"]),
    row("ssl.provider", "PCA", Text, &[]),
    row("ssl.cipher.suites", "PCA", List, &[""]),
    row("ssl.enabled.protocols", "PCA", List, &["TLSv1.2,TLSv1.3"]),
    row("ssl.keystore.type", "PCA", Text, &["JKS"]),
    row("ssl.keystore.location", "PCA", Text, &[]),
    row("ssl.keystore.password", "PCA", Password, &[]),
    row("ssl.key.password", "PCA", Password, &[]),
    row("ssl.keystore.key", "PCA", Password, &[]),
    row("ssl.keystore.certificate.chain", "PCA", Password, &[]),
    row("ssl.truststore.certificates", "PCA", Password, &[]),
    row("ssl.truststore.type", "PCA", Text, &["JKS"]),
    row("ssl.truststore.location", "PCA", Text, &[]),
    row("ssl.truststore.password", "PCA", Password, &[]),
    row("ssl.keymanager.algorithm", "PCA", Text, &["SunX509"]),
    row("ssl.trustmanager.algorithm", "PCA", Text, &["PKIX"]),
    row("ssl.endpoint.identification.algorithm", "PCA", Text, &["https"]),
    row("ssl.secure.random.implementation", "PCA", Text, &[]),
    row("ssl.engine.factory.class", "PCA", Class, &[]),
    row("sasl.kerberos.service.name", "PCA", Text, &[]),
    row("sasl.kerberos.kinit.cmd", "PCA", Text, &["/usr/bin/kinit"]),
    row("sasl.kerberos.ticket.renew.window.factor", "PCA", Fraction(f64::MIN, f64::MAX), &["0.8"]),
    row("sasl.kerberos.ticket.renew.jitter", "PCA", Fraction(f64::MIN, f64::MAX), &["0.05"]),
    row("sasl.kerberos.min.time.before.relogin", "PCA", Whole(i64::MIN, i64::MAX), &["60000"]),
    row("sasl.login.refresh.window.factor", "PCA", Fraction(0.5, 1.0), &["0.8"]),
    row("sasl.login.refresh.window.jitter", "PCA", Fraction(0.0, 0.25), &["0.05"]),
    row("sasl.login.refresh.min.period.seconds", "PCA", Whole(0, 900), &["60"]),
    row("sasl.login.refresh.buffer.seconds", "PCA", Whole(0, 3600), &["300"]),
    row("sasl.mechanism", "PCA", Text, &["GSSAPI"]),
    row("sasl.jaas.config", "PCA", Password, &[]),
    row("sasl.client.callback.handler.class", "PCA", Class, &[]),
    row("sasl.login.callback.handler.class", "PCA", Class, &[]),
    row("sasl.login.class", "PCA", Class, &[]),
    row("sasl.login.connect.timeout.ms", "PCA", Whole(i32::MIN as i64, i32::MAX as i64), &[]),
    row("sasl.login.read.timeout.ms", "PCA", Whole(i32::MIN as i64, i32::MAX as i64), &[]),
    row("sasl.login.retry.backoff.max.ms", "PCA", Whole(i64::MIN, i64::MAX), &["10000"]),
    row("sasl.login.retry.backoff.ms", "PCA", Whole(i64::MIN, i64::MAX), &["100"]),
    row(
        "sasl.oauthbearer.jwt.retriever.class",
        "PCA",
        Class,
        &["org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"],
    ),
    row(
        "sasl.oauthbearer.jwt.validator.class",
        "PCA",
        Class,
        &["org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"],
    ),
    row("sasl.oauthbearer.scope", "PCA", Text, &[]),
    row("sasl.oauthbearer.client.credentials.client.id", "PCA", Text, &[]),
    row("sasl.oauthbearer.client.credentials.client.secret", "PCA", Password, &[]),
    row("sasl.oauthbearer.assertion.algorithm", "PCA", Words(&["ES256", "RS256"]), &["RS256"]),
    row("sasl.oauthbearer.assertion.claim.aud", "PCA", Text, &[]),
    row("sasl.oauthbearer.assertion.claim.exp.seconds", "PCA", Whole(0, 86400), &["300"]),
    row("sasl.oauthbearer.assertion.claim.iss", "PCA", Text, &[]),
    row("sasl.oauthbearer.assertion.claim.jti.include", "PCA", Boolean, &["false"]),
    row("sasl.oauthbearer.assertion.claim.nbf.seconds", "PCA", Whole(0, 3600), &["60"]),
    row("sasl.oauthbearer.assertion.claim.sub", "PCA", Text, &[]),
    row("sasl.oauthbearer.assertion.file", "PCA", Text, &[]),
    row("sasl.oauthbearer.assertion.private.key.file", "PCA", Text, &[]),
    row("sasl.oauthbearer.assertion.private.key.passphrase", "PCA", Password, &[]),
    row("sasl.oauthbearer.assertion.template.file", "PCA", Text, &[]),
    row("sasl.oauthbearer.scope.claim.name", "PCA", Text, &["scope"]),
    row("sasl.oauthbearer.sub.claim.name", "PCA", Text, &["sub"]),
    row("sasl.oauthbearer.token.endpoint.url", "PCA", Text, &[]),
    row("sasl.oauthbearer.jwks.endpoint.url", "PCA", Text, &[]),
    row("sasl.oauthbearer.jwks.endpoint.refresh.ms", "PCA", Whole(i64::MIN, i64::MAX), &["3600000"]),
    row("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "PCA", Whole(i64::MIN, i64::MAX), &["10000"]),
    row("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "PCA", Whole(i64::MIN, i64::MAX), &["100"]),
    row("sasl.oauthbearer.clock.skew.seconds", "PCA", Whole(i32::MIN as i64, i32::MAX as i64), &["30"]),
    row("sasl.oauthbearer.allow.unverified.audience", "PCA", Boolean, &["false"]),
    row("sasl.oauthbearer.expected.audience", "PCA", List, &[""]),
    row("sasl.oauthbearer.allow.unverified.issuer", "PCA", Boolean, &["false"]),
    row("sasl.oauthbearer.expected.issuer", "PCA", Text, &[]),
    row("sasl.oauthbearer.header.urlencode", "PCA", Boolean, &["false"]),
    row("enable.idempotence", "P", Boolean, &["true"]),
    row("transaction.timeout.ms", "P", Whole(i32::MIN as i64, i32::MAX as i64), &["60000"]),
    row("transactional.id", "P", Text, &[]),
    row("transaction.two.phase.commit.enable", "P", Boolean, &["false"]),
    row("metadata.recovery.strategy", "PCA", Words(&["REBOOTSTRAP", "NONE"]), &["rebootstrap"]),
    row("metadata.recovery.rebootstrap.trigger.ms", "PCA", Whole(0, i64::MAX), &["300000"]),
    row("metadata.cluster.check.enable", "PCA", Boolean, &["true"]),
    row("config.providers", "PCA", List, &[""]),
    row("group.id", "C", Text, &[]),
    row("group.instance.id", "C", Text, &[]),
    row("session.timeout.ms", "C", Whole(i32::MIN as i64, i32::MAX as i64), &["45000"]),
    row("heartbeat.interval.ms", "C", Whole(i32::MIN as i64, i32::MAX as i64), &["3000"]),
    row(
        "partition.assignment.strategy",
        "C",
        List,
        &[
            "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        ],
    ),
    row("enable.auto.commit", "C", Boolean, &["true"]),
    row("auto.commit.interval.ms", "C", Whole(0, i32::MAX as i64), &["5000"]),
    row("max.partition.fetch.bytes", "C", Whole(0, i32::MAX as i64), &["1048576"]),
    row("fetch.min.bytes", "C", Whole(0, i32::MAX as i64), &["1"]),
    row("fetch.max.bytes", "C", Whole(0, i32::MAX as i64), &["52428800"]),
    row("fetch.max.wait.ms", "C", Whole(0, i32::MAX as i64), &["500"]),
    row(
        "auto.offset.reset",
        "C",
        Words(&["latest", "earliest", "none", "by_duration:PnDTnHnMn.nS"]),
        &["latest"],
    ),
    row("check.crcs", "C", Boolean, &["true"]),
    row("key.deserializer", "C", Class, &[]),
    row("value.deserializer", "C", Class, &[]),
    row("default.api.timeout.ms", "CA", Whole(0, i32::MAX as i64), &["60000"]),
    row("max.poll.records", "C", Whole(1, i32::MAX as i64), &["500"]),
    row("max.poll.interval.ms", "C", Whole(1, i32::MAX as i64), &["300000"]),
    row("exclude.internal.topics", "C", Boolean, &["true"]),
    row("isolation.level", "C", Words(&["read_committed", "read_uncommitted"]), &["read_uncommitted"]),
    row("allow.auto.create.topics", "C", Boolean, &["true"]),
    row("group.protocol", "C", Words(&["CONSUMER", "CLASSIC"]), &["classic"]),
    row("group.remote.assignor", "C", Text, &[]),
    row("share.acknowledgement.mode", "C", Words(&["implicit", "explicit"]), &["implicit"]),
    row("share.acquire.mode", "C", Words(&["batch_optimized", "record_limit"]), &["BATCH_OPTIMIZED"]),
    row("bootstrap.controllers", "A", List, &[""]),
];
