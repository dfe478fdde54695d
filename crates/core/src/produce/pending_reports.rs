//! The pending reports of a batch: one per record, whatever happens to the batch.
//!
//! A batch passes through several owners: the partition, a request, a retry, a message between actors. If one of them
//! panics, its batches are dropped. [`PendingReports`] then returns to the accumulator of the records, and is reported
//! when the client is cleaned up.
//!
//! # Pitfalls
//!
//! - Unwinding drops what it passes, which may be the only copy of a batch in transit. The pending reports outlive the
//!   batch, and a broken client is cleaned up twice, the second time after all messages are delivered
//!   (`waiting_retries_are_reported_when_a_panic_hits_an_adopted_partition`).

use std::sync::Arc;

use ottla_protocol::batch::KeptRecords;

use super::{
    accumulator::{Accumulator, OpenBatch},
    report::{Delivered, DeliveryBatch, InvalidRecords, PersistenceStatus, Tags, TrackedOutcome, Tracker},
};
use crate::error::Error;

/// The pending reports of a batch's records.
#[derive(Debug)]
pub struct PendingReports {
    /// The accumulator that gets this if it is dropped; `None` once it is reported.
    keeper: Option<Keeper>,
    tags: Tags,
    /// The tracker of single records, and the index of this batch's first record there.
    tracker: Option<(Arc<Tracker>, usize)>,
    charged_bytes: u64,
    len: usize,
    sent: bool,
    /// The records, for reports that show them. Those of a sealed batch are still in it.
    records: Option<Box<KeptRecords>>,
}

/// The accumulator of a sealed batch, which counts the batches without a report.
#[derive(Debug)]
struct Keeper(Arc<Accumulator>);

impl Keeper {
    fn new(accumulator: &Arc<Accumulator>) -> Self {
        accumulator.add_unreported();
        Self(Arc::clone(accumulator))
    }
}

impl Clone for Keeper {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.subtract_unreported();
    }
}

impl PendingReports {
    /// Creates the pending reports of a batch; with a keeper they can't get lost.
    pub(super) fn of(open: &mut OpenBatch, keeper: Option<&Arc<Accumulator>>) -> Self {
        Self {
            keeper: keeper.map(Keeper::new),
            tags: std::mem::replace(&mut open.tags, Tags::None),
            tracker: open.tracker.take().map(|tracker| (tracker, 0)),
            charged_bytes: open.charged_bytes,
            len: open.builder.record_count() as usize,
            sent: false,
            records: None,
        }
    }

    /// The same for a batch that will not be sent.
    pub(super) fn of_unsent(open: &mut OpenBatch, keeper: Option<&Arc<Accumulator>>) -> Self {
        let mut pending = Self::of(open, keeper);
        pending.keep_records(open.builder.take_kept());
        pending
    }

    /// Adds the batch's records to its reports.
    pub(super) fn keep_records(&mut self, records: Option<KeptRecords>) {
        self.records = records.map(Box::new);
    }

    /// Returns the bytes that the records were charged in the budget.
    pub const fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// Records that the records leave for a broker.
    pub(super) const fn note_sent(&mut self) {
        self.sent = true;
    }

    /// Ends these reports, because another value reports the records from now on.
    pub(super) fn hand_on(mut self) {
        self.keeper = None;
    }

    /// Returns the status of the records if they are found lost.
    pub(super) const fn status_when_lost(&self) -> PersistenceStatus {
        if self.sent { PersistenceStatus::PossiblyPersisted } else { PersistenceStatus::NotPersisted }
    }

    /// Splits off the reports of the records from `at` on. The bytes charged for each half are not known any more;
    /// together they return the whole charge.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let first_charge = self.charged_bytes / 2;
        let second = Self {
            keeper: self.keeper.clone(),
            tags: self.tags.split_off(at),
            tracker: self.tracker.as_ref().map(|(tracker, index)| (Arc::clone(tracker), index + at)),
            charged_bytes: self.charged_bytes - first_charge,
            len: self.len - at,
            sent: self.sent,
            records: None,
        };
        self.charged_bytes = first_charge;
        self.len = at;
        second
    }

    /// Reports the outcome of the records, and completes the trackers of single records. No report is pending afterwards.
    pub fn report(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        self.report_records(topic, partition, outcome, None, status)
    }

    /// Reports the records as written to the partition that they were sent to. `None` if they were reported before.
    pub(super) fn report_written(
        mut self,
        delivered: Delivered,
        status: PersistenceStatus,
        records: Option<KeptRecords>,
    ) -> Option<DeliveryBatch> {
        let keeper = self.keeper.take()?;
        let mut report = self.report(keeper.0.topic(), keeper.0.partition(), Ok(delivered), status);
        report.records = records;
        Some(report)
    }

    /// Like [`Self::report`], for records that the broker rejected individually.
    pub(super) fn report_records(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        invalid: Option<Box<InvalidRecords>>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        self.keeper = None;
        let tags = std::mem::replace(&mut self.tags, Tags::None);
        let (len, charged_bytes) = (self.len, self.charged_bytes);
        if let Some((tracker, first)) = self.tracker.take() {
            match &invalid {
                None => {
                    let outcome = outcome.clone();
                    tracker.complete(first..first + len, TrackedOutcome { partition, outcome, status });
                }
                Some(invalid) => {
                    for place in 0..len {
                        let outcome = Err(invalid.at(place).clone());
                        let place = first + place;
                        tracker.complete(place..place + 1, TrackedOutcome { partition, outcome, status });
                    }
                }
            }
        }
        DeliveryBatch {
            topic: Arc::clone(topic),
            partition,
            outcome,
            status,
            tags,
            len,
            charged_bytes,
            invalid,
            broker_id: None,
            records: self.records.take().map(|records| *records),
        }
    }
}

impl From<OpenBatch> for PendingReports {
    fn from(mut open: OpenBatch) -> Self {
        Self::of_unsent(&mut open, None)
    }
}

impl Drop for PendingReports {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        keeper.0.keep_lost(Self {
            keeper: None,
            tags: std::mem::replace(&mut self.tags, Tags::None),
            tracker: self.tracker.take(),
            records: self.records.take(),
            ..*self
        });
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use ottla_protocol::{
        batch::{ChunkPool, RecordBatchBuilder, SealOptions},
        error_code::ErrorCode,
    };

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
        let open = OpenBatch { tags, charged_bytes: 15, ..OpenBatch::empty(builder) };
        ReadyBatch::seal(open, 0, &SealOptions::default(), keeper).unwrap()
    }

    fn keeper() -> Arc<Accumulator> {
        Arc::new(Accumulator::new(Arc::from("t"), 0, Arc::new(Budget::new(0, 1000))))
    }

    #[test]
    fn dropped_batch_keeps_its_pending_reports_unless_reported_before() {
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
        assert_eq!(lost.iter().map(PendingReports::status_when_lost).collect::<Vec<_>>(), statuses);
        for mut pending in lost {
            let status = pending.status_when_lost();
            let report = pending.report(keeper.topic(), 0, Err(error()), status);
            assert_eq!((report.opaques(), report.charged_bytes()), (&[1, 2, 3][..], 15));
        }
        assert!(keeper.take_lost().is_empty(), "once");
    }

    #[test]
    fn halves_of_a_split_batch_have_their_own_pending_reports() {
        let keeper = keeper();
        let halves = sealed(&keeper).split(&ChunkPool::new(), &SealOptions::default()).unwrap();
        assert!(keeper.take_lost().is_empty());
        assert!(!keeper.is_idle_since(Instant::FAR_FUTURE), "both halves wait for their report");
        drop(halves);
        assert!(keeper.is_idle_since(Instant::FAR_FUTURE));
        let lens: Vec<_> =
            keeper.take_lost().iter().map(|pending| (pending.len, pending.charged_bytes)).collect();
        assert_eq!(lens, [(1, 7), (2, 8)]);
    }

    #[test]
    fn refused_records_have_their_own_errors_and_the_others_another_kind() {
        let keeper = keeper();
        let error = Error::broker(ErrorCode::INVALID_RECORD, Some("rejected"));
        let places = [(1, Some("no key")), (-1, None), (3, None)];
        let invalid = InvalidRecords::new(&error, 3, places.into_iter()).expect("one is in the batch");
        assert_eq!(InvalidRecords::new(&error, 1, places.into_iter()), None, "none of them is");
        let status = PersistenceStatus::NotPersisted;
        let report = sealed(&keeper).into_invalid_report(keeper.topic(), 0, error, invalid, status);
        let errors: Vec<_> = report.iter().map(|report| report.error.expect("it failed").clone()).collect();
        let kinds = errors.iter().map(Error::kind).collect::<Vec<_>>();
        let (bad, other) = (ErrorKind::Broker(ErrorCode::INVALID_RECORD), ErrorKind::InvalidDifferentRecord);
        assert_eq!(kinds, [other, bad, other]);
        assert_eq!((&*errors[1].context().detail, &*errors[0].context().detail), ("no key", ""));
        assert_eq!(report.error().map(Error::kind), Some(bad), "the batch's own");
        assert!(keeper.take_lost().is_empty());
    }
}
