//! The membership in a streams group: StreamsGroupHeartbeat (KIP-1071).
//!
//! ```text
//!          join              response
//!  Outside ───────► Joining ──────────► Stable ──┐ heartbeat
//!     ▲                ▲                  │  ▲    │
//!     │                │ tasks given up   │  └────┘
//!     │                └──── fenced ──────┤
//!    Leaving ◄─── leave ──────────────────┘         Failed: no further heartbeat
//! ```
//!
//! `owned` has what the member owns, and what it has to give up.

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, request},
        streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateResponse,
    },
    primitive::Reader,
};

use super::{
    news::{RevocationReason, StreamsEndpoint, StreamsEvent, StreamsMembership, StreamsStatus, TaskOffsets},
    owned::OwnedTasks,
    push::{self, DescriptionPush},
    settings::StreamsSettings,
    task::TaskSets,
};
use crate::{
    admin::groups::streams_groups::StreamsTask,
    backoff::Backoff,
    connection::Response,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
    group::{
        DEFAULT_INTERVAL, departure::GroupMembershipOperation, has_moved, heartbeat_interval, is_permanent,
        new_member_id, retry_wait,
    },
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
    txn::may_have_been_sent,
};

const API: &str = "StreamsGroupHeartbeat";
/// The epoch of a member that joins.
const JOINS: i32 = 0;
/// The epoch of a member that leaves.
const LEAVES: i32 = -1;
/// The epoch of a static member that leaves and may return.
const LEAVES_FOR_A_WHILE: i32 = -2;
/// The epoch of the endpoints of a member that knows none.
const NO_ENDPOINTS: i32 = -1;
/// The minimum timeout of a heartbeat: a broker that is slow for a moment must not look like one that is down.
const MIN_TIMEOUT: Duration = Duration::from_secs(10);

/// A member of a streams group.
#[derive(Debug)]
pub(super) struct StreamsMember {
    settings: StreamsSettings,
    state: State,
    /// Its ID and epoch, and what the coordinator says about the group.
    known: StreamsMembership,
    /// Responses to requests of an earlier term are ignored.
    term: u64,
    tasks: OwnedTasks,
    /// The tasks that the coordinator knows the member to own; `None` if it may have missed them.
    confirmed: Option<TaskSets>,
    in_flight: Option<InFlight>,
    /// A response was lost: it may have had an assignment, which the coordinator does not repeat.
    is_unsure: bool,
    endpoint_epoch: i32,
    /// Offsets that were not reported yet, and when they may be.
    offsets: Option<TaskOffsets>,
    offsets_at: Instant,
    shutdown: Shutdown,
    push: DescriptionPush,
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
    /// The member has not joined, or has left.
    Outside,
    /// The next heartbeat has epoch 0. It waits until the application has given up its tasks.
    Joining,
    Stable,
    /// The heartbeat that leaves is in flight; the member waits for the response until this time.
    Leaving(Instant),
    /// The member can't continue.
    Failed,
}

/// Whether all members of the application are to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    No,
    Requested,
    Sent,
}

/// What the heartbeat in flight says.
#[derive(Debug)]
struct InFlight {
    tasks: TaskSets,
    offsets: Option<TaskOffsets>,
    shutdown: bool,
}

/// A step for the part to carry out.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this request to the coordinator; its response belongs to this term.
    Send(RoutedRequest, u64),
    /// Send the topology's description to the coordinator; its response has this number.
    Push(RoutedRequest, u64),
    /// The member has left.
    Left,
    /// An event for the application.
    Event(StreamsEvent),
    /// Report an error. The member can't continue.
    Fail(Error),
}

impl StreamsMember {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("streams member", 0, &self.state);
        see("shutdown of a streams group", 0, &self.shutdown);
        self.push.states(see);
    }

    /// Creates a member outside of its group. Its ID stays the same.
    pub(super) fn new(settings: StreamsSettings, mut rng: Rng) -> Self {
        let (first, longest) = settings.backoff;
        let known = StreamsMembership { member_id: new_member_id(&mut rng), ..StreamsMembership::default() };
        Self {
            settings,
            state: State::Outside,
            known,
            term: 0,
            tasks: OwnedTasks::default(),
            confirmed: None,
            in_flight: None,
            is_unsure: false,
            endpoint_epoch: NO_ENDPOINTS,
            offsets: None,
            offsets_at: Instant::ZERO,
            shutdown: Shutdown::No,
            push: DescriptionPush::new((first, longest)),
            interval: DEFAULT_INTERVAL,
            next: Instant::ZERO,
            backoff: Backoff::new(first, longest),
            rng,
            reported: None,
            steps: VecDeque::new(),
        }
    }

    /// Returns what is known of the membership.
    pub(super) fn membership(&self) -> StreamsMembership {
        let is_in = self.state == State::Stable;
        StreamsMembership {
            epoch: self.known.epoch.filter(|_| is_in),
            tasks: self.tasks.all().to_tasks(),
            wants_topology_description: self.push.is_wanted(),
            ..self.known.clone()
        }
    }

    pub(super) fn member_id(&self) -> &str {
        &self.known.member_id
    }

    /// Joins the group, unless the member is in it. Not to be called while it leaves.
    pub(super) fn join(&mut self, now: Instant) {
        if self.state == State::Outside {
            self.end_membership();
            self.state = State::Joining;
            self.next = now;
        }
    }

    /// The application has given up the tasks of a revocation.
    pub(super) fn acknowledge(&mut self, revocation: u64) {
        let assigned = self.tasks.acknowledge(revocation);
        self.steps.extend(assigned.map(Step::Event));
    }

    /// Takes offsets for the next report; they replace those that were not reported yet.
    pub(super) fn report_offsets(&mut self, offsets: TaskOffsets) {
        self.offsets = Some(offsets);
    }

    /// Requests that all members of the application shut down.
    pub(super) fn request_shutdown(&mut self) {
        if self.shutdown == Shutdown::No {
            self.shutdown = Shutdown::Requested;
        }
    }

    /// Leaves the group, without its tasks; [`Step::Left`] follows until `deadline`. The application has stopped them.
    pub(super) fn leave(&mut self, deadline: Instant, operation: GroupMembershipOperation) {
        let is_static = self.settings.instance_id.is_some();
        let was_in = matches!(self.state, State::Joining | State::Stable);
        self.end_membership();
        self.tasks.clear();
        let epoch = match operation.leaves(is_static) {
            true => Some(LEAVES),
            false if is_static => Some(LEAVES_FOR_A_WHILE),
            false => None,
        };
        match epoch.filter(|_| was_in) {
            Some(epoch) => {
                self.send(self.heartbeat(epoch));
                self.state = State::Leaving(deadline);
            }
            None => {
                if self.state != State::Failed {
                    self.state = State::Outside;
                }
                self.steps.push_back(Step::Left);
            }
        }
    }

    /// Sends the heartbeat and the description that are due.
    pub(super) fn advance(&mut self, now: Instant) {
        let push = self.push.poll_request(now, &self.settings, &self.known.member_id);
        self.steps.extend(push.map(|(request, number)| Step::Push(request, number)));
        if self.in_flight.is_some() {
            return;
        }
        let request = match self.state {
            State::Joining if self.next <= now && self.tasks.all().is_empty() => self.joining(),
            State::Stable if self.next <= now || self.has_news() && self.backoff.failures() == 0 => {
                self.staying(now)
            }
            _ => return,
        };
        self.in_flight = Some(InFlight {
            tasks: self.tasks.all().clone(),
            offsets: request.task_offsets.is_some().then(|| self.offsets.clone()).flatten(),
            shutdown: request.shutdown_application,
        });
        self.send(request);
    }

    /// Returns true if the coordinator waits for something that the next heartbeat has.
    fn has_news(&self) -> bool {
        self.confirmed.as_ref() != Some(self.tasks.all()) || self.shutdown == Shutdown::Requested
    }

    fn joining(&self) -> StreamsGroupHeartbeatRequest {
        let settings = &self.settings;
        let tag =
            |(key, value): (&String, &String)| request::ClientTag { key: key.clone(), value: value.clone() };
        let endpoint = settings.endpoint.clone().map(|(host, port)| request::UserEndpoint { host, port });
        let process_id = settings.process_id.as_deref().unwrap_or(&self.known.member_id);
        StreamsGroupHeartbeatRequest {
            instance_id: settings.instance_id.as_deref().map(str::to_owned),
            rack_id: settings.rack.as_deref().map(str::to_owned),
            rebalance_timeout_ms: i32::try_from(settings.rebalance_timeout.as_millis()).unwrap_or(i32::MAX),
            topology: Some(settings.topology.to_request()),
            active_tasks: Some(Vec::new()),
            standby_tasks: Some(Vec::new()),
            warmup_tasks: Some(Vec::new()),
            process_id: Some(process_id.to_owned()),
            user_endpoint: endpoint,
            client_tags: Some(settings.client_tags.iter().map(tag).collect()),
            shutdown_application: self.shutdown == Shutdown::Requested,
            ..self.heartbeat(JOINS)
        }
    }

    fn staying(&mut self, now: Instant) -> StreamsGroupHeartbeatRequest {
        let mut request = self.heartbeat(self.known.epoch.unwrap_or(JOINS));
        request.shutdown_application = self.shutdown == Shutdown::Requested;
        if self.confirmed.as_ref() != Some(self.tasks.all()) {
            let (active, standby, warmup) = self.tasks.all().to_request();
            request.active_tasks = Some(active);
            request.standby_tasks = Some(standby);
            request.warmup_tasks = Some(warmup);
        }
        let interval = self.known.task_offset_interval;
        if let (Some(offsets), Some(interval), true) = (&self.offsets, interval, self.offsets_at <= now) {
            self.offsets_at = now + interval;
            let offset = |(task, offset): (&StreamsTask, &i64)| request::TaskOffset {
                subtopology_id: task.subtopology_id.clone(),
                partition: task.partition,
                offset: *offset,
            };
            request.task_offsets = Some(offsets.offsets.iter().map(offset).collect());
            let ends = offsets.end_offsets.iter().map(offset).map(|it| request::TaskEndOffset {
                subtopology_id: it.subtopology_id,
                partition: it.partition,
                offset: it.offset,
            });
            request.task_end_offsets = Some(ends.collect());
        }
        request
    }

    /// Handles the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Leaving(until) if until <= now) {
            self.finish_leaving();
        }
    }

    /// Returns when to call [`StreamsMember::handle_timeout`] and [`StreamsMember::advance`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Joining if !self.tasks.all().is_empty() => None,
            State::Joining | State::Stable => earliest(
                Some(self.next).filter(|_| self.in_flight.is_none()),
                self.push.poll_timeout(&self.settings),
            ),
            State::Leaving(until) => Some(until),
            State::Outside | State::Failed => None,
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
            let version = response.request.version;
            let decoded = StreamsGroupHeartbeatResponse::decode(&mut Reader::new(response.body()), version);
            decoded.map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api(API))
        });
        self.handle_decoded(now, term, result)
    }

    /// Handles the response to a push of the description, or the error instead of one. Returns true if the coordinator moved.
    pub(super) fn handle_push_response(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
    ) -> bool {
        self.handle_decoded_push(now, number, result.and_then(push::decode))
    }

    /// Handles the decoded response to a push of the description, or the error instead of one.
    pub(super) fn handle_decoded_push(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<StreamsGroupTopologyDescriptionUpdateResponse, Error>,
    ) -> bool {
        let outcome = self.push.handle_response(now, &mut self.rng, number, result);
        self.steps.extend(outcome.error.map(StreamsEvent::Error).map(Step::Event));
        outcome.has_moved
    }

    /// Handles the decoded response to a heartbeat, or the error instead of one.
    pub(super) fn handle_decoded(
        &mut self,
        now: Instant,
        term: u64,
        result: Result<StreamsGroupHeartbeatResponse, Error>,
    ) -> bool {
        if term != self.term {
            return false;
        }
        let sent = self.in_flight.take();
        if let State::Leaving(_) = self.state {
            self.finish_leaving();
            return false;
        }
        if !matches!(self.state, State::Joining | State::Stable) {
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
                self.handle_confirmed(now, sent, response);
                false
            }
            Err(error) => {
                self.confirmed = None;
                self.is_unsure |= self.state == State::Stable && may_have_been_sent(&error);
                self.retry(now, error);
                false
            }
        }
    }

    fn handle_confirmed(
        &mut self,
        now: Instant,
        sent: Option<InFlight>,
        response: StreamsGroupHeartbeatResponse,
    ) {
        let assigned = match self.check(&response) {
            Ok(assigned) => assigned,
            Err(problem) => {
                let detail = format!("the coordinator returned {problem}; the member joins the group again");
                let error = Error::new(ErrorKind::BadResponse, detail).with_api(API);
                self.report(error.clone());
                let wait = self.backoff.next(&mut self.rng);
                return self.lose(now + wait, error);
            }
        };
        if std::mem::take(&mut self.is_unsure) && assigned.is_none() {
            let detail = "a response of the coordinator was lost, which may have had an assignment; the member joins again";
            return self.lose(now, Error::new(ErrorKind::Disconnected, detail).with_api(API));
        }
        self.state = State::Stable;
        self.known.epoch = Some(response.member_epoch);
        self.backoff.reset();
        self.reported = None;
        self.interval = heartbeat_interval(response.heartbeat_interval_ms);
        self.next = now + self.interval;
        if let Some(sent) = sent {
            self.confirmed = Some(sent.tasks);
            if sent.offsets.is_some() && sent.offsets == self.offsets {
                self.offsets = None;
            }
            if sent.shutdown {
                self.shutdown = Shutdown::Sent;
            }
        }
        if response.topology_description_required {
            self.push.ask(now);
        }
        self.note_group(response);
        if let Some(assigned) = assigned {
            self.steps.extend(self.tasks.assign(assigned).map(Step::Event));
        }
    }

    /// Returns the assignment of a response, if it has one. Error: what is wrong with the response.
    fn check(&self, response: &StreamsGroupHeartbeatResponse) -> Result<Option<TaskSets>, String> {
        if response.member_epoch <= 0 {
            return Err(format!("member epoch {}", response.member_epoch));
        }
        let assigned = TaskSets::of_response(response)?;
        let mut subtopologies = assigned.iter().flat_map(TaskSets::subtopologies);
        if let Some(id) = subtopologies.find(|id| !self.settings.topology.has(id)) {
            return Err(format!("a task of subtopology \"{id}\", which the topology does not have"));
        }
        drop(subtopologies);
        Ok(assigned)
    }

    /// Takes what a response says about the group.
    fn note_group(&mut self, response: StreamsGroupHeartbeatResponse) {
        let known = &mut self.known;
        let lag = match response.acceptable_recovery_lag {
            ..0 => i64::from(response.acceptable_recovery_lag_legacy),
            lag => lag,
        };
        known.acceptable_recovery_lag = Some(lag).filter(|lag| *lag > 0);
        let interval = u64::try_from(response.task_offset_interval_ms).unwrap_or(0);
        known.task_offset_interval =
            Some(Duration::from_millis(interval)).filter(|interval| !interval.is_zero());
        let mut status: Vec<_> =
            response.status.into_iter().flatten().map(StreamsStatus::of_response).collect();
        status.sort();
        if status != known.status {
            known.status.clone_from(&status);
            self.steps.push_back(Step::Event(StreamsEvent::Status(status)));
        }
        self.endpoint_epoch = response.endpoint_information_epoch;
        if let Some(endpoints) = response.partitions_by_user_endpoint {
            let endpoints: Vec<_> = endpoints.into_iter().map(StreamsEndpoint::of_response).collect();
            if endpoints != known.endpoints {
                known.endpoints.clone_from(&endpoints);
                self.steps.push_back(Step::Event(StreamsEvent::Endpoints(endpoints)));
            }
        }
    }

    fn handle_refused(&mut self, now: Instant, code: ErrorCode, message: Option<&str>) {
        let error = Error::broker(code, message).with_api(API);
        let is_member = self.state == State::Stable;
        match code {
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH => self.handle_fenced(now, error),
            ErrorCode::GROUP_ID_NOT_FOUND if is_member => self.handle_fenced(now, error),
            ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::INCONSISTENT_GROUP_PROTOCOL => {
                let detail = format!(
                    "group \"{}\" is not a streams group, but one of another type; use another group.id",
                    self.settings.group_id
                );
                self.fail(Error::broker(code, Some(&detail)).with_api(API));
            }
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                self.report(error);
                self.next = now + self.interval;
            }
            ErrorCode::UNSUPPORTED_VERSION => self.fail(unsupported(message)),
            ErrorCode::STREAMS_INVALID_TOPOLOGY
            | ErrorCode::STREAMS_INVALID_TOPOLOGY_EPOCH
            | ErrorCode::STREAMS_TOPOLOGY_FENCED
            | ErrorCode::UNRELEASED_INSTANCE_ID
            | ErrorCode::FENCED_INSTANCE_ID => self.fail(error),
            code if is_permanent(code) => self.fail(error),
            _ => self.retry(now, error),
        }
    }

    /// Handles the end of the membership: the member joins again with the same ID, at once the first time.
    fn handle_fenced(&mut self, now: Instant, error: Error) {
        let wait = self.backoff.next(&mut self.rng);
        self.lose(if self.backoff.failures() == 1 { now } else { now + wait }, error);
    }

    /// Gives up the tasks because of an error, and joins again at this time.
    fn lose(&mut self, at: Instant, error: Error) {
        self.end_membership();
        self.steps.extend(self.tasks.lose(RevocationReason::Lost(error)).map(Step::Event));
        self.state = State::Joining;
        self.next = at;
    }

    fn retry(&mut self, now: Instant, error: Error) {
        if error.kind() == ErrorKind::UnsupportedVersion {
            return self.fail(unsupported(None));
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

    fn end_membership(&mut self) {
        self.term += 1;
        self.in_flight = None;
        self.confirmed = None;
        self.is_unsure = false;
        self.endpoint_epoch = NO_ENDPOINTS;
        self.known.epoch = None;
        self.push.forget();
    }

    fn finish_leaving(&mut self) {
        self.state = State::Outside;
        self.steps.push_back(Step::Left);
    }

    fn fail(&mut self, error: Error) {
        self.end_membership();
        self.steps.extend(self.tasks.lose(RevocationReason::Lost(error.clone())).map(Step::Event));
        self.state = State::Failed;
        self.steps.push_back(Step::Fail(error));
    }

    fn report(&mut self, error: Error) {
        if self.reported.replace(error.kind()) != Some(error.kind()) {
            self.steps.push_back(Step::Event(StreamsEvent::Error(error)));
        }
    }

    fn heartbeat(&self, member_epoch: i32) -> StreamsGroupHeartbeatRequest {
        StreamsGroupHeartbeatRequest {
            group_id: self.settings.group_id.to_string(),
            member_id: self.known.member_id.clone(),
            member_epoch,
            // A static member is found by this.
            instance_id: self.settings.instance_id.as_deref().map(str::to_owned),
            endpoint_information_epoch: self.endpoint_epoch,
            ..StreamsGroupHeartbeatRequest::default()
        }
    }

    fn send(&mut self, request: StreamsGroupHeartbeatRequest) {
        let timeout = self.settings.request_timeout.min(self.interval.max(MIN_TIMEOUT));
        self.steps.push_back(Step::Send(routed(request, timeout), self.term));
    }
}

/// Returns a heartbeat as the cluster actor sends it.
pub(crate) fn routed(request: StreamsGroupHeartbeatRequest, timeout: Duration) -> RoutedRequest {
    let api = ApiKey::StreamsGroupHeartbeat;
    let encode = Box::new(move |version, out: &mut Vec<u8>| request.encode(version, out));
    RoutedRequest { api, versions: api.versions(), timeout, encode }
}

fn unsupported(message: Option<&str>) -> Error {
    let detail = message.filter(|message| !message.is_empty()).unwrap_or(
        "the brokers have no streams groups, which need Kafka 4.1 with the feature streams.version; upgrade the brokers, or \
         set the feature",
    );
    Error::new(ErrorKind::UnsupportedVersion, detail).with_api(API)
}
