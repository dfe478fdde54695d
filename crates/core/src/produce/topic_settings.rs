//! The settings that may differ between the topics of one producer. Everything else belongs to the producer:
//! connections, the queue and its limits, the identity.
//!
//! A topic keeps its settings, so that no lookup is needed for a record: the application's threads find them in the
//! topic's handle, and the broker actor beside each partition. Only its linger may change ([`Linger::of_topic`]).
//!
//! [`Linger::of_topic`]: super::collector::Linger::of_topic

use std::{sync::Arc, time::Duration};

use ottla_protocol::{batch::SealOptions, compress::Compression};

use super::{
    accumulator::BatchLimits, acks::Acks, order::QueueOrder, partitioner::Partitioner,
    settings::ProducerSettings,
};
use crate::{config::EffectiveConfig, machine::Instant};

/// The settings of a topic.
#[derive(Clone, Debug)]
pub struct TopicSettings {
    /// `acks`.
    pub acks: Acks,
    /// `request.timeout.ms`: how long a broker may wait for its followers.
    pub acks_timeout: Duration,
    /// `message.timeout.ms`; `None` means no limit.
    pub message_timeout: Option<Duration>,
    /// `compression.type`.
    pub compression: Compression,
    /// `compression.level`; `None` is the codec's own default.
    pub compression_level: Option<i32>,
    /// The limits at which a batch is full.
    pub batch: BatchLimits,
    /// `partitioner`, or the application's own.
    pub partitioner: Arc<Partitioner>,
    /// `queuing.strategy`, `msg_order_cmp`; `None` is first in, first out.
    pub order: Option<Arc<QueueOrder>>,
}

/// The terms that a ProduceRequest states once for all of its batches: batches with other terms need another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTerms {
    /// `acks`.
    pub acks: Acks,
    /// `request.timeout.ms`.
    pub acks_timeout: Duration,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            acks: Acks::All,
            acks_timeout: Duration::from_secs(30),
            message_timeout: Some(Duration::from_secs(300)),
            compression: Compression::None,
            compression_level: None,
            batch: BatchLimits {
                max_bytes: 1_000_000,
                max_records: 10_000,
                max_age_nanos: 5_000_000_000,
                sums_early: true,
            },
            partitioner: Arc::default(),
            order: None,
        }
    }
}

impl TopicSettings {
    /// Reads the settings from the configuration of a producer.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        let message_timeout = config.positive_millis("message.timeout.ms");
        let compression = Compression::parse(config.text("compression.type")).unwrap_or_default();
        let newest_first = config.text("queuing.strategy") == "lifo";
        Self {
            acks: Acks::new(config),
            acks_timeout: config.millis("request.timeout.ms"),
            message_timeout,
            compression,
            compression_level: compression_level(config, compression),
            batch: BatchLimits {
                max_bytes: config.size("batch.size"),
                max_records: config.size("batch.num.messages"),
                max_age_nanos: max_age_nanos(message_timeout),
                sums_early: compression == Compression::None,
            },
            partitioner: Arc::new(Partitioner::named(config.text("partitioner"))),
            order: newest_first.then(|| Arc::new(QueueOrder::NewestFirst)),
        }
    }

    /// Reads the settings from the configuration of a topic. The size of its batches is that of the producer.
    pub fn of_topic(config: &EffectiveConfig<'_>, producer: &ProducerSettings) -> Self {
        let BatchLimits { max_bytes, max_records, .. } = producer.topic.batch;
        let own = Self::new(config);
        Self { batch: BatchLimits { max_bytes, max_records, ..own.batch }, ..own }
    }

    /// Returns whether the settings are equal. An application's partitioner or order equals itself only.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            acks,
            acks_timeout,
            message_timeout,
            compression,
            compression_level,
            batch,
            partitioner,
            order,
        } = self;
        *acks == other.acks
            && *acks_timeout == other.acks_timeout
            && *message_timeout == other.message_timeout
            && *compression == other.compression
            && *compression_level == other.compression_level
            && *batch == other.batch
            && (Arc::ptr_eq(partitioner, &other.partitioner) || partitioner.is_same(&other.partitioner))
            && match (order, &other.order) {
                (None, None) => true,
                (Some(one), Some(other)) => one.is_same(other),
                _ => false,
            }
    }

    /// Returns the terms of the topic's requests.
    pub const fn terms(&self) -> RequestTerms {
        RequestTerms { acks: self.acks, acks_timeout: self.acks_timeout }
    }

    /// Returns how the topic's batches are sealed, without the producer's identity.
    pub fn seal_options(&self) -> SealOptions {
        SealOptions { compression: self.compression, level: self.compression_level, ..SealOptions::default() }
    }

    /// Returns the instant before which records were accepted that have timed out; `None` if none has.
    pub(crate) fn timed_out_before(&self, now: Instant) -> Option<Instant> {
        let limit = self.message_timeout.map(|timeout| now.earlier_by(timeout));
        limit.filter(|limit| *limit > Instant::ZERO)
    }
}

/// Returns the level for a codec: `compression.level`, or the codec's own property, limited to the codec's range.
fn compression_level(config: &EffectiveConfig<'_>, codec: Compression) -> Option<i32> {
    let own = match codec {
        Compression::Gzip => "compression.gzip.level",
        Compression::Lz4 => "compression.lz4.level",
        Compression::Zstd => "compression.zstd.level",
        Compression::None | Compression::Snappy => return None,
    };
    let level = match config.integer("compression.level") {
        -1 => config.integer(own),
        common => common,
    };
    let highest = *codec.levels()?.end();
    (level != -1).then(|| level.min(highest.into()) as i32)
}

/// Returns how long a batch may collect, so that its records time out close to their own time.
fn max_age_nanos(message_timeout: Option<Duration>) -> u64 {
    message_timeout
        .and_then(|timeout| u64::try_from((timeout / EXPIRY_FRACTION).as_nanos()).ok())
        .unwrap_or(u64::MAX)
}

/// The largest delay after which a message's timeout is noticed, as a fraction of the timeout.
const EXPIRY_FRACTION: u32 = 20;

/// Returns the interval at which to check for messages with this timeout.
pub(crate) fn expiry_interval(timeout: Duration) -> Duration {
    (timeout / EXPIRY_FRACTION).clamp(Duration::from_millis(1), Duration::from_secs(1))
}

/// Returns the shorter one of two timeouts, of which `None` is endless.
pub(crate) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
