//! What a configuration means: durations, sizes and enums, checked against each other.
//!
//! A view is made once, when a client is made. Its `warnings` are sentences for the application's log.

use std::fmt;
use std::time::Duration;

use super::error::{ConfigError, ConfigErrorKind};
use super::patterns::TopicPatterns;
use super::raw::{Profile, RawConfig};
use super::rules;
use super::servers::ServerAddress;
use super::table::Side;

/// What every client needs to know.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// `bootstrap.servers`; may be empty, see [`ClientView::require_servers`].
    pub bootstrap_servers: Vec<ServerAddress>,
    /// `client.id`.
    pub client_id: String,
    /// `client.software.name`.
    pub client_software_name: String,
    /// `client.software.version`.
    pub client_software_version: String,
    /// `client.rack`.
    pub client_rack: Option<String>,
    /// `receive.message.max.bytes`: a longer answer is garbage.
    pub receive_message_max_bytes: usize,
    /// `max.in.flight.requests.per.connection`, at most 5 for an idempotent producer.
    pub max_in_flight: usize,
    /// `metadata.recovery.strategy` and `metadata.recovery.rebootstrap.trigger.ms`.
    pub metadata_recovery: MetadataRecovery,
    /// `topic.metadata.refresh.interval.ms`; None never refreshes without cause.
    pub metadata_refresh_interval: Option<Duration>,
    /// `topic.metadata.refresh.fast.interval.ms`.
    pub metadata_refresh_fast_interval: Duration,
    /// `topic.metadata.refresh.sparse`.
    pub metadata_refresh_sparse: bool,
    /// `topic.blacklist`.
    pub topic_blacklist: TopicPatterns,
    /// `metadata.max.age.ms`.
    pub metadata_max_age: Duration,
    /// `topic.metadata.propagation.max.ms`.
    pub metadata_propagation_max: Duration,
    /// `metadata.leader.discovery`.
    pub metadata_leader_discovery: bool,
    /// `socket.timeout.ms`.
    pub socket_timeout: Duration,
    /// `socket.send.buffer.bytes`; None leaves it to the system.
    pub socket_send_buffer_bytes: Option<usize>,
    /// `socket.receive.buffer.bytes`; None leaves it to the system.
    pub socket_receive_buffer_bytes: Option<usize>,
    /// `socket.keepalive.enable`.
    pub socket_keepalive: bool,
    /// `socket.nagle.disable`.
    pub socket_nagle_disable: bool,
    /// `socket.max.fails`; None never closes a connection for that.
    pub socket_max_fails: Option<u32>,
    /// `socket.connection.setup.timeout.ms`.
    pub connection_setup_timeout: Duration,
    /// `connections.max.idle.ms`; None keeps idle connections.
    pub connections_max_idle: Option<Duration>,
    /// `broker.address.ttl`.
    pub broker_address_ttl: Duration,
    /// `broker.address.family`.
    pub broker_address_family: AddressFamily,
    /// `client.dns.lookup`: whether bootstrap names are replaced by the canonical names of their addresses.
    pub canonical_bootstrap_names: bool,
    /// `reconnect.backoff.ms`.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`.
    pub reconnect_backoff_max: Duration,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `api.version.request`.
    pub api_version_request: bool,
    /// `api.version.request.timeout.ms`.
    pub api_version_request_timeout: Duration,
    /// `api.version.fallback.ms`; zero asks again on every connection.
    pub api_version_fallback: Duration,
    /// `broker.version.fallback`.
    pub broker_version_fallback: KafkaVersion,
    /// `statistics.interval.ms`; None never emits them.
    pub statistics_interval: Option<Duration>,
    /// `allow.auto.create.topics`: a consumer's; a producer's metadata request always allows it.
    pub allow_auto_create_topics: bool,
    /// What the application should know about its configuration, one sentence each.
    pub warnings: Vec<String>,
}

/// What a producer needs to know.
#[derive(Clone, Debug)]
pub struct ProducerView {
    /// What every client needs to know.
    pub client: ClientView,
    /// What holds for topics without a configuration of their own.
    pub topic: TopicView,
    /// `linger.ms`, `broker.linger.ms`.
    pub linger: Linger,
    /// `broker.batch.max.partitions`; None is no limit.
    pub broker_batch_max_partitions: Option<usize>,
    /// `broker.batch.max.bytes`; None is no limit.
    pub broker_batch_max_bytes: Option<usize>,
    /// `max.request.size`, never less than `message.max.bytes`.
    pub max_request_size: usize,
    /// `message.max.bytes`: of one record, and of one batch.
    pub message_max_bytes: usize,
    /// `batch.size`, never more than `message.max.bytes`.
    pub batch_size: usize,
    /// `batch.num.messages`.
    pub batch_num_messages: usize,
    /// `queue.buffering.max.messages`; None is no limit.
    pub queue_max_messages: Option<usize>,
    /// `queue.buffering.max.kbytes`, in bytes.
    pub queue_max_bytes: usize,
    /// `retries`.
    pub retries: u32,
    /// `enable.idempotence`.
    pub idempotence: bool,
    /// `enable.gapless.guarantee`.
    pub gapless: bool,
    /// `topic.recreate.policy`.
    pub topic_recreate: TopicRecreatePolicy,
    /// `sticky.partitioning.linger.ms`; zero picks for every record.
    pub sticky_partitioning_linger: Duration,
    /// It was set, and so the time alone decides.
    pub sticky_partitioning_is_timed: bool,
    /// `delivery.report.only.error`.
    pub delivery_report_only_error: bool,
}

/// What a producer needs to know about a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicView {
    /// `acks`.
    pub acks: Acks,
    /// `request.timeout.ms`.
    pub request_timeout: Duration,
    /// `message.timeout.ms`; None is no limit.
    pub message_timeout: Option<Duration>,
    /// `partitioner`.
    pub partitioner: PartitionerName,
    /// `queuing.strategy`: true with `lifo`.
    pub newest_first: bool,
    /// `compression.type` with its level.
    pub compression: Compression,
    /// The topic's own `broker.linger.ms`, or what its `message.timeout.ms` leaves of a linger that nobody asked for.
    pub linger: Option<Duration>,
}

/// What a consumer needs to know.
#[derive(Clone, Debug)]
pub struct ConsumerView {
    /// What every client needs to know.
    pub client: ClientView,
    /// `group.id`.
    pub group_id: Option<String>,
    /// `fetch.min.bytes`.
    pub fetch_min_bytes: i32,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: i32,
    /// `fetch.wait.max.ms`.
    pub fetch_wait_max: Duration,
    /// `max.partition.fetch.bytes`.
    pub partition_fetch_max_bytes: i32,
    /// `fetch.error.backoff.ms`.
    pub fetch_error_backoff: Duration,
    /// `queued.min.messages`.
    pub queued_min_messages: usize,
    /// `queued.max.messages.kbytes`, in bytes.
    pub queued_max_bytes: usize,
    /// `topic.recreate.policy`.
    pub topic_recreate: TopicRecreatePolicy,
    /// `auto.offset.reset`.
    pub auto_offset_reset: OffsetReset,
    /// `enable.partition.eof`.
    pub partition_eof: bool,
    /// `check.crcs`.
    pub check_crcs: bool,
    /// `isolation.level`.
    pub isolation_level: IsolationLevel,
    /// `enable.auto.offset.store`.
    pub auto_offset_store: bool,
}

/// How long records are gathered before they are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Linger {
    /// A timer per partition: `linger.ms` alone.
    PerPartition(Duration),
    /// A timer per broker over all its partitions: `broker.linger.ms`.
    PerBroker(Duration),
    /// `broker.linger.ms=auto`: a request on its way is the timer.
    Auto,
}

/// Which replicas must have a record before it counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acks {
    /// None: no answer is waited for.
    None,
    /// The leader.
    Leader,
    /// All in-sync replicas.
    All,
}

/// A codec with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The codec.
    pub codec: CompressionCodec,
    /// The level, in the codec's range; None is its default.
    pub level: Option<i32>,
}

/// What batches are compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompressionCodec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// The partitioners that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PartitionerName {
    Random,
    Consistent,
    ConsistentRandom,
    Murmur2,
    Murmur2Random,
    Fnv1a,
    Fnv1aRandom,
    Sticky,
}

/// What to do when no known broker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataRecovery {
    /// Keep trying the known ones.
    None,
    /// Start again from `bootstrap.servers` after this long without metadata.
    Rebootstrap(Duration),
}

/// Which addresses of a broker are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AddressFamily {
    Any,
    V4,
    V6,
}

/// `topic.recreate.policy`: what a client does when a topic was deleted and made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRecreatePolicy {
    /// Stop with an error.
    Error,
    /// Go on as by `auto.offset.reset`.
    Reset,
}

/// Where to go on when a position isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the first offset.
    Beginning,
    /// At the end.
    End,
    /// Nowhere: an error.
    Error,
}

impl OffsetReset {
    /// What a value of `auto.offset.reset` means.
    pub fn of(value: &str) -> Self {
        match value {
            "smallest" | "earliest" | "beginning" => Self::Beginning,
            "error" | "none" => Self::Error,
            _ => Self::End,
        }
    }
}

/// What a consumer sees of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// All records.
    ReadUncommitted,
    /// Records of committed transactions only.
    ReadCommitted,
}

/// The version of a broker, major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KafkaVersion(pub u16, pub u16, pub u16);

impl ClientView {
    /// The view of a client that neither produces nor consumes.
    pub fn new(raw: &RawConfig) -> Result<ClientView, ConfigError> {
        client(raw, Side::Both).and_then(strict(raw))
    }

    /// The servers to ask first, of which there must be one.
    pub fn require_servers(&self) -> Result<&[ServerAddress], ConfigError> {
        if self.bootstrap_servers.is_empty() {
            let purpose = "a client has to know at least one broker, as host:port";
            return Err(ConfigError::new("bootstrap.servers", ConfigErrorKind::Missing { purpose }));
        }
        Ok(&self.bootstrap_servers)
    }
}

fn topic_recreate(raw: &RawConfig) -> TopicRecreatePolicy {
    match raw.text("topic.recreate.policy") {
        "reset" => TopicRecreatePolicy::Reset,
        _ => TopicRecreatePolicy::Error,
    }
}

impl ProducerView {
    /// The view of a producer.
    pub fn new(raw: &RawConfig) -> Result<ProducerView, ConfigError> {
        let mut client = client(raw, Side::Producer)?;
        let warnings = &mut client.warnings;
        let topic = topic(raw, raw)?;
        let idempotence = rules::idempotence(raw, acks_number(topic.acks), topic.newest_first, warnings)?;
        let gapless = raw.boolean("enable.gapless.guarantee");
        if gapless && !idempotence {
            return Err(rules::conflict(
                raw,
                "enable.gapless.guarantee",
                "enable.idempotence",
                |gapless, idempotence| format!("`{gapless}` needs `{idempotence}`"),
            ));
        }
        if idempotence {
            client.max_in_flight = client.max_in_flight.min(rules::MAX_IN_FLIGHT_IDEMPOTENT as usize);
        }
        let linger = linger(raw, &topic, warnings)?;
        rules::collector_caps(raw, linger == Linger::Auto, warnings);
        let message = rules::message_within_request(raw, warnings)?;
        rules::message_within_queue(raw, message, warnings)?;
        let batch = rules::batch_within_message(raw, message, warnings);
        let sticky = match (raw.is_modified("sticky.partitioning.linger.ms"), linger) {
            (false, Linger::PerPartition(linger) | Linger::PerBroker(linger)) => linger * 2,
            _ => millis(raw.integer("sticky.partitioning.linger.ms")),
        };
        let view = ProducerView {
            topic,
            linger,
            broker_batch_max_partitions: positive(raw.integer("broker.batch.max.partitions")),
            broker_batch_max_bytes: positive(raw.integer("broker.batch.max.bytes")),
            max_request_size: raw.integer("max.request.size").max(message) as usize,
            message_max_bytes: message as usize,
            batch_size: batch as usize,
            batch_num_messages: raw.integer("batch.num.messages") as usize,
            queue_max_messages: positive(raw.integer("queue.buffering.max.messages")),
            queue_max_bytes: raw.integer("queue.buffering.max.kbytes") as usize * 1024,
            retries: raw.integer("retries") as u32,
            idempotence,
            gapless,
            topic_recreate: topic_recreate(raw),
            sticky_partitioning_linger: sticky,
            sticky_partitioning_is_timed: raw.is_modified("sticky.partitioning.linger.ms"),
            delivery_report_only_error: raw.boolean("delivery.report.only.error"),
            client,
        };
        strict_warnings(raw, &view.client.warnings)?;
        Ok(view)
    }
}

impl TopicView {
    /// The view of a topic with a configuration of its own; where that says nothing, the client's default topic
    /// configuration in `client` holds.
    pub fn new(client: &RawConfig, own: &RawConfig) -> Result<TopicView, ConfigError> {
        let mut view = topic(client, own)?;
        let of_client = topic(client, client)?;
        let acks_of_client = acks_number(of_client.acks);
        let idempotence =
            rules::idempotence(client, acks_of_client, of_client.newest_first, &mut Vec::new())?;
        rules::topic_acks(client, own, idempotence, acks_number(view.acks))?;
        rules::topic_order(client, own, idempotence, view.newest_first)?;
        let of_client = linger(client, &view, &mut Vec::new())?;
        if own.is_modified("broker.linger.ms") {
            let millis = own.float("broker.linger.ms");
            rules::topic_linger(client, own, millis, of_client == Linger::Auto, view.message_timeout)?;
            view.linger = Some(Duration::from_secs_f64(millis / 1000.0));
        } else if let Linger::PerBroker(shortened) | Linger::PerPartition(shortened) = of_client
            && of_client != linger(client, &topic(client, client)?, &mut Vec::new())?
        {
            view.linger = Some(shortened);
        }
        Ok(view)
    }
}

impl ConsumerView {
    /// The view of a consumer.
    pub fn new(raw: &RawConfig) -> Result<ConsumerView, ConfigError> {
        let mut client = client(raw, Side::Consumer)?;
        let (fetch_max_bytes, receive) = rules::fetch_within_receive(raw)?;
        client.receive_message_max_bytes = receive as usize;
        rules::group_times(raw)?;
        strict_warnings(raw, &client.warnings)?;
        Ok(ConsumerView {
            client,
            group_id: non_empty(raw.text("group.id")),
            fetch_min_bytes: raw.integer("fetch.min.bytes") as i32,
            fetch_max_bytes: fetch_max_bytes.min(i32::MAX.into()) as i32,
            fetch_wait_max: millis(raw.integer("fetch.wait.max.ms")),
            partition_fetch_max_bytes: raw.integer("max.partition.fetch.bytes") as i32,
            fetch_error_backoff: millis(raw.integer("fetch.error.backoff.ms")),
            queued_min_messages: raw.integer("queued.min.messages") as usize,
            queued_max_bytes: raw.integer("queued.max.messages.kbytes") as usize * 1024,
            topic_recreate: topic_recreate(raw),
            auto_offset_reset: OffsetReset::of(raw.text("auto.offset.reset")),
            partition_eof: raw.boolean("enable.partition.eof"),
            check_crcs: raw.boolean("check.crcs"),
            isolation_level: match raw.text("isolation.level") {
                "read_uncommitted" => IsolationLevel::ReadUncommitted,
                _ => IsolationLevel::ReadCommitted,
            },
            auto_offset_store: raw.boolean("enable.auto.offset.store"),
        })
    }
}

impl KafkaVersion {
    /// A version as in `0.10.0`, `0.8.2.1` or `3.9`.
    pub fn parse(text: &str) -> Option<KafkaVersion> {
        let mut numbers = text.trim().split('.').map(|number| {
            number.parse::<u16>().ok().filter(|_| number.bytes().all(|digit| digit.is_ascii_digit()))
        });
        let major = numbers.next()??;
        let minor = numbers.next().unwrap_or(Some(0))?;
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers.next().unwrap_or(Some(0))?;
        numbers.next().is_none().then_some(KafkaVersion(major, minor, patch))
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

fn client(raw: &RawConfig, side: Side) -> Result<ClientView, ConfigError> {
    let mut warnings = Vec::new();
    rules::words(raw, side, &mut warnings);
    rules::no_mock_brokers(raw)?;
    let bootstrap_servers = ServerAddress::parse_list(raw.text("bootstrap.servers")).map_err(|sentence| {
        ConfigError::new(raw.name("bootstrap.servers"), ConfigErrorKind::BadServer { sentence })
    })?;
    let fallback = raw.text("broker.version.fallback");
    let broker_version_fallback =
        KafkaVersion::parse(fallback).filter(|version| *version >= KafkaVersion(0, 8, 0));
    let broker_version_fallback = broker_version_fallback.ok_or_else(|| {
        let value = fallback.chars().take(100).collect();
        let expected = "the version of a broker from 0.8.0 on, as in 0.9.0".to_string();
        ConfigError::new("broker.version.fallback", ConfigErrorKind::Malformed { value, expected })
    })?;
    let (refresh, age) = rules::metadata_times(raw);
    let (reconnect_backoff, reconnect_backoff_max) =
        rules::backoff(raw, "reconnect.backoff.ms", "reconnect.backoff.max.ms")?;
    let (retry_backoff, retry_backoff_max) = rules::backoff(raw, "retry.backoff.ms", "retry.backoff.max.ms")?;
    Ok(ClientView {
        bootstrap_servers,
        client_id: raw.text("client.id").to_string(),
        client_software_name: raw.text("client.software.name").to_string(),
        client_software_version: raw.text("client.software.version").to_string(),
        client_rack: non_empty(raw.text("client.rack")),
        receive_message_max_bytes: raw.integer("receive.message.max.bytes") as usize,
        max_in_flight: raw.integer("max.in.flight") as usize,
        metadata_recovery: match raw.text("metadata.recovery.strategy") {
            "none" => MetadataRecovery::None,
            _ => {
                MetadataRecovery::Rebootstrap(millis(raw.integer("metadata.recovery.rebootstrap.trigger.ms")))
            }
        },
        metadata_refresh_interval: (refresh > 0).then(|| millis(refresh)),
        metadata_refresh_fast_interval: millis(raw.integer("topic.metadata.refresh.fast.interval.ms")),
        metadata_refresh_sparse: raw.boolean("topic.metadata.refresh.sparse"),
        topic_blacklist: TopicPatterns::parse(raw.text("topic.blacklist")).unwrap_or_default(),
        metadata_max_age: millis(age),
        metadata_propagation_max: millis(raw.integer("topic.metadata.propagation.max.ms")),
        metadata_leader_discovery: raw.boolean("metadata.leader.discovery"),
        socket_timeout: millis(raw.integer("socket.timeout.ms")),
        socket_send_buffer_bytes: positive(raw.integer("socket.send.buffer.bytes")),
        socket_receive_buffer_bytes: positive(raw.integer("socket.receive.buffer.bytes")),
        socket_keepalive: raw.boolean("socket.keepalive.enable"),
        socket_nagle_disable: raw.boolean("socket.nagle.disable"),
        socket_max_fails: positive(raw.integer("socket.max.fails")).map(|fails| fails as u32),
        connection_setup_timeout: millis(raw.integer("socket.connection.setup.timeout.ms")),
        connections_max_idle: duration_unless_zero(raw.integer("connections.max.idle.ms")),
        broker_address_ttl: millis(raw.integer("broker.address.ttl")),
        broker_address_family: match raw.text("broker.address.family") {
            "v4" => AddressFamily::V4,
            "v6" => AddressFamily::V6,
            _ => AddressFamily::Any,
        },
        canonical_bootstrap_names: raw.text("client.dns.lookup")
            == "resolve_canonical_bootstrap_servers_only",
        reconnect_backoff: millis(reconnect_backoff),
        reconnect_backoff_max: millis(reconnect_backoff_max),
        retry_backoff: millis(retry_backoff),
        retry_backoff_max: millis(retry_backoff_max),
        api_version_request: raw.boolean("api.version.request"),
        api_version_request_timeout: millis(raw.integer("api.version.request.timeout.ms")),
        api_version_fallback: millis(raw.integer("api.version.fallback.ms")),
        broker_version_fallback,
        statistics_interval: duration_unless_zero(raw.integer("statistics.interval.ms")),
        allow_auto_create_topics: raw.boolean("allow.auto.create.topics"),
        warnings,
    })
}

fn topic(client: &RawConfig, own: &RawConfig) -> Result<TopicView, ConfigError> {
    let said = |name: &'static str| if own.is_modified(name) { own } else { client };
    let acks = match said("acks").integer("acks") {
        0 => Acks::None,
        1 => Acks::Leader,
        -1 => Acks::All,
        number => {
            let kind =
                ConfigErrorKind::NotOneOf { value: number.to_string(), allowed: "0, 1, -1, all".to_string() };
            return Err(ConfigError::new(said("acks").name("acks"), kind));
        }
    };
    let codec = match (own.is_modified("compression.type"), own.text("compression.type")) {
        (true, codec) if codec != "inherit" => codec,
        _ => client.text("compression.type"),
    };
    let codec = match codec {
        "gzip" => CompressionCodec::Gzip,
        "snappy" => CompressionCodec::Snappy,
        "lz4" => CompressionCodec::Lz4,
        "zstd" => CompressionCodec::Zstd,
        _ => CompressionCodec::None,
    };
    let partitioner = match said("partitioner").text("partitioner") {
        "random" => PartitionerName::Random,
        "consistent" => PartitionerName::Consistent,
        "murmur2" => PartitionerName::Murmur2,
        "murmur2_random" => PartitionerName::Murmur2Random,
        "fnv1a" => PartitionerName::Fnv1a,
        "fnv1a_random" => PartitionerName::Fnv1aRandom,
        "sticky" => PartitionerName::Sticky,
        _ => PartitionerName::ConsistentRandom,
    };
    Ok(TopicView {
        acks,
        request_timeout: millis(said("request.timeout.ms").integer("request.timeout.ms")),
        message_timeout: duration_unless_zero(said("message.timeout.ms").integer("message.timeout.ms")),
        partitioner,
        newest_first: said("queuing.strategy").text("queuing.strategy") == "lifo",
        compression: Compression { codec, level: level(client, said("compression.level"), codec) },
        linger: None,
    })
}

/// The level for a codec: `compression.level`, or the codec's own property, cut to what the codec knows.
fn level(client: &RawConfig, topic: &RawConfig, codec: CompressionCodec) -> Option<i32> {
    let (own, highest) = match codec {
        CompressionCodec::Gzip => ("compression.gzip.level", 9),
        CompressionCodec::Lz4 => ("compression.lz4.level", 12),
        CompressionCodec::Zstd => ("compression.zstd.level", 22),
        CompressionCodec::None | CompressionCodec::Snappy => return None,
    };
    let common = topic.integer("compression.level");
    let level = if common == -1 { client.integer(own) } else { common };
    (level != -1).then(|| level.min(highest) as i32)
}

fn linger(raw: &RawConfig, topic: &TopicView, warnings: &mut Vec<String>) -> Result<Linger, ConfigError> {
    let timeout = topic.message_timeout.map_or(0, |timeout| timeout.as_millis() as i64);
    let partition_name = raw.name("linger.ms");
    let (partition, broker) = (raw.is_modified("linger.ms"), raw.is_modified("broker.linger.ms"));
    if partition && broker {
        warnings.push(format!("`{partition_name}` has no effect, because `broker.linger.ms` is set too"));
    } else if partition && raw.profile() != Profile::Librdkafka {
        // A program that was written for librdkafka knows no other property.
        warnings.push(format!(
            "`{partition_name}` is deprecated: it is a timer for every partition; `broker.linger.ms` gathers over \
             all partitions of a broker and sends fewer requests"
        ));
    }
    if partition && !broker {
        let millis = raw.float("linger.ms");
        let millis = rules::linger_within_message_timeout(raw, "linger.ms", millis, timeout)?;
        return Ok(Linger::PerPartition(Duration::from_secs_f64(millis / 1000.0)));
    }
    if raw.text("broker.linger.ms") == "auto" {
        return Ok(Linger::Auto);
    }
    let millis = raw.float("broker.linger.ms");
    let millis = rules::linger_within_message_timeout(raw, "broker.linger.ms", millis, timeout)?;
    Ok(Linger::PerBroker(Duration::from_secs_f64(millis / 1000.0)))
}

fn acks_number(acks: Acks) -> i64 {
    match acks {
        Acks::None => 0,
        Acks::Leader => 1,
        Acks::All => -1,
    }
}

fn strict(raw: &RawConfig) -> impl Fn(ClientView) -> Result<ClientView, ConfigError> + '_ {
    |view| strict_warnings(raw, &view.warnings).map(|()| view)
}

fn strict_warnings(raw: &RawConfig, warnings: &[String]) -> Result<(), ConfigError> {
    match warnings.first() {
        Some(warning) if raw.boolean("config.strict") => {
            let property = warning.split('`').nth(1).unwrap_or("config.strict").to_string();
            Err(ConfigError::new(property, ConfigErrorKind::Strict { warning: warning.clone() }))
        }
        _ => Ok(()),
    }
}

fn millis(number: i64) -> Duration {
    Duration::from_millis(number.max(0) as u64)
}

fn duration_unless_zero(number: i64) -> Option<Duration> {
    (number > 0).then(|| millis(number))
}

fn positive(number: i64) -> Option<usize> {
    (number > 0).then_some(number as usize)
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> RawConfig {
        configured(Profile::Rust, pairs)
    }

    fn configured(profile: Profile, pairs: &[(&str, &str)]) -> RawConfig {
        let mut config = RawConfig::new(profile);
        for (name, value) in pairs {
            config.set(name, value).unwrap();
        }
        config
    }

    fn producer(pairs: &[(&str, &str)]) -> ProducerView {
        ProducerView::new(&config(pairs)).unwrap()
    }

    fn producer_error(pairs: &[(&str, &str)]) -> String {
        ProducerView::new(&config(pairs)).unwrap_err().to_string()
    }

    fn consumer(pairs: &[(&str, &str)]) -> ConsumerView {
        ConsumerView::new(&config(pairs)).unwrap()
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn with_nothing_said_a_rust_producer_is_safe_and_has_no_warnings() {
        let view = producer(&[]);
        assert_eq!((view.topic.acks, view.idempotence, view.client.max_in_flight), (Acks::All, true, 5));
        assert_eq!(view.linger, Linger::PerBroker(5 * MS));
        assert_eq!(view.sticky_partitioning_linger, 10 * MS);
        assert_eq!(view.topic.message_timeout, Some(Duration::from_secs(300)));
        assert_eq!(view.client.warnings, Vec::<String>::new());
        assert!(
            view.client
                .require_servers()
                .unwrap_err()
                .to_string()
                .starts_with("`bootstrap.servers` isn't set")
        );
    }

    #[test]
    fn with_nothing_said_a_c_producer_is_as_in_librdkafka() {
        let view = ProducerView::new(&RawConfig::new(Profile::Librdkafka)).unwrap();
        assert_eq!(
            (view.topic.acks, view.idempotence, view.client.max_in_flight),
            (Acks::All, false, 1_000_000)
        );
        assert_eq!(view.topic.partitioner, PartitionerName::ConsistentRandom);
        assert_eq!((view.queue_max_messages, view.queue_max_bytes), (Some(100_000), 1 << 30));
    }

    #[test]
    fn with_nothing_said_a_consumer_reads_committed_and_fetches_no_more_than_it_queues() {
        let view = consumer(&[]);
        assert_eq!(view.isolation_level, IsolationLevel::ReadCommitted);
        assert_eq!((view.fetch_max_bytes, view.client.receive_message_max_bytes), (52_428_800, 100_000_000));
        assert_eq!(view.auto_offset_reset, OffsetReset::End);
        assert!(view.check_crcs);
        assert_eq!(consumer(&[("queued.max.messages.kbytes", "2048")]).fetch_max_bytes, 2_097_152);
    }

    #[test]
    fn linger_alone_is_a_timer_per_partition_with_a_deprecation_warning() {
        let view = producer(&[("linger.ms", "0.5")]);
        assert_eq!(view.linger, Linger::PerPartition(Duration::from_micros(500)));
        assert_eq!(view.client.warnings.len(), 1);
        assert!(view.client.warnings[0].starts_with("`linger.ms` is deprecated"));
        let view = producer(&[("queue.buffering.max.ms", "7")]);
        assert!(view.client.warnings[0].starts_with("`queue.buffering.max.ms` is deprecated"));
    }

    #[test]
    fn broker_linger_wins_over_linger_with_a_warning_that_names_both() {
        let view = producer(&[("linger.ms", "100"), ("broker.linger.ms", "7")]);
        assert_eq!(view.linger, Linger::PerBroker(7 * MS));
        assert_eq!(
            view.client.warnings,
            ["`linger.ms` has no effect, because `broker.linger.ms` is set too"]
        );
        assert_eq!(producer(&[("broker.linger.ms", "auto")]).linger, Linger::Auto);
    }

    #[test]
    fn a_hard_cap_beside_auto_is_kept_and_said() {
        let view = producer(&[("broker.linger.ms", "auto"), ("produce.request.max.partitions", "10")]);
        assert_eq!(view.broker_batch_max_partitions, Some(10));
        assert_eq!(
            view.client.warnings,
            ["`produce.request.max.partitions` stays a hard limit beside `broker.linger.ms=auto`"]
        );
        let view = producer(&[("broker.batch.max.bytes", "10")]);
        assert!(view.client.warnings[0].contains("`broker.batch.max.bytes`"));
    }

    #[test]
    fn a_linger_must_be_less_than_the_message_timeout() {
        assert_eq!(
            producer_error(&[("linger.ms", "1000"), ("delivery.timeout.ms", "1000")]),
            "`linger.ms` (1000) must be less than `delivery.timeout.ms` (1000): records would time out while they are \
             gathered"
        );
        assert!(producer_error(&[("broker.linger.ms", "900000")]).contains("`message.timeout.ms` (300000)"));
        assert_eq!(producer(&[("message.timeout.ms", "4")]).linger, Linger::PerBroker(2 * MS));
        assert_eq!(
            producer(&[("message.timeout.ms", "0"), ("linger.ms", "900000")]).topic.message_timeout,
            None
        );
    }

    #[test]
    fn idempotence_that_was_asked_for_contradicts_weaker_settings() {
        for (other, value, demand) in [
            ("acks", "1", "`acks` must be all, not 1, with `enable.idempotence`"),
            ("max.in.flight", "6", "`max.in.flight` must be at most 5, not 6, with `enable.idempotence`"),
            ("retries", "0", "`retries` must be at least 1, not 0, with `enable.idempotence`"),
        ] {
            assert_eq!(producer_error(&[("enable.idempotence", "true"), (other, value)]), demand);
        }
        assert_eq!(
            producer(&[("enable.idempotence", "true"), ("max.in.flight", "3")]).client.max_in_flight,
            3
        );
    }

    #[test]
    fn idempotence_by_default_gives_way_to_weaker_settings() {
        let view = producer(&[("acks", "1")]);
        assert_eq!((view.topic.acks, view.idempotence), (Acks::Leader, false));
        assert_eq!(view.client.warnings, ["`enable.idempotence` is off: for it `acks` must be all, not 1"]);
        assert!(!producer(&[("max.in.flight", "100")]).idempotence);
        assert!(!producer(&[("retries", "0")]).idempotence);
    }

    #[test]
    fn acks_of_more_than_one_replica_by_number_are_refused() {
        assert_eq!(producer_error(&[("acks", "2")]), "`acks` is \"2\", but must be one of: 0, 1, -1, all");
    }

    #[test]
    fn sizes_that_contradict_each_other_are_refused_or_reconciled() {
        let view = producer(&[("max.request.size", "50000")]);
        assert_eq!(
            (view.message_max_bytes, view.max_request_size, view.batch_size),
            (50_000, 50_000, 50_000)
        );
        let view = producer(&[("message.max.bytes", "100000000")]);
        assert_eq!((view.message_max_bytes, view.max_request_size), (100_000_000, 100_000_000));
        let both = producer_error(&[("message.max.bytes", "60000"), ("max.request.size", "50000")]);
        assert!(both.contains("`message.max.bytes` (60000)") && both.contains("`max.request.size` (50000)"));
        let both = producer_error(&[("message.max.bytes", "60000"), ("buffer.memory", "32768")]);
        assert!(both.contains("`buffer.memory` (32768 bytes)") && both.contains("`message.max.bytes`"));
        assert_eq!(producer(&[("buffer.memory", "32768")]).client.warnings.len(), 1);
    }

    #[test]
    fn an_answer_has_room_for_what_was_asked_for() {
        let view = consumer(&[("fetch.max.bytes", "200000000")]);
        assert_eq!((view.fetch_max_bytes, view.client.receive_message_max_bytes), (200_000_000, 200_000_512));
        let view = consumer(&[("receive.message.max.bytes", "2000000")]);
        assert_eq!((view.fetch_max_bytes, view.client.receive_message_max_bytes), (1_999_488, 2_000_000));
        let both = config(&[("fetch.max.bytes", "2000000"), ("receive.message.max.bytes", "2000000")]);
        let error = ConsumerView::new(&both).unwrap_err().to_string();
        assert!(
            error.contains("`receive.message.max.bytes` (2000000)") && error.contains("`fetch.max.bytes`")
        );
        let largest = consumer(&[("fetch.max.bytes", "2147483135")]);
        assert_eq!(largest.client.receive_message_max_bytes, 2_147_483_647);
    }

    #[test]
    fn the_longest_delay_must_not_be_shorter_than_the_first() {
        let view = producer(&[("reconnect.backoff.ms", "20000"), ("retry.backoff.max.ms", "10")]);
        assert_eq!(view.client.reconnect_backoff_max, Duration::from_secs(20));
        assert_eq!(view.client.retry_backoff, 10 * MS);
        assert_eq!(
            producer_error(&[("retry.backoff.ms", "20"), ("retry.backoff.max.ms", "10")]),
            "`retry.backoff.max.ms` (10) must not be less than `retry.backoff.ms` (20)"
        );
    }

    #[test]
    fn group_times_that_contradict_each_other_are_refused() {
        let raw = config(&[("session.timeout.ms", "6000"), ("max.poll.interval.ms", "5000")]);
        let error = ConsumerView::new(&raw).unwrap_err().to_string();
        assert_eq!(error, "`max.poll.interval.ms` (5000) must not be less than `session.timeout.ms` (6000)");
    }

    #[test]
    fn topics_in_use_never_get_older_than_the_age_that_was_set() {
        assert_eq!(producer(&[]).client.metadata_max_age, Duration::from_secs(900));
        let view = producer(&[("metadata.max.age.ms", "1000")]).client;
        assert_eq!((view.metadata_refresh_interval, view.metadata_max_age), (Some(1000 * MS), 1000 * MS));
        let view = producer(&[("topic.metadata.refresh.interval.ms", "-1")]).client;
        assert_eq!((view.metadata_refresh_interval, view.metadata_max_age), (None, Duration::from_secs(900)));
    }

    #[test]
    fn properties_of_the_other_kind_of_client_and_without_effect_are_said() {
        let view = producer(&[("fetch.min.bytes", "2"), ("socket.max.fails", "2"), ("key.serializer", "x")]);
        assert_eq!(
            view.client.warnings,
            [
                "`fetch.min.bytes` belongs to a consumer and has no effect on a producer",
                "`socket.max.fails` has no effect: the first request that times out closes its connection",
            ]
        );
        let view = consumer(&[("acks", "1"), ("group.id", "g"), ("group.instance.id", "i")]);
        assert_eq!(view.group_id.as_deref(), Some("g"));
        assert_eq!(view.client.warnings.len(), 2);
        let strict = producer_error(&[("fetch.min.bytes", "2"), ("config.strict", "true")]);
        assert!(strict.contains("`fetch.min.bytes`") && strict.contains("`config.strict`"));
    }

    #[test]
    fn a_topic_of_its_own_overrides_the_clients_defaults() {
        let client = config(&[("acks", "1"), ("compression.type", "lz4"), ("compression.level", "12")]);
        let mut own = RawConfig::topic(Profile::Rust);
        let inherited = TopicView::new(&client, &own).unwrap();
        assert_eq!(inherited, ProducerView::new(&client).unwrap().topic);
        assert_eq!(inherited.compression, Compression { codec: CompressionCodec::Lz4, level: Some(12) });
        own.set("acks", "0").unwrap();
        own.set("compression.codec", "gzip").unwrap();
        own.set("partitioner", "murmur2").unwrap();
        let view = TopicView::new(&client, &own).unwrap();
        assert_eq!((view.acks, view.partitioner), (Acks::None, PartitionerName::Murmur2));
        assert_eq!(view.compression, Compression { codec: CompressionCodec::Gzip, level: Some(9) });
        own.set("compression.codec", "inherit").unwrap();
        assert_eq!(TopicView::new(&client, &own).unwrap().compression.codec, CompressionCodec::Lz4);
    }

    #[test]
    fn idempotence_keeps_the_order_of_arrival() {
        let newest_first = [("queuing.strategy", "lifo")];
        let demand = "`queuing.strategy` must be fifo, not lifo, with `enable.idempotence`";
        assert_eq!(producer_error(&[("enable.idempotence", "true"), newest_first[0]]), demand);
        let view = producer(&newest_first);
        assert_eq!(
            (view.topic.newest_first, view.idempotence),
            (true, false),
            "it gives way if nobody asked for it"
        );
        let mut own = RawConfig::topic(Profile::Rust);
        own.set("queuing.strategy", "lifo").unwrap();
        let error = TopicView::new(&config(&[]), &own).unwrap_err().to_string();
        assert!(error.contains("must be fifo, not lifo, with the client's `enable.idempotence`"), "{error}");
        let view = TopicView::new(&config(&[("enable.idempotence", "false")]), &own).unwrap();
        assert!(view.newest_first);
    }

    #[test]
    fn a_topics_acks_contradict_idempotence_that_was_asked_for() {
        let client = config(&[("enable.idempotence", "true")]);
        let mut own = RawConfig::topic(Profile::Rust);
        own.set("acks", "1").unwrap();
        assert!(TopicView::new(&client, &own).unwrap_err().to_string().contains("`enable.idempotence`"));
    }

    #[test]
    fn a_topics_acks_contradict_the_idempotence_that_the_client_has_without_being_asked() {
        let mut own = RawConfig::topic(Profile::Rust);
        own.set("acks", "1").unwrap();
        let error = TopicView::new(&config(&[]), &own).unwrap_err();
        assert_eq!(error.property, "acks");
        let text = error.to_string();
        assert!(text.contains("`acks` must be all, not 1, with the client's `enable.idempotence`"), "{text}");
        assert_eq!(TopicView::new(&config(&[("acks", "0")]), &own).unwrap().acks, Acks::Leader);
    }

    #[test]
    fn levels_are_cut_to_what_the_codec_knows() {
        let level = |pairs| producer(pairs).topic.compression.level;
        assert_eq!(level(&[("compression.type", "gzip")]), None);
        assert_eq!(level(&[("compression.type", "gzip"), ("compression.level", "12")]), Some(9));
        assert_eq!(level(&[("compression.type", "zstd"), ("compression.zstd.level", "-7")]), Some(-7));
        assert_eq!(level(&[("compression.type", "snappy"), ("compression.level", "3")]), None);
    }

    #[test]
    fn broker_versions_are_read_as_kafka_writes_them() {
        assert_eq!(KafkaVersion::parse("0.8.2.1"), Some(KafkaVersion(0, 8, 2)));
        assert_eq!(KafkaVersion::parse("3.9"), Some(KafkaVersion(3, 9, 0)));
        assert!(KafkaVersion(0, 10, 0) > KafkaVersion::parse("0.9.0").unwrap());
        for text in ["", "0.", "x", "1.2.3.4.5", "0.8.+1", "99999.0"] {
            assert_eq!(KafkaVersion::parse(text), None, "{text}");
        }
        assert!(producer_error(&[("broker.version.fallback", "0.7.2")]).contains("from 0.8.0 on"));
    }
}
