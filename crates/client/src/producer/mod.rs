//! The producer: thin over `ottla_core::produce`, which has the behaviour.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | [`Producer`]: topics, flush, purge, pause, close |
//! | [`builder`] | [`ProducerBuilder`]: callbacks |
//! | [`topic`] | [`Topic`]: the calls that send |
//! | [`delivery`] | [`Delivery`] and [`DeliverFuture`]: the result of sending |
//! | [`transaction`] | [`Transaction`]: sending within a transaction |
//! | [`topic_builder`] | [`TopicBuilder`]: topics with settings of their own |
//! | [`inner`] | the state that clones share, and what happens when the last one is dropped |

mod builder;
mod delivery;
mod error;
#[cfg(feature = "capi")]
#[doc(hidden)]
mod for_capi;
#[cfg(test)]
mod idle_tests;
mod inner;
mod max_block;
mod topic;
mod topic_builder;
mod transaction;

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use ottla_core::{
    cluster::command::Command,
    config::{ConfigError, RawConfig},
    contract::purge::Purge,
    error::{Error, ErrorKind, Result},
    event::Event,
    produce::{
        record::{Record, SendError},
        shared::ProducerShared,
        topic_settings::TopicSettings,
    },
    secret::Secret,
    stats::Statistics,
    waiters::Waiter,
};

use ottla_protocol::{uuid::Uuid, vocabulary::TopicPartition};

use self::inner::{Flushing, Inner};
pub use self::{
    builder::ProducerBuilder,
    delivery::{DeliverFuture, Delivery, RecordMetadata},
    error::{SendBatchError, TrySendError},
    topic::Topic,
    topic_builder::TopicBuilder,
    transaction::Transaction,
};
use crate::{
    admin::Admin,
    config::Config,
    interceptors::InterceptorCounts,
    sasl::OauthToken,
    start::{CLOSING, last_push},
    topic_name::check_topic_name,
    wait::{check_may_wait, wait_for, wait_in_lead},
};

/// Sends records. Cheap to clone; all clones share one queue and one set of connections.
///
/// The calling thread encodes records into batches; I/O threads, which all clients of the process share, compress and send
/// these. Every record gets exactly one report: through [`ProducerBuilder::on_delivery`], or through the [`Delivery`] of
/// [`Topic::send_tracked`]. [`Topic`] lists the calls that send.
///
/// # Drop
///
/// Call [`Producer::close`] at the end, with the time that delivery may take: it returns an error if records are left.
/// Dropping the last clone, with its topics, flushes too, but does not wait: the delivery goes on in the background for at most
/// `drop.timeout.ms` (5 s by default, 0 disables it), and ends with the process. Records that are left then are reported as
/// not delivered ([`ErrorKind::Closed`]); a producer without [`ProducerBuilder::on_delivery`] writes their number to
/// stderr. The drop does not flush while its thread panics, after `close`, after a fatal error, and in a forked child.
#[derive(Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

/// The time for reading statistics. The I/O threads respond at once unless a callback blocks them.
pub(crate) const STATISTICS_TIMEOUT: Duration = Duration::from_secs(10);

impl Producer {
    /// Creates a producer without a callback for delivery reports. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers`.
    pub fn new(config: &Config) -> Result<Self> {
        Self::builder(config).build()
    }

    /// Returns a builder, for a producer with callbacks.
    pub fn builder(config: &Config) -> ProducerBuilder<'_> {
        ProducerBuilder::new(config)
    }

    /// Returns true if the producer has a `transactional.id`.
    pub(crate) fn is_transactional(&self) -> bool {
        self.inner.shared.transactions.is_some()
    }

    /// Returns a handle to a topic. The first handle of a name requests the topic's metadata.
    pub fn topic(&self, name: &str) -> Topic {
        self.topic_with_settings(name, self.inner.shared.topic_settings(), false)
    }

    /// Returns a handle to a topic. The settings apply if it is the first handle of the name. With `any_name` the brokers
    /// check the name.
    fn topic_with_settings(&self, name: &str, settings: &TopicSettings, any_name: bool) -> Topic {
        let (topic, is_new) = self.inner.shared.topic_with(name, settings);
        if is_new {
            match if any_name { Ok(()) } else { check_topic_name(name) } {
                Ok(()) => {
                    self.inner.client.logger().topic(name);
                    // A closed producer has no new topics without an error.
                    let _ = self.inner.client.command(Command::Topic(Arc::clone(&topic)));
                }
                Err(error) => {
                    topic.set_error(Some(error));
                }
            }
        }
        Topic { inner: Arc::clone(&self.inner), topic }
    }

    /// Returns a handle to a topic with properties of its own, such as `acks` or `compression.type`. See [`TopicBuilder`].
    pub fn topic_with(&self, name: &str, properties: &[(&str, &str)]) -> Result<Topic, ConfigError> {
        let mut builder = self.topic_builder(name);
        for (property, value) in properties {
            builder = builder.set(property, value)?;
        }
        builder.build()
    }

    /// Returns a builder, for a topic with settings of its own.
    pub fn topic_builder<'a>(&'a self, name: &'a str) -> TopicBuilder<'a> {
        TopicBuilder::new(self, name, RawConfig::topic(self.inner.config.profile()))
    }

    fn config(&self) -> &RawConfig {
        &self.inner.config
    }

    fn shared(&self) -> &ProducerShared {
        &self.inner.shared
    }

    /// Queues a record for a topic, without blocking. See [`Topic::send`], which does not look the name up each time.
    pub fn send(&self, topic: &str, record: Record<'_>) -> Result<(), SendError> {
        self.topic(topic).send(record)
    }

    /// Sends a record to a topic and blocks until it is delivered. See [`Topic::deliver`].
    pub fn deliver(&self, topic: &str, record: Record<'_>, timeout: Duration) -> Result<RecordMetadata> {
        self.topic(topic).deliver(record, timeout)
    }

    /// Sends a record to a topic and resolves when it is delivered. See [`Topic::deliver_async`].
    pub fn deliver_async<'a>(&self, topic: &str, record: Record<'a>) -> DeliverFuture<'a> {
        self.topic(topic).deliver_async(record)
    }

    /// Sends all queued records without lingering, and blocks until they are delivered or have failed.
    ///
    /// Error: [`ErrorKind::TimedOut`], if records are left after `timeout`. They stay in the queue.
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        check_may_wait("flush")?;
        let client = &self.inner.client;
        let flushed = {
            let _in_caller = client.in_caller(true);
            self.flush_async()
        };
        match wait_in_lead(client.leading(), flushed, timeout) {
            Some(()) => Ok(()),
            None => Err(self.not_flushed()),
        }
    }

    /// Sends all queued records without lingering, and resolves when they are delivered or have failed.
    ///
    /// Dropping the future restores the linger.
    pub fn flush_async(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = Arc::clone(&self.inner);
        let flushing = Flushing::start(&inner.shared, &inner.client);
        let mut waiter = Waiter::default();
        poll_fn(move |context| {
            let _flushing = &flushing;
            inner.shared.poll_flushed(&mut waiter, context)
        })
    }

    /// Removes records from the queue, from requests in flight, or both. Each is reported as purged.
    pub fn purge(&self, purge: Purge) {
        let _ = self.inner.client.command(Command::Purge(purge));
    }

    /// Stops sending to these partitions. Requests in flight continue; queued records wait, and `message.timeout.ms`
    /// applies to them. A partition may be paused before its topic is known.
    ///
    /// The I/O threads carry this out in the background.
    pub fn pause(&self, partitions: &[(&str, i32)]) {
        self.set_paused(partitions, true);
    }

    /// Resumes sending to these partitions.
    pub fn resume(&self, partitions: &[(&str, i32)]) {
        self.set_paused(partitions, false);
    }

    fn set_paused(&self, partitions: &[(&str, i32)], is_paused: bool) {
        let partitions = partitions.iter().copied().map(TopicPartition::from).collect();
        let _ = self.inner.client.command(Command::Pause { partitions, is_paused });
    }

    /// Adds servers to `bootstrap.servers`, in the same format. The client tries them at once if no broker is reachable.
    pub fn add_bootstrap_servers(&self, servers: &str) -> Result<()> {
        self.inner.client.add_servers(servers)
    }

    /// Reads the files of certificates and keys (`ssl.*.location`) again. New connections use them; open ones stay. The
    /// client also does so by itself when the files change (`ssl.reload.interval.ms`). Error: what is wrong with which
    /// property; then the client keeps its current ones.
    pub fn reload_credentials(&self) -> Result<()> {
        self.inner.client.reload_credentials()
    }

    /// Replaces user name and password of SASL, for PLAIN and SCRAM. New connections use them, and existing ones when they
    /// authenticate again; connections that wait after a failure try at once. Error: `security.protocol` has no SASL.
    pub fn set_sasl_credentials(&self, username: &str, password: Secret) -> Result<()> {
        self.inner.client.set_sasl_credentials(username, password)
    }

    /// Sets the token of OAUTHBEARER; connections begin when there is one. Error: OAUTHBEARER is not in use, or what is wrong
    /// with the token, without its text.
    pub fn set_oauth_token(&self, token: OauthToken) -> Result<()> {
        self.inner.client.set_oauth_token(token)
    }

    /// Flushes, then closes. Records that are left after `timeout` are reported as not delivered, and the error has their
    /// number.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        check_may_wait("close")?;
        let began = Instant::now();
        let flushed = self.flush(timeout);
        let ended = self.inner.end(CLOSING, last_push(timeout.saturating_sub(began.elapsed())));
        flushed.and(ended)
    }

    /// Does what [`Producer::close`] does, without blocking. Records that are left after `timeout` are reported as not delivered,
    /// also if the future is dropped before and the producer then.
    pub async fn close_async(&self, timeout: Duration) -> Result<()> {
        let began = Instant::now();
        let flushed = match self.inner.client.within(timeout, self.flush_async()).await {
            Some(()) => Ok(()),
            None => Err(self.not_flushed()),
        };
        self.inner.shared.close(None);
        self.inner.client.end_async(last_push(timeout.saturating_sub(began.elapsed()))).await;
        flushed
    }

    fn not_flushed(&self) -> Error {
        let detail = format!("flush: {} messages are still in the queue", self.in_queue());
        Error::new(ErrorKind::TimedOut, detail)
    }

    /// Returns the number of records that have no report yet.
    pub fn in_queue(&self) -> usize {
        self.inner.shared.queued_messages()
    }

    /// Returns the number of a topic's partitions. Blocks until the first metadata of the topic.
    pub fn partition_count(&self, topic: &str, timeout: Duration) -> Result<i32> {
        let Topic { topic, .. } = &self.topic(topic);
        let known = || topic.partition_count().map(Ok).or_else(|| topic.error().map(Err));
        if let Some(result) = known() {
            return result;
        }
        check_may_wait("partition_count")?;
        let mut waiter = Waiter::default();
        let learned = poll_fn(|context| {
            topic.register(&mut waiter, context.waker());
            known().map_or(Poll::Pending, Poll::Ready)
        });
        wait_for(learned, timeout).unwrap_or_else(|| {
            let detail = "partition_count: there is no metadata of the topic yet";
            Err(Error::new(ErrorKind::TimedOut, detail).with_topic(&**topic.name()))
        })
    }

    /// Returns an admin client that shares this producer's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// Returns the oldest [`Event`]: errors that belong to no call, such as a failed connection.
    pub fn poll_event(&self) -> Option<Event> {
        self.inner.events.pop()
    }

    /// Returns the counters of this client (STATISTICS.md). Blocks for well under a millisecond per thousand partitions,
    /// until the I/O threads have responded; not to be called from a callback, which runs on one of them.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// Returns the ID under which brokers receive the metrics of this client (KIP-714). Blocks until a broker has assigned
    /// it. Error: [`ErrorKind::TimedOut`] if no connected broker takes client metrics, and
    /// [`ErrorKind::NotConfigured`] with `enable.metrics.push=false`.
    pub fn client_instance_id(&self, timeout: Duration) -> Result<Uuid> {
        self.inner.client.client_instance_id(timeout)
    }

    /// Returns what happened in the [interceptors](ProducerBuilder::interceptor).
    pub fn interceptor_counts(&self) -> InterceptorCounts {
        self.inner.interceptors.counts()
    }

    /// Returns warnings about the configuration, a sentence each.
    pub fn warnings(&self) -> &[String] {
        self.inner.client.warnings()
    }

    /// Returns the number of I/O threads that the clients of the process share.
    pub fn io_threads(&self) -> usize {
        self.inner.client.threads()
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("name", &self.inner.client.name())
            .field("in_queue", &self.in_queue())
            .field("is_closed", &self.inner.shared.is_closed())
            .finish_non_exhaustive()
    }
}

/// Converts a configuration error into the error of a call.
pub(crate) fn config_error(error: ConfigError) -> Error {
    Error::new(ErrorKind::InvalidArgument, error.to_string())
}
