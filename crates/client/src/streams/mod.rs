//! A member of a streams group (KIP-1071): the tasks of an application that describes what it processes. Thin over
//! `ottla_core::streams`, which has the behaviour.
//!
//! It is the foundation of a library for stream processing, not one. A member says which tasks the application has; the
//! application reads their partitions with a [`Consumer`](crate::Consumer) that has no group, keeps their state, and commits with
//! [`StreamsMember::group_metadata`].
//!
//! ```no_run
//! # use std::time::Duration;
//! use ottla::{Config, streams::{StreamsEvent, StreamsMember, Subtopology, Topology}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let copy = Subtopology { id: "0".into(), source_topics: vec!["orders".into()], ..Default::default() };
//! let topology = Topology { epoch: 0, subtopologies: vec![copy] };
//! let mut config = Config::new();
//! config.set("bootstrap.servers", "localhost:9092")?.set("group.id", "application")?;
//! let member = StreamsMember::new(&config, topology)?;
//! member.join()?;
//! while let Some(event) = member.poll(Duration::from_secs(60))? {
//!     match event {
//!         StreamsEvent::Assigned(tasks) => println!("start {tasks:?}"),
//!         StreamsEvent::Revoked(revocation) => {
//!             println!("stop {:?}", revocation.tasks);
//!             member.acknowledge(revocation)?;
//!         }
//!         other => println!("{other:?}"),
//!     }
//! }
//! member.close(Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```

mod builder;

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

pub use ottla_core::{
    admin::groups::{
        streams_groups::{StreamsTask, StreamsTasks},
        topology_description::{
            GlobalStore, StoredDescription, SubtopologyDescription, TopologyDescription, TopologyNode,
            TopologyNodeKind,
        },
    },
    streams::{
        news::{
            RevocationReason, StreamsEndpoint, StreamsEvent, StreamsMembership, StreamsRevocation,
            StreamsStatus, StreamsStatusKind, TaskOffsets,
        },
        topology::{CopartitionGroup, InternalTopic, Subtopology, Topology},
    },
};
use ottla_core::{
    cluster::command::Command,
    completion::{Waiting, completion},
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    group::departure::GroupMembershipOperation,
    stats::Statistics,
    streams::{StreamsCommand, shared::StreamsShared},
    txn::command::ConsumerGroupMetadata,
    waiters::Waiter,
};
use ottla_protocol::vocabulary::Generation;

pub use self::builder::StreamsMemberBuilder;
use crate::{
    admin::Admin,
    config::Config,
    consumer::CloseWhenLeft,
    producer::STATISTICS_TIMEOUT,
    start,
    wait::{check_may_wait, wait_for},
};

/// The time in which a member that was dropped leaves its group.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The client itself applies the timeout; the wait for it takes this much longer.
const LEAVING_GRACE: Duration = Duration::from_millis(100);

/// A member of a streams group. It needs Kafka 4.1 with the feature `streams.version`. Cheap to clone; all clones are the same
/// member.
///
/// `group.id` is the application, `max.poll.interval.ms` the time in which it gives up revoked tasks, `client.rack` its rack, and
/// `group.instance.id` makes the member static (Kafka 4.4). The group's other settings are those of the brokers
/// (`streams.session.timeout.ms`, `streams.num.standby.replicas`).
///
/// # Tasks
///
/// Each task is in one [`StreamsEvent::Assigned`], and then in one [`StreamsEvent::Revoked`] unless the member is closed before.
/// The coordinator gives a revoked task to another member after [`StreamsMember::acknowledge`]: the application stops the
/// task and commits first. If the revocation's reason is [`RevocationReason::Lost`], other members may have the task already, and
/// commits with the member's epoch are refused.
///
/// # Drop
///
/// Dropping the last clone leaves the group in the background, which takes at most ten seconds. The application stops its tasks
/// before, as before [`StreamsMember::close`], which waits for that.
#[derive(Clone)]
pub struct StreamsMember {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<StreamsShared>,
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
    has_joined: AtomicBool,
    is_closing: AtomicBool,
}

impl StreamsMember {
    /// Creates a member of the group of `group.id` that has not joined. It connects in the background.
    ///
    /// # Errors
    ///
    /// The configuration contradicts itself, has no `bootstrap.servers` or no `group.id`, or the topology is wrong.
    pub fn new(config: &Config, topology: Topology) -> Result<Self> {
        Self::builder(config, topology).build()
    }

    /// Returns a builder, for a member with an endpoint, tags or callbacks.
    pub fn builder(config: &Config, topology: Topology) -> StreamsMemberBuilder<'_> {
        StreamsMemberBuilder::new(config, topology)
    }

    /// Joins the group. It returns at once; tasks come as events.
    ///
    /// # Errors
    ///
    /// The member is closed, or can't continue.
    pub fn join(&self) -> Result<()> {
        self.check_open()?;
        self.inner.has_joined.store(true, Ordering::Release);
        self.command(StreamsCommand::Join)
    }

    /// Returns the next event, or `None` after `timeout`.
    ///
    /// # Errors
    ///
    /// The member is closed, or can't continue, for example because brokers have no streams groups or refuse the topology. The
    /// revocation of its tasks comes before.
    pub fn poll(&self, timeout: Duration) -> Result<Option<StreamsEvent>> {
        check_may_wait("poll")?;
        wait_for(self.poll_async(), timeout).transpose()
    }

    /// Returns the next event. See [`StreamsMember::poll`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no event was taken.
    pub fn poll_async(&self) -> impl Future<Output = Result<StreamsEvent>> + Send + use<> {
        let member = self.clone();
        let mut waiter = Waiter::default();
        poll_fn(move |context| {
            member.inner.shared.register(&mut waiter, context.waker());
            match member.take_event() {
                Some(event) => Poll::Ready(Ok(event)),
                None => match member.check_open() {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                },
            }
        })
    }

    /// Tells the coordinator that the application has given up the tasks of a revocation.
    ///
    /// # Errors
    ///
    /// The member is closed.
    pub fn acknowledge(&self, revocation: StreamsRevocation) -> Result<()> {
        self.command(StreamsCommand::Acknowledge(revocation))
    }

    /// Reports how far tasks have restored their state, with a later heartbeat. A newer report replaces one that was not sent
    /// yet. It is sent if the coordinator asks for it ([`StreamsMembership::task_offset_interval`]).
    ///
    /// # Errors
    ///
    /// The member is closed.
    pub fn report_offsets(&self, offsets: TaskOffsets) -> Result<()> {
        self.command(StreamsCommand::Offsets(offsets))
    }

    /// Requests that all members of the application shut down: each gets [`StreamsStatusKind::ShutdownApplication`].
    ///
    /// # Errors
    ///
    /// The member is closed.
    pub fn shut_down_application(&self) -> Result<()> {
        self.command(StreamsCommand::ShutDown)
    }

    /// Returns what is known of the membership.
    pub fn membership(&self) -> StreamsMembership {
        self.inner.shared.membership()
    }

    /// Returns the member's identity, for offsets that a transaction commits.
    pub fn group_metadata(&self) -> ConsumerGroupMetadata {
        let settings = &self.inner.shared.settings;
        let membership = self.membership();
        let generation = membership.epoch.and_then(Generation::from_wire);
        ConsumerGroupMetadata {
            group_id: settings.group_id.to_string(),
            member_id: generation.map(|_| membership.member_id).unwrap_or_default(),
            generation,
            instance_id: settings.instance_id.as_deref().map(str::to_owned),
            topic_ids: Arc::default(),
        }
    }

    /// Leaves the group, and closes the connections. The application has stopped its tasks. A static member may return, and keeps
    /// its tasks until its session ends. A coordinator that does not respond delays this until `timeout`.
    ///
    /// # Errors
    ///
    /// It takes longer.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.close_with(GroupMembershipOperation::Default, timeout)
    }

    /// Closes the member as [`StreamsMember::close`] does, with this choice of leaving the group.
    ///
    /// # Errors
    ///
    /// It takes longer.
    pub fn close_with(&self, operation: GroupMembershipOperation, timeout: Duration) -> Result<()> {
        check_may_wait("close")?;
        let Some(left) = self.begin_to_close(operation, timeout) else { return Ok(()) };
        let began = std::time::Instant::now();
        let left = left_in_time(wait_for(left, timeout.saturating_add(LEAVING_GRACE)));
        self.inner.shared.close();
        let rest = timeout.saturating_sub(began.elapsed());
        self.inner.client.end(rest.max(Duration::from_millis(100)), start::last_push(rest))?;
        left
    }

    /// Does what [`StreamsMember::close_with`] does, without blocking.
    ///
    /// # Errors
    ///
    /// It takes longer.
    pub async fn close_async(&self, operation: GroupMembershipOperation, timeout: Duration) -> Result<()> {
        let Some(left) = self.begin_to_close(operation, timeout) else { return Ok(()) };
        let began = std::time::Instant::now();
        let left = self.inner.client.within(timeout.saturating_add(LEAVING_GRACE), left).await;
        self.inner.shared.close();
        self.inner.client.end_async(start::last_push(timeout.saturating_sub(began.elapsed()))).await;
        left_in_time(left)
    }

    /// Returns whether the member is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.shared.is_closed()
    }

    /// Returns an admin client that shares this member's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// Returns the counters of this client (STATISTICS.md). Not to be called from a callback.
    ///
    /// # Errors
    ///
    /// The member is closed, or a callback blocks its thread.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// Returns warnings about the configuration, a sentence each.
    pub fn warnings(&self) -> &[String] {
        self.inner.client.warnings()
    }

    fn take_event(&self) -> Option<StreamsEvent> {
        self.inner.shared.take_event().or_else(|| {
            std::iter::from_fn(|| self.inner.events.pop()).find_map(|event| match event {
                Event::Error(error) | Event::AllBrokersDown(error) => Some(StreamsEvent::Error(error)),
                _ => None,
            })
        })
    }

    fn command(&self, command: StreamsCommand) -> Result<()> {
        self.inner.client.command(Command::Streams(command))
    }

    /// Begins to leave the group. Returns `None` if the member is closed.
    fn begin_to_close(&self, operation: GroupMembershipOperation, timeout: Duration) -> Option<Waiting<()>> {
        if self.inner.is_closing.swap(true, Ordering::AcqRel) {
            return None;
        }
        let (done, left) = completion();
        let _ = self.command(StreamsCommand::Leave(timeout, operation, done));
        Some(left)
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

fn left_in_time(left: Option<Option<()>>) -> Result<()> {
    let late = || Error::new(ErrorKind::TimedOut, "leaving the streams group takes longer");
    left.map(drop).ok_or_else(late)
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.has_joined.load(Ordering::Acquire) && !self.is_closing.load(Ordering::Acquire) {
            let (done, left) = completion();
            let leave = StreamsCommand::Leave(LEAVE_TIMEOUT, GroupMembershipOperation::Default, done);
            let _ = self.client.command(Command::Streams(leave));
            CloseWhenLeft::begin(Arc::clone(&self.client), left);
        }
    }
}

impl fmt::Debug for StreamsMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamsMember").field("name", &self.inner.client.name()).finish_non_exhaustive()
    }
}
