//! Administrative calls that ask every broker of the cluster, and merge the responses.
//!
//! ```text
//!  call ──► newer metadata ──► one request per broker ──► Done
//!                                    ▲       │
//!                                    └─ Later ◄ retriable error, until the deadline of the call
//! ```
//!
//! A broker that fails does not fail the call: the result of the others is delivered with the error of each failed broker.

use std::{collections::VecDeque, fmt, ops::RangeInclusive, time::Duration};

use ottla_protocol::{api::ApiKey, vocabulary::NodeId};
use ottla_sorted::SortedMap;

use super::attempts::Attempts;
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        part::{AdminRequest, Need, RequestOwner, Urgency},
        route::{EncodeBody, Route, RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    rng::Rng,
};

/// One kind of call to every broker.
pub(crate) trait BrokerOperation: Send {
    /// Returns the API of the requests.
    fn api(&self) -> ApiKey;
    /// Returns the versions of the API that support the operation.
    fn versions(&self) -> RangeInclusive<i16> {
        self.api().versions()
    }
    /// Encodes the request, which is the same for all brokers.
    fn encode(&self) -> EncodeBody;
    /// Adds the response of a broker to the result.
    fn handle_response(&mut self, node: NodeId, body: &[u8], version: i16) -> Result<(), Error>;
    /// Completes the call. `failed` has the brokers without a result; `error` fails the call as a whole.
    fn finish(self: Box<Self>, failed: Vec<(NodeId, Error)>, error: Option<Error>);
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(crate) struct EveryBroker {
    calls: SortedMap<u64, Call>,
    next_call: u64,
    needs: VecDeque<Need>,
}

struct Call {
    operation: Box<dyn BrokerOperation>,
    deadline: Instant,
    request_timeout: Duration,
    backoff: (Duration, Duration),
    /// The brokers without a result; `None` until metadata lists them.
    brokers: Option<SortedMap<NodeId, Broker>>,
    failed: Vec<(NodeId, Error)>,
}

#[derive(Debug)]
struct Broker {
    state: State,
    attempts: Attempts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due,
    Asked,
    Later(Instant),
}

/// The results of the brokers, each with its ID, by ID.
pub(super) type BrokerResults<T> = Vec<(i32, Result<T, Error>)>;

/// The results that brokers have so far, of a call whose result is that of each broker.
pub(super) struct OfBrokers<T> {
    found: BrokerResults<T>,
    done: Completion<Result<BrokerResults<T>, Error>>,
}

impl<T: Send> OfBrokers<T> {
    pub(super) const fn new(done: Completion<Result<BrokerResults<T>, Error>>) -> Self {
        Self { found: Vec::new(), done }
    }

    /// Takes the result of a broker.
    pub(super) fn add(&mut self, node: NodeId, result: T) {
        self.found.push((node.get(), Ok(result)));
    }

    /// Delivers the results, with the errors of the brokers that failed, or the error of the whole call.
    pub(super) fn finish(mut self, failed: Vec<(NodeId, Error)>, error: Option<Error>) {
        self.found.extend(failed.into_iter().map(|(node, error)| (node.get(), Err(error))));
        self.found.sort_by_key(|(node, _)| *node);
        self.done.complete(error.map_or(Ok(self.found), Err));
    }
}

/// The timing of a call to every broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// When the call fails.
    pub(crate) deadline: Instant,
    /// The longest time that one broker has to respond.
    pub(crate) request_timeout: Duration,
    /// The first and the longest wait before a failed request is repeated.
    pub(crate) backoff: (Duration, Duration),
}

impl Call {
    /// Takes the brokers to ask, unless they are known already.
    fn set_brokers(&mut self, nodes: impl Iterator<Item = NodeId>) {
        let broker = || Broker { state: State::Due, attempts: Attempts::new(self.backoff) };
        self.brokers.get_or_insert_with(|| nodes.map(|node| (node, broker())).collect());
    }

    fn is_done(&self) -> bool {
        self.brokers.as_ref().is_some_and(SortedMap::is_empty)
    }
}

impl EveryBroker {
    /// Starts a call to all brokers, or to `only` one.
    pub(crate) fn start(
        &mut self,
        operation: Box<dyn BrokerOperation>,
        timing: Timing,
        only: Option<NodeId>,
    ) {
        let Timing { deadline, request_timeout, backoff } = timing;
        let mut call =
            Call { operation, deadline, request_timeout, backoff, brokers: None, failed: Vec::new() };
        match only {
            Some(node) => call.set_brokers([node].into_iter()),
            // The brokers of older metadata may be gone, and it lacks brokers that were added since.
            None => self.needs.push_back(Need::Metadata(Urgency::Now)),
        }
        self.calls.insert(self.next_call, call);
        self.next_call += 1;
    }

    /// Starts the requests of calls that wait for the list of brokers.
    pub(crate) fn handle_metadata(&mut self, metadata: &Metadata) {
        if metadata.nodes.is_empty() {
            return;
        }
        self.calls.values_mut().for_each(|call| call.set_brokers(metadata.nodes.keys().copied()));
    }

    /// Handles the response of a broker, or the error instead of one.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        (number, node): (u64, NodeId),
        result: Result<Response, Error>,
        rng: &mut Rng,
    ) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let Some(brokers) = &mut call.brokers else { return };
        let Some(broker) = brokers.get_mut(&node) else { return };
        let api = call.operation.api().name();
        let result = result.and_then(|response| {
            call.operation
                .handle_response(node, response.body(), response.request.version)
                .map_err(|error| error.with_api(api))
        });
        match result {
            Ok(()) => drop(brokers.remove(&node)),
            Err(error) if error.is_retriable() => {
                broker.state = State::Later(broker.attempts.repeat(now, error, rng));
            }
            Err(error) => {
                brokers.remove(&node);
                call.failed.push((node, error));
            }
        }
        if call.is_done() {
            self.finish(number, None);
        }
    }

    /// Repeats requests whose back-off has passed, and ends the calls that are late.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let mut late = Vec::new();
        for (number, call) in &mut self.calls {
            if call.deadline <= now {
                late.push(*number);
            }
            for broker in call.brokers.iter_mut().flat_map(SortedMap::values_mut) {
                if matches!(broker.state, State::Later(at) if at <= now) {
                    broker.state = State::Due;
                }
            }
        }
        for number in late {
            let Some(call) = self.calls.get_mut(&number) else { continue };
            let timed_out = |detail| Error::new(ErrorKind::TimedOut, detail);
            let Some(brokers) = call.brokers.take() else {
                let error = timed_out("no broker reported the brokers of the cluster in time");
                self.finish(number, Some(error));
                continue;
            };
            let failed = brokers.into_iter().map(|(node, broker)| {
                (
                    node,
                    broker
                        .attempts
                        .last_error
                        .unwrap_or_else(|| timed_out("the broker did not respond in time")),
                )
            });
            call.failed.extend(failed);
            self.finish(number, None);
        }
    }

    /// Returns when to call [`EveryBroker::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.values().fold(None, |first, call| {
            let later = call.brokers.iter().flat_map(SortedMap::values).filter_map(|broker| {
                let State::Later(at) = broker.state else { return None };
                Some(at)
            });
            earliest(first, earliest(Some(call.deadline), later.min()))
        })
    }

    /// Sends the requests that are due.
    pub(crate) fn advance(&mut self, now: Instant) {
        for (number, call) in &mut self.calls {
            for (node, broker) in call.brokers.iter_mut().flatten() {
                if broker.state != State::Due {
                    continue;
                }
                broker.state = State::Asked;
                let request = RoutedRequest {
                    api: call.operation.api(),
                    versions: call.operation.versions(),
                    timeout: request_timeout(call.request_timeout, call.deadline.saturating_since(now)),
                    encode: call.operation.encode(),
                };
                let owner = AdminRequest::OfBroker { call: *number, node: *node };
                self.needs.push_back(Need::Request {
                    route: Route::Node(node.get()),
                    request,
                    owner: RequestOwner::Admin(owner),
                });
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
        for (_, call) in std::mem::take(&mut self.calls) {
            call.operation.finish(call.failed, Some(Error::new(ErrorKind::Closed, "")));
        }
    }

    fn finish(&mut self, number: u64, error: Option<Error>) {
        if let Some(mut call) = self.calls.remove(&number) {
            call.failed.sort_by_key(|(node, _)| *node);
            let api = call.operation.api().name();
            call.operation.finish(call.failed, error.map(|error| error.with_api(api)));
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.operation.api().name(), self.brokers)
    }
}
