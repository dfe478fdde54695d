//! What parts of the cluster actor and halves of broker actors know of brokers.

use std::sync::Arc;

use ottla_protocol::uuid::Uuid;

use super::{metadata::LeaderHint, purge::Purge};
use crate::error::Error;

/// Identifies a broker actor within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerKey(pub u32);

/// A message to all broker actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// Records may be due immediately: an application flushes, or the producer ID became known.
    Flush,
    /// Purge messages.
    Purge(Purge),
}

/// The transactional features of a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionFeatures {
    /// The cluster's level of the feature `transaction.version`; 0 if the broker does not report it.
    pub transaction_version: i16,
    /// The age of that report: a higher number is newer.
    pub epoch: i64,
    /// True if the broker has the versions of the newer protocol (KIP-890).
    pub has_versions: bool,
}

/// Information that a broker sends along with a response.
#[derive(Debug)]
pub enum BrokerNews {
    /// Another broker leads a partition (KIP-951).
    LeaderHint(LeaderHint),
    /// The broker does not lead a partition of this topic, although the metadata names it as the leader.
    StaleMetadata(Arc<str>),
    /// The broker does not know the topic by this ID.
    UnknownTopicId(Arc<str>, Uuid),
    /// The broker throttles the client for this many milliseconds; 0 when it no longer does.
    Throttled(u32),
    /// A response is unexpected, but requires no action.
    Warning(Error),
}
