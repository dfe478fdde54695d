//! The state of a producer that the application's threads and the broker actors share: the settings, the queue's limits,
//! the memory, the topics and the sink of the reports.

use std::{
    fmt, iter,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use ottla_protocol::{
    batch::{ChunkPool, RecordBatchBuilder},
    compress::Compression,
    uuid::Uuid,
};
use ottla_sorted::SortedMap;

use super::{
    accumulator::OpenBatch,
    budget::Budget,
    compression::{CompressionJob, Workers},
    partition::{PartitionProducer, Waiting},
    pending_reports::PendingReports,
    producer_id::SharedIdentity,
    report::{DeliveryBatch, DeliverySink, PersistenceStatus, Tags, TrackedOutcome},
    topic::{ProducerTopic, WaitingRecord},
    topic_settings::TopicSettings,
    {record::SendError, settings::ProducerSettings},
};
use crate::{
    error::{Error, ErrorKind},
    produce::transaction::shared::TransactionShared,
    rng::Rng,
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering},
    },
    waiters::Waiter,
};

/// The state that the threads of a producer share.
pub struct ProducerShared {
    /// The settings.
    pub settings: ProducerSettings,
    /// The queue's limits.
    pub budget: Arc<Budget>,
    /// The memory of the batches.
    pub pool: ChunkPool,
    /// The idempotent producer's identity.
    pub identity: SharedIdentity,
    /// The number of active flushes.
    pub flushing: Arc<AtomicUsize>,
    /// True if some topic has its own linger.
    pub lingers_differ: Arc<AtomicBool>,
    topics: RwLock<SortedMap<Arc<str>, Arc<ProducerTopic>>>,
    sink: Arc<dyn DeliverySink>,
    /// The transactional state, if the producer is transactional.
    pub transactions: Option<Arc<TransactionShared>>,
    /// The reason why no records are accepted: [`CLOSED`], [`NO_TRANSACTION`]; 0 if they are.
    gate: AtomicU8,
    /// The threads that compress large batches, if the driver has some.
    workers: OnceLock<Arc<dyn Workers>>,
    fatal: Mutex<Option<Error>>,
    seeds: Mutex<Rng>,
}

/// The producer is closed, or failed.
const CLOSED: u8 = 1;
/// The producer is transactional, and no transaction is open.
const NO_TRANSACTION: u8 = 2;

impl ProducerShared {
    /// Creates the shared state of a producer.
    pub fn new(settings: ProducerSettings, sink: Arc<dyn DeliverySink>, rng: Rng) -> Self {
        let transactions = settings.transactional_id.clone().map(|id| Arc::new(TransactionShared::new(id)));
        Self {
            gate: AtomicU8::new(if transactions.is_some() { NO_TRANSACTION } else { 0 }),
            transactions,
            budget: Arc::new(
                Budget::new(settings.max_queued_messages, settings.max_queued_bytes)
                    .with_ceiling(settings.max_memory),
            ),
            pool: ChunkPool::new(),
            identity: SharedIdentity::default(),
            flushing: Arc::default(),
            lingers_differ: Arc::default(),
            topics: RwLock::default(),
            sink,
            workers: OnceLock::new(),
            fatal: Mutex::new(None),
            seeds: Mutex::new(rng),
            settings,
        }
    }

    /// Sets the threads that compress large batches. Without, the broker actors compress all.
    pub fn set_workers(&self, workers: Arc<dyn Workers>) {
        let _ = self.workers.set(workers);
    }

    /// Returns the size in bytes from which on the workers compress a batch; `None` if there are none.
    pub(super) fn worth_a_job(&self, compression: Compression) -> Option<usize> {
        self.workers
            .get()
            .filter(|_| compression != Compression::None)
            .map(|workers| workers.worth_a_job(compression))
    }

    /// Gives a job to the workers.
    pub(super) fn compress(&self, job: CompressionJob) {
        match self.workers.get() {
            Some(workers) => workers.submit(job),
            None => job.run(),
        }
    }

    /// Sets a topic's own linger, for future records. Has no effect with `broker.linger.ms=auto`.
    pub fn set_topic_linger(&self, topic: &ProducerTopic, linger: Duration) {
        self.lingers_differ.store(true, Ordering::Relaxed);
        topic.set_linger(linger);
    }

    /// Returns the settings of topics that have none of their own.
    pub const fn topic_settings(&self) -> &TopicSettings {
        &self.settings.topic
    }

    /// Returns the topic of this name; true if it is new, so that its metadata must be requested.
    pub fn topic(&self, name: &str) -> (Arc<ProducerTopic>, bool) {
        self.topic_with(name, &self.settings.topic)
    }

    /// Like [`Self::topic`], with its own settings, which apply if the topic is new.
    pub fn topic_with(&self, name: &str, settings: &TopicSettings) -> (Arc<ProducerTopic>, bool) {
        if let Some(topic) = self.topics.read().get(name) {
            return (Arc::clone(topic), false);
        }
        let mut topics = self.topics.write();
        if let Some(topic) = topics.get(name) {
            return (Arc::clone(topic), false);
        }
        if settings.compression != Compression::None {
            self.budget.count_compression();
        }
        let name: Arc<str> = Arc::from(name);
        let topic = Arc::new(ProducerTopic::new(
            Arc::clone(&name),
            settings.clone(),
            Arc::clone(&self.budget),
            self.seeds.lock().fork(),
        ));
        if self.is_closed() {
            // Closing may have listed the topics already, and would not report the records that wait in this one.
            topic.set_error(Some(Error::new(ErrorKind::Closed, "")));
        }
        topics.insert(name, Arc::clone(&topic));
        (topic, true)
    }

    /// Returns all topics of the producer.
    pub fn topics(&self) -> Vec<Arc<ProducerTopic>> {
        self.topics.read().values().cloned().collect()
    }

    /// Returns the number of messages without a report.
    pub fn queued_messages(&self) -> usize {
        let charged = self.budget.messages();
        if charged == 0 || !self.budget.has_leases() {
            return charged;
        }
        charged.saturating_sub(self.sum_of_leases().0)
    }

    /// Returns the bytes of keys, values and headers without a report.
    pub fn queued_bytes(&self) -> u64 {
        let charged = self.budget.bytes();
        if charged == 0 || !self.budget.has_leases() {
            return charged;
        }
        charged.saturating_sub(self.sum_of_leases().1)
    }

    /// Returns unused leased room to the queue. Returns true if there may be room now.
    #[cold]
    pub(super) fn end_leases(&self) -> bool {
        let had_leases = self.budget.has_leases();
        if had_leases {
            let topics = self.topics();
            topics.iter().flat_map(|topic| topic.slots()).for_each(|accumulator| accumulator.end_lease());
        }
        had_leases
    }

    fn sum_of_leases(&self) -> (usize, u64) {
        let topics = self.topics();
        let leases = topics.iter().flat_map(|topic| topic.slots()).map(|accumulator| accumulator.leased());
        leases.fold((0, 0), |(messages, bytes), (more, more_bytes)| (messages + more, bytes + more_bytes))
    }

    /// Completes when every record has its report; otherwise registers to be woken by the next one.
    pub fn poll_flushed(&self, waiter: &mut Waiter<Budget>, context: &Context<'_>) -> Poll<()> {
        if self.budget.messages() == 0 {
            return Poll::Ready(());
        }
        self.budget.register(waiter, context.waker());
        if self.budget.messages() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reports records that never got into a batch. Neighbours with the same partition and error are one report.
    pub(crate) fn fail_waiting(&self, topic: &Arc<str>, records: Vec<(WaitingRecord, Error)>) {
        let status = PersistenceStatus::NotPersisted;
        let mut runs: Vec<(i32, Error, OpenBatch)> = Vec::new();
        for (waiting, error) in records {
            let (record, error) = (waiting.record(), error.with_topic(&**topic));
            if let Some(tracker) = &waiting.tracker {
                tracker.complete(0..1, TrackedOutcome { partition: -1, outcome: Err(error.clone()), status });
            }
            let partition = record.partition.unwrap_or(-1);
            if runs.last().is_none_or(|(same, cause, _)| *same != partition || *cause != error) {
                let tags = if self.settings.keep_opaques { Tags::with_capacity(1) } else { Tags::None };
                let batch = OpenBatch { tags, ..OpenBatch::empty(RecordBatchBuilder::new(&self.pool)) };
                runs.push((partition, error, batch));
            }
            if let Some((.., batch)) = runs.last_mut() {
                batch.append(waiting.timestamp, &record);
                batch.charged_bytes += waiting.payload_bytes as u64;
            }
        }
        for (partition, error, batch) in runs {
            self.report(PendingReports::from(batch).report(topic, partition, Err(error), status));
        }
    }

    /// Fails every record that waits for its topic's metadata, and lets no further one wait.
    pub(crate) fn fail_all_waiting(&self, error: &Error) {
        for topic in self.topics() {
            let failed = topic.set_error(Some(error.clone()));
            self.fail_waiting(
                topic.name(),
                failed.into_iter().map(|record| (record, error.clone())).collect(),
            );
        }
    }

    /// Fails all waiting records of all actors after a panic, and accepts no more records.
    pub fn abandon(&self, error: &Error) {
        self.close(Some(error.clone()));
        self.fail_all_waiting(error);
        for topic in self.topics() {
            for accumulator in topic.slots() {
                for mut pending in accumulator.take_lost() {
                    let (partition, status) = (accumulator.partition(), pending.status_when_lost());
                    let error = error.clone().with_partition(&**topic.name(), partition);
                    self.report(pending.report(topic.name(), partition, Err(error), status));
                }
                let mut partition = PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO);
                partition.fail_waiting(self, Waiting::AllForGood, |_| error.clone());
            }
        }
    }

    /// Delivers a report to the application and releases the room of its records.
    pub fn report(&self, batch: DeliveryBatch) {
        self.report_all(iter::once(batch));
    }

    /// Delivers the reports of several batches in one step, as [`Self::report`] does for one.
    pub(super) fn report_all(&self, batches: impl Iterator<Item = DeliveryBatch>) {
        let mut reporting = Reporting { shared: self, batches, taken: None };
        self.sink.deliver_all(&mut reporting);
        drop(reporting);
        if let Some(transactions) = &self.transactions
            && self.budget.messages() == 0
        {
            transactions.continue_end();
        }
    }

    /// Returns true if messages are charged until the application takes their reports.
    pub(crate) fn keeps_charge(&self) -> bool {
        self.sink.keeps_charge()
    }

    /// Reports a batch that was never sent.
    pub(crate) fn report_unsent(
        &self,
        topic: &Arc<str>,
        partition: i32,
        mut pending: PendingReports,
        error: Error,
    ) {
        self.report(pending.report(topic, partition, Err(error), PersistenceStatus::NotPersisted));
    }

    /// Stops accepting records. With an error, sends return it.
    pub fn close(&self, fatal: Option<Error>) {
        if fatal.is_some() {
            *self.fatal.lock() = fatal;
        }
        self.gate.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Accepts records, because a transaction is open.
    pub(crate) fn begin_transaction(&self) {
        self.gate.fetch_and(!NO_TRANSACTION, Ordering::SeqCst);
    }

    /// Accepts no more records. Every record that was accepted before is in its queue when this returns: each queue is locked
    /// once, and a thread checks [`Self::check_open`] again under that lock.
    pub(crate) fn end_transaction(&self) {
        if self.gate.fetch_or(NO_TRANSACTION, Ordering::SeqCst) & NO_TRANSACTION != 0 {
            return;
        }
        for topic in self.topics() {
            topic.waiting_since();
            topic.slots().for_each(|accumulator| accumulator.end_lease());
        }
    }

    /// Disables the linger until [`Self::end_flush`].
    pub fn start_flush(&self) {
        self.flushing.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a flush.
    pub fn end_flush(&self) {
        self.flushing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns true while the producer takes records.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.gate.load(Ordering::Relaxed) == 0
    }

    /// Error: the producer takes no more records.
    #[inline]
    pub(super) fn check_open(&self) -> Result<(), SendError> {
        if self.is_open() { Ok(()) } else { Err(self.why_closed()) }
    }

    /// Error: the producer is closed, or had a fatal error.
    pub(crate) fn check_not_closed(&self) -> Result<(), SendError> {
        if self.is_closed() { Err(self.why_closed()) } else { Ok(()) }
    }

    #[cold]
    fn why_closed(&self) -> SendError {
        match (self.is_closed(), &self.transactions) {
            (false, Some(transactions)) => SendError::State(transactions.why_refused()),
            _ => self.fatal.lock().clone().map_or(SendError::Closed, SendError::Fatal),
        }
    }

    /// Returns true once [`Self::close`] was called: by the application, or after a fatal error.
    pub fn is_closed(&self) -> bool {
        self.gate.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Returns true while the application flushes or closes.
    pub fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::SeqCst) > 0
    }
}

/// Reports on their way to the sink.
struct Reporting<'a, I> {
    shared: &'a ProducerShared,
    batches: I,
    /// The messages and bytes that are released when the sink has taken the last batch, even if the application's callback panics.
    taken: Option<(usize, u64)>,
}

impl<I> Reporting<'_, I> {
    fn release(&mut self) {
        if let Some((len, bytes)) = self.taken.take() {
            self.shared.budget.release(len, bytes);
        }
    }
}

impl<I: Iterator<Item = DeliveryBatch>> Iterator for Reporting<'_, I> {
    type Item = DeliveryBatch;

    fn next(&mut self) -> Option<DeliveryBatch> {
        self.release();
        let batch = self.batches.next()?;
        let (len, bytes) = (batch.len(), batch.charged_bytes);
        if let Some(transactions) = &self.shared.transactions {
            let is_persisted = batch.status() == PersistenceStatus::Persisted;
            transactions.note_report(len, batch.error(), is_persisted);
        }
        if !self.shared.sink.keeps_charge() {
            self.taken = Some((len, bytes));
        }
        Some(batch)
    }
}

impl<I> Drop for Reporting<'_, I> {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for ProducerShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerShared")
            .field("messages", &self.queued_messages())
            .field("bytes", &self.queued_bytes())
            .finish_non_exhaustive()
    }
}

/// The error of a record that waited too long for its topic.
pub(crate) fn unknown_topic_error() -> Error {
    Error::new(
        ErrorKind::UnknownTopic,
        "no broker knows it and it was not created; create it, or allow auto.create.topics.enable",
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        machine::Instant,
        produce::{
            partitioner::Partitioner,
            record::{Record, SendError},
            report::NoReports,
        },
    };

    /// A producer with ten partitions of the topic `t`.
    pub(in crate::produce) fn producer(max_queued_messages: u64) -> ProducerShared {
        let settings = ProducerSettings { max_queued_messages, ..ProducerSettings::default() };
        let shared = ProducerShared::new(
            settings.with_partitioner(Partitioner::Sticky),
            Arc::new(NoReports),
            Rng::from_seed(1),
        );
        let (topic, _) = shared.topic("t");
        topic.set_partitions(10, |_| (), |_| ());
        shared
    }

    fn send(shared: &ProducerShared, number: u64) -> Result<(), SendError> {
        let (topic, _) = shared.topic("t");
        let record = Record::new().value("0123456789").partition((number % 10) as i32);
        shared.send(&topic, Instant::ZERO, 0, &record, None)
    }

    #[test]
    fn queue_takes_its_limit_of_messages_despite_leases() {
        let shared = producer(500);
        for number in 0..500 {
            assert_eq!(send(&shared, number), Ok(()), "{number}");
            assert_eq!(shared.queued_messages(), number as usize + 1);
            assert_eq!(shared.queued_bytes(), 10 * (number + 1));
        }
        assert_eq!(send(&shared, 0), Err(SendError::QueueFull));
    }

    #[test]
    fn ceiling_stops_sends_before_the_chunks_of_many_batches_exceed_it() {
        let settings = ProducerSettings { max_memory: Some(100_000), ..ProducerSettings::default() };
        let settings = settings.with_partitioner(Partitioner::Sticky);
        let shared = ProducerShared::new(settings, Arc::new(NoReports), Rng::from_seed(1));
        let (topic, _) = shared.topic("t");
        topic.set_partitions(1000, |_| (), |_| ());
        let send = |number: i32| {
            let record = Record::new().value("0123456789").partition(number % 1000);
            shared.send(&topic, Instant::ZERO, 0, &record, None)
        };
        let sent = (0..2000).take_while(|number| send(*number).is_ok()).count();
        assert!(shared.pool.in_use_bytes() <= 100_000, "{} bytes", shared.pool.in_use_bytes());
        assert!(sent > 20, "{sent} records");
        assert_eq!(send(sent as i32), Err(SendError::QueueFull));
        assert_eq!(send(0), Ok(()), "its batch has room");
        topic.slots().for_each(|accumulator| {
            let taken = accumulator.take(true).0;
            taken.iter().for_each(|batch| shared.budget.release(1, batch.charged_bytes));
        });
        assert_eq!(send(sent as i32), Ok(()));
    }

    #[test]
    fn lease_of_a_partition_is_returned_when_its_batch_is_taken() {
        let shared = producer(100_000);
        (0..40).for_each(|number| send(&shared, number).unwrap());
        assert!(shared.budget.messages() > 40);
        let (topic, _) = shared.topic("t");
        for partition in 0..topic.partition_count().unwrap() {
            let accumulator = topic.slot(partition).unwrap();
            assert_eq!(accumulator.take(true).0.map(|batch| batch.builder.record_count()), Some(4));
        }
        assert_eq!((shared.budget.messages(), shared.budget.bytes()), (40, 400));
        assert!(!shared.budget.has_leases());
    }
}
