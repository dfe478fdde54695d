//! The state of idempotent producers in a partition (KIP-98): the last five batches of each producer.

use std::collections::{BTreeMap, VecDeque};

use ottla_protocol::{batch::reader::BatchHeader, error_code::ErrorCode};

use crate::batch::{add_to_sequence, has_producer_id, last_sequence};

/// The number of batches per producer that are recognised as duplicates.
const REMEMBERED: usize = 5;

/// The producers of one partition.
#[derive(Debug, Default)]
pub(crate) struct ProducerStates {
    producers: BTreeMap<i64, ProducerState>,
}

#[derive(Debug)]
struct ProducerState {
    epoch: i16,
    batches: VecDeque<RememberedBatch>,
}

#[derive(Clone, Copy, Debug)]
struct RememberedBatch {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
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
        let state = self
            .producers
            .entry(header.producer_id)
            .or_insert_with(|| ProducerState { epoch, batches: VecDeque::new() });
        if epoch != state.epoch {
            state.epoch = epoch;
            state.batches.clear();
        }
        if state.batches.len() == REMEMBERED {
            state.batches.pop_front();
        }
        let (base_sequence, last_sequence) = (header.base_sequence, last_sequence(header));
        state.batches.push_back(RememberedBatch { base_sequence, last_sequence, base_offset });
    }

    /// Rebuilds the state from a truncated log.
    pub fn rebuild(headers: impl Iterator<Item = BatchHeader>) -> Self {
        let mut states = Self::default();
        for header in headers.filter(has_producer_id) {
            states.remember(&header, header.base_offset);
        }
        states
    }

    /// Removes a producer, as if its records had expired.
    pub fn forget(&mut self, producer_id: i64) {
        self.producers.remove(&producer_id);
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
