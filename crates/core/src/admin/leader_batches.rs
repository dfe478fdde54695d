//! Calls about many partitions: one request to each leader for all of its partitions.
//!
//! ```text
//!  partition ──► Due ── one request per leader ──► Asked ──► result
//!                 ▲ └─ no leader: AfterMetadata      │
//!                 └───────────── Later ◄─────────────┘ retriable error, until the deadline of the call
//! ```

use std::{collections::VecDeque, fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{api::ApiKey, error_code::ErrorCode, vocabulary::TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use super::{How, attempts::Attempts, every_broker::Timing, item_results::results_in_order};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::{Metadata, TopicError},
        part::{AdminRequest, Need, RequestOwner, Urgency},
        route::{EncodeBody, Route, RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    offsets::list_offsets::{NEW_TOPIC_TIMEOUT, topic_error, unknown_partition},
    rng::Rng,
};

/// The results of partitions in a response.
pub(crate) type Results = Vec<(TopicPartition, Result<(), Error>)>;

/// One kind of call about many partitions.
pub(crate) trait PartitionsOperation: Send {
    /// Returns the API of the requests.
    fn api(&self) -> ApiKey;
    /// Returns the versions of the API that support the operation.
    fn versions(&self) -> RangeInclusive<i16> {
        self.api().versions()
    }
    /// Encodes the request for these partitions; the broker may take `timeout`.
    fn encode(&self, partitions: &[TopicPartition], timeout: Duration) -> EncodeBody;
    /// Reads the results of a response. Partitions that it omits are requested again.
    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Results, Error>;
    /// Completes the call. The partitions without a result fail with these errors.
    fn finish(self: Box<Self>, failed: SortedMap<TopicPartition, Error>);
}

/// The results that the partitions of a call have so far.
pub(super) struct Collected<T> {
    order: Vec<TopicPartition>,
    found: SortedMap<TopicPartition, Option<T>>,
    done: Completion<Vec<Result<T, Error>>>,
}

impl<T: Send> Collected<T> {
    /// Creates the results of these partitions, which are delivered in this order. No partition is named twice.
    pub(super) fn new(order: Vec<TopicPartition>, done: Completion<Vec<Result<T, Error>>>) -> Self {
        let found = order.iter().map(|key| (key.clone(), None)).collect();
        Self { order, found, done }
    }

    /// Takes the result of a partition in a response. Returns it without its value.
    pub(super) fn add(
        &mut self,
        key: TopicPartition,
        result: Result<T, Error>,
    ) -> (TopicPartition, Result<(), Error>) {
        let result = result.map(|value| {
            // A response may contain partitions that were not requested, and one twice.
            if let Some(found @ None) = self.found.get_mut(&key) {
                *found = Some(value);
            }
        });
        (key, result)
    }

    /// Delivers the results; the partitions without one fail with these errors.
    pub(super) fn finish(self, failed: SortedMap<TopicPartition, Error>) {
        let found = self.found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        self.done.complete(results_in_order(&self.order, found, failed));
    }
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(crate) struct LeaderBatches {
    calls: SortedMap<u64, Call>,
    next_number: u64,
    needs: VecDeque<Need>,
}

struct Call {
    operation: Box<dyn PartitionsOperation>,
    timing: Timing,
    how: How,
    since: Instant,
    /// The partitions without a result.
    partitions: SortedMap<TopicPartition, Partition>,
    failed: SortedMap<TopicPartition, Error>,
    /// The partitions of each request in flight.
    requests: SortedMap<u64, Vec<TopicPartition>>,
}

struct Partition {
    state: State,
    attempts: Attempts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Due,
    /// The partition waits for metadata with its leader.
    AfterMetadata,
    Asked,
    Later(Instant),
}

impl LeaderBatches {
    /// Starts a call about these partitions.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        operation: Box<dyn PartitionsOperation>,
        partitions: Vec<TopicPartition>,
        timing: Timing,
        how: How,
    ) {
        let partition = || Partition { state: State::Due, attempts: Attempts::new(timing.backoff) };
        let call = Call {
            operation,
            timing,
            how,
            since: now,
            partitions: partitions.into_iter().map(|key| (key, partition())).collect(),
            failed: SortedMap::new(),
            requests: SortedMap::new(),
        };
        self.calls.insert(self.next_number, call);
        self.next_number += 1;
        self.finish_complete();
    }

    /// Handles newer metadata. Returns true if it lacks the leader of a partition.
    pub(crate) fn handle_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> bool {
        let mut incomplete = false;
        for call in self.calls.values_mut() {
            incomplete |= call.handle_metadata(now, metadata, errors);
        }
        self.finish_complete();
        incomplete
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
        let Some(asked) = call.requests.remove(&request) else { return };
        if call.handle_response(now, &asked, result, rng) {
            self.needs.push_back(Need::Metadata(Urgency::Now));
        }
        self.finish_complete();
    }

    /// Repeats requests whose back-off has passed, and ends the calls that are late.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for call in self.calls.values_mut() {
            for partition in call.partitions.values_mut() {
                if matches!(partition.state, State::Later(at) if at <= now) {
                    partition.state = State::Due;
                }
            }
            if call.timing.deadline <= now {
                call.fail_rest(&Error::new(ErrorKind::TimedOut, "no broker responded in time"));
            }
        }
        self.finish_complete();
    }

    /// Returns when to call [`LeaderBatches::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.calls.values().fold(None, |first, call| {
            let later = call.partitions.values().filter_map(|partition| match partition.state {
                State::Later(at) => Some(at),
                State::Due | State::AfterMetadata | State::Asked => None,
            });
            earliest(first, earliest(Some(call.timing.deadline), later.min()))
        })
    }

    /// Sends the requests that are due.
    pub(crate) fn advance(&mut self, now: Instant, metadata: &Metadata) {
        for (number, call) in &mut self.calls {
            let (by_leader, is_incomplete) = call.due(metadata);
            if is_incomplete {
                self.needs.push_back(Need::Metadata(Urgency::Now));
            }
            for (node, partitions) in by_leader {
                let Timing { deadline, request_timeout: longest, .. } = call.timing;
                let left = deadline.saturating_since(now);
                let timeout = request_timeout(longest, left);
                let (api, versions) = (call.operation.api(), call.operation.versions());
                let operation_timeout = call.how.operation_timeout.unwrap_or(longest.min(left));
                let encode = call.operation.encode(&partitions, operation_timeout);
                let request = RoutedRequest { api, versions, timeout, encode };
                let owner = AdminRequest::OfLeader { call: *number, request: self.next_number };
                let owner = RequestOwner::Admin(owner);
                self.needs.push_back(Need::Request { route: Route::Node(node), request, owner });
                call.requests.insert(self.next_number, partitions);
                self.next_number += 1;
            }
        }
    }

    /// Returns the next need.
    pub(crate) fn poll_need(&mut self) -> Option<Need> {
        self.needs.pop_front()
    }

    /// Adds the topics of partitions without a result.
    pub(crate) fn requested_topics(&self, topics: &mut SortedSet<Arc<str>>) {
        let partitions = self.calls.values().flat_map(|call| call.partitions.keys());
        topics.extend(partitions.map(|key| Arc::clone(&key.topic)));
    }

    /// Ends all calls, because the client closes.
    pub(crate) fn close(&mut self) {
        self.needs.clear();
        for call in self.calls.values_mut() {
            call.partitions.values_mut().for_each(|partition| partition.attempts.last_error = None);
            call.fail_rest(&Error::new(ErrorKind::Closed, ""));
        }
        self.finish_complete();
    }

    fn finish_complete(&mut self) {
        for (_, call) in self.calls.extract(|_, call| call.partitions.is_empty()) {
            call.operation.finish(call.failed);
        }
    }
}

impl Call {
    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, errors: &[TopicError]) -> bool {
        let mut incomplete = false;
        let mut failed = Vec::new();
        let is_new = now - self.since < NEW_TOPIC_TIMEOUT;
        let waiting = self.partitions.iter_mut().filter(|(_, it)| it.state == State::AfterMetadata);
        for (key, partition) in waiting {
            let count = metadata.topics.get(&key.topic).map_or(0, |topic| topic.partitions.len());
            let is_within = usize::try_from(key.partition).is_ok_and(|number| number < count);
            if metadata.leader(&key.topic, key.partition).is_some() {
                partition.state = State::Due;
            } else if let Some(error) = errors.iter().find(|error| error.name == key.topic) {
                let is_unknown = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                if if is_unknown { is_new } else { error.code.is_retriable() } {
                    partition.attempts.last_error = Some(topic_error(error));
                    incomplete = true;
                } else {
                    failed.push((key.clone(), topic_error(error)));
                }
            } else if count > 0 && !is_within {
                failed.push((key.clone(), unknown_partition(&key.topic, key.partition, count)));
            } else {
                incomplete = true;
            }
        }
        failed.into_iter().for_each(|(key, error)| self.fail(key, error));
        incomplete
    }

    /// Returns the partitions that are due by leader, and whether the leader of one is unknown.
    fn due(&mut self, metadata: &Metadata) -> (SortedMap<i32, Vec<TopicPartition>>, bool) {
        let (mut by_leader, mut is_incomplete) = (SortedMap::<i32, Vec<TopicPartition>>::new(), false);
        for (key, partition) in self.partitions.iter_mut().filter(|(_, it)| it.state == State::Due) {
            let leader = metadata.leader(&key.topic, key.partition).map(|(leader, _)| leader.get());
            if let Some(node) = leader {
                partition.state = State::Asked;
                by_leader.entry(node).or_default().push(key.clone());
            } else {
                partition.state = State::AfterMetadata;
                is_incomplete = true;
            }
        }
        (by_leader, is_incomplete)
    }

    /// Returns true if newer metadata is needed.
    fn handle_response(
        &mut self,
        now: Instant,
        asked: &[TopicPartition],
        result: Result<Response, Error>,
        rng: &mut Rng,
    ) -> bool {
        let api = self.operation.api().name();
        let results = result.and_then(|response| {
            self.operation
                .handle_response(response.body(), response.request.version)
                .map_err(|error| error.with_api(api))
        });
        let omitted = Error::new(ErrorKind::BadResponse, "the response leaves the partition out");
        let (mut results, error) = match results {
            Ok(results) => (results.into_iter().collect::<SortedMap<_, _>>(), omitted.with_api(api)),
            Err(error) => (SortedMap::new(), error),
        };
        let mut is_stale = false;
        for key in asked {
            let result = results.remove(key).unwrap_or_else(|| Err(error.clone()));
            match result {
                Ok(()) => drop(self.partitions.remove(key)),
                Err(error) => is_stale |= self.handle_error(now, key, error.with_api(api), rng),
            }
        }
        is_stale
    }

    /// Returns true if the partition is requested again.
    fn handle_error(&mut self, now: Instant, key: &TopicPartition, error: Error, rng: &mut Rng) -> bool {
        let Some(partition) = self.partitions.get_mut(key) else { return false };
        if partition.attempts.ends_with(&error) {
            self.fail(key.clone(), error);
            return false;
        }
        partition.state = State::Later(partition.attempts.repeat(now, error, rng));
        true
    }

    fn fail(&mut self, key: TopicPartition, error: Error) {
        self.partitions.remove(&key);
        let error = error.with_partition(&*key.topic, key.partition);
        self.failed.insert(key, error);
    }

    /// Fails the partitions without a result with their last error, or with this one.
    fn fail_rest(&mut self, error: &Error) {
        let api = self.operation.api().name();
        for (key, partition) in std::mem::take(&mut self.partitions) {
            let error = partition.attempts.last_error.unwrap_or_else(|| error.clone().with_api(api));
            self.fail(key, error);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.partitions.iter().map(|(key, partition)| (key, partition.state));
        write!(f, "{} {:?}", self.operation.api().name(), partitions.collect::<Vec<_>>())
    }
}
