//! The snapshot: librdkafka's fields under their own names, and the collector's. What a field means stands in
//! [`table`](super::table), once.

use std::{collections::BTreeMap, sync::Arc};

use super::window::Window;
use crate::produce::collector::SendReason;

/// A client at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct Statistics {
    pub name: String,
    pub client_id: String,
    pub kind: &'static str,
    pub ts: i64,
    pub time: i64,
    pub age: i64,
    pub replyq: i64,
    pub msg_cnt: i64,
    pub msg_size: i64,
    pub msg_max: i64,
    pub msg_size_max: i64,
    pub tx: i64,
    pub tx_bytes: i64,
    pub rx: i64,
    pub rx_bytes: i64,
    pub txmsgs: i64,
    pub txmsg_bytes: i64,
    pub rxmsgs: i64,
    pub rxmsg_bytes: i64,
    pub simple_cnt: i64,
    pub metadata_cache_cnt: i64,
    pub brokers: Vec<BrokerStatistics>,
    pub topics: BTreeMap<Arc<str>, TopicStatistics>,
    pub group: Option<GroupStatistics>,
    pub eos: Option<EosStatistics>,
}

/// One broker.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct BrokerStatistics {
    pub name: String,
    pub nodeid: i64,
    pub nodename: String,
    pub source: &'static str,
    pub state: &'static str,
    pub stateage: i64,
    pub outbuf_cnt: i64,
    pub outbuf_msg_cnt: i64,
    pub waitresp_cnt: i64,
    pub waitresp_msg_cnt: i64,
    pub tx: i64,
    pub tx_bytes: i64,
    pub tx_errors: i64,
    pub tx_retries: i64,
    pub tx_idle: i64,
    pub request_timeouts: i64,
    pub rx: i64,
    pub rx_bytes: i64,
    pub rx_errors: i64,
    pub rx_correlation_id_errors: i64,
    pub rx_idle: i64,
    pub requests: BTreeMap<&'static str, i64>,
    pub wakeups: i64,
    pub connects: i64,
    pub disconnects: i64,
    pub int_latency: Window,
    pub outbuf_latency: Window,
    pub rtt: Window,
    pub throttle: Window,
    /// The partitions that it leads.
    pub toppars: Vec<(Arc<str>, i32)>,
    pub collector: CollectorStatistics,
}

/// What a broker's collector did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct CollectorStatistics {
    pub sends: i64,
    pub sends_flush: i64,
    pub sends_partitions: i64,
    pub sends_bytes: i64,
    pub sends_linger: i64,
    pub sends_adaptive: i64,
    pub waiting: i64,
    pub messages: i64,
    pub bytes: i64,
    pub longest_wait: i64,
    pub window: i64,
    pub spacing: i64,
    pub partitions_per_request: Window,
    pub messages_per_request: Window,
    pub bytes_per_request: Window,
    pub wait: Window,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct TopicStatistics {
    pub age: i64,
    pub metadata_age: i64,
    pub batchsize: Window,
    pub batchcnt: Window,
    pub partitions: BTreeMap<i32, PartitionStatistics>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct PartitionStatistics {
    pub broker: i64,
    pub leader: i64,
    pub desired: bool,
    pub unknown: bool,
    pub msgq_cnt: i64,
    pub msgq_bytes: i64,
    pub xmit_msgq_cnt: i64,
    pub xmit_msgq_bytes: i64,
    pub fetchq_cnt: i64,
    pub fetchq_size: i64,
    pub fetch_state: &'static str,
    pub query_offset: i64,
    pub next_offset: i64,
    pub app_offset: i64,
    pub stored_offset: i64,
    pub stored_leader_epoch: i64,
    pub committed_offset: i64,
    pub committed_leader_epoch: i64,
    pub eof_offset: i64,
    pub lo_offset: i64,
    pub hi_offset: i64,
    pub ls_offset: i64,
    pub consumer_lag: i64,
    pub consumer_lag_stored: i64,
    pub leader_epoch: i64,
    pub txmsgs: i64,
    pub txbytes: i64,
    pub rxmsgs: i64,
    pub rxbytes: i64,
    pub msgs: i64,
    pub rx_ver_drops: i64,
    pub msgs_inflight: i64,
    pub next_ack_seq: i64,
    pub next_err_seq: i64,
    pub acked_msgid: i64,
}

/// A consumer's group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct GroupStatistics {
    pub state: &'static str,
    pub stateage: i64,
    pub join_state: &'static str,
    pub rebalance_age: i64,
    pub rebalance_cnt: i64,
    pub rebalance_reason: String,
    pub assignment_size: i64,
}

/// The idempotent producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct EosStatistics {
    pub idemp_state: &'static str,
    pub idemp_stateage: i64,
    pub txn_state: &'static str,
    pub txn_stateage: i64,
    pub txn_may_enq: bool,
    pub producer_id: i64,
    pub producer_epoch: i64,
    pub epoch_cnt: i64,
}

/// An offset that is not known.
const NO_OFFSET: i64 = -1001;

impl Default for PartitionStatistics {
    fn default() -> Self {
        Self {
            broker: -1,
            leader: -1,
            desired: false,
            unknown: false,
            msgq_cnt: 0,
            msgq_bytes: 0,
            xmit_msgq_cnt: 0,
            xmit_msgq_bytes: 0,
            fetchq_cnt: 0,
            fetchq_size: 0,
            fetch_state: "none",
            query_offset: NO_OFFSET,
            next_offset: NO_OFFSET,
            app_offset: NO_OFFSET,
            stored_offset: NO_OFFSET,
            stored_leader_epoch: -1,
            committed_offset: NO_OFFSET,
            committed_leader_epoch: -1,
            eof_offset: NO_OFFSET,
            lo_offset: NO_OFFSET,
            hi_offset: NO_OFFSET,
            ls_offset: NO_OFFSET,
            consumer_lag: -1,
            consumer_lag_stored: -1,
            leader_epoch: -1,
            txmsgs: 0,
            txbytes: 0,
            rxmsgs: 0,
            rxbytes: 0,
            msgs: 0,
            rx_ver_drops: 0,
            msgs_inflight: 0,
            next_ack_seq: 0,
            next_err_seq: 0,
            acked_msgid: 0,
        }
    }
}

impl Statistics {
    /// As librdkafka's JSON.
    pub fn to_json(&self) -> String {
        super::json::json(self)
    }

    /// As text for Prometheus.
    pub fn to_prometheus(&self) -> String {
        super::prometheus::prometheus(self)
    }

    /// The collectors of all brokers together.
    pub fn collector(&self) -> CollectorStatistics {
        let mut all = CollectorStatistics::default();
        self.brokers.iter().for_each(|broker| all.add(&broker.collector));
        all
    }

    /// The partition's entry, made if there is none.
    pub(crate) fn partition(&mut self, topic: &Arc<str>, partition: i32) -> &mut PartitionStatistics {
        self.topic(topic).partitions.entry(partition).or_default()
    }

    /// The topic's entry, made if there is none.
    pub(crate) fn topic(&mut self, topic: &Arc<str>) -> &mut TopicStatistics {
        if !self.topics.contains_key(topic) {
            self.topics.insert(Arc::clone(topic), TopicStatistics::default());
        }
        self.topics.entry(Arc::clone(topic)).or_default()
    }

    /// Fills in the client's sums from its parts.
    pub(crate) fn sum_up(&mut self) {
        for broker in &self.brokers {
            self.tx += broker.tx;
            self.tx_bytes += broker.tx_bytes;
            self.rx += broker.rx;
            self.rx_bytes += broker.rx_bytes;
        }
        for partition in self.topics.values().flat_map(|topic| topic.partitions.values()) {
            self.txmsgs += partition.txmsgs;
            self.txmsg_bytes += partition.txbytes;
            self.rxmsgs += partition.rxmsgs;
            self.rxmsg_bytes += partition.rxbytes;
        }
        self.brokers.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

impl CollectorStatistics {
    /// Counts a request; `wait` is its oldest record's.
    pub(crate) fn count_send(
        &mut self,
        reason: SendReason,
        partitions: usize,
        messages: usize,
        bytes: usize,
    ) {
        self.sends += 1;
        *match reason {
            SendReason::Flush => &mut self.sends_flush,
            SendReason::Partitions => &mut self.sends_partitions,
            SendReason::Bytes => &mut self.sends_bytes,
            SendReason::Linger => &mut self.sends_linger,
            SendReason::Adaptive => &mut self.sends_adaptive,
        } += 1;
        self.messages += messages as i64;
        self.bytes += bytes as i64;
        self.partitions_per_request.record(partitions as u64);
        self.messages_per_request.record(messages as u64);
        self.bytes_per_request.record(bytes as u64);
    }

    /// Counts how long a partition's oldest record waited.
    pub(crate) fn count_wait(&mut self, wait: std::time::Duration) {
        self.wait.record_micros(wait);
        self.longest_wait = self.longest_wait.max(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
    }

    /// What was counted so far; with `reset` the windows start anew.
    pub(crate) fn snapshot(&mut self, reset: bool) -> Self {
        let snapshot = self.clone();
        if reset {
            self.partitions_per_request = Window::default();
            self.messages_per_request = Window::default();
            self.bytes_per_request = Window::default();
            self.wait = Window::default();
        }
        snapshot
    }

    fn add(&mut self, other: &Self) {
        self.sends += other.sends;
        self.sends_flush += other.sends_flush;
        self.sends_partitions += other.sends_partitions;
        self.sends_bytes += other.sends_bytes;
        self.sends_linger += other.sends_linger;
        self.sends_adaptive += other.sends_adaptive;
        self.waiting += other.waiting;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.window = self.window.max(other.window);
        self.spacing = self.spacing.max(other.spacing);
        self.partitions_per_request.add(&other.partitions_per_request);
        self.messages_per_request.add(&other.messages_per_request);
        self.bytes_per_request.add(&other.bytes_per_request);
        self.wait.add(&other.wait);
    }
}
