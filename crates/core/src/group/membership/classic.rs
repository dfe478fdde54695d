//! The membership machine of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
//!
//! ```text
//!                 subscribe             due            leader: other members' topics are known
//!  Unsubscribed ───────────► WaitToJoin ────► Joining ──────────► Assigning ───► Syncing ───► Stable
//!       ▲                      ▲  ▲              │ follower                        ▲  │          │
//!       │ response, or bound   │  │              └─────────────────────────────────┘  │          │
//!    Leaving ◄── leave         │  └─ errors: at once, or after a back-off ◄───────────┘          │
//!       (from any state)       └─ revoked ── Revoking ◄── rebalance (eager), or membership lost ─┤
//!                              ├─ settled ── Settling ◄── rebalance (cooperative) ──────────────┤
//!                              └───────────────────────── rebalance (nothing is assigned) ◄─────┘
//! ```
//!
//! The machine decides when to ask the coordinator for what. It does not know what the member owns: it returns [`Step`]s
//! (`Revoke`, `Lost`, `Settle`, `Assign`), and the rebalance carries them out and calls [`ClassicMember::handle_revoked`]
//! or [`ClassicMember::handle_settled`].
//!
//! Each request carries the machine's *term*, which changes with every JoinGroup request, every new generation and every
//! lost membership. A response of an earlier term is ignored.
//!
//! [`joining`], [`syncing`], [`heartbeats`] and [`inherited`] handle the requests and responses; this file has the states.
//!
//! # Pitfalls
//!
//! - The coordinator refuses the first JoinGroup of a dynamic member with MEMBER_ID_REQUIRED, and the member must
//!   repeat it at once: a back-off there would delay every start (`first_join_is_repeated_at_once_with_the_member_id`).
//!   The member backs off from a broker that requires a member ID again and again
//!   (`broker_that_never_accepts_a_member_id_is_backed_off_from`).
//! - The local session ends a session timeout after the *sending* of the last acknowledged heartbeat. Counted from the
//!   response, the member would still fetch after the broker gave its partitions away
//!   (`session_ends_a_timeout_after_the_last_acknowledged_heartbeat_was_sent`).
//! - Heartbeats go on while a JoinGroup waits at the broker. It refuses them with REBALANCE_IN_PROGRESS, and with
//!   ILLEGAL_GENERATION once the next generation began; both show that the member is known
//!   (`heartbeats_go_on_while_a_join_waits`). The response to a heartbeat that was in flight when the member joined is
//!   of an earlier term, so the next one must not wait for it (`heartbeat_in_flight_at_a_join_is_followed_by_others`).
//! - A static member that joins too late for a generation stays a member, and its JoinGroup waits for the generation after that.
//!   Others may have its partitions meanwhile: it must not keep them until then, as a cooperative member does otherwise
//!   (`static_member_that_missed_a_generation_loses_its_partitions`).
//! - A returning static leader does not compute the assignment (KIP-814), so partitions that were added before it returned
//!   may be unassigned (`returning_leader_joins_again_if_a_partition_is_unassigned`).
//! - A coordinator names no leader to a member that joins a group of the consumer protocol. If the member replaces the last one
//!   of that protocol, the group is a classic one from then on, which the member leads without knowing it: nobody else begins
//!   the rebalance when partitions are added (`member_without_a_leader_joins_again_when_its_topic_grows`).
//! - The coordinator of a group with members of both protocols admits a member again whose session has ended, under the same
//!   ID. Only the response to a heartbeat of before shows that others may have got its partitions
//!   (`cooperative_member_that_was_unknown_at_its_join_loses_its_partitions`).
//! - A member may lose its membership while a JoinGroup waits at the coordinator. The next JoinGroup waits for the response to
//!   it, but not for long (`join_waits_for_the_response_to_an_earlier_one`).
//! - A member forgets its ID when it sends LeaveGroup, not when the response arrives: a late heartbeat response must not
//!   revive it (`late_heartbeat_does_not_revive_a_member_that_left`).

mod heartbeats;
mod inherited;
mod joining;
mod syncing;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{heartbeat::HeartbeatRequest, leave_group::request::Member as LeavingMember},
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use self::inherited::Inherited;
use super::{
    super::{
        assignor::{GroupMember, RebalanceProtocol, Strategy, TopicTable},
        settings::GroupSettings,
    },
    requests::MemberRequest,
};
use crate::group::departure::GroupMembershipOperation;
use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
};

/// The time that a JoinGroup or SyncGroup response may take in addition to the rebalance timeout.
const MARGIN: Duration = Duration::from_secs(5);
/// The maximum wait for a LeaveGroup response.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum wait for the response to a JoinGroup whose membership has ended meanwhile.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(5);

/// Distinguishes the requests before and after a change of the membership.
pub(in crate::group) type Term = u64;

/// A member of a classic group.
#[derive(Debug)]
pub(in crate::group) struct ClassicMember {
    settings: Arc<GroupSettings>,
    state: State,
    term: Term,
    /// The ID that the coordinator gave the member; empty if it has none.
    member_id: String,
    /// The generation that the member belongs to.
    generation: Option<Generation>,
    /// The topics that the application subscribed to.
    topics: SortedSet<Arc<str>>,
    /// The reason for the next join, for the broker's log.
    reason: String,
    /// True if the subscription changed, or partitions were given up, while a rebalance was in progress.
    must_rejoin: bool,
    /// True if an assignment was reported, and no revocation since.
    is_assigned: bool,
    /// The last assignment and its generation, for the `sticky` assignor.
    last_assigned: (SortedSet<TopicPartition>, Option<Generation>),
    heartbeat: Heartbeat,
    /// True if the coordinator named no leader of the generation.
    has_no_leader: bool,
    /// The topics of all members as of the last assignment, if this member leads the group; its own ones without a known leader.
    leads: Option<SortedMap<Arc<str>, TopicTable>>,
    /// The check of the assignment that a returning leader did not compute.
    inherited: Inherited,
    /// The JoinGroup in flight.
    unanswered: Option<Unanswered>,
    /// The number of consecutive responses that required a member ID.
    required_ids: u32,
    backoff: Backoff,
    rng: Rng,
    /// The last reported error: each is reported once until a rebalance succeeds.
    reported: Option<ErrorKind>,
    steps: VecDeque<Step>,
}

#[derive(Debug)]
enum State {
    /// The member has no subscription.
    Unsubscribed,
    /// JoinGroup is sent at this time, or later while the rebalance is busy.
    WaitToJoin(Instant),
    /// JoinGroup is in flight.
    Joining,
    /// The member leads the generation and has to compute the assignment.
    Assigning(Box<Leadership>),
    /// SyncGroup is in flight, in a generation with this assignor.
    Syncing(Strategy),
    /// The member has its assignment.
    Stable,
    /// The rebalance gives all partitions up.
    Revoking,
    /// A cooperative member keeps its partitions, and waits for the commits that it made in this generation.
    Settling,
    /// LeaveGroup is in flight; the member waits for its response until this time.
    Leaving(Instant),
    /// The member left because the application does not poll; it joins when the application polls again.
    Expired,
    /// The member can't continue.
    Failed,
}

/// A JoinGroup without a response.
#[derive(Debug)]
struct Unanswered {
    term: Term,
    /// The term before that.
    before: Term,
    /// The time until which the next JoinGroup waits for the response, once the membership has ended.
    until: Option<Instant>,
}

/// The leader's work of a generation.
#[derive(Debug)]
struct Leadership {
    assignor: Strategy,
    members: Vec<GroupMember>,
    /// True if the coordinator has an assignment already (KIP-814): the leader only observes the topics.
    is_skipped: bool,
}

#[derive(Debug, Default)]
struct Heartbeat {
    /// The time of the next heartbeat; `None` while one is in flight.
    next: Option<Instant>,
    /// The time at which the membership is lost unless a heartbeat is acknowledged.
    session_ends: Option<Instant>,
    /// The last time at which a heartbeat was brought forward.
    checked: Option<Instant>,
    /// A heartbeat was refused with ILLEGAL_GENERATION since the last JoinGroup.
    was_refused: bool,
}

/// An action that the member needs from the rest of the group part.
#[derive(Debug, PartialEq)]
pub(in crate::group) enum Step {
    /// Send a request to the coordinator.
    Send {
        /// The term, which comes back with the response.
        term: Term,
        /// The request.
        request: MemberRequest,
        /// The timeout of the request.
        timeout: Duration,
    },
    /// Give up all partitions, with a commit, and call [`ClassicMember::handle_revoked`].
    Revoke,
    /// All partitions belong to others already: give them up without a commit, and call
    /// [`ClassicMember::handle_revoked`].
    Lost,
    /// Wait for the outcomes of earlier commits, and call [`ClassicMember::handle_settled`].
    Settle,
    /// The member's partitions from now on.
    Assign(SortedSet<TopicPartition>),
    /// Report this error to the application. The member retries.
    Error(Error),
    /// Report this error to the application. The member does not retry.
    Fatal(Error),
    /// The member left the group, or its timeout for leaving has passed.
    Left,
}

impl ClassicMember {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("classic member", 0, &self.state);
    }

    /// Creates a member without a subscription.
    pub(in crate::group) fn new(settings: Arc<GroupSettings>, rng: Rng) -> Self {
        let (first, longest) = settings.backoff;
        Self {
            settings,
            state: State::Unsubscribed,
            term: 0,
            member_id: String::new(),
            generation: None,
            topics: SortedSet::new(),
            reason: String::new(),
            must_rejoin: false,
            is_assigned: false,
            last_assigned: Default::default(),
            heartbeat: Heartbeat::default(),
            has_no_leader: false,
            leads: None,
            inherited: Inherited::None,
            unanswered: None,
            required_ids: 0,
            backoff: Backoff::new(first, longest),
            rng,
            reported: None,
            steps: VecDeque::new(),
        }
    }

    /// Returns the member ID and the generation, if the member belongs to one.
    pub(in crate::group) fn identity(&self) -> Option<(&str, Generation)> {
        self.generation.map(|generation| (&*self.member_id, generation))
    }

    /// Returns the member ID; empty without one.
    pub(in crate::group) fn member_id(&self) -> &str {
        &self.member_id
    }

    /// Returns the state as statistics name it.
    pub(in crate::group) const fn state_name(&self) -> &'static str {
        match self.state {
            State::Joining => "wait-join",
            State::Assigning(_) => "wait-metadata",
            State::Syncing(_) => "wait-sync",
            State::Stable => "steady",
            State::Revoking => "wait-unassign-to-complete",
            State::Settling
            | State::Unsubscribed
            | State::WaitToJoin(_)
            | State::Leaving(_)
            | State::Expired
            | State::Failed => "init",
        }
    }

    /// Returns true if the member has the assignment of its generation: no JoinGroup or SyncGroup is due or in flight, and
    /// the assignment has been passed on.
    pub(in crate::group) fn is_settled(&self) -> bool {
        let is_joining = matches!(
            self.state,
            State::WaitToJoin(_) | State::Joining | State::Assigning(_) | State::Syncing(_)
        );
        !is_joining && !self.steps.iter().any(|step| matches!(step, Step::Assign(_)))
    }

    /// Returns the reason of the last rebalance.
    pub(in crate::group) fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns true if the member can't continue.
    pub(in crate::group) const fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Returns the member's own topics and, if it leads the group, those of all members.
    pub(in crate::group) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        let assigning = match &self.state {
            State::Assigning(leadership) => &*leadership.members,
            _ => &[],
        };
        let of_others = assigning.iter().flat_map(|member| &member.topics);
        let observed = self.leads.iter().flat_map(SortedMap::keys);
        self.topics.iter().chain(of_others).chain(observed)
    }

    /// Returns the topics that the leader must know before it can assign partitions, or that a member of a group without a known
    /// leader must know to observe them.
    pub(in crate::group) fn topics_to_assign(&self) -> Option<SortedSet<Arc<str>>> {
        match &self.state {
            State::Stable if self.has_no_leader && self.leads.is_none() => Some(self.topics.clone()),
            State::Assigning(leadership) => {
                Some(leadership.members.iter().flat_map(|member| member.topics.iter().cloned()).collect())
            }
            _ => None,
        }
    }

    /// Returns the topics as of the last assignment, if this member observes them and no rebalance is in progress.
    pub(in crate::group) const fn observed_topics(&self) -> Option<&SortedMap<Arc<str>, TopicTable>> {
        match self.state {
            State::Stable => self.leads.as_ref(),
            _ => None,
        }
    }

    pub(in crate::group) const fn is_unsubscribed(&self) -> bool {
        matches!(self.state, State::Unsubscribed)
    }

    // ---- what the application wants

    /// Changes the subscription, which is not empty, and joins the group. It must not be called while the member leaves.
    pub(in crate::group) fn subscribe(&mut self, now: Instant, topics: SortedSet<Arc<str>>) {
        let is_changed = topics != self.topics;
        self.topics = topics;
        match self.state {
            State::Unsubscribed => self.wait_to_join(now, "the consumer subscribed to topics"),
            State::Expired => self.handle_polled(now),
            State::Failed | State::WaitToJoin(_) | State::Revoking | State::Settling | State::Leaving(_) => {}
            _ if is_changed => self.rejoin(now, "the subscription changed"),
            _ => {}
        }
    }

    /// Leaves the group after the partitions were given up. A member that stays keeps its partitions at
    /// the coordinator until its session ends (KIP-345, KIP-1092).
    pub(in crate::group) fn leave(
        &mut self,
        now: Instant,
        operation: GroupMembershipOperation,
        reason: &str,
    ) {
        let must_leave = operation.leaves(self.settings.instance_id.is_some());
        let (member_id, is_failed) =
            (std::mem::take(&mut self.member_id), matches!(self.state, State::Failed));
        self.topics.clear();
        self.must_rejoin = false;
        self.is_assigned = false;
        self.abandon_join(now);
        self.end_generation();
        if member_id.is_empty() || !must_leave || is_failed {
            if !is_failed {
                self.state = State::Unsubscribed;
            }
            return self.steps.push_back(Step::Left);
        }
        self.state = State::Leaving(now + LEAVE_TIMEOUT);
        self.send_leave(member_id, reason);
    }

    fn send_leave(&mut self, member_id: String, reason: &str) {
        let member = LeavingMember {
            member_id,
            group_instance_id: self.settings.instance_id.clone(),
            reason: Some(reason.to_owned()),
        };
        let request = MemberRequest::Leave { group_id: self.settings.group_id.to_string(), member };
        self.send(request, LEAVE_TIMEOUT);
    }

    /// Leaves the group because the application does not poll; the assignment is lost. A static member keeps its ID and
    /// does not leave: the coordinator keeps its place until its session ends, and it must not be replaced by itself.
    pub(in crate::group) fn handle_poll_exceeded(&mut self, now: Instant) {
        if matches!(self.state, State::Unsubscribed | State::Leaving(_) | State::Expired | State::Failed) {
            return;
        }
        let reason = "the application did not poll within max.poll.interval.ms";
        if self.settings.instance_id.is_none() && !self.member_id.is_empty() {
            let member_id = std::mem::take(&mut self.member_id);
            self.send_leave(member_id, reason);
        }
        self.must_rejoin = false;
        self.lose(now, reason);
        self.state = State::Expired;
    }

    /// Joins again after the application polled.
    pub(in crate::group) fn handle_polled(&mut self, now: Instant) {
        if matches!(self.state, State::Expired) {
            self.wait_to_join(now, "the application polls again");
        }
    }

    /// Joins again: partitions were given up for others, or the group's topics changed.
    pub(in crate::group) fn rejoin(&mut self, now: Instant, reason: &str) {
        match self.state {
            State::Stable => self.begin_rebalance(now, reason),
            State::Joining | State::Assigning(_) | State::Syncing(_) => {
                self.reason = reason.to_owned();
                self.must_rejoin = true;
            }
            // A join follows, or there is nothing to join.
            _ => {}
        }
    }

    /// The rebalance gave up all partitions.
    pub(in crate::group) fn handle_revoked(&mut self, now: Instant) {
        self.is_assigned = false;
        if matches!(self.state, State::Revoking) {
            self.state = State::WaitToJoin(now);
        }
    }

    /// Earlier commits have an outcome.
    pub(in crate::group) fn handle_settled(&mut self, now: Instant) {
        if matches!(self.state, State::Settling) {
            self.state = State::WaitToJoin(now);
        }
    }

    // ---- time

    /// Sends the requests that are due. `owned` are the member's partitions; `may_join` is false while the rebalance
    /// gives partitions up.
    pub(in crate::group) fn advance(
        &mut self,
        now: Instant,
        owned: &SortedSet<TopicPartition>,
        may_join: bool,
    ) {
        if self.next_join().is_some_and(|at| at <= now) && may_join {
            self.join(now, owned);
        }
        if self.generation.is_some() && self.heartbeat.next.is_some_and(|at| at <= now) {
            self.heartbeat.next = None;
            let request = MemberRequest::Heartbeat(HeartbeatRequest {
                group_id: self.settings.group_id.to_string(),
                generation_id: Generation::to_wire(self.generation),
                member_id: self.member_id.clone(),
                group_instance_id: self.settings.instance_id.clone(),
            });
            self.send(request, self.settings.session_timeout);
        }
        self.query_inherited(now);
    }

    /// Handles the timers that are due.
    pub(in crate::group) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Leaving(until) if until <= now) {
            self.state = State::Unsubscribed;
            self.steps.push_back(Step::Left);
        }
        if self.heartbeat.session_ends.is_some_and(|at| at <= now) {
            // The application learns it from the rebalance, as in other clients: it is not an error as well.
            self.lose(now, "the coordinator acknowledged no heartbeat for session.timeout.ms");
        }
    }

    /// Returns when to call [`ClassicMember::handle_timeout`] and [`ClassicMember::advance`]. `may_join` as in `advance`.
    pub(in crate::group) fn poll_timeout(&self, may_join: bool) -> Option<Instant> {
        let of_state = match self.state {
            State::WaitToJoin(_) => self.next_join().filter(|_| may_join),
            State::Leaving(at) => Some(at),
            _ => None,
        };
        let of_session = earliest(self.heartbeat.next, self.heartbeat.session_ends);
        earliest(of_state, earliest(of_session, self.inherited_timeout()))
    }

    /// Returns what has to be done next.
    pub(in crate::group) fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Returns the response that the member waits for. A request without a response is retried by joining again.
    fn take_response<T>(&mut self, now: Instant, expected: bool, result: Result<T, Error>) -> Option<T> {
        match result {
            _ if !expected => None,
            Ok(response) => Some(response),
            Err(error) => {
                self.retry_join(now, error);
                None
            }
        }
    }

    /// Handles the response to LeaveGroup, or the error instead of one. Returns true if the coordinator moved.
    pub(in crate::group) fn handle_leave(&mut self, term: Term) -> bool {
        if term == self.term && matches!(self.state, State::Leaving(_)) {
            self.state = State::Unsubscribed;
            self.steps.push_back(Step::Left);
        }
        false
    }

    // ---- transitions

    /// Begins a rebalance: an eager member first gives all partitions up. A cooperative one keeps them, but the
    /// coordinator must get its commits before JoinGroup.
    fn begin_rebalance(&mut self, now: Instant, reason: &str) {
        if !self.is_assigned {
            return self.wait_to_join(now, reason);
        }
        self.reason = reason.to_owned();
        let (state, step) = match self.settings.protocol() {
            RebalanceProtocol::Eager => (State::Revoking, Step::Revoke),
            RebalanceProtocol::Cooperative => (State::Settling, Step::Settle),
        };
        self.state = state;
        self.steps.push_back(step);
    }

    fn wait_to_join(&mut self, at: Instant, reason: &str) {
        self.reason = reason.to_owned();
        self.state = State::WaitToJoin(at);
    }

    /// Returns when to send JoinGroup.
    fn next_join(&self) -> Option<Instant> {
        let State::WaitToJoin(at) = self.state else { return None };
        let until = self.unanswered.as_ref().and_then(|unanswered| unanswered.until);
        Some(until.map_or(at, |until| until.max(at)))
    }

    /// The membership ends. The coordinator refuses a JoinGroup in flight, and the next one waits for that: with two of
    /// them, the coordinator could count two members.
    fn abandon_join(&mut self, now: Instant) {
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.until.get_or_insert(now + ABANDONED_TIMEOUT);
        }
    }

    /// Handles the loss of the membership and with it of the assignment; the member joins again.
    fn lose(&mut self, now: Instant, reason: &str) {
        self.abandon_join(now);
        self.end_generation();
        if self.is_assigned {
            self.reason = reason.to_owned();
            self.state = State::Revoking;
            self.steps.push_back(Step::Lost);
        } else {
            self.wait_to_join(now, reason);
        }
    }

    /// Like [`ClassicMember::lose`], with a back-off, because joining at once could fail in the same way again and
    /// again.
    fn lose_after_backoff(&mut self, now: Instant, code: ErrorCode, api: &'static str) {
        let wait = self.backoff.next(&mut self.rng);
        // The first attempt follows at once.
        let wait = if self.backoff.failures() > 1 { wait } else { Duration::ZERO };
        let (is_assigned, reason) = (self.is_assigned, format!("{api} failed with {code}"));
        self.lose(now, &reason);
        if !is_assigned {
            self.state = State::WaitToJoin(now + wait);
        }
    }

    /// The application's assignor failed. The member leaves the group, so that another member leads it without waiting for
    /// this one's session to end, and joins again after a back-off.
    fn step_down(&mut self, now: Instant, error: Error) {
        let wait = self.backoff.next(&mut self.rng);
        let reason = "the application's assignor failed";
        if !self.member_id.is_empty() {
            let member_id = std::mem::take(&mut self.member_id);
            self.send_leave(member_id, reason);
        }
        self.must_rejoin = false;
        self.report(error.with_next_attempt(wait));
        let is_assigned = self.is_assigned;
        self.lose(now, reason);
        if !is_assigned {
            self.state = State::WaitToJoin(now + wait);
        }
    }

    /// Another member uses the same `group.instance.id`.
    fn fence(&mut self, api: &'static str) {
        let instance = self.settings.instance_id.clone().unwrap_or_default();
        let detail = format!(
            "another member of group \"{}\" uses group.instance.id \"{instance}\" and took this member's place; give each \
             member an ID of its own",
            self.settings.group_id
        );
        self.fail(Error::broker(ErrorCode::FENCED_INSTANCE_ID, Some(&detail)).with_api(api));
    }

    fn fail(&mut self, error: Error) {
        self.end_generation();
        self.state = State::Failed;
        if std::mem::take(&mut self.is_assigned) {
            self.steps.push_back(Step::Lost);
        }
        self.steps.push_back(Step::Fatal(error));
    }

    fn end_generation(&mut self) {
        self.term += 1;
        self.generation = None;
        self.leads = None;
        self.inherited = Inherited::None;
        self.heartbeat = Heartbeat::default();
    }

    fn rebalance_timeout(&self) -> Duration {
        self.settings.max_poll_interval.max(self.settings.session_timeout) + MARGIN
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

/// Returns true if the coordinator of the group is another node.
const fn has_moved(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR)
}

/// Returns true if joining again would fail the same way whatever happens in the cluster.
fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::UnsupportedVersion | ErrorKind::Bug | ErrorKind::Closed)
}

fn bad_response(api: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::BadResponse, detail).with_api(api)
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
