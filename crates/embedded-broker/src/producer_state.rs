//! The state of idempotent producers in a partition (KIP-98): the last five batches of each producer.

use std::collections::VecDeque;

use ottla_protocol::{batch::reader::BatchHeader, error_code::ErrorCode};
use ottla_sorted::SortedMap;

use crate::{
    batch::{add_to_sequence, last_sequence},
    transactions::Marker,
};

/// The number of batches per producer that are recognised as duplicates.
const REMEMBERED: usize = 5;

/// The producers of one partition.
#[derive(Debug, Default)]
pub(crate) struct ProducerStates {
    producers: SortedMap<i64, ProducerState>,
}

#[derive(Debug)]
struct ProducerState {
    epoch: i16,
    /// The epoch of the coordinator that wrote the last marker; -1 without one.
    coordinator_epoch: i32,
    /// The largest timestamp of the last batch.
    last_timestamp: i64,
    batches: VecDeque<RememberedBatch>,
}

#[derive(Clone, Copy, Debug)]
struct RememberedBatch {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    last_offset: i64,
}

/// A producer of a partition, as DescribeProducers reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownProducer {
    pub id: i64,
    pub epoch: i16,
    /// The sequence number of its last record; -1 after a marker began an epoch.
    pub last_sequence: i32,
    pub last_timestamp: i64,
    pub coordinator_epoch: i32,
}

/// The result of checking an idempotent batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceCheck {
    /// The batch is next in sequence.
    Append,
    /// The batch is already in the log, at this base offset.
    Duplicate(i64),
    /// The batch is out of sequence, or its producer epoch is fenced.
    Refuse(ErrorCode),
}

impl ProducerStates {
    /// Checks a batch as Kafka does: an unknown producer may begin with any sequence number.
    pub fn check(&self, header: &BatchHeader) -> SequenceCheck {
        let Some(state) = self.producers.get(&header.producer_id) else { return SequenceCheck::Append };
        if header.producer_epoch < state.epoch {
            return SequenceCheck::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if header.producer_epoch > state.epoch {
            return match header.base_sequence {
                0 => SequenceCheck::Append,
                _ => SequenceCheck::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER),
            };
        }
        let (first, last) = (header.base_sequence, last_sequence(header));
        if let Some(known) =
            state.batches.iter().find(|b| b.base_sequence == first && b.last_sequence == last)
        {
            return SequenceCheck::Duplicate(known.base_offset);
        }
        let expected = state.batches.back().map_or(0, |batch| add_to_sequence(batch.last_sequence, 1));
        if first == expected {
            SequenceCheck::Append
        } else {
            SequenceCheck::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
        }
    }

    /// Adds an appended batch.
    pub fn remember(&mut self, header: &BatchHeader, base_offset: i64) {
        let epoch = header.producer_epoch;
        let state = self.producers.entry(header.producer_id).or_insert_with(|| ProducerState::new(epoch));
        state.begin_epoch(epoch);
        state.last_timestamp = header.max_timestamp;
        if state.batches.len() == REMEMBERED {
            state.batches.pop_front();
        }
        let (base_sequence, last_sequence) = (header.base_sequence, last_sequence(header));
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        state.batches.push_back(RememberedBatch { base_sequence, last_sequence, base_offset, last_offset });
    }

    /// Checks a marker for a producer. With transaction version 2 its epoch is higher than that of the records, unless
    /// the marker is already written and the transaction no longer open.
    pub fn check_marker(&self, marker: &Marker, is_open: bool) -> Result<(), ErrorCode> {
        let Some(state) = self.producers.get(&marker.producer.id) else { return Ok(()) };
        let is_later = marker.producer.epoch > state.epoch;
        let is_same = marker.producer.epoch == state.epoch;
        if !is_later && !(is_same && (marker.version < 2 || !is_open)) {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if state.coordinator_epoch > marker.coordinator_epoch {
            return Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED);
        }
        Ok(())
    }

    /// Adds an appended marker.
    pub fn mark(&mut self, header: &BatchHeader, coordinator_epoch: i32) {
        let epoch = header.producer_epoch;
        let state = self.producers.entry(header.producer_id).or_insert_with(|| ProducerState::new(epoch));
        state.begin_epoch(epoch);
        state.coordinator_epoch = coordinator_epoch;
        state.last_timestamp = header.max_timestamp;
    }

    /// Returns the current epoch of a producer.
    pub fn epoch(&self, producer_id: i64) -> Option<i16> {
        self.producers.get(&producer_id).map(|state| state.epoch)
    }

    /// Returns the epoch of a producer, and the offset of its last record; `None` after a marker began the epoch.
    pub fn last_of(&self, producer_id: i64) -> Option<(i16, Option<i64>)> {
        let state = self.producers.get(&producer_id)?;
        Some((state.epoch, state.batches.back().map(|batch| batch.last_offset)))
    }

    /// Returns the producers in the order of their IDs.
    pub fn iter(&self) -> impl Iterator<Item = KnownProducer> {
        self.producers.iter().map(|(id, state)| KnownProducer {
            id: *id,
            epoch: state.epoch,
            last_sequence: state.batches.back().map_or(-1, |batch| batch.last_sequence),
            last_timestamp: state.last_timestamp,
            coordinator_epoch: state.coordinator_epoch,
        })
    }

    /// Removes a producer, as if its records had expired.
    pub fn forget(&mut self, producer_id: i64) {
        self.producers.remove(&producer_id);
    }
}

impl ProducerState {
    fn new(epoch: i16) -> Self {
        Self { epoch, coordinator_epoch: -1, last_timestamp: -1, batches: VecDeque::new() }
    }

    fn begin_epoch(&mut self, epoch: i16) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(producer_epoch: i16, base_sequence: i32, records: i32) -> BatchHeader {
        BatchHeader {
            base_offset: 0,
            partition_leader_epoch: 0,
            crc: 0,
            attributes: 0,
            last_offset_delta: records - 1,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: 7,
            producer_epoch,
            base_sequence,
            record_count: records,
            size: 100,
        }
    }

    #[test]
    fn only_the_next_sequence_number_is_appended() {
        let mut states = ProducerStates::default();
        assert_eq!(states.check(&batch(0, 41, 1)), SequenceCheck::Append, "unknown producers begin anywhere");
        states.remember(&batch(0, 0, 10), 100);
        assert_eq!(states.check(&batch(0, 10, 5)), SequenceCheck::Append);
        let refused = SequenceCheck::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        assert_eq!(states.check(&batch(0, 11, 5)), refused);
        assert_eq!(states.check(&batch(0, 0, 5)), refused, "same start, other length");
    }

    #[test]
    fn the_last_five_batches_are_recognised_with_their_offsets() {
        let mut states = ProducerStates::default();
        for i in 0..6 {
            states.remember(&batch(0, i * 10, 10), i64::from(100 + i * 10));
        }
        assert_eq!(states.check(&batch(0, 10, 10)), SequenceCheck::Duplicate(110));
        assert_eq!(states.check(&batch(0, 50, 10)), SequenceCheck::Duplicate(150));
        let forgotten = states.check(&batch(0, 0, 10));
        assert_eq!(forgotten, SequenceCheck::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    }

    #[test]
    fn new_epoch_starts_at_sequence_0_and_fences_the_old_one() {
        let mut states = ProducerStates::default();
        states.remember(&batch(3, 0, 10), 0);
        assert_eq!(
            states.check(&batch(4, 10, 1)),
            SequenceCheck::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
        );
        assert_eq!(states.check(&batch(4, 0, 1)), SequenceCheck::Append);
        states.remember(&batch(4, 0, 1), 10);
        assert_eq!(states.check(&batch(3, 10, 1)), SequenceCheck::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH));
        assert_eq!(states.check(&batch(4, 1, 1)), SequenceCheck::Append);
    }

    #[test]
    fn sequences_wrap_to_0() {
        let mut states = ProducerStates::default();
        states.remember(&batch(0, i32::MAX - 1, 2), 0);
        assert_eq!(states.check(&batch(0, 0, 1)), SequenceCheck::Append);
        states.remember(&batch(0, i32::MAX - 1, 4), 0);
        assert_eq!(states.check(&batch(0, 2, 1)), SequenceCheck::Append);
    }
}
