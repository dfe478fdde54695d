//! The consumer: thin over `ottla_core::fetch`, which has the behaviour.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | [`Consumer`]: assignment, pause, close |
//! | [`builder`] | [`ConsumerBuilder`]: callbacks |
//! | [`read`] | the calls that return records, and [`MessageStream`] |
//! | [`rebalances`] | rebalances that the application answers |
//! | [`listener`] | the same, as callbacks |
//! | [`subscription`] | subscriptions: membership in a group |
//! | [`offsets`] | seek, positions, commits, watermarks |
//! | [`commits`] | commits of messages and batches, stored offsets |
//! | [`tracked`] | messages that are processed out of order |
//! | [`partition_stream`] | the records of one partition |

mod builder;
mod commits;
mod dead_letters;
#[cfg(feature = "capi")]
#[doc(hidden)]
mod for_capi;
#[cfg(test)]
mod idle_tests;
mod listener;
mod offsets;
mod partition_stream;
mod read;
mod rebalances;
mod retrying;
mod subscription;
mod tracked;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Wake, Waker},
    time::{Duration, Instant},
};

use ottla_core::{
    cluster::command::Command,
    completion::{Waiting, completion},
    config::OffsetReset,
    error::{Error, ErrorKind, Result},
    event::EventQueue,
    fetch::{FetchCommand, KnownEpochs, deliver::Records, position::Offset, shared::ConsumerShared},
    group::{GroupCommand, departure::GroupMembershipOperation},
    lock::Mutex,
    offsets::committed::GroupOffset,
    secret::Secret,
    stats::Statistics,
    txn::command::ConsumerGroupMetadata,
};
use ottla_protocol::{uuid::Uuid, vocabulary::TopicPartition};

pub use self::{
    builder::ConsumerBuilder,
    commits::PartitionCommits,
    listener::RebalanceListener,
    partition_stream::PartitionStream,
    read::MessageStream,
    rebalances::{GroupEvent, Rebalance, Rebalances},
    retrying::{RetryingMessage, RetryingMessages},
    tracked::{TrackedMessage, TrackedMessages, TrackedStream},
};
use self::{read::Single, subscription::Subscription};
use crate::{
    admin::Admin,
    config::Config,
    interceptors::{Chain, ConsumerInterceptor, InterceptorCounts},
    producer::STATISTICS_TIMEOUT,
    sasl::OauthToken,
    start,
};

/// Reads records of assigned partitions, or as a member of a group. Cheap to clone; all clones read from the same queue, so that each record is
/// returned to one of them.
///
/// [`Consumer::poll`] returns many records at once, as views into the bytes that came from the socket; it is the fast way.
/// [`Consumer::next`], [`Consumer::next_async`] and [`Consumer::stream`] return one record after the other. Errors that
/// belong to no call are events: among the records of `poll`, or from [`Consumer::poll_event`].
///
/// # Drop
///
/// Dropping the last clone closes the consumer without waiting. A consumer that subscribes to topics leaves its group in the
/// background first, which takes at most ten seconds; if the process ends before, the other members get its partitions when
/// its session ends. [`Consumer::close`] waits for that, and for the I/O threads.
#[derive(Clone)]
pub struct Consumer {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<ConsumerShared>,
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
    single: Mutex<Single>,
    subscription: Subscription,
    warnings: Vec<String>,
    /// `group.instance.id`.
    instance_id: Option<String>,
    /// The number of the last partition that got a stream of its own.
    last_route: AtomicU64,
    interceptors: Arc<Chain<dyn ConsumerInterceptor>>,
}

impl Consumer {
    /// Creates a consumer without partitions. It connects in the background.
    ///
    /// Error: the configuration contradicts itself, or has no `bootstrap.servers`.
    pub fn new(config: &Config) -> Result<Self> {
        Self::builder(config).build()
    }

    /// Returns a builder, for a consumer with callbacks.
    pub fn builder(config: &Config) -> ConsumerBuilder<'_> {
        ConsumerBuilder::new(config)
    }

    /// Replaces the assignment: reads these partitions from these offsets, and no others. A partition that was assigned
    /// before starts again, too.
    pub fn assign(&self, partitions: &[(impl AsRef<str>, i32, Offset)]) -> Result<()> {
        self.replace_assignment(partitions, &KnownEpochs::new())
    }

    /// Adds partitions to the assignment.
    pub fn incremental_assign(&self, partitions: &[(impl AsRef<str>, i32, Offset)]) -> Result<()> {
        self.extend_assignment(partitions, &KnownEpochs::new())
    }

    /// Replaces the assignment; the leaders are asked for the records before positions with a known epoch.
    fn replace_assignment(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
        epochs: &KnownEpochs,
    ) -> Result<()> {
        self.check_open()?;
        let list = self.checked(partitions)?;
        self.inner.subscription.check_unused()?;
        self.log("assign", list.iter().map(|(key, from)| (&*key.topic, key.partition, Some(*from))));
        let commands = self.inner.shared.assign(&list).into_iter();
        commands.map(|command| command.with_epochs(epochs)).try_for_each(|command| self.command(command))
    }

    /// Adds to the assignment, like [`Self::replace_assignment`].
    fn extend_assignment(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
        epochs: &KnownEpochs,
    ) -> Result<()> {
        self.check_open()?;
        let list = self.checked(partitions)?;
        self.inner.subscription.check_unused()?;
        let logged = list.iter().map(|(key, from)| (&*key.topic, key.partition, Some(*from)));
        self.log("incremental assign", logged);
        self.command(self.inner.shared.incremental_assign(&list).with_epochs(epochs))
    }

    /// Removes partitions from the assignment.
    pub fn incremental_unassign(&self, partitions: &[(impl AsRef<str>, i32)]) -> Result<()> {
        self.check_open()?;
        let list: Vec<_> =
            partitions.iter().map(|(topic, number)| TopicPartition::new(topic.as_ref(), *number)).collect();
        self.inner.subscription.check_unused()?;
        self.log("incremental unassign", list.iter().map(|key| (&*key.topic, key.partition, None)));
        self.command(self.inner.shared.incremental_unassign(&list)?)
    }

    /// Returns the assigned partitions.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.inner.shared.assignment()
    }

    /// Returns the consumer's identity in its group, for offsets that a transaction commits. A consumer without a group has an
    /// empty `group_id`.
    pub fn group_metadata(&self) -> ConsumerGroupMetadata {
        let view = self.inner.subscription.group().view();
        let (member_id, generation) = view.for_offsets();
        ConsumerGroupMetadata {
            group_id: self.inner.shared.settings.group_id.as_deref().unwrap_or_default().to_owned(),
            generation,
            member_id: member_id.to_owned(),
            instance_id: self.inner.instance_id.clone(),
            topic_ids: self.inner.shared.topic_ids(),
        }
    }

    /// Returns the offsets after these records, as far as their partitions are still assigned.
    pub(crate) fn offsets_after(&self, records: &Records) -> Result<Vec<GroupOffset>> {
        self.inner.shared.offsets_after(records).into_iter().map(|(_, offset)| offset).collect()
    }

    /// Stops returning records of these partitions. Records that are fetched already are kept.
    pub fn pause(&self, partitions: &[impl Into<TopicPartition> + Clone]) -> Result<()> {
        let list: Vec<TopicPartition> = partitions.iter().cloned().map(Into::into).collect();
        self.log("pause", list.iter().map(|key| (&*key.topic, key.partition, None)));
        self.inner.shared.pause(&list)
    }

    /// Resumes returning records of these partitions, starting with those that were fetched before the pause.
    pub fn resume(&self, partitions: &[impl Into<TopicPartition> + Clone]) -> Result<()> {
        let list: Vec<TopicPartition> = partitions.iter().cloned().map(Into::into).collect();
        self.log("resume", list.iter().map(|key| (&*key.topic, key.partition, None)));
        self.inner.shared.resume(&list)
    }

    /// Sets `auto.offset.reset` for one topic.
    pub fn set_auto_offset_reset(&self, topic: &str, reset: OffsetReset) {
        self.inner.shared.set_auto_offset_reset(topic, reset);
    }

    /// Adds servers to `bootstrap.servers`. See
    /// [`Producer::add_bootstrap_servers`](crate::Producer::add_bootstrap_servers).
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

    /// Returns an admin client that shares this consumer's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// Returns the counters of this client (STATISTICS.md). Not to be called from a callback.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// Returns whether the consumer is closed: it returns no more records.
    pub fn is_closed(&self) -> bool {
        self.inner.shared.queue.is_closed()
    }

    /// Closes the consumer and its connections. Calls that wait end with [`ErrorKind::Closed`].
    ///
    /// A consumer that subscribes to topics first gives up its partitions, with a commit if `enable.auto.commit` is set, and
    /// leaves its group. That takes a round trip or two, and at most ten seconds if the coordinator does not respond. A
    /// static member stays in the group until its session ends (KIP-345). Of assigned partitions nothing is committed.
    ///
    /// Error: [`ErrorKind::TimedOut`], if the coordinator has not confirmed that in time. The consumer is closed even so.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.close_with(GroupMembershipOperation::Default, timeout)
    }

    /// Does what [`Consumer::close`] does; `operation` decides whether the consumer leaves its group (KIP-1092).
    pub fn close_with(&self, operation: GroupMembershipOperation, timeout: Duration) -> Result<()> {
        let began = Instant::now();
        let (rest, left) = self.leave_group(operation, timeout);
        self.inner.shared.queue.close();
        let ended = self.inner.client.end(rest, start::last_push(timeout.saturating_sub(began.elapsed())));
        ended.and(left)
    }

    /// Does what [`Consumer::close`] does, without blocking.
    pub async fn close_async(&self, timeout: Duration) -> Result<()> {
        self.close_with_async(GroupMembershipOperation::Default, timeout).await
    }

    /// Does what [`Consumer::close_with`] does, without blocking.
    pub async fn close_with_async(
        &self,
        operation: GroupMembershipOperation,
        timeout: Duration,
    ) -> Result<()> {
        let began = Instant::now();
        let (_, left) = self.leave_group_async(operation, timeout).await;
        self.inner.shared.queue.close();
        self.inner.client.end_async(start::last_push(timeout.saturating_sub(began.elapsed()))).await;
        left
    }

    /// Returns the ID under which brokers receive the metrics of this client. See
    /// [`Producer::client_instance_id`](crate::Producer::client_instance_id).
    pub fn client_instance_id(&self, timeout: Duration) -> Result<Uuid> {
        self.inner.client.client_instance_id(timeout)
    }

    /// Returns what happened in the [interceptors](ConsumerBuilder::interceptor).
    pub fn interceptor_counts(&self) -> InterceptorCounts {
        self.inner.interceptors.counts()
    }

    /// Returns warnings about the configuration, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// Returns the number of I/O threads that the clients of the process share.
    pub fn io_threads(&self) -> usize {
        self.inner.client.threads()
    }

    /// Error: the consumer is closed.
    fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(closed()) } else { Ok(()) }
    }

    fn command(&self, command: FetchCommand) -> Result<()> {
        self.inner.client.command(Command::Fetch(command))
    }

    fn log<'a>(&self, action: &str, partitions: impl IntoIterator<Item = (&'a str, i32, Option<Offset>)>) {
        self.inner.client.logger().partitions(action, partitions);
    }

    fn checked(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
    ) -> Result<Vec<(TopicPartition, Offset)>> {
        let checked = partitions.iter().map(|(topic, partition, from)| {
            self.check_offset(topic.as_ref(), *partition, *from)
                .map(|()| (TopicPartition::new(topic.as_ref(), *partition), *from))
        });
        checked.collect()
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("name", &self.inner.client.name())
            .field("assignment", &self.assignment())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A member of a group leaves it in the background. The client closes when that is done.
impl Drop for Inner {
    fn drop(&mut self) {
        if self.subscription.is_used() && !self.shared.queue.is_closed() {
            let (done, left) = completion();
            let _ = self
                .client
                .command(Command::Group(GroupCommand::Close(GroupMembershipOperation::Default, done)));
            self.shared.queue.close();
            CloseWhenLeft::begin(Arc::clone(&self.client), left);
        }
    }
}

/// Holds a client until its consumer has left its group.
pub(crate) struct CloseWhenLeft(Mutex<Option<(Arc<start::Client>, Waiting<()>)>>);

impl CloseWhenLeft {
    pub(crate) fn begin(client: Arc<start::Client>, left: Waiting<()>) {
        Arc::new(Self(Mutex::new(Some((client, left))))).wake();
    }
}

impl Wake for CloseWhenLeft {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut held = self.0.lock();
        let is_done = held
            .as_mut()
            .is_some_and(|(_, left)| Pin::new(left).poll(&mut Context::from_waker(&waker)).is_ready());
        // The client is dropped without the lock.
        let done = if is_done { held.take() } else { None };
        drop(held);
        drop(done);
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "")
}
