//! The 199 rows that librdkafka 2.16 documents: names, ranges and defaults are its facts, the texts are ours.

use super::Property;

const KINIT: &str = "kinit -R -t \"%{sasl.kerberos.keytab}\" -k %{sasl.kerberos.principal} \
    || kinit -t \"%{sasl.kerberos.keytab}\" -k %{sasl.kerberos.principal}";

pub(super) const ROWS: &[Property] = &[
    Property::global("builtin.features")
        .flags(
            &["gzip", "snappy", "ssl", "sasl", "regex", "lz4", "sasl_gssapi", "sasl_plain", "sasl_scram", "plugins", "zstd", "sasl_oauthbearer", "http", "oidc"],
            "gzip,snappy,ssl,sasl,regex,lz4,sasl_gssapi,sasl_plain,sasl_scram,plugins,zstd,sasl_oauthbearer,http,oidc",
        )
        .doc(
            "The features of this build: codecs and mechanisms. Setting it fails unless the build has every named \
             feature.",
        ),
    Property::global("client.id")
        .string("rdkafka")
        .rust_default("ottla")
        .doc("The client ID that every request carries; brokers use it in logs, quotas and metrics."),
    Property::global("metadata.broker.list").string("").high().doc(
        "The bootstrap brokers, as a comma-separated list of host[:port]; the default port is 9092, and IPv6 \
         addresses are in brackets. The client learns all other brokers from these.",
    ),
    Property::global("bootstrap.servers").string("").high().alias_of("metadata.broker.list"),
    Property::global("message.max.bytes").integer(1000, 1000000000, "1000000").medium().doc(
        "The maximum size of a record that produce accepts, encoded and uncompressed, and the maximum size of a \
         batch. Brokers have their own limit (`message.max.bytes`, topic: `max.message.bytes`).",
    ),
    Property::global("message.copy.max.bytes")
        .integer(0, 1000000000, "65535")
        .accepted("records are encoded when they are produced, so there is no later copy to avoid")
        .doc("The maximum size of a payload that is copied into the request instead of being referenced."),
    Property::global("receive.message.max.bytes").integer(1000, 2147483647, "100000000").medium().doc(
        "The maximum size of a response. A larger length is treated as invalid: the connection is closed before \
         anything is allocated.",
    ),
    Property::global("max.in.flight.requests.per.connection").integer(1, 1000000, "1000000").doc(
        "The maximum number of requests in flight on one broker connection. Without idempotence, a value above 1 can \
         change the order of records when a request is retried.",
    ),
    Property::global("max.in.flight")
        .integer(1, 1000000, "1000000")
        .alias_of("max.in.flight.requests.per.connection"),
    Property::global("metadata.recovery.strategy")
        .one_of(&["none", "rebootstrap"], "rebootstrap")
        .doc(
            "The action when no known broker responds, or when a broker requests it: `rebootstrap` resolves \
             `bootstrap.servers` again and connects to them; `none` keeps trying the known brokers.",
        ),
    Property::global("metadata.recovery.rebootstrap.trigger.ms")
        .integer(0, 2147483647, "300000")
        .doc(
            "How long metadata may be unavailable before the client discards all known brokers and returns to \
             `bootstrap.servers`. If it can't connect to any of them, it returns to the bootstrap servers at once.",
        ),
    Property::global("topic.metadata.refresh.interval.ms").integer(-1, 3600000, "300000").doc(
        "The interval at which the metadata of the topics in use is refreshed, even without errors. -1 disables the \
         timer; errors still cause a refresh.",
    ),
    Property::global("metadata.max.age.ms")
        .integer(1, 86400000, "900000")
        .doc(
            "The maximum age of the metadata of topics in use, as in the Java client; \
             `topic.metadata.refresh.interval.ms` takes precedence if it is set.",
        ),
    Property::global("topic.metadata.refresh.fast.interval.ms").integer(1, 60000, "100").doc(
        "The first interval between refreshes while a topic is unknown or a partition has no leader; it doubles up to \
         `retry.backoff.max.ms`.",
    ),
    Property::global("topic.metadata.refresh.fast.cnt")
        .integer(0, 1000, "10")
        .deprecated()
        .accepted("librdkafka no longer uses it either")
        .doc("The number of fast refreshes."),
    Property::global("topic.metadata.refresh.sparse")
        .boolean("true")
        .doc(
            "Request metadata only for the topics in use. With `false` the timer \
             (`topic.metadata.refresh.interval.ms`) requests every topic of the cluster.",
        ),
    Property::global("topic.metadata.propagation.max.ms").integer(0, 3600000, "30000").doc(
        "How long a topic may be unknown to the brokers before its records fail with unknown topic: a new topic takes \
         a short time to become known to every broker. A member of a group requests metadata of a missing topic at \
         short intervals during this time.",
    ),
    Property::global("topic.blacklist")
        .string("")
        .doc(
            "Comma-separated regular expressions: a topic whose name matches one of them is treated as unknown. Lists \
             of the cluster's topics still contain it.",
        ),
    Property::global("debug")
        .flags(
            &[
                "generic",
                "broker",
                "topic",
                "metadata",
                "feature",
                "queue",
                "msg",
                "protocol",
                "cgrp",
                "security",
                "fetch",
                "interceptor",
                "plugin",
                "consumer",
                "admin",
                "eos",
                "mock",
                "assignor",
                "conf",
                "telemetry",
                "all",
            ],
            "",
        )
        .medium()
        .doc(
            "The debug contexts, comma-separated. They log at level 7 in the C library, and at level debug of the \
             `log` facade in Rust. In the C library every context also logs the start and the end of the client; contexts \
             of unimplemented features (`security`, `assignor`) log nothing else.",
        ),
    Property::global("socket.timeout.ms").integer(10, 300000, "60000").doc(
        "How long to wait for the response to a request, other than Produce, before the connection is closed and the \
         request is retried or fails.",
    ),
    Property::global("socket.blocking.max.ms")
        .integer(1, 60000, "1000")
        .deprecated()
        .accepted("no thread blocks on a socket")
        .doc("The maximum time that a broker thread blocks on its socket."),
    Property::global("socket.send.buffer.bytes").integer(0, 100000000, "0").doc(
        "The size of the kernel's send buffer (SO_SNDBUF) of a broker socket; 0 keeps the system's default.",
    ),
    Property::global("socket.receive.buffer.bytes").integer(0, 100000000, "0").doc(
        "The size of the kernel's receive buffer (SO_RCVBUF) of a broker socket; 0 keeps the system's default.",
    ),
    Property::global("socket.keepalive.enable")
        .boolean("false")
        .doc("Send TCP keep-alives (SO_KEEPALIVE) on broker sockets."),
    Property::global("socket.nagle.disable")
        .boolean("true")
        .doc("Send small requests at once (TCP_NODELAY) instead of waiting for more bytes."),
    Property::global("socket.max.fails")
        .integer(0, 1000000, "1")
        .doc(
            "Close the connection after this many consecutive request timeouts; 0 never closes it for that reason. A \
             request that the broker does not read still closes it.",
        ),
    Property::global("broker.address.ttl")
        .integer(0, 86400000, "1000")
        .doc("How long a resolved address is used before the name is looked up again."),
    Property::global("broker.address.family")
        .one_of(&["any", "v4", "v6"], "any")
        .doc("The IP address family that is used for brokers."),
    Property::global("socket.connection.setup.timeout.ms").integer(1000, 2147483647, "30000").medium().doc(
        "The timeout of connecting, from the first packet to the end of the handshakes; afterwards the next address \
         or broker is tried.",
    ),
    Property::global("connections.max.idle.ms").integer(0, 2147483647, "0").medium().doc(
        "Close a connection that was idle for this long; 0 never closes it. Brokers close idle connections too \
         (`connections.max.idle.ms`, 10 minutes).",
    ),
    Property::global("reconnect.backoff.jitter.ms")
        .integer(0, 3600000, "0")
        .deprecated()
        .accepted("`reconnect.backoff.ms` and `reconnect.backoff.max.ms` replace it")
        .doc("The jitter of the delay before reconnecting."),
    Property::global("reconnect.backoff.ms").integer(0, 3600000, "100").medium().doc(
        "The delay before reconnecting to a broker after a failed attempt. It doubles with every failure, with 20 \
         percent of jitter up or down, up to `reconnect.backoff.max.ms`; 0 begins with 1 ms. After the loss of an established connection \
         the client reconnects at once.",
    ),
    Property::global("reconnect.backoff.max.ms")
        .integer(0, 3600000, "10000")
        .medium()
        .doc("The maximum delay between attempts to reconnect; less than 100 is 100."),
    Property::global("statistics.interval.ms").integer(0, 86400000, "0").high().doc(
        "The interval at which statistics are passed to the callback, in milliseconds; 0 means never. See \
         STATISTICS.md.",
    ),
    Property::global("enabled_events")
        .integer(0, 2147483647, "0")
        .doc("The events to enqueue, as a bit set, for the C library."),
    Property::global("error_cb").by_call().doc("The error callback."),
    Property::global("throttle_cb").by_call().doc("The throttle callback."),
    Property::global("stats_cb").by_call().doc("The statistics callback."),
    Property::global("log_cb").by_call().doc("The log callback."),
    Property::global("log_level")
        .integer(0, 7, "6")
        .doc("The maximum syslog level that is logged, for the C library."),
    Property::global("log.queue").boolean("false").doc(
        "Enqueue log lines for the application instead of calling the log callback from the client's threads, for the \
         C library.",
    ),
    Property::global("log.thread.name")
        .boolean("true")
        .doc("Start log lines with the name of their thread or broker, in the C library."),
    Property::global("enable.random.seed")
        .boolean("true")
        .accepted("every client has its own random generator, seeded by the system")
        .doc("Call srand() when the first client is created."),
    Property::global("log.connection.close")
        .boolean("true")
        .doc("Log the loss of a connection that was in use, in the C library; otherwise only `debug` logs it."),
    Property::global("background_event_cb").by_call().doc("The background event callback."),
    Property::global("socket_cb").by_call().doc("The callback that opens sockets."),
    Property::global("connect_cb").by_call().doc("The callback that connects sockets."),
    Property::global("closesocket_cb").by_call().doc("The callback that closes sockets."),
    Property::global("open_cb").by_call().doc("The callback that opens files."),
    Property::global("resolve_cb").by_call().doc("The callback that resolves host names."),
    Property::global("opaque").by_call().doc("The application's pointer, given to callbacks."),
    Property::global("default_topic_conf")
        .by_call()
        .doc("The configuration of topics that have no configuration of their own."),
    Property::global("internal.termination.signal")
        .integer(0, 128, "0")
        .doc(
            "The signal that interrupts blocking system calls when the client ends. Ottla has no blocking system \
             calls, so it ignores the value.",
        ),
    Property::global("api.version.request").boolean("true").high().deprecated().doc(
        "Ask every broker for its API versions. With `false` the client assumes `broker.version.fallback`, for \
         brokers before 0.10.",
    ),
    Property::global("api.version.request.timeout.ms")
        .integer(1, 300000, "10000")
        .doc("The timeout of that request; afterwards the fallback is used."),
    Property::global("api.version.fallback.ms")
        .integer(0, 604800000, "0")
        .medium()
        .deprecated()
        .doc(
            "How long the fallback is used for a broker that closes the connection on ApiVersions requests, before it \
             is asked again; 0 asks on every connection.",
        ),
    Property::global("broker.version.fallback").string("0.10.0").medium().deprecated().doc(
        "The assumed version of a broker without ApiVersions: 0.9.0, 0.8.2, 0.8.1 or 0.8.0; brokers from 0.10.0 on \
         report their versions.",
    ),
    Property::global("allow.auto.create.topics").boolean("false").doc(
        "Let metadata requests create unknown topics, if the brokers allow it. The requests of a producer do so \
         unless this is explicitly set to false.",
    ),
    Property::global("security.protocol")
        .one_of(&["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"], "plaintext")
        .high()
        .doc("The security protocol."),
    Property::global("ssl.cipher.suites").string("").doc("The allowed cipher suites."),
    Property::global("ssl.curves.list").string("").doc("The allowed curves."),
    Property::global("ssl.sigalgs.list").string("").doc("The allowed signature algorithms."),
    Property::global("ssl.key.location")
        .string("").doc("The file with the client's private key (PEM)."),
    Property::global("ssl.key.password").string("").doc("The pass phrase of the private key."),
    Property::global("ssl.key.pem").string("").doc("The client's private key as a PEM string."),
    Property::global("ssl_key").by_call().doc("The client's private key, set by a call."),
    Property::global("ssl.certificate.location")
        .string("").doc("The file with the client's certificate (PEM)."),
    Property::global("ssl.certificate.pem")
        .string("").doc("The client's certificate as a PEM string."),
    Property::global("ssl_certificate").by_call().doc("The client's certificate, set by a call."),
    Property::global("ssl.ca.location")
        .string("").doc("A file or folder of CA certificates that brokers are checked against."),
    Property::global("https.ca.location")
        .string("")
        .doc("CA certificates for HTTPS endpoints: file, folder or `probe`."),
    Property::global("https.ca.pem")
        .string("")
        .doc("CA certificates for HTTPS endpoints as a PEM string."),
    Property::global("ssl.ca.pem").string("").doc("CA certificates as a PEM string."),
    Property::global("ssl_ca").by_call().doc("CA certificates, set by a call."),
    Property::global("ssl.ca.certificate.stores")
        .string("Root")
        .accepted("it names Windows certificate stores; the system's roots are used on every system")
        .doc("Windows certificate stores to load CA certificates from."),
    Property::global("ssl.crl.location").string("").doc("A file of revoked certificates."),
    Property::global("ssl.keystore.location")
        .string("").doc("The client's key store (PKCS#12)."),
    Property::global("ssl.keystore.password").string("").doc("The password of the key store."),
    Property::global("ssl.providers")
        .string("")
        .unbuilt("it names OpenSSL 3 providers, and there is no OpenSSL in this library")
        .doc("OpenSSL providers to load."),
    Property::global("ssl.engine.location")
        .string("")
        .deprecated()
        .unbuilt("it names an OpenSSL engine, and there is no OpenSSL in this library")
        .doc("The OpenSSL engine's library."),
    Property::global("ssl.engine.id")
        .string("dynamic")
        .unbuilt("it names an OpenSSL engine, and there is no OpenSSL in this library")
        .doc("The OpenSSL engine's ID."),
    Property::global("ssl_engine_callback_data").by_call().doc("The pointer for an OpenSSL engine; ignored, because engines are refused."),
    Property::global("enable.ssl.certificate.verification")
        .boolean("true").doc("Check the broker's certificate."),
    Property::global("ssl.endpoint.identification.algorithm")
        .one_of(&["none", "https"], "https")
        .doc("Check the host name in the broker's certificate."),
    Property::global("ssl.certificate.verify_cb").by_call().doc("The callback that checks certificates."),
    Property::global("sasl.mechanisms").string("GSSAPI").high().doc("The SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or GSSAPI (Kerberos, with libgssapi_krb5 of the system)."),
    Property::global("sasl.mechanism").string("GSSAPI").high().alias_of("sasl.mechanisms"),
    Property::global("sasl.kerberos.service.name")
        .string("kafka")
        .doc("The Kerberos service name of the brokers."),
    Property::global("sasl.kerberos.principal")
        .string("kafkaclient")
        .doc("The client's Kerberos principal."),
    Property::global("sasl.kerberos.kinit.cmd")
        .string(KINIT)
        .doc("The shell command that obtains or renews the Kerberos ticket. It runs only if it was set: by default, the key table is used without a command."),
    Property::global("sasl.kerberos.keytab").string("").doc("The Kerberos keytab file."),
    Property::global("sasl.kerberos.min.time.before.relogin")
        .integer(0, 86400000, "60000")
        .doc("The minimum time between two ticket renewals; 0 disables renewal."),
    Property::global("sasl.username")
        .string("")
        .high()
        .doc("The user name of PLAIN and SCRAM."),
    Property::global("sasl.password").string("").high().doc("The password of PLAIN and SCRAM."),
    Property::global("sasl.oauthbearer.config")
        .string("")
        .doc("Text for the token refresh callback, the fields of unsecured tokens, or `query=` of `azure_imds`."),
    Property::global("enable.sasl.oauthbearer.unsecure.jwt")
        .boolean("false")
        .doc("Create unsecured tokens, for development only."),
    Property::global("oauthbearer_token_refresh_cb").by_call().doc("The callback that renews the token."),
    Property::global("sasl.oauthbearer.method")
        .one_of(&["default", "oidc"], "default")
        .doc("The method that obtains a token: `oidc` is an identity provider, by the other properties; `default` is the application."),
    Property::global("sasl.oauthbearer.client.id")
        .string("")
        .doc("The client's public ID at the authorization server."),
    Property::global("sasl.oauthbearer.client.credentials.client.id")
        .string("")
        .alias_of("sasl.oauthbearer.client.id"),
    Property::global("sasl.oauthbearer.client.credentials.client.secret")
        .string("")
        .alias_of("sasl.oauthbearer.client.secret"),
    Property::global("sasl.oauthbearer.client.secret")
        .string("")
        .doc("The client's secret at the authorization server."),
    Property::global("sasl.oauthbearer.scope").string("").doc("The requested scope."),
    Property::global("sasl.oauthbearer.extensions")
        .string("")
        .doc("Extensions sent to the broker, comma-separated key=value."),
    Property::global("sasl.oauthbearer.token.endpoint.url")
        .string("")
        .doc("The authorization server's token endpoint."),
    Property::global("sasl.oauthbearer.sub.claim.name")
        .string("sub")
        .doc("The claim of the token that names its subject."),
    Property::global("sasl.oauthbearer.grant.type")
        .one_of(&["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"], "client_credentials")
        .doc(
            "The OAuth grant type: a client ID with a secret or an assertion (KIP-1258), or an assertion alone. As in Java an \
             assertion goes before a secret; in C a secret goes first.",
        ),
    Property::global("sasl.oauthbearer.assertion.algorithm")
        .one_of(&["RS256", "ES256"], "RS256")
        .doc("The algorithm that signs the assertion, by the kind of the key: RSA or EC (P-256)."),
    Property::global("sasl.oauthbearer.assertion.private.key.file")
        .string("")
        .doc("The file with the key that signs the assertion."),
    Property::global("sasl.oauthbearer.assertion.private.key.passphrase")
        .string("")
        .doc("The pass phrase of that key."),
    Property::global("sasl.oauthbearer.assertion.private.key.pem")
        .string("")
        .doc("The key that signs the assertion as a PEM string."),
    Property::global("sasl.oauthbearer.assertion.file")
        .string("")
        .doc("A file with a ready-made assertion."),
    Property::global("sasl.oauthbearer.assertion.claim.aud")
        .string("")
        .doc("The assertion's audience."),
    Property::global("sasl.oauthbearer.assertion.claim.exp.seconds")
        .integer(1, 2147483647, "300")
        .doc("How long the assertion is valid."),
    Property::global("sasl.oauthbearer.assertion.claim.iss")
        .string("")
        .doc("The assertion's issuer."),
    Property::global("sasl.oauthbearer.assertion.claim.jti.include")
        .boolean("false")
        .doc("Give every assertion a unique ID."),
    Property::global("sasl.oauthbearer.assertion.claim.nbf.seconds")
        .integer(0, 2147483647, "60")
        .doc("How long before now the assertion becomes valid."),
    Property::global("sasl.oauthbearer.assertion.claim.sub")
        .string("")
        .doc("The assertion's subject."),
    Property::global("sasl.oauthbearer.assertion.jwt.template.file")
        .string("")
        .doc("A file with additional headers and claims for the assertion."),
    Property::global("sasl.oauthbearer.metadata.authentication.type")
        .one_of(&["none", "azure_imds", "aws_iam"], "none")
        .doc("Obtain the token from a cloud's metadata service. `aws_iam` is refused: see `sasl.mechanisms=AWS_MSK_IAM`."),
    Property::global("plugin.library.paths")
        .string("")
        .doc("Plug-in libraries to load, separated by semicolons, for the C library."),
    Property::global("interceptors").by_call().doc("Interceptors, added by a call."),
    Property::global("group.id").consumer().string("").high().doc(
        "The name of the consumer group. Consumers read assigned partitions; with a group they can commit, and start \
         at its committed offsets.",
    ),
    Property::global("group.instance.id").consumer().string("").medium().doc(
        "A name that identifies a group member across restarts, so that restarts don't cause a rebalance.",
    ),
    Property::global("partition.assignment.strategy")
        .consumer()
        .string("range,roundrobin")
        .medium()
        .doc(
            "The assignors that a member offers, comma-separated, the preferred one first: `range`, `roundrobin`, \
             `sticky`, `cooperative-sticky`, their classes in Java, or one that a Rust application registered.",
        ),
    Property::global("session.timeout.ms")
        .consumer()
        .integer(1, 3600000, "45000")
        .high()
        .doc("A member that sends no heartbeat for this long is removed from its group."),
    Property::global("heartbeat.interval.ms")
        .consumer()
        .integer(1, 3600000, "3000")
        .doc("The interval of a member's heartbeats."),
    Property::global("group.protocol.type")
        .consumer()
        .string("consumer")
        .doc("The protocol type of classic groups."),
    Property::global("group.protocol")
        .consumer()
        .one_of(&["classic", "consumer"], "classic")
        .high()
        .doc("The group protocol: `classic`, or `consumer` (KIP-848), which needs Kafka 4.0."),
    Property::global("group.remote.assignor")
        .consumer()
        .string("")
        .medium()
        .doc("The assignor that runs on the broker (`group.protocol=consumer`)."),
    Property::global("coordinator.query.interval.ms")
        .consumer()
        .integer(1, 3600000, "600000")
        .accepted("the coordinator is looked up when there is a request for it, and again when it has moved")
        .doc("The interval of lookups of the group's coordinator."),
    Property::global("max.poll.interval.ms")
        .consumer()
        .integer(1, 2147483647, "300000")
        .up_to_in_c(86400000)
        .high()
        .doc("The maximum time between two polls of the application; afterwards its member leaves the group."),
    Property::global("enable.auto.commit")
        .consumer()
        .boolean("true")
        .high()
        .doc(
            "Commit offsets periodically: the stored offsets in the C library, those of the returned records in the Rust \
             API.",
        ),
    Property::global("auto.commit.interval.ms")
        .consumer()
        .integer(0, 86400000, "5000")
        .medium()
        .doc("The interval of these commits; 0 disables them."),
    Property::global("enable.auto.offset.store")
        .consumer()
        .boolean("true")
        .high()
        .doc("Store the offset of a message for the next commit as soon as the application gets the message, in the C \
            library."),
    Property::global("queued.min.messages")
        .consumer()
        .integer(1, 10000000, "100000")
        .medium()
        .doc("The minimum number of messages to prefetch per partition."),
    Property::global("queued.max.messages.kbytes").consumer().integer(1, 2097151, "65536").medium().doc(
        "The maximum size, in KiB, of fetched messages that are not consumed yet: per partition in librdkafka, for \
         the whole consumer in Ottla.",
    ),
    Property::global("fetch.wait.max.ms")
        .consumer()
        .integer(0, 300000, "500")
        .doc("How long a broker may delay its response while it has fewer than `fetch.min.bytes`."),
    Property::global("fetch.queue.backoff.ms")
        .consumer()
        .integer(0, 300000, "1000")
        .medium()
        .doc(
            "How long a full queue delays the next fetch. If it is not set, fetching continues as soon as the queue has room.",
        ),
    Property::global("fetch.message.max.bytes").consumer().integer(1, 1000000000, "1048576").medium().doc(
        "The maximum number of bytes that a Fetch requests per partition. A single larger batch is still returned, so \
         that the consumer makes progress.",
    ),
    Property::global("max.partition.fetch.bytes")
        .consumer()
        .integer(1, 1000000000, "1048576")
        .medium()
        .alias_of("fetch.message.max.bytes"),
    Property::global("fetch.max.bytes").consumer().integer(0, 2147483135, "52428800").medium().doc(
        "The maximum number of bytes that a Fetch requests over all its partitions. A larger first batch is still \
         returned.",
    ),
    Property::global("fetch.min.bytes")
        .consumer()
        .integer(0, 2147483647, "1")
        .doc("A broker responds as soon as it has this many bytes."),
    Property::global("fetch.error.backoff.ms")
        .consumer()
        .integer(0, 300000, "500")
        .medium()
        .doc("The back-off of a partition after a fetch error."),
    Property::global("offset.store.method")
        .consumer()
        .one_of(&["none", "file", "broker"], "broker")
        .deprecated()
        .accepted("offsets are stored in the broker; the legacy consumer of the C library has a topic property for \
            that")
        .doc("Where offsets are stored."),
    Property::global("isolation.level")
        .consumer()
        .one_of(&["read_uncommitted", "read_committed"], "read_committed")
        .high()
        .doc(
            "`read_committed` returns only messages of committed transactions, up to the last stable offset; \
             `read_uncommitted` returns all messages.",
        ),
    Property::global("consume_cb").consumer().by_call().doc("The message consume callback."),
    Property::global("rebalance_cb").consumer().by_call().doc("The rebalance callback."),
    Property::global("offset_commit_cb").consumer().by_call().doc("The offset commit callback."),
    Property::global("enable.partition.eof")
        .consumer()
        .boolean("false")
        .doc("Emit an event whenever a consumer reaches the end of a partition."),
    Property::global("check.crcs")
        .consumer()
        .boolean("false")
        .medium()
        .rust_default("true")
        .doc("Verify the CRC32C of every fetched batch. It costs a few nanoseconds per kilobyte."),
    Property::global("client.rack").string("").doc(
        "The rack of this client: consumers then fetch from a replica in the same rack if the brokers allow it; for producers see \
         `partitioner.rack.aware`.",
    ),
    Property::global("max.poll.records")
        .consumer()
        .integer(1, 2147483647, "500")
        .doc(
            "The number of records that a share consumer asks each broker for. Brokers deliver whole batches, so that a poll \
             may return more.",
        ),
    Property::global("share.acknowledgement.mode")
        .consumer()
        .string("implicit")
        .medium()
        .doc(
            "`implicit`: the records of a poll are accepted by the next poll or commit. `explicit`: the application \
             acknowledges each record. Only for the C library's share consumer; that of Rust is always explicit.",
        ),
    Property::global("transactional.id")
        .producer()
        .string("")
        .high()
        .doc(
            "The name that identifies the producer's transactions across restarts; setting it makes the producer \
             transactional. It requires `enable.idempotence`, which is then the default, and adapts the defaults of \
             `message.timeout.ms` and `socket.timeout.ms` to `transaction.timeout.ms`.",
        ),
    Property::global("transaction.timeout.ms")
        .producer()
        .integer(1000, 2147483647, "60000")
        .medium()
        .doc(
            "The coordinator aborts a transaction after this time. The client ends the transaction shortly before, and \
             reports an event at 80 %. The brokers limit it (`transaction.max.timeout.ms`, 15 minutes).",
        ),
    Property::global("enable.idempotence").producer().boolean("false").high().rust_default("true").doc(
        "Brokers recognise retries, so that every record is stored exactly once and in order. It requires `acks=all`, \
         at most 5 requests in flight, and retries.",
    ),
    Property::global("enable.gapless.guarantee")
        .producer()
        .boolean("false")
        .doc(
            "A message that fails permanently and could leave a gap in the sequence of its partition causes a fatal \
             error: the producer accepts no more messages. Messages that time out (`message.timeout.ms`) do not count \
             as gaps. It requires `enable.idempotence`.",
        ),
    Property::global("queue.buffering.max.messages").producer().integer(0, 2147483647, "100000").high().doc(
        "The maximum number of messages in the producer's queue, over all topics; 0 means no limit. When it is full, \
         produce fails or waits.",
    ),
    Property::global("queue.buffering.max.kbytes")
        .producer()
        .integer(1, 2147483647, "1048576")
        .rust_default("32768")
        .high()
        .doc(
            "The maximum size of the producer's queue in KiB, over all topics. When it is full, produce fails or \
             waits.",
        ),
    Property::global("queue.buffering.max.ms").producer().float(0.0, 900000.0, "5").high().doc(
        "How long the client collects a partition's records before it sends them. Set alone it is a timer per \
         partition, and deprecated: `broker.linger.ms` collects over all partitions of a broker. As there, timers \
         have a resolution of one millisecond.",
    ),
    Property::global("linger.ms")
        .producer()
        .float(0.0, 900000.0, "5")
        .high()
        .alias_of("queue.buffering.max.ms"),
    Property::global("message.send.max.retries").producer().integer(0, 2147483647, "2147483647").high().doc(
        "The maximum number of retries after transient errors. `message.timeout.ms` ends the retries earlier.",
    ),
    Property::global("retries")
        .producer()
        .integer(0, 2147483647, "2147483647")
        .high()
        .alias_of("message.send.max.retries"),
    Property::global("retry.backoff.ms").integer(1, 300000, "100").medium().doc(
        "The delay before the first retry of a request. It doubles with each retry, with 20 percent of jitter, up to \
         `retry.backoff.max.ms`.",
    ),
    Property::global("retry.backoff.max.ms")
        .integer(1, 300000, "1000")
        .medium()
        .doc("The maximum delay between retries."),
    Property::global("queue.buffering.backpressure.threshold")
        .producer()
        .integer(1, 1000000, "1")
        .doc(
            "The number of unsent requests from which on a broker's next request is delayed. If it is not set, two megabytes of \
             unsent requests delay it.",
        ),
    Property::global("compression.codec")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd"], "none")
        .medium()
        .doc("The codec that batches are compressed with."),
    Property::global("compression.type")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd"], "none")
        .medium()
        .alias_of("compression.codec"),
    Property::global("batch.num.messages")
        .producer()
        .integer(1, 1000000, "10000")
        .medium()
        .doc("The maximum number of records in a batch."),
    Property::global("batch.size").producer().integer(1, 2147483647, "1000000").medium().doc(
        "The maximum size of a batch in bytes, before compression. `message.max.bytes` limits it, too.",
    ),
    Property::global("delivery.report.only.error")
        .producer()
        .boolean("false")
        .doc("Report only records that failed, in the C library. In Rust reports are per batch and cost almost \
            nothing."),
    Property::global("dr_cb").producer().by_call().doc("The old delivery report callback."),
    Property::global("dr_msg_cb").producer().by_call().doc("The delivery report callback."),
    Property::global("sticky.partitioning.linger.ms")
        .producer()
        .integer(0, 900000, "10")
        .doc(
            "How long records without a key go to one partition before another one is chosen at random; 0 chooses for \
             every record. If it is not set, another partition is chosen when the batch is sent, at the latest after \
             twice the linger.",
        ),
    Property::global("client.dns.lookup")
        .one_of(&["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"], "use_all_dns_ips")
        .doc(
            "`use_all_dns_ips` tries every address of a broker's name in turn; \
             `resolve_canonical_bootstrap_servers_only` does so, too, and first replaces bootstrap names by the \
             canonical names of their addresses; creating the client then waits for the system's resolver.",
        ),
    Property::global("enable.metrics.push")
        .boolean("true")
        .doc("Send client metrics to brokers that request them (KIP-714, [docs/guide/telemetry.md](docs/guide/telemetry.md))."),
    Property::topic("request.required.acks")
        .producer()
        .named_integer(-1, 1, &[("all", -1)], "-1")
        .up_to_in_c(1000)
        .high()
        .doc(
            "The replicas that must have a record before it counts as delivered: `all` in-sync replicas (-1), the \
             leader alone (1), or none (0: the client waits for no response). The C library accepts numbers up to \
             1000, as librdkafka does; brokers refuse those above 1 with INVALID_REQUIRED_ACKS.",
        ),
    Property::topic("acks")
        .producer()
        .named_integer(-1, 1, &[("all", -1)], "-1")
        .up_to_in_c(1000)
        .high()
        .alias_of("request.required.acks"),
    Property::topic("request.timeout.ms").producer().integer(1, 900000, "30000").medium().doc(
        "How long the leader may wait for its replicas (`acks=all`). The client waits a little longer for the \
         response.",
    ),
    Property::topic("message.timeout.ms").producer().integer(0, 2147483647, "300000").high().doc(
        "The maximum time from produce to the delivery report of a record, including all retries; afterwards the \
         record fails with a timeout. 0 means no limit.",
    ),
    Property::topic("delivery.timeout.ms")
        .producer()
        .integer(0, 2147483647, "300000")
        .high()
        .alias_of("message.timeout.ms"),
    Property::topic("queuing.strategy")
        .producer()
        .one_of(&["fifo", "lifo"], "fifo")
        .deprecated()
        .doc(
            "The order in which a partition's waiting records are sent: `fifo`, or `lifo` for the newest first. \
             Records keep their order once they are in a request. `lifo` requires `enable.idempotence=false`.",
        ),
    Property::topic("produce.offset.report")
        .producer()
        .boolean("false")
        .deprecated()
        .accepted("reports always carry the offset")
        .doc("Report offsets."),
    Property::topic("partitioner")
        .producer()
        .one_of(
            &[
                "random",
                "consistent",
                "consistent_random",
                "murmur2",
                "murmur2_random",
                "fnv1a",
                "fnv1a_random",
                "sticky",
            ],
            "consistent_random",
        )
        .high()
        .doc(
            "The partitioner: `random`; `consistent` (CRC32 of the key); `consistent_random` (the same, keyless at \
             random); `murmur2` and `murmur2_random` (as the Java client does); `fnv1a` and `fnv1a_random`.",
        ),
    Property::topic("partitioner_cb").producer().by_call().doc("The application's partitioner."),
    Property::topic("msg_order_cmp")
        .producer()
        .by_call()
        .deprecated()
        .doc("The application's function that orders messages."),
    Property::topic("opaque").by_call().doc("The application's pointer, given to topic callbacks."),
    Property::topic("compression.codec")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd", "inherit"], "inherit")
        .high()
        .doc("The codec for this topic; `inherit` uses the client's."),
    Property::topic("compression.type")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd"], "none")
        .medium()
        .alias_of("compression.codec"),
    Property::topic("compression.level").producer().integer(-1, 12, "-1").medium().doc(
        "The compression level of the codec: gzip 0 to 9, lz4 0 to 12, zstd 1 to 12; snappy has none. -1 is the \
         codec's default.",
    ),
    Property::topic("auto.commit.enable")
        .consumer()
        .boolean("true")
        .deprecated()
        .accepted("it belongs to the legacy consumer; groups use `enable.auto.commit`")
        .doc("Commit offsets of the legacy consumer periodically."),
    Property::topic("enable.auto.commit")
        .consumer()
        .boolean("true")
        .alias_of("auto.commit.enable")
        .deprecated()
        .accepted("it belongs to the legacy consumer; groups use the global property"),
    Property::topic("auto.commit.interval.ms")
        .consumer()
        .integer(10, 86400000, "60000")
        .high()
        .accepted("it belongs to the legacy consumer; groups use the global property")
        .doc("The interval of the legacy consumer's commits."),
    Property::topic("auto.offset.reset")
        .consumer()
        .one_of(
            &["smallest", "earliest", "beginning", "largest", "latest", "end", "error", "none"],
            "largest",
        )
        .high()
        .doc(
            "Where to continue if a partition has no committed offset or its offset no longer exists: at the \
             beginning, at the end, or with an error. In Rust also at the first record that is no older than a duration: \
             `by_duration:PT1H` (KIP-1106).",
        ),
    Property::topic("offset.store.path")
        .consumer()
        .string(".")
        .deprecated()
        .accepted("only the legacy consumer of the C library stores offsets in files")
        .doc("The file or folder of the legacy consumer's offsets."),
    Property::topic("offset.store.sync.interval.ms")
        .consumer()
        .integer(-1, 86400000, "-1")
        .deprecated()
        .accepted("only the legacy consumer of the C library stores offsets in files")
        .doc("The interval at which the offset file is synced."),
    Property::topic("offset.store.method")
        .consumer()
        .one_of(&["file", "broker"], "broker")
        .deprecated()
        .accepted("only the legacy consumer of the C library stores offsets in files")
        .doc("Where the legacy consumer stores its offsets."),
    Property::topic("consume.callback.max.messages")
        .consumer()
        .integer(0, 1000000, "0")
        .accepted("only the C library has calls that pass messages to a callback")
        .doc("The maximum number of messages per call with a consume callback; 0 means no limit."),
];
