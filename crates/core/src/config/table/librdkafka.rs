//! The 199 rows that librdkafka 2.15 documents: names, ranges and defaults are its facts, the texts are ours.

use super::{GROUPS, Property, SASL, TLS};

const KINIT: &str = "kinit -R -t \"%{sasl.kerberos.keytab}\" -k %{sasl.kerberos.principal} \
    || kinit -t \"%{sasl.kerberos.keytab}\" -k %{sasl.kerberos.principal}";

pub(super) const ROWS: &[Property] = &[
    Property::global("builtin.features")
        .flags(&["gzip", "snappy", "lz4", "zstd"], "gzip,snappy,lz4,zstd")
        .doc(
            "The codecs and mechanisms this build has. It can be read; setting it demands that every \
             named feature is there.",
        ),
    Property::global("client.id")
        .string("rdkafka")
        .rust_default("ottla")
        .doc("The name sent to brokers with every request; it shows in their logs, quotas and metrics."),
    Property::global("metadata.broker.list").string("").high().doc(
        "The first brokers to ask, as a comma-separated list of host[:port]; the port is 9092 \
             where none is given, IPv6 addresses stand in brackets. All other brokers are learnt from \
             these.",
    ),
    Property::global("bootstrap.servers").string("").high().alias_of("metadata.broker.list"),
    Property::global("message.max.bytes").integer(1000, 1000000000, "1000000").medium().doc(
        "The largest record accepted by produce, in its encoded size without compression, and the \
             largest batch sent to one partition. Brokers have a limit of their own \
             (`message.max.bytes`, topic: `max.message.bytes`).",
    ),
    Property::global("message.copy.max.bytes")
        .integer(0, 1000000000, "65535")
        .accepted("every record is encoded when it is produced, so there is no later copy to avoid")
        .doc("The largest payload that is copied into the request buffer instead of being referenced."),
    Property::global("receive.message.max.bytes").integer(1000, 2147483647, "100000000").medium().doc(
        "The largest answer accepted from a broker. A longer length is treated as garbage, and \
             the connection is closed before anything is allocated for it.",
    ),
    Property::global("max.in.flight.requests.per.connection").integer(1, 1000000, "1000000").doc(
        "How many requests may wait for an answer on one broker connection. Without idempotence, \
             more than 1 can change the order of records when a request is retried.",
    ),
    Property::global("max.in.flight")
        .integer(1, 1000000, "1000000")
        .alias_of("max.in.flight.requests.per.connection"),
    Property::global("metadata.recovery.strategy")
        .one_of(&["none", "rebootstrap"], "rebootstrap")
        .doc(
            "What to do when no known broker answers any more, or when one says so: `rebootstrap` starts again \
             from `bootstrap.servers`, their names resolved anew; `none` keeps trying the known ones.",
        ),
    Property::global("metadata.recovery.rebootstrap.trigger.ms")
        .integer(0, 2147483647, "300000")
        .doc(
            "How long metadata may be unobtainable before all known brokers are given up for `bootstrap.servers`. \
             Where none of them can be connected to, the bootstrap servers are tried without waiting.",
        ),
    Property::global("topic.metadata.refresh.interval.ms").integer(-1, 3600000, "300000").doc(
        "How often the metadata of the topics in use is asked for again, also without an error. \
             -1 switches the timer off; errors still refresh.",
    ),
    Property::global("metadata.max.age.ms")
        .integer(1, 86400000, "900000")
        .doc(
            "Topics in use are asked for again at least this often, as in the Java client, unless \
             `topic.metadata.refresh.interval.ms` is set, too.",
        ),
    Property::global("topic.metadata.refresh.fast.interval.ms").integer(1, 60000, "100").doc(
        "The first interval between refreshes while a topic has no leader or isn't known; it \
             doubles up to `retry.backoff.max.ms`.",
    ),
    Property::global("topic.metadata.refresh.fast.cnt")
        .integer(0, 1000, "10")
        .deprecated()
        .accepted("not used by librdkafka any more either")
        .doc("How many fast refreshes to do."),
    Property::global("topic.metadata.refresh.sparse")
        .boolean("true")
        .doc(
            "Ask only for the topics in use. With `false` the timer (`topic.metadata.refresh.interval.ms`) asks for every \
             topic of the cluster.",
        ),
    Property::global("topic.metadata.propagation.max.ms").integer(0, 3600000, "30000").doc(
        "How long a topic may be unknown to the brokers before its records fail with unknown \
             topic: a topic that was just created needs a moment to reach every broker.",
    ),
    Property::global("topic.blacklist")
        .string("")
        .doc(
            "Regular expressions, comma-separated: a topic in whose name one of them is found is taken for one that \
             doesn't exist, whatever brokers say. Lists of the cluster's topics show it.",
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
            "Which parts of the client log in detail at level 7, comma-separated, in the C library. Of any part it is \
             told when the client begins and ends; parts that aren't built yet (`security`, `assignor`, `telemetry`) have no \
             other lines.",
        ),
    Property::global("socket.timeout.ms").integer(10, 300000, "60000").doc(
        "How long to wait for the answer to a request, other than Produce, before the connection \
             is closed and the request is retried or failed.",
    ),
    Property::global("socket.blocking.max.ms")
        .integer(1, 60000, "1000")
        .deprecated()
        .accepted("no thread blocks on a socket")
        .doc("The longest time a broker thread blocks on its socket."),
    Property::global("socket.send.buffer.bytes").integer(0, 100000000, "0").doc(
        "The size of the kernel's send buffer (SO_SNDBUF) of a broker socket; 0 leaves it to the \
             system.",
    ),
    Property::global("socket.receive.buffer.bytes").integer(0, 100000000, "0").doc(
        "The size of the kernel's receive buffer (SO_RCVBUF) of a broker socket; 0 leaves it to \
             the system.",
    ),
    Property::global("socket.keepalive.enable")
        .boolean("false")
        .doc("Send TCP keep-alives (SO_KEEPALIVE) on broker sockets."),
    Property::global("socket.nagle.disable")
        .boolean("true")
        .doc("Send small requests at once (TCP_NODELAY) instead of waiting for more bytes."),
    Property::global("socket.max.fails")
        .integer(0, 1000000, "1")
        .accepted("the first request that times out closes its connection")
        .doc(
            "Close the connection after this many requests that timed out in a row; 0 never closes it \
             for that reason.",
        ),
    Property::global("broker.address.ttl")
        .integer(0, 86400000, "1000")
        .doc("How long a resolved address is used before the name is looked up again."),
    Property::global("broker.address.family")
        .one_of(&["any", "v4", "v6"], "any")
        .doc("Which IP addresses of a broker are used."),
    Property::global("socket.connection.setup.timeout.ms").integer(1000, 2147483647, "30000").medium().doc(
        "How long connecting may take, from the first packet to the end of the handshakes, before \
             the next address or broker is tried.",
    ),
    Property::global("connections.max.idle.ms").integer(0, 2147483647, "0").medium().doc(
        "Close a connection that carried nothing for this long; 0 keeps it. Brokers close idle \
             connections too (`connections.max.idle.ms`, 10 minutes).",
    ),
    Property::global("reconnect.backoff.jitter.ms")
        .integer(0, 3600000, "0")
        .deprecated()
        .accepted("`reconnect.backoff.ms` and `reconnect.backoff.max.ms` took its place")
        .doc("Spread of the delay before reconnecting."),
    Property::global("reconnect.backoff.ms").integer(0, 3600000, "100").medium().doc(
        "The delay before the first attempt to reconnect to a broker. It doubles with every \
             failure, with 20 percent of jitter either way, up to `reconnect.backoff.max.ms`; a \
             connection that was ready before reconnects at once.",
    ),
    Property::global("reconnect.backoff.max.ms")
        .integer(0, 3600000, "10000")
        .medium()
        .doc("The longest delay between attempts to reconnect."),
    Property::global("statistics.interval.ms").integer(0, 86400000, "0").high().doc(
        "How often statistics are handed to the callback, in milliseconds; 0 means never. See STATISTICS.md.",
    ),
    Property::global("enabled_events")
        .integer(0, 2147483647, "0")
        .doc("A bit set of the events to be queued, for the C library."),
    Property::global("error_cb").by_call().doc("The error callback."),
    Property::global("throttle_cb").by_call().doc("The throttle callback."),
    Property::global("stats_cb").by_call().doc("The statistics callback."),
    Property::global("log_cb").by_call().doc("The log callback."),
    Property::global("log_level")
        .integer(0, 7, "6")
        .doc("The highest syslog level that is logged, for the C library."),
    Property::global("log.queue").boolean("false").doc(
        "Queue log lines for the application instead of calling the log callback from the \
             client's threads, for the C library.",
    ),
    Property::global("log.thread.name")
        .boolean("true")
        .doc("Begin log lines with the name of the thread, or of the broker, that they come from, in the C library."),
    Property::global("enable.random.seed")
        .boolean("true")
        .accepted("every client seeds its own generator from the system")
        .doc("Call srand() when the first client is created."),
    Property::global("log.connection.close")
        .boolean("true")
        .doc("Log when a connection is lost that was needed, in the C library; else only `debug` does."),
    Property::global("background_event_cb").by_call().doc("The background event callback."),
    Property::global("socket_cb").by_call().doc("The callback that opens sockets."),
    Property::global("connect_cb").by_call().doc("The callback that connects sockets."),
    Property::global("closesocket_cb").by_call().doc("The callback that closes sockets."),
    Property::global("open_cb").by_call().doc("The callback that opens files."),
    Property::global("resolve_cb").by_call().doc("The callback that resolves host names."),
    Property::global("opaque").by_call().doc("The application's pointer, given to callbacks."),
    Property::global("default_topic_conf")
        .by_call()
        .doc("The topic configuration of topics that have none of their own."),
    Property::global("internal.termination.signal")
        .integer(0, 128, "0")
        .doc(
            "The signal that interrupts blocking system calls when the client ends. No call blocks here, so that none is \
             needed and any is as good.",
        ),
    Property::global("api.version.request").boolean("true").high().deprecated().doc(
        "Ask every broker which API versions it has. `false` takes `broker.version.fallback` at \
             its word, for brokers before 0.10.",
    ),
    Property::global("api.version.request.timeout.ms")
        .integer(1, 300000, "10000")
        .doc("How long to wait for the answer to that question before the fallback is used."),
    Property::global("api.version.fallback.ms")
        .integer(0, 604800000, "0")
        .medium()
        .deprecated()
        .doc(
            "How long the fallback is used for a broker that closed the connection whenever it was asked, before it is \
             asked again; 0 asks on every connection.",
        ),
    Property::global("broker.version.fallback").string("0.10.0").medium().deprecated().doc(
        "The version of a broker that can't be asked: 0.9.0, 0.8.2, 0.8.1 or 0.8.0; from 0.10.0 \
             on brokers can be asked.",
    ),
    Property::global("allow.auto.create.topics").boolean("false").doc(
        "Let a consumer's metadata request create a topic that doesn't exist, where the brokers \
             allow it. A producer's request always may.",
    ),
    Property::global("security.protocol")
        .one_of(&["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"], "plaintext")
        .high()
        .refused("TLS and SASL aren't built yet, only plaintext")
        .doc("How to talk to brokers."),
    Property::global("ssl.cipher.suites").string("").refused(TLS).doc("The allowed cipher suites."),
    Property::global("ssl.curves.list").string("").refused(TLS).doc("The allowed curves."),
    Property::global("ssl.sigalgs.list").string("").refused(TLS).doc("The allowed signature algorithms."),
    Property::global("ssl.key.location")
        .string("")
        .refused(TLS)
        .doc("The file with the client's private key (PEM)."),
    Property::global("ssl.key.password").string("").refused(TLS).doc("The pass phrase of the private key."),
    Property::global("ssl.key.pem").string("").refused(TLS).doc("The client's private key as a PEM string."),
    Property::global("ssl_key").by_call().doc("The client's private key, set by a call."),
    Property::global("ssl.certificate.location")
        .string("")
        .refused(TLS)
        .doc("The file with the client's certificate (PEM)."),
    Property::global("ssl.certificate.pem")
        .string("")
        .refused(TLS)
        .doc("The client's certificate as a PEM string."),
    Property::global("ssl_certificate").by_call().doc("The client's certificate, set by a call."),
    Property::global("ssl.ca.location")
        .string("")
        .refused(TLS)
        .doc("A file or folder of CA certificates that brokers are checked against."),
    Property::global("https.ca.location")
        .string("")
        .refused("there are no HTTPS requests without OAUTHBEARER, which isn't built yet")
        .doc("CA certificates for HTTPS endpoints: file, folder or `probe`."),
    Property::global("https.ca.pem")
        .string("")
        .refused("there are no HTTPS requests without OAUTHBEARER, which isn't built yet")
        .doc("CA certificates for HTTPS endpoints as a PEM string."),
    Property::global("ssl.ca.pem").string("").refused(TLS).doc("CA certificates as a PEM string."),
    Property::global("ssl_ca").by_call().doc("CA certificates, set by a call."),
    Property::global("ssl.ca.certificate.stores")
        .string("Root")
        .accepted("it names Windows certificate stores, and TLS isn't built yet")
        .doc("Windows certificate stores to load CA certificates from."),
    Property::global("ssl.crl.location").string("").refused(TLS).doc("A file of revoked certificates."),
    Property::global("ssl.keystore.location")
        .string("")
        .refused(TLS)
        .doc("The client's key store (PKCS#12)."),
    Property::global("ssl.keystore.password").string("").refused(TLS).doc("The password of the key store."),
    Property::global("ssl.providers")
        .string("")
        .refused("it names OpenSSL 3 providers, and there is no OpenSSL in this library")
        .doc("OpenSSL providers to load."),
    Property::global("ssl.engine.location")
        .string("")
        .deprecated()
        .refused("it names an OpenSSL engine, and there is no OpenSSL in this library")
        .doc("The OpenSSL engine's library."),
    Property::global("ssl.engine.id")
        .string("dynamic")
        .refused("it names an OpenSSL engine, and there is no OpenSSL in this library")
        .doc("The OpenSSL engine's id."),
    Property::global("ssl_engine_callback_data").by_call().doc("The pointer given to an OpenSSL engine."),
    Property::global("enable.ssl.certificate.verification")
        .boolean("true")
        .refused(TLS)
        .doc("Check the broker's certificate."),
    Property::global("ssl.endpoint.identification.algorithm")
        .one_of(&["none", "https"], "https")
        .accepted("there are no certificates to check before TLS is built")
        .doc("Check the host name in the broker's certificate."),
    Property::global("ssl.certificate.verify_cb").by_call().doc("The callback that checks certificates."),
    Property::global("sasl.mechanisms").string("GSSAPI").high().refused(SASL).doc("The SASL mechanism."),
    Property::global("sasl.mechanism").string("GSSAPI").high().alias_of("sasl.mechanisms").refused(SASL),
    Property::global("sasl.kerberos.service.name")
        .string("kafka")
        .refused(SASL)
        .doc("The Kerberos service name of the brokers."),
    Property::global("sasl.kerberos.principal")
        .string("kafkaclient")
        .refused(SASL)
        .doc("The client's Kerberos principal."),
    Property::global("sasl.kerberos.kinit.cmd")
        .string(KINIT)
        .refused(SASL)
        .doc("The shell command that gets or renews the Kerberos ticket."),
    Property::global("sasl.kerberos.keytab").string("").refused(SASL).doc("The Kerberos keytab file."),
    Property::global("sasl.kerberos.min.time.before.relogin")
        .integer(0, 86400000, "60000")
        .refused(SASL)
        .doc("The shortest time between two ticket renewals; 0 switches renewing off."),
    Property::global("sasl.username")
        .string("")
        .high()
        .refused(SASL)
        .doc("The user name of PLAIN and SCRAM."),
    Property::global("sasl.password").string("").high().refused(SASL).doc("The password of PLAIN and SCRAM."),
    Property::global("sasl.oauthbearer.config")
        .string("")
        .refused(SASL)
        .doc("Text for the token refresh callback, or the unsecured token's fields."),
    Property::global("enable.sasl.oauthbearer.unsecure.jwt")
        .boolean("false")
        .refused(SASL)
        .doc("Make unsecured tokens, for development only."),
    Property::global("oauthbearer_token_refresh_cb").by_call().doc("The callback that renews the token."),
    Property::global("sasl.oauthbearer.method")
        .one_of(&["default", "oidc"], "default")
        .refused(SASL)
        .doc("How a token is got."),
    Property::global("sasl.oauthbearer.client.id")
        .string("")
        .refused(SASL)
        .doc("The client's public id at the authorization server."),
    Property::global("sasl.oauthbearer.client.credentials.client.id")
        .string("")
        .alias_of("sasl.oauthbearer.client.id")
        .refused(SASL),
    Property::global("sasl.oauthbearer.client.credentials.client.secret")
        .string("")
        .alias_of("sasl.oauthbearer.client.secret")
        .refused(SASL),
    Property::global("sasl.oauthbearer.client.secret")
        .string("")
        .refused(SASL)
        .doc("The client's secret at the authorization server."),
    Property::global("sasl.oauthbearer.scope").string("").refused(SASL).doc("The scope asked for."),
    Property::global("sasl.oauthbearer.extensions")
        .string("")
        .refused(SASL)
        .doc("Extensions sent to the broker, comma-separated key=value."),
    Property::global("sasl.oauthbearer.token.endpoint.url")
        .string("")
        .refused(SASL)
        .doc("The authorization server's token endpoint."),
    Property::global("sasl.oauthbearer.sub.claim.name")
        .string("sub")
        .refused(SASL)
        .doc("Which claim of the token names its subject."),
    Property::global("sasl.oauthbearer.grant.type")
        .one_of(&["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"], "client_credentials")
        .refused(SASL)
        .doc("The OAuth grant type."),
    Property::global("sasl.oauthbearer.assertion.algorithm")
        .one_of(&["RS256", "ES256"], "RS256")
        .refused(SASL)
        .doc("The algorithm that signs the assertion."),
    Property::global("sasl.oauthbearer.assertion.private.key.file")
        .string("")
        .refused(SASL)
        .doc("The file with the key that signs the assertion."),
    Property::global("sasl.oauthbearer.assertion.private.key.passphrase")
        .string("")
        .refused(SASL)
        .doc("The pass phrase of that key."),
    Property::global("sasl.oauthbearer.assertion.private.key.pem")
        .string("")
        .refused(SASL)
        .doc("The key that signs the assertion as a PEM string."),
    Property::global("sasl.oauthbearer.assertion.file")
        .string("")
        .refused(SASL)
        .doc("A file with a ready-made assertion."),
    Property::global("sasl.oauthbearer.assertion.claim.aud")
        .string("")
        .refused(SASL)
        .doc("The assertion's audience."),
    Property::global("sasl.oauthbearer.assertion.claim.exp.seconds")
        .integer(1, 2147483647, "300")
        .refused(SASL)
        .doc("How long the assertion is valid."),
    Property::global("sasl.oauthbearer.assertion.claim.iss")
        .string("")
        .refused(SASL)
        .doc("The assertion's issuer."),
    Property::global("sasl.oauthbearer.assertion.claim.jti.include")
        .boolean("false")
        .refused(SASL)
        .doc("Give every assertion an id of its own."),
    Property::global("sasl.oauthbearer.assertion.claim.nbf.seconds")
        .integer(0, 2147483647, "60")
        .refused(SASL)
        .doc("How long before now the assertion becomes valid."),
    Property::global("sasl.oauthbearer.assertion.claim.sub")
        .string("")
        .refused(SASL)
        .doc("The assertion's subject."),
    Property::global("sasl.oauthbearer.assertion.jwt.template.file")
        .string("")
        .refused(SASL)
        .doc("A file with more headers and claims for the assertion."),
    Property::global("sasl.oauthbearer.metadata.authentication.type")
        .one_of(&["none", "azure_imds", "aws_iam"], "none")
        .refused(SASL)
        .doc("Get the token from a cloud's metadata service."),
    Property::global("plugin.library.paths")
        .string("")
        .doc("Plug-in libraries to load, separated by semicolons, for the C library."),
    Property::global("interceptors").by_call().doc("Interceptors, added by a call."),
    Property::global("group.id").consumer().string("").high().doc(
        "The consumer group's name. Consumers work on assigned partitions; with a \
             group they commit, and start from what was committed for it.",
    ),
    Property::global("group.instance.id").consumer().string("").medium().accepted(GROUPS).doc(
        "A name that stays with a group member over restarts, so that they don't cause a \
             rebalance.",
    ),
    Property::global("partition.assignment.strategy")
        .consumer()
        .string("range,roundrobin")
        .medium()
        .accepted(GROUPS)
        .doc("The assignors a member offers, comma-separated, best first."),
    Property::global("session.timeout.ms")
        .consumer()
        .integer(1, 3600000, "45000")
        .high()
        .accepted(GROUPS)
        .doc("A member that sends no heartbeat for this long is taken out of its group."),
    Property::global("heartbeat.interval.ms")
        .consumer()
        .integer(1, 3600000, "3000")
        .accepted(GROUPS)
        .doc("How often a member sends a heartbeat."),
    Property::global("group.protocol.type")
        .consumer()
        .string("consumer")
        .accepted(GROUPS)
        .doc("The protocol type of classic groups."),
    Property::global("group.protocol")
        .consumer()
        .one_of(&["classic", "consumer"], "classic")
        .high()
        .accepted(GROUPS)
        .doc("The group protocol: `classic`, or KIP-848's `consumer`."),
    Property::global("group.remote.assignor")
        .consumer()
        .string("")
        .medium()
        .accepted(GROUPS)
        .doc("The assignor that runs on the broker (`group.protocol=consumer`)."),
    Property::global("coordinator.query.interval.ms")
        .consumer()
        .integer(1, 3600000, "600000")
        .accepted(GROUPS)
        .doc("How often the group's coordinator is looked up again."),
    Property::global("max.poll.interval.ms")
        .consumer()
        .integer(1, 86400000, "300000")
        .high()
        .accepted(GROUPS)
        .doc("How long the application may take between two polls before its member leaves the group."),
    Property::global("enable.auto.commit")
        .consumer()
        .boolean("true")
        .high()
        .doc("Commit the stored offsets from time to time, in the C library."),
    Property::global("auto.commit.interval.ms")
        .consumer()
        .integer(0, 86400000, "5000")
        .medium()
        .doc("How often stored offsets are committed; 0 switches it off, in the C library."),
    Property::global("enable.auto.offset.store")
        .consumer()
        .boolean("true")
        .high()
        .doc("Store the offset of a message as the next to commit as soon as the application gets it, in the C library."),
    Property::global("queued.min.messages")
        .consumer()
        .integer(1, 10000000, "100000")
        .medium()
        .doc("Keep at least this many messages per partition fetched in advance."),
    Property::global("queued.max.messages.kbytes").consumer().integer(1, 2097151, "65536").medium().doc(
        "The most bytes, in KiB, that fetched and not yet consumed messages may occupy: of one \
             partition in librdkafka, here of the whole consumer.",
    ),
    Property::global("fetch.wait.max.ms")
        .consumer()
        .integer(0, 300000, "500")
        .doc("How long a broker may hold back its answer while fewer than `fetch.min.bytes` are there."),
    Property::global("fetch.queue.backoff.ms")
        .consumer()
        .integer(0, 300000, "1000")
        .medium()
        .accepted("fetching goes on as soon as there is room")
        .doc("How long a full queue postpones the next fetch."),
    Property::global("fetch.message.max.bytes").consumer().integer(1, 1000000000, "1048576").medium().doc(
        "The most bytes asked for per partition in one Fetch. A single larger batch still comes, \
             so that a consumer never gets stuck.",
    ),
    Property::global("max.partition.fetch.bytes")
        .consumer()
        .integer(1, 1000000000, "1048576")
        .medium()
        .alias_of("fetch.message.max.bytes"),
    Property::global("fetch.max.bytes").consumer().integer(0, 2147483135, "52428800").medium().doc(
        "The most bytes asked for in one Fetch over all its partitions. A first batch that is \
             larger still comes.",
    ),
    Property::global("fetch.min.bytes")
        .consumer()
        .integer(0, 2147483647, "1")
        .doc("A broker answers as soon as it has this many bytes."),
    Property::global("fetch.error.backoff.ms")
        .consumer()
        .integer(0, 300000, "500")
        .medium()
        .doc("How long a partition rests after a fetch error, before the next try."),
    Property::global("offset.store.method")
        .consumer()
        .one_of(&["none", "file", "broker"], "broker")
        .deprecated()
        .accepted("offsets are stored in the broker; the older consumer of the C library has a property of its topics for that")
        .doc("Where offsets are stored."),
    Property::global("isolation.level")
        .consumer()
        .one_of(&["read_uncommitted", "read_committed"], "read_committed")
        .high()
        .doc(
            "`read_committed` gives only messages of committed transactions, and none beyond the last \
             stable offset; `read_uncommitted` gives all.",
        ),
    Property::global("consume_cb").consumer().by_call().doc("The message consume callback."),
    Property::global("rebalance_cb").consumer().by_call().doc("The rebalance callback."),
    Property::global("offset_commit_cb").consumer().by_call().doc("The offset commit callback."),
    Property::global("enable.partition.eof")
        .consumer()
        .boolean("false")
        .doc("Emit an event whenever a consumer reaches a partition's end."),
    Property::global("check.crcs")
        .consumer()
        .boolean("false")
        .medium()
        .rust_default("true")
        .doc("Check the CRC32C of every fetched batch. It costs a few nanoseconds per kilobyte."),
    Property::global("client.rack").string("").doc(
        "The rack this client is in: consumers then fetch from a replica in the same rack where \
             the brokers allow it.",
    ),
    Property::global("max.poll.records")
        .consumer()
        .integer(1, 2147483647, "500")
        .accepted("there are no share groups yet")
        .doc("The most records one poll returns, for share consumers."),
    Property::global("share.acknowledgement.mode")
        .consumer()
        .string("implicit")
        .medium()
        .accepted("there are no share groups yet")
        .doc("Whether a share consumer acknowledges by itself."),
    Property::global("transactional.id")
        .producer()
        .string("")
        .high()
        .refused("transactions aren't built yet")
        .doc(
            "The name under which transactions survive a restart; setting it makes the producer \
             transactional.",
        ),
    Property::global("transaction.timeout.ms")
        .producer()
        .integer(1000, 2147483647, "60000")
        .medium()
        .accepted("there are no transactions yet")
        .doc("After this time the coordinator aborts a transaction on its own."),
    Property::global("enable.idempotence").producer().boolean("false").high().rust_default("true").doc(
        "Brokers recognise retries, so that every record is stored once and in order. It needs \
             `acks=all`, at most 5 requests in flight and retries.",
    ),
    Property::global("enable.gapless.guarantee")
        .producer()
        .boolean("false")
        .doc(
            "A message that fails for good, so that a gap could appear in the series of its partition, is a fatal \
             error: the producer takes no more. Messages that run out of `message.timeout.ms` are no such gap. It \
             needs `enable.idempotence`.",
        ),
    Property::global("queue.buffering.max.messages").producer().integer(0, 2147483647, "100000").high().doc(
        "The most messages that may wait in the producer, over all topics; 0 means no limit. When \
             it is reached, produce fails or waits.",
    ),
    Property::global("queue.buffering.max.kbytes")
        .producer()
        .integer(1, 2147483647, "1048576")
        .rust_default("32768")
        .high()
        .doc(
            "The most bytes, in KiB, that may wait in the producer, over all topics. When it is \
             reached, produce fails or waits.",
        ),
    Property::global("queue.buffering.max.ms").producer().float(0.0, 900000.0, "5").high().doc(
        "How long a partition's records are gathered before they are sent. Alone it is a timer \
             per partition and deprecated: `broker.linger.ms` gathers over all partitions of a \
             broker. Timers count in whole milliseconds, as with that one.",
    ),
    Property::global("linger.ms")
        .producer()
        .float(0.0, 900000.0, "5")
        .high()
        .alias_of("queue.buffering.max.ms"),
    Property::global("message.send.max.retries").producer().integer(0, 2147483647, "2147483647").high().doc(
        "How often a request that failed for a passing reason is sent again. `message.timeout.ms` \
             ends it before.",
    ),
    Property::global("retries")
        .producer()
        .integer(0, 2147483647, "2147483647")
        .high()
        .alias_of("message.send.max.retries"),
    Property::global("retry.backoff.ms").integer(1, 300000, "100").medium().doc(
        "The delay before the first retry of a request. It doubles with every retry, with 20 \
             percent of jitter, up to `retry.backoff.max.ms`.",
    ),
    Property::global("retry.backoff.max.ms")
        .integer(1, 300000, "1000")
        .medium()
        .doc("The longest delay between retries."),
    Property::global("queue.buffering.backpressure.threshold")
        .producer()
        .integer(1, 1000000, "1")
        .accepted("batches grow while `max.in.flight` requests are on their way")
        .doc("How many unsent requests make a broker hold its next batch back."),
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
        .doc("The most records in one batch."),
    Property::global("batch.size").producer().integer(1, 2147483647, "1000000").medium().doc(
        "The most bytes in one batch, before compression. A batch also closes at \
             `message.max.bytes`.",
    ),
    Property::global("delivery.report.only.error")
        .producer()
        .boolean("false")
        .doc("Report only records that failed, in the C library. In Rust reports come per batch and cost next to nothing."),
    Property::global("dr_cb").producer().by_call().doc("The old delivery report callback."),
    Property::global("dr_msg_cb").producer().by_call().doc("The delivery report callback."),
    Property::global("sticky.partitioning.linger.ms")
        .producer()
        .integer(0, 900000, "10")
        .doc(
            "How long records without a key stay with one partition before another is picked at \
             random; 0 picks for every record. Where it isn't set they move on when their batch is sent, at the latest \
             after twice the linger.",
        ),
    Property::global("client.dns.lookup")
        .one_of(&["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"], "use_all_dns_ips")
        .doc(
            "`use_all_dns_ips` tries every address of a broker's name in turn; \
             `resolve_canonical_bootstrap_servers_only` does so, too, and first replaces bootstrap names by the canonical \
             names of their addresses, for which making the client waits for the system's resolver.",
        ),
    Property::global("enable.metrics.push")
        .boolean("true")
        .accepted("client metrics aren't pushed yet")
        .doc("Send client metrics to the brokers when they ask for them (KIP-714)."),
    Property::topic("request.required.acks")
        .producer()
        .named_integer(-1, 1000, &[("all", -1)], "-1")
        .high()
        .doc(
            "Which replicas must have a record before it counts as delivered: `all` in-sync replicas \
             (-1), the leader alone (1), or none (0: no answer is waited for).",
        ),
    Property::topic("acks")
        .producer()
        .named_integer(-1, 1000, &[("all", -1)], "-1")
        .high()
        .alias_of("request.required.acks"),
    Property::topic("request.timeout.ms").producer().integer(1, 900000, "30000").medium().doc(
        "How long the leader may wait for its replicas (`acks=all`). The client waits a little \
             longer for the answer.",
    ),
    Property::topic("message.timeout.ms").producer().integer(0, 2147483647, "300000").high().doc(
        "How long a record may take from produce to its report, with all retries; 0 means no \
             limit. It fails with a timeout then.",
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
            "The order in which the records are sent that wait in a partition: `fifo`, or `lifo` for the newest first. \
             What is in a request once stays in its order. `lifo` needs `enable.idempotence=false`.",
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
            "How a record's partition is chosen: `random`; `consistent` (CRC32 of the key); \
             `consistent_random` (the same, keyless at random); `murmur2` and `murmur2_random` (as \
             the Java client does); `fnv1a` and `fnv1a_random`.",
        ),
    Property::topic("partitioner_cb").producer().by_call().doc("The application's partitioner."),
    Property::topic("msg_order_cmp")
        .producer()
        .by_call()
        .deprecated()
        .doc("The application's order of messages."),
    Property::topic("opaque").by_call().doc("The application's pointer, given to topic callbacks."),
    Property::topic("compression.codec")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd", "inherit"], "inherit")
        .high()
        .doc("The codec for this topic; `inherit` takes the client's."),
    Property::topic("compression.type")
        .producer()
        .one_of(&["none", "gzip", "snappy", "lz4", "zstd"], "none")
        .medium()
        .alias_of("compression.codec"),
    Property::topic("compression.level").producer().integer(-1, 12, "-1").medium().doc(
        "The level of the codec: gzip 0 to 9, lz4 0 to 12, zstd 1 to 12; snappy has none. -1 is \
             the codec's default.",
    ),
    Property::topic("auto.commit.enable")
        .consumer()
        .boolean("true")
        .deprecated()
        .accepted("it belongs to the old consumer; groups use `enable.auto.commit`")
        .doc("Commit offsets of the old consumer from time to time."),
    Property::topic("enable.auto.commit")
        .consumer()
        .boolean("true")
        .alias_of("auto.commit.enable")
        .deprecated()
        .accepted("it belongs to the old consumer; groups use the global property"),
    Property::topic("auto.commit.interval.ms")
        .consumer()
        .integer(10, 86400000, "60000")
        .high()
        .accepted("it belongs to the old consumer; groups use the global property")
        .doc("How often the old consumer commits."),
    Property::topic("auto.offset.reset")
        .consumer()
        .one_of(
            &["smallest", "earliest", "beginning", "largest", "latest", "end", "error", "none"],
            "largest",
        )
        .high()
        .doc(
            "Where to go on when a partition's offset isn't there (any more): the beginning, the end, \
             or an error.",
        ),
    Property::topic("offset.store.path")
        .consumer()
        .string(".")
        .deprecated()
        .accepted("the older consumer of the C library alone stores offsets in files")
        .doc("The file or folder of the old consumer's offsets."),
    Property::topic("offset.store.sync.interval.ms")
        .consumer()
        .integer(-1, 86400000, "-1")
        .deprecated()
        .accepted("the older consumer of the C library alone stores offsets in files")
        .doc("How often the offset file is synced."),
    Property::topic("offset.store.method")
        .consumer()
        .one_of(&["file", "broker"], "broker")
        .deprecated()
        .accepted("the older consumer of the C library alone stores offsets in files")
        .doc("Where the old consumer stores its offsets."),
    Property::topic("consume.callback.max.messages")
        .consumer()
        .integer(0, 1000000, "0")
        .accepted("only the C library has calls that hand messages to a callback")
        .doc("The most messages one callback consume hands over; 0 means no limit."),
];
