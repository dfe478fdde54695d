//! The identity of an assignment.

use std::fmt;

/// The version of a partition's assignment. Every assign, seek and unassign increments it, and so does a topic that is
/// recreated or a log that is truncated.
///
/// The [`PartitionConsumer`](super::partition::PartitionConsumer) that a broker actor fetches with, fetched batches and
/// events about the partition all carry the version that they belong to. If it is older than the version of the
/// [`PartitionHandle`](super::partition::PartitionHandle), they are stale and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssignmentVersion(u64);

impl AssignmentVersion {
    /// Creates the version after `number` assignments.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl AssignmentVersion {
    /// Returns the number of the version.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for AssignmentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
