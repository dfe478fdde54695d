//! Offsets that a group gets with open transactions. They take effect when the transaction commits.

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use super::{CommittedOffset, Group};

/// The offsets of open transactions, by producer ID.
#[derive(Debug, Default)]
pub(crate) struct PendingOffsets {
    open: SortedMap<i64, SortedMap<(String, i32), CommittedOffset>>,
    /// The current epoch of each producer that the group knows.
    epochs: SortedMap<i64, i16>,
}

impl PendingOffsets {
    /// Returns true if an open transaction has an offset for the partition.
    pub fn contains(&self, key: &(String, i32)) -> bool {
        self.open.values().any(|offsets| offsets.contains_key(key))
    }

    /// Returns true if a producer's transaction has offsets for the group.
    pub fn has_open_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        self.open.contains_key(&producer_id) && self.epochs.get(&producer_id) == Some(&epoch)
    }

    /// Checks that the producer has no later epoch.
    pub fn check_epoch(&self, producer_id: i64, epoch: i16) -> Result<(), ErrorCode> {
        match self.epochs.get(&producer_id) {
            Some(known) if *known > epoch => Err(ErrorCode::INVALID_PRODUCER_EPOCH),
            _ => Ok(()),
        }
    }

    /// Drops the offsets of a topic.
    pub fn forget_topic(&mut self, topic: &str) {
        for offsets in self.open.values_mut() {
            offsets.retain(|(name, _), _| name != topic);
        }
    }
}

impl Group {
    /// Commits an offset outside of transactions.
    pub fn commit(&mut self, key: (String, i32), mut committed: CommittedOffset) {
        self.writes += 1;
        committed.written = self.writes;
        self.offsets.insert(key, committed);
    }

    /// Adds an offset to the transaction of a producer.
    pub fn commit_in_transaction(
        &mut self,
        (producer_id, epoch): (i64, i16),
        key: (String, i32),
        mut committed: CommittedOffset,
    ) {
        self.writes += 1;
        committed.written = self.writes;
        self.pending.epochs.insert(producer_id, epoch);
        self.pending.open.entry(producer_id).or_default().insert(key, committed);
    }

    /// Ends the transaction of a producer. An offset that was committed later stays.
    pub fn end_transaction(&mut self, producer_id: i64, epoch: i16, committed: bool) {
        let known = self.pending.epochs.entry(producer_id).or_insert(epoch);
        *known = epoch.max(*known);
        for (key, offset) in self.pending.open.remove(&producer_id).unwrap_or_default() {
            let is_newer = self.offsets.get(&key).is_none_or(|known| known.written < offset.written);
            if committed && is_newer {
                self.offsets.insert(key, offset);
            }
        }
    }
}
