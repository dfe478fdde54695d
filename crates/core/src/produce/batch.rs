//! A batch after it stopped collecting. States are types: an [`OpenBatch`] is consumed by sealing, and a
//! [`ReadyBatch`]'s bytes can't change; they return to the pool when the batch is dropped, which is when its request is
//! over. A buffer that is still in flight can therefore not be filled with another topic's records
//! (CVE-2026-35554 of the Java client).

use std::sync::Arc;

use ottla_protocol::batch::{ChunkPool, SealOptions, SealedBatch};

use super::{
    accumulator::OpenBatch,
    report::{Delivered, DeliveryBatch, PersistenceStatus, Tags, TrackedOutcome, Tracker},
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
    /// What the delivery report needs of each record.
    pub tags: Tags,
    /// Who waits for single records, and the index of this batch's first record there.
    pub tracker: Option<(Arc<Tracker>, usize)>,
    /// When its first record came.
    pub since: Instant,
    /// What its records were charged in the budget.
    pub charged_bytes: u64,
    /// Its place in the partition's order.
    pub order: u64,
    /// How often it was sent and refused.
    pub attempts: u32,
    /// True if a broker may have written it.
    pub possibly_persisted: bool,
    /// Its bytes still count among those that wait for the first time.
    pub is_new: bool,
}

impl ReadyBatch {
    /// Fills the header and compresses. An error is a bug or an exhausted codec; the records then fail.
    pub fn seal(
        open: OpenBatch,
        order: u64,
        options: &SealOptions,
    ) -> Result<Self, Box<(OpenBatchRest, Error)>> {
        let OpenBatch { builder, tags, tracker, since, charged_bytes } = open;
        let len = builder.record_count() as usize;
        match builder.seal(options) {
            Ok(sealed) => Ok(Self {
                sealed,
                tags,
                tracker: tracker.map(|tracker| (tracker, 0)),
                since,
                charged_bytes,
                order,
                attempts: 0,
                possibly_persisted: false,
                is_new: true,
            }),
            Err(error) => {
                let error = Error::new(ErrorKind::Bug, format!("can't compress a batch: {error}"));
                Err(Box::new((OpenBatchRest { tags, tracker, charged_bytes, len }, error)))
            }
        }
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
        let len = self.sealed.record_count() as usize;
        let tags = std::mem::replace(&mut self.tags, Tags::None);
        report(topic, partition, outcome, status, tags, self.tracker.take(), self.charged_bytes, len)
    }

    /// Two batches of half the records each; the whole again if it has only one record.
    pub fn split(self, pool: &ChunkPool, options: &SealOptions) -> Result<(Self, Self), Box<Self>> {
        let records = self.sealed.record_count();
        let Some((first, second)) = self.sealed.split(records / 2, pool, options) else {
            return Err(Box::new(self));
        };
        let Self { mut tags, tracker, since, charged_bytes, order, possibly_persisted, .. } = self;
        let at = first.record_count() as usize;
        let second_tags = tags.split_off(at);
        let half = |sealed, tags, tracker, charged_bytes| Self {
            sealed,
            tags,
            tracker,
            since,
            charged_bytes,
            order,
            attempts: 0,
            possibly_persisted,
            is_new: false,
        };
        let second_tracker = tracker.as_ref().map(|(tracker, index)| (Arc::clone(tracker), index + at));
        // How many bytes each half was charged is not known any more; together they give back all of it.
        let first_charge = charged_bytes / 2;
        Ok((
            half(first, tags, tracker, first_charge),
            half(second, second_tags, second_tracker, charged_bytes - first_charge),
        ))
    }

    /// It is sent now: answers the bytes that don't count among those that wait any more.
    pub fn uncount(&mut self) -> u64 {
        if std::mem::take(&mut self.is_new) { self.charged_bytes } else { 0 }
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

/// What is left of a batch whose bytes are gone.
#[derive(Debug)]
pub struct OpenBatchRest {
    tags: Tags,
    tracker: Option<Arc<Tracker>>,
    charged_bytes: u64,
    len: usize,
}

impl OpenBatchRest {
    /// Turns it into a report of failure.
    pub fn into_report(self, topic: &Arc<str>, partition: i32, error: Error) -> DeliveryBatch {
        let tracker = self.tracker.map(|tracker| (tracker, 0));
        let status = PersistenceStatus::NotPersisted;
        report(topic, partition, Err(error), status, self.tags, tracker, self.charged_bytes, self.len)
    }
}

impl From<OpenBatch> for OpenBatchRest {
    fn from(open: OpenBatch) -> Self {
        Self {
            len: open.builder.record_count() as usize,
            tags: open.tags,
            tracker: open.tracker,
            charged_bytes: open.charged_bytes,
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the fields of one struct, from two callers")]
fn report(
    topic: &Arc<str>,
    partition: i32,
    outcome: Result<Delivered, Error>,
    status: PersistenceStatus,
    tags: Tags,
    tracker: Option<(Arc<Tracker>, usize)>,
    charged_bytes: u64,
    len: usize,
) -> DeliveryBatch {
    if let Some((tracker, first)) = tracker {
        tracker.complete(first..first + len, TrackedOutcome { partition, outcome: outcome.clone(), status });
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

#[cfg(test)]
mod tests {
    use ottla_protocol::batch::RecordBatchBuilder;

    use super::*;

    fn filled(pool: &ChunkPool, byte: u8) -> OpenBatch {
        let mut builder = RecordBatchBuilder::new(pool);
        for _ in 0..500 {
            builder.append(0, None, Some(&[byte; 100]), &[]);
        }
        OpenBatch { builder, tags: Tags::None, tracker: None, since: Instant::ZERO, charged_bytes: 0 }
    }

    #[test]
    fn cve_2026_35554_a_batch_in_flight_never_carries_another_topics_bytes() {
        let pool = ChunkPool::new();
        let mut in_flight = ReadyBatch::seal(filled(&pool, b'a'), 0, &SealOptions::default()).unwrap();
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
        let whole = ReadyBatch::seal(open, 7, &SealOptions::default()).unwrap();
        let (first, second) = whole.split(&pool, &SealOptions::default()).unwrap();
        assert_eq!((first.sealed.record_count(), second.sealed.record_count()), (250, 250));
        assert_eq!(first.charged_bytes + second.charged_bytes, 1001);
        let (Tags::Opaque(first), Tags::Opaque(second)) = (first.tags, second.tags) else { panic!("tags") };
        assert_eq!([first, second].concat(), (0..500).collect::<Vec<u64>>());
    }
}
