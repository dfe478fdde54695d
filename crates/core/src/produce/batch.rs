//! A batch after it stopped collecting. States are types: an [`OpenBatch`] is consumed by sealing, and a
//! [`ReadyBatch`]'s bytes can't change; they return to the pool when the batch is dropped, which is when its request is
//! over. A buffer that is still in flight can therefore not be filled with another topic's records
//! (CVE-2026-35554 of the Java client).

use std::sync::Arc;

use ottla_protocol::batch::{ChunkPool, SealOptions, SealedBatch};

use super::{
    accumulator::{Accumulator, OpenBatch},
    owed::Owed,
    report::{Delivered, DeliveryBatch, PersistenceStatus},
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
    /// When its first record came.
    pub since: Instant,
    /// Its place in the partition's order.
    pub order: u64,
    /// How often it was sent and refused.
    pub attempts: u32,
    /// True if a broker may have written it.
    pub possibly_persisted: bool,
    /// Its bytes still count among those that wait for the first time.
    pub is_new: bool,
    /// What its records are owed.
    owed: Owed,
}

impl ReadyBatch {
    /// Fills the header and compresses. An error is a bug or an exhausted codec; the records then fail. Should the batch
    /// get lost, `keeper` knows of it.
    pub fn seal(
        mut open: OpenBatch,
        order: u64,
        options: &SealOptions,
        keeper: &Arc<Accumulator>,
    ) -> Result<Self, Box<(Owed, Error)>> {
        let owed = Owed::of(&mut open, Some(keeper));
        match open.builder.seal(options) {
            Ok(sealed) => Ok(Self {
                sealed,
                since: open.since,
                order,
                attempts: 0,
                possibly_persisted: false,
                is_new: true,
                owed,
            }),
            Err(error) => {
                let error = Error::new(ErrorKind::Bug, format!("can't compress a batch: {error}"));
                Err(Box::new((owed, error)))
            }
        }
    }

    /// What its records were charged in the budget.
    pub const fn charged_bytes(&self) -> u64 {
        self.owed.charged_bytes()
    }

    /// Turns it into the report of its fate, telling those who wait for single records.
    pub fn into_report(
        self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        let mut batch = self;
        batch.report_early(topic, partition, outcome, status)
    }

    /// The report of its fate while its bytes are still in use by a request.
    pub fn report_early(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) -> DeliveryBatch {
        self.owed.report(topic, partition, outcome, status)
    }

    /// Two batches of half the records each; the whole again if it has only one record.
    pub fn split(self, pool: &ChunkPool, options: &SealOptions) -> Result<(Self, Self), Box<Self>> {
        let records = self.sealed.record_count();
        let Some((first, second)) = self.sealed.split(records / 2, pool, options) else {
            return Err(Box::new(self));
        };
        let Self { mut owed, since, order, possibly_persisted, .. } = self;
        owed.note_sent();
        let second_owed = owed.split_off(first.record_count() as usize);
        let half = |sealed, owed| Self {
            sealed,
            since,
            order,
            attempts: 0,
            possibly_persisted,
            is_new: false,
            owed,
        };
        Ok((half(first, owed), half(second, second_owed)))
    }

    /// It is sent now: answers the bytes that don't count among those that wait any more.
    pub fn uncount(&mut self) -> u64 {
        self.owed.note_sent();
        if std::mem::take(&mut self.is_new) { self.charged_bytes() } else { 0 }
    }

    /// Whether the records are certainly not in the log, as far as is known.
    pub const fn failure_status(&self) -> PersistenceStatus {
        if self.possibly_persisted {
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
        OpenBatch {
            builder,
            tags: Tags::None,
            tracker: None,
            since: Instant::ZERO,
            charged_bytes: 0,
            ages: Vec::new(),
        }
    }

    #[test]
    fn cve_2026_35554_a_batch_in_flight_never_carries_another_topics_bytes() {
        let pool = ChunkPool::new();
        let mut in_flight =
            ReadyBatch::seal(filled(&pool, b'a'), 0, &SealOptions::default(), &keeper()).unwrap();
        let sent = in_flight.sealed.to_vec();
        // The application is told that it timed out, while the connection still writes it.
        let error = Error::new(ErrorKind::MessageTimedOutInFlight, "");
        let topic = Arc::from("a");
        in_flight.report_early(&topic, 0, Err(error), PersistenceStatus::PossiblyPersisted);
        let others: Vec<_> = (0..20).map(|_| filled(&pool, b'b')).collect();
        assert_eq!(in_flight.sealed.to_vec(), sent);
        drop(others);
        drop(in_flight);
        assert_eq!(pool.in_use_bytes(), 0, "the memory is free when the request is over");
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
