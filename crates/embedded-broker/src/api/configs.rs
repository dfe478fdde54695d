//! Configuration of topics and brokers: the entries, their defaults and their valid values.

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use crate::{
    cluster::Cluster,
    listeners::ListenerId,
    options::{BrokerId, ClusterOptions},
    provisioning::Refusal,
};

/// The source of a value, numbered as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    Topic = 1,
    DynamicBroker = 2,
    StaticBroker = 4,
    Default = 5,
    ClientMetrics = 7,
    Group = 8,
}

/// The type of a value, numbered as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// An entry in a DescribeConfigs response.
#[derive(Clone, Debug)]
pub(crate) struct ConfigEntry {
    pub name: &'static str,
    pub value: String,
    pub source: ConfigSource,
    pub config_type: ConfigType,
    pub read_only: bool,
    /// The name of the broker property with the entry's default.
    pub synonym: Option<&'static str>,
    pub default: String,
}

/// (name, default, type, name of the broker property)
type Row = (&'static str, &'static str, ConfigType, Option<&'static str>);

use ConfigType::{Boolean, Double, Int, List, Long, String as Text};

/// Every topic configuration of Kafka 4.3. `config_effects.rs` says what they do here.
const TOPIC_CONFIGS: [Row; 33] = [
    ("cleanup.policy", "delete", List, Some("log.cleanup.policy")),
    ("compression.gzip.level", "-1", Int, Some("compression.gzip.level")),
    ("compression.lz4.level", "9", Int, Some("compression.lz4.level")),
    ("compression.type", "producer", Text, Some("compression.type")),
    ("compression.zstd.level", "3", Int, Some("compression.zstd.level")),
    ("delete.retention.ms", "86400000", Long, Some("log.cleaner.delete.retention.ms")),
    ("file.delete.delay.ms", "60000", Long, Some("log.segment.delete.delay.ms")),
    ("flush.messages", "9223372036854775807", Long, Some("log.flush.interval.messages")),
    ("flush.ms", "9223372036854775807", Long, None),
    ("follower.replication.throttled.replicas", "", List, None),
    ("index.interval.bytes", "4096", Int, Some("log.index.interval.bytes")),
    ("leader.replication.throttled.replicas", "", List, None),
    ("local.retention.bytes", "-2", Long, Some("log.local.retention.bytes")),
    ("local.retention.ms", "-2", Long, Some("log.local.retention.ms")),
    ("max.compaction.lag.ms", "9223372036854775807", Long, Some("log.cleaner.max.compaction.lag.ms")),
    ("max.message.bytes", "1048588", Int, Some("message.max.bytes")),
    ("message.timestamp.after.max.ms", "3600000", Long, Some("log.message.timestamp.after.max.ms")),
    (
        "message.timestamp.before.max.ms",
        "9223372036854775807",
        Long,
        Some("log.message.timestamp.before.max.ms"),
    ),
    ("message.timestamp.type", "CreateTime", Text, Some("log.message.timestamp.type")),
    ("min.cleanable.dirty.ratio", "0.5", Double, Some("log.cleaner.min.cleanable.ratio")),
    ("min.compaction.lag.ms", "0", Long, Some("log.cleaner.min.compaction.lag.ms")),
    ("min.insync.replicas", "1", Int, Some("min.insync.replicas")),
    ("preallocate", "false", Boolean, Some("log.preallocate")),
    ("remote.log.copy.disable", "false", Boolean, None),
    ("remote.log.delete.on.disable", "false", Boolean, None),
    ("remote.storage.enable", "false", Boolean, None),
    ("retention.bytes", "-1", Long, Some("log.retention.bytes")),
    ("retention.ms", "604800000", Long, None),
    ("segment.bytes", "1073741824", Int, Some("log.segment.bytes")),
    ("segment.index.bytes", "10485760", Int, Some("log.index.size.max.bytes")),
    ("segment.jitter.ms", "0", Long, None),
    ("segment.ms", "604800000", Long, None),
    ("unclean.leader.election.enable", "false", Boolean, Some("unclean.leader.election.enable")),
];

/// Returns all entries of a topic.
pub(crate) fn topic_configs(options: &ClusterOptions, set: &SortedMap<String, String>) -> Vec<ConfigEntry> {
    let entries = TOPIC_CONFIGS.iter().map(|(name, default, config_type, synonym)| {
        let default = match *name {
            "max.message.bytes" => options.message_max_bytes.to_string(),
            "min.insync.replicas" => options.min_insync_replicas.to_string(),
            _ => (*default).to_owned(),
        };
        let value = set.get(*name);
        ConfigEntry {
            name,
            value: value.cloned().unwrap_or_else(|| default.clone()),
            source: if value.is_some() { ConfigSource::Topic } else { ConfigSource::Default },
            config_type: *config_type,
            read_only: false,
            synonym: *synonym,
            default,
        }
    });
    entries.collect()
}

/// Returns the entries of a broker that the cluster knows of.
pub(crate) fn broker_configs(cluster: &Cluster, id: BrokerId) -> Vec<ConfigEntry> {
    let options = &cluster.options;
    let broker = &cluster.brokers[&id];
    let listeners = (0..=options.listeners.len()).map(ListenerId).filter_map(|listener| {
        let port = broker.port_of(listener)?;
        Some(format!("{}://{}:{port}", options.protocol_of(listener), broker.host))
    });
    let listeners = listeners.collect::<Vec<_>>().join(",");
    let rows = [
        ("advertised.listeners", listeners.clone(), Text),
        ("auto.create.topics.enable", options.auto_create_topics.to_string(), Boolean),
        ("broker.id", id.to_string(), Int),
        ("broker.rack", broker.rack.clone().unwrap_or_default(), Text),
        ("connections.max.idle.ms", options.connections_max_idle.as_millis().to_string(), Long),
        ("default.replication.factor", options.replication_factor.to_string(), Int),
        ("fetch.max.bytes", options.fetch_max_bytes.to_string(), Int),
        (
            "group.initial.rebalance.delay.ms",
            options.group_initial_rebalance_delay.as_millis().to_string(),
            Int,
        ),
        ("listeners", listeners, List),
        ("max.incremental.fetch.session.cache.slots", options.max_fetch_sessions.to_string(), Int),
        ("message.max.bytes", options.message_max_bytes.to_string(), Int),
        ("min.insync.replicas", options.min_insync_replicas.to_string(), Int),
        ("node.id", id.to_string(), Int),
        ("num.partitions", options.partitions.to_string(), Int),
        ("queued.max.request.bytes", options.queued_max_request_bytes.to_string(), Long),
        ("socket.request.max.bytes", options.max_request_bytes.to_string(), Int),
        (
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            options.transaction_timeout_interval.as_millis().to_string(),
            Int,
        ),
        ("transaction.max.timeout.ms", options.transaction_max_timeout_ms.to_string(), Int),
        ("transaction.partition.verification.enable", options.transaction_verification.to_string(), Boolean),
    ];
    let entries = rows.into_iter().map(|(name, value, config_type)| ConfigEntry {
        name,
        default: value.clone(),
        value,
        source: ConfigSource::StaticBroker,
        config_type,
        read_only: true,
        synonym: None,
    });
    entries.collect()
}

/// Rejects unknown entries and invalid values.
pub(crate) fn check_topic_configs(configs: &SortedMap<String, String>) -> Result<(), Refusal> {
    for (name, value) in configs {
        let Some((_, _, config_type, _)) = TOPIC_CONFIGS.iter().find(|(known, ..)| known == name) else {
            return Err((ErrorCode::INVALID_CONFIG, format!("Unknown topic config name: {name}")));
        };
        let fits = match config_type {
            Boolean => matches!(value.as_str(), "true" | "false"),
            Int => value.parse::<i32>().is_ok(),
            Long => value.parse::<i64>().is_ok(),
            Double => value.parse::<f64>().is_ok(),
            List | Text => true,
        };
        let fits = fits
            && match name.as_str() {
                "message.timestamp.type" => matches!(value.as_str(), "CreateTime" | "LogAppendTime"),
                "compression.type" => {
                    matches!(value.as_str(), "producer" | "uncompressed" | "gzip" | "snappy" | "lz4" | "zstd")
                }
                "cleanup.policy" => value.split(',').all(|p| matches!(p.trim(), "delete" | "compact" | "")),
                _ => true,
            };
        if !fits {
            return Err((
                ErrorCode::INVALID_CONFIG,
                format!("Invalid value {value} for configuration {name}"),
            ));
        }
        check_bounds(name, value)?;
    }
    check_lags(configs)
}

/// The smallest and the largest values, as in Kafka, except that segments may be smaller.
const BOUNDS: [(&str, i64, i64); 14] = [
    ("compression.lz4.level", 1, 17),
    ("compression.zstd.level", -131_072, 22),
    ("delete.retention.ms", 0, i64::MAX),
    ("max.compaction.lag.ms", 1, i64::MAX),
    ("max.message.bytes", 0, i64::MAX),
    ("message.timestamp.after.max.ms", 0, i64::MAX),
    ("message.timestamp.before.max.ms", 0, i64::MAX),
    ("min.cleanable.dirty.ratio", 0, 1),
    ("min.compaction.lag.ms", 0, i64::MAX),
    ("min.insync.replicas", 1, i64::MAX),
    ("retention.ms", -1, i64::MAX),
    ("segment.bytes", 14, i64::MAX),
    ("segment.jitter.ms", 0, i64::MAX),
    ("segment.ms", 1, i64::MAX),
];

/// Error: a number is out of its bounds.
fn check_bounds(name: &str, value: &str) -> Result<(), Refusal> {
    let Ok(number) = value.parse::<f64>() else { return Ok(()) };
    let bounds = BOUNDS.iter().find(|(known, ..)| *known == name);
    let demand = match bounds {
        Some((_, least, _)) if number < *least as f64 => format!("at least {least}"),
        Some((_, _, most)) if number > *most as f64 => format!("no more than {most}"),
        None if name == "compression.gzip.level" && number != -1.0 && !(1.0..=9.0).contains(&number) => {
            "between 1 and 9 or equal to -1".to_owned()
        }
        _ => return Ok(()),
    };
    let message = format!("Invalid value {value} for configuration {name}: Value must be {demand}");
    Err((ErrorCode::INVALID_CONFIG, message))
}

/// Error: the lags of compaction contradict each other.
fn check_lags(configs: &SortedMap<String, String>) -> Result<(), Refusal> {
    let lag = |name| configs.get(name).and_then(|value: &String| value.parse::<i64>().ok());
    let (min, max) = (lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms"));
    match (min.unwrap_or(0), max.unwrap_or(i64::MAX)) {
        (min, max) if min > max => Err((
            ErrorCode::INVALID_CONFIG,
            format!(
                "conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})"
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns true if the entry is a list, to which values can be appended.
pub(crate) fn is_list(name: &str) -> bool {
    TOPIC_CONFIGS.iter().any(|(known, _, config_type, _)| *known == name && *config_type == List)
}

/// Returns the default of an entry.
pub(crate) fn default_of(name: &str) -> Option<&'static str> {
    TOPIC_CONFIGS.iter().find(|(known, ..)| *known == name).map(|(_, default, ..)| *default)
}
