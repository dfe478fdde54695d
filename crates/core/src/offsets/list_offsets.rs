//! Queries to a partition's leader: the first offset, the last one, the first one after a timestamp.
//!
//! `OffsetLookups` batches queries per leader, and repeats them when a leader moves.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::list_offsets::{
        ListOffsetsRequest, ListOffsetsResponse,
        request::{Partition as RequestPartition, Topic as RequestTopic},
        response::Partition as ListedPartition,
    },
    primitive::Reader,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::{Metadata, TopicError},
        part::Urgency,
        route::{RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    states::{See, number_of},
};

/// The offset to query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OffsetSpec {
    /// The first offset that still exists.
    Earliest,
    /// The offset of the next record to be written.
    Latest,
    /// The offset of the first record with this timestamp or a later one, in milliseconds.
    Timestamp(i64),
    /// The offset of the record with the highest timestamp.
    MaxTimestamp,
    /// The first offset on the leader's own disk; earlier records may be in tiered storage (KIP-405, Kafka 3.4).
    EarliestLocal,
    /// The last offset in tiered storage (KIP-1005, Kafka 3.9). A topic without tiered storage has none.
    LatestTiered,
    /// The first offset that is not in tiered storage yet (KIP-1023, Kafka 4.2). A topic without tiered storage has none.
    EarliestPendingUpload,
}

/// A query for offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetQuery {
    /// The offset to query, per partition.
    pub questions: Vec<(TopicPartition, OffsetSpec)>,
    /// The timeout of the query.
    pub timeout: Duration,
    /// If true, the last offset is the last stable offset.
    pub read_committed: bool,
    /// The number of times that a broker may refuse to return a partition's offset for a transient reason before that
    /// error is the result. With a limit, the query waits neither for a topic that the cluster does not know nor for the
    /// metadata that name another leader. `None` retries until the timeout.
    pub refusals: Option<u32>,
}

/// The results, in the order of the queries.
pub type OffsetResults = Vec<Result<ListedOffset, Error>>;

/// An offset as the leader reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedOffset {
    /// The offset; `None` if there is no such record.
    pub offset: Option<i64>,
    /// The record's timestamp; `None` if the query was not about a timestamp.
    pub timestamp: Option<i64>,
    /// The leader's epoch, if it is known.
    pub leader_epoch: Option<LeaderEpoch>,
}

/// The ID of a lookup.
pub(crate) type LookupId = u64;

/// The lookups that are due or in flight.
pub(crate) struct OffsetLookups {
    isolation_level: i8,
    request_timeout: Duration,
    retry_backoff: Duration,
    lookups: SortedMap<LookupId, Lookup>,
    next_id: LookupId,
    asked: SortedMap<u64, Vec<LookupId>>,
    next_request: u64,
    /// True if something changed since the leaders were last checked.
    dirty: bool,
    /// The time of the next retry of lookups that do not need newer metadata.
    next_retry: Instant,
    /// The need for metadata that was not reported yet.
    metadata_need: Option<Urgency>,
    requests: VecDeque<(u64, NodeId, RoutedRequest)>,
    finished: VecDeque<(LookupId, Result<ListedOffset, Error>)>,
    queries: SortedMap<u64, Query>,
    next_query: u64,
}

/// The results of a query that several lookups contribute to.
#[derive(Debug)]
struct Query {
    responses: Vec<Option<Result<ListedOffset, Error>>>,
    missing: usize,
    completion: Completion<OffsetResults>,
}

#[derive(Debug)]
struct Lookup {
    key: TopicPartition,
    spec: OffsetSpec,
    isolation_level: i8,
    since: Instant,
    deadline: Option<Instant>,
    state: LookupState,
    last_error: Option<Error>,
    /// The number of further refusals by a broker that are tolerated; `None` if it is unlimited.
    refusals: Option<u32>,
    /// The query of the lookup and its index there; without a query the result goes to `finished`.
    query: Option<(u64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupState {
    /// The lookup is sent as soon as the leader is known.
    Due,
    /// The lookup is sent with metadata newer than the current one.
    AfterMetadata,
    /// The lookup is retried at this time.
    Later { at: Instant },
    /// The lookup is part of a request in flight.
    Asked,
}

/// The duration for which a topic may be unknown to the brokers before a query about it fails: it may have been created
/// just now.
pub(crate) const NEW_TOPIC_TIMEOUT: Duration = Duration::from_secs(1);
/// Returns true if a broker says that it is not the one to ask.
const fn is_of_another_broker(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::REPLICA_NOT_AVAILABLE
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    )
}

/// The protocol's values for the first and the last offset, for the record with the highest timestamp, and for tiered storage.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

impl OffsetLookups {
    /// Shows the state.
    pub(crate) fn states(&self, see: &mut See<'_>) {
        for lookup in self.lookups.values() {
            see("lookup of an offset", number_of(&lookup.key), &lookup.state);
        }
    }

    /// Creates the state without lookups.
    pub(crate) const fn new(isolation_level: i8, request_timeout: Duration, retry_backoff: Duration) -> Self {
        Self {
            isolation_level,
            request_timeout,
            retry_backoff,
            lookups: SortedMap::new(),
            next_id: 0,
            asked: SortedMap::new(),
            next_request: 0,
            dirty: false,
            next_retry: Instant::ZERO,
            metadata_need: None,
            requests: VecDeque::new(),
            finished: VecDeque::new(),
            queries: SortedMap::new(),
            next_query: 0,
        }
    }

    /// Starts a query, which completes through its completion.
    pub(crate) fn start_query(
        &mut self,
        now: Instant,
        query: &OffsetQuery,
        completion: Completion<OffsetResults>,
    ) {
        if query.questions.is_empty() {
            return completion.complete(Vec::new());
        }
        let number = self.next_query;
        self.next_query += 1;
        for (index, (key, spec)) in query.questions.iter().enumerate() {
            let id = self.start(now, key.clone(), *spec, Some(now + query.timeout));
            if let Some(lookup) = self.lookups.get_mut(&id) {
                lookup.query = Some((number, index));
                lookup.refusals = query.refusals;
                lookup.isolation_level = lookup.isolation_level.max(query.read_committed.into());
            }
        }
        let missing = query.questions.len();
        self.queries.insert(number, Query { responses: vec![None; missing], missing, completion });
    }

    /// Closes the client: pending queries get no result.
    pub(crate) fn close(&mut self) {
        self.lookups.clear();
        self.queries.clear();
    }

    /// Starts the lookup of a partition's offset; without a deadline it is retried indefinitely.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        key: TopicPartition,
        spec: OffsetSpec,
        deadline: Option<Instant>,
    ) -> LookupId {
        let id = self.next_id;
        self.next_id += 1;
        let lookup = Lookup {
            key,
            spec,
            isolation_level: self.isolation_level,
            since: now,
            deadline,
            state: LookupState::Due,
            last_error: None,
            refusals: None,
            query: None,
        };
        self.lookups.insert(id, lookup);
        self.dirty = true;
        id
    }

    /// Cancels a lookup: its result is no longer needed.
    pub(crate) fn cancel(&mut self, id: LookupId) {
        self.lookups.remove(&id);
    }

    /// Adds the topics whose leaders are needed.
    pub(crate) fn requested_topics(&self, names: &mut SortedSet<Arc<str>>) {
        names.extend(self.lookups.values().map(|lookup| Arc::clone(&lookup.key.topic)));
    }

    /// Creates requests for the lookups that are due and whose leader is known.
    pub(crate) fn advance(&mut self, now: Instant, metadata: &Metadata) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let mut by_leader: SortedMap<(NodeId, OffsetKindOrder, i8), Vec<LookupId>> = SortedMap::new();
        let mut unknown = Vec::new();
        for (id, lookup) in &mut self.lookups {
            if lookup.state != LookupState::Due {
                continue;
            }
            let leader = metadata.leader(&lookup.key.topic, lookup.key.partition);
            match leader.map(|(leader, _)| leader) {
                // A request may name a partition only once: different queries of it go into different requests.
                Some(leader) => {
                    let key = (leader, lookup.spec.order(), lookup.isolation_level);
                    by_leader.entry(key).or_default().push(*id);
                }
                None => unknown.push(*id),
            }
        }
        for id in unknown {
            let Some(lookup) = self.lookups.get_mut(&id) else { continue };
            let count = metadata.topics.get(&lookup.key.topic).map_or(0, |topic| topic.partitions.len());
            if lookup.is_beyond(count) && lookup.deadline.is_some() {
                let error = unknown_partition(&lookup.key.topic, lookup.key.partition, count);
                self.fail(id, error);
            } else {
                lookup.state = LookupState::AfterMetadata;
                self.metadata_need = Some(Urgency::Now);
            }
        }
        for ((leader, ..), ids) in by_leader {
            for ids in self.without_repetition(ids) {
                self.ask(now, metadata, leader, ids);
            }
        }
    }

    /// Returns the next request: its number, the node and the request.
    pub(crate) fn poll_request(&mut self) -> Option<(u64, NodeId, RoutedRequest)> {
        self.requests.pop_front()
    }

    /// Returns the next result.
    pub(crate) fn poll_finished(&mut self) -> Option<(LookupId, Result<ListedOffset, Error>)> {
        self.finished.pop_front()
    }

    /// Returns, once, how soon metadata is needed, if it is.
    pub(crate) fn take_metadata_need(&mut self) -> Option<Urgency> {
        self.metadata_need.take()
    }

    /// Handles new metadata. Returns true if some leader is still unknown.
    pub(crate) fn handle_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> bool {
        let mut failed = Vec::new();
        let mut incomplete = false;
        for (id, lookup) in &mut self.lookups {
            if lookup.state != LookupState::AfterMetadata {
                continue;
            }
            if let Some(error) = errors.iter().find(|error| error.name == lookup.key.topic) {
                let patient = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                    && lookup.refusals.is_none()
                    && now - lookup.since < NEW_TOPIC_TIMEOUT
                    || error.code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION && error.code.is_retriable();
                let error = topic_error(error);
                if !patient && lookup.deadline.is_some() {
                    failed.push((*id, error));
                } else {
                    lookup.last_error = Some(error);
                    incomplete = true;
                }
                continue;
            }
            let count = metadata.topics.get(&lookup.key.topic).map_or(0, |topic| topic.partitions.len());
            if metadata.leader(&lookup.key.topic, lookup.key.partition).is_some() {
                lookup.state = LookupState::Due;
                self.dirty = true;
            } else if lookup.is_beyond(count) && lookup.deadline.is_some() {
                failed.push((*id, unknown_partition(&lookup.key.topic, lookup.key.partition, count)));
            } else {
                let detail = "the partition has no leader at the moment";
                lookup.last_error = Some(Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, Some(detail)));
                incomplete = true;
            }
        }
        for (id, error) in failed {
            self.fail(id, error);
        }
        incomplete
    }

    /// Handles the response to a request, or the error instead of one.
    pub(crate) fn handle_response(&mut self, now: Instant, request: u64, result: Result<Response, Error>) {
        let Some(ids) = self.asked.remove(&request) else { return };
        let response = result.and_then(|response| {
            let version = response.request.version;
            ListOffsetsResponse::decode(&mut Reader::new(response.body()), version)
                .map(|response| (response, version))
                .map_err(|error| {
                    Error::new(ErrorKind::BadResponse, error.to_string()).with_api("ListOffsets")
                })
        });
        let (response, version) = match response {
            Ok(response) => response,
            Err(error) => {
                for id in ids {
                    match error.kind() {
                        ErrorKind::UnsupportedVersion | ErrorKind::Bug => self.fail(id, error.clone()),
                        _ => self.retry(now, id, error.clone(), true),
                    }
                }
                return;
            }
        };
        let responses: SortedMap<(&str, i32), &ListedPartition> = response
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|p| ((&*topic.name, p.partition_index), p)))
            .collect();
        for id in ids {
            let Some(lookup) = self.lookups.get(&id) else { continue };
            match responses.get(&(&*lookup.key.topic, lookup.key.partition)) {
                Some(listed) if listed.error_code == ErrorCode::NONE => {
                    let offset = match version {
                        // Version 0 lists offsets of segments, newest first.
                        0 => listed.old_style_offsets.first().copied().unwrap_or(-1),
                        _ => listed.offset,
                    };
                    let known = |value: i64| (value >= 0).then_some(value);
                    let listed = ListedOffset {
                        offset: known(offset),
                        timestamp: known(listed.timestamp),
                        leader_epoch: LeaderEpoch::from_wire(listed.leader_epoch),
                    };
                    self.finish(id, Ok(listed));
                }
                Some(listed) => self.handle_refusal(now, id, listed.error_code),
                None => {
                    let error = Error::new(ErrorKind::BadResponse, "the response omits the partition");
                    self.fail(id, error.with_api("ListOffsets"));
                }
            }
        }
    }

    fn handle_refusal(&mut self, now: Instant, id: LookupId, code: ErrorCode) {
        let error = Error::broker(code, None).with_api("ListOffsets");
        let lookup = self.lookups.get_mut(&id);
        let left = lookup.and_then(|lookup| lookup.refusals.as_mut()).map(|left| {
            *left = if is_of_another_broker(code) { 0 } else { left.saturating_sub(1) };
            *left
        });
        // An epoch that the leader does not know may belong to a deleted topic.
        let refresh = code.invalidates_metadata() || code == ErrorCode::UNKNOWN_LEADER_EPOCH;
        if code.is_retriable() && left != Some(0) {
            self.retry(now, id, error, refresh);
        } else {
            if refresh {
                self.metadata_need = self.metadata_need.max(Some(Urgency::Soon));
            }
            self.fail(id, error);
        }
    }

    /// Handles the timers that are due. `unreachable` is the reason if no broker is connected.
    pub(crate) fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>) {
        let mut late = Vec::new();
        for (id, lookup) in &mut self.lookups {
            if lookup.deadline.is_some_and(|deadline| deadline <= now) {
                late.push(*id);
            } else if let LookupState::Later { at } = lookup.state
                && at <= now
            {
                lookup.state = LookupState::Due;
                self.dirty = true;
            }
        }
        for id in late {
            let last = self.lookups.get_mut(&id).and_then(|lookup| lookup.last_error.take());
            let error = match (last, unreachable) {
                (_, Some(cause)) => {
                    Error::new(ErrorKind::AllBrokersDown, cause.to_string()).with_api("ListOffsets")
                }
                (Some(error), None) => error,
                (None, None) => {
                    Error::new(ErrorKind::TimedOut, "the leader did not respond").with_api("ListOffsets")
                }
            };
            self.fail(id, error);
        }
    }

    /// Returns the time at which to call [`OffsetLookups::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.lookups.values().fold(None, |deadline, lookup| {
            let later = match lookup.state {
                LookupState::Later { at } => Some(at),
                _ => None,
            };
            earliest(deadline, earliest(later, lookup.deadline))
        })
    }

    fn ask(&mut self, now: Instant, metadata: &Metadata, leader: NodeId, ids: Vec<LookupId>) {
        let mut topics: SortedMap<Arc<str>, Vec<RequestPartition>> = SortedMap::new();
        let mut timeout = self.request_timeout;
        for id in &ids {
            let Some(lookup) = self.lookups.get_mut(id) else { continue };
            lookup.state = LookupState::Asked;
            if let Some(deadline) = lookup.deadline {
                timeout = timeout.min(deadline - now);
            }
            let leader = metadata.leader(&lookup.key.topic, lookup.key.partition);
            let epoch = LeaderEpoch::to_wire(leader.and_then(|(_, epoch)| epoch));
            topics.entry(Arc::clone(&lookup.key.topic)).or_default().push(RequestPartition {
                partition_index: lookup.key.partition,
                current_leader_epoch: epoch,
                timestamp: lookup.spec.wire(),
                ..RequestPartition::default()
            });
        }
        let first = ids.first().and_then(|id| self.lookups.get(id));
        let isolation_level = first.map_or(self.isolation_level, |lookup| lookup.isolation_level);
        let lowest_version = first.map_or(0, |lookup| lookup.spec.lowest_version());
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let timeout = request_timeout(self.request_timeout, timeout);
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let topics = topics.iter().map(|(name, partitions)| RequestTopic {
                name: name.to_string(),
                partitions: partitions.clone(),
            });
            // Before version 2 there is no isolation level.
            let isolation_level = if version < 2 { 0 } else { isolation_level };
            let request =
                ListOffsetsRequest { replica_id: -1, isolation_level, topics: topics.collect(), timeout_ms };
            request.encode(version, out)
        });
        let number = self.next_request;
        self.next_request += 1;
        self.asked.insert(number, ids);
        let api = ApiKey::ListOffsets;
        let versions = lowest_version..=*api.versions().end();
        self.requests.push_back((number, leader, RoutedRequest { api, versions, timeout, encode }));
    }

    /// Splits lookups so that no list names a partition twice.
    fn without_repetition(&self, ids: Vec<LookupId>) -> Vec<Vec<LookupId>> {
        let mut named: SortedMap<&TopicPartition, usize> = SortedMap::new();
        let mut lists: Vec<Vec<LookupId>> = Vec::new();
        for id in ids {
            let Some(lookup) = self.lookups.get(&id) else { continue };
            let times = named.entry(&lookup.key).or_default();
            if *times == lists.len() {
                lists.push(Vec::new());
            }
            lists[*times].push(id);
            *times += 1;
        }
        lists
    }

    fn retry(&mut self, now: Instant, id: LookupId, error: Error, refresh: bool) {
        let Some(lookup) = self.lookups.get_mut(&id) else { return };
        lookup.last_error = Some(error);
        if refresh {
            lookup.state = LookupState::AfterMetadata;
            self.metadata_need = self.metadata_need.max(Some(Urgency::Soon));
        } else {
            if self.next_retry <= now {
                self.next_retry = now + self.retry_backoff;
            }
            lookup.state = LookupState::Later { at: self.next_retry };
        }
    }

    /// Ends a lookup with an error, as a broker's refusal does.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, id: LookupId, error: Error) {
        self.fail(id, error);
    }

    fn fail(&mut self, id: LookupId, error: Error) {
        self.finish(id, Err(error));
    }

    fn finish(&mut self, id: LookupId, result: Result<ListedOffset, Error>) {
        let Some(lookup) = self.lookups.remove(&id) else { return };
        let result = result.map_err(|error| error.with_partition(&*lookup.key.topic, lookup.key.partition));
        let Some((number, index)) = lookup.query else { return self.finished.push_back((id, result)) };
        let Some(query) = self.queries.get_mut(&number) else { return };
        query.responses[index] = Some(result);
        query.missing -= 1;
        if query.missing == 0
            && let Some(query) = self.queries.remove(&number)
        {
            query.completion.complete(query.responses.into_iter().flatten().collect());
        }
    }
}

impl Lookup {
    /// True if the topic is known and does not have this partition. It may get one.
    fn is_beyond(&self, count: usize) -> bool {
        count > 0 && !(0..count as i32).contains(&self.key.partition)
    }
}

/// Orders lookups so that those that may share a request are adjacent.
type OffsetKindOrder = u8;

impl OffsetSpec {
    const fn wire(self) -> i64 {
        match self {
            Self::Earliest => EARLIEST,
            Self::Latest => LATEST,
            Self::Timestamp(ms) => ms,
            Self::MaxTimestamp => MAX_TIMESTAMP,
            Self::EarliestLocal => EARLIEST_LOCAL,
            Self::LatestTiered => LATEST_TIERED,
            Self::EarliestPendingUpload => EARLIEST_PENDING_UPLOAD,
        }
    }

    /// Returns the first version of ListOffsets that has this offset.
    const fn lowest_version(self) -> i16 {
        match self {
            Self::Earliest | Self::Latest => 0,
            // Before version 1 a timestamp selected the segment, not the record.
            Self::Timestamp(_) => 1,
            Self::MaxTimestamp => 7,
            Self::EarliestLocal => 8,
            Self::LatestTiered => 9,
            Self::EarliestPendingUpload => 11,
        }
    }

    const fn order(self) -> OffsetKindOrder {
        match self {
            Self::Earliest | Self::Latest => 0,
            Self::Timestamp(_) => 1,
            Self::MaxTimestamp => 2,
            Self::EarliestLocal => 3,
            Self::LatestTiered => 4,
            Self::EarliestPendingUpload => 5,
        }
    }
}

/// Returns the error for a topic that a response reports as unusable.
pub(crate) fn topic_error(error: &TopicError) -> Error {
    let result = match error.code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
            Error::new(ErrorKind::UnknownTopic, "no broker knows it; create it, or check its name")
        }
        code => Error::broker(code, None).with_api("Metadata"),
    };
    result.with_topic(&*error.name)
}

/// Returns the error for a partition that the topic does not have.
pub(crate) fn unknown_partition(topic: &str, partition: i32, count: usize) -> Error {
    let detail = format!("the topic has partitions 0 to {}", count - 1);
    Error::new(ErrorKind::UnknownPartition, detail).with_partition(topic, partition)
}

impl fmt::Debug for OffsetLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OffsetLookups").field("lookups", &self.lookups).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_that_meets_an_unknown_epoch_asks_for_metadata() {
        let mut lookups = OffsetLookups::new(0, Duration::from_secs(1), Duration::from_millis(100));
        let id = lookups.start(Instant::ZERO, TopicPartition::new("t", 0), OffsetSpec::Earliest, None);
        lookups.handle_refusal(Instant::ZERO, id, ErrorCode::UNKNOWN_LEADER_EPOCH);
        assert_eq!(lookups.take_metadata_need(), Some(Urgency::Soon), "not before the back-off");
        assert_eq!(lookups.take_metadata_need(), None);
    }
}
