//! The membership machine of the consumer protocol (KIP-848): ConsumerGroupHeartbeat.
//!
//! ```text
//!                subscribe             response            target differs            carried out
//!  Unsubscribed ───────────► Joining ──────────► Stable ────────────────► Reconciling ───────────► Acknowledging
//!       ▲                     ▲   ▲                 ▲                          ▲  newer target          │ │
//!       │ response, or bound  │   └─ given up ─┐    │                          └────────────────────────┘ │
//!    Leaving ◄── leave        │             Fenced  └──────────── heartbeat with the owned partitions ────┘
//!       (from any state)  Releasing            ▲
//!                                              └── UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH (from any member state)
//! ```
//!
//! The coordinator computes the assignment, and each heartbeat response may carry a new target. The machine turns it
//! into [`Step::Assign`]; the rebalance first gives up what is not in the target, and then takes the rest over. The next
//! heartbeat reports the owned partitions, which acknowledges the target. A target that arrives meanwhile replaces an
//! earlier one that is not begun.
//!
//! At most one heartbeat is in flight. It has only the fields that changed since the last acknowledged one, unless the
//! coordinator may have missed something: after a join, an error or a lost response it has all fields.
//!
//! # Pitfalls
//!
//! - A partition that was given up counts as held until its commit is done: the coordinator would give it to another
//!   member, whose offset the commit would overwrite (`partition_is_held_until_its_commit_is_done`).
//! - A partition counts as owned as soon as it is being taken over. The target may lose it before the application has
//!   answered, and a full heartbeat without it would allow another member to take it
//!   (`partitions_count_as_owned_while_the_application_takes_them_over`).
//! - The coordinator waits for a report after it has withdrawn a partition, for at most `max.poll.interval.ms`, although the
//!   member may not have taken the partition over yet and has nothing new to report
//!   (`withdrawal_of_a_partition_that_was_not_taken_over_is_acknowledged`).
//! - The coordinator may have handled a heartbeat whose response was lost. The next one is not a copy but reports the
//!   present state (`heartbeat_after_a_lost_response_has_all_fields`).
//! - The coordinator refuses an instance ID that is in use even to the member that has it, for example after the
//!   response to a join was lost. The member releases it first (`static_member_releases_its_own_instance_id`).
//! - The coordinator can't notify a member. One that joins without partitions would learn only after a whole heartbeat
//!   interval that others have given some up (`new_member_without_partitions_asks_for_them_several_times`).
//! - The application may poll again before it has answered that its partitions are lost. The member still has to leave:
//!   a join of a member that the coordinator knows would keep its partitions from the others
//!   (`member_that_polls_before_it_answers_its_loss_leaves_and_joins`).
//! - The application may take long to take partitions over, after it gave others up. The coordinator, which waits for
//!   those, must not wait for both (`given_up_partitions_are_reported_before_others_are_taken_over`).
//! - The coordinator gives withdrawn partitions away if they are not given up within `max.poll.interval.ms`. A member that
//!   waited for the coordinator's refusal would keep them while the coordinator can't be reached
//!   (`partitions_are_lost_when_the_coordinator_stops_waiting_for_them`).
//! - There is no local session: a member without a coordinator keeps its partitions, as in the Java client and librdkafka
//!   (`member_keeps_its_partitions_without_a_coordinator`).

pub(in crate::group) mod responses;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    generated::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
    uuid::Uuid,
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    classic::{Step, Term},
    heartbeat::{Contents, Heartbeat, JOINS, Subscription},
    requests::MemberRequest,
    target::Target,
};
use crate::{
    backoff::Backoff,
    contract::metadata::Metadata,
    error::{Error, ErrorKind},
    group::{departure::GroupMembershipOperation, settings::GroupSettings},
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
};

/// The maximum wait for the response to the heartbeat that leaves.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum timeout of a heartbeat: a broker that is slow for a moment must not look like one that is down.
const MIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The epoch of a member that leaves.
const LEAVES: i32 = -1;
/// The epoch of a static member that may return.
const LEAVES_FOR_A_WHILE: i32 = -2;

const API: &str = "ConsumerGroupHeartbeat";

/// A member of a group of the consumer protocol.
#[derive(Debug)]
pub(in crate::group) struct ConsumerMember {
    settings: Arc<GroupSettings>,
    state: State,
    term: Term,
    member_id: String,
    /// True if the coordinator confirmed the member ID. Version 0 coordinators choose it.
    id_is_confirmed: bool,
    /// True if the coordinator may know the member.
    may_be_known: bool,
    /// The member epoch, while the coordinator counts this member.
    epoch: Option<Generation>,
    subscription: Subscription,
    /// True if a pattern was ever subscribed to: the coordinator may have to remove it.
    had_pattern: bool,
    target: Target,
    /// The partitions of the last [`Step::Assign`].
    goal: Option<SortedSet<TopicPartition>>,
    /// The partitions that belong to the member as far as the coordinator knows, each with the epoch since when.
    held: Arc<SortedMap<TopicPartition, Generation>>,
    /// When the coordinator stops waiting for the partitions that it withdrew, while the member holds some of them.
    withdrawal_ends: Option<Instant>,
    /// True if target, names or subscription changed since the last reconciliation.
    is_changed: bool,
    heartbeat: Heartbeat,
    names: NameQuery,
    backoff: Backoff,
    rng: Rng,
    /// The last reported error: each is reported once until a heartbeat succeeds.
    reported: Option<ErrorKind>,
    /// The reason of the last rebalance.
    reason: &'static str,
    steps: VecDeque<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The member has no subscription.
    Unsubscribed,
    /// A heartbeat with epoch 0 is sent at this time, or is in flight.
    Joining(Instant),
    /// The rebalance carries out the target.
    Reconciling,
    /// The target is carried out, and the coordinator does not know yet.
    Acknowledging,
    /// The coordinator knows everything.
    Stable,
    /// The rebalance gives all partitions up; the member joins again at this time, or later.
    Fenced(Instant),
    /// The member gives its instance ID back, in order to join with it.
    Releasing,
    /// The heartbeat that leaves is in flight; the member waits for its response until this time.
    Leaving(Instant),
    /// The application does not poll: the member leaves as soon as the partitions are given up.
    Expired {
        /// True if the application polled meanwhile: the member joins again after it left.
        returns: bool,
    },
    /// The member can't continue.
    Failed,
}

/// The query for the names of assigned topics that metadata lack.
#[derive(Debug)]
struct NameQuery {
    is_in_flight: bool,
    not_before: Instant,
    backoff: Backoff,
}

impl ConsumerMember {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("consumer member", 0, &self.state);
    }

    /// Creates a member without a subscription.
    pub(in crate::group) fn new(settings: Arc<GroupSettings>, mut rng: Rng) -> Self {
        let (first, longest) = settings.backoff;
        let backoff = Backoff::new(first, longest);
        Self {
            settings,
            state: State::Unsubscribed,
            term: 0,
            member_id: new_member_id(&mut rng),
            id_is_confirmed: false,
            may_be_known: false,
            epoch: None,
            subscription: Subscription::default(),
            had_pattern: false,
            target: Target::default(),
            goal: None,
            held: Arc::default(),
            withdrawal_ends: None,
            is_changed: false,
            heartbeat: Heartbeat::default(),
            names: NameQuery { is_in_flight: false, not_before: Instant::ZERO, backoff: backoff.clone() },
            backoff,
            rng,
            reported: None,
            reason: "",
            steps: VecDeque::new(),
        }
    }

    /// Returns the member ID and the member epoch, if the coordinator counts this member.
    pub(in crate::group) fn identity(&self) -> Option<(&str, Generation)> {
        self.epoch.map(|epoch| (&*self.member_id, epoch))
    }

    /// Returns the member ID.
    pub(in crate::group) fn member_id(&self) -> &str {
        &self.member_id
    }

    /// Returns the state as statistics name it.
    pub(in crate::group) const fn state_name(&self) -> &'static str {
        match self.state {
            State::Reconciling | State::Acknowledging | State::Stable => "steady",
            State::Fenced(_) => "wait-unassign-to-complete",
            State::Unsubscribed
            | State::Joining(_)
            | State::Releasing
            | State::Leaving(_)
            | State::Expired { .. }
            | State::Failed => "init",
        }
    }

    /// Returns the reason of the last rebalance.
    pub(in crate::group) const fn reason(&self) -> &'static str {
        self.reason
    }

    /// Returns true if the member can't continue.
    pub(in crate::group) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Returns the partitions that belong to the member as far as the coordinator knows, each with the member epoch in
    /// which it got the partition.
    pub(in crate::group) const fn held(&self) -> &Arc<SortedMap<TopicPartition, Generation>> {
        &self.held
    }

    /// Returns the subscribed topics and the assigned ones.
    pub(in crate::group) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.subscription.names.iter().chain(self.target.topics())
    }

    // ---- what the application wants

    /// Changes the subscription, which is not empty, and joins the group. It must not be called while the member leaves.
    pub(in crate::group) fn subscribe(
        &mut self,
        now: Instant,
        names: SortedSet<Arc<str>>,
        pattern: Option<String>,
    ) {
        self.had_pattern |= pattern.is_some();
        self.subscription = Subscription { names, pattern };
        self.is_changed = true;
        match self.state {
            State::Unsubscribed => {
                self.reason = "the consumer subscribed to topics";
                self.state = State::Joining(now);
            }
            State::Expired { .. } => self.handle_polled(now),
            _ => self.reason = "the subscription changed",
        }
    }

    /// Leaves the group after the partitions were given up. A member that stays keeps its partitions at
    /// the coordinator until its session ends.
    pub(in crate::group) fn leave(&mut self, now: Instant, operation: GroupMembershipOperation) {
        self.subscription = Subscription::default();
        let may_be_known = self.may_be_known && self.state != State::Failed;
        self.end_membership();
        let is_static = self.settings.instance_id.is_some();
        let stays = !operation.leaves(is_static);
        // Only a static member can tell the coordinator that it stays.
        if !may_be_known || stays && !is_static {
            if self.state != State::Failed {
                self.state = State::Unsubscribed;
                self.may_be_known = false;
            }
            return self.steps.push_back(Step::Left);
        }
        self.state = State::Leaving(now + LEAVE_TIMEOUT);
        self.send_leave(if stays { LEAVES_FOR_A_WHILE } else { LEAVES });
        self.may_be_known = false;
    }

    /// Leaves the group because the application does not poll; the assignment is lost. The coordinator keeps the place of
    /// a static member until its session ends.
    pub(in crate::group) fn handle_poll_exceeded(&mut self, now: Instant) {
        let was_assigned = match self.state {
            State::Unsubscribed | State::Leaving(_) | State::Failed => return,
            // The partitions are not given up yet.
            State::Expired { .. } => return self.state = State::Expired { returns: false },
            State::Fenced(_) => true,
            _ => self.goal.is_some(),
        };
        self.reason = "the application did not poll within max.poll.interval.ms";
        self.end_membership();
        self.state = State::Expired { returns: false };
        if was_assigned {
            self.steps.push_back(Step::Lost);
        } else {
            self.handle_revoked(now);
        }
    }

    /// Joins again after the application polled, and after the member has left.
    pub(in crate::group) fn handle_polled(&mut self, now: Instant) {
        match self.state {
            State::Expired { .. } if self.may_be_known => self.state = State::Expired { returns: true },
            State::Expired { .. } => {
                self.reason = "the application polls again";
                // The response to the heartbeat that left is of no interest any more.
                self.term += 1;
                self.state = State::Joining(now);
            }
            _ => {}
        }
    }

    /// The rebalance gave up partitions that are not in `owned` any more. The coordinator gets to know it at once, although
    /// the application may take long to take the others over.
    pub(in crate::group) fn handle_given_up(&mut self, owned: &SortedSet<TopicPartition>) {
        if self.epoch.is_some() && !self.held.keys().all(|key| owned.contains(key)) {
            Arc::make_mut(&mut self.held).retain(|key, _| owned.contains(key));
            self.heartbeat.must_report = true;
            self.stop_waiting();
        }
    }

    /// The rebalance gave up all partitions. A member that does not poll leaves only now, so that no other member gets
    /// them before.
    pub(in crate::group) fn handle_revoked(&mut self, now: Instant) {
        match self.state {
            State::Fenced(at) => self.state = State::Joining(at),
            State::Expired { returns } if self.may_be_known => {
                self.may_be_known = false;
                let is_static = self.settings.instance_id.is_some();
                self.send_leave(if is_static { LEAVES_FOR_A_WHILE } else { LEAVES });
                if returns {
                    self.handle_polled(now);
                }
            }
            _ => {}
        }
    }

    // ---- metadata

    /// Adopts the names of assigned topics from metadata.
    pub(in crate::group) fn handle_metadata(&mut self, metadata: &Metadata) {
        if self.target.unresolved().next().is_some() {
            self.target.resolve(metadata);
            self.is_changed = true;
        }
    }

    /// Handles the names of assigned topics, or the error instead of them.
    pub(in crate::group) fn handle_names(
        &mut self,
        now: Instant,
        term: Term,
        names: Result<Vec<(Uuid, Arc<str>)>, Error>,
    ) {
        self.names.is_in_flight = false;
        if term != self.term {
            return;
        }
        // A topic that no broker knows by its ID was deleted, or the broker is behind.
        self.names.not_before = now + self.names.backoff.next(&mut self.rng);
        for (id, name) in names.unwrap_or_default() {
            self.target.name(id, name);
            self.is_changed = true;
        }
        if self.target.unresolved().next().is_none() {
            self.names.backoff.reset();
        }
    }

    fn query_names(&mut self, now: Instant) {
        if self.names.is_in_flight || self.names.not_before > now {
            return;
        }
        let unresolved: Vec<Uuid> = self.target.unresolved().collect();
        if !unresolved.is_empty() {
            self.names.is_in_flight = true;
            self.send(MemberRequest::TopicNames(unresolved), self.settings.request_timeout);
        }
    }

    // ---- time

    /// Sends the requests that are due. `owned` are the member's partitions; `may_join` is false while the rebalance
    /// gives partitions up or takes them over.
    pub(in crate::group) fn advance(
        &mut self,
        now: Instant,
        owned: &SortedSet<TopicPartition>,
        may_join: bool,
    ) {
        match self.state {
            State::Joining(at) if at <= now && may_join && self.heartbeat.in_flight.is_none() => self.join(),
            State::Reconciling | State::Acknowledging | State::Stable => {
                if may_join && self.steps.is_empty() {
                    self.reconcile(owned);
                }
                self.query_names(now);
                self.send_if_due(now);
            }
            _ => {}
        }
    }

    /// Handles the timers that are due.
    pub(in crate::group) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Leaving(until) if until <= now) {
            self.state = State::Unsubscribed;
            self.steps.push_back(Step::Left);
        }
        if self.withdrawal_ends.is_some_and(|ends| ends <= now) {
            self.lose(now);
            self.reason = "the application did not give partitions up within max.poll.interval.ms";
        }
    }

    /// Returns when to call [`ConsumerMember::handle_timeout`] and [`ConsumerMember::advance`]. `may_join` as in
    /// `advance`.
    pub(in crate::group) fn poll_timeout(&self, may_join: bool) -> Option<Instant> {
        let is_free = self.heartbeat.in_flight.is_none();
        match self.state {
            State::Joining(at) => Some(at).filter(|_| may_join && is_free),
            State::Leaving(at) => Some(at),
            State::Reconciling | State::Acknowledging | State::Stable => {
                let next = self.heartbeat.next.filter(|_| is_free);
                let is_querying = self.names.is_in_flight || self.target.unresolved().next().is_none();
                let query = (!is_querying).then_some(self.names.not_before);
                earliest(earliest(next, query), self.withdrawal_ends)
            }
            _ => None,
        }
    }

    /// Returns what has to be done next.
    pub(in crate::group) fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Sends a heartbeat at once: the response to another request casts doubt on the membership or the epoch. If the
    /// heartbeat before removed no doubt, the next one is brought forward by half an interval at most.
    pub(in crate::group) fn check_membership(&mut self, now: Instant) {
        let Heartbeat { interval, not_before, .. } = self.heartbeat;
        let earliest = self.heartbeat.checked.map_or(now, |at| at + interval / 2).max(not_before).max(now);
        if self.epoch.is_some()
            && let Some(next) = self.heartbeat.next.as_mut().filter(|next| now < **next)
        {
            *next = (*next).min(earliest);
            self.heartbeat.checked = Some(*next);
        }
    }

    // ---- reconciliation

    /// Compares the target with the owned partitions while no rebalance is in progress.
    fn reconcile(&mut self, owned: &SortedSet<TopicPartition>) {
        let is_done = self.state == State::Reconciling;
        if !is_done && !self.is_changed && owned.len() == self.held.len() {
            return;
        }
        self.is_changed = false;
        self.hold(owned);
        let mut next = self.target.next(owned);
        if self.subscription.pattern.is_none() {
            next.retain(|key| self.subscription.names.contains(&key.topic));
        }
        if self.goal.is_none() && next.is_empty() && self.target.unresolved().next().is_some() {
            return;
        }
        if self.goal.is_none() && next.is_empty() {
            // Others have to give partitions up first. Like librdkafka, the member does not report that it has none.
            self.goal = Some(SortedSet::new());
        }
        if self.goal.as_ref() == Some(&next) {
            let contents = self.contents();
            let is_known = self.heartbeat.acknowledged.as_ref() == Some(&contents);
            let is_acknowledged = is_known && !self.heartbeat.is_awaited;
            self.state = if is_acknowledged { State::Stable } else { State::Acknowledging };
            let is_sent = self.heartbeat.in_flight.as_ref() == Some(&contents);
            self.heartbeat.must_report |= !is_acknowledged && !is_sent;
            return;
        }
        self.reason = "the coordinator assigned other partitions";
        self.target.take_over(owned);
        self.goal = Some(next.clone());
        self.state = State::Reconciling;
        self.steps.push_back(Step::Assign(next));
    }

    /// Records the partitions that the member has after a rebalance.
    fn hold(&mut self, owned: &SortedSet<TopicPartition>) {
        let Some(epoch) = self.epoch else { return };
        if owned.len() == self.held.len() && owned.iter().eq(self.held.keys()) {
            return;
        }
        let since = |key: &TopicPartition| self.held.get(key).copied().unwrap_or(epoch);
        self.held = Arc::new(owned.iter().map(|key| (key.clone(), since(key))).collect());
        self.stop_waiting();
    }

    /// The coordinator waits for no partition that the member does not hold. Returns true if it does not wait.
    fn stop_waiting(&mut self) -> bool {
        let holds_only_its_target = self.target.covers(&self.target.to_ids(self.held.keys()));
        if holds_only_its_target {
            self.withdrawal_ends = None;
        }
        holds_only_its_target
    }

    // ---- heartbeats

    /// Returns the present contents. Partitions that the rebalance is taking over count as owned: the application may have
    /// them at any time, and the coordinator gives away what is neither assigned nor reported.
    fn contents(&self) -> Contents {
        let owned = self.held.keys().chain(self.goal.iter().flatten());
        Contents { subscription: self.subscription.clone(), held: self.target.to_ids(owned) }
    }

    fn join(&mut self) {
        self.may_be_known = true;
        self.heartbeat.acknowledged = None;
        self.send_heartbeat(JOINS);
    }

    fn send_if_due(&mut self, now: Instant) {
        let Some(epoch) = self.epoch.filter(|_| self.heartbeat.in_flight.is_none()) else { return };
        let is_due = self.heartbeat.next.is_some_and(|next| next <= now);
        if is_due || self.heartbeat.must_report && self.heartbeat.not_before <= now {
            self.send_heartbeat(epoch.get());
        }
    }

    /// Sends a heartbeat with the fields that the coordinator does not know yet.
    fn send_heartbeat(&mut self, epoch: i32) {
        let contents = self.contents();
        let mut request = self.request(epoch);
        let Heartbeat { acknowledged, is_awaited, .. } = &mut self.heartbeat;
        contents.fill(&mut request, acknowledged.as_ref(), *is_awaited, &self.settings);
        *is_awaited &= !self.target.covers(&contents.held);
        if contents.subscription.pattern.is_none() && self.had_pattern && request.rebalance_timeout_ms >= 0 {
            // The coordinator may have missed that the pattern was removed.
            request.subscribed_topic_regex = Some(String::new());
        }
        self.heartbeat.in_flight = Some(contents);
        self.heartbeat.must_report = false;
        let timeout = (self.heartbeat.interval * 3).max(MIN_TIMEOUT);
        self.send(MemberRequest::ConsumerHeartbeat { request, is_new: !self.id_is_confirmed }, timeout);
    }

    fn send_leave(&mut self, epoch: i32) {
        let request = self.request(epoch);
        self.send(MemberRequest::ConsumerHeartbeat { request, is_new: false }, LEAVE_TIMEOUT);
    }

    fn request(&self, member_epoch: i32) -> Box<ConsumerGroupHeartbeatRequest> {
        Box::new(ConsumerGroupHeartbeatRequest {
            group_id: self.settings.group_id.to_string(),
            member_id: self.member_id.clone(),
            member_epoch,
            instance_id: self.settings.instance_id.clone(),
            ..Default::default()
        })
    }

    // ---- the end of a membership

    /// Loses the membership and with it the assignment; the member joins again at this time.
    fn lose(&mut self, at: Instant) {
        let was_assigned = self.goal.is_some();
        self.reason = "the coordinator does not count the member any more";
        self.end_membership();
        if was_assigned {
            self.state = State::Fenced(at);
            self.steps.push_back(Step::Lost);
        } else {
            self.state = State::Joining(at);
        }
    }

    fn fail(&mut self, error: Error) {
        let was_assigned = self.goal.is_some();
        self.end_membership();
        self.state = State::Failed;
        if was_assigned {
            self.steps.push_back(Step::Lost);
        }
        self.steps.push_back(Step::Fatal(error));
    }

    fn end_membership(&mut self) {
        self.term += 1;
        self.epoch = None;
        self.target.clear();
        self.goal = None;
        self.held = Arc::default();
        self.withdrawal_ends = None;
        self.heartbeat = Heartbeat::default();
        self.names.is_in_flight = false;
        self.names.backoff.reset();
    }

    fn send(&mut self, request: MemberRequest, timeout: Duration) {
        self.steps.push_back(Step::Send { term: self.term, request, timeout });
    }

    fn report(&mut self, error: Error) {
        if self.reported != Some(error.kind()) {
            self.reported = Some(error.kind());
            self.steps.push_back(Step::Error(error));
        }
    }
}

/// Returns a new member ID: a random UUID, as the protocol asks for.
pub(crate) fn new_member_id(rng: &mut Rng) -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
    bytes[8..].copy_from_slice(&rng.next_u64().to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes).to_string()
}
