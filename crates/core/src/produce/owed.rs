//! The reports that the records of a batch are owed: one each, whatever happens to the batch.
//!
//! A batch goes from hand to hand: partition, request, retry, mail between owners. If one of them panics, what it had is
//! dropped. [`Owed`] then goes back to where the records came from, and is reported when the client is cleared away.

use std::sync::Arc;

use super::{
    accumulator::{Accumulator, OpenBatch},
    report::{Delivered, DeliveryBatch, PersistenceStatus, Tags, TrackedOutcome, Tracker},
};
use crate::error::Error;

/// What a batch's records need to be reported.
#[derive(Debug)]
pub struct Owed {
    /// Who gets this if it is dropped; nobody once it is reported.
    keeper: Option<Arc<Accumulator>>,
    tags: Tags,
    /// Who waits for single records, and the index of this batch's first record there.
    tracker: Option<(Arc<Tracker>, usize)>,
    charged_bytes: u64,
    len: usize,
    sent: bool,
}

impl Owed {
    /// What the records of a batch are owed; with a keeper it can't get lost.
    pub(super) fn of(open: &mut OpenBatch, keeper: Option<&Arc<Accumulator>>) -> Self {
        Self {
            keeper: keeper.cloned(),
            tags: std::mem::replace(&mut open.tags, Tags::None),
            tracker: open.tracker.take().map(|tracker| (tracker, 0)),
            charged_bytes: open.charged_bytes,
            len: open.builder.record_count() as usize,
            sent: false,
        }
    }

    /// What the records were charged in the budget.
    pub const fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// They are on their way to a broker.
    pub(super) const fn note_sent(&mut self) {
        self.sent = true;
    }

    /// Somebody else owes it from now on.
    pub(super) fn hand_on(mut self) {
        self.keeper = None;
    }

    /// What is known of the records' fate when they are found lost.
    pub(super) const fn status_when_lost(&self) -> PersistenceStatus {
        if self.sent { PersistenceStatus::PossiblyPersisted } else { PersistenceStatus::NotPersisted }
    }

    /// Splits off what is owed to the records from `at` on. How many bytes each half was charged is not known any more;
    /// together they give back all of it.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let first_charge = self.charged_bytes / 2;
        let second = Self {
            keeper: self.keeper.clone(),
            tags: self.tags.split_off(at),
            tracker: self.tracker.as_ref().map(|(tracker, index)| (Arc::clone(tracker), index + at)),
            charged_bytes: self.charged_bytes - first_charge,
            len: self.len - at,
            sent: self.sent,
        };
        self.charged_bytes = first_charge;
        self.len = at;
        second
    }

    /// The report of the records' fate. Tells those who wait for single records; afterwards nothing is owed any more.
    pub fn report(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        self.keeper = None;
        let tags = std::mem::replace(&mut self.tags, Tags::None);
        let (len, charged_bytes) = (self.len, self.charged_bytes);
        if let Some((tracker, first)) = self.tracker.take() {
            tracker
                .complete(first..first + len, TrackedOutcome { partition, outcome: outcome.clone(), status });
        }
        DeliveryBatch {
            topic: Arc::clone(topic),
            partition,
            outcome,
            status,
            tags,
            len,
            charged_bytes,
            broker_id: -1,
        }
    }
}

impl From<OpenBatch> for Owed {
    fn from(mut open: OpenBatch) -> Self {
        Self::of(&mut open, None)
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        keeper.keep_lost(Self {
            keeper: None,
            tags: std::mem::replace(&mut self.tags, Tags::None),
            tracker: self.tracker.take(),
            ..*self
        });
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use ottla_protocol::batch::{ChunkPool, RecordBatchBuilder, SealOptions};

    use super::*;
    use crate::{
        error::ErrorKind,
        machine::Instant,
        produce::{batch::ReadyBatch, budget::Budget},
    };

    fn sealed(keeper: &Arc<Accumulator>) -> ReadyBatch {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        (0..3).for_each(|_| builder.append(0, None, Some(b"value"), &[]));
        let tags = Tags::Opaque(vec![1, 2, 3]);
        let open = OpenBatch {
            builder,
            tags,
            tracker: None,
            since: Instant::ZERO,
            charged_bytes: 15,
            ages: Vec::new(),
        };
        ReadyBatch::seal(open, 0, &SealOptions::default(), keeper).unwrap()
    }

    fn keeper() -> Arc<Accumulator> {
        Arc::new(Accumulator::new(Arc::from("t"), 0, Arc::new(Budget::new(0, 1000))))
    }

    #[test]
    fn a_batch_that_is_dropped_is_still_owed_its_reports_and_one_that_was_reported_is_not() {
        let keeper = keeper();
        let reported = sealed(&keeper);
        let error = || Error::new(ErrorKind::Bug, "");
        drop(reported.into_report(keeper.topic(), 0, Err(error()), PersistenceStatus::NotPersisted));
        assert!(keeper.take_lost().is_empty());

        drop(sealed(&keeper));
        let mut sent = sealed(&keeper);
        sent.uncount();
        drop(sent);
        let statuses = [PersistenceStatus::NotPersisted, PersistenceStatus::PossiblyPersisted];
        let lost = keeper.take_lost();
        assert_eq!(lost.iter().map(Owed::status_when_lost).collect::<Vec<_>>(), statuses);
        for mut owed in lost {
            let status = owed.status_when_lost();
            let report = owed.report(keeper.topic(), 0, Err(error()), status);
            assert_eq!((report.opaques(), report.charged_bytes()), (&[1, 2, 3][..], 15));
        }
        assert!(keeper.take_lost().is_empty(), "once");
    }

    #[test]
    fn both_halves_of_a_batch_are_owed_their_own_reports() {
        let keeper = keeper();
        let halves = sealed(&keeper).split(&ChunkPool::new(), &SealOptions::default()).unwrap();
        assert!(keeper.take_lost().is_empty());
        drop(halves);
        let lens: Vec<_> = keeper.take_lost().iter().map(|owed| (owed.len, owed.charged_bytes)).collect();
        assert_eq!(lens, [(1, 7), (2, 8)]);
    }
}
