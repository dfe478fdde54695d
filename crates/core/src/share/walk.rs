//! Iteration over acquired records in runs.
//!
//! # Pitfalls
//!
//! - The header of a batch may promise records that its body does not have. They were acquired, but can't be processed:
//!   the walk rejects them, or their partition would wait for their locks (`records_that_a_batch_lacks_are_rejected`).

use std::sync::Arc;

use super::{acknowledgement::AcknowledgeType, acquired::AcquiredRecords};
use crate::fetch::deliver::{MessageRef, PieceWalk};

/// A cursor over acquired records. It skips the records of the batches that were not acquired.
#[derive(Debug)]
pub struct AcquiredWalk {
    records: Arc<AcquiredRecords>,
    walk: PieceWalk,
    /// The run that the next record is in, and the record's offset.
    run: usize,
    next: i64,
}

impl AcquiredWalk {
    /// Returns a cursor before the first record.
    pub fn new(records: Arc<AcquiredRecords>) -> Self {
        let walk = PieceWalk::new(Arc::clone(records.fetched()));
        let next = records.runs.first().map_or(i64::MAX, |run| *run.offsets.start());
        Self { records, walk, run: 0, next }
    }

    /// Returns the records to walk through.
    pub const fn records(&self) -> &Arc<AcquiredRecords> {
        &self.records
    }

    /// Calls `each` with the acquired ones of up to `limit` fetched records, and their delivery counts. Returns false at the
    /// end.
    pub fn run(&mut self, limit: usize, mut each: impl FnMut(&MessageRef<'_>, i16)) -> bool {
        let Self { records, walk, run, next } = self;
        if *run >= records.runs.len() {
            // The rest of the batches belongs to other members.
            return false;
        }
        let count = walk.run(limit, |message| {
            let offset = message.offset();
            if offset > *next {
                skip_to(records, run, next, offset);
            }
            if offset == *next {
                let current = &records.runs[*run];
                each(message, current.delivery_count);
                if offset < *current.offsets.end() {
                    *next = offset + 1;
                } else {
                    enter(records, run, next);
                }
            }
        });
        if count == 0 {
            skip_to(records, run, next, i64::MAX);
        }
        count > 0
    }
}

/// Moves to the first record of the next run.
fn enter(records: &AcquiredRecords, run: &mut usize, next: &mut i64) {
    *run += 1;
    *next = records.runs.get(*run).map_or(i64::MAX, |run| *run.offsets.start());
}

/// Rejects the records before `offset`, which the batches do not have.
#[cold]
fn skip_to(records: &AcquiredRecords, run: &mut usize, next: &mut i64, offset: i64) {
    while *next < offset {
        let end = records.runs.get(*run).map_or(i64::MAX, |run| *run.offsets.end());
        while *next <= end && *next < offset {
            // It fails only for a record that has a verdict already.
            let _ = records.acknowledge(*next, AcknowledgeType::Reject);
            *next += 1;
        }
        if *next > end {
            enter(records, run, next);
        }
    }
}
