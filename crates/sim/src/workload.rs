//! The producing application: producers that send numbered records and keep the report of each.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use ottla_core::{
    cluster::command::Command,
    contract::purge::Purge,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        record::{Record, SendError},
        report::{DeliveryBatch, DeliverySink, PersistenceStatus},
        shared::ProducerShared,
        topic_settings::TopicSettings,
    },
    rng::Rng,
};
use ottla_sorted::SortedMap;

/// A producer and the reports of its records.
#[derive(Debug)]
pub struct Producer {
    /// Its number, which its records contain.
    pub number: u32,
    /// The client's index in the world.
    pub client: usize,
    /// The producer's shared half.
    pub shared: Arc<ProducerShared>,
    /// The delivery reports.
    pub reports: Arc<Reports>,
    /// The number of accepted records.
    pub sent: u64,
    /// The number of records to send.
    pub goal: u64,
    /// The destination of each record.
    pub destinations: Vec<(u32, i32)>,
    /// The topics' settings.
    pub settings: Vec<TopicSettings>,
    /// The union of all purges.
    pub purged: Purge,
}

/// The reports by record.
#[derive(Debug, Default)]
pub struct Reports {
    by_record: Mutex<SortedMap<u64, Vec<Report>>>,
    count: AtomicU64,
}

/// The report of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of earlier reports.
    pub order: u64,
    /// True if the record is in the log.
    pub status: PersistenceStatus,
    /// Its location.
    pub offset: Option<i64>,
    /// The reason why it is not.
    pub error: Option<String>,
    /// The kind of error.
    pub kind: Option<ErrorKind>,
}

impl Reports {
    /// Locks the reports and returns them.
    pub fn lock(&self) -> MutexGuard<'_, SortedMap<u64, Vec<Report>>> {
        self.by_record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        let mut by_record = self.lock();
        for report in batch.iter() {
            let error = report.error.map(ToString::to_string);
            by_record.entry(report.opaque).or_default().push(Report {
                order: self.count.fetch_add(1, Ordering::Relaxed),
                status: report.status,
                offset: report.offset,
                error,
                kind: report.error.map(Error::kind),
            });
        }
    }
}

impl Producer {
    /// Sends up to `count` records to random partitions of random topics; stops when the queue is full.
    pub fn send(
        &mut self,
        now: Instant,
        wall_skew_ms: i64,
        count: u64,
        topics: &[(String, i32)],
        commands: &ottla_core::cluster::command::CommandQueue,
        rng: &mut Rng,
    ) {
        for _ in 0..count.min(self.goal - self.sent) {
            let topic_index = rng.below(topics.len() as u64) as usize;
            let (name, partitions) = &topics[topic_index];
            let partition = rng.below(*partitions as u64) as i32;
            let (topic, is_new) = self.shared.topic_with(name, &self.settings[topic_index]);
            if is_new {
                commands.push(Command::Topic(Arc::clone(&topic)));
            }
            let mut value = [0; 16].to_vec();
            value[..4].copy_from_slice(&self.number.to_be_bytes());
            value[4..12].copy_from_slice(&self.sent.to_be_bytes());
            value[12..14].copy_from_slice(&(topic_index as u16).to_be_bytes());
            value[14..16].copy_from_slice(&(partition as u16).to_be_bytes());
            value.resize(16 + rng.below(200) as usize, b'x');
            let record = Record::new().value(&value).partition(partition).opaque(self.sent);
            let wall_ms = 1_700_000_000_000 + now.as_millis() as i64 + wall_skew_ms;
            match self.shared.send(&topic, now, wall_ms, &record, None) {
                Ok(()) => {
                    self.destinations.push((topic_index as u32, partition));
                    self.sent += 1;
                }
                Err(SendError::QueueFull) => return,
                // The topic does not exist: the application tries again later.
                Err(_) => return,
            }
        }
    }

    /// Returns true if it has sent all of its records.
    pub const fn is_done(&self) -> bool {
        self.sent == self.goal
    }
}

/// Parses a value that [`Producer::send`] wrote: the numbers of producer and record.
pub fn parse_value(value: &[u8]) -> Option<(u32, u64)> {
    let number = u32::from_be_bytes(*value.first_chunk()?);
    let record = u64::from_be_bytes(*value.get(4..)?.first_chunk()?);
    Some((number, record))
}

/// Parses the destination from a value that [`Producer::send`] wrote: the topic's index in the list of topics, and the
/// partition.
pub fn parse_destination(value: &[u8]) -> Option<(u32, i32)> {
    let topic = u16::from_be_bytes(*value.get(12..)?.first_chunk()?);
    let partition = u16::from_be_bytes(*value.get(14..)?.first_chunk()?);
    Some((topic.into(), partition.into()))
}
