//! The records that one fetch returned for one partition.

use std::{fmt, sync::Arc};

use ottla_protocol::vocabulary::NodeId;

use super::{
    super::{assignment::AssignmentVersion, decode::Decoded, partition::PartitionHandle},
    buffer::RecordBatch,
};

/// The records that one fetch returned for one partition.
pub struct FetchedRecords {
    pub(crate) handle: Arc<PartitionHandle>,
    pub(crate) version: AssignmentVersion,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) next_offset: i64,
    /// The broker that the records were fetched from, if its ID is known.
    pub(crate) broker_id: Option<NodeId>,
}

impl FetchedRecords {
    /// Creates the records of one partition from decoded batches.
    pub(crate) fn new(
        handle: Arc<PartitionHandle>,
        version: AssignmentVersion,
        broker_id: Option<NodeId>,
        decoded: Decoded,
    ) -> Self {
        let Decoded { batches, next_offset, messages, bytes, .. } = decoded;
        Self { handle, version, batches, messages, bytes, next_offset, broker_id }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.handle.topic()
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.handle.partition()
    }

    /// Returns false if the partition was meanwhile unassigned or started from another position.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.handle.version() == self.version
    }

    /// Returns true if the partition stopped at a damaged record that is among these or before them.
    pub(crate) fn is_stopped(&self) -> bool {
        self.handle.stopped_at(self.version).is_some()
    }

    /// Returns the batches that begin before the damaged record at which the partition stopped; all of them if it did not.
    pub(super) fn readable(&self) -> &[RecordBatch] {
        let Some(end) = self.handle.stopped_at(self.version) else { return &self.batches };
        let is_before = |batch: &RecordBatch| batch.header.base_offset.max(batch.first_offset) < end;
        &self.batches[..self.batches.partition_point(is_before)]
    }

    /// Returns false if the partition was meanwhile unassigned or started from another position by the application. What was
    /// handed out before a damaged record stays in use.
    pub fn is_assigned(&self) -> bool {
        self.handle.version().is_same_assignment(self.version)
    }

    /// Returns true while the partition is paused.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.handle.is_paused()
    }

    /// Returns true if the partition's position is the one that its assignment, or its last seek, started from.
    pub fn is_at_start(&self) -> bool {
        self.handle.distance() == 0
    }

    /// Sets the partition's position: `offset` is the next record to deliver, `leader_epoch` the epoch of the last one
    /// (-1 if unknown).
    #[inline]
    pub fn set_position(&self, offset: i64, leader_epoch: i32) {
        if self.is_current() {
            self.handle.set_position(offset, leader_epoch);
        }
    }

    /// Returns the offset from which these records would be fetched again; `None` if there are none.
    pub(crate) fn first_offset(&self) -> Option<i64> {
        self.batches.first().map(|batch| batch.header.base_offset.max(batch.first_offset))
    }

    /// Returns the offset after the last record.
    pub const fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Returns the leader epoch of the last batch; -1 without a batch or epoch.
    pub fn last_epoch(&self) -> i32 {
        self.batches.last().map_or(-1, |batch| batch.header.partition_leader_epoch)
    }
}

impl fmt::Debug for FetchedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedRecords")
            .field("partition", &self.handle)
            .field("messages", &self.messages)
            .field("next_offset", &self.next_offset)
            .finish_non_exhaustive()
    }
}
