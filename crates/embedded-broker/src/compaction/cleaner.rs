//! One compaction: which records of a part of a log stay, by the rules of Kafka's cleaner.
//!
//! A record stays if it is the newest of its key in the part. A tombstone stays until the delete horizon of its batch, which is
//! `delete.retention.ms` after the first compaction that found it. Records of aborted transactions go at once; a marker stays
//! until the compaction after the one that removed the last batch of its transaction, and then as long as a tombstone. The last
//! batch of a producer, and the last batch of the part, stay without records.

use bytes::Bytes;
use ottla_protocol::batch::{
    ControlRecord,
    reader::{BatchHeader, RecordBatch, RecordView, Records},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::Compaction;
use crate::{
    batch::{UNCOMPRESSED_LIMIT, has_producer_id, read_header},
    log::StoredBatch,
    rewriting::{Rewriting, delete_horizon, rewrite, without_records},
    topics::Partition,
    transactions::marker_in,
};

/// What a compaction leaves of the batches before its end.
#[derive(Debug, Default)]
pub(crate) struct Cleaned {
    pub batches: Vec<StoredBatch>,
    /// The offsets of the transactions' markers that are gone.
    pub removed_markers: Vec<i64>,
}

/// A compaction of one partition.
struct Cleaner<'a> {
    partition: &'a Partition,
    compaction: Compaction,
    unix_ms: i64,
    /// The offset after the last batch of the part.
    end: i64,
    /// The newest offset of each key.
    newest: SortedMap<Vec<u8>, i64>,
    /// The producers of committed transactions with batches in the part, whose marker is not yet found.
    committing: SortedSet<i64>,
    /// The producers of aborted ones.
    aborting: SortedSet<i64>,
}

/// What remains of one batch.
enum Remains {
    AsItIs,
    Anew(Vec<u8>),
    Nothing,
}

/// Compacts the batches before `end`. `None`: a batch can't be read.
pub(crate) fn clean(
    partition: &Partition,
    compaction: Compaction,
    end: i64,
    unix_ms: i64,
) -> Option<Cleaned> {
    let all = partition.log.batches_from(partition.log.start_offset());
    let batches: Vec<&StoredBatch> = all.take_while(|batch| batch.base_offset < end).collect();
    let mut cleaner = Cleaner {
        partition,
        compaction,
        unix_ms,
        end: batches.last().map_or(end, |batch| batch.last_offset + 1),
        newest: SortedMap::new(),
        committing: SortedSet::default(),
        aborting: SortedSet::default(),
    };
    let first_dirty = partition.log.first_dirty_offset();
    for batch in batches.iter().filter(|batch| batch.last_offset >= first_dirty) {
        cleaner.note_keys(batch)?;
    }
    let mut cleaned = Cleaned::default();
    for batch in batches {
        let is_control = read_header(&batch.bytes).ok()?.is_control();
        match cleaner.clean_batch(batch)? {
            Remains::AsItIs => cleaned.batches.push(batch.clone()),
            Remains::Anew(bytes) => {
                let BatchHeader { max_timestamp, record_count, .. } = read_header(&bytes).ok()?;
                if is_control && record_count == 0 {
                    cleaned.removed_markers.push(batch.last_offset);
                }
                let bytes = Bytes::from(bytes);
                cleaned.batches.push(StoredBatch { max_timestamp, bytes, ..batch.clone() });
            }
            Remains::Nothing if is_control => cleaned.removed_markers.push(batch.last_offset),
            Remains::Nothing => {}
        }
    }
    Some(cleaned)
}

impl Cleaner<'_> {
    /// Notes the keys of a batch that was never compacted.
    fn note_keys(&mut self, batch: &StoredBatch) -> Option<()> {
        let header = read_header(&batch.bytes).ok()?;
        if header.is_control() || self.is_aborted(&header) {
            return Some(());
        }
        let raw = RecordBatch::new(header, &batch.bytes).records(UNCOMPRESSED_LIMIT).ok()?;
        for record in Records::new(&header, &raw) {
            let record = record.ok()?;
            if let Some(key) = record.key {
                self.newest.insert(key.to_vec(), record.offset);
            }
        }
        Some(())
    }

    fn is_aborted(&self, header: &BatchHeader) -> bool {
        let transactions = &self.partition.transactions;
        header.is_transactional() && transactions.is_aborted(header.producer_id, header.base_offset)
    }

    /// Returns what remains of a batch. `None`: it can't be read.
    fn clean_batch(&mut self, batch: &StoredBatch) -> Option<Remains> {
        let header = read_header(&batch.bytes).ok()?;
        let is_over = self.transaction_is_over(&header, &batch.bytes);
        let horizon = delete_horizon(&header);
        let has_expired = horizon.is_some_and(|horizon| horizon <= self.unix_ms);
        let is_discarded = is_over && (!header.is_control() || has_expired);
        let raw = RecordBatch::new(header, &batch.bytes).records(UNCOMPRESSED_LIMIT).ok()?;
        let mut kept = Vec::new();
        let mut found = 0;
        for record in Records::new(&header, &raw) {
            let record = record.ok()?;
            found += 1;
            if !is_discarded && (header.is_control() || self.stays(&record, has_expired)) {
                kept.push(record);
            }
        }
        if kept.is_empty() {
            return Some(if self.must_stay_without_records(&header) {
                if found == 0 { Remains::AsItIs } else { Remains::Anew(without_records(&header)) }
            } else {
                Remains::Nothing
            });
        }
        let may_expire = match header.is_control() {
            true => is_over,
            false => kept.iter().any(|record| record.value.is_none()),
        };
        let needs_horizon = may_expire && horizon.is_none();
        if kept.len() == found && !needs_horizon {
            return Some(Remains::AsItIs);
        }
        let new_horizon =
            needs_horizon.then(|| self.unix_ms.saturating_add(self.compaction.delete_retention_ms));
        let codec = header.compression().ok()?;
        let rewriting = Rewriting { codec, level: None, delete_horizon: horizon.or(new_horizon) };
        rewrite(&header, &kept, rewriting).ok().map(Remains::Anew)
    }

    /// Returns true if a record is the newest of its key, and not a tombstone whose time is over.
    fn stays(&self, record: &RecordView<'_>, has_expired: bool) -> bool {
        let Some(key) = record.key else { return false };
        let is_newest = self.newest.get(key).is_none_or(|newest| record.offset >= *newest);
        is_newest && (record.value.is_some() || !has_expired)
    }

    /// Follows the transactions. Returns true for a batch of an aborted one, and for a marker without batches of its
    /// transaction before it.
    fn transaction_is_over(&mut self, header: &BatchHeader, bytes: &[u8]) -> bool {
        if header.is_control() {
            return match marker_in(header, bytes) {
                Some(ControlRecord::EndTransaction { committed: true, .. }) => {
                    !self.committing.remove(&header.producer_id)
                }
                Some(ControlRecord::EndTransaction { committed: false, .. }) => {
                    !self.aborting.remove(&header.producer_id)
                }
                Some(ControlRecord::Other { .. }) | None => false,
            };
        }
        if !header.is_transactional() {
            return false;
        }
        let is_aborted = self.is_aborted(header);
        let open = if is_aborted { &mut self.aborting } else { &mut self.committing };
        open.insert(header.producer_id);
        is_aborted
    }

    fn must_stay_without_records(&self, header: &BatchHeader) -> bool {
        if header.last_offset() + 1 == self.end {
            return true;
        }
        let last = has_producer_id(header).then(|| self.partition.producers.last_of(header.producer_id));
        match last.flatten() {
            Some((_, Some(last_data_offset))) => header.last_offset() == last_data_offset,
            Some((epoch, None)) => header.is_control() && header.producer_epoch == epoch,
            None => false,
        }
    }
}
