//! The member's half of streams groups (KIP-1071): an application describes its topology, and the coordinator assigns the tasks
//! of it, active, standby and warm-up.
//!
//! [`StreamsGroup`] is a part of the cluster actor. It has no records: the application consumes the partitions of its tasks with
//! a consumer without a group, and commits with the member's ID and epoch.
//!
//! ```text
//!  topology ──► StreamsMember ── StreamsGroupHeartbeat ──► coordinator
//!                 │ owned: OwnedTasks
//!                 │ push ── StreamsGroupTopologyDescriptionUpdate ──► coordinator, if it asks
//!                 ▼
//!  application ◄── StreamsShared: Assigned, Revoked, Status, Endpoints
//!      └── acknowledge, offsets, shutdown, leave ──► StreamsCommand
//! ```
//!
//! | file | contents |
//! |---|---|
//! | [`topology`] | the description of what the application processes |
//! | `task` | sets of tasks by role |
//! | `owned` | the tasks of a member from one assignment to the next |
//! | `member` | the protocol with the coordinator |
//! | `push` | sending [the description of its nodes](crate::admin::groups::topology_description) when the coordinator asks for it |
//! | [`news`] | events and what is known of the membership |
//! | [`shared`] | the state that the application's threads share with the part |
//! | [`settings`] | the settings from the configuration, and the topology |
//!
//! # Pitfalls
//!
//! - The coordinator sends an assignment once. If that response is lost, no later heartbeat repeats it, not even one that names
//!   the member's tasks: the member gives its tasks up and joins again (`lost_response_makes_the_member_join_again`).
//! - A heartbeat that joins must name no tasks, and the coordinator takes that as their release. The member joins again only
//!   after the application has given them up (`fenced_member_joins_after_its_tasks_are_given_up`).
//! - A member that is fenced while the application gives up tasks has two revocations open; no task is in both
//!   (`task_is_revoked_once_when_the_member_is_fenced_meanwhile`).

mod member;
pub mod news;
mod owned;
mod push;
pub mod settings;
pub mod shared;
mod task;
pub mod topology;

#[cfg(all(test, not(ottla_loom)))]
mod scripted;
#[cfg(all(test, not(ottla_loom)))]
mod scripted_push;

#[cfg(all(test, not(ottla_loom)))]
pub(crate) use self::{member::routed as heartbeat_sample, push::routed as push_sample};

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use self::{
    member::{Step, StreamsMember},
    news::{StreamsRevocation, TaskOffsets},
    settings::StreamsSettings,
    shared::StreamsShared,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime},
        route::{CoordinatorKey, Route, RoutedRequest},
    },
    error::Error,
    group::departure::GroupMembershipOperation,
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
    stats::Statistics,
};

/// A command of the application for its streams group.
#[derive(Debug)]
pub enum StreamsCommand {
    /// Join the group.
    Join,
    /// The application has given up the tasks of this revocation.
    Acknowledge(StreamsRevocation),
    /// Report how far tasks have restored their state.
    Offsets(TaskOffsets),
    /// Request that all members of the application shut down.
    ShutDown,
    /// Leave the group; at the latest after this duration. The application has stopped all tasks.
    Leave(Duration, GroupMembershipOperation, Completion<()>),
}

/// The membership in a streams group.
#[derive(Debug)]
pub struct StreamsGroup {
    shared: Arc<StreamsShared>,
    member: StreamsMember,
    /// The calls that wait until the member has left, and when they end.
    leaving: Vec<Completion<()>>,
    leaves_until: Option<Instant>,
    /// The application has not seen the last change of the membership.
    is_changed: bool,
    needs: VecDeque<Need>,
}

impl StreamsGroup {
    /// Creates a member outside of its group.
    pub fn new(shared: Arc<StreamsShared>, rng: Rng) -> Self {
        Self {
            member: StreamsMember::new(StreamsSettings::clone(&shared.settings), rng),
            shared,
            leaving: Vec::new(),
            leaves_until: None,
            is_changed: true,
            needs: VecDeque::new(),
        }
    }

    /// Carries out a command of the application.
    pub fn handle_command(&mut self, now: Instant, command: StreamsCommand) {
        self.is_changed = true;
        match command {
            StreamsCommand::Join if self.leaving.is_empty() => self.member.join(now),
            StreamsCommand::Join => {}
            StreamsCommand::Acknowledge(revocation) => self.member.acknowledge(revocation.id),
            StreamsCommand::Offsets(offsets) => self.member.report_offsets(offsets),
            StreamsCommand::ShutDown => self.member.request_shutdown(),
            StreamsCommand::Leave(timeout, operation, done) => {
                self.leaving.push(done);
                if self.leaving.len() == 1 {
                    self.leaves_until = Some(now + timeout);
                    self.member.leave(now + timeout, operation);
                }
            }
        }
    }

    /// Handles the response to a heartbeat, or the error instead of one. Returns true if the coordinator moved.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        term: u64,
        result: Result<Response, Error>,
    ) -> bool {
        self.is_changed = true;
        self.member.handle_response(now, term, result)
    }

    /// Handles the response to a push of the topology's description, or the error instead of one. Returns true if the coordinator
    /// moved.
    pub(crate) fn handle_push_response(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
    ) -> bool {
        self.is_changed = true;
        self.member.handle_push_response(now, number, result)
    }

    fn carry_out_steps(&mut self, now: Instant) {
        self.member.advance(now);
        // Before the events, so that the application sees their tasks in the membership.
        if std::mem::take(&mut self.is_changed) {
            self.shared.set_membership(self.member.membership());
        }
        while let Some(step) = self.member.poll_step() {
            match step {
                Step::Send(request, term) => self.request(request, RequestOwner::Streams(term)),
                Step::Push(request, number) => {
                    self.request(request, RequestOwner::StreamsDescription(number));
                }
                Step::Left => self.end_leaving(),
                Step::Event(event) => self.shared.push(event),
                Step::Fail(error) => self.shared.fail(error),
            }
        }
    }

    fn request(&mut self, request: RoutedRequest, owner: RequestOwner) {
        let group = CoordinatorKey::group(Arc::clone(&self.shared.settings.group_id));
        self.needs.push_back(Need::Request { route: Route::Coordinator(group), request, owner });
    }

    fn end_leaving(&mut self) {
        self.leaves_until = None;
        self.leaving.drain(..).for_each(|done| done.complete(()));
    }
}

impl Part for StreamsGroup {
    fn states(&self, see: &mut See<'_>) {
        self.member.states(see);
    }

    fn handle_metadata(&mut self, _now: Instant, _metadata: &Metadata, _changes: &MetadataChanges) -> bool {
        false
    }

    fn handle_timeout(&mut self, now: Instant, _unreachable: Option<&Error>) {
        self.member.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.leaves_until, self.member.poll_timeout())
    }

    fn advance(&mut self, now: Instant, _metadata: &Metadata) {
        self.carry_out_steps(now);
    }

    fn add_topics(&self, _topics: &mut Interest) {}

    fn add_statistics(&mut self, _at: SnapshotTime, statistics: &mut Statistics) {
        self.member.member_id().clone_into(&mut statistics.member_id);
    }

    fn close(&mut self) {
        self.needs.clear();
        self.shared.close();
        self.end_leaving();
    }
}

impl Needs for StreamsGroup {
    type Message = Infallible;

    fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }
}
