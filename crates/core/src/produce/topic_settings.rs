//! What may differ from topic to topic of one producer. Everything else is the producer's: connections, the queue and its
//! limits, the identity.
//!
//! A topic has its settings for life, so that nobody has to look anything up for a record: the application's threads find
//! them at the topic's handle, and the broker's owner beside each partition.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{batch::SealOptions, compress::Compression};

use super::{
    accumulator::BatchLimits, order::QueueOrder, partitioner::Partitioner, shared::ProducerSettings,
};
use crate::machine::Instant;

/// The settings of a topic.
#[derive(Clone, Debug)]
pub struct TopicSettings {
    /// `acks`: 0, 1 or -1 for all.
    pub acks: i16,
    /// `request.timeout.ms`: how long a broker may wait for its followers.
    pub acks_timeout: Duration,
    /// `message.timeout.ms`; `None` waits for ever.
    pub message_timeout: Option<Duration>,
    /// `compression.type`.
    pub compression: Compression,
    /// `compression.level`; `None` is the codec's own default.
    pub compression_level: Option<i32>,
    /// When a batch is full.
    pub batch: BatchLimits,
    /// Who chooses the partitions.
    pub partitioner: Arc<Partitioner>,
    /// `queuing.strategy`, `msg_order_cmp`; `None` sends what came first first.
    pub order: Option<Arc<QueueOrder>>,
}

/// What a ProduceRequest says for all of its batches: others can't be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTerms {
    /// `acks`: 0, 1 or -1 for all.
    pub acks: i16,
    /// `request.timeout.ms`.
    pub acks_timeout: Duration,
}

impl TopicSettings {
    /// Those of a topic about which nothing was said.
    pub fn of_producer(settings: &ProducerSettings, partitioner: Arc<Partitioner>) -> Self {
        Self {
            acks: settings.acks,
            acks_timeout: settings.acks_timeout,
            message_timeout: settings.message_timeout,
            compression: settings.compression,
            compression_level: settings.compression_level,
            batch: settings.batch,
            partitioner,
            order: settings.newest_first.then(|| Arc::new(QueueOrder::NewestFirst)),
        }
    }

    /// Whether it is all the same which of the two a topic has. An application's partitioner or
    /// order is the same as itself only.
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

    /// What its requests say.
    pub const fn terms(&self) -> RequestTerms {
        RequestTerms { acks: self.acks, acks_timeout: self.acks_timeout }
    }

    /// How its batches are sealed, without what identifies the producer.
    pub fn seal_options(&self) -> SealOptions {
        SealOptions { compression: self.compression, level: self.compression_level, ..SealOptions::default() }
    }

    /// What came before then has timed out; `None` if nothing has.
    pub(crate) fn timed_out_before(&self, now: Instant) -> Option<Instant> {
        let limit = self.message_timeout.map(|timeout| now.earlier_by(timeout));
        limit.filter(|limit| *limit > Instant::ZERO)
    }
}

/// How late a message's timeout may be noticed, as a fraction of the timeout.
const EXPIRY_FRACTION: u32 = 20;

/// How often to look for messages that time out after so long.
pub(crate) fn expiry_interval(timeout: Duration) -> Duration {
    (timeout / EXPIRY_FRACTION).clamp(Duration::from_millis(1), Duration::from_secs(1))
}

/// The shorter one of two timeouts, of which `None` is endless.
pub(crate) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
