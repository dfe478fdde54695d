//! The settings of a consumer.

use std::time::Duration;

use super::partition::PrefetchLimits;
use crate::{
    config::{DamagedBatchPolicy, EffectiveConfig, IsolationLevel, OffsetReset, TopicRecreatePolicy},
    wall_clock::WallClock,
};

/// The settings of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerSettings {
    /// `fetch.wait.max.ms`.
    pub fetch_wait_max: Duration,
    /// `fetch.min.bytes`.
    pub fetch_min_bytes: i32,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: i32,
    /// `max.partition.fetch.bytes`.
    pub partition_fetch_max_bytes: i32,
    /// `fetch.error.backoff.ms`.
    pub fetch_error_backoff: Duration,
    /// `queued.min.messages` per partition; `queued.max.messages.kbytes`, in bytes, for all of them together.
    pub prefetch: PrefetchLimits,
    /// `client.memory.max.bytes`: the most memory of queued and fetched records; `None` means no limit.
    pub max_memory: Option<usize>,
    /// `fetch.queue.backoff.ms`, if it is set: how long a full queue delays the next Fetch.
    pub queue_backoff: Option<Duration>,
    /// `auto.offset.reset`.
    pub auto_offset_reset: OffsetReset,
    /// The system's time, from which `auto.offset.reset=by_duration:...` counts.
    pub wall_clock: WallClock,
    /// `group.id`.
    pub group_id: Option<String>,
    /// True if the offsets of delivered records count as stored (`enable.auto.offset.store`).
    pub auto_offset_store: bool,
    /// `topic.recreate.policy`.
    pub topic_recreate: TopicRecreatePolicy,
    /// `fetch.damaged.batch.policy`.
    pub damaged_batch: DamagedBatchPolicy,
    /// `enable.partition.eof`.
    pub partition_eof: bool,
    /// `check.crcs`.
    pub check_crcs: bool,
    /// `isolation.level`.
    pub isolation_level: IsolationLevel,
    /// `client.rack`.
    pub rack: String,
    /// `socket.timeout.ms`: the time that a broker may take to respond, in addition to `fetch.wait.max.ms`.
    pub response_timeout: Duration,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `receive.message.max.bytes`: a batch that decompresses to more is refused.
    pub max_batch_bytes: usize,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        Self {
            fetch_wait_max: Duration::from_millis(500),
            fetch_min_bytes: 1,
            fetch_max_bytes: 52_428_800,
            partition_fetch_max_bytes: 1_048_576,
            fetch_error_backoff: Duration::from_millis(500),
            prefetch: PrefetchLimits { messages: 100_000, bytes: 65_536 * 1024 },
            max_memory: None,
            queue_backoff: None,
            auto_offset_reset: OffsetReset::End,
            wall_clock: WallClock::default(),
            group_id: None,
            auto_offset_store: true,
            topic_recreate: TopicRecreatePolicy::Reset,
            damaged_batch: DamagedBatchPolicy::Stop,
            partition_eof: false,
            check_crcs: true,
            isolation_level: IsolationLevel::ReadCommitted,
            rack: String::new(),
            response_timeout: Duration::from_secs(60),
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            max_batch_bytes: 100_000_000,
        }
    }
}

impl ConsumerSettings {
    /// Reads the settings from the configuration.
    pub fn new(config: &EffectiveConfig<'_>, wall_clock: WallClock) -> Self {
        Self {
            fetch_wait_max: config.millis("fetch.wait.max.ms"),
            fetch_min_bytes: int32(config, "fetch.min.bytes"),
            fetch_max_bytes: int32(config, "fetch.max.bytes"),
            partition_fetch_max_bytes: int32(config, "max.partition.fetch.bytes"),
            fetch_error_backoff: config.millis("fetch.error.backoff.ms"),
            prefetch: PrefetchLimits {
                messages: config.size("queued.min.messages"),
                bytes: config.size("queued.max.messages.kbytes") * 1024,
            },
            max_memory: config.positive("client.memory.max.bytes"),
            queue_backoff: Some("fetch.queue.backoff.ms")
                .filter(|name| config.is_modified(name))
                .and_then(|name| config.positive_millis(name)),
            auto_offset_reset: OffsetReset::of(config.text("auto.offset.reset")),
            wall_clock,
            group_id: config.non_empty("group.id"),
            auto_offset_store: config.boolean("enable.auto.offset.store"),
            topic_recreate: TopicRecreatePolicy::new(config),
            damaged_batch: DamagedBatchPolicy::new(config),
            partition_eof: config.boolean("enable.partition.eof"),
            check_crcs: config.boolean("check.crcs"),
            isolation_level: IsolationLevel::new(config),
            rack: config.text("client.rack").to_owned(),
            response_timeout: config.millis("socket.timeout.ms"),
            retry_backoff: config.millis("retry.backoff.ms"),
            retry_backoff_max: config.millis("retry.backoff.max.ms"),
            max_batch_bytes: config.size("receive.message.max.bytes"),
        }
    }
}

/// Reads a number of bytes that requests carry as an int32.
fn int32(config: &EffectiveConfig<'_>, name: &'static str) -> i32 {
    i32::try_from(config.integer(name)).unwrap_or(i32::MAX)
}
