//! Every field of the statistics: its name, its meaning, and its position in the snapshot. The JSON, the Prometheus text
//! and STATISTICS.md are generated from these rows.

use std::{collections::BTreeMap, sync::Arc};

use ottla_protocol::vocabulary::TopicPartition;

use super::{
    snapshot::{
        BrokerStatistics, CollectorStatistics, ConsumerStatistics, EosStatistics, GroupStatistics,
        PartitionStatistics, Statistics, TopicStatistics,
    },
    window::Window,
};

/// One field of an object `T`.
#[derive(Debug)]
pub struct Field<T: 'static> {
    /// The name in the JSON.
    pub name: &'static str,
    /// The kind of the value.
    pub kind: Kind,
    /// The meaning, for STATISTICS.md.
    pub doc: &'static str,
    /// Reads the value from `T`.
    pub get: fn(&T) -> Value<'_>,
}

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A text.
    Text,
    /// True or false.
    Boolean,
    /// A nested object.
    Object,
}

/// A field's value.
#[derive(Debug)]
pub enum Value<'a> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a str),
    /// True or false.
    Boolean(bool),
    /// A window of recent values.
    Window(&'a Window),
    /// Numbers by name.
    Numbers(&'a BTreeMap<&'static str, i64>),
    /// Brokers by name.
    Brokers(&'a [BrokerStatistics]),
    /// The partitions of a broker.
    Toppars(&'a [TopicPartition]),
    /// The collector of a broker.
    Collector(&'a CollectorStatistics),
    /// Topics by name.
    Topics(&'a BTreeMap<Arc<str>, TopicStatistics>),
    /// Partitions by number.
    Partitions(&'a BTreeMap<i32, PartitionStatistics>),
    /// The consumer group; omitted for clients without one.
    Group(Option<&'a GroupStatistics>),
    /// The state of idempotence; omitted for clients without it.
    Eos(Option<&'a EosStatistics>),
    /// The figures of a consumer; omitted for other clients.
    Consumer(Option<&'a ConsumerStatistics>),
}

macro_rules! fields {
    ($name:ident: $type:ty { $($field:literal $kind:ident $doc:literal $get:expr;)* }) => {
        #[doc = concat!("The fields of [`", stringify!($type), "`].")]
        pub const $name: &[Field<$type>] = &[$(
            Field { name: $field, kind: Kind::$kind, doc: $doc, get: $get },
        )*];
    };
}

fields! { TOP: Statistics {
    "name" Text "The client's name." |s| Value::Text(&s.name);
    "client_id" Text "`client.id`." |s| Value::Text(&s.client_id);
    "type" Text "`producer` or `consumer`." |s| Value::Text(s.kind);
    "ts" Gauge "The client's own clock, in microseconds." |s| Value::Number(s.ts);
    "time" Gauge "Wall clock, in seconds since 1970." |s| Value::Number(s.time);
    "age" Gauge "Microseconds since the client was created." |s| Value::Number(s.age);
    "replyq" Gauge "Events and batches that wait for the application." |s| Value::Number(s.replyq);
    "msg_cnt" Gauge "Messages in the producer's queue, from `send` to the report." |s| Value::Number(s.msg_cnt);
    "msg_size" Gauge "Bytes of the messages in the producer's queue." |s| Value::Number(s.msg_size);
    "msg_max" Gauge "`queue.buffering.max.messages`." |s| Value::Number(s.msg_max);
    "msg_size_max" Gauge "`queue.buffering.max.kbytes`, in bytes." |s| Value::Number(s.msg_size_max);
    "tx" Counter "Requests sent to all brokers that currently have a broker actor." |s| Value::Number(s.tx);
    "tx_bytes" Counter "Bytes sent." |s| Value::Number(s.tx_bytes);
    "rx" Counter "Responses received." |s| Value::Number(s.rx);
    "rx_bytes" Counter "Bytes received." |s| Value::Number(s.rx_bytes);
    "txmsgs" Counter "Messages sent to brokers; retries are not counted." |s| Value::Number(s.txmsgs);
    "txmsg_bytes" Counter "Bytes of keys, values and headers of the sent messages." |s| Value::Number(s.txmsg_bytes);
    "rxmsgs" Counter "Messages fetched." |s| Value::Number(s.rxmsgs);
    "rxmsg_bytes" Counter "Bytes of the fetched messages, in their encoding in the batches." |s| Value::Number(s.rxmsg_bytes);
    "simple_cnt" Gauge "How often the legacy consumer of the C library started a partition \
        (`rd_kafka_consume_start`); always 0 in Rust." |s| Value::Number(s.simple_cnt);
    "metadata_cache_cnt" Gauge "Topics whose metadata is known." |s| Value::Number(s.metadata_cache_cnt);
    "brokers" Object "Brokers by name." |s| Value::Brokers(&s.brokers);
    "topics" Object "Topics by name." |s| Value::Topics(&s.topics);
    "cgrp" Object "The consumer group; absent without one." |s| Value::Group(s.group.as_ref());
    "eos" Object "The state of idempotence; absent if the client is not an idempotent producer." |s| Value::Eos(s.eos.as_ref());
    "consumer" Object "The consumer's calls, which librdkafka does not have; absent for other clients." |s| Value::Consumer(s.consumer.as_ref());
    "telemetry_drops" Counter "Client metrics that were left out of pushes because the broker takes no more bytes (KIP-714)." |s| Value::Number(s.telemetry_drops);
} }

fields! { BROKER: BrokerStatistics {
    "name" Text "host:port/id, or host:port/bootstrap while the ID is unknown; GroupCoordinator for the connections to the \
        group's coordinator, TxnCoordinator for those of a transactional producer to coordinators. All connections to a node are one entry." |b| Value::Text(&b.name);
    "nodeid" Gauge "The broker's ID; -1 for a bootstrap server, for GroupCoordinator and for TxnCoordinator." |b| Value::Number(b.nodeid);
    "nodename" Text "host:port." |b| Value::Text(&b.nodename);
    "source" Text "`learned` from the metadata, `configured`, or `logical` for the coordinator." |b| Value::Text(b.source);
    "state" Text "INIT, DOWN, CONNECT, APIVERSION_QUERY or UP." |b| Value::Text(b.state);
    "stateage" Gauge "Microseconds since the state changed." |b| Value::Number(b.stateage);
    "outbuf_cnt" Gauge "Requests that are not completely written yet." |b| Value::Number(b.outbuf_cnt);
    "outbuf_msg_cnt" Gauge "Messages in these." |b| Value::Number(b.outbuf_msg_cnt);
    "waitresp_cnt" Gauge "Requests that wait for their response." |b| Value::Number(b.waitresp_cnt);
    "waitresp_msg_cnt" Gauge "Messages in these." |b| Value::Number(b.waitresp_msg_cnt);
    "tx" Counter "Requests sent." |b| Value::Number(b.tx);
    "txbytes" Counter "Bytes sent." |b| Value::Number(b.tx_bytes);
    "txerrs" Counter "Requests that were lost with the connection." |b| Value::Number(b.tx_errors);
    "txretries" Counter "Batches that are sent again." |b| Value::Number(b.tx_retries);
    "txidle" Gauge "Microseconds since bytes were last sent; -1 if never." |b| Value::Number(b.tx_idle);
    "req_timeouts" Counter "Requests that timed out." |b| Value::Number(b.request_timeouts);
    "rx" Counter "Responses received." |b| Value::Number(b.rx);
    "rxbytes" Counter "Bytes received." |b| Value::Number(b.rx_bytes);
    "rxerrs" Counter "Invalid responses." |b| Value::Number(b.rx_errors);
    "rxcorriderrs" Counter "Responses whose correlation ID matches no request." |b| Value::Number(b.rx_correlation_id_errors);
    "rxpartial" Counter "Partial message sets: always 0, they are not counted." |_| Value::Number(0);
    "rxidle" Gauge "Microseconds since bytes were last received; -1 if never." |b| Value::Number(b.rx_idle);
    "req" Object "Requests sent, by API; those that the client did not send are listed with 0." |b| Value::Numbers(&b.requests);
    "zbuf_grow" Counter "Decompression buffers that were enlarged: always 0, their size is determined first." |_| Value::Number(0);
    "buf_grow" Counter "Request buffers that were enlarged: always 0, requests are chains of chunks." |_| Value::Number(0);
    "wakeups" Counter "How often another thread woke this broker actor." |b| Value::Number(b.wakeups);
    "connects" Counter "Attempts to connect." |b| Value::Number(b.connects);
    "disconnects" Counter "Connections that ended, whichever side closed them." |b| Value::Number(b.disconnects);
    "int_latency" Object "From `send` of a batch's oldest message to its request, in microseconds." |b| Value::Window(&b.int_latency);
    "outbuf_latency" Object "From the creation of a request until its last byte was written, in microseconds." |b| Value::Window(&b.outbuf_latency);
    "rtt" Object "From the creation of a request to its response, in microseconds." |b| Value::Window(&b.rtt);
    "throttle" Object "The throttle times that the broker returned, in milliseconds." |b| Value::Window(&b.throttle);
    "data_latency" Object "From the creation of a Produce, Fetch or ShareFetch request to its response, in microseconds." |b| Value::Window(&b.data_latency);
    "fetch_size" Object "Bytes of the responses to Fetch and ShareFetch." |b| Value::Window(&b.fetch_size);
    "toppars" Object "The partitions that this client sends to or fetches from this broker." |b| Value::Toppars(&b.toppars);
    "collector" Object "The collector, which librdkafka does not have." |b| Value::Collector(&b.collector);
} }

fields! { COLLECTOR: CollectorStatistics {
    "sends" Counter "Produce requests." |c| Value::Number(c.sends);
    "sends_flush" Counter "Of these, because of a flush or close." |c| Value::Number(c.sends_flush);
    "sends_partitions" Counter "Of these, because `broker.batch.max.partitions` was reached." |c| Value::Number(c.sends_partitions);
    "sends_bytes" Counter "Of these, because `broker.batch.max.bytes` was reached or a batch was full." |c| Value::Number(c.sends_bytes);
    "sends_linger" Counter "Of these, because the linger had elapsed." |c| Value::Number(c.sends_linger);
    "sends_adaptive" Counter "Of these, because `broker.linger.ms=auto` decided so." |c| Value::Number(c.sends_adaptive);
    "waiting" Gauge "Partitions that wait in the collector." |c| Value::Number(c.waiting);
    "messages" Counter "Messages in the requests, including retries." |c| Value::Number(c.messages);
    "bytes" Counter "Bytes of batches in the requests." |c| Value::Number(c.bytes);
    "longest_wait" Gauge "The longest time that a message waited for its first request since the start of the client, \
        in microseconds." |c| Value::Number(c.longest_wait);
    "window" Gauge "The number of requests in flight that `broker.linger.ms=auto` allows; 0 with a fixed linger." |c| Value::Number(c.window);
    "spacing" Gauge "The minimum time between requests with `broker.linger.ms=auto`, in microseconds; 0 with a fixed \
        linger." |c| Value::Number(c.spacing);
    "partitions_per_request" Object "Partitions per request." |c| Value::Window(&c.partitions_per_request);
    "messages_per_request" Object "Messages per request." |c| Value::Window(&c.messages_per_request);
    "bytes_per_request" Object "Bytes of batches per request." |c| Value::Window(&c.bytes_per_request);
    "wait" Object "How long a batch's oldest message waited for its first request, in microseconds." |c| Value::Window(&c.wait);
} }

fields! { WINDOW: Window {
    "min" Gauge "The lowest value." |w| Value::Number(w.min() as i64);
    "max" Gauge "The highest value." |w| Value::Number(w.max() as i64);
    "avg" Gauge "The mean." |w| Value::Number(w.mean() as i64);
    "sum" Gauge "The sum." |w| Value::Number(w.sum() as i64);
    "stddev" Gauge "The standard deviation." |w| Value::Number(w.deviation() as i64);
    "p50" Gauge "50 % of the values are not higher." |w| Value::Number(w.percentile(50.0) as i64);
    "p75" Gauge "75 % of the values are not higher." |w| Value::Number(w.percentile(75.0) as i64);
    "p90" Gauge "90 % of the values are not higher." |w| Value::Number(w.percentile(90.0) as i64);
    "p95" Gauge "95 % of the values are not higher." |w| Value::Number(w.percentile(95.0) as i64);
    "p99" Gauge "99 % of the values are not higher." |w| Value::Number(w.percentile(99.0) as i64);
    "p99_99" Gauge "99.99 % of the values are not higher." |w| Value::Number(w.percentile(99.99) as i64);
    "outofrange" Gauge "The number of values of 2^36 and above, which are not in the histogram." |w| Value::Number(w.out_of_range() as i64);
    "hdrsize" Gauge "The histogram's memory in bytes." |w| Value::Number(w.memory() as i64);
    "cnt" Gauge "The number of values." |w| Value::Number(w.count() as i64);
} }

fields! { TOPIC: TopicStatistics {
    "age" Gauge "Milliseconds since the client first used the topic; always 0 for a consumer." |t| Value::Number(t.age);
    "metadata_age" Gauge "Milliseconds since the last metadata." |t| Value::Number(t.metadata_age);
    "batchsize" Object "The sizes of sent batches, in bytes." |t| Value::Window(&t.batchsize);
    "batchcnt" Object "The number of messages of sent batches." |t| Value::Window(&t.batchcnt);
    "partitions" Object "Partitions by number; -1 is for messages that have no partition yet." |t| Value::Partitions(&t.partitions);
} }

fields! { PARTITION: PartitionStatistics {
    "broker" Gauge "The broker that the client sends to or fetches from; -1 if none." |p| Value::Number(p.broker);
    "leader" Gauge "The leader's ID according to the metadata; -1 if none." |p| Value::Number(p.leader);
    "desired" Boolean "The application requested the partition: true if it is assigned to a consumer, always false \
        for a producer." |p| Value::Boolean(p.desired);
    "unknown" Boolean "The metadata contains the topic but not this partition." |p| Value::Boolean(p.unknown);
    "msgq_cnt" Gauge "Messages that wait in the collector." |p| Value::Number(p.msgq_cnt);
    "msgq_bytes" Gauge "Bytes of these." |p| Value::Number(p.msgq_bytes);
    "xmit_msgq_cnt" Gauge "Messages that wait for a retry." |p| Value::Number(p.xmit_msgq_cnt);
    "xmit_msgq_bytes" Gauge "Bytes of these." |p| Value::Number(p.xmit_msgq_bytes);
    "fetchq_cnt" Gauge "Fetched messages that wait for the application." |p| Value::Number(p.fetchq_cnt);
    "fetchq_size" Gauge "Bytes of these." |p| Value::Number(p.fetchq_size);
    "fetch_state" Text "none, active or paused." |p| Value::Text(p.fetch_state);
    "query_offset" Gauge "The logical offset that is being looked up: always -1001, because a partition is fetched \
        only when its offset is known." |p| Value::Number(p.query_offset);
    "next_offset" Gauge "The offset to fetch next; 0 if it is not fetched." |p| Value::Number(p.next_offset);
    "app_offset" Gauge "The offset after the last message that the application received since the partition was \
        assigned or the last seek; -1001 before the first one." |p| Value::Number(p.app_offset);
    "stored_offset" Gauge "The stored offset, which will be committed next; -1001 if none is stored, and always in \
        Rust, because only the C library stores offsets." |p| Value::Number(p.stored_offset);
    "stored_leader_epoch" Gauge "Its leader epoch; -1 if unknown." |p| Value::Number(p.stored_leader_epoch);
    "commited_offset" Gauge "The same as committed_offset, with the name that older programs read." |p| Value::Number(p.committed_offset);
    "committed_offset" Gauge "The offset that this client committed last, or the committed offset at its start; -1001 \
        if unknown." |p| Value::Number(p.committed_offset);
    "committed_leader_epoch" Gauge "Its leader epoch; -1 if unknown." |p| Value::Number(p.committed_leader_epoch);
    "eof_offset" Gauge "The offset at which the end of the partition was last reached; -1001 if never." |p| Value::Number(p.eof_offset);
    "lo_offset" Gauge "The log start offset." |p| Value::Number(p.lo_offset);
    "hi_offset" Gauge "The log end offset." |p| Value::Number(p.hi_offset);
    "ls_offset" Gauge "The last stable offset; the log end offset if the broker does not report it." |p| Value::Number(p.ls_offset);
    "consumer_lag" Gauge "Messages from committed_offset to the log end offset (with `isolation.level=read_committed` \
        to ls_offset); -1 if unknown." |p| Value::Number(p.consumer_lag);
    "consumer_lag_stored" Gauge "Messages from stored_offset to the same offset; -1 if unknown." |p| Value::Number(p.consumer_lag_stored);
    "leader_epoch" Gauge "The leader epoch; -1 if unknown." |p| Value::Number(p.leader_epoch);
    "txmsgs" Counter "Messages sent; retries are not counted." |p| Value::Number(p.txmsgs);
    "txbytes" Counter "Bytes of these." |p| Value::Number(p.txbytes);
    "rxmsgs" Counter "Messages fetched." |p| Value::Number(p.rxmsgs);
    "rxbytes" Counter "Bytes of these." |p| Value::Number(p.rxbytes);
    "msgs" Counter "Messages that were accepted for this partition (producer) or fetched (consumer)." |p| Value::Number(p.msgs);
    "rx_ver_drops" Counter "Fetched messages that were discarded before the application received them, for example \
        after a seek." |p| Value::Number(p.rx_ver_drops);
    "msgs_inflight" Gauge "Messages in flight." |p| Value::Number(p.msgs_inflight);
    "next_ack_seq" Gauge "The next sequence number to be acknowledged." |p| Value::Number(p.next_ack_seq);
    "next_err_seq" Gauge "The next sequence number that may fail: always equal to next_ack_seq." |p| Value::Number(p.next_err_seq);
    "acked_msgid" Counter "The number of acknowledged messages." |p| Value::Number(p.acked_msgid);
} }

fields! { GROUP: GroupStatistics {
    "state" Text "The state of the coordinator: `init`, `wait-coord` or `up`." |g| Value::Text(g.state);
    "stateage" Gauge "Milliseconds since it changed." |g| Value::Number(g.stateage);
    "join_state" Text "The state of joining the group: `init`, `wait-join`, `wait-metadata`, `wait-sync`, `wait-assign-call`, \
        `wait-unassign-call`, `wait-unassign-to-complete`, `wait-incr-unassign-to-complete` or `steady`." |g| Value::Text(g.join_state);
    "rebalance_age" Gauge "Milliseconds since the last rebalance that `rebalance_cnt` counts; 0 before the first one." |g| Value::Number(g.rebalance_age);
    "rebalance_cnt" Counter "How often the member took over, gave up or lost partitions." |g| Value::Number(g.rebalance_cnt);
    "rebalance_reason" Text "The reason why the member last joined, rebalanced or left." |g| Value::Text(&g.rebalance_reason);
    "assignment_size" Gauge "The number of partitions that are assigned to this member." |g| Value::Number(g.assignment_size);
    "rebalance_latency" Object "From the begin of a rebalance until the member is steady again, in milliseconds." |g| Value::Window(&g.rebalance_latency);
    "rebalance_millis" Counter "Milliseconds that the member spent in rebalances." |g| Value::Number(g.rebalance_millis);
} }

fields! { CONSUMER: ConsumerStatistics {
    "poll_idle" Counter "Microseconds that the application waited in polls." |c| Value::Number(c.poll_idle);
    "time_between_polls" Object "From one poll of a share consumer to the next, in milliseconds." |c| Value::Window(&c.time_between_polls);
    "commit_latency" Object "From the creation of an OffsetCommit request to its response, in microseconds." |c| Value::Window(&c.commit_latency);
    "max_lag" Gauge "The most messages that a partition has after the last one that the application received; -1 if \
        unknown." |c| Value::Number(c.max_lag);
    "acknowledgements" Counter "Records whose acknowledgement a share consumer sent." |c| Value::Number(c.acknowledgements);
} }

fields! { EOS: EosStatistics {
    "idemp_state" Text "WaitPID or Assigned." |e| Value::Text(e.idemp_state);
    "idemp_stateage" Gauge "Milliseconds since the state changed; during the first wait, since the client was created." |e| Value::Number(e.idemp_stateage);
    "txn_state" Text "The transactional producer's state: Init, WaitPID, ReadyNotAcked, Ready, InTransaction, BeginCommit, CommittingTransaction, CommitNotAcked, BeginAbort, AbortingTransaction, AbortedNotAcked, AbortableError or FatalError. Init without `transactional.id`." |e| Value::Text(e.txn_state);
    "txn_stateage" Gauge "Milliseconds since the transaction state changed; 0 without `transactional.id`." |e| Value::Number(e.txn_stateage);
    "txn_may_enq" Boolean "The transaction permits sending messages; true without `transactional.id`." |e| Value::Boolean(e.txn_may_enq);
    "producer_id" Gauge "The producer ID; -1 before there is one." |e| Value::Number(e.producer_id);
    "producer_epoch" Gauge "The producer epoch; -1 before there is one." |e| Value::Number(e.producer_epoch);
    "epoch_cnt" Counter "How often the producer ID or epoch was assigned or renewed." |e| Value::Number(e.epoch_cnt);
} }
