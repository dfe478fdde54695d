//! A partition's log: the received record batches, in memory, and the [`segments`] that they are in.

pub(crate) mod segments;

use std::collections::VecDeque;

use bytes::Bytes;
use ottla_protocol::batch::reader::BatchHeader;

use self::segments::{BatchSize, SegmentLimits, Segments};
use crate::batch::first_record_reaching;

/// The record batches in order of their offsets, and the start offset of each leader epoch.
///
/// All replicas of a partition share one log. The high watermark is the offset that the followers have reached.
#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    batches: VecDeque<StoredBatch>,
    start_offset: i64,
    end_offset: i64,
    high_watermark: i64,
    bytes: u64,
    /// (leader epoch, its first offset), ascending.
    epochs: Vec<(i32, i64)>,
    segments: Segments,
    /// The offset up to which the log was compacted.
    compacted_to: i64,
    /// A batch can't be read, and nothing is compacted any more.
    is_uncompactable: bool,
}

/// A record batch with base offset and leader epoch filled in.
#[derive(Clone, Debug)]
pub(crate) struct StoredBatch {
    pub base_offset: i64,
    pub last_offset: i64,
    pub leader_epoch: i32,
    pub max_timestamp: i64,
    pub bytes: Bytes,
}

impl PartitionLog {
    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// Returns the offset of the next record.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the offset of the first batch that was never compacted.
    pub fn first_dirty_offset(&self) -> i64 {
        self.compacted_to.max(self.start_offset)
    }

    /// Returns true if a batch can't be read, so that the log can't be compacted.
    pub fn is_uncompactable(&self) -> bool {
        self.is_uncompactable
    }

    /// Notes that a batch can't be read.
    pub fn give_up_compaction(&mut self) {
        self.is_uncompactable = true;
    }

    /// Begins a new segment if the active one has no room for a batch.
    pub fn make_room(&mut self, limits: SegmentLimits, batch: BatchSize, unix_ms: i64) {
        self.segments.make_room(limits, batch, self.end_offset, unix_ms);
    }

    /// Closes the active segment.
    pub fn roll(&mut self) {
        self.segments.roll(self.end_offset);
    }

    /// Leaves a gap in the offsets up to `offset`, which the next batch gets.
    pub fn skip_to(&mut self, offset: i64) {
        self.end_offset = self.end_offset.max(offset);
    }

    /// Replaces the batches before `end` by what compaction left of them.
    pub fn replace_before(&mut self, end: i64, compacted: Vec<StoredBatch>, limits: SegmentLimits) {
        let first_kept = self.batches.partition_point(|batch| batch.base_offset < end);
        let kept = self.batches.split_off(first_kept);
        self.batches = compacted.into();
        self.batches.extend(kept);
        self.bytes = self.batches.iter().map(|batch| batch.bytes.len() as u64).sum();
        self.segments.join_before(end, limits);
        self.segments.recount(self.batches.iter().map(|batch| (batch.base_offset, batch.size())));
        self.compacted_to = self.compacted_to.max(end);
    }

    /// Appends a batch whose base offset is [`end_offset`](Self::end_offset).
    pub fn append(&mut self, header: &BatchHeader, leader_epoch: i32, max_timestamp: i64, bytes: Bytes) {
        let base_offset = self.end_offset;
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        self.begin_epoch(leader_epoch);
        self.bytes += bytes.len() as u64;
        self.end_offset = last_offset + 1;
        self.segments.add(base_offset, BatchSize { bytes: bytes.len() as u64, max_timestamp });
        self.batches.push_back(StoredBatch { base_offset, last_offset, leader_epoch, max_timestamp, bytes });
    }

    /// Changes the bytes of the batch with this offset; returns false if there is no such batch.
    pub fn damage(&mut self, offset: i64, damage: impl FnOnce(&mut [u8])) -> bool {
        let Some(batch) = self.batches.iter_mut().find(|batch| batch.last_offset >= offset) else {
            return false;
        };
        let mut bytes = batch.bytes.to_vec();
        damage(&mut bytes);
        batch.bytes = bytes.into();
        true
    }

    /// Counts records as appended and immediately dropped.
    pub fn skip(&mut self, records: i64) {
        self.end_offset += records;
        self.start_offset = self.end_offset;
        self.high_watermark = self.end_offset;
    }

    /// Moves the high watermark to `offset`, within the log and never back.
    pub fn advance_high_watermark(&mut self, offset: i64) {
        self.high_watermark = self.high_watermark.max(offset.min(self.end_offset));
    }

    /// Returns the batches from the one that contains `offset` on.
    pub fn batches_from(&self, offset: i64) -> impl Iterator<Item = &StoredBatch> {
        let first = self.batches.partition_point(|batch| batch.last_offset < offset);
        self.batches.range(first..)
    }

    /// Returns the size of the batches with a base offset in a range.
    pub fn bytes_between(&self, from: i64, to: i64) -> usize {
        let batches = self.batches_from(from).take_while(|batch| batch.base_offset < to);
        batches.map(|batch| batch.bytes.len()).sum()
    }

    /// Returns the batches that have a record with at least this timestamp.
    pub fn batches_reaching(&self, timestamp: i64) -> impl Iterator<Item = &StoredBatch> {
        self.batches.iter().filter(move |batch| batch.max_timestamp >= timestamp)
    }

    /// Returns the offset of the first record with at least this timestamp, or the end offset.
    pub fn offset_reaching(&self, timestamp: i64) -> i64 {
        let mut found = self
            .batches_reaching(timestamp)
            .filter_map(|batch| first_record_reaching(&batch.bytes, timestamp));
        found.next().map_or(self.end_offset, |(_, offset)| offset.max(self.start_offset))
    }

    /// Returns the first batch of those with the largest timestamp.
    pub fn batch_of_largest_timestamp(&self) -> Option<&StoredBatch> {
        self.batches.iter().rev().max_by_key(|batch| batch.max_timestamp)
    }

    /// Drops the records before `offset`, in whole batches: a batch that contains `offset` stays.
    pub fn advance_start(&mut self, offset: i64) {
        self.start_offset = self.start_offset.max(offset.min(self.end_offset));
        self.high_watermark = self.high_watermark.max(self.start_offset);
        while self.batches.front().is_some_and(|batch| batch.last_offset < self.start_offset) {
            self.drop_front();
        }
    }

    /// Drops the oldest batch; returns false if the log is empty.
    pub fn drop_oldest(&mut self) -> bool {
        let Some(batch) = self.batches.front() else { return false };
        self.start_offset = batch.last_offset + 1;
        self.high_watermark = self.high_watermark.max(self.start_offset);
        self.drop_front();
        true
    }

    /// Drops the records from `offset` on, in whole batches.
    pub fn truncate(&mut self, offset: i64) {
        while self.batches.back().is_some_and(|batch| batch.last_offset >= offset) {
            let batch = self.batches.pop_back().expect("it was just looked at");
            self.bytes -= batch.bytes.len() as u64;
            self.end_offset = batch.base_offset;
        }
        self.high_watermark = self.high_watermark.min(self.end_offset);
        self.start_offset = self.start_offset.min(self.end_offset);
        self.compacted_to = self.compacted_to.min(self.end_offset);
        self.segments.truncate(self.end_offset);
        self.segments.recount(self.batches.iter().map(|batch| (batch.base_offset, batch.size())));
        let end = self.end_offset;
        self.epochs.retain(|(_, start)| *start < end);
    }

    /// Returns the largest epoch that is at most `epoch`, and its end offset, as OffsetForLeaderEpoch does.
    pub fn end_of_epoch(&self, epoch: i32) -> Option<(i32, i64)> {
        let after = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let end = self.epochs.get(after).map_or(self.end_offset, |(_, start)| *start);
        // An epoch before all known ones ended where the first of them began.
        let known =
            after.checked_sub(1).and_then(|at| self.epochs.get(at)).map_or(epoch, |(known, _)| *known);
        (epoch >= 0).then_some((known, end))
    }

    /// Returns the leader epoch in which `offset` was written.
    pub fn epoch_of(&self, offset: i64) -> Option<i32> {
        let after = self.epochs.partition_point(|(_, start)| *start <= offset);
        self.epochs.get(after.checked_sub(1)?).map(|(epoch, _)| *epoch)
    }

    fn begin_epoch(&mut self, leader_epoch: i32) {
        if self.epochs.last().is_none_or(|(epoch, _)| *epoch < leader_epoch) {
            self.epochs.push((leader_epoch, self.end_offset));
        }
    }

    fn drop_front(&mut self) {
        if let Some(batch) = self.batches.pop_front() {
            self.bytes -= batch.bytes.len() as u64;
            self.segments.drop_front(batch.bytes.len() as u64, batch.last_offset + 1);
        }
    }
}

impl StoredBatch {
    /// Returns what a segment has to know.
    pub fn size(&self) -> BatchSize {
        BatchSize { bytes: self.bytes.len() as u64, max_timestamp: self.max_timestamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(records: i32, leader_epoch: i32, max_timestamp: i64) -> BatchHeader {
        BatchHeader {
            base_offset: 0,
            partition_leader_epoch: leader_epoch,
            crc: 0,
            attributes: 0,
            last_offset_delta: records - 1,
            base_timestamp: max_timestamp,
            max_timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: records,
            size: 100,
        }
    }

    /// Returns a log with offsets 0-2 and 3-4 in epoch 0, 5 in epoch 2, 6-9 in epoch 5.
    fn log() -> PartitionLog {
        let mut log = PartitionLog::default();
        for (records, epoch, timestamp) in [(3, 0, 10), (2, 0, 30), (1, 2, 20), (4, 5, 30)] {
            log.append(&batch(records, epoch, timestamp), epoch, timestamp, Bytes::from(vec![0; 100]));
        }
        log
    }

    fn bases<'a>(batches: impl Iterator<Item = &'a StoredBatch>) -> Vec<i64> {
        batches.map(|batch| batch.base_offset).collect()
    }

    #[test]
    fn batches_are_found_by_any_of_their_offsets() {
        let log = log();
        assert_eq!(bases(log.batches_from(0)), [0, 3, 5, 6]);
        assert_eq!(bases(log.batches_from(2)), [0, 3, 5, 6]);
        assert_eq!(bases(log.batches_from(4)), [3, 5, 6]);
        assert_eq!(bases(log.batches_from(9)), [6]);
        assert_eq!(bases(log.batches_from(10)), Vec::<i64>::new());
    }

    #[test]
    fn unordered_timestamps_find_batches() {
        let log = log();
        assert_eq!(bases(log.batches_reaching(15)), [3, 5, 6]);
        assert_eq!(bases(log.batches_reaching(31)), Vec::<i64>::new());
        assert_eq!(log.batch_of_largest_timestamp().unwrap().base_offset, 3);
    }

    #[test]
    fn epoch_ends_at_the_start_of_the_next() {
        let log = log();
        assert_eq!(log.end_of_epoch(0), Some((0, 5)));
        assert_eq!(log.end_of_epoch(1), Some((0, 5)));
        assert_eq!(log.end_of_epoch(2), Some((2, 6)));
        assert_eq!(log.end_of_epoch(4), Some((2, 6)));
        assert_eq!(log.end_of_epoch(5), Some((5, 10)));
        assert_eq!(log.end_of_epoch(-1), None);
        let mut late = PartitionLog::default();
        assert_eq!(late.end_of_epoch(1), Some((1, 0)), "nothing was written in it");
        late.append(&batch(2, 3, 10), 3, 10, Bytes::from(vec![0; 100]));
        assert_eq!(late.end_of_epoch(1), Some((1, 0)), "it ended where the first epoch began");
        assert_eq!((log.epoch_of(4), log.epoch_of(5), log.epoch_of(9)), (Some(0), Some(2), Some(5)));
    }

    #[test]
    fn truncation_removes_whole_batches_and_their_epochs() {
        let mut log = log();
        log.advance_high_watermark(10);
        log.truncate(5);
        assert_eq!((log.end_offset(), log.high_watermark(), log.bytes()), (5, 5, 200));
        assert_eq!(log.end_of_epoch(9), Some((0, 5)));
    }

    #[test]
    fn deleting_records_keeps_the_batch_that_contains_the_new_start() {
        let mut log = log();
        log.advance_start(4);
        assert_eq!((log.start_offset(), log.bytes()), (4, 300));
        assert_eq!(bases(log.batches_from(4)), [3, 5, 6]);
        assert!(log.drop_oldest());
        assert_eq!(log.start_offset(), 5);
        log.advance_start(100);
        assert_eq!((log.start_offset(), log.bytes()), (10, 0));
        assert!(!log.drop_oldest());
    }

    #[test]
    fn high_watermark_stays_within_the_log_and_never_decreases() {
        let mut log = log();
        log.advance_high_watermark(7);
        log.advance_high_watermark(3);
        assert_eq!(log.high_watermark(), 7);
        log.advance_high_watermark(70);
        assert_eq!(log.high_watermark(), 10);
    }
}
