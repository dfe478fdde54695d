//! Offsets that a group gets with open transactions. They take effect when the transaction commits.

use ottla_protocol::error_code::ErrorCode;
use ottla_sorted::SortedMap;

use super::{CommittedOffset, Group};
use crate::{changes::Change, cluster::Cluster};

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

    /// Ends the transaction of a producer, and returns the offsets that take effect. An offset that was committed later stays.
    pub fn end_transaction(
        &mut self,
        producer_id: i64,
        epoch: i16,
        committed: bool,
    ) -> Vec<((String, i32), CommittedOffset)> {
        let known = self.pending.epochs.entry(producer_id).or_insert(epoch);
        *known = epoch.max(*known);
        let mut effective = Vec::new();
        for (key, offset) in self.pending.open.remove(&producer_id).unwrap_or_default() {
            let is_newer = self.offsets.get(&key).is_none_or(|known| known.written < offset.written);
            if committed && is_newer {
                effective.push((key.clone(), offset.clone()));
                self.offsets.insert(key, offset);
            }
        }
        effective
    }
}

impl Cluster {
    /// Commits an offset outside of transactions.
    pub(crate) fn commit_offset(&mut self, group: &str, key: (String, i32), committed: CommittedOffset) {
        self.note_commit(group, &key, &committed);
        self.groups.entry(group).commit(key, committed);
    }

    /// Ends the transaction of a producer in a group.
    pub(crate) fn end_offsets(&mut self, group: &str, producer_id: i64, epoch: i16, committed: bool) {
        let Some(state) = self.groups.get_mut(group) else { return };
        for (key, committed) in state.end_transaction(producer_id, epoch, committed) {
            self.note_commit(group, &key, &committed);
        }
    }

    /// Deletes a committed offset.
    pub(crate) fn delete_offset(&mut self, group: &str, key: (String, i32)) {
        if self.groups.get_mut(group).and_then(|group| group.offsets.remove(&key)).is_some() {
            let (topic, partition) = key;
            self.note_change(|| Change::OffsetDeleted { group: group.to_owned(), topic, partition });
        }
    }

    /// Deletes a group with its offsets.
    pub(crate) fn remove_group(&mut self, group: &str) {
        self.groups.remove(group);
        self.note_change(|| Change::GroupDeleted { group: group.to_owned() });
    }
}
