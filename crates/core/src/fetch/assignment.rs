//! The identity of an assignment.

use std::fmt;

/// The version of a partition's assignment. Every assign, seek and unassign begins another assignment, and so does a topic
/// that is recreated or a log that is truncated. An assignment that stops at a damaged record goes on with another version
/// from that record.
///
/// The [`PartitionConsumer`](super::partition::PartitionConsumer) that a broker actor fetches with, fetched batches and
/// events about the partition all carry the version that they belong to. If it is older than the version of the
/// [`PartitionHandle`](super::partition::PartitionHandle), they are stale and dropped. What was handed out before the
/// damaged record belongs to the same assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssignmentVersion {
    assignment: u32,
    restarts: u32,
}

impl AssignmentVersion {
    /// Creates the version after `assignment` assignments.
    #[cfg(all(test, ottla_loom))]
    pub(crate) const fn new(assignment: u32) -> Self {
        Self { assignment, restarts: 0 }
    }

    /// Restores a version from its bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self { assignment: (bits >> 32) as u32, restarts: bits as u32 }
    }

    /// Returns the version as one number, which grows with each version.
    pub(crate) const fn bits(self) -> u64 {
        (self.assignment as u64) << 32 | self.restarts as u64
    }

    /// Returns the version of the next assignment.
    pub(crate) const fn next_assignment(self) -> Self {
        Self { assignment: self.assignment.wrapping_add(1), restarts: 0 }
    }

    /// Returns the version with which this assignment goes on from a damaged record, or from dropped ones.
    pub(crate) const fn next_restart(self) -> Self {
        Self { assignment: self.assignment, restarts: self.restarts.wrapping_add(1) }
    }

    /// Returns true if both versions are of the same assignment.
    pub(crate) const fn is_same_assignment(self, other: Self) -> bool {
        self.assignment == other.assignment
    }
}

impl fmt::Display for AssignmentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.assignment.fmt(f)
    }
}
