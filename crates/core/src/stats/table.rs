//! Every field of the statistics: its name, what it means, and where it is in the snapshot. The JSON, the Prometheus
//! text and STATISTICS.md come from these rows.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    snapshot::{
        BrokerStatistics, CollectorStatistics, EosStatistics, GroupStatistics, PartitionStatistics,
        Statistics, TopicStatistics,
    },
    window::Window,
};

/// One field of an object `T`.
#[derive(Debug)]
pub struct Field<T: 'static> {
    /// Its name in the JSON.
    pub name: &'static str,
    /// What kind of value it is.
    pub kind: Kind,
    /// What it means.
    pub doc: &'static str,
    /// Reads it.
    pub get: fn(&T) -> Value<'_>,
}

/// What kind of value a field is.
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
    /// An object of its own.
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
    /// A window.
    Window(&'a Window),
    /// Numbers by name.
    Numbers(&'a BTreeMap<&'static str, i64>),
    /// Brokers by name.
    Brokers(&'a [BrokerStatistics]),
    /// The partitions of a broker.
    Toppars(&'a [(Arc<str>, i32)]),
    /// The collector of a broker.
    Collector(&'a CollectorStatistics),
    /// Topics by name.
    Topics(&'a BTreeMap<Arc<str>, TopicStatistics>),
    /// Partitions by number.
    Partitions(&'a BTreeMap<i32, PartitionStatistics>),
    /// The group; left out where there is none.
    Group(Option<&'a GroupStatistics>),
    /// The idempotent producer; left out where there is none.
    Eos(Option<&'a EosStatistics>),
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
    "type" Text "producer or consumer." |s| Value::Text(s.kind);
    "ts" Counter "The client's own clock, in microseconds." |s| Value::Number(s.ts);
    "time" Counter "Wall clock, in seconds since 1970." |s| Value::Number(s.time);
    "age" Counter "Microseconds since the client was made." |s| Value::Number(s.age);
    "replyq" Gauge "Events and batches that wait for the application." |s| Value::Number(s.replyq);
    "msg_cnt" Gauge "Messages in the producer's queue, from `send` to the report." |s| Value::Number(s.msg_cnt);
    "msg_size" Gauge "Bytes of the messages in the producer's queue." |s| Value::Number(s.msg_size);
    "msg_max" Gauge "`queue.buffering.max.messages`." |s| Value::Number(s.msg_max);
    "msg_size_max" Gauge "`queue.buffering.max.kbytes`, in bytes." |s| Value::Number(s.msg_size_max);
    "tx" Counter "Requests sent to the brokers there are owners for now." |s| Value::Number(s.tx);
    "tx_bytes" Counter "Bytes sent." |s| Value::Number(s.tx_bytes);
    "rx" Counter "Answers received." |s| Value::Number(s.rx);
    "rx_bytes" Counter "Bytes received." |s| Value::Number(s.rx_bytes);
    "txmsgs" Counter "Messages sent to brokers; one that is sent again counts once." |s| Value::Number(s.txmsgs);
    "txmsg_bytes" Counter "Bytes of keys, values and headers of the messages sent." |s| Value::Number(s.txmsg_bytes);
    "rxmsgs" Counter "Messages fetched." |s| Value::Number(s.rxmsgs);
    "rxmsg_bytes" Counter "Bytes of the messages fetched, as they lie in their batches." |s| Value::Number(s.rxmsg_bytes);
    "simple_cnt" Gauge "How often the older calls of the C library began to consume a partition (`rd_kafka_consume_start`); always 0 in Rust." |s| Value::Number(s.simple_cnt);
    "metadata_cache_cnt" Gauge "Topics whose metadata is known." |s| Value::Number(s.metadata_cache_cnt);
    "brokers" Object "Brokers by name." |s| Value::Brokers(&s.brokers);
    "topics" Object "Topics by name." |s| Value::Topics(&s.topics);
    "cgrp" Object "The consumer's group. Never there yet: there are no consumer groups yet." |s| Value::Group(s.group.as_ref());
    "eos" Object "The idempotent producer, if it is one." |s| Value::Eos(s.eos.as_ref());
} }

fields! { BROKER: BrokerStatistics {
    "name" Text "host:port/id; host:port/bootstrap while the id is not known." |b| Value::Text(&b.name);
    "nodeid" Gauge "The broker's id; -1 of a bootstrap server." |b| Value::Number(b.nodeid);
    "nodename" Text "host:port." |b| Value::Text(&b.nodename);
    "source" Text "learned from the metadata, or configured." |b| Value::Text(b.source);
    "state" Text "INIT, DOWN, CONNECT, APIVERSION_QUERY or UP." |b| Value::Text(b.state);
    "stateage" Gauge "Microseconds since the state changed." |b| Value::Number(b.stateage);
    "outbuf_cnt" Gauge "Requests that are not wholly written yet." |b| Value::Number(b.outbuf_cnt);
    "outbuf_msg_cnt" Gauge "Messages in these." |b| Value::Number(b.outbuf_msg_cnt);
    "waitresp_cnt" Gauge "Requests that wait for their answer." |b| Value::Number(b.waitresp_cnt);
    "waitresp_msg_cnt" Gauge "Messages in these." |b| Value::Number(b.waitresp_msg_cnt);
    "tx" Counter "Requests sent." |b| Value::Number(b.tx);
    "txbytes" Counter "Bytes sent." |b| Value::Number(b.tx_bytes);
    "txerrs" Counter "Requests that were lost with the connection." |b| Value::Number(b.tx_errors);
    "txretries" Counter "Batches that go again." |b| Value::Number(b.tx_retries);
    "txidle" Gauge "Microseconds since something was sent; -1 if nothing was." |b| Value::Number(b.tx_idle);
    "req_timeouts" Counter "Requests that had no answer in time." |b| Value::Number(b.request_timeouts);
    "rx" Counter "Answers received." |b| Value::Number(b.rx);
    "rxbytes" Counter "Bytes received." |b| Value::Number(b.rx_bytes);
    "rxerrs" Counter "Answers that could not be understood." |b| Value::Number(b.rx_errors);
    "rxcorriderrs" Counter "Answers to nothing that was asked." |b| Value::Number(b.rx_correlation_id_errors);
    "rxpartial" Counter "Cut-off message sets: always 0, what is cut off is not counted." |_| Value::Number(0);
    "rxidle" Gauge "Microseconds since something was received; -1 if nothing was." |b| Value::Number(b.rx_idle);
    "req" Object "Requests sent, by API." |b| Value::Numbers(&b.requests);
    "zbuf_grow" Counter "Decompression buffers that were enlarged: always 0, they are measured first." |_| Value::Number(0);
    "buf_grow" Counter "Request buffers that were enlarged: always 0, requests are chains of chunks." |_| Value::Number(0);
    "wakeups" Counter "How often another thread woke this broker's owner." |b| Value::Number(b.wakeups);
    "connects" Counter "Attempts to connect." |b| Value::Number(b.connects);
    "disconnects" Counter "Connections that ended, by whomever." |b| Value::Number(b.disconnects);
    "int_latency" Object "From `send` of a batch's oldest message to its request, in microseconds." |b| Value::Window(&b.int_latency);
    "outbuf_latency" Object "From a request's making to its last byte's writing, in microseconds." |b| Value::Window(&b.outbuf_latency);
    "rtt" Object "From a request's making to its answer, in microseconds." |b| Value::Window(&b.rtt);
    "throttle" Object "How long the broker asked to hold back, in milliseconds." |b| Value::Window(&b.throttle);
    "toppars" Object "The partitions that are sent to or fetched from this broker." |b| Value::Toppars(&b.toppars);
    "collector" Object "What the collector did; librdkafka has no such thing." |b| Value::Collector(&b.collector);
} }

fields! { COLLECTOR: CollectorStatistics {
    "sends" Counter "Produce requests made." |c| Value::Number(c.sends);
    "sends_flush" Counter "Of these, because of a flush or close." |c| Value::Number(c.sends_flush);
    "sends_partitions" Counter "Of these, because `broker.batch.max.partitions` was reached." |c| Value::Number(c.sends_partitions);
    "sends_bytes" Counter "Of these, because `broker.batch.max.bytes` was reached or a batch was full." |c| Value::Number(c.sends_bytes);
    "sends_linger" Counter "Of these, because the linger was over." |c| Value::Number(c.sends_linger);
    "sends_adaptive" Counter "Of these, because `broker.linger.ms=auto` found that it is time." |c| Value::Number(c.sends_adaptive);
    "waiting" Gauge "Partitions that wait in the collector." |c| Value::Number(c.waiting);
    "messages" Counter "Messages in the requests; one that goes again counts again." |c| Value::Number(c.messages);
    "bytes" Counter "Bytes of batches in the requests." |c| Value::Number(c.bytes);
    "longest_wait" Gauge "The longest that a message waited for its first request, in microseconds, since the client began." |c| Value::Number(c.longest_wait);
    "window" Gauge "Requests that `broker.linger.ms=auto` lets be in flight; 0 with a fixed linger." |c| Value::Number(c.window);
    "spacing" Gauge "Microseconds that `broker.linger.ms=auto` keeps between requests; 0 with a fixed linger." |c| Value::Number(c.spacing);
    "partitions_per_request" Object "Partitions in a request." |c| Value::Window(&c.partitions_per_request);
    "messages_per_request" Object "Messages in a request." |c| Value::Window(&c.messages_per_request);
    "bytes_per_request" Object "Bytes of batches in a request." |c| Value::Window(&c.bytes_per_request);
    "wait" Object "How long a batch's oldest message waited for its first request, in microseconds." |c| Value::Window(&c.wait);
} }

fields! { WINDOW: Window {
    "min" Gauge "The lowest value." |w| Value::Number(w.min() as i64);
    "max" Gauge "The highest value." |w| Value::Number(w.max() as i64);
    "avg" Gauge "The mean." |w| Value::Number(w.mean() as i64);
    "sum" Gauge "The sum." |w| Value::Number(w.sum() as i64);
    "stddev" Gauge "The standard deviation." |w| Value::Number(w.deviation() as i64);
    "p50" Gauge "Half of the values are not higher." |w| Value::Number(w.percentile(50.0) as i64);
    "p75" Gauge "75 % are not higher." |w| Value::Number(w.percentile(75.0) as i64);
    "p90" Gauge "90 % are not higher." |w| Value::Number(w.percentile(90.0) as i64);
    "p95" Gauge "95 % are not higher." |w| Value::Number(w.percentile(95.0) as i64);
    "p99" Gauge "99 % are not higher." |w| Value::Number(w.percentile(99.0) as i64);
    "p99_99" Gauge "99.99 % are not higher." |w| Value::Number(w.percentile(99.99) as i64);
    "outofrange" Gauge "Values that were too high to be counted, from 2^36 on." |w| Value::Number(w.out_of_range() as i64);
    "hdrsize" Gauge "The histogram's memory in bytes." |w| Value::Number(w.memory() as i64);
    "cnt" Gauge "How many values there were." |w| Value::Number(w.count() as i64);
} }

fields! { TOPIC: TopicStatistics {
    "age" Gauge "Milliseconds since the client uses the topic; always 0 of a consumer's." |t| Value::Number(t.age);
    "metadata_age" Gauge "Milliseconds since the last metadata came." |t| Value::Number(t.metadata_age);
    "batchsize" Object "Bytes of the batches sent." |t| Value::Window(&t.batchsize);
    "batchcnt" Object "Messages of the batches sent." |t| Value::Window(&t.batchcnt);
    "partitions" Object "Partitions by number." |t| Value::Partitions(&t.partitions);
} }

fields! { PARTITION: PartitionStatistics {
    "broker" Gauge "The broker that it is sent to or fetched from; -1 if none." |p| Value::Number(p.broker);
    "leader" Gauge "The leader's id, as the metadata have it; -1 if none." |p| Value::Number(p.leader);
    "desired" Boolean "The application asked for it: true of what a consumer is assigned, always false of a producer." |p| Value::Boolean(p.desired);
    "unknown" Boolean "The metadata do not have it, though they have its topic." |p| Value::Boolean(p.unknown);
    "msgq_cnt" Gauge "Messages that wait in the collector." |p| Value::Number(p.msgq_cnt);
    "msgq_bytes" Gauge "Bytes of these." |p| Value::Number(p.msgq_bytes);
    "xmit_msgq_cnt" Gauge "Messages that wait to be sent again." |p| Value::Number(p.xmit_msgq_cnt);
    "xmit_msgq_bytes" Gauge "Bytes of these." |p| Value::Number(p.xmit_msgq_bytes);
    "fetchq_cnt" Gauge "Fetched messages that wait for the application." |p| Value::Number(p.fetchq_cnt);
    "fetchq_size" Gauge "Bytes of these." |p| Value::Number(p.fetchq_size);
    "fetch_state" Text "none, active or paused." |p| Value::Text(p.fetch_state);
    "query_offset" Gauge "The offset that is being asked for: always -1001, a partition is fetched only once it is known." |p| Value::Number(p.query_offset);
    "next_offset" Gauge "The offset to fetch next." |p| Value::Number(p.next_offset);
    "app_offset" Gauge "The offset after the last message that was handed out." |p| Value::Number(p.app_offset);
    "stored_offset" Gauge "The offset to commit. No value yet, always -1001." |p| Value::Number(p.stored_offset);
    "stored_leader_epoch" Gauge "Its leader epoch. No value yet, always -1." |p| Value::Number(p.stored_leader_epoch);
    "committed_offset" Gauge "The committed offset. No value yet, always -1001." |p| Value::Number(p.committed_offset);
    "committed_leader_epoch" Gauge "Its leader epoch. No value yet, always -1." |p| Value::Number(p.committed_leader_epoch);
    "eof_offset" Gauge "The end that was told last; -1001 if none." |p| Value::Number(p.eof_offset);
    "lo_offset" Gauge "The log's start." |p| Value::Number(p.lo_offset);
    "hi_offset" Gauge "The log's end." |p| Value::Number(p.hi_offset);
    "ls_offset" Gauge "The last stable offset; the log's end where it is not told." |p| Value::Number(p.ls_offset);
    "consumer_lag" Gauge "Messages between app_offset and the log's end; -1 if not known." |p| Value::Number(p.consumer_lag);
    "consumer_lag_stored" Gauge "Messages between stored_offset and the log's end. No value yet, always -1." |p| Value::Number(p.consumer_lag_stored);
    "leader_epoch" Gauge "The leader's epoch; -1 if not known." |p| Value::Number(p.leader_epoch);
    "txmsgs" Counter "Messages sent; one that is sent again counts once." |p| Value::Number(p.txmsgs);
    "txbytes" Counter "Bytes of these." |p| Value::Number(p.txbytes);
    "rxmsgs" Counter "Messages fetched." |p| Value::Number(p.rxmsgs);
    "rxbytes" Counter "Bytes of these." |p| Value::Number(p.rxbytes);
    "msgs" Counter "Messages that were taken for it (producer) or fetched (consumer)." |p| Value::Number(p.msgs);
    "rx_ver_drops" Counter "Fetched messages that were out of date, after a seek for example, before the application saw them." |p| Value::Number(p.rx_ver_drops);
    "msgs_inflight" Gauge "Messages in flight." |p| Value::Number(p.msgs_inflight);
    "next_ack_seq" Gauge "The sequence number that is to be acknowledged next." |p| Value::Number(p.next_ack_seq);
    "next_err_seq" Gauge "The sequence number that may fail next: always equal to next_ack_seq." |p| Value::Number(p.next_err_seq);
    "acked_msgid" Counter "How many messages were acknowledged." |p| Value::Number(p.acked_msgid);
} }

fields! { GROUP: GroupStatistics {
    "state" Text "The state of the connection to the coordinator. This and the fields below are never there yet." |g| Value::Text(g.state);
    "stateage" Gauge "Milliseconds since it changed." |g| Value::Number(g.stateage);
    "join_state" Text "How far joining is." |g| Value::Text(g.join_state);
    "rebalance_age" Gauge "Milliseconds since the last rebalance." |g| Value::Number(g.rebalance_age);
    "rebalance_cnt" Counter "Rebalances." |g| Value::Number(g.rebalance_cnt);
    "rebalance_reason" Text "Why the last one was." |g| Value::Text(&g.rebalance_reason);
    "assignment_size" Gauge "Partitions that this member has." |g| Value::Number(g.assignment_size);
} }

fields! { EOS: EosStatistics {
    "idemp_state" Text "WaitPID or Assigned." |e| Value::Text(e.idemp_state);
    "idemp_stateage" Gauge "Milliseconds since it changed; of the first wait, since the client was made." |e| Value::Number(e.idemp_stateage);
    "txn_state" Text "No value yet, always Init: there are no transactions yet." |e| Value::Text(e.txn_state);
    "txn_stateage" Gauge "Milliseconds since it changed. No value yet, always 0." |e| Value::Number(e.txn_stateage);
    "txn_may_enq" Boolean "The transaction lets messages be sent. No value yet, always true." |e| Value::Boolean(e.txn_may_enq);
    "producer_id" Gauge "The producer's id; -1 before there is one." |e| Value::Number(e.producer_id);
    "producer_epoch" Gauge "Its epoch; -1 before there is one." |e| Value::Number(e.producer_epoch);
    "epoch_cnt" Counter "How often the identity was given or renewed." |e| Value::Number(e.epoch_cnt);
} }
