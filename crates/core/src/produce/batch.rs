//! A batch after it stopped collecting. States are types: sealing consumes an [`OpenBatch`], and a [`ReadyBatch`]'s
//! bytes can't change. They return to the pool when the batch is dropped, after its request is complete. A buffer in
//! flight can therefore not be filled with another topic's records (CVE-2026-35554 of the Java client).
//!
//! # Pitfalls
//!
//! - The memory of a batch is free when its request is complete, not when its records are reported: the socket may
//!   still write a batch that timed out (`cve_2026_35554_a_batch_in_flight_never_carries_another_topics_bytes`).

use std::sync::Arc;

use ottla_protocol::batch::{ChunkPool, SealError, SealOptions, SealedBatch};

use super::{
    accumulator::{Accumulator, OpenBatch},
    ack::Written,
    pending_reports::PendingReports,
    report::{Delivered, DeliveryBatch, InvalidRecords, PersistenceStatus},
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
};

/// A sealed batch that waits to be sent, is in flight, or waits to be sent again.
#[derive(Debug)]
pub struct ReadyBatch {
    /// The final bytes.
    pub sealed: SealedBatch,
    /// When its first record was appended.
    pub since: Instant,
    /// Its position in the partition's order.
    pub order: u64,
    /// The number of times it was sent and rejected.
    pub attempts: u32,
    /// The number of attempts after the first that count against `retries`.
    pub retries: u32,
    /// Whether a broker may have written it.
    pub written: Written,
    /// True while its bytes count as waiting for their first attempt.
    pub is_new: bool,
    /// The pending reports of its records.
    pending: PendingReports,
}

impl ReadyBatch {
    /// Fills the header and compresses. An error is a bug or a failed codec; the records then fail. If the batch is
    /// lost, `keeper` gets its pending reports.
    pub fn seal(
        mut open: OpenBatch,
        order: u64,
        options: &SealOptions,
        keeper: &Arc<Accumulator>,
    ) -> Result<Self, Box<(PendingReports, Error)>> {
        let pending = PendingReports::of(&mut open, Some(keeper));
        Self::sealed(open.builder.seal(options).map_err(Some), open.since, order, pending)
    }

    /// Creates a batch from the result of sealing it; an error without a batch is a panic of the codec.
    pub(super) fn sealed(
        sealed: Result<SealedBatch, Option<Box<SealError>>>,
        since: Instant,
        order: u64,
        mut pending: PendingReports,
    ) -> Result<Self, Box<(PendingReports, Error)>> {
        match sealed {
            Ok(sealed) => Ok(Self {
                sealed,
                since,
                order,
                attempts: 0,
                retries: 0,
                written: Written::No,
                is_new: true,
                pending,
            }),
            Err(unsealed) => {
                let reason = unsealed.map_or_else(
                    || "the codec panicked".to_owned(),
                    |mut unsealed| {
                        pending.keep_records(unsealed.builder.take_kept());
                        unsealed.to_string()
                    },
                );
                let error = Error::new(ErrorKind::Bug, format!("can't compress a batch: {reason}"));
                Err(Box::new((pending, error)))
            }
        }
    }

    /// Returns the bytes that its records were charged in the budget.
    pub const fn charged_bytes(&self) -> u64 {
        self.pending.charged_bytes()
    }

    /// Turns it into its delivery report, and completes the trackers of single records.
    pub fn into_report(
        self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        let Self { sealed, mut pending, .. } = self;
        pending.keep_records(sealed.into_kept());
        pending.report(topic, partition, outcome, status)
    }

    /// Turns it into the report of a batch that the broker has written. `None` if it was reported before.
    pub(super) fn into_written_report(
        self,
        delivered: Delivered,
        status: PersistenceStatus,
    ) -> Option<DeliveryBatch> {
        let Self { sealed, pending, .. } = self;
        pending.report_written(delivered, status, sealed.into_kept())
    }

    /// Returns the report of a batch that was rejected because of single records.
    pub(super) fn into_invalid_report(
        self,
        topic: &Arc<str>,
        partition: i32,
        error: Error,
        invalid: InvalidRecords,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        let Self { sealed, mut pending, .. } = self;
        pending.keep_records(sealed.into_kept());
        pending.report_records(topic, partition, Err(error), Some(Box::new(invalid)), status)
    }

    /// Reports the batch while a request still uses its bytes.
    pub fn report_early(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        self.pending.keep_records(self.sealed.copy_kept());
        self.pending.report(topic, partition, outcome, status)
    }

    /// Splits it into two batches of half the records each; returns it unchanged if it has only one record.
    pub fn split(self, pool: &ChunkPool, options: &SealOptions) -> Result<(Self, Self), Box<Self>> {
        let records = self.sealed.record_count();
        let Some((first, second)) = self.sealed.split(records / 2, pool, options) else {
            return Err(Box::new(self));
        };
        let Self { mut pending, since, order, written, .. } = self;
        pending.note_sent();
        let second_pending = pending.split_off(first.record_count() as usize);
        let half = |sealed, pending| Self {
            sealed,
            since,
            order,
            attempts: 0,
            retries: 0,
            written,
            is_new: false,
            pending,
        };
        Ok((half(first, pending), half(second, second_pending)))
    }

    /// Marks it as sent; returns the bytes to subtract from those that wait.
    pub fn uncount(&mut self) -> u64 {
        self.pending.note_sent();
        if std::mem::take(&mut self.is_new) { self.charged_bytes() } else { 0 }
    }

    /// Returns the persistence status if the batch fails now.
    pub const fn failure_status(&self) -> PersistenceStatus {
        if matches!(self.written, Written::Possibly) {
            PersistenceStatus::PossiblyPersisted
        } else {
            PersistenceStatus::NotPersisted
        }
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use ottla_protocol::batch::RecordBatchBuilder;

    use super::*;
    use crate::produce::{budget::Budget, report::Tags};

    fn keeper() -> Arc<Accumulator> {
        Arc::new(Accumulator::new(Arc::from("t"), 0, Arc::new(Budget::new(0, 1000))))
    }

    fn filled(pool: &ChunkPool, byte: u8) -> OpenBatch {
        let mut builder = RecordBatchBuilder::new(pool);
        for _ in 0..500 {
            builder.append(0, None, Some(&[byte; 100]), &[]);
        }
        OpenBatch::empty(builder)
    }

    #[test]
    fn cve_2026_35554_a_batch_in_flight_never_carries_another_topics_bytes() {
        let pool = ChunkPool::new();
        let mut in_flight =
            ReadyBatch::seal(filled(&pool, b'a'), 0, &SealOptions::default(), &keeper()).unwrap();
        let sent = in_flight.sealed.to_vec();
        // Reports a timeout while the connection still writes the batch.
        let error = Error::new(ErrorKind::MessageTimedOutInFlight, "");
        let topic = Arc::from("a");
        in_flight.report_early(&topic, 0, Err(error), PersistenceStatus::PossiblyPersisted);
        let others: Vec<_> = (0..20).map(|_| filled(&pool, b'b')).collect();
        assert_eq!(in_flight.sealed.to_vec(), sent);
        drop(others);
        drop(in_flight);
        assert_eq!(pool.in_use_bytes(), 0, "the memory is free when the request has ended");
    }

    #[test]
    fn the_halves_of_a_batch_have_all_of_its_tags_in_order() {
        let pool = ChunkPool::new();
        let mut open = filled(&pool, b'a');
        open.tags = Tags::Opaque((0..500).collect());
        open.charged_bytes = 1001;
        let whole = ReadyBatch::seal(open, 7, &SealOptions::default(), &keeper()).unwrap();
        let (mut first, mut second) = whole.split(&pool, &SealOptions::default()).unwrap();
        assert_eq!((first.sealed.record_count(), second.sealed.record_count()), (250, 250));
        assert_eq!(first.charged_bytes() + second.charged_bytes(), 1001);
        let error = Error::new(ErrorKind::Bug, "");
        let [first, second] = [&mut first, &mut second].map(|half| {
            half.report_early(&Arc::from("t"), 0, Err(error.clone()), PersistenceStatus::NotPersisted)
        });
        assert_eq!([first.opaques(), second.opaques()].concat(), (0..500).collect::<Vec<u64>>());
    }
}
