//! Our own properties, and those that librdkafka knows but doesn't document.

use super::Property;

pub(super) const ROWS: &[Property] = &[
    Property::ottla("broker.linger.ms").producer().float_or_auto(0.0, 900000.0, "5").high().doc(
        "How long the records for one broker are gathered, over all its partitions, before they \
             are sent in one request. The time starts with the first record. `auto` needs no number: \
             a record leaves at once while the load is low, and requests leave at the broker's own \
             pace when it grows. The system's timers count in whole milliseconds, and a fraction is \
             rounded up: a request may leave up to 1 ms later than said.",
    ),
    Property::ottla("broker.linger.ms").of_topics().producer().float(0.0, 900000.0, "5").doc(
        "How long the records of this topic are gathered, where it is set; less than the client's \
             `broker.linger.ms` takes along what else waits for the broker, more lets this topic's \
             records wait for longer than the others. Not beside `broker.linger.ms=auto`.",
    ),
    Property::ottla("broker.batch.max.partitions").producer().integer(-1, 1000000, "-1").medium().doc(
        "Send as soon as this many partitions of a broker have records, before the linger is \
             over; -1 and 0 mean no limit.",
    ),
    Property::ottla("produce.request.max.partitions")
        .producer()
        .integer(-1, 1000000, "-1")
        .alias_of("broker.batch.max.partitions"),
    Property::ottla("broker.batch.max.bytes").producer().integer(-1, 1000000000, "-1").medium().doc(
        "Send as soon as about this many bytes are gathered for a broker, before the linger is \
             over; -1 and 0 mean no limit.",
    ),
    Property::ottla("max.request.size").producer().integer(1000, 1000000000, "8388608").medium().doc(
        "The largest Produce request, over all its partitions; what is more goes into the next \
             one. It caps `message.max.bytes` too, as in the Java client.",
    ),
    Property::ottla("metadata.leader.discovery").boolean("true").doc(
        "Take new leaders from the answers of Produce and Fetch (KIP-951), without waiting for the next metadata.",
    ),
    Property::ottla("topic.recreate.policy")
        .one_of(&["error", "reset"], "error")
        .doc(
            "What to do when a topic was deleted and made anew under the same name: `error` stops its \
             partitions with an error until they are assigned or sought anew, `reset` goes on as by \
             `auto.offset.reset`. Either way an event tells it, what was fetched of the old topic is dropped, \
             and no offset of it is used. A producer's messages that were taken for the old topic fail with \
             `error`, and go to the new one with `reset`; its sequence numbers start again.",
        ),
    Property::ottla("config.strict").boolean("false").doc(
        "Make every warning about the configuration an error: deprecated names, properties of the \
             other kind of client, values that were adjusted.",
    ),
    Property::ottla("compression.gzip.level")
        .producer()
        .integer(-1, 9, "-1")
        .doc("The level for gzip, where `compression.level` isn't set; -1 is the codec's default."),
    Property::ottla("compression.lz4.level").producer().integer(-1, 17, "-1").doc(
        "The level for lz4, where `compression.level` isn't set; -1 is the codec's default, more \
             than 12 is 12.",
    ),
    Property::ottla("compression.zstd.level")
        .producer()
        .integer(-131072, 22, "-1")
        .doc("The level for zstd, where `compression.level` isn't set; -1 is the codec's default."),
    Property::ottla("client.software.name")
        .string("ottla")
        .doc("The name of the client's software, as brokers count it (KIP-511)."),
    Property::ottla("client.software.version")
        .string(env!("CARGO_PKG_VERSION"))
        .doc("The version of the client's software, as brokers count it (KIP-511)."),
    Property::ottla("metadata.request.timeout.ms")
        .integer(10, 900000, "60000")
        .deprecated()
        .accepted("`socket.timeout.ms` took its place")
        .doc("How long to wait for metadata."),
    Property::ottla("enable.sparse.connections")
        .boolean("true")
        .deprecated()
        .accepted("connections are opened when they are needed")
        .doc("Connect to a broker only when something has to be sent to it."),
    Property::ottla("test.mock.num.brokers")
        .integer(0, 10000, "0")
        .doc(
            "Start this many mock brokers inside the client, and use them in place of `bootstrap.servers`. The C library \
             does so; a Rust program starts an embedded cluster itself, and gets an error.",
        ),
];
