//! What the application's threads and the brokers' owners share of a producer: the settings, the queue's limits, the
//! memory, the topics and the way back for reports.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ottla_protocol::{batch::ChunkPool, compress::Compression, uuid::Uuid};

use super::{
    accumulator::{Appended, BatchLimits, Charge, HEADER_OVERHEAD, Held, RECORD_OVERHEAD, Refused},
    budget::Budget,
    collector::Linger,
    owed::Owed,
    partition::{PartitionProducer, Waiting},
    partitioner::{Partitioner, Pick},
    producer_id::SharedIdentity,
    record::{Record, SendError},
    report::{DeliveryBatch, DeliverySink, PersistenceStatus, Tags, TrackedOutcome, Tracker},
    topic::{ProducerTopic, TopicState, WaitingRecord},
    topic_settings::TopicSettings,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    mutation::{Mutant, Mutation},
    rng::Rng,
    sync::{
        Mutex, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// What a producer needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct ProducerSettings {
    /// `acks`: 0, 1 or -1 for all.
    pub acks: i16,
    /// `request.timeout.ms`: how long a broker may wait for its followers.
    pub acks_timeout: Duration,
    /// `socket.timeout.ms`: how long a broker may take to answer.
    pub answer_timeout: Duration,
    /// `message.timeout.ms`; `None` waits for ever.
    pub message_timeout: Option<Duration>,
    /// `message.send.max.retries`.
    pub max_retries: u32,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: usize,
    /// `compression.type`.
    pub compression: Compression,
    /// `compression.level`; `None` is the codec's own default.
    pub compression_level: Option<i32>,
    /// `broker.linger.ms` or `linger.ms`.
    pub linger: Linger,
    /// `broker.batch.max.partitions`.
    pub max_partitions: Option<usize>,
    /// `broker.batch.max.bytes`.
    pub max_bytes: Option<u64>,
    /// When a batch is full.
    pub batch: BatchLimits,
    /// `message.max.bytes`: the largest record.
    pub max_message_bytes: usize,
    /// `max.request.size`: the largest request, unless a single batch is larger.
    pub max_request_bytes: usize,
    /// `queue.buffering.max.messages`.
    pub max_queued_messages: u64,
    /// `queue.buffering.max.kbytes`, in bytes.
    pub max_queued_bytes: u64,
    /// `topic.metadata.propagation.max.ms`: how long a topic may be unknown before records for it fail.
    pub topic_propagation: Duration,
    /// `sticky.partitioning.linger.ms`.
    pub sticky_linger: Duration,
    /// Only `sticky_linger` makes records without a key move on, and not that their batch was sent.
    pub sticky_is_timed: bool,
    /// `enable.idempotence`: each record is written once and in order, whatever is sent again.
    pub idempotence: bool,
    /// `enable.gapless.guarantee`: a record that fails for good ends the producer.
    pub gapless: bool,
    /// `topic.recreate.policy`: what was taken for a topic fails when that was deleted and made anew.
    pub fail_of_old_topic: bool,
    /// `queuing.strategy`: what came last is sent first.
    pub newest_first: bool,
    /// True if reports carry the application's number of each record.
    pub keep_opaques: bool,
    /// A deliberate mistake, for the simulator's tests.
    pub mutation: Mutation,
}

impl Default for ProducerSettings {
    fn default() -> Self {
        Self {
            acks: -1,
            acks_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
            message_timeout: Some(Duration::from_secs(300)),
            max_retries: i32::MAX as u32,
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            max_in_flight: 5,
            compression: Compression::None,
            compression_level: None,
            linger: Linger::Broker(Duration::from_millis(5)),
            max_partitions: None,
            max_bytes: None,
            batch: BatchLimits {
                max_bytes: 1_000_000,
                max_records: 10_000,
                max_age_nanos: 5_000_000_000,
                sums_early: true,
            },
            max_message_bytes: 1_000_000,
            max_request_bytes: 1_000_000,
            max_queued_messages: 100_000,
            max_queued_bytes: 1 << 30,
            topic_propagation: Duration::from_secs(30),
            sticky_linger: Duration::from_millis(10),
            sticky_is_timed: false,
            idempotence: true,
            gapless: false,
            fail_of_old_topic: true,
            newest_first: false,
            keep_opaques: true,
            mutation: Mutation::NONE,
        }
    }
}

/// What the threads of a producer share.
pub struct ProducerShared {
    /// The settings.
    pub settings: ProducerSettings,
    /// The queue's limits.
    pub budget: Arc<Budget>,
    /// The batches' memory.
    pub pool: ChunkPool,
    /// The idempotent producer's identity.
    pub identity: SharedIdentity,
    /// How many flushes are under way.
    pub flushing: Arc<AtomicUsize>,
    /// Some topic has a linger of its own.
    pub lingers_differ: Arc<AtomicBool>,
    topic_settings: TopicSettings,
    topics: RwLock<BTreeMap<Arc<str>, Arc<ProducerTopic>>>,
    sink: Arc<dyn DeliverySink>,
    closed: AtomicBool,
    fatal: Mutex<Option<Error>>,
    seeds: Mutex<Rng>,
}

impl ProducerShared {
    /// A producer's shared half.
    pub fn new(
        settings: ProducerSettings,
        partitioner: Partitioner,
        sink: Arc<dyn DeliverySink>,
        rng: Rng,
    ) -> Self {
        Self {
            budget: Arc::new(Budget::new(settings.max_queued_messages, settings.max_queued_bytes)),
            pool: ChunkPool::new(),
            identity: SharedIdentity::default(),
            flushing: Arc::default(),
            lingers_differ: Arc::default(),
            topic_settings: TopicSettings::of_producer(&settings, Arc::new(partitioner)),
            topics: RwLock::default(),
            sink,
            closed: AtomicBool::new(false),
            fatal: Mutex::new(None),
            seeds: Mutex::new(rng),
            settings,
        }
    }

    /// Gives a topic a linger of its own, for the records that come from now on. With `broker.linger.ms=auto` it has none.
    pub fn set_topic_linger(&self, topic: &ProducerTopic, linger: Duration) {
        self.lingers_differ.store(true, Ordering::Relaxed);
        topic.set_linger(linger);
    }

    /// The settings of topics about which nothing was said.
    pub const fn topic_settings(&self) -> &TopicSettings {
        &self.topic_settings
    }

    /// The topic of this name; true if it was not used before, so that the cluster must be asked about it.
    pub fn topic(&self, name: &str) -> (Arc<ProducerTopic>, bool) {
        self.topic_with(name, &self.topic_settings)
    }

    /// The same with settings of its own, which count if it was not used before.
    pub fn topic_with(&self, name: &str, settings: &TopicSettings) -> (Arc<ProducerTopic>, bool) {
        if let Some(topic) = self.topics.read().get(name) {
            return (Arc::clone(topic), false);
        }
        let mut topics = self.topics.write();
        if let Some(topic) = topics.get(name) {
            return (Arc::clone(topic), false);
        }
        let name: Arc<str> = Arc::from(name);
        let topic = Arc::new(ProducerTopic::new(
            Arc::clone(&name),
            settings.clone(),
            Arc::clone(&self.budget),
            self.seeds.lock().fork(),
        ));
        if self.closed.load(Ordering::SeqCst) {
            // Whoever closes may have looked at the topics already: nobody would report what waits in this one.
            topic.set_error(Some(Error::new(ErrorKind::Closed, "")));
        }
        topics.insert(name, Arc::clone(&topic));
        (topic, true)
    }

    /// All topics that are produced to.
    pub fn topics(&self) -> Vec<Arc<ProducerTopic>> {
        self.topics.read().values().cloned().collect()
    }

    /// Takes a record: never blocks, never waits for the network. `now` and `wall_ms` are the time of the call.
    #[inline]
    pub fn send(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<(), SendError> {
        let payload_bytes = record.payload_bytes();
        if !self.is_small_enough(record, payload_bytes) {
            let (size, limit) = (upper_bound(record, payload_bytes), self.settings.max_message_bytes);
            return Err(SendError::MessageTooLarge { size, limit });
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err(self.fatal.lock().clone().map_or(SendError::Closed, SendError::Fatal));
        }
        self.route(topic, now, wall_ms, record, payload_bytes, track)
    }

    /// Takes records in their order, as [`Self::send`] does one by one, but keeps the lock of a partition while the next
    /// ones go there too. The error says how many were taken before the one that was not.
    pub fn send_batch(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        records: &[Record<'_>],
    ) -> Result<(), (usize, SendError)> {
        let mut taken = 0;
        while taken < records.len() {
            taken += self.append_run(topic, now, wall_ms, &records[taken..]);
            // What ended the run is sent on its own, which finds out what there is to say.
            if let Some(record) = records.get(taken) {
                self.send(topic, now, wall_ms, record, None).map_err(|error| (taken, error))?;
                taken += 1;
            }
        }
        Ok(())
    }

    /// Appends as many of the first records as go to one partition without anything special, and says how many.
    fn append_run(&self, topic: &ProducerTopic, now: Instant, wall_ms: i64, records: &[Record<'_>]) -> usize {
        let TopicState::Known(count) = topic.state() else { return 0 };
        if self.closed.load(Ordering::Relaxed) {
            return 0;
        }
        let mut held: Option<(i32, Held<'_>)> = None;
        for (index, record) in records.iter().take(LONGEST_RUN).enumerate() {
            let payload_bytes = record.payload_bytes();
            let Ok((partition, join_only)) = self.choose(topic, count, now, record) else { return index };
            let held = match &mut held {
                None => {
                    let Some(accumulator) = topic.accumulator(partition) else { return index };
                    &mut held.insert((partition, accumulator.hold())).1
                }
                Some((same, held)) if *same == partition => held,
                Some(_) => return index,
            };
            let appended = self.is_small_enough(record, payload_bytes)
                && held.append(
                    now,
                    record,
                    record.timestamp.unwrap_or(wall_ms),
                    payload_bytes,
                    self.settings.keep_opaques,
                    join_only,
                    Charge::Now,
                    &topic.settings().batch,
                    &self.pool,
                    None,
                ) == Ok(Appended::Yes);
            if !appended {
                return index;
            }
        }
        records.len().min(LONGEST_RUN)
    }

    #[inline]
    fn is_small_enough(&self, record: &Record<'_>, payload_bytes: usize) -> bool {
        upper_bound(record, payload_bytes) <= self.settings.max_message_bytes
    }

    /// Messages that have no report yet.
    pub fn queued_messages(&self) -> usize {
        let charged = self.budget.messages();
        if charged == 0 || !self.budget.has_leases() {
            return charged;
        }
        charged.saturating_sub(self.sum_of_leases().0)
    }

    /// Bytes of keys, values and headers that have no report yet.
    pub fn queued_bytes(&self) -> u64 {
        let charged = self.budget.bytes();
        if charged == 0 || !self.budget.has_leases() {
            return charged;
        }
        charged.saturating_sub(self.sum_of_leases().1)
    }

    /// Takes back the room that partitions leased and don't use. True if there may be room now.
    #[cold]
    fn end_leases(&self) -> bool {
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

    /// Takes a record, or registers to be woken when there may be room for it.
    pub fn poll_send(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError>> {
        for registered in [false, true] {
            match self.send(topic, now, wall_ms, record, None) {
                Err(SendError::QueueFull) if registered => {}
                // Room may come between this attempt and the registration: there is another one behind it.
                Err(SendError::QueueFull) => self.budget.register(context.waker()),
                result => return Poll::Ready(result),
            }
        }
        Poll::Pending
    }

    /// Ready when every record has its report; registers to be woken by the next one.
    pub fn poll_flushed(&self, context: &Context<'_>) -> Poll<()> {
        if self.budget.messages() == 0 {
            return Poll::Ready(());
        }
        if !self.settings.mutation.is(Mutant::LoseFlush) {
            self.budget.register(context.waker());
        }
        if self.budget.messages() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Appends records that waited for the topic's metadata; those that have nowhere to go are handed back.
    pub(crate) fn append_waiting(
        &self,
        topic: &ProducerTopic,
        count: i32,
        records: Vec<WaitingRecord>,
    ) -> Vec<(WaitingRecord, Error)> {
        let mut failed = Vec::new();
        for waiting in records {
            let record = waiting.record();
            let result = self.choose(topic, count, waiting.since, &record).and_then(|(partition, _)| {
                let accumulator = topic.slot(partition).ok_or(SendError::Closed)?;
                let settings = &self.settings;
                // A tracked record that waits has a tracker of its own; the batch's reports are by range, so it is
                // told through a batch of one.
                let mut track = None;
                accumulator
                    .hold()
                    .append(
                        waiting.since,
                        &record,
                        waiting.timestamp,
                        waiting.payload_bytes,
                        settings.keep_opaques,
                        false,
                        Charge::Paid,
                        &topic.settings().batch,
                        &self.pool,
                        waiting.tracker.is_some().then_some(&mut track),
                    )
                    .map_err(|_| SendError::Closed)?;
                if let (Some(outer), Some((inner, index))) = (&waiting.tracker, track) {
                    inner.forward(index, outer);
                }
                Ok(())
            });
            if let Err(error) = result {
                failed.push((waiting, error.into()));
            }
        }
        failed
    }

    /// Reports records that never got into a batch.
    pub(crate) fn fail_waiting(&self, topic: &Arc<str>, records: Vec<(WaitingRecord, Error)>) {
        for (waiting, error) in records {
            let error = error.with_topic(&**topic);
            if let Some(tracker) = &waiting.tracker {
                let outcome = TrackedOutcome {
                    partition: -1,
                    outcome: Err(error.clone()),
                    status: PersistenceStatus::NotPersisted,
                };
                tracker.complete(0..1, outcome);
            }
            self.report(DeliveryBatch {
                topic: Arc::clone(topic),
                partition: waiting.record().partition.unwrap_or(-1),
                outcome: Err(error),
                status: PersistenceStatus::NotPersisted,
                tags: if self.settings.keep_opaques {
                    Tags::Opaque(vec![waiting.record().opaque])
                } else {
                    Tags::None
                },
                len: 1,
                charged_bytes: waiting.payload_bytes as u64,
                broker_id: -1,
            });
        }
    }

    /// Fails every record that waits for its topic, in whatever topic; none waits from now on.
    pub(crate) fn fail_all_waiting(&self, error: &Error) {
        for topic in self.topics() {
            let failed = topic.set_error(Some(error.clone()));
            self.fail_waiting(
                topic.name(),
                failed.into_iter().map(|record| (record, error.clone())).collect(),
            );
        }
    }

    /// Fails what waits anywhere, whoever its owner is or was: the client is broken. Nothing is taken from now on.
    pub fn abandon(&self, error: &Error) {
        self.close(Some(error.clone()));
        self.fail_all_waiting(error);
        for topic in self.topics() {
            for accumulator in topic.slots() {
                for mut owed in accumulator.take_lost() {
                    let (partition, status) = (accumulator.partition(), owed.status_when_lost());
                    let error = error.clone().with_partition(&**topic.name(), partition);
                    self.report(owed.report(topic.name(), partition, Err(error), status));
                }
                let mut partition = PartitionProducer::new(Arc::clone(accumulator), Uuid::ZERO, -1);
                partition.fail_waiting(self, Waiting::AllForGood, |_| error.clone());
            }
        }
    }

    /// Hands a report to the application and gives back what its records were charged.
    pub fn report(&self, batch: DeliveryBatch) {
        /// Also when the application panics in its report.
        struct Release<'a>(&'a Budget, usize, u64);

        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release(self.1, self.2);
            }
        }

        let (mut len, mut bytes) = (batch.len(), batch.charged_bytes);
        if self.settings.mutation.is(Mutant::ForgetBytes) && bytes > 0 {
            bytes -= 1;
        }
        let is_purged = || {
            matches!(
                batch.outcome.as_ref().map_err(Error::kind),
                Err(ErrorKind::PurgedFromQueue | ErrorKind::PurgedInFlight)
            )
        };
        if self.settings.mutation.is(Mutant::PurgeForgetsBytes) && is_purged() {
            bytes = 0;
        }
        if self.settings.mutation.is(Mutant::ForgetMessage) && len > 1 {
            len -= 1;
        }
        let _release = (!self.sink.keeps_charge()).then(|| Release(&self.budget, len, bytes));
        self.sink.deliver(batch);
    }

    /// Reports a batch that never left.
    pub(crate) fn report_unsent(&self, topic: &Arc<str>, partition: i32, mut owed: Owed, error: Error) {
        self.report(owed.report(topic, partition, Err(error), PersistenceStatus::NotPersisted));
    }

    /// No record is taken any more. With an error, sends answer that error.
    pub fn close(&self, fatal: Option<Error>) {
        if fatal.is_some() {
            *self.fatal.lock() = fatal;
        }
        self.closed.store(true, Ordering::SeqCst);
    }

    /// True while somebody flushes or closes.
    pub fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::SeqCst) > 0
    }

    #[inline]
    fn route(
        &self,
        topic: &ProducerTopic,
        now: Instant,
        wall_ms: i64,
        record: &Record<'_>,
        payload_bytes: usize,
        mut track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<(), SendError> {
        let timestamp = record.timestamp.unwrap_or(wall_ms);
        let mut count = loop {
            match topic.state() {
                TopicState::Known(count) => break count,
                TopicState::Unknown => {
                    let has_room = self.budget.try_charge(payload_bytes)
                        || self.end_leases() && self.budget.try_charge(payload_bytes);
                    if !has_room {
                        return Err(SendError::QueueFull);
                    }
                    let refund = || self.budget.release(1, payload_bytes as u64);
                    let tracker = track.is_some().then(|| Arc::new(Tracker::default()));
                    let waits = topic
                        .wait(|| WaitingRecord::new(record, now, timestamp, payload_bytes, tracker.clone()))
                        .inspect_err(|_| refund())
                        .map_err(|error| match error.kind() {
                            ErrorKind::Closed => SendError::Closed,
                            _ => SendError::Topic(error),
                        })?;
                    if waits {
                        if let (Some(track), Some(tracker)) = (&mut track, tracker) {
                            **track = Some((tracker, 0));
                        }
                        return Ok(());
                    }
                    refund();
                }
            }
        };
        let (mut partition, mut join_only) = self.choose(topic, count, now, record)?;
        let mut has_ended_leases = false;
        loop {
            let Some(accumulator) = topic.accumulator(partition) else {
                match topic.state() {
                    // The topic was made anew with fewer partitions in this moment.
                    TopicState::Known(fewer) if fewer < count => count = fewer,
                    _ => return Err(SendError::UnknownPartition { partition, count }),
                }
                (partition, join_only) = self.choose(topic, count, now, record)?;
                continue;
            };
            let settings = &self.settings;
            let appended = accumulator.hold().append(
                now,
                record,
                timestamp,
                payload_bytes,
                settings.keep_opaques,
                join_only,
                Charge::Now,
                &topic.settings().batch,
                &self.pool,
                track.as_deref_mut(),
            );
            match appended {
                Ok(Appended::Yes) => return Ok(()),
                Ok(Appended::NothingToJoin) => {
                    // The batch that records without a key stuck to is gone: they move on to another partition.
                    partition = topic.next_sticky_partition(count, now, self.settings.sticky_linger);
                    join_only = false;
                }
                Err(Refused::Sealed) => return Err(SendError::Closed),
                Err(Refused::NoRoom)
                    if !std::mem::replace(&mut has_ended_leases, true) && self.end_leases() => {}
                Err(Refused::NoRoom) => return Err(SendError::QueueFull),
            }
        }
    }

    /// The record's partition, and whether it only joins a batch there.
    #[inline]
    fn choose(
        &self,
        topic: &ProducerTopic,
        count: i32,
        now: Instant,
        record: &Record<'_>,
    ) -> Result<(i32, bool), SendError> {
        if let Some(partition) = record.partition {
            return if (0..count).contains(&partition) {
                Ok((partition, false))
            } else {
                Err(SendError::UnknownPartition { partition, count })
            };
        }
        match topic.settings().partitioner.pick(
            topic.name(),
            record.key,
            count,
            record.opaque,
            &|partition| topic.is_available(partition),
            || topic.rng.lock().next_u64(),
        ) {
            Pick::Partition(partition) if (0..count).contains(&partition) => Ok((partition, false)),
            Pick::Partition(partition) | Pick::Invalid(partition) => {
                Err(SendError::UnknownPartition { partition, count })
            }
            Pick::Sticky => {
                let (partition, stays) = topic.sticky_partition(count, now, self.settings.sticky_linger);
                Ok((partition, stays && !self.settings.sticky_is_timed))
            }
        }
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

/// So many records are appended under one lock: some microseconds.
const LONGEST_RUN: usize = 64;

/// The most bytes that a record can take when encoded.
#[inline]
fn upper_bound(record: &Record<'_>, payload_bytes: usize) -> usize {
    payload_bytes + RECORD_OVERHEAD + record.headers.len() * HEADER_OVERHEAD
}

/// The error of a record that waited too long for its topic.
pub(crate) fn unknown_topic_error() -> Error {
    Error::new(
        ErrorKind::UnknownTopic,
        "no broker knows it and it was not created; create it, or allow auto.create.topics.enable",
    )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ottla_protocol::batch::SealOptions;

    use super::{super::report::NoReports, *};

    fn producer(max_queued_messages: u64) -> ProducerShared {
        let settings = ProducerSettings { max_queued_messages, ..ProducerSettings::default() };
        let shared =
            ProducerShared::new(settings, Partitioner::Sticky, Arc::new(NoReports), Rng::from_seed(1));
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
    fn the_queue_takes_as_many_messages_as_it_may_whatever_its_partitions_have_leased() {
        let shared = producer(500);
        for number in 0..500 {
            assert_eq!(send(&shared, number), Ok(()), "{number}");
            assert_eq!(shared.queued_messages(), number as usize + 1);
            assert_eq!(shared.queued_bytes(), 10 * (number + 1));
        }
        assert_eq!(send(&shared, 0), Err(SendError::QueueFull));
    }

    #[test]
    fn an_array_of_records_is_taken_in_order_up_to_the_one_that_cannot_be() {
        let shared = producer(500);
        let (topic, _) = shared.topic("t");
        let record =
            |number: i32| Record::new().value("0123456789").partition(number % 3).opaque(number as u64);
        let records: Vec<_> = (0..600).map(record).collect();
        let now = Instant::ZERO;
        assert_eq!(shared.send_batch(&topic, now, 0, &records), Err((500, SendError::QueueFull)));
        assert_eq!(shared.queued_messages(), 500);
        for partition in 0..3 {
            let batch = topic.accumulator(partition).unwrap().take(true).0.unwrap();
            let Tags::Opaque(opaques) = batch.tags else { panic!("tags") };
            let expected: Vec<u64> = (0..500).filter(|number| number % 3 == partition as u64).collect();
            assert_eq!(opaques, expected);
        }
        let mixed = [record(0), Record::new().value("v").partition(77), record(1)];
        let unknown = SendError::UnknownPartition { partition: 77, count: 10 };
        shared.budget.release(100, 1000);
        assert_eq!(shared.send_batch(&topic, now, 0, &mixed), Err((1, unknown)));
    }

    #[test]
    fn a_large_shared_value_is_sent_from_where_it_lies() {
        let shared = producer(500);
        let (topic, _) = shared.topic("t");
        let (large, small) = (Bytes::from(vec![7; 100_000]), Bytes::from_static(b"small"));
        for value in [&large, &small] {
            let record = Record::new().shared_value(value).partition(0);
            shared.send(&topic, Instant::ZERO, 0, &record, None).unwrap();
        }
        let batch = topic.accumulator(0).unwrap().take(true).0.unwrap();
        let sealed = batch.builder.seal(&SealOptions::default()).unwrap();
        assert!(sealed.segments().any(|segment| std::ptr::eq(segment, &large[..])));
        assert!(!sealed.segments().any(|segment| std::ptr::eq(segment, &small[..])));
        let mut values = Vec::new();
        sealed.for_each_record(|record| values.push(record.value.unwrap().to_vec())).unwrap();
        assert!(values == [&large[..], &small[..]]);
    }

    #[test]
    fn records_without_a_key_stay_with_a_partition_until_its_batch_is_sent_or_for_the_time_that_is_set() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        for sticky_is_timed in [false, true] {
            let settings = ProducerSettings {
                sticky_linger: Duration::from_millis(100),
                sticky_is_timed,
                ..ProducerSettings::default()
            };
            let shared =
                ProducerShared::new(settings, Partitioner::Sticky, Arc::new(NoReports), Rng::from_seed(1));
            let (topic, _) = shared.topic("t");
            topic.set_partitions(10, |_| (), |_| ());
            // Sends one, and takes its batch: which partition was it?
            let send = |millis| {
                let record = Record::new().value("0123456789");
                shared.send(&topic, at(millis), 0, &record, None).unwrap();
                let with_batch =
                    |partition: &i32| topic.accumulator(*partition).unwrap().take(true).0.is_some();
                (0..10).filter(with_batch).collect::<Vec<_>>()
            };
            let (first, second, late) = (send(0), send(50), send(100));
            assert_eq!(first.len(), 1);
            assert_eq!(first == second, sticky_is_timed, "its batch was sent in between");
            assert_ne!(second, late, "the time is over");
        }
    }

    #[test]
    fn what_a_partition_leased_is_given_back_when_its_batch_is_taken() {
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
