//! The snapshot: librdkafka's fields with their own names, and the collector's fields. [`table`](super::table)
//! documents each field.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ottla_protocol::vocabulary::{NodeId, TopicPartition};

use super::send_reason::SendReason;
use super::{purpose::Purpose, requests, window::Window};

/// The statistics of a client at one point in time.
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
    pub consumer: Option<ConsumerStatistics>,
    /// The member ID in the group or share group; empty without one.
    pub member_id: String,
    pub telemetry_drops: i64,
    /// The brokers of the last metadata response, and its age in microseconds; `None` before the first one.
    pub nodes: Option<(BTreeSet<NodeId>, i64)>,
}

/// The statistics of one broker.
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
    pub data_latency: Window,
    pub fetch_size: Window,
    /// The partitions that the broker leads.
    pub toppars: Vec<TopicPartition>,
    pub collector: CollectorStatistics,
}

/// The statistics of a broker's collector.
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

/// The statistics of one topic.
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

/// The statistics of one partition.
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
    /// The offset that lags are measured against: `hi_offset`, or `ls_offset` with `isolation.level=read_committed`.
    pub end_offset: i64,
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

/// The statistics of a consumer's group.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub rebalance_latency: Window,
    pub rebalance_millis: i64,
}

/// The statistics of a consumer or share consumer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says what each field means")]
pub struct ConsumerStatistics {
    pub poll_idle: i64,
    pub time_between_polls: Window,
    pub commit_latency: Window,
    pub max_lag: i64,
    pub acknowledgements: i64,
}

/// The statistics of the idempotent producer.
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

/// The partition number of messages without a partition.
const NO_PARTITION: i32 = -1;
/// The value of an unknown offset.
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
            next_offset: 0,
            app_offset: NO_OFFSET,
            stored_offset: NO_OFFSET,
            stored_leader_epoch: -1,
            committed_offset: NO_OFFSET,
            committed_leader_epoch: -1,
            eof_offset: NO_OFFSET,
            lo_offset: NO_OFFSET,
            hi_offset: NO_OFFSET,
            ls_offset: NO_OFFSET,
            end_offset: NO_OFFSET,
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

impl PartitionStatistics {
    /// Returns the number of messages from `offset` to the end of the log; -1 if either is unknown or it is beyond the end.
    pub(crate) const fn lag_behind_end(&self, offset: i64) -> i64 {
        if offset < 0 || offset > self.end_offset { -1 } else { self.end_offset - offset }
    }

    /// Sets the offset that the application stored, which the client itself does not know.
    pub const fn set_stored(&mut self, offset: i64, leader_epoch: i32) {
        self.stored_offset = offset;
        self.stored_leader_epoch = leader_epoch as i64;
        self.consumer_lag_stored = self.lag_behind_end(offset);
    }
}

impl Statistics {
    /// Formats the snapshot as librdkafka's JSON.
    pub fn to_json(&self) -> String {
        super::json::json(self)
    }

    /// Formats the snapshot as Prometheus text.
    pub fn to_prometheus(&self) -> String {
        super::prometheus::prometheus(self)
    }

    /// Returns the sum of the collectors of all brokers.
    pub fn collector(&self) -> CollectorStatistics {
        let mut all = CollectorStatistics::default();
        self.brokers.iter().for_each(|broker| all.add(&broker.collector));
        all
    }

    /// Returns the partition's entry, and creates it if necessary.
    pub(crate) fn partition(&mut self, topic: &Arc<str>, partition: i32) -> &mut PartitionStatistics {
        self.topic(topic).partitions.entry(partition).or_default()
    }

    /// Returns the topic's entry, and creates it if necessary.
    pub(crate) fn topic(&mut self, topic: &Arc<str>) -> &mut TopicStatistics {
        if !self.topics.contains_key(topic) {
            self.topics.insert(Arc::clone(topic), TopicStatistics::default());
        }
        self.topics.entry(Arc::clone(topic)).or_default()
    }

    /// Computes the client's sums from its parts, and adds the entries that exist even if unused: a count for each
    /// request that this kind of client may send, and the partition -1 of every topic.
    pub(crate) fn sum_up(&mut self) {
        for broker in &mut self.brokers {
            for name in requests::of(self.kind) {
                broker.requests.entry(name).or_default();
            }
        }
        for topic in self.topics.values_mut() {
            topic.partitions.entry(NO_PARTITION).or_default();
        }
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
        self.join_brokers();
    }

    /// Sorts the brokers by name. The connections of a name become one entry.
    fn join_brokers(&mut self) {
        let mut brokers = BTreeMap::<String, BrokerStatistics>::new();
        for broker in std::mem::take(&mut self.brokers) {
            match brokers.get_mut(&broker.name) {
                Some(known) => known.join(broker),
                None => {
                    brokers.insert(broker.name.clone(), broker);
                }
            }
        }
        self.brokers = brokers.into_values().collect();
    }
}

impl BrokerStatistics {
    /// Names the entry after the role that its connection serves.
    pub(crate) fn name_group_coordinator(&mut self) {
        self.name = GROUP_COORDINATOR.to_owned();
        self.source = "logical";
        // The entry belongs to the role, which another node may take over.
        self.nodeid = -1;
    }

    /// Names the entry after the role of a producer's connections to coordinators.
    pub(crate) fn name_transaction_coordinator(&mut self) {
        self.name_group_coordinator();
        self.name = TRANSACTION_COORDINATOR.to_owned();
    }

    /// Returns the entry of a group's coordinator that the client never connected to.
    pub(crate) fn of_unused_coordinator() -> Self {
        let mut unused = Self { state: "INIT", tx_idle: -1, rx_idle: -1, ..Self::default() };
        unused.name_group_coordinator();
        unused
    }

    /// Adds the counts of another connection. The state is that of the connection that is in use, if one of them is.
    fn join(&mut self, mut other: Self) {
        if state_rank(other.state) > state_rank(self.state) {
            std::mem::swap(self, &mut other);
        }
        let least_idle =
            |one: i64, other: i64| if one < 0 || (0..one).contains(&other) { other } else { one };
        self.tx_idle = least_idle(self.tx_idle, other.tx_idle);
        self.rx_idle = least_idle(self.rx_idle, other.rx_idle);
        self.outbuf_cnt += other.outbuf_cnt;
        self.outbuf_msg_cnt += other.outbuf_msg_cnt;
        self.waitresp_cnt += other.waitresp_cnt;
        self.waitresp_msg_cnt += other.waitresp_msg_cnt;
        self.tx += other.tx;
        self.tx_bytes += other.tx_bytes;
        self.tx_errors += other.tx_errors;
        self.tx_retries += other.tx_retries;
        self.request_timeouts += other.request_timeouts;
        self.rx += other.rx;
        self.rx_bytes += other.rx_bytes;
        self.rx_errors += other.rx_errors;
        self.rx_correlation_id_errors += other.rx_correlation_id_errors;
        self.wakeups += other.wakeups;
        self.connects += other.connects;
        self.disconnects += other.disconnects;
        for (name, count) in other.requests {
            *self.requests.entry(name).or_default() += count;
        }
        self.int_latency.add(&other.int_latency);
        self.outbuf_latency.add(&other.outbuf_latency);
        self.rtt.add(&other.rtt);
        self.throttle.add(&other.throttle);
        self.data_latency.add(&other.data_latency);
        self.fetch_size.add(&other.fetch_size);
        self.toppars.extend(other.toppars);
        self.collector.add(&other.collector);
    }
}

/// The name of the entry of the coordinators that a transactional producer uses.
const TRANSACTION_COORDINATOR: &str = "TxnCoordinator";

/// The name of the entry of a group's coordinator.
const GROUP_COORDINATOR: &str = "GroupCoordinator";

/// Orders the states of connections by their progress.
fn state_rank(state: &str) -> usize {
    ["INIT", "DOWN", "CONNECT", "APIVERSION_QUERY", "UP"]
        .iter()
        .position(|known| *known == state)
        .unwrap_or(0)
}

impl CollectorStatistics {
    /// Counts a request; `wait` is the time that its oldest record waited.
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

    /// Counts the time that a partition's oldest record waited.
    pub(crate) fn count_wait(&mut self, wait: std::time::Duration) {
        self.wait.record_micros(wait);
        self.longest_wait = self.longest_wait.max(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
    }

    /// Returns the counts; windows restart as the purpose demands.
    pub(crate) fn snapshot(&mut self, purpose: Purpose) -> Self {
        Self {
            partitions_per_request: self.partitions_per_request.snapshot(purpose),
            messages_per_request: self.messages_per_request.snapshot(purpose),
            bytes_per_request: self.bytes_per_request.snapshot(purpose),
            wait: self.wait.snapshot(purpose),
            ..*self
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_node_are_one_entry() {
        let of = |name: &str, state, tx, tx_idle| BrokerStatistics {
            name: name.to_owned(),
            state,
            tx,
            tx_idle,
            requests: [("Fetch", tx)].into(),
            ..BrokerStatistics::default()
        };
        let brokers = vec![of("b/1", "DOWN", 2, -1), of("a/2", "UP", 5, 7), of("b/1", "UP", 3, 9)];
        let mut statistics = Statistics { brokers, kind: "consumer", ..Statistics::default() };
        statistics.sum_up();
        let shown: Vec<_> = statistics
            .brokers
            .iter()
            .map(|b| (&*b.name, b.state, b.tx, b.requests["Fetch"], b.tx_idle))
            .collect();
        assert_eq!(shown, [("a/2", "UP", 5, 5, 7), ("b/1", "UP", 5, 5, 9)]);
        assert_eq!(statistics.tx, 10);
    }

    #[test]
    fn unused_coordinator_is_replaced_by_the_connection_to_it() {
        let mut connected =
            BrokerStatistics { nodename: "c:9092".to_owned(), state: "UP", ..BrokerStatistics::default() };
        connected.name_group_coordinator();
        let brokers = vec![BrokerStatistics::of_unused_coordinator(), connected];
        let mut statistics = Statistics { brokers, kind: "consumer", ..Statistics::default() };
        statistics.sum_up();
        let [coordinator] = &statistics.brokers[..] else { panic!("{:?}", statistics.brokers) };
        let shown = (&*coordinator.name, &*coordinator.nodename, coordinator.state, coordinator.nodeid);
        assert_eq!(shown, ("GroupCoordinator", "c:9092", "UP", -1));
    }
}
