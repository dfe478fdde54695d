//! The state that the application's threads share with the group: polls, the outstanding rebalance, the membership.
//!
//! The machine does not see the application's calls one by one. Threads store the time of their last poll, once per batch,
//! and the machine reads it when a deadline passes. A thread that blocks in a poll counts as polling all the time.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ottla_protocol::vocabulary::{Generation, TopicPartition};

use crate::{
    error::Error,
    machine::Instant,
    offsets::committed::{CommitResult, GroupOffset},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// How the members of a group give partitions up (KIP-429).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebalanceProtocol {
    /// All members give up all partitions before each rebalance.
    Eager,
    /// Members keep their partitions during a rebalance, and give up only those that move.
    Cooperative,
}

/// A change of the assignment that the application has to answer. Until then no records of assigned partitions are handed
/// out; heartbeats go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebalanceEvent {
    /// The number of the event. An answer that names another one has no effect on the rebalance.
    pub number: u64,
    /// The kind of change.
    pub kind: RebalanceKind,
    /// The partitions that the change concerns: all of them in an eager group, the difference in a cooperative one.
    pub partitions: Vec<TopicPartition>,
    /// How the group's members give partitions up.
    pub protocol: RebalanceProtocol,
    /// The time at which the library answers by itself.
    pub deadline: Option<Instant>,
}

/// The kinds of changes of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebalanceKind {
    /// The member gets the partitions.
    Assign,
    /// The member gives the partitions up. It is still a member of their generation, so that it can commit.
    Revoke,
    /// The member lost the partitions: others may consume them already.
    Lost,
}

/// The receiver of a group's notifications. Its functions run on an I/O thread and must not block.
pub trait GroupSink: fmt::Debug + Send + Sync {
    /// Returns whether the application answers rebalances; if so, the time that it may take, if that is limited. The
    /// library answers by itself otherwise.
    fn answers(&self) -> Answers;

    /// The assignment changes. Called only if the application answers rebalances.
    fn rebalance(&self, event: RebalanceEvent);

    /// The outcome of an automatic commit is known.
    fn committed(&self, offsets: &[GroupOffset], outcome: &CommitResult);

    /// Reports an error of the group. The member continues by itself.
    fn error(&self, error: Error);

    /// The application has not polled for half of `max.poll.interval.ms`; again after four fifths.
    fn poll_overdue(&self, since: Duration, limit: Duration);
}

/// The side that answers rebalances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// The library.
    #[default]
    Library,
    /// The application, whenever it gets to it.
    Application,
    /// The application or, after a part of the rebalance timeout, the library.
    ApplicationWithDeadline,
}

/// The state that the application's threads share with the group.
#[derive(Debug, Default)]
pub struct GroupShared {
    sink: OnceLock<Arc<dyn GroupSink>>,
    /// The time of the last poll, in nanoseconds.
    polled_at: AtomicU64,
    /// The number of threads that block in a poll.
    blocked: AtomicUsize,
    /// True if the member left because the application does not poll.
    is_expired: AtomicBool,
    /// True while the application must regard its assignment as lost.
    is_lost: AtomicBool,
    view: Mutex<GroupView>,
}

/// The membership as the application sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupView {
    /// The member ID; empty without one.
    pub member_id: String,
    /// The generation or the member epoch.
    pub generation: Option<Generation>,
    /// How the group's members give partitions up; `None` outside a group.
    pub protocol: Option<RebalanceProtocol>,
    /// The last membership, until the consumer unsubscribes.
    pub(crate) last: Option<(String, Generation)>,
}

impl GroupView {
    /// Returns the member ID and the generation for offsets that a transaction commits. A member that has lost its membership
    /// keeps the last ones while it joins again: the coordinator then refuses offsets of partitions that others may have by
    /// now. It would accept offsets without an identity.
    pub fn for_offsets(&self) -> (&str, Option<Generation>) {
        match &self.last {
            Some((member_id, generation)) if self.generation.is_none() => (member_id, Some(*generation)),
            _ => (&self.member_id, self.generation),
        }
    }
}

impl GroupShared {
    /// Sets the receiver of notifications. Later calls have no effect.
    pub fn set_sink(&self, sink: Arc<dyn GroupSink>) {
        let _ = self.sink.set(sink);
    }

    pub(crate) fn sink(&self) -> Option<&Arc<dyn GroupSink>> {
        self.sink.get()
    }

    /// The application polls. Returns true if the group must be notified by
    /// [`GroupCommand::Polled`](super::GroupCommand::Polled): the member left because of missing polls.
    pub fn note_poll(&self, now: Instant) -> bool {
        self.polled_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
        self.is_expired.load(Ordering::Relaxed) && self.is_expired.swap(false, Ordering::AcqRel)
    }

    /// A thread begins to block in a poll.
    pub fn begin_blocking(&self) {
        self.blocked.fetch_add(1, Ordering::AcqRel);
    }

    /// A thread no longer blocks in a poll. Returns the same as [`GroupShared::note_poll`].
    pub fn end_blocking(&self, now: Instant) -> bool {
        let is_expired = self.note_poll(now);
        self.blocked.fetch_sub(1, Ordering::AcqRel);
        is_expired
    }

    /// Returns the time of the last poll: `now` while a thread blocks in one.
    pub(crate) fn last_poll(&self, now: Instant) -> Instant {
        if self.blocked.load(Ordering::Acquire) > 0 {
            return now;
        }
        Instant::from_nanos(self.polled_at.load(Ordering::Acquire))
    }

    pub(crate) fn set_expired(&self, is_expired: bool) {
        self.is_expired.store(is_expired, Ordering::Release);
    }

    /// Returns true while the assignment is lost and the application has not answered that.
    pub fn is_assignment_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Sets whether the assignment is lost.
    pub fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Ordering::Release);
    }

    /// Returns the membership.
    pub fn view(&self) -> GroupView {
        self.view.lock().clone()
    }

    pub(crate) fn set_view(&self, view: GroupView) {
        let mut known = self.view.lock();
        let last = match (view.generation, view.protocol) {
            (Some(generation), _) => Some((view.member_id.clone(), generation)),
            (None, Some(_)) => known.last.take(),
            (None, None) => None,
        };
        *known = GroupView { last, ..view };
    }
}
