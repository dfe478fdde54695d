//! Administrative calls: requests about the cluster as a whole.
//!
//! ```text
//!  AdminCall ──► AdminCalls ── request ──► controller or any broker ──► response ──► per topic: done, or retried
//!                    ├── offsets, records, epochs, producers ──► one request per leader ──► merged
//!                    └── every broker ──► one request per broker ──► merged
//! ```
//!
//! A call is an operation: it encodes its request, evaluates the response, and may be retried if the response for a
//! topic shows that the controller moved or that the broker was busy. Most operations are a function that creates the
//! request and one that reads the response:
//!
//! | form | operations |
//! |---|---|
//! | `one_result`: one request, one result | describe ACLs, users, quotas, quorum, features; unregister a broker; tokens |
//! | [`item_results`]: a result for each item; some are requested again | ACLs, users, quotas, elections, reassignments |
//! | `every_broker`: one request per broker | groups, transactions, log directories, APIs |
//! | `leader_batches`: one request per leader | records, ends of leader epochs, producers |
//! | `Operation`: everything else | topics, configurations, groups |

pub mod acls;
mod attempts;
pub mod broker_apis;
pub mod config_resources;
pub mod configs;
pub mod delegation_tokens;
pub mod describe;
mod describe_cluster;
pub mod elections;
mod every_broker;
pub mod features;
pub mod groups;
pub mod item_results;
mod leader_batches;
pub mod leader_epochs;
pub mod log_dirs;
mod numbered;
mod one_result;
pub mod quorum;
pub mod quotas;
pub mod reassignments;
pub mod records;
pub mod topic_ids;
mod topic_pages;
pub mod topics;
pub mod transactions;
pub mod users;

use std::{collections::VecDeque, convert::Infallible, fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    vocabulary::{NodeId, TopicPartition},
};
use ottla_sorted::SortedMap;

use self::{
    attempts::Attempts,
    every_broker::{BrokerOperation, EveryBroker, Timing},
    groups::batches::{GroupBatches, GroupsOperation},
    leader_batches::{LeaderBatches, PartitionsOperation},
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{AdminRequest, Interest, MetadataChanges, Need, Needs, Part, RequestOwner, Urgency},
        route::{Coordinator, EncodeBody, Route, RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    offsets::list_offsets::{
        NEW_TOPIC_TIMEOUT, OffsetLookups, OffsetQuery, OffsetResults, topic_error, unknown_partition,
    },
    rng::Rng,
};

/// An administrative call.
#[derive(Debug)]
pub struct AdminCall(Call);

enum Call {
    Operation {
        operation: Box<dyn Operation>,
        timeout: Duration,
        how: How,
    },
    EveryBroker {
        operation: Box<dyn BrokerOperation>,
        timeout: Duration,
        how: How,
    },
    Groups {
        operation: Box<dyn GroupsOperation>,
        groups: Vec<Arc<str>>,
        timeout: Duration,
        how: How,
    },
    Partitions {
        operation: Box<dyn PartitionsOperation>,
        partitions: Vec<TopicPartition>,
        timeout: Duration,
        how: How,
    },
    ListOffsets(OffsetQuery, Completion<OffsetResults>),
}

/// The options of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// The broker that gets the request, instead of the one that the call would choose.
    pub broker: Option<i32>,
    /// The time that the broker may take for the operation; by default that of the request.
    pub operation_timeout: Option<Duration>,
}

/// The calls in flight.
#[derive(Debug)]
pub struct AdminCalls {
    calls: SortedMap<u64, Running>,
    next_call: u64,
    offsets: OffsetLookups,
    every_broker: EveryBroker,
    groups: GroupBatches,
    leaders: LeaderBatches,
    request_timeout: Duration,
    backoff: (Duration, Duration),
    rng: Rng,
    needs: VecDeque<Need>,
    of_controllers: bool,
}

struct Running {
    operation: Box<dyn Operation>,
    how: How,
    since: Instant,
    deadline: Instant,
    state: State,
    attempts: Attempts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due,
    /// The call waits for metadata with the partition's leader.
    AfterMetadata,
    Asked,
    Later(Instant),
}

/// One kind of call: encodes the request and evaluates the response.
pub(crate) trait Operation: Send {
    /// Returns the API of the request.
    fn api(&self) -> ApiKey;
    /// Adapts the call to servers that are controllers (KIP-919).
    fn ask_controllers(&mut self) {}
    /// Returns the versions of the API that support the operation.
    fn versions(&self) -> RangeInclusive<i16> {
        self.api().versions()
    }
    /// Returns the route of the request.
    fn route(&self) -> Route;
    /// Returns the partition whose leader gets the request instead, if any.
    fn partition(&self) -> Option<(&Arc<str>, i32)> {
        None
    }
    /// Encodes the request; the broker may take `timeout`.
    fn encode(&self, timeout: Duration) -> EncodeBody;
    /// Notes the coordinator that responds, before its response is handled.
    fn handle_coordinator(&mut self, _coordinator: &Coordinator) {}
    /// Handles the error of a request without a response.
    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        Err(error)
    }
    /// Handles a response in this version.
    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error>;
    /// Completes the call. With an error, all parts without a result of their own fail with it.
    fn finish(self: Box<Self>, error: Option<Error>);
}

/// Returns true if the error says that the coordinator is another broker.
fn says_that_coordinator_moved(error: &Error) -> bool {
    let moved = [ErrorCode::COORDINATOR_NOT_AVAILABLE, ErrorCode::NOT_COORDINATOR];
    moved.into_iter().any(|code| error.kind() == ErrorKind::Broker(code))
}

/// The next step after a response.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// All parts have their results.
    Done,
    /// The call needs the response to another request.
    Next,
    /// Some parts have to be retried because of this error.
    Again(Error),
    /// The call fails with this error, even if it is a retriable one.
    Failed(Error),
}

impl AdminCall {
    pub(crate) fn operation(operation: impl Operation + 'static, timeout: Duration) -> Self {
        Self(Call::Operation { operation: Box::new(operation), timeout, how: How::default() })
    }

    pub(crate) fn every_broker(operation: impl BrokerOperation + 'static, timeout: Duration) -> Self {
        Self(Call::EveryBroker { operation: Box::new(operation), timeout, how: How::default() })
    }

    pub(crate) fn of_groups(
        operation: impl GroupsOperation + 'static,
        groups: Vec<Arc<str>>,
        timeout: Duration,
    ) -> Self {
        Self(Call::Groups { operation: Box::new(operation), groups, timeout, how: How::default() })
    }

    pub(crate) fn of_partitions(
        operation: impl PartitionsOperation + 'static,
        partitions: Vec<TopicPartition>,
        timeout: Duration,
    ) -> Self {
        Self(Call::Partitions { operation: Box::new(operation), partitions, timeout, how: How::default() })
    }

    /// Sets the options of the call. Requests about partitions go to their leaders in any case.
    #[must_use]
    pub fn done(mut self, requested: How) -> Self {
        if let Call::Operation { how, .. }
        | Call::EveryBroker { how, .. }
        | Call::Groups { how, .. }
        | Call::Partitions { how, .. } = &mut self.0
        {
            *how = requested;
        }
        self
    }

    /// Creates a call that queries the leaders of partitions for offsets.
    pub const fn list_offsets(query: OffsetQuery, done: Completion<OffsetResults>) -> Self {
        Self(Call::ListOffsets(query, done))
    }
}

impl AdminCalls {
    /// Creates the state without calls. Retries back off from `backoff.0` to `backoff.1`.
    pub(crate) fn new(request_timeout: Duration, backoff: (Duration, Duration), rng: Rng) -> Self {
        Self {
            calls: SortedMap::new(),
            next_call: 0,
            offsets: OffsetLookups::new(0, request_timeout, backoff.0),
            every_broker: EveryBroker::default(),
            groups: GroupBatches::default(),
            leaders: LeaderBatches::default(),
            request_timeout,
            backoff,
            rng,
            needs: VecDeque::new(),
            of_controllers: false,
        }
    }

    /// Sets whether the servers are controllers (KIP-919).
    pub(crate) const fn of_controllers(mut self, of_controllers: bool) -> Self {
        self.of_controllers = of_controllers;
        self
    }

    /// Starts a call.
    pub(crate) fn start(&mut self, now: Instant, call: AdminCall) {
        match call.0 {
            Call::Operation { mut operation, timeout, how } => {
                if self.of_controllers {
                    operation.ask_controllers();
                }
                let running = Running {
                    operation,
                    how,
                    since: now,
                    deadline: now + timeout,
                    state: State::Due,
                    attempts: Attempts::new(self.backoff),
                };
                self.calls.insert(self.next_call, running);
                self.next_call += 1;
            }
            Call::Groups { operation, groups, timeout, how } => {
                let timing = self.timing(now, timeout);
                self.groups.start(operation, groups, timing, how.broker.and_then(NodeId::from_wire));
            }
            Call::Partitions { operation, partitions, timeout, how } => {
                let timing = self.timing(now, timeout);
                self.leaders.start(now, operation, partitions, timing, how);
            }
            Call::EveryBroker { operation, timeout, how } => {
                let timing = self.timing(now, timeout);
                self.every_broker.start(operation, timing, how.broker.and_then(NodeId::from_wire));
            }
            Call::ListOffsets(query, done) => self.offsets.start_query(now, &query, done),
        }
    }

    fn timing(&self, now: Instant, timeout: Duration) -> Timing {
        Timing { deadline: now + timeout, request_timeout: self.request_timeout, backoff: self.backoff }
    }

    /// Notes the coordinator whose response follows.
    pub(crate) fn handle_coordinator(&mut self, request: AdminRequest, coordinator: &Coordinator) {
        if let AdminRequest::Call(number) = request
            && let Some(call) = self.calls.get_mut(&number)
        {
            call.operation.handle_coordinator(coordinator);
        }
    }

    /// Handles the response to a request, or the error instead of one. Returns true if the broker reported that it is not
    /// the coordinator.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: AdminRequest,
        result: Result<Response, Error>,
    ) -> bool {
        match request {
            AdminRequest::Call(number) => return self.handle_call(now, number, result),
            AdminRequest::Offsets(number) => self.offsets.handle_response(now, number, result),
            AdminRequest::OfGroups { call, request } => {
                self.groups.handle_response(now, (call, request), result, &mut self.rng);
            }
            AdminRequest::OfLeader { call, request } => {
                self.leaders.handle_response(now, (call, request), result, &mut self.rng);
            }
            AdminRequest::OfBroker { call, node } => {
                self.every_broker.handle_response(now, (call, node), result, &mut self.rng);
            }
        }
        false
    }

    fn handle_call(&mut self, now: Instant, number: u64, result: Result<Response, Error>) -> bool {
        let Some(call) = self.calls.get_mut(&number) else { return false };
        let api = call.operation.api().name();
        let verdict = match result {
            Ok(response) => call
                .operation
                .handle_response(response.body(), response.request.version)
                .map_err(|e| e.with_api(api)),
            Err(error) => call.operation.handle_failure(error),
        };
        let error = match verdict {
            Ok(Verdict::Done) => {
                self.finish(number, None);
                return false;
            }
            Ok(Verdict::Next) => {
                call.state = State::Due;
                return false;
            }
            Ok(Verdict::Failed(error)) => {
                let has_moved = says_that_coordinator_moved(&error);
                self.finish(number, Some(error));
                return has_moved;
            }
            Err(error) if call.attempts.ends_with(&error) => {
                self.finish(number, Some(error));
                return false;
            }
            Ok(Verdict::Again(error)) | Err(error) => error,
        };
        let has_moved = says_that_coordinator_moved(&error);
        call.state = State::Later(call.attempts.repeat(now, error, &mut self.rng));
        if call.operation.route().coordinator().is_none() {
            self.needs.push_back(Need::Metadata(Urgency::Now));
        }
        has_moved
    }

    fn finish(&mut self, number: u64, error: Option<Error>) {
        if let Some(call) = self.calls.remove(&number) {
            let api = call.operation.api().name();
            call.operation.finish(error.map(|error| error.with_api(api)));
        }
    }
}

impl Part for AdminCalls {
    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool {
        let errors = &changes.errors;
        self.every_broker.handle_metadata(metadata);
        let mut incomplete = self.offsets.handle_metadata(now, metadata, errors);
        incomplete |= self.leaders.handle_metadata(now, metadata, errors);
        let mut failed = Vec::new();
        for (number, call) in &mut self.calls {
            let Some((topic, partition)) = call.operation.partition() else { continue };
            if call.state != State::AfterMetadata {
                continue;
            }
            let count = metadata.topics.get(topic).map_or(0, |topic| topic.partitions.len());
            if metadata.leader(topic, partition).is_some() {
                call.state = State::Due;
            } else if let Some(error) = errors.iter().find(|error| error.name == *topic) {
                let is_unknown = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                let is_new = now - call.since < NEW_TOPIC_TIMEOUT;
                if if is_unknown { is_new } else { error.code.is_retriable() } {
                    call.attempts.last_error = Some(topic_error(error));
                    incomplete = true;
                } else {
                    failed.push((*number, topic_error(error)));
                }
            } else if count > 0 && !(0..count).contains(&usize::try_from(partition).unwrap_or(usize::MAX)) {
                failed.push((*number, unknown_partition(topic, partition, count)));
            } else {
                incomplete = true;
            }
        }
        for (number, error) in failed {
            self.finish(number, Some(error));
        }
        incomplete
    }

    fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>) {
        self.offsets.handle_timeout(now, unreachable);
        self.every_broker.handle_timeout(now);
        self.groups.handle_timeout(now);
        self.leaders.handle_timeout(now);
        let mut late = Vec::new();
        for (number, call) in &mut self.calls {
            if call.deadline <= now {
                late.push(*number);
            } else if matches!(call.state, State::Later(at) if at <= now) {
                call.state = State::Due;
            }
        }
        for number in late {
            let call = &mut self.calls.get_mut(&number);
            let last = call.as_mut().and_then(|call| call.attempts.last_error.take());
            let error =
                last.unwrap_or_else(|| Error::new(ErrorKind::TimedOut, "no broker responded in time"));
            self.finish(number, Some(error));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let others = earliest(self.offsets.poll_timeout(), self.every_broker.poll_timeout());
        let others = earliest(others, self.groups.poll_timeout());
        let others = earliest(others, self.leaders.poll_timeout());
        self.calls.values().fold(others, |deadline, call| {
            let later = match call.state {
                State::Later(at) => Some(at),
                _ => None,
            };
            earliest(deadline, earliest(later, Some(call.deadline)))
        })
    }

    fn advance(&mut self, now: Instant, metadata: &Metadata) {
        for (number, call) in &mut self.calls {
            if call.state != State::Due {
                continue;
            }
            let operation = &call.operation;
            let leader = operation.partition().map(|(topic, partition)| metadata.leader(topic, partition));
            if leader == Some(None) {
                call.state = State::AfterMetadata;
                self.needs.push_back(Need::Metadata(Urgency::Now));
                continue;
            }
            call.state = State::Asked;
            let left = call.deadline - now;
            let request = RoutedRequest {
                api: operation.api(),
                versions: operation.versions(),
                timeout: request_timeout(self.request_timeout, left),
                encode: operation
                    .encode(call.how.operation_timeout.unwrap_or(self.request_timeout.min(left))),
            };
            let leader = leader.flatten().map(|(leader, _)| leader);
            let node = leader.map(NodeId::get).or(call.how.broker);
            let route = node.map_or_else(|| operation.route(), Route::Node);
            let owner = RequestOwner::Admin(AdminRequest::Call(*number));
            self.needs.push_back(Need::Request { route, request, owner });
        }
        self.every_broker.advance(now);
        self.needs.extend(std::iter::from_fn(|| self.every_broker.poll_need()));
        self.groups.advance(now);
        self.needs.extend(std::iter::from_fn(|| self.groups.poll_need()));
        self.leaders.advance(now, metadata);
        self.needs.extend(std::iter::from_fn(|| self.leaders.poll_need()));
        self.offsets.advance(now, metadata);
        while let Some((number, leader, request)) = self.offsets.poll_request() {
            let owner = RequestOwner::Admin(AdminRequest::Offsets(number));
            self.needs.push_back(Need::Request { route: Route::Node(leader.get()), request, owner });
        }
        self.needs.extend(self.offsets.take_metadata_need().map(Need::Metadata));
    }

    fn add_topics(&self, topics: &mut Interest) {
        self.offsets.requested_topics(&mut topics.asked);
        self.leaders.requested_topics(&mut topics.asked);
        let of_calls = self.calls.values().filter_map(|call| call.operation.partition());
        topics.asked.extend(of_calls.map(|(topic, _)| Arc::clone(topic)));
    }

    fn close(&mut self) {
        for (_, call) in std::mem::take(&mut self.calls) {
            call.operation.finish(Some(Error::new(ErrorKind::Closed, "")));
        }
        self.offsets.close();
        self.every_broker.close();
        self.groups.close();
        self.leaders.close();
    }
}

impl Needs for AdminCalls {
    type Message = Infallible;

    fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }
}

/// Returns a duration as the protocol's number of milliseconds.
fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// Error: the broker reports a code.
fn check(code: ErrorCode, message: Option<&str>) -> Result<(), Error> {
    if code == ErrorCode::NONE { Ok(()) } else { Err(Error::broker(code, message)) }
}

/// Returns partitions by topic, in their order.
fn by_topic<'a>(partitions: impl IntoIterator<Item = &'a TopicPartition>) -> SortedMap<&'a str, Vec<i32>> {
    let mut topics = SortedMap::<&str, Vec<i32>>::new();
    for key in partitions {
        topics.entry(&key.topic).or_default().push(key.partition);
    }
    topics
}

/// Returns the error for a response that cannot be decoded.
pub(crate) fn undecodable(error: &ottla_protocol::primitive::DecodeError) -> Error {
    Error::new(ErrorKind::BadResponse, error.to_string())
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operation { operation, .. } => operation.api().name(),
            Self::EveryBroker { operation, .. } => operation.api().name(),
            Self::Groups { operation, .. } => operation.apis()[0].name(),
            Self::Partitions { operation, .. } => operation.api().name(),
            Self::ListOffsets(..) => "ListOffsets",
        })
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.operation.api().name(), self.state)
    }
}

#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_cluster;
#[cfg(test)]
mod scripted_descriptions;
#[cfg(test)]
mod scripted_items;
