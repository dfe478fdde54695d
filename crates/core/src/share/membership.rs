//! The membership of a share consumer in its group: ShareGroupHeartbeat (KIP-932).
//!
//! ```text
//!               subscribe            response
//!  Unsubscribed ─────────► Joining ──────────► Stable ──┐ heartbeat
//!     ▲   ▲                 ▲    ▲               │  ▲    │
//!     │   │ poll            │    └── fenced ─────┤  └────┘
//!     │  Expired ◄──────────┼── no polls ────────┤
//!     │                     │ a new subscription │
//!    Leaving ◄── leave ─────┴────────────────────┘         Failed: no further heartbeat
//! ```
//!
//! The protocol is the consumer protocol (KIP-848) without reconciliation: the coordinator assigns, several members get
//! the same partitions, and a member has nothing to give up or to confirm. Identity, classification of errors and
//! schedule are those of [`group`](crate::group).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse},
    primitive::Reader,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{fetcher::unsupported, settings::ShareSettings};
use crate::{
    backoff::Backoff,
    connection::Response,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
    group::{DEFAULT_INTERVAL, has_moved, heartbeat_interval, is_permanent, new_member_id, retry_wait},
    machine::Instant,
    rng::Rng,
    states::See,
};

const API: &str = "ShareGroupHeartbeat";
/// The epoch of a member that joins.
const JOINS: i32 = 0;
/// The epoch of a member that leaves.
const LEAVES: i32 = -1;
/// The minimum timeout of a heartbeat: a broker that is slow for a moment must not look like one that is down.
const MIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Assigned partitions by topic ID.
pub(super) type Assignment = SortedMap<Uuid, SortedSet<i32>>;

/// A member of a share group.
#[derive(Debug)]
pub(super) struct ShareMember {
    settings: ShareSettings,
    state: State,
    member_id: Arc<str>,
    epoch: i32,
    /// Responses to requests of an earlier term are ignored.
    term: u64,
    subscription: SortedSet<Arc<str>>,
    /// The subscription that the coordinator confirmed; `None` if it may have missed it.
    confirmed: Option<SortedSet<Arc<str>>>,
    /// The subscription of the heartbeat in flight.
    in_flight: Option<SortedSet<Arc<str>>>,
    assignment: Assignment,
    interval: Duration,
    /// The time of the next heartbeat.
    next: Instant,
    backoff: Backoff,
    rng: Rng,
    /// The last reported error: each is reported once until a heartbeat succeeds.
    reported: Option<ErrorKind>,
    steps: VecDeque<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The member has no subscription, or has left.
    Unsubscribed,
    /// The next heartbeat has epoch 0.
    Joining,
    Stable,
    /// The heartbeat that leaves is in flight; the member waits for the response until this time.
    Leaving(Instant),
    /// The member left because the application does not poll.
    Expired,
    /// The member can't continue.
    Failed,
}

/// A step for the share group to carry out.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this request to the coordinator; its response belongs to this term.
    Send(RoutedRequest, u64),
    /// The member has left.
    Left,
    /// Report an error. The member continues.
    Report(Error),
    /// Report an error. The member can't continue.
    Fail(Error),
}

impl ShareMember {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("share member", 0, &self.state);
    }

    /// Creates a member without a subscription. Its ID stays the same.
    pub(super) fn new(settings: ShareSettings, mut rng: Rng) -> Self {
        let (first, longest) = settings.backoff;
        Self {
            settings,
            state: State::Unsubscribed,
            member_id: new_member_id(&mut rng).into(),
            epoch: JOINS,
            term: 0,
            subscription: SortedSet::new(),
            confirmed: None,
            in_flight: None,
            assignment: Assignment::new(),
            interval: DEFAULT_INTERVAL,
            next: Instant::ZERO,
            backoff: Backoff::new(first, longest),
            rng,
            reported: None,
            steps: VecDeque::new(),
        }
    }

    pub(super) const fn member_id(&self) -> &Arc<str> {
        &self.member_id
    }

    pub(super) const fn subscription(&self) -> &SortedSet<Arc<str>> {
        &self.subscription
    }

    pub(super) const fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Returns true if the coordinator may count this member.
    pub(super) const fn is_member(&self) -> bool {
        matches!(self.state, State::Joining | State::Stable)
    }

    /// Changes the subscription, which is not empty, and joins the group. Not to be called while the member leaves.
    pub(super) fn subscribe(&mut self, now: Instant, topics: SortedSet<Arc<str>>) {
        self.subscription = topics;
        match self.state {
            State::Unsubscribed | State::Expired => self.join(now),
            State::Stable => self.next = self.next.min(now),
            State::Joining | State::Leaving(_) | State::Failed => {}
        }
    }

    /// Leaves the group; [`Step::Left`] follows until `deadline`.
    pub(super) fn leave(&mut self, deadline: Instant) {
        self.subscription.clear();
        if self.is_member() {
            self.send_leave();
            self.state = State::Leaving(deadline);
        } else {
            self.end_membership();
            if self.state != State::Failed {
                self.state = State::Unsubscribed;
            }
            self.steps.push_back(Step::Left);
        }
    }

    /// Leaves the group because the application does not poll.
    pub(super) fn handle_poll_exceeded(&mut self) {
        if self.is_member() {
            self.send_leave();
            self.state = State::Expired;
        }
    }

    /// Joins again after the application polled.
    pub(super) fn handle_polled(&mut self, now: Instant) {
        if self.state == State::Expired {
            self.join(now);
        }
    }

    /// Sends the heartbeat that is due.
    pub(super) fn advance(&mut self, now: Instant) {
        let is_changed = self.state == State::Stable && self.confirmed.as_ref() != Some(&self.subscription);
        if self.in_flight.is_some()
            || !self.is_member()
            || !(self.next <= now || is_changed && self.backoff.failures() == 0)
        {
            return;
        }
        let is_join = self.state == State::Joining;
        let names = || self.subscription.iter().map(ToString::to_string).collect();
        let is_known = !is_join && self.confirmed.as_ref() == Some(&self.subscription);
        let request = ShareGroupHeartbeatRequest {
            rack_id: self.settings.rack.as_ref().filter(|_| is_join).map(ToString::to_string),
            subscribed_topic_names: (!is_known).then(names),
            ..self.heartbeat(if is_join { JOINS } else { self.epoch })
        };
        self.in_flight = Some(self.subscription.clone());
        self.send(request);
    }

    /// Handles the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Leaving(until) if until <= now) {
            self.state = State::Unsubscribed;
            self.steps.push_back(Step::Left);
        }
    }

    /// Returns when to call [`ShareMember::handle_timeout`] and [`ShareMember::advance`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Joining | State::Stable => Some(self.next).filter(|_| self.in_flight.is_none()),
            State::Leaving(until) => Some(until),
            State::Unsubscribed | State::Expired | State::Failed => None,
        }
    }

    pub(super) fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Handles the response to a heartbeat, or the error instead of one. Returns true if the coordinator moved.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        term: u64,
        result: Result<Response, Error>,
    ) -> bool {
        let result = result.and_then(|response| {
            let decoded = ShareGroupHeartbeatResponse::decode(
                &mut Reader::new(response.body()),
                response.request.version,
            );
            decoded.map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api(API))
        });
        self.handle_decoded(now, term, result)
    }

    /// Handles the decoded response to a heartbeat, or the error instead of one.
    pub(super) fn handle_decoded(
        &mut self,
        now: Instant,
        term: u64,
        result: Result<ShareGroupHeartbeatResponse, Error>,
    ) -> bool {
        if term != self.term {
            return false;
        }
        let sent = self.in_flight.take();
        if let State::Leaving(_) = self.state {
            self.state = State::Unsubscribed;
            self.steps.push_back(Step::Left);
            return false;
        }
        if !self.is_member() {
            return false;
        }
        match result {
            Ok(response) if response.error_code.is_error() => {
                let code = response.error_code;
                self.confirmed = None;
                self.handle_refused(now, code, response.error_message.as_deref());
                has_moved(code)
            }
            Ok(response) => {
                self.confirmed = sent;
                self.handle_confirmed(now, response);
                false
            }
            Err(error) => {
                self.confirmed = None;
                self.retry(now, error);
                false
            }
        }
    }

    fn handle_confirmed(&mut self, now: Instant, response: ShareGroupHeartbeatResponse) {
        let mut problem =
            (response.member_epoch <= 0).then(|| format!("member epoch {}", response.member_epoch));
        let mut assignment = None;
        if let Some(assigned) = response.assignment {
            let mut by_id = Assignment::new();
            for topic in assigned.topic_partitions {
                if let Some(negative) = topic.partitions.iter().find(|number| **number < 0) {
                    problem = Some(format!("an assignment of partition {negative}"));
                }
                by_id.entry(topic.topic_id).or_default().extend(topic.partitions);
            }
            assignment = Some(by_id);
        }
        if let Some(problem) = problem {
            let detail = format!("the coordinator returned {problem}; the member joins the group again");
            self.report(Error::new(ErrorKind::BadResponse, detail).with_api(API));
            let wait = self.backoff.next(&mut self.rng);
            return self.join(now + wait);
        }
        if let Some(assignment) = assignment {
            self.assignment = assignment;
        }
        self.epoch = response.member_epoch;
        self.state = State::Stable;
        self.backoff.reset();
        self.reported = None;
        self.interval = heartbeat_interval(response.heartbeat_interval_ms);
        self.next = now + self.interval;
    }

    fn handle_refused(&mut self, now: Instant, code: ErrorCode, message: Option<&str>) {
        let error = Error::broker(code, message).with_api(API);
        match code {
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH => self.handle_fenced(now),
            ErrorCode::GROUP_ID_NOT_FOUND if self.state == State::Stable => self.handle_fenced(now),
            ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::INCONSISTENT_GROUP_PROTOCOL => {
                let detail = format!(
                    "group \"{}\" is not a share group, but one of another type; use another group.id",
                    self.settings.group_id
                );
                self.fail(Error::broker(code, Some(&detail)).with_api(API));
            }
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                self.report(error);
                self.next = now + self.interval;
            }
            ErrorCode::UNSUPPORTED_VERSION => self.fail(unsupported().with_api(API)),
            code if is_permanent(code) => self.fail(error),
            _ => self.retry(now, error),
        }
    }

    /// Handles the end of the membership: the member joins again with the same ID, at once the first time.
    fn handle_fenced(&mut self, now: Instant) {
        let wait = self.backoff.next(&mut self.rng);
        self.join(if self.backoff.failures() == 1 { now } else { now + wait });
    }

    fn retry(&mut self, now: Instant, error: Error) {
        if error.kind() == ErrorKind::UnsupportedVersion {
            return self.fail(unsupported().with_api(API));
        }
        if matches!(error.kind(), ErrorKind::Bug | ErrorKind::Closed) {
            return self.fail(error);
        }
        let wait = retry_wait(&error, &mut self.backoff, &mut self.rng);
        if !error.is_retriable() {
            self.report(error.with_next_attempt(wait));
        }
        self.next = now + wait;
    }

    fn join(&mut self, at: Instant) {
        self.end_membership();
        self.state = State::Joining;
        self.next = at;
    }

    fn end_membership(&mut self) {
        self.term += 1;
        self.in_flight = None;
        self.confirmed = None;
        self.assignment.clear();
    }

    fn fail(&mut self, error: Error) {
        self.end_membership();
        self.state = State::Failed;
        self.steps.push_back(Step::Fail(error));
    }

    fn report(&mut self, error: Error) {
        if self.reported.replace(error.kind()) != Some(error.kind()) {
            self.steps.push_back(Step::Report(error));
        }
    }

    fn send_leave(&mut self) {
        self.end_membership();
        self.send(self.heartbeat(LEAVES));
    }

    fn heartbeat(&self, member_epoch: i32) -> ShareGroupHeartbeatRequest {
        ShareGroupHeartbeatRequest {
            group_id: self.settings.group_id.to_string(),
            member_id: self.member_id.to_string(),
            member_epoch,
            ..ShareGroupHeartbeatRequest::default()
        }
    }

    fn send(&mut self, request: ShareGroupHeartbeatRequest) {
        let timeout = self.settings.request_timeout.min(self.interval.max(MIN_TIMEOUT));
        self.steps.push_back(Step::Send(routed(request, timeout), self.term));
    }
}

/// Returns a heartbeat as the cluster actor sends it.
pub(crate) fn routed(request: ShareGroupHeartbeatRequest, timeout: Duration) -> RoutedRequest {
    let api = ApiKey::ShareGroupHeartbeat;
    let encode = Box::new(move |version, out: &mut Vec<u8>| request.encode(version, out));
    RoutedRequest { api, versions: api.versions(), timeout, encode }
}
