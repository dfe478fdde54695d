//! The producer: thin over `ottla_core::produce`, which has the behaviour.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    config::{ConfigError, ProducerView, RawConfig},
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    observer::Observer,
    produce::{
        partitioner::Partitioner,
        record::{Record, SendError},
        report::{DeliveryBatch, DeliverySink, NoReports, PersistenceStatus, Tracker},
        sender::Purge,
        shared::ProducerShared,
        topic::ProducerTopic,
        topic_settings::TopicSettings,
    },
    stats::Statistics,
};
use ottla_net::{Transport, clock};

use crate::{
    admin::Admin,
    config::Config,
    moment::Moment,
    start::{self, CLOSING},
    topic_builder::TopicBuilder,
    wait::{check_may_wait, in_callback, thread_waker, wait_for},
};

/// Sends records. Cheap to clone; all clones share one queue and one set of connections.
///
/// Records are encoded into batches by the calling thread; I/O threads that all clients of the process share compress
/// and send them. Every record gets exactly one report: through [`ProducerBuilder::on_delivery`] or the [`Delivery`] of
/// [`Topic::send_tracked`].
#[derive(Clone, Debug)]
pub struct Producer {
    inner: Arc<Inner>,
}

/// The I/O threads are asked; they answer at once unless a callback holds them up.
pub(crate) const STATISTICS_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a [`Producer`].
pub struct ProducerBuilder<'a> {
    config: &'a Config,
    sink: Option<Arc<dyn DeliverySink>>,
    partitioner: Option<Partitioner>,
    hooks: start::Hooks,
}

/// A topic of a producer: saves looking the name up for each record.
#[derive(Clone, Debug)]
pub struct Topic {
    inner: Arc<Inner>,
    topic: Arc<ProducerTopic>,
}

/// The fate of one record: a future, or [`Delivery::wait`].
#[derive(Debug)]
pub struct Delivery {
    tracker: Arc<Tracker>,
    index: usize,
    topic: Arc<str>,
}

/// Where a record was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset; `None` with `acks=0`.
    pub offset: Option<i64>,
    /// The broker's time in milliseconds, if the topic keeps that instead of the producer's.
    pub log_append_time: Option<i64>,
    /// Whether the record is in the log.
    pub status: PersistenceStatus,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<ProducerShared>,
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
    warnings: Vec<String>,
    config: RawConfig,
}

/// Why [`Topic::send_batch`] did not take all records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendBatchError {
    /// How many were taken: the first ones.
    pub taken: usize,
    /// Why the next one was not. Nothing of it, nor of those behind it, was kept.
    pub error: SendError,
}

impl fmt::Display for SendBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (after {} records that were taken)", self.error, self.taken)
    }
}

impl std::error::Error for SendBatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Producer {
    /// A producer without delivery reports of its own.
    pub fn new(config: &Config) -> Result<Self> {
        Self::builder(config).build()
    }

    /// A producer with a choice of what happens to reports.
    pub fn builder(config: &Config) -> ProducerBuilder<'_> {
        ProducerBuilder { config, sink: None, partitioner: None, hooks: start::Hooks::default() }
    }

    /// A handle to a topic. Nothing is asked of the cluster about a topic that was used before.
    pub fn topic(&self, name: &str) -> Topic {
        self.topic_with_settings(name, self.inner.shared.topic_settings())
    }

    /// The same with settings that count if the topic was not used before.
    pub(crate) fn topic_with_settings(&self, name: &str, settings: &TopicSettings) -> Topic {
        let (topic, is_new) = self.inner.shared.topic_with(name, settings);
        if is_new {
            match check_topic_name(name) {
                Ok(()) => self.inner.client.command(Command::Topic(Arc::clone(&topic))),
                Err(error) => {
                    topic.set_error(Some(error));
                }
            }
        }
        Topic { inner: Arc::clone(&self.inner), topic }
    }

    /// A handle to a topic with properties of its own, such as `acks` or `compression.type`. See [`TopicBuilder`].
    pub fn topic_with(&self, name: &str, properties: &[(&str, &str)]) -> Result<Topic, ConfigError> {
        let mut builder = self.topic_builder(name);
        for (property, value) in properties {
            builder = builder.set(property, value)?;
        }
        builder.build()
    }

    /// Makes a handle to a topic with settings of its own.
    pub fn topic_builder<'a>(&'a self, name: &'a str) -> TopicBuilder<'a> {
        TopicBuilder::new(self, name, RawConfig::topic(self.inner.config.profile()))
    }

    pub(crate) fn config(&self) -> &RawConfig {
        &self.inner.config
    }

    pub(crate) fn shared(&self) -> &ProducerShared {
        &self.inner.shared
    }

    /// Takes a record for a topic, without waiting. See [`Topic::send`].
    pub fn send(&self, topic: &str, record: Record<'_>) -> Result<(), SendError> {
        self.topic(topic).send(record)
    }

    /// Sends everything that was taken so far, without lingering, and waits for its reports.
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        check_may_wait("flush")?;
        match wait_for(self.flush_async(), timeout) {
            Some(()) => Ok(()),
            None => {
                let detail = format!("{} messages are still in the queue", self.in_queue());
                Err(Error::new(ErrorKind::TimedOut, detail))
            }
        }
    }

    /// Sends everything that was taken so far, without lingering; ready when all its reports were given.
    pub fn flush_async(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = Arc::clone(&self.inner);
        let flushing = Flushing::start(&inner);
        poll_fn(move |context| {
            let _flushing = &flushing;
            inner.shared.poll_flushed(context)
        })
    }

    /// Gives up on messages in the queue, in flight, or both: each is reported as purged.
    pub fn purge(&self, purge: Purge) {
        self.inner.client.command(Command::Purge(purge));
    }

    /// Nothing more of these partitions is sent; what is in flight goes on. Records wait, and `message.timeout.ms` runs. A
    /// partition may be paused before anything is known of its topic. It takes effect as soon as the I/O threads get to it.
    pub fn pause(&self, partitions: &[(&str, i32)]) {
        self.set_paused(partitions, true);
    }

    /// Sends what waits in these partitions, and what comes.
    pub fn resume(&self, partitions: &[(&str, i32)]) {
        self.set_paused(partitions, false);
    }

    fn set_paused(&self, partitions: &[(&str, i32)], is_paused: bool) {
        let partitions =
            partitions.iter().map(|(topic, partition)| (Arc::from(*topic), *partition)).collect();
        self.inner.client.command(Command::Pause { partitions, is_paused });
    }

    /// More servers to start from, as `bootstrap.servers` lists them. They are tried at once where none of the others could be
    /// reached.
    pub fn add_bootstrap_servers(&self, servers: &str) -> Result<()> {
        self.inner.client.add_servers(servers)
    }

    /// Flushes, then closes. Messages that could not be sent in time are reported as such; the error says how many.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        check_may_wait("close")?;
        let flushed = self.flush(timeout);
        let ended = self.end(CLOSING);
        flushed.and(ended)
    }

    /// Closes without flushing.
    #[doc(hidden)]
    pub fn end(&self, timeout: Duration) -> Result<()> {
        self.inner.shared.close(None);
        // Closing waits for no broker: it takes the time that the I/O threads need to get to it.
        self.inner.client.end(timeout)
    }

    /// The I/O threads are not waited for any more.
    #[doc(hidden)]
    pub fn give_up(&self) {
        self.inner.client.give_up();
    }

    /// Messages that have no report yet.
    pub fn in_queue(&self) -> usize {
        self.inner.shared.queued_messages()
    }

    /// The number of a topic's partitions, once the cluster told.
    pub fn partition_count(&self, topic: &str, timeout: Duration) -> Result<i32> {
        let topic = self.topic(topic);
        let deadline = std::time::Instant::now() + timeout;
        loop {
            if let Some(count) = topic.topic.partition_count() {
                return Ok(count);
            }
            if let Some(error) = topic.topic.error() {
                return Err(error);
            }
            check_may_wait("partition_count")?;
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                let detail = "the topic's partitions are not known yet";
                return Err(Error::new(ErrorKind::TimedOut, detail).with_topic(&**topic.topic.name()));
            }
            topic.topic.register(&thread_waker());
            if topic.topic.partition_count().is_none() && topic.topic.error().is_none() {
                std::thread::park_timeout(left);
            }
        }
    }

    /// Says that the application has seen a batch's reports: its records no longer count for the queue's limits. Only
    /// for a [`DeliverySink`] that keeps the charge.
    pub fn release(&self, batch: &DeliveryBatch) {
        self.inner.shared.budget.release(batch.len(), batch.charged_bytes());
    }

    /// Asks to be woken by the client's next event; true if none waits already.
    pub fn register_events(&self, waker: &std::task::Waker) -> bool {
        self.inner.events.register(waker)
    }

    /// An admin client on this producer's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// The oldest event that belongs to no call: connections that failed and the like.
    pub fn poll_event(&self) -> Option<Event> {
        self.inner.events.pop()
    }

    /// What was counted so far; see STATISTICS.md. It asks the I/O threads, which takes well under a millisecond per
    /// thousand partitions; it must not be called from a callback, which runs on one of them.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// What the configuration is odd about, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// How many I/O threads the process's clients share.
    pub fn io_threads(&self) -> usize {
        self.inner.client.threads()
    }
}

impl ProducerBuilder<'_> {
    /// Calls `on_delivery` with the reports of each batch. It runs on an I/O thread: it must not block, and may send.
    #[must_use]
    pub fn on_delivery(mut self, on_delivery: impl Fn(&DeliveryBatch) + Send + Sync + 'static) -> Self {
        self.sink = Some(Arc::new(Callback(on_delivery)));
        self
    }

    /// Hands the reports of each batch to `sink`, on an I/O thread.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn DeliverySink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Calls `on_statistics` every `statistics.interval.ms`. It runs on an I/O thread: it must not block.
    #[must_use]
    pub fn on_statistics(mut self, on_statistics: impl Fn(Statistics) + Send + Sync + 'static) -> Self {
        self.hooks.statistics = Some(Box::new(on_statistics));
        self
    }

    /// Takes the application's own partitioner.
    #[must_use]
    pub fn partitioner(mut self, partitioner: Partitioner) -> Self {
        self.partitioner = Some(partitioner);
        self
    }

    /// Lets `transport` make and close the sockets and find hosts' addresses, in place of the system.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.hooks.transport = Some(transport);
        self
    }

    /// Shows `observer` what passes on the connections.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.hooks.observer = Some(observer);
        self
    }

    /// Starts the producer.
    pub fn build(self) -> Result<Producer> {
        let raw: &RawConfig = self.config.raw();
        let view = ProducerView::new(raw).map_err(config_error)?;
        view.client.require_servers().map_err(config_error)?;
        let mut settings = start::producer_settings(&view);
        settings.keep_opaques = self.sink.is_some();
        let partitioner = self.partitioner.unwrap_or_else(|| view.topic.partitioner.into());
        let sink = self.sink.unwrap_or_else(|| Arc::new(NoReports));
        let mut rng = start::seeded_rng();
        let shared = Arc::new(ProducerShared::new(settings, partitioner, sink, rng.fork()));
        let events = Arc::new(EventQueue::default());
        let client = Arc::new(start::client(
            &view.client,
            Some(Arc::clone(&shared)),
            None,
            Arc::clone(&events),
            self.hooks,
            rng.next_u64(),
        )?);
        let warnings = view.client.warnings.clone();
        let config = self.config.raw().clone();
        Ok(Producer { inner: Arc::new(Inner { shared, client, events, warnings, config }) })
    }
}

impl Topic {
    pub(crate) fn settings(&self) -> &TopicSettings {
        self.topic.settings()
    }

    pub(crate) fn set_linger(&self, linger: Duration) {
        self.inner.shared.set_topic_linger(&self.topic, linger);
    }

    /// Takes a record, without waiting: it is copied into a batch, which is sent when it is full or has lingered. An
    /// error says why it was not taken; with [`SendError::QueueFull`] try again when reports came.
    #[inline]
    pub fn send(&self, record: Record<'_>) -> Result<(), SendError> {
        self.try_send(&record)
    }

    /// Takes records in their order, without waiting, for less than one by one. An error says how many were taken before
    /// the one that was not.
    pub fn send_batch(&self, records: &[Record<'_>]) -> Result<(), SendBatchError> {
        self.send_batch_at(Moment::now(), records)
    }

    /// As [`Topic::send`], at a moment that the caller has read already.
    #[inline]
    pub fn send_at(&self, moment: Moment, record: &Record<'_>) -> Result<(), SendError> {
        self.inner.shared.send(&self.topic, moment.now, moment.wall_ms, record, None)
    }

    /// As [`Topic::send_batch`], at a moment that the caller has read already.
    pub fn send_batch_at(&self, moment: Moment, records: &[Record<'_>]) -> Result<(), SendBatchError> {
        self.inner
            .shared
            .send_batch(&self.topic, moment.now, moment.wall_ms, records)
            .map_err(|(taken, error)| SendBatchError { taken, error })
    }

    /// Takes a record, waiting for room in the queue up to `timeout`. In a delivery callback it doesn't wait but answers
    /// [`SendError::WouldDeadlock`] at once: the callback's thread is the one that makes room.
    pub fn send_blocking(&self, record: Record<'_>, timeout: Duration) -> Result<(), SendError> {
        match self.try_send(&record) {
            Err(SendError::QueueFull) => {}
            result => return result,
        }
        check_may_wait("send_blocking").map_err(SendError::WouldDeadlock)?;
        wait_for(self.send_when_room(record), timeout).unwrap_or(Err(SendError::QueueFull))
    }

    /// Takes a record as soon as there is room in the queue.
    pub async fn send_async(&self, record: Record<'_>) -> Result<(), SendError> {
        self.send_when_room(record).await
    }

    /// Takes a record, without waiting, and answers with its fate to come.
    pub fn send_tracked(&self, record: Record<'_>) -> Result<Delivery, SendError> {
        let (now, wall_ms) = clock::now_and_wall_ms();
        let mut track = None;
        self.inner.shared.send(&self.topic, now, wall_ms, &record, Some(&mut track))?;
        match track {
            Some((tracker, index)) => Ok(Delivery { tracker, index, topic: Arc::clone(self.topic.name()) }),
            None => Err(SendError::Closed),
        }
    }

    /// The topic's name.
    pub fn name(&self) -> &str {
        self.topic.name()
    }

    /// The number of partitions, once the cluster told.
    pub fn partition_count(&self) -> Option<i32> {
        self.topic.partition_count()
    }

    /// Whether the partition exists and has a leader, as far as is known.
    pub fn has_leader(&self, partition: i32) -> bool {
        self.topic.has_leader(partition)
    }

    #[inline]
    fn try_send(&self, record: &Record<'_>) -> Result<(), SendError> {
        self.send_at(Moment::now(), record)
    }

    fn send_when_room<'a>(&'a self, record: Record<'a>) -> impl Future<Output = Result<(), SendError>> + 'a {
        poll_fn(move |context| {
            let (now, wall_ms) = clock::now_and_wall_ms();
            self.inner.shared.poll_send(&self.topic, now, wall_ms, &record, context)
        })
    }
}

impl Delivery {
    /// Waits for the record's fate.
    pub fn wait(self, timeout: Duration) -> Result<RecordMetadata> {
        check_may_wait("Delivery::wait")?;
        let topic = Arc::clone(&self.topic);
        wait_for(self, timeout).unwrap_or_else(|| {
            Err(Error::new(ErrorKind::TimedOut, "the record has no report yet").with_topic(&*topic))
        })
    }
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.tracker.poll(self.index, context).map(|fate| {
            fate.outcome.map(|delivered| RecordMetadata {
                topic: Arc::clone(&self.topic),
                partition: fate.partition,
                offset: delivered.base_offset,
                log_append_time: delivered.log_append_time,
                status: fate.status,
            })
        })
    }
}

/// While it lives, nothing lingers.
struct Flushing(Arc<ProducerShared>);

impl Flushing {
    fn start(inner: &Inner) -> Self {
        inner.shared.flushing.fetch_add(1, Ordering::SeqCst);
        inner.client.command(Command::Flush);
        Self(Arc::clone(&inner.shared))
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        self.0.flushing.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Callback<F>(F);

impl<F: Fn(&DeliveryBatch) + Send + Sync> DeliverySink for Callback<F> {
    fn deliver(&self, batch: DeliveryBatch) {
        in_callback(|| (self.0)(&batch));
    }
}

/// A configuration error as an error of a call.
pub(crate) fn config_error(error: ConfigError) -> Error {
    Error::new(ErrorKind::InvalidArgument, error.to_string())
}

/// What Kafka allows as a topic's name.
pub(crate) fn check_topic_name(name: &str) -> Result<()> {
    let reason = if name.is_empty() {
        "a topic's name can't be empty".to_owned()
    } else if name.len() > 249 {
        format!("the topic's name has {} characters, and 249 are allowed", name.len())
    } else if name == "." || name == ".." {
        "a topic can't be named . or ..".to_owned()
    } else if let Some(bad) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c)) {
        format!("the topic's name has {bad:?}; letters, digits, '.', '_' and '-' are allowed")
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(shown))
}

impl fmt::Debug for ProducerBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProducerBuilder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_are_what_kafka_allows() {
        assert!(check_topic_name("a.b_c-9").is_ok());
        assert!(check_topic_name(&"x".repeat(249)).is_ok());
        for bad in ["", ".", "..", "a b", "ä", &"x".repeat(300)] {
            assert_eq!(check_topic_name(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
        }
    }
}
