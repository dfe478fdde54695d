//! The transactions of one partition: the open ones, which hold back the last stable offset, and the aborted ones, which
//! read_committed consumers skip.

use ottla_protocol::{
    batch::{control::ControlRecord, reader::BatchHeader},
    error_code::ErrorCode,
};
use ottla_sorted::SortedMap;

use super::{Marker, marker_in};
use crate::{
    batch::has_producer_id,
    producer_state::{ProducerStates, SequenceCheck},
    topics::Partition,
};

/// The transactions of one partition's log.
#[derive(Debug, Default)]
pub(crate) struct PartitionTransactions {
    /// The first offset of each open transaction, by producer ID.
    open: SortedMap<i64, i64>,
    /// (first offset, offset of the marker) of transactions whose marker the followers don't have.
    unreplicated: Vec<(i64, i64)>,
    /// In the order of their markers.
    aborted: Vec<AbortedTransaction>,
}

/// An aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The offset of the marker.
    pub last_offset: i64,
}

impl PartitionTransactions {
    /// Returns the first offset of a producer's open transaction.
    pub fn first_offset_of(&self, producer_id: i64) -> Option<i64> {
        self.open.get(&producer_id).copied()
    }

    /// Returns the aborted transactions that have records in a range of offsets, in the order of their markers.
    pub fn aborted_in(&self, offsets: std::ops::Range<i64>) -> Vec<(i64, i64)> {
        let first = self.aborted.partition_point(|aborted| aborted.last_offset < offsets.start);
        let overlap = self.aborted[first..].iter().filter(|aborted| aborted.first_offset < offsets.end);
        overlap.map(|aborted| (aborted.producer_id, aborted.first_offset)).collect()
    }

    /// Returns true if a record of a producer's transaction belongs to an aborted one.
    pub fn is_aborted(&self, producer_id: i64, offset: i64) -> bool {
        let first = self.aborted.partition_point(|aborted| aborted.last_offset < offset);
        let mut rest = self.aborted[first..].iter();
        rest.any(|aborted| aborted.producer_id == producer_id && aborted.first_offset <= offset)
    }

    /// The followers have all records before `high_watermark`.
    pub fn replicated(&mut self, high_watermark: i64) {
        self.unreplicated.retain(|(_, marker)| *marker >= high_watermark);
    }

    /// Handles the deletion of the records before `offset`.
    pub fn advance_start(&mut self, offset: i64) {
        let gone = self.aborted.partition_point(|aborted| aborted.last_offset < offset);
        self.aborted.drain(..gone);
    }

    /// Handles the compaction that removed these markers.
    pub fn forget_markers(&mut self, offsets: &[i64]) {
        self.aborted.retain(|aborted| offsets.binary_search(&aborted.last_offset).is_err());
    }

    fn first_unstable_offset(&self) -> Option<i64> {
        self.open.values().copied().chain(self.unreplicated.iter().map(|(first, _)| *first)).min()
    }

    fn end(&mut self, producer_id: i64, marker_offset: i64, committed: bool) {
        let Some(first_offset) = self.open.remove(&producer_id) else { return };
        self.unreplicated.push((first_offset, marker_offset));
        if !committed {
            self.aborted.push(AbortedTransaction { producer_id, first_offset, last_offset: marker_offset });
        }
    }
}

impl Partition {
    /// Returns the offset up to which read_committed consumers may read.
    pub fn last_stable_offset(&self) -> i64 {
        let watermark = self.log.high_watermark();
        let unstable = self.transactions.first_unstable_offset();
        unstable.map_or(watermark, |first| first.max(self.log.start_offset()).min(watermark))
    }

    /// Returns true if a producer's transaction has records in this partition.
    pub fn has_open_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        self.transactions.open.contains_key(&producer_id) && self.producers.epoch(producer_id) == Some(epoch)
    }

    /// Checks an idempotent batch. While a producer's transaction is open, its other records are refused.
    pub fn check_sequence(&self, header: &BatchHeader) -> SequenceCheck {
        let is_open = self.transactions.open.contains_key(&header.producer_id);
        match self.producers.check(header) {
            SequenceCheck::Append if is_open && !header.is_transactional() => {
                SequenceCheck::Refuse(ErrorCode::INVALID_TXN_STATE)
            }
            checked => checked,
        }
    }

    /// Updates the state of the producers with an appended batch.
    pub fn note_batch(&mut self, header: &BatchHeader, base_offset: i64, control: Option<ControlRecord>) {
        if !has_producer_id(header) {
            return;
        }
        if !header.is_control() {
            self.producers.remember(header, base_offset);
            if header.is_transactional() {
                self.transactions.open.entry(header.producer_id).or_insert(base_offset);
            }
            return;
        }
        if let Some(ControlRecord::EndTransaction { committed, coordinator_epoch }) = control {
            self.producers.mark(header, coordinator_epoch);
            self.transactions.end(header.producer_id, base_offset, committed);
        }
    }

    /// Checks that a marker is not from an earlier producer or coordinator.
    pub fn check_marker(&self, marker: &Marker) -> Result<(), ErrorCode> {
        let is_open = self.transactions.open.contains_key(&marker.producer.id);
        self.producers.check_marker(marker, is_open)
    }

    /// Rebuilds the state of the producers from a truncated log.
    pub fn rebuild_producers(&mut self) {
        self.producers = ProducerStates::default();
        self.transactions = PartitionTransactions::default();
        let batches: Vec<_> = self.log.batches_from(0).map(|batch| batch.bytes.clone()).collect();
        for bytes in batches {
            if let Ok(header) = crate::batch::read_header(&bytes) {
                self.note_batch(&header, header.base_offset, marker_in(&header, &bytes));
            }
        }
        self.transactions.replicated(self.log.high_watermark());
    }
}
