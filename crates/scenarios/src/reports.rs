//! Delivery reports, collected.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla::{Config, DeliveryBatch, Error, PersistenceStatus, Producer};

/// All reports of a producer so far.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    all: Arc<Mutex<Vec<Report>>>,
}

/// The report of one record.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The opaque number of the record.
    pub opaque: u64,
    /// The offset, if the broker returned it.
    pub offset: Option<i64>,
    /// Whether the record is in the log.
    pub status: PersistenceStatus,
    /// The reason for a failed delivery.
    pub error: Option<Error>,
}

impl Reports {
    /// Creates a producer whose reports are collected.
    pub fn of(config: &Config) -> (Producer, Self) {
        let reports = Self::default();
        let collect = reports.clone();
        let producer = Producer::builder(config).on_delivery(move |batch| collect.add(batch)).build();
        (producer.expect("the producer's configuration is right"), reports)
    }

    /// Adds a batch's reports.
    pub fn add(&self, batch: &DeliveryBatch) {
        self.lock().extend(batch.iter().map(|report| Report {
            topic: batch.topic().to_owned(),
            partition: batch.partition(),
            opaque: report.opaque,
            offset: report.offset,
            status: report.status,
            error: report.error.cloned(),
        }));
    }

    /// Returns all reports so far.
    pub fn all(&self) -> Vec<Report> {
        self.lock().clone()
    }

    /// Returns the number of reports so far.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if there are no reports.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the records with the numbers `0..count` have one report each.
    pub fn assert_one_each(&self, count: u64) {
        let mut opaques: Vec<u64> = self.lock().iter().map(|report| report.opaque).collect();
        opaques.sort_unstable();
        assert_eq!(opaques, (0..count).collect::<Vec<u64>>(), "every record has one report");
    }

    /// Checks that all records with the numbers `0..count` were delivered.
    pub fn assert_all_delivered(&self, count: u64) {
        self.assert_one_each(count);
        if let Some(failed) = self.lock().iter().find(|report| report.error.is_some()) {
            panic!("not delivered: {failed:?}");
        }
        assert!(self.lock().iter().all(|report| report.status == PersistenceStatus::Persisted));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Report>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
