//! Names that only the Java client has: where librdkafka or we have the same thing, the row leads there.

use super::{Conversion, GROUPS, Property, SASL, TLS};

pub(super) const ROWS: &[Property] = &[
    Property::java("buffer.memory")
        .producer()
        .integer(1024, 2199023254528, "33554432")
        .high()
        .converted_to("queue.buffering.max.kbytes", Conversion::BytesToKibibytes),
    Property::java("max.block.ms")
        .producer()
        .integer(0, i64::MAX, "60000")
        .accepted("send never waits, and send_blocking is told how long it may")
        .doc("How long a call may wait for room or for metadata."),
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
        .accepted("keys and values are bytes here")
        .doc("The class that makes bytes of a key."),
    Property::java("value.serializer")
        .producer()
        .string("")
        .high()
        .accepted("keys and values are bytes here")
        .doc("The class that makes bytes of a value."),
    Property::java("key.deserializer")
        .consumer()
        .string("")
        .high()
        .accepted("keys and values are bytes here")
        .doc("The class that reads the bytes of a key."),
    Property::java("value.deserializer")
        .consumer()
        .string("")
        .high()
        .accepted("keys and values are bytes here")
        .doc("The class that reads the bytes of a value."),
    Property::java("partitioner.class")
        .producer()
        .string("")
        .refused(
            "it names a Java class; set `partitioner`, where `murmur2_random` chooses as the Java \
             client does",
        )
        .doc("The class that chooses partitions."),
    Property::java("partitioner.ignore.keys")
        .producer()
        .boolean("false")
        .refused("set `partitioner=random` instead")
        .doc("Choose partitions without looking at keys."),
    Property::java("partitioner.adaptive.partitioning.enable")
        .producer()
        .boolean("true")
        .accepted("the sticky partition moves on when its batch is sent, so a slow broker gets fewer anyway")
        .doc("Give slower brokers fewer of the keyless records."),
    Property::java("partitioner.availability.timeout.ms")
        .producer()
        .integer(0, i64::MAX, "0")
        .accepted("partitions without a leader are avoided at once")
        .doc("When a partition that takes no records is avoided."),
    Property::java("interceptor.classes").string("").refused("it names Java classes").doc("Interceptors."),
    Property::java("metric.reporters")
        .string("")
        .accepted("there are no Java metrics here")
        .doc("Classes that report metrics."),
    Property::java("auto.include.jmx.reporter")
        .boolean("true")
        .accepted("there are no Java metrics here")
        .doc("Report metrics by JMX."),
    Property::java("metrics.num.samples")
        .integer(1, i64::MAX, "2")
        .accepted("there are no Java metrics here")
        .doc("How many samples a metric keeps."),
    Property::java("metrics.sample.window.ms")
        .integer(0, i64::MAX, "30000")
        .accepted("there are no Java metrics here")
        .doc("How long a sample of a metric lasts."),
    Property::java("metrics.recording.level")
        .string("INFO")
        .accepted("there are no Java metrics here")
        .doc("How detailed metrics are."),
    Property::java("metadata.max.idle.ms")
        .producer()
        .integer(5000, i64::MAX, "300000")
        .accepted("topics in use stay known as long as the producer lives")
        .doc("When an idle topic is forgotten."),
    Property::java("socket.connection.setup.timeout.max.ms")
        .integer(0, i64::MAX, "30000")
        .accepted("`socket.connection.setup.timeout.ms` holds for every try")
        .doc("The longest time that connecting may take, after failures."),
    Property::java("default.api.timeout.ms")
        .consumer()
        .integer(0, 2147483647, "60000")
        .accepted("every call is told how long it may take")
        .doc("How long a call may take that has no timeout of its own."),
    Property::java("exclude.internal.topics")
        .consumer()
        .boolean("true")
        .accepted(GROUPS)
        .doc("Leave internal topics out of pattern subscriptions."),
    Property::java("bootstrap.controllers")
        .string("")
        .refused("this client talks to brokers only; set `bootstrap.servers`")
        .doc("Controllers to talk to in place of brokers."),
    Property::java("config.providers")
        .string("")
        .refused("no code is loaded because a configuration says so")
        .doc("Classes that fetch values of properties."),
    Property::java("security.providers")
        .string("")
        .refused("it names Java classes")
        .doc("Java security providers."),
    Property::java("transaction.two.phase.commit.enable")
        .producer()
        .boolean("false")
        .refused("transactions aren't built yet")
        .doc("Take part in two-phase commits."),
    Property::java("ssl.protocol").string("TLSv1.3").refused(TLS).doc("The TLS version to start with."),
    Property::java("ssl.provider").string("").refused(TLS).doc("The Java security provider."),
    Property::java("ssl.enabled.protocols")
        .string("TLSv1.2,TLSv1.3")
        .refused(TLS)
        .doc("The allowed TLS versions."),
    Property::java("ssl.keystore.type").string("JKS").refused(TLS).doc("The format of the key store."),
    Property::java("ssl.keystore.key").string("").refused(TLS).doc("The private key as PEM."),
    Property::java("ssl.keystore.certificate.chain")
        .string("")
        .refused(TLS)
        .doc("The certificate chain as PEM."),
    Property::java("ssl.truststore.location").string("").refused(TLS).doc("The trust store."),
    Property::java("ssl.truststore.password").string("").refused(TLS).doc("The password of the trust store."),
    Property::java("ssl.truststore.type").string("JKS").refused(TLS).doc("The format of the trust store."),
    Property::java("ssl.truststore.certificates").string("").refused(TLS).doc("Trusted certificates as PEM."),
    Property::java("ssl.keymanager.algorithm")
        .string("SunX509")
        .refused(TLS)
        .doc("Java's key manager algorithm."),
    Property::java("ssl.trustmanager.algorithm")
        .string("PKIX")
        .refused(TLS)
        .doc("Java's trust manager algorithm."),
    Property::java("ssl.secure.random.implementation")
        .string("")
        .refused(TLS)
        .doc("Java's random generator."),
    Property::java("ssl.engine.factory.class")
        .string("")
        .refused(TLS)
        .doc("The class that makes TLS engines."),
    Property::java("sasl.jaas.config").string("").refused(SASL).doc("The JAAS login context."),
    Property::java("sasl.client.callback.handler.class")
        .string("")
        .refused(SASL)
        .doc("The class that answers SASL callbacks."),
    Property::java("sasl.login.callback.handler.class")
        .string("")
        .refused(SASL)
        .doc("The class that answers login callbacks."),
    Property::java("sasl.login.class").string("").refused(SASL).doc("The class that logs in."),
];
