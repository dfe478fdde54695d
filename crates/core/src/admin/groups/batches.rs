//! Calls about many groups: one lookup of all coordinators, and one request to each coordinator for all of its groups.
//!
//! ```text
//!  group ──► Unplaced ── FindCoordinator ──► Placed(node) ── request of the node's groups ──► result
//!               ▲                               ▲   │
//!               └── NOT_COORDINATOR, lost ──────┼───┤ retriable error: after a back-off, until the deadline
//!                                               └───┘ the group needs the next API
//! ```

use std::{collections::VecDeque, fmt, sync::Arc};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
    primitive::Reader,
    vocabulary::NodeId,
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    admin::{
        attempts::Attempts,
        describe::BrokerDescription,
        every_broker::Timing,
        item_results::{ItemResults, results_in_order},
        undecodable,
    },
    connection::Response,
    contract::{
        part::{AdminRequest, Need, RequestOwner, Urgency},
        route::{EncodeBody, Route, RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    rng::Rng,
};

/// One kind of call about many groups. Each group goes through the call's APIs until one has a result.
pub(crate) trait GroupsOperation: Send {
    /// Returns the APIs in the order in which they are tried.
    fn apis(&self) -> &'static [ApiKey];
    /// Encodes the request of an API for these groups.
    fn encode(&self, api: ApiKey, groups: &[Arc<str>]) -> EncodeBody;
    /// Reads the results of groups from a response. Groups that it omits are requested again. `coordinator` is unknown if
    /// the call names the broker.
    fn handle_response(
        &mut self,
        api: ApiKey,
        coordinator: Option<&BrokerDescription>,
        body: &[u8],
        version: i16,
    ) -> Result<Vec<(Arc<str>, Step)>, Error>;
    /// Completes the call. The groups without a result fail with these errors.
    fn finish(self: Box<Self>, failed: SortedMap<Arc<str>, Error>);
}

/// The next step of a group after a response.
pub(crate) enum Step {
    /// The operation has the group's result.
    Done,
    /// The next API may have a result, or the group fails with this error if there is none.
    NextApi(Error),
    /// The group fails with this error, or is requested again if the error is temporary.
    Failed(Error),
}

/// Returns the result of each group, in the order of the names. A broker may also have described a group of another
/// coordinator.
pub(super) fn in_order<T>(
    names: &[Arc<str>],
    found: SortedMap<Arc<str>, T>,
    failed: SortedMap<Arc<str>, Error>,
) -> ItemResults<String, T> {
    names.iter().map(ToString::to_string).zip(results_in_order(names, found, failed)).collect()
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(crate) struct GroupBatches {
    calls: SortedMap<u64, Call>,
    next_number: u64,
    needs: VecDeque<Need>,
}

struct Call {
    operation: Box<dyn GroupsOperation>,
    timing: Timing,
    /// The broker that gets all requests, instead of the groups' coordinators.
    broker: Option<NodeId>,
    /// The groups without a result.
    groups: SortedMap<Arc<str>, Group>,
    failed: SortedMap<Arc<str>, Error>,
    coordinators: SortedMap<NodeId, BrokerDescription>,
    requests: SortedMap<u64, Request>,
    lookup: Lookup,
}

struct Group {
    /// The index of the API that is tried.
    api: usize,
    coordinator: Option<NodeId>,
    state: State,
    attempts: Attempts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Due,
    Asked,
    Later(Instant),
}

/// The form of lookups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// Many groups share a request.
    Batched,
    /// The brokers look up one group per request.
    Single,
}

/// A request in flight: its groups, and its destination unless it is a lookup.
struct Request {
    groups: Vec<Arc<str>>,
    to: Option<(NodeId, usize)>,
}

/// The first version that looks up several keys at once (KIP-699).
const FIRST_WITH_BATCHES: i16 = 4;

impl GroupBatches {
    /// Starts a call about these groups, whose requests go to `broker` if there is one.
    pub(crate) fn start(
        &mut self,
        operation: Box<dyn GroupsOperation>,
        groups: Vec<Arc<str>>,
        timing: Timing,
        broker: Option<NodeId>,
    ) {
        let attempts = || Attempts::new(timing.backoff);
        let group = || Group { api: 0, coordinator: broker, state: State::Due, attempts: attempts() };
        let call = Call {
            operation,
            timing,
            broker,
            groups: groups.into_iter().map(|name| (name, group())).collect(),
            failed: SortedMap::new(),
            coordinators: SortedMap::new(),
            requests: SortedMap::new(),
            lookup: Lookup::Batched,
        };
        self.calls.insert(self.next_number, call);
        self.next_number += 1;
        // A coordinator may be a broker that older metadata lacks.
        self.needs.push_back(Need::Metadata(Urgency::Now));
    }

    /// Handles the response to a request, or the error instead of one.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        (number, request): (u64, u64),
        result: Result<Response, Error>,
        rng: &mut Rng,
    ) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let Some(Request { groups, to }) = call.requests.remove(&request) else { return };
        let steps = match to {
            None => call.handle_lookup(&groups, result),
            Some((node, api)) => call.handle_results(&groups, node, api, result),
        };
        let asked: SortedSet<Arc<str>> = groups.iter().cloned().collect();
        for (name, step) in steps {
            // A response may contain groups that were not requested.
            if asked.contains(&name) && call.groups.contains_key(&name) {
                call.take_step(now, name, step, rng);
            }
        }
        // Groups that the response omits.
        let omitted = Error::new(ErrorKind::BadResponse, "the response leaves the group out");
        for name in groups {
            if call.groups.get(&name).is_some_and(|group| group.state == State::Asked) {
                call.take_step(now, name, Step::Failed(omitted.clone()), rng);
            }
        }
        if call.groups.is_empty() {
            self.finish(number, None);
        }
    }

    /// Repeats requests whose back-off has passed, and ends the calls that are late.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let mut late = Vec::new();
        for (number, call) in &mut self.calls {
            if call.timing.deadline <= now {
                late.push(*number);
            }
            for group in call.groups.values_mut() {
                if matches!(group.state, State::Later(at) if at <= now) {
                    group.state = State::Due;
                }
            }
        }
        for number in late {
            self.finish(number, Some(&Error::new(ErrorKind::TimedOut, "no coordinator responded in time")));
        }
    }

    /// Returns when to call [`GroupBatches::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.values().fold(None, |first, call| {
            let later = call.groups.values().filter_map(|group| match group.state {
                State::Later(at) => Some(at),
                _ => None,
            });
            earliest(first, earliest(Some(call.timing.deadline), later.min()))
        })
    }

    /// Sends the requests that are due.
    pub(crate) fn advance(&mut self, now: Instant) {
        for (number, call) in &mut self.calls {
            for request in call.due() {
                let routed = call.routed(&request, now);
                let route = request.to.map_or(Route::Any, |(node, _)| Route::Node(node.get()));
                let owner = AdminRequest::OfGroups { call: *number, request: self.next_number };
                call.requests.insert(self.next_number, request);
                self.next_number += 1;
                let owner = RequestOwner::Admin(owner);
                self.needs.push_back(Need::Request { route, request: routed, owner });
            }
        }
    }

    /// Returns the next need.
    pub(crate) fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }

    /// Ends all calls, because the client closes.
    pub(crate) fn close(&mut self) {
        self.needs.clear();
        let error = Error::new(ErrorKind::Closed, "");
        for number in self.calls.keys().copied().collect::<Vec<_>>() {
            self.finish(number, Some(&error));
        }
    }

    fn finish(&mut self, number: u64, error: Option<&Error>) {
        let Some(mut call) = self.calls.remove(&number) else { return };
        for (name, group) in call.groups {
            let error = group.attempts.last_error.or_else(|| error.cloned());
            call.failed.extend(error.map(|error| (name, error)));
        }
        call.operation.finish(call.failed);
    }
}

impl Call {
    /// Returns the requests that are due: lookups, and one per coordinator and API.
    fn due(&mut self) -> Vec<Request> {
        let mut lookups = Vec::new();
        let mut by_node = SortedMap::<(NodeId, usize), Vec<Arc<str>>>::new();
        for (name, group) in self.groups.iter_mut().filter(|(_, group)| group.state == State::Due) {
            group.state = State::Asked;
            match group.coordinator {
                Some(node) => by_node.entry((node, group.api)).or_default().push(Arc::clone(name)),
                None => lookups.push(Arc::clone(name)),
            }
        }
        let mut requests: Vec<Request> =
            by_node.into_iter().map(|(to, groups)| Request { groups, to: Some(to) }).collect();
        let size = if self.lookup == Lookup::Batched { lookups.len().max(1) } else { 1 };
        requests.extend(lookups.chunks(size).map(|groups| Request { groups: groups.to_vec(), to: None }));
        requests
    }

    fn routed(&self, request: &Request, now: Instant) -> RoutedRequest {
        let left = self.timing.deadline.saturating_since(now);
        let timeout = request_timeout(self.timing.request_timeout, left);
        if let Some((_, index)) = request.to {
            let api = self.api(index);
            let encode = self.operation.encode(api, &request.groups);
            return RoutedRequest { api, versions: api.versions(), timeout, encode };
        }
        let api = ApiKey::FindCoordinator;
        let names: Vec<String> = request.groups.iter().map(ToString::to_string).collect();
        let versions = match self.lookup {
            Lookup::Batched => FIRST_WITH_BATCHES..=*api.versions().end(),
            Lookup::Single => *api.versions().start()..=FIRST_WITH_BATCHES - 1,
        };
        let encode: EncodeBody = Box::new(move |version, out| {
            let mut request = FindCoordinatorRequest::default();
            if version >= FIRST_WITH_BATCHES {
                request.coordinator_keys.clone_from(&names);
            } else {
                request.key = names.first().cloned().unwrap_or_default();
            }
            request.encode(version, out)
        });
        RoutedRequest { api, versions, timeout, encode }
    }

    fn api(&self, index: usize) -> ApiKey {
        let apis = self.operation.apis();
        apis[index.min(apis.len() - 1)]
    }

    fn handle_lookup(
        &mut self,
        groups: &[Arc<str>],
        result: Result<Response, Error>,
    ) -> Vec<(Arc<str>, Step)> {
        let response = result.and_then(|response| {
            let version = response.request.version;
            let decoded = FindCoordinatorResponse::decode(&mut Reader::new(response.body()), version);
            decoded.map(|decoded| (decoded, version)).map_err(|error| undecodable(&error))
        });
        let (response, version) = match response {
            Ok(response) => response,
            Err(error) => {
                if error.kind() == ErrorKind::UnsupportedVersion && self.lookup == Lookup::Batched {
                    self.lookup = Lookup::Single;
                    groups.iter().for_each(|name| self.set_due(name));
                    return Vec::new();
                }
                let error = error.with_api(ApiKey::FindCoordinator.name());
                return groups.iter().map(|name| (Arc::clone(name), Step::Failed(error.clone()))).collect();
            }
        };
        let mut steps = Vec::new();
        if version < FIRST_WITH_BATCHES {
            let FindCoordinatorResponse { error_code, node_id, host, port, error_message, .. } = response;
            let found = (error_code, error_message, node_id, host, port);
            steps.extend(groups.first().and_then(|name| self.place(name, found)));
            return steps;
        }
        for one in response.coordinators {
            let found = (one.error_code, one.error_message, one.node_id, one.host, one.port);
            steps.extend(self.place(&Arc::from(one.key), found));
        }
        steps
    }

    /// Notes the coordinator of a group, or returns the failure of its lookup.
    fn place(
        &mut self,
        name: &Arc<str>,
        (code, message, node, host, port): (ErrorCode, Option<String>, i32, String, i32),
    ) -> Option<(Arc<str>, Step)> {
        let group = self.groups.get_mut(name)?;
        if code != ErrorCode::NONE {
            let error = Error::broker(code, message.as_deref()).with_api(ApiKey::FindCoordinator.name());
            return Some((Arc::clone(name), Step::Failed(error)));
        }
        let Some(id) = NodeId::from_wire(node) else {
            let error = Error::new(ErrorKind::BadResponse, format!("node {node} can't be a coordinator"));
            return Some((Arc::clone(name), Step::Failed(error)));
        };
        let broker = BrokerDescription { id: node, host, port, rack: None, is_fenced: false };
        self.coordinators.insert(id, broker);
        (group.coordinator, group.state) = (Some(id), State::Due);
        None
    }

    fn handle_results(
        &mut self,
        groups: &[Arc<str>],
        node: NodeId,
        index: usize,
        result: Result<Response, Error>,
    ) -> Vec<(Arc<str>, Step)> {
        let api = self.api(index);
        let steps = result.and_then(|response| {
            let (body, version) = (response.body(), response.request.version);
            self.operation.handle_response(api, self.coordinators.get(&node), body, version)
        });
        steps.unwrap_or_else(|error| {
            let error = error.with_api(api.name());
            let step = || match error.kind() {
                ErrorKind::UnsupportedVersion => Step::NextApi(error.clone()),
                _ => Step::Failed(error.clone()),
            };
            groups.iter().map(|name| (Arc::clone(name), step())).collect()
        })
    }

    fn set_due(&mut self, name: &Arc<str>) {
        if let Some(group) = self.groups.get_mut(name) {
            group.state = State::Due;
        }
    }

    fn take_step(&mut self, now: Instant, name: Arc<str>, step: Step, rng: &mut Rng) {
        let apis = self.operation.apis().len();
        let Some(group) = self.groups.get_mut(&name) else { return };
        let error = match step {
            Step::Done => {
                self.groups.remove(&name);
                return;
            }
            Step::NextApi(_) if group.api + 1 < apis => {
                group.api += 1;
                group.state = State::Due;
                return;
            }
            Step::NextApi(error) | Step::Failed(error) => error,
        };
        if group.attempts.ends_with(&error) {
            self.groups.remove(&name);
            self.failed.insert(name, error);
            return;
        }
        // A coordinator that loads its groups stays the coordinator.
        if error.kind() != ErrorKind::Broker(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) {
            group.coordinator = self.broker;
        }
        group.state = State::Later(group.attempts.repeat(now, error, rng));
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} groups", self.operation.apis()[0].name(), self.groups.len())
    }
}
