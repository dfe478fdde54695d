//! Our own properties, and those that librdkafka knows but doesn't document.

use super::Property;

pub(super) const ROWS: &[Property] = &[
    Property::ottla("broker.linger.ms").producer().float_or_auto(0.0, 900000.0, "5").high().doc(
        "How long the client collects records for one broker, over all its partitions, before it sends them in one \
         request. The time starts with the first record. With `auto` the client sends a record at once while the load \
         is low; at higher loads it collects records while requests are in flight. Timers have a resolution of one \
         millisecond, and fractions are rounded up: a request may be sent up to 1 ms later than configured.",
    ),
    Property::ottla("broker.linger.ms").of_topics().producer().float(0.0, 900000.0, "5").doc(
        "The linger of this topic's records, in place of the client's `broker.linger.ms`. When a shorter one ends, \
         the request also contains the other records that wait for the broker. With a longer one, this topic's \
         records wait longer than those of other topics. It can't be combined with `broker.linger.ms=auto`.",
    ),
    Property::ottla("broker.batch.max.partitions").producer().integer(-1, 1000000, "-1").medium().doc(
        "Send as soon as this many partitions of a broker have records, even before the linger has elapsed; -1 and 0 \
         mean no limit.",
    ),
    Property::ottla("produce.request.max.partitions")
        .producer()
        .integer(-1, 1000000, "-1")
        .alias_of("broker.batch.max.partitions"),
    Property::ottla("broker.batch.max.bytes").producer().integer(-1, 1000000000, "-1").medium().doc(
        "Send as soon as about this many bytes are collected for a broker, even before the linger has elapsed; -1 and \
         0 mean no limit.",
    ),
    Property::ottla("max.request.size").producer().integer(1000, 1000000000, "8388608").medium().doc(
        "The maximum size of a Produce request, over all its partitions; further batches go into the next request. It \
         also limits `message.max.bytes`, as in the Java client.",
    ),
    Property::ottla("client.memory.max.bytes").integer(0, 1000000000000, "0").medium().doc(
        "The most memory that a client uses for records, in bytes; 0 means no limit besides those of the queues. A producer \
         counts queued messages with what their batches take, and their compressed form if a topic has a codec; at the limit \
         produce fails or waits as with a full queue. A consumer counts queued records, responses that it has asked for and \
         what they decompress to; at the limit it asks for no more until the application has taken records. A message or a \
         batch above the limit is let through on its own. Queued records of a paused partition count, too; \
         they are dropped, and fetched again after it is resumed, if others have no room. Share consumers decompress what they have acquired, beyond the limit.",
    ),
    Property::ottla("io.on.waiting.threads").boolean("false").doc(
        "A thread that waits for the client (in Rust: for a delivery, a flush, records, or an administrative call) does the I/O threads' work \
         meanwhile, so that a response needs no change of threads; and a thread that sends records one at a time, and waits for each, writes its \
         requests itself. The I/O threads stay: they do what no thread waits for. It has no effect outside Linux, nor in a \
         process with a client whose I/O threads call functions of the application (delivery callbacks, interceptors, statistics, assignors), \
         nor in C.",
    ),
    Property::ottla("metadata.leader.discovery").boolean("true").doc(
        "Use the new leaders that Produce and Fetch responses name (KIP-951), without waiting for the next metadata.",
    ),
    Property::ottla("topic.recreate.policy")
        .one_of(&["error", "reset"], "reset")
        .doc(
            "The action when a topic was deleted and recreated with the same name: `reset` continues at the offset \
             given by `auto.offset.reset`; `error` stops its partitions with an error until they are assigned again \
             or the application seeks. Both report an event, discard fetched records of the old topic, and use none of \
             its offsets. A producer's messages that were accepted for the old topic fail with `error`, and go to the \
             new one with `reset`; sequence numbers restart.",
        ),
    Property::ottla("fetch.damaged.batch.policy")
        .consumer()
        .one_of(&["stop", "skip"], "stop")
        .doc(
            "The action when a fetched batch can't be decoded: `stop` stays at its offset, reports an error and fetches it \
             again every `fetch.error.backoff.ms`, until it can be decoded or the application seeks; `skip` fetches it \
             three times and then continues at the next whole batch, with an error that names the offsets that are left \
             out. If the checksum is right or not checked, records before the first one that can't be read are delivered. \
             Share consumers reject or release its records.",
        ),
    Property::ottla("share.acquire.mode").consumer().one_of(&["batch_optimized", "record_limit"], "batch_optimized").doc(
        "`record_limit`: a poll of a share consumer returns at most `max.poll.records` (KIP-1206, Kafka 4.2). \
         `batch_optimized`: brokers deliver whole batches, so that it may return more.",
    ),
    Property::ottla("share.renew.locks").consumer().boolean("false").doc(
        "Renew the acquisition locks of records that the application has, after two thirds of their time, until it \
         acknowledges them (KIP-1222, Kafka 4.2). The group's `share.renew.acknowledge.enable` must permit it.",
    ),
    Property::ottla("share.delivery.count.limit").consumer().integer(0, 32767, "5").doc(
        "The group's own `share.delivery.count.limit`, as far as the application knows it. A record whose next delivery \
         is the last one is handed out alone, after all others are acknowledged, so that a record that ends the process \
         takes no others with it; 0 turns this off.",
    ),
    Property::ottla("drop.timeout.ms").producer().integer(0, 900000, "5000").doc(
        "How long the unsent messages of a Rust producer are delivered in the background after its last handle was \
         dropped, which does not wait; 0 discards them. Remaining messages are reported as not delivered; if the \
         producer has no delivery reports, their number is printed to stderr. They are discarded at once if the \
         thread panics, and in the C library by `rd_kafka_destroy()`.",
    ),
    Property::ottla("config.strict").boolean("false").doc(
        "Turn every warning about the configuration into an error: deprecated names, consumer properties of a \
         producer and the reverse, adjusted values.",
    ),
    Property::ottla("compression.gzip.level")
        .producer()
        .integer(-1, 9, "-1")
        .doc("The compression level for gzip if `compression.level` is not set; -1 is the codec's default."),
    Property::ottla("compression.lz4.level").producer().integer(-1, 17, "-1").doc(
        "The compression level for lz4 if `compression.level` is not set; -1 is the codec's default, values above 12 \
         mean 12.",
    ),
    Property::ottla("compression.zstd.level")
        .producer()
        .integer(-131072, 22, "-1")
        .doc("The compression level for zstd if `compression.level` is not set; -1 is the codec's default."),
    Property::ottla("client.software.name")
        .string("ottla")
        .doc("The name of the client software, which brokers expose in their metrics (KIP-511)."),
    Property::ottla("client.software.version")
        .string(env!("CARGO_PKG_VERSION"))
        .doc("The version of the client software, which brokers expose in their metrics (KIP-511)."),
    Property::ottla("proxy.url").string("").medium().doc(
        "The proxy through which brokers are reached: `socks5://[user:password@]host:port` (`socks5h` is the same) or \
         `http://[user:password@]host:port`, whose method CONNECT is used. The proxy resolves the brokers' names. TLS and SASL \
         are end to end. Write `%` and two hexadecimal digits for characters of the user name and the password that have a \
         meaning in URLs. Requests for tokens of an identity provider do not use it.",
    ),
    Property::ottla("ssl.legacy.certificates").boolean("false").doc(
        "Accept a broker's certificate that is itself among the trusted ones, although it is a self-signed CA certificate, \
         has version 1, or has no subjectAltName. Its bytes, its time and its name must match.",
    ),
    Property::ottla("ssl.reload.interval.ms").integer(0, 86400000, "30000").doc(
        "How often the files of certificates and keys are checked for changes; new connections use the new ones. 0 reads \
         them once.",
    ),
    Property::ottla("sasl.delegation.token").boolean("false").doc(
        "`sasl.username` and `sasl.password` are the ID and the HMAC of a delegation token (KIP-48), for SCRAM. In Java: \
         `tokenauth=true` in `sasl.jaas.config`.",
    ),
    Property::ottla("sasl.aws.region").string("").doc(
        "The AWS region of the brokers, for AWS_MSK_IAM. Otherwise it is that of `AWS_REGION`, of the profile, or of the broker's \
         name.",
    ),
    Property::ottla("sasl.aws.profile")
        .string("")
        .doc("The profile with the keys for AWS_MSK_IAM, in the files of AWS's tools. In Java: `awsProfileName` in `sasl.jaas.config`."),
    Property::ottla("sasl.aws.access.key.id")
        .string("")
        .doc("The ID of the access key for AWS_MSK_IAM. Without it, keys are searched as AWS's tools do."),
    Property::ottla("sasl.aws.secret.access.key").string("").doc("The secret access key for AWS_MSK_IAM."),
    Property::ottla("sasl.aws.session.token").string("").doc("The session token of temporary keys for AWS_MSK_IAM."),
    Property::ottla("sasl.scram.max.iterations").integer(4096, 100000000, "1000000").doc(
        "The most iterations that a broker may ask for with SCRAM; each costs the client about 0.5 us. Kafka's brokers \
         store 4,096 to 16,384.",
    ),
    Property::ottla("metadata.request.timeout.ms")
        .integer(10, 900000, "60000")
        .deprecated()
        .accepted("`socket.timeout.ms` replaces it")
        .doc("The timeout of metadata requests."),
    Property::ottla("enable.sparse.connections")
        .boolean("true")
        .deprecated()
        .accepted("connections are opened when they are needed")
        .doc("Connect to a broker only when there is a request for it."),
    Property::ottla("test.mock.num.brokers")
        .integer(0, 10000, "0")
        .doc(
            "Start this many mock brokers inside the client, and use them instead of `bootstrap.servers`. Only the C \
             library supports it; a Rust program gets an error and can start an embedded cluster itself.",
        ),
];
