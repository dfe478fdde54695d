//! The share consumer (KIP-932): thin over `ottla_core::share`, which has the behaviour.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | [`ShareConsumer`]: subscription, close |
//! | [`builder`] | [`ShareConsumerBuilder`] |
//! | [`poll`] | the calls that return records |
//! | [`record`] | [`ShareRecord`], the handle to acknowledge a record with |
//! | [`commit`] | acknowledgements and their outcomes |

mod builder;
mod commit;
#[cfg(feature = "capi")]
#[doc(hidden)]
mod for_capi;
#[cfg(test)]
mod idle_tests;
mod poll;
mod record;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    completion::{Waiting, completion},
    error::{Error, ErrorKind, Result},
    event::EventQueue,
    lock::Mutex,
    share::{
        ShareCommand,
        acknowledgement::AcknowledgeType,
        held::HeldRecords,
        shared::{ShareEvent, ShareShared},
    },
    stats::Statistics,
};
use ottla_sorted::SortedSet;

pub use self::{
    builder::ShareConsumerBuilder,
    commit::ShareCommit,
    record::{ShareRecord, ShareRecords},
};
use ottla_protocol::uuid::Uuid;

use crate::{
    admin::Admin,
    config::Config,
    consumer::CloseWhenLeft,
    producer::STATISTICS_TIMEOUT,
    start,
    wait::{check_may_wait, wait_for},
};

/// The time in which a consumer that was dropped leaves its group.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads records as a member of a share group: many members read the same partitions, and each record goes to one of them
/// until it is acknowledged (KIP-932). It needs Kafka 4.2. Cheap to clone; all clones are the same member.
///
/// [`ShareConsumer::poll`] returns records that are acquired for this member. Each [`ShareRecord`] is to be acknowledged
/// with [`accept`](ShareRecord::accept), [`release`](ShareRecord::release) or [`reject`](ShareRecord::reject);
/// **dropping it releases the record**, so that another member gets it. The broker's lock on a record runs out after
/// `share.record.lock.duration.ms` of the group (30 s), and the record may go to another member then.
///
/// Acknowledgements are sent with the next poll, with [`ShareConsumer::commit_async`], or with
/// [`ShareConsumer::commit_sync`], which waits for their outcome. Delivery is at least once. The order of records of a
/// partition holds within one poll only.
///
/// A new share group starts at the end of its topics: records that were written before its first member joined are not
/// delivered, unless the group's configuration `share.auto.offset.reset` is `earliest`.
///
/// Properties that only consumers of assigned partitions have (`auto.offset.reset`, `enable.auto.commit`,
/// `group.protocol`, `isolation.level` and others) have no effect, because the group's configuration at the broker decides.
/// `share.acknowledgement.mode` has no effect either: records are always acknowledged by their handles.
///
/// # Drop
///
/// Dropping the last clone leaves the group in the background, which takes at most ten seconds.
/// [`ShareConsumer::close`] waits for that.
#[derive(Clone)]
pub struct ShareConsumer {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<ShareShared>,
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
    held: HeldRecords,
    topics: Mutex<SortedSet<Arc<str>>>,
    /// True once the application has begun to close the consumer, which first leaves its group.
    is_closing: AtomicBool,
}

impl ShareConsumer {
    /// Creates a share consumer without a subscription. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers` or no `group.id`.
    pub fn new(config: &Config) -> Result<Self> {
        Self::builder(config).build()
    }

    /// Returns a builder, for a share consumer with callbacks.
    pub fn builder(config: &Config) -> ShareConsumerBuilder<'_> {
        ShareConsumerBuilder::new(config)
    }

    /// Consumes these topics as a member of the share group of `group.id`, instead of those of an earlier subscription.
    /// It returns at once; records come as soon as the group's coordinator has assigned partitions.
    ///
    /// Error: the list or a name is empty. Names are not patterns, which share groups do not support.
    pub fn subscribe(&self, topics: &[impl AsRef<str>]) -> Result<()> {
        let topics: SortedSet<Arc<str>> = topics.iter().map(|topic| Arc::from(topic.as_ref())).collect();
        if topics.is_empty() || topics.iter().any(|topic| topic.is_empty()) {
            let detail = "a subscription needs topics, whose names are not empty; call unsubscribe to end it";
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        }
        self.check_open()?;
        let mut subscribed = self.inner.topics.lock();
        // Under the lock, so that subscriptions reach the group in the order of the calls.
        self.inner.client.command(Command::Share(ShareCommand::Subscribe(topics.clone())))?;
        *subscribed = topics;
        Ok(())
    }

    /// Returns the topics of the subscription.
    pub fn subscription(&self) -> Vec<Arc<str>> {
        self.inner.topics.lock().iter().cloned().collect()
    }

    /// Sends the acknowledgements so far, releases all other records, and leaves the group. Waits for that, at most
    /// `timeout`.
    pub fn unsubscribe(&self, timeout: Duration) -> Result<()> {
        self.check_open()?;
        self.leave(timeout)
    }

    /// Returns the oldest event that belongs to no call: errors of the group and of partitions.
    pub fn poll_event(&self) -> Option<ShareEvent> {
        self.inner.shared.take_event().or_else(|| {
            std::iter::from_fn(|| self.inner.events.pop()).find_map(|event| match event {
                ottla_core::event::Event::Error(error) | ottla_core::event::Event::AllBrokersDown(error) => {
                    Some(ShareEvent::Error(error))
                }
                _ => None,
            })
        })
    }

    /// Sends the acknowledgements so far, releases all other records, leaves the group, and closes the connections. A
    /// broker that does not respond delays this until `timeout`; the locks of its records run out by themselves.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        check_may_wait("close")?;
        if self.is_closed() {
            return Ok(());
        }
        let began = std::time::Instant::now();
        self.inner.is_closing.store(true, Ordering::Release);
        let left = self.leave(timeout);
        self.inner.shared.close();
        let rest = timeout.saturating_sub(began.elapsed());
        self.inner.client.end(rest.max(Duration::from_millis(100)), start::last_push(rest))?;
        left
    }

    /// Does what [`ShareConsumer::close`] does, without blocking.
    pub async fn close_async(&self, timeout: Duration) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let began = std::time::Instant::now();
        self.inner.is_closing.store(true, Ordering::Release);
        let left = self.leave_async(timeout).await;
        self.inner.shared.close();
        let rest = timeout.saturating_sub(began.elapsed());
        self.inner.client.end_async(start::last_push(rest)).await;
        left
    }

    /// Does what [`ShareConsumer::unsubscribe`] does, without blocking.
    pub async fn unsubscribe_async(&self, timeout: Duration) -> Result<()> {
        self.check_open()?;
        self.leave_async(timeout).await
    }

    /// Closes the consumer as [`ShareConsumer::close`] does, with this verdict on all records that the application has and has
    /// not acknowledged: [`AcknowledgeType::Accept`] if they are processed, [`AcknowledgeType::Release`] for other members.
    pub fn close_with(&self, verdict: AcknowledgeType, timeout: Duration) -> Result<()> {
        self.inner.held.acknowledge_open(verdict);
        self.close(timeout)
    }

    /// Returns whether the consumer is closed: it returns no more records.
    pub fn is_closed(&self) -> bool {
        self.inner.shared.is_closed()
    }

    /// Adds servers to `bootstrap.servers`. See
    /// [`Producer::add_bootstrap_servers`](crate::Producer::add_bootstrap_servers).
    pub fn add_bootstrap_servers(&self, servers: &str) -> Result<()> {
        self.inner.client.add_servers(servers)
    }

    /// Returns an admin client that shares this consumer's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// Returns the counters of this client (STATISTICS.md). Not to be called from a callback.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// Returns the ID under which brokers receive the metrics of this client. See
    /// [`Producer::client_instance_id`](crate::Producer::client_instance_id).
    pub fn client_instance_id(&self, timeout: Duration) -> Result<Uuid> {
        self.inner.client.client_instance_id(timeout)
    }

    /// Returns warnings about the configuration, a sentence each.
    pub fn warnings(&self) -> &[String] {
        self.inner.client.warnings()
    }

    fn leave(&self, timeout: Duration) -> Result<()> {
        check_may_wait("leaving the group")?;
        match self.begin_to_leave(timeout)? {
            Some(left) => left_in_time(wait_for(left, timeout.saturating_add(LEAVING_GRACE))),
            None => Ok(()),
        }
    }

    async fn leave_async(&self, timeout: Duration) -> Result<()> {
        match self.begin_to_leave(timeout)? {
            Some(left) => {
                left_in_time(self.inner.client.within(timeout.saturating_add(LEAVING_GRACE), left).await)
            }
            None => Ok(()),
        }
    }

    /// Begins to leave the group. Returns `None` if there is none.
    fn begin_to_leave(&self, timeout: Duration) -> Result<Option<Waiting<()>>> {
        self.inner.held.release_delayed();
        self.inner.held.commit(&self.inner.shared);
        if std::mem::take(&mut *self.inner.topics.lock()).is_empty() {
            return Ok(None);
        }
        let (done, left) = completion();
        self.inner.client.command(Command::Share(ShareCommand::Leave(timeout, done)))?;
        Ok(Some(left))
    }

    fn check_open(&self) -> Result<()> {
        let closed = || Err(Error::new(ErrorKind::Closed, ""));
        if self.inner.is_closing.load(Ordering::Acquire) {
            return closed();
        }
        match self.inner.shared.fatal() {
            Some(error) => Err(error),
            None if self.is_closed() => closed(),
            None => Ok(()),
        }
    }
}

/// The client itself applies the timeout; the wait for it takes this much longer.
const LEAVING_GRACE: Duration = Duration::from_millis(100);

fn left_in_time(left: Option<Option<()>>) -> Result<()> {
    let late = || Error::new(ErrorKind::TimedOut, "leaving the share group takes longer");
    left.map(drop).ok_or_else(late)
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.topics.lock().is_empty() && !self.shared.is_closed() {
            self.held.commit(&self.shared);
            let (done, left) = completion();
            let _ = self.client.command(Command::Share(ShareCommand::Leave(LEAVE_TIMEOUT, done)));
            CloseWhenLeft::begin(Arc::clone(&self.client), left);
        }
    }
}

impl fmt::Debug for ShareConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareConsumer")
            .field("name", &self.inner.client.name())
            .field("subscription", &self.subscription())
            .finish_non_exhaustive()
    }
}
