//! The options of a cluster.

use std::{collections::BTreeMap, fmt, net::IpAddr, time::Duration};

use crate::{
    acls::Authorizer, groups::Assignor, listeners::Listener, sasl::SaslListener, telemetry::ClientTelemetry,
    tls::TlsListener,
};

/// A broker's node ID, Kafka's `broker.id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The options of a cluster. Fields have the names of Kafka's broker properties where there are any.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The number of brokers; their IDs are 1, 2, 3, ...
    pub brokers: i32,
    /// The racks, assigned to the brokers in turn; no racks if empty.
    pub racks: Vec<String>,
    /// The host that brokers listen on (over TCP), and that they advertise unless `advertised_host` is set.
    pub host: String,
    /// The host that clients connect to (`advertised.listeners`). The default is `host`, or the loopback address if
    /// `host` stands for all addresses, because clients can't connect to `0.0.0.0` or `::`.
    pub advertised_host: Option<String>,
    /// The advertised port of the first broker; the others have the following ports. The default are the ports that
    /// brokers listen on.
    pub advertised_port: Option<u16>,
    /// The port of the first broker; the others have the following ports. With 0 the system chooses (over TCP).
    pub port: u16,
    /// The TLS of the first listener (over TCP); without it the listener is plaintext.
    pub tls: Option<TlsListener>,
    /// The SASL of the first listener; without it clients need not authenticate.
    pub sasl: Option<SaslListener>,
    /// Further listeners of each broker (`listeners`).
    pub listeners: Vec<Listener>,
    /// The access rules (`authorizer.class.name`); without them every client may do everything.
    pub authorizer: Option<Authorizer>,
    /// The number of log directories of each broker (`log.dirs`).
    pub log_dirs: usize,
    /// The time that a reassignment of replicas takes.
    pub reassignment_duration: Duration,
    /// The cluster ID; the default is derived from the seed.
    pub cluster_id: Option<String>,
    /// The number of partitions of topics created without one (`num.partitions`).
    pub partitions: i32,
    /// The replication factor of topics created without one; at most the number of brokers.
    pub replication_factor: i16,
    /// The minimum number of in-sync replicas for `acks=all` (`min.insync.replicas`); a topic's configuration may
    /// override it.
    pub min_insync_replicas: i32,
    /// Creates a topic when a client requests its metadata (`auto.create.topics.enable`).
    pub auto_create_topics: bool,
    /// Acknowledges produced records with growing offsets and drops them without checks. For benchmarks of clients.
    pub discard: bool,
    /// The maximum size of a record batch in bytes (`message.max.bytes`); a topic's configuration may override it.
    pub message_max_bytes: usize,
    /// The maximum size of all logs together in bytes; the oldest batches of the longest logs are dropped first.
    pub retention_bytes: u64,
    /// The maximum size of a Fetch response in bytes (`fetch.max.bytes`).
    pub fetch_max_bytes: usize,
    /// The maximum number of fetch sessions of a broker (`max.incremental.fetch.session.cache.slots`).
    pub max_fetch_sessions: usize,
    /// Fetch responses may end in the middle of a batch, as those of Apache Kafka do.
    pub partial_batches: bool,
    /// The maximum size of a request in bytes (`socket.request.max.bytes`).
    pub max_request_bytes: usize,
    /// The maximum size of all unhandled requests in bytes, over all connections, complete or not
    /// (`queued.max.request.bytes`). Kafka stops reading; this cluster closes the connection whose request has been
    /// incomplete for the longest time, so that the others continue.
    pub queued_max_request_bytes: usize,
    /// The maximum size of all unread responses in bytes, over all connections. Above it the cluster closes the
    /// connections that have read nothing for the longest time. Over TCP.
    pub queued_max_response_bytes: usize,
    /// The idle time after which a connection is closed (`connections.max.idle.ms`). Over TCP.
    pub connections_max_idle: Duration,
    /// The time by which followers lag behind the leader. During this time `acks=all` waits, consumers do not see the
    /// records, and a killed broker can lose them.
    pub replication_lag: Duration,
    /// Directs consumers to a replica in their rack (KIP-392).
    pub rack_aware_fetch: bool,
    /// The time that a new consumer group waits for more members (`group.initial.rebalance.delay.ms`).
    pub group_initial_rebalance_delay: Duration,
    /// The session timeout of members of the consumer protocol (`group.consumer.session.timeout.ms`).
    pub group_consumer_session_timeout: Duration,
    /// The heartbeat interval of members of the consumer protocol (`group.consumer.heartbeat.interval.ms`).
    pub group_consumer_heartbeat_interval: Duration,
    /// The assignor of groups of the consumer protocol whose members name none: the first of `group.consumer.assignors`.
    pub group_consumer_assignor: Assignor,
    /// The maximum number of members of a group of the consumer protocol (`group.consumer.max.size`).
    pub group_consumer_max_size: usize,
    /// True if groups with members are converted from one protocol to the other
    /// (`group.consumer.migration.policy=bidirectional`). False: a member of the consumer protocol can't join a classic group.
    pub group_consumer_migration: bool,
    /// True if a member of the consumer protocol may commit in an older epoch for a partition that it has owned since then,
    /// as from Kafka 4.3 on (KIP-1251). False: only in its current epoch.
    pub group_consumer_relaxed_commits: bool,
    /// The session timeout of members of streams groups (`group.streams.session.timeout.ms`).
    pub group_streams_session_timeout: Duration,
    /// The heartbeat interval of members of streams groups (`group.streams.heartbeat.interval.ms`).
    pub group_streams_heartbeat_interval: Duration,
    /// The number of standby tasks of each task of streams groups (`group.streams.num.standby.replicas`).
    pub group_streams_num_standby_replicas: usize,
    /// The interval in which members of streams groups report the offsets of their tasks.
    pub group_streams_task_offset_interval: Duration,
    /// The time after which a coordinator asks the members of a streams group again for a description of their topology
    /// (KIP-1331). `None`: the brokers do not store descriptions, as without `group.streams.topology.description.plugin.class`.
    pub group_streams_description_interval: Option<Duration>,
    /// The finalized feature `transaction.version`: 2 as from Kafka 4.0 on (each end of a transaction bumps the producer's
    /// epoch), 1 or 0 as in a cluster that was not upgraded.
    pub transaction_version: i16,
    /// Leaders accept the first records of a transaction only in partitions that its producer has added
    /// (`transaction.partition.verification.enable`, since Kafka 3.6). False: as older brokers.
    pub transaction_verification: bool,
    /// The maximum `transaction.timeout.ms` of a producer in milliseconds (`transaction.max.timeout.ms`).
    pub transaction_max_timeout_ms: i32,
    /// The interval at which coordinators look for transactions that have timed out
    /// (`transaction.abort.timed.out.transaction.cleanup.interval.ms`).
    pub transaction_timeout_interval: Duration,
    /// The time from the end of a transaction to its markers in the partitions. Until then, the next transaction of the
    /// same producer gets CONCURRENT_TRANSACTIONS.
    pub transaction_marker_delay: Duration,
    /// The time for which a leader keeps asking the coordinator about the first batch of a transaction while that returns
    /// CONCURRENT_TRANSACTIONS (`add.partitions.to.txn.retry.backoff.max.ms`), before it returns the error to the
    /// producer.
    pub transaction_retry_max: Duration,
    /// The time between two such attempts (`add.partitions.to.txn.retry.backoff.ms`).
    pub transaction_retry_interval: Duration,
    /// The time of a thread that each request counts with for the quota `request_percentage`: with 100 us, a client whose quota
    /// is 1 % may send 100 requests per second.
    pub request_time: Duration,
    /// The settings of share groups (KIP-932).
    pub share_groups: ShareGroupOptions,
    /// The Unix time in milliseconds at [`Instant::ZERO`](ottla_protocol::time::Instant::ZERO), for append times.
    pub unix_time_origin_ms: i64,
    /// The seed of all random values: cluster ID, topic IDs, session IDs, member IDs. Without a seed,
    /// [`EmbeddedCluster`](crate::EmbeddedCluster) uses another one at each start, so that clients do not mistake a
    /// restarted cluster, which has lost its records, for the old one. A [`Cluster`](crate::Cluster) without a seed
    /// uses 1.
    pub seed: Option<u64>,
    /// The handling of client metrics (KIP-714).
    pub client_telemetry: ClientTelemetry,
    /// Version ranges that replace those of Kafka 4.4.0, by API key; an empty range (`max < min`) removes the API.
    pub api_versions: BTreeMap<i16, (i16, i16)>,
}

/// The settings of share groups, unless a group's own configuration overrides them. Kafka's limits for these values do
/// not apply here, so that tests can use short times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupOptions {
    /// The session timeout of members (`group.share.session.timeout.ms`).
    pub session_timeout: Duration,
    /// The heartbeat interval of members (`group.share.heartbeat.interval.ms`).
    pub heartbeat_interval: Duration,
    /// The maximum number of members of a group (`group.share.max.size`).
    pub max_size: usize,
    /// The maximum number of share sessions of a broker (`group.share.max.share.sessions`).
    pub max_share_sessions: usize,
    /// The maximum number of deliveries of a record (`group.share.delivery.count.limit`).
    pub delivery_count_limit: i16,
    /// The duration of a record lock (`group.share.record.lock.duration.ms`).
    pub record_lock_duration: Duration,
    /// The maximum number of records in flight, counted from the start offset
    /// (`group.share.partition.max.record.locks`). Kafka continues to the end of the record batch, this cluster does
    /// not.
    pub partition_max_record_locks: i32,
    /// The start offset of a group in a partition that is new to it (`share.auto.offset.reset`).
    pub auto_offset_reset: ShareOffsetReset,
    /// Allows members to renew their locks (`share.renew.acknowledge.enable`, KIP-1222).
    pub renew_acknowledge_enable: bool,
    /// The visibility of records of open transactions (`share.isolation.level`).
    pub isolation_level: IsolationLevel,
    /// `errors.deadletterqueue.topic.name`: the topic for records that are not delivered any more (KIP-1191); empty without one.
    /// The embedded brokers write nothing to it.
    pub dead_letter_topic: String,
    /// `errors.deadletterqueue.copy.record.enable`: dead letters have the key and the value of their records.
    pub dead_letter_copies: bool,
}

/// The start offset of a share group in a partition that is new to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOffsetReset {
    /// The first record.
    Earliest,
    /// The next record.
    Latest,
    /// The first record with at least this age limit: the current time minus this duration.
    ByDuration(Duration),
}

/// The visibility of records of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All.
    ReadUncommitted,
    /// Delivers only records of committed transactions.
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
            dead_letter_topic: String::new(),
            dead_letter_copies: false,
            isolation_level: IsolationLevel::ReadUncommitted,
        }
    }
}

impl ClusterOptions {
    /// Returns the host that clients connect to.
    pub fn advertised_host(&self) -> &str {
        match (&self.advertised_host, self.host.parse::<IpAddr>()) {
            (Some(host), _) => host,
            (None, Ok(IpAddr::V4(address))) if address.is_unspecified() => "127.0.0.1",
            (None, Ok(IpAddr::V6(address))) if address.is_unspecified() => "::1",
            (None, _) => &self.host,
        }
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            brokers: 3,
            racks: Vec::new(),
            host: "127.0.0.1".to_owned(),
            advertised_host: None,
            advertised_port: None,
            port: 0,
            tls: None,
            sasl: None,
            listeners: Vec::new(),
            authorizer: None,
            log_dirs: 1,
            reassignment_duration: Duration::ZERO,
            cluster_id: None,
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
            queued_max_request_bytes: 256 << 20,
            queued_max_response_bytes: 1 << 30,
            connections_max_idle: Duration::from_secs(600),
            replication_lag: Duration::ZERO,
            rack_aware_fetch: false,
            group_initial_rebalance_delay: Duration::ZERO,
            group_consumer_session_timeout: Duration::from_secs(45),
            group_consumer_heartbeat_interval: Duration::from_secs(5),
            group_consumer_assignor: Assignor::Uniform,
            group_consumer_max_size: usize::MAX,
            group_consumer_migration: true,
            group_consumer_relaxed_commits: true,
            group_streams_session_timeout: Duration::from_secs(45),
            group_streams_heartbeat_interval: Duration::from_secs(5),
            group_streams_num_standby_replicas: 0,
            group_streams_task_offset_interval: Duration::from_secs(60),
            group_streams_description_interval: None,
            transaction_version: 2,
            transaction_verification: true,
            transaction_max_timeout_ms: 900_000,
            transaction_timeout_interval: Duration::from_secs(10),
            transaction_marker_delay: Duration::from_millis(5),
            transaction_retry_max: Duration::from_millis(100),
            transaction_retry_interval: Duration::from_millis(20),
            request_time: Duration::from_micros(100),
            share_groups: ShareGroupOptions::default(),
            unix_time_origin_ms: 1_700_000_000_000,
            seed: None,
            client_telemetry: ClientTelemetry::None,
            api_versions: BTreeMap::new(),
        }
    }
}
