//! What a cluster is made of, before it starts.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::telemetry::ClientTelemetry;

/// A broker's node id, Kafka's `broker.id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a cluster is set up. Fields are Kafka's broker settings under their own names where there is one.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How many brokers there are; their ids are 1, 2, 3, ...
    pub brokers: i32,
    /// Racks, given to the brokers in turn; none if empty.
    pub racks: Vec<String>,
    /// The host that is advertised and, over TCP, listened on.
    pub host: String,
    /// The port of the first broker; the others get the following ones. 0 lets the system choose (over TCP).
    pub port: u16,
    /// The cluster's id.
    pub cluster_id: String,
    /// Partitions of topics that are created without a number of their own (`num.partitions`).
    pub partitions: i32,
    /// Replicas of topics that are created without a number of their own; at most the number of brokers.
    pub replication_factor: i16,
    /// Replicas in sync that `acks=all` needs (`min.insync.replicas`); a topic's configuration may override it.
    pub min_insync_replicas: i32,
    /// Topics come into being when a client asks for their metadata (`auto.create.topics.enable`).
    pub auto_create_topics: bool,
    /// Produced records are acknowledged with growing offsets and thrown away, unchecked. For measuring clients.
    pub discard: bool,
    /// The largest record batch that is taken (`message.max.bytes`); a topic's configuration may override it.
    pub message_max_bytes: usize,
    /// Bytes that all logs together may hold; the oldest batches of the longest logs go first.
    pub retention_bytes: u64,
    /// The most bytes in one Fetch answer (`fetch.max.bytes`).
    pub fetch_max_bytes: usize,
    /// Fetch sessions that a broker keeps (`max.incremental.fetch.session.cache.slots`).
    pub max_fetch_sessions: usize,
    /// A Fetch answer may end in the middle of a batch, as a real broker's does.
    pub partial_batches: bool,
    /// The largest request that is taken (`socket.request.max.bytes`).
    pub max_request_bytes: usize,
    /// How long followers lag behind the leader. Until then `acks=all` waits and consumers do not see the records, and
    /// they are what a killed broker can lose.
    pub replication_lag: Duration,
    /// Consumers in a replica's rack are sent there (KIP-392).
    pub rack_aware_fetch: bool,
    /// How long a new consumer group waits for more members (`group.initial.rebalance.delay.ms`).
    pub group_initial_rebalance_delay: Duration,
    /// How long nothing may be heard of a member of the consumer protocol (`group.consumer.session.timeout.ms`).
    pub group_consumer_session_timeout: Duration,
    /// How often such members are told to send a heartbeat (`group.consumer.heartbeat.interval.ms`).
    pub group_consumer_heartbeat_interval: Duration,
    /// The most members of a group of the consumer protocol (`group.consumer.max.size`).
    pub group_consumer_max_size: usize,
    /// What holds for share groups (KIP-932).
    pub share_groups: ShareGroupOptions,
    /// Milliseconds since 1970 at [`Instant::ZERO`](ottla_protocol::time::Instant::ZERO), for append times.
    pub unix_time_origin_ms: i64,
    /// Where randomness starts: topic ids, session ids, member ids.
    pub seed: u64,
    /// What becomes of metrics of clients (KIP-714).
    pub client_telemetry: ClientTelemetry,
    /// Version ranges that replace those of Kafka 4.3.1, by API key; an empty range (`max < min`) removes the API.
    pub api_versions: BTreeMap<i16, (i16, i16)>,
}

/// How share groups work, unless a group's own configuration says otherwise. Kafka's limits for these values do not hold
/// here, so that a test needn't wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupOptions {
    /// A member that isn't heard of for so long is removed (`group.share.session.timeout.ms`).
    pub session_timeout: Duration,
    /// How often members are to be heard of (`group.share.heartbeat.interval.ms`).
    pub heartbeat_interval: Duration,
    /// The most members of a group (`group.share.max.size`).
    pub max_size: usize,
    /// The most share sessions of a broker (`group.share.max.share.sessions`).
    pub max_share_sessions: usize,
    /// How often a record is delivered at most (`group.share.delivery.count.limit`).
    pub delivery_count_limit: i16,
    /// How long a member has records for itself (`group.share.record.lock.duration.ms`).
    pub record_lock_duration: Duration,
    /// From the first record that isn't done with, so many are under way at most
    /// (`group.share.partition.max.record.locks`). Kafka goes on to the end of the record batch, this cluster does not.
    pub partition_max_record_locks: i32,
    /// Where a group begins in a partition that is new to it (`share.auto.offset.reset`).
    pub auto_offset_reset: ShareOffsetReset,
    /// Whether members may renew their locks (`share.renew.acknowledge.enable`, KIP-1222).
    pub renew_acknowledge_enable: bool,
    /// Whether records of transactions that are under way are delivered (`share.isolation.level`).
    pub isolation_level: IsolationLevel,
}

/// Where a share group begins in a partition that is new to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOffsetReset {
    /// With the first record.
    Earliest,
    /// With the next record.
    Latest,
    /// With the first record that is not older than this.
    ByDuration(Duration),
}

/// Which records of transactions are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All.
    ReadUncommitted,
    /// Those of transactions that were committed.
    ReadCommitted,
}

impl Default for ShareGroupOptions {
    fn default() -> Self {
        Self {
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(5),
            max_size: 200,
            max_share_sessions: 2000,
            delivery_count_limit: 5,
            record_lock_duration: Duration::from_secs(30),
            partition_max_record_locks: 2000,
            auto_offset_reset: ShareOffsetReset::Latest,
            renew_acknowledge_enable: true,
            isolation_level: IsolationLevel::ReadUncommitted,
        }
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            brokers: 3,
            racks: Vec::new(),
            host: "127.0.0.1".to_owned(),
            port: 0,
            cluster_id: "ottla-embedded-cluster".to_owned(),
            partitions: 4,
            replication_factor: 3,
            min_insync_replicas: 1,
            auto_create_topics: true,
            discard: false,
            message_max_bytes: 1_048_588,
            retention_bytes: 4 << 30,
            fetch_max_bytes: 55 << 20,
            max_fetch_sessions: 1000,
            partial_batches: false,
            max_request_bytes: 100 << 20,
            replication_lag: Duration::ZERO,
            rack_aware_fetch: false,
            group_initial_rebalance_delay: Duration::ZERO,
            group_consumer_session_timeout: Duration::from_secs(45),
            group_consumer_heartbeat_interval: Duration::from_secs(5),
            group_consumer_max_size: usize::MAX,
            share_groups: ShareGroupOptions::default(),
            unix_time_origin_ms: 1_700_000_000_000,
            seed: 1,
            client_telemetry: ClientTelemetry::None,
            api_versions: BTreeMap::new(),
        }
    }
}
