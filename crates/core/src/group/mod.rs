//! Consumer groups: membership, assignment, rebalances and automatic commits.
//!
//! [`Group`] is a part of the cluster actor. It joins the group of `group.id` when the application subscribes to
//! topics, and starts the assigned partitions at the [`FetchManager`](crate::fetch::manager::FetchManager).
//!
//! ```text
//!  subscribe ──► member ── Assign ───► rebalance ── start, stop ──► FetchManager
//!                │    ▲    Revoke          │                            ▲
//!                │    │    Lost            └── commit on revoke ────────┤
//!   JoinGroup,   │    └── revoked ──────────┘       auto_commit ────────┘
//!   Heartbeat ◄──┘
//!   metadata ───► topics (the leader's tables) ──► assignor ──► SyncGroup
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `membership` | the protocol with the coordinator: when to join, to send a heartbeat, to leave. Two machines with the same steps: the classic protocol, and the consumer protocol (KIP-848), whose coordinator assigns |
//! | [`assignor`] | pure functions from members and topics to assignments |
//! | `exchange` | the bytes that members send each other: subscriptions and assignments |
//! | `topics` | the topics of all members, as the leader assigns them |
//! | [`rebalance`] | giving up and taking over partitions, and the application's answers |
//! | `owned` | the member's partitions, and since when it has held each |
//! | `polls` | `max.poll.interval.ms` |
//! | [`shared`] | the state that the application's threads share with the group |
//! | `commit` | offsets to commit, and commits in flight |
//! | `subscription` | names and patterns of topics, and what the patterns match |
//! | `settings` | the settings from the configuration |
//!
//! An assignment's identity is its [`PartitionHandle`](crate::fetch::partition::PartitionHandle): a partition that is
//! given up and assigned again gets another one. Fetched records and positions belong to the handle, so that nothing of
//! an earlier assignment reaches the application or is committed.
//!
//! # Pitfalls
//!
//! - A classic consumer whose topics do not exist is not a member of its group: it joins with the first topic that is
//!   created (`consumer_without_a_topic_that_exists_does_not_join`).
//! - A commit that is repeated after a rebalance could overwrite the offset of the partition's next consumer. It is sent
//!   only in the generation in which it was made
//!   (`commit_is_not_repeated_in_another_generation`).
//! - A subscribed consumer that is not a member at the moment must not commit: the broker accepts commits without a member
//!   ID while the group is empty (`subscribed_consumer_outside_its_group_commits_nothing`).
//! - In the consumer protocol, a commit may be repeated in a newer member epoch, but only while the member has held the
//!   partition since the epoch in which the commit was made
//!   (`stale_commit_is_not_repeated_for_a_revoked_partition`).
//! - Only the leader needs the topics of the other members, but it needs them as much as its own: partitions that are
//!   added to them must be assigned (`leader_joins_again_when_a_topic_of_another_member_grows`).

pub mod assignor;
mod commit;
pub mod departure;
mod exchange;
mod membership;
mod owned;
mod polls;
pub mod rebalance;
mod settings;
pub mod shared;
mod subscription;
mod topics;

#[cfg(test)]
mod scripted;
#[cfg(all(test, not(ottla_loom)))]
pub(crate) use self::membership::requests::samples;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::Generation;
use ottla_sorted::SortedSet;

pub(crate) use self::membership::{
    consumer_protocol::new_member_id,
    heartbeat_rules::{DEFAULT_INTERVAL, has_moved, heartbeat_interval, is_permanent, retry_wait},
};
use self::{
    assignor::RebalanceProtocol,
    commit::AutoCommit,
    departure::GroupMembershipOperation,
    membership::{
        Member,
        classic::{Step, Term},
        requests::MemberRequest,
    },
    polls::{Overdue, PollWatch},
    rebalance::{Rebalance, RebalanceAnswer},
    shared::GroupView,
    subscription::MatchedTopics,
    topics::{GroupTopics, TopicChange},
};
pub use self::{
    settings::{GroupProtocol, GroupSettings},
    subscription::SubscribedTopics,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{
            GroupRequest, Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, Urgency,
        },
        route::{CoordinatorKey, Route},
    },
    error::{Error, ErrorKind},
    event::{Event, PollOverdue},
    fetch::{FetchCommand, shared::ConsumerShared},
    machine::{Instant, earliest},
    offsets::committed::{Committer, Held, MemberIdentity},
    rng::Rng,
    states::See,
    stats::{GroupStatistics, Statistics, Window},
};

/// A command of the application for the group part.
#[derive(Debug)]
pub enum GroupCommand {
    /// Consume these topics as a member of the group. There is at least one entry.
    Subscribe(SubscribedTopics),
    /// Give up all partitions and leave the group. Completes when the coordinator responds, or after a timeout.
    Unsubscribe(Completion<()>),
    /// Like `Unsubscribe`, but the operation decides whether the member leaves.
    Close(GroupMembershipOperation, Completion<()>),
    /// Join again, for this reason. Without effect unless the consumer is a member of the classic protocol.
    Rejoin(String),
    /// The application called one of the assign functions, or answered a rebalance event.
    Answer(RebalanceAnswer),
    /// The application polls again after the member left because of missing polls.
    Polled,
}

/// The consumer's membership in its group.
#[derive(Debug)]
pub struct Group {
    shared: Arc<ConsumerShared>,
    settings: Arc<GroupSettings>,
    member: Member,
    topics: GroupTopics,
    rebalance: Rebalance,
    auto_commit: AutoCommit,
    polls: PollWatch,
    figures: Figures,
    subscription: SubscribedTopics,
    /// The topics that the patterns of a classic member match; `None` until the first list of all topics.
    matched: Option<MatchedTopics>,
    /// The calls that wait until the member has left, and the subscription that follows.
    leaving: Option<Leaving>,
    /// The identity under which the fetch manager commits.
    committer: Committer,
    needs: VecDeque<Need<FetchCommand>>,
}

/// The figures for statistics.
#[derive(Debug, Default)]
struct Figures {
    /// The number of times that partitions were taken over, given up or lost.
    rebalances: i64,
    /// The time of the last of these.
    rebalanced_at: Option<Instant>,
    /// The reason why the member left, or is leaving.
    leave_reason: Option<&'static str>,
    /// The state of the coordinator, and the time of its last change.
    coordinator: Option<(&'static str, Instant)>,
    /// The begin of the rebalance in progress, and the milliseconds of earlier ones.
    rebalancing_since: Option<Instant>,
    rebalance_latency: Window,
    rebalance_millis: i64,
}

#[derive(Debug, Default)]
struct Leaving {
    waiting: Vec<Completion<()>>,
    then_subscribe: Option<SubscribedTopics>,
}

impl Group {
    /// Creates a consumer without a subscription.
    pub fn new(shared: Arc<ConsumerShared>, settings: GroupSettings, rng: Rng) -> Self {
        let settings = Arc::new(settings);
        let group = Self {
            member: Member::new(Arc::clone(&settings), rng),
            topics: GroupTopics::default(),
            rebalance: Rebalance::default(),
            auto_commit: AutoCommit::new(settings.auto_commit_interval.filter(|_| settings.auto_commit)),
            polls: PollWatch::default(),
            figures: Figures::default(),
            subscription: SubscribedTopics::default(),
            matched: None,
            leaving: None,
            committer: Committer::Nobody,
            needs: VecDeque::new(),
            shared,
            settings,
        };
        // A member of the consumer protocol chooses its ID itself.
        group.show_membership();
        group
    }

    /// Returns the state of joining the group, by librdkafka's names.
    fn join_state(&self) -> &'static str {
        self.rebalance.state_name().unwrap_or_else(|| self.member.state_name())
    }

    /// Carries out a command of the application.
    pub fn handle_command(&mut self, now: Instant, command: GroupCommand) {
        match command {
            GroupCommand::Subscribe(topics) => self.subscribe(now, topics),
            GroupCommand::Unsubscribe(done) => {
                let operation = GroupMembershipOperation::LeaveGroup;
                self.leave(now, operation, "the consumer unsubscribed", done);
            }
            GroupCommand::Close(operation, done) => {
                self.leave(now, operation, "the consumer is closing", done);
            }
            GroupCommand::Rejoin(reason) => self.member.rejoin(now, &reason),
            GroupCommand::Answer(answer) => self.handle_answer(now, answer),
            GroupCommand::Polled => self.handle_polled(now),
        }
    }

    fn handle_polled(&mut self, now: Instant) {
        if self.polls.is_expired() {
            self.polls.start(now, self.shared.progress());
            self.member.handle_polled(now);
        }
    }

    /// Checks whether the application polls often enough.
    fn check_polls(&mut self, now: Instant) {
        let limit = self.settings.max_poll_interval;
        if !self.polls.is_due(now, limit) {
            return;
        }
        self.polls.observe(now, self.settings.shared.last_poll(now), self.shared.progress());
        match self.polls.check(now, limit) {
            None => {}
            Some(Overdue::Soon(since)) => match self.settings.shared.sink() {
                Some(sink) => sink.poll_overdue(since, limit),
                None => {
                    let overdue = PollOverdue::new(since, limit);
                    self.needs.push_back(Need::Event(Event::PollOverdue(overdue)));
                }
            },
            Some(Overdue::Exceeded) => {
                let detail = format!(
                    "the application has not polled for max.poll.interval.ms ({} ms): the consumer leaves its group, and \
                     joins it again when the application polls; poll more often, or increase max.poll.interval.ms",
                    limit.as_millis()
                );
                self.report(Error::new(ErrorKind::MaxPollExceeded, detail));
                self.settings.shared.set_expired(true);
                self.member.handle_poll_exceeded(now);
            }
        }
    }

    /// Reports an error of the group to the application.
    fn report(&mut self, error: Error) {
        match self.settings.shared.sink() {
            Some(sink) => sink.error(error),
            None => self.needs.push_back(Need::Event(Event::Error(error))),
        }
    }

    fn subscribe(&mut self, now: Instant, topics: SubscribedTopics) {
        if let Some(leaving) = &mut self.leaving {
            leaving.then_subscribe = Some(topics);
            return;
        }
        self.subscription = topics;
        self.topics.begin_subscription();
        self.figures.leave_reason = None;
        self.settings.shared.set_expired(false);
        self.polls.start(now, self.shared.progress());
        self.matched = None;
        match self.settings.group_protocol {
            // The topics that patterns match are known with the next metadata, and so are those that exist.
            GroupProtocol::Classic if self.subscription.has_patterns() || self.member.is_unsubscribed() => {}
            GroupProtocol::Classic => self.subscribe_member(now, self.subscription.names().clone()),
            GroupProtocol::Consumer => {
                let (names, pattern) =
                    (self.subscription.names().clone(), self.subscription.server_pattern());
                self.member.subscribe(now, names, pattern);
            }
        }
        self.needs.push_back(Need::Metadata(Urgency::Now));
    }

    /// Returns true for a classic consumer that is subscribed and not a member, because none of its topics exists.
    fn waits_for_topic(&self) -> bool {
        self.settings.group_protocol == GroupProtocol::Classic
            && self.leaving.is_none()
            && !self.subscription.is_empty()
            && !self.subscription.has_patterns()
            && self.member.is_unsubscribed()
    }

    /// Joins the group with the first topic of the subscription that exists: a member without topics has nothing to consume.
    /// Returns true if it joins.
    fn join_with_first_topic(&mut self, now: Instant, metadata: &Metadata) -> bool {
        let joins = self.waits_for_topic() && topics::any_exists(metadata, self.subscription.names());
        if joins {
            self.subscribe_member(now, self.subscription.names().clone());
        }
        joins
    }

    /// Subscribes a classic member to these topics.
    fn subscribe_member(&mut self, now: Instant, names: SortedSet<Arc<str>>) {
        if self.settings.protocol() == RebalanceProtocol::Cooperative {
            self.rebalance.keep(&names);
        }
        self.member.subscribe(now, names, None);
    }

    /// Matches the patterns of the subscription against the names of all topics.
    fn match_patterns(&mut self, now: Instant, all: &[Arc<str>]) {
        if !self.subscription.has_patterns() || self.leaving.is_some() {
            return;
        }
        if self.settings.group_protocol == GroupProtocol::Consumer {
            return self.compare_meanings(all);
        }
        let is_first = self.matched.is_none();
        let matched = self.matched.get_or_insert_default();
        let before = matched.with_names(&self.subscription);
        matched.update(&self.subscription, all);
        let names = matched.with_names(&self.subscription);
        // A consumer without topics need not join.
        let has_topic = || names.iter().any(|name| all.contains(name));
        if !self.member.is_unsubscribed() && (names != before || is_first && !names.is_empty())
            || self.member.is_unsubscribed() && has_topic()
        {
            self.subscribe_member(now, names);
        }
    }

    /// Warns, once per subscription, of patterns that the coordinator matches differently than a classic member.
    fn compare_meanings(&mut self, all: &[Arc<str>]) {
        if self.matched.is_some() {
            return;
        }
        self.matched = Some(MatchedTopics::default());
        let differences = self.subscription.differences(all);
        let warnings = differences.into_iter().map(|(pattern, topic)| {
            let detail = format!(
                "`group.protocol=consumer` matches `{pattern}` with whole topic names, while the classic protocol searches it                  in them: `{topic}` is one topic for which this makes a difference; end the pattern with `.*` or with `$`"
            );
            Error::new(ErrorKind::InvalidArgument, detail)
        });
        warnings.collect::<Vec<_>>().into_iter().for_each(|error| self.report(error));
    }

    fn leave(
        &mut self,
        now: Instant,
        operation: GroupMembershipOperation,
        reason: &'static str,
        done: Completion<()>,
    ) {
        if let Some(leaving) = &mut self.leaving {
            leaving.then_subscribe = None;
            return leaving.waiting.push(done);
        }
        if self.subscription.is_empty() {
            return done.complete(());
        }
        self.subscription = SubscribedTopics::default();
        self.matched = None;
        self.polls.stop();
        self.settings.shared.set_expired(false);
        self.leaving = Some(Leaving { waiting: vec![done], then_subscribe: None });
        self.figures.leave_reason = Some(reason);
        self.begin_leave(now, operation, reason);
    }

    fn handle_left(&mut self, now: Instant) {
        let Some(Leaving { waiting, then_subscribe }) = self.leaving.take() else { return };
        waiting.into_iter().for_each(|done| done.complete(()));
        if let Some(topics) = then_subscribe {
            self.subscribe(now, topics);
        }
    }

    /// Handles the response to a request, or the error instead of one. Returns true if the coordinator moved.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: GroupRequest,
        result: Result<Response, Error>,
    ) -> bool {
        if matches!(request, GroupRequest::Heartbeat(_) | GroupRequest::ConsumerHeartbeat(_)) {
            self.polls.observe(now, self.settings.shared.last_poll(now), self.shared.progress());
        }
        let is_response = result.is_ok();
        let has_moved = self.member.handle_response(now, request, result);
        self.figures.note_coordinator(now, is_response && !has_moved);
        has_moved
    }

    /// Checks the membership: the coordinator refused a commit.
    pub(crate) fn check_membership(&mut self, now: Instant) {
        self.member.check_membership(now);
    }

    /// Carries out the steps of the member until none is left.
    fn carry_out_steps(&mut self, now: Instant) {
        loop {
            self.advance_rebalance(now);
            self.update_committer();
            self.member.advance(now, self.rebalance.owned(), !self.rebalance.is_busy());
            let Some(step) = self.member.poll_step() else { return };
            match step {
                Step::Send { term, request, timeout } => self.send(term, request, timeout),
                Step::Revoke => self.rebalance.revoke_all(),
                Step::Settle => self.rebalance.settle(),
                // After a fatal error the application is not asked.
                Step::Lost if self.member.has_failed() => self.abandon_rebalance(),
                Step::Lost => {
                    let is_asked = self.rebalance.lose_all();
                    self.settings.shared.set_lost(is_asked);
                }
                Step::Assign(partitions) => self.rebalance.assign(partitions),
                Step::Error(error) => self.report(error),
                Step::Fatal(error) => self.needs.push_back(Need::Event(Event::Fatal(error))),
                Step::Left => self.handle_left(now),
            }
        }
    }

    fn abandon_rebalance(&mut self) {
        let owned = self.rebalance.abandon();
        self.stop(&owned);
        self.shared.release_all();
        self.settings.shared.set_lost(false);
    }

    fn send(&mut self, term: Term, request: MemberRequest, timeout: Duration) {
        let owner = match request {
            MemberRequest::Join(_) => GroupRequest::Join(term),
            MemberRequest::Sync(_) => GroupRequest::Sync(term),
            MemberRequest::Heartbeat(_) => GroupRequest::Heartbeat(term),
            MemberRequest::Leave { .. } => GroupRequest::Leave(term),
            MemberRequest::Describe(_) => GroupRequest::Describe(term),
            MemberRequest::ConsumerHeartbeat { .. } => GroupRequest::ConsumerHeartbeat(term),
            MemberRequest::TopicNames(_) => GroupRequest::TopicNames(term),
        };
        let key = CoordinatorKey::group(Arc::clone(&self.settings.group_id));
        let route = match request {
            MemberRequest::TopicNames(_) => Route::Any,
            _ if request.may_wait() => Route::Rebalance(key),
            _ => Route::Coordinator(key),
        };
        let request = request.routed(timeout);
        self.needs.push_back(Need::Request { route, request, owner: RequestOwner::Group(owner) });
    }

    /// Reports the identity for commits to the fetch manager, if it changed.
    fn update_committer(&mut self) {
        let identity = self.member.identity().map(|(id, generation)| (id.to_owned(), generation));
        if identity.is_none() {
            self.rebalance.forget_held();
        }
        let committer = match identity {
            Some((member_id, generation)) => Committer::Member(MemberIdentity {
                member_id,
                generation,
                instance_id: self.settings.instance_id.clone(),
                held: self.held(generation),
            }),
            None if self.subscription.is_empty() && self.leaving.is_none() => Committer::Nobody,
            None => Committer::Outside,
        };
        if committer != self.committer {
            self.committer = committer.clone();
            self.show_membership();
            self.needs.push_back(Need::Tell(FetchCommand::CommitAs(committer)));
        }
    }

    /// Returns the partitions whose commits may be repeated in a later generation.
    fn held(&mut self, generation: Generation) -> Held {
        if let Some(held) = self.member.held() {
            return Held::Consumer(held);
        }
        if self.settings.protocol() != RebalanceProtocol::Cooperative {
            return Held::Nothing;
        }
        let is_settled = self.member.is_settled() && !self.rebalance.has_assignment_to_carry_out();
        Held::Cooperative { since: self.rebalance.held_since(generation), is_settled }
    }

    fn show_membership(&self) {
        let generation = self.member.identity().map(|(_, generation)| generation);
        let before = self.settings.shared.view().protocol;
        let protocol = match self.committer {
            Committer::Nobody => None,
            Committer::Member(_) => Some(self.settings.protocol()),
            Committer::Outside => before,
        };
        let member_id = self.member.member_id().to_owned();
        self.settings.shared.set_view(GroupView { member_id, generation, protocol, last: None });
    }

    /// Computes the assignment, if the member leads and the topics are known.
    fn assign_if_leader(&mut self, now: Instant, metadata: &Metadata) {
        let Some(names) = self.member.topics_to_assign() else { return };
        let mut ask = false;
        match self.topics.tables(metadata, &names, &mut ask) {
            Some(tables) => self.member.assign(now, tables),
            None if ask => self.needs.push_back(Need::Metadata(Urgency::Now)),
            None => {}
        }
    }

    /// Begins a rebalance if the leader's topics have other partitions than those that were assigned. Returns true if
    /// newer metadata has to confirm that.
    fn observe_topics(&mut self, now: Instant, metadata: &Metadata) -> bool {
        let Some(assigned) = self.member.observed_topics() else { return false };
        match self.topics.compare(metadata, assigned) {
            TopicChange::None => false,
            TopicChange::Doubtful => true,
            TopicChange::Certain => {
                self.member.rejoin(now, "the partitions of the group's topics changed");
                false
            }
        }
    }
}

impl Part for Group {
    fn states(&self, see: &mut See<'_>) {
        self.member.states(see);
        self.rebalance.states(see);
        self.polls.states(see);
    }

    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool {
        let (subscribed, propagation) = (self.subscription.names(), self.settings.topic_propagation);
        let news = self.topics.handle_metadata(now, metadata, changes, subscribed, propagation);
        news.errors.into_iter().for_each(|error| self.report(error));
        let misses_names = self.subscription.has_patterns() && self.matched.is_none();
        let misses_topics = self.waits_for_topic() && self.topics.miss(metadata, self.subscription.names());
        self.observe_topics(now, metadata) || misses_names || misses_topics || news.is_incomplete
    }

    fn handle_all_topics(&mut self, now: Instant, names: &[Arc<str>]) {
        self.match_patterns(now, names);
    }

    fn handle_timeout(&mut self, now: Instant, _unreachable: Option<&Error>) {
        self.member.handle_timeout(now);
        self.check_polls(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let member = self.member.poll_timeout(!self.rebalance.is_busy());
        let polls = self.polls.poll_timeout(self.settings.max_poll_interval);
        let of_commits = earliest(self.rebalance.poll_timeout(), self.auto_commit.poll_timeout());
        earliest(member, earliest(polls, of_commits))
    }

    fn advance(&mut self, now: Instant, metadata: &Metadata) {
        self.member.handle_metadata(metadata);
        self.assign_if_leader(now, metadata);
        self.carry_out_steps(now);
        if self.join_with_first_topic(now, metadata) {
            self.carry_out_steps(now);
        }
        self.commit_if_due(now);
        self.figures.note_join_state(now, self.join_state());
    }

    fn add_topics(&self, topics: &mut Interest) {
        self.member.add_topics(&mut topics.used);
        if self.waits_for_topic() {
            topics.used.extend(self.subscription.names().iter().cloned());
        }
    }

    fn needs_all_topics(&self) -> bool {
        let is_classic = self.settings.group_protocol == GroupProtocol::Classic;
        self.subscription.has_patterns() && (is_classic || self.matched.is_none())
    }

    fn add_statistics(&mut self, at: SnapshotTime, statistics: &mut Statistics) {
        let SnapshotTime { now, began, purpose } = at;
        let millis =
            |since: Instant| i64::try_from(now.saturating_since(since).as_millis()).unwrap_or(i64::MAX);
        let (state, changed) = self.figures.coordinator.unwrap_or(("init", began));
        statistics.group = Some(GroupStatistics {
            state,
            stateage: millis(changed),
            join_state: self.join_state(),
            rebalance_age: self.figures.rebalanced_at.map_or(0, millis),
            rebalance_cnt: self.figures.rebalances,
            rebalance_reason: self.figures.leave_reason.unwrap_or_else(|| self.member.reason()).to_owned(),
            assignment_size: self.rebalance.assignment_size() as i64,
            rebalance_latency: self.figures.rebalance_latency.snapshot(purpose),
            rebalance_millis: self.figures.rebalance_millis,
        });
        statistics.member_id = self.settings.shared.view().member_id;
    }

    fn close(&mut self) {
        self.polls.stop();
        self.leaving = None;
        self.needs.clear();
        self.rebalance.close();
        self.auto_commit.close();
    }
}

impl Needs for Group {
    type Message = FetchCommand;

    fn poll_need(&mut self) -> Option<Need<FetchCommand>> {
        self.needs.pop_front()
    }
}

impl Figures {
    /// Notes whether the coordinator responded to a request.
    fn note_coordinator(&mut self, now: Instant, is_up: bool) {
        let state = if is_up { "up" } else { "wait-coord" };
        if self.coordinator.is_none_or(|(known, _)| known != state) {
            self.coordinator = Some((state, now));
        }
    }

    /// Notes the state of joining: a rebalance lasts from any other than the first one and `steady` until `steady`. A
    /// member that leaves has not finished one.
    fn note_join_state(&mut self, now: Instant, state: &'static str) {
        match (state, self.rebalancing_since) {
            ("steady", Some(since)) => {
                let millis = u64::try_from(now.saturating_since(since).as_millis()).unwrap_or(u64::MAX);
                self.rebalance_latency.record(millis);
                self.rebalance_millis = self.rebalance_millis.saturating_add_unsigned(millis);
                self.rebalancing_since = None;
            }
            ("init", _) => self.rebalancing_since = None,
            ("steady", None) | (_, Some(_)) => {}
            (_, None) => self.rebalancing_since = Some(now),
        }
    }

    fn note_rebalance(&mut self, now: Instant) {
        self.rebalances += 1;
        self.rebalanced_at = Some(now);
    }
}
