//! Questions that only a partition's leader can answer: the first offset, the last, the first of a time.
//!
//! `OffsetLookups` gathers questions per leader, asks each leader once, and asks again where a leader moved.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::list_offsets::{
        ListOffsetsRequest, ListOffsetsResponse,
        request::{Partition as WantedPartition, Topic as WantedTopic},
        response::Partition as ListedPartition,
    },
    primitive::Reader,
};

use crate::{
    broker::connection::Response,
    cluster::{
        RoutedRequest,
        metadata::{Metadata, TopicError},
    },
    completion::Completion,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
};

/// Which offset is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OffsetSpec {
    /// The first that is still there.
    Earliest,
    /// The one that the next record will get.
    Latest,
    /// The first whose record is of this time, in milliseconds, or later.
    Timestamp(i64),
    /// That of the record with the highest timestamp.
    MaxTimestamp,
}

/// Offsets that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetQuery {
    /// What is asked, per partition.
    pub questions: Vec<(Arc<str>, i32, OffsetSpec)>,
    /// How long to try.
    pub timeout: Duration,
    /// The last offset is the one up to which transactions are decided.
    pub read_committed: bool,
}

/// The answers, in the order of the questions.
pub type OffsetAnswers = Vec<Result<ListedOffset, Error>>;

/// An offset as the leader told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; -1 if there is no such record.
    pub offset: i64,
    /// The record's timestamp; -1 where the question was not about one.
    pub timestamp: i64,
    /// The leader's epoch; -1 if unknown.
    pub leader_epoch: i32,
}

/// Names a lookup.
pub(crate) type LookupId = u64;

/// Lookups under way.
pub(crate) struct OffsetLookups {
    isolation_level: i8,
    request_timeout: Duration,
    retry_backoff: Duration,
    lookups: BTreeMap<LookupId, Lookup>,
    next_id: LookupId,
    asked: BTreeMap<u64, Vec<LookupId>>,
    next_request: u64,
    /// Something changed since the last look at the leaders.
    dirty: bool,
    /// When those are asked again that don't need newer metadata for it.
    next_retry: Instant,
    wants_metadata: bool,
    wants_metadata_soon: bool,
    requests: VecDeque<(u64, i32, RoutedRequest)>,
    finished: VecDeque<(LookupId, Result<ListedOffset, Error>)>,
    queries: BTreeMap<u64, Query>,
    next_query: u64,
}

/// Answers that are gathered for somebody.
#[derive(Debug)]
struct Query {
    answers: Vec<Option<Result<ListedOffset, Error>>>,
    missing: usize,
    completion: Completion<OffsetAnswers>,
}

#[derive(Debug)]
struct Lookup {
    topic: Arc<str>,
    partition: i32,
    spec: OffsetSpec,
    isolation_level: i8,
    since: Instant,
    deadline: Option<Instant>,
    state: LookupState,
    last_error: Option<Error>,
    /// The query that it is part of, and its place there; else the owner is told.
    query: Option<(u64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupState {
    /// To be asked as soon as the leader is known.
    Due,
    /// To be asked with metadata that is newer than now.
    AfterMetadata,
    /// To be asked again then.
    Later { at: Instant },
    /// In a request.
    Asked,
}

/// How long a topic may be unknown to the brokers before a call that asks about it fails: it may have been created just
/// now.
pub(crate) const TOPIC_PATIENCE: Duration = Duration::from_secs(1);
/// The wire's names for the first and the last offset, and for the record with the highest timestamp.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;

impl OffsetLookups {
    /// No lookups yet.
    pub(crate) const fn new(isolation_level: i8, request_timeout: Duration, retry_backoff: Duration) -> Self {
        Self {
            isolation_level,
            request_timeout,
            retry_backoff,
            lookups: BTreeMap::new(),
            next_id: 0,
            asked: BTreeMap::new(),
            next_request: 0,
            dirty: false,
            next_retry: Instant::ZERO,
            wants_metadata: false,
            wants_metadata_soon: false,
            requests: VecDeque::new(),
            finished: VecDeque::new(),
            queries: BTreeMap::new(),
            next_query: 0,
        }
    }

    /// Answers a query through its completion.
    pub(crate) fn start_query(
        &mut self,
        now: Instant,
        query: &OffsetQuery,
        completion: Completion<OffsetAnswers>,
    ) {
        if query.questions.is_empty() {
            return completion.complete(Vec::new());
        }
        let number = self.next_query;
        self.next_query += 1;
        for (index, (topic, partition, spec)) in query.questions.iter().enumerate() {
            let id = self.start(now, topic, *partition, *spec, Some(now + query.timeout));
            if let Some(lookup) = self.lookups.get_mut(&id) {
                lookup.query = Some((number, index));
                lookup.isolation_level = lookup.isolation_level.max(query.read_committed.into());
            }
        }
        let missing = query.questions.len();
        self.queries.insert(number, Query { answers: vec![None; missing], missing, completion });
    }

    /// The client closes: whoever waits for an answer gets none.
    pub(crate) fn close(&mut self) {
        self.lookups.clear();
        self.queries.clear();
    }

    /// Asks about a partition; without a deadline for as long as it takes.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        topic: &Arc<str>,
        partition: i32,
        spec: OffsetSpec,
        deadline: Option<Instant>,
    ) -> LookupId {
        let id = self.next_id;
        self.next_id += 1;
        let lookup = Lookup {
            topic: Arc::clone(topic),
            partition,
            spec,
            isolation_level: self.isolation_level,
            since: now,
            deadline,
            state: LookupState::Due,
            last_error: None,
            query: None,
        };
        self.lookups.insert(id, lookup);
        self.dirty = true;
        id
    }

    /// Nobody wants to know any more.
    pub(crate) fn cancel(&mut self, id: LookupId) {
        self.lookups.remove(&id);
    }

    /// The topics whose leaders are needed.
    pub(crate) fn wanted_topics(&self, names: &mut BTreeSet<Arc<str>>) {
        names.extend(self.lookups.values().map(|lookup| Arc::clone(&lookup.topic)));
    }

    /// Makes requests for what is due and whose leader is known.
    pub(crate) fn advance(&mut self, now: Instant, metadata: &Metadata) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let mut by_leader: BTreeMap<(i32, OffsetKindOrder, i8), Vec<LookupId>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (id, lookup) in &mut self.lookups {
            if lookup.state != LookupState::Due {
                continue;
            }
            match metadata.leader(&lookup.topic, lookup.partition) {
                // A request may name a partition only once: different questions go into different requests.
                Some((leader, _)) => {
                    let key = (leader, lookup.spec.order(), lookup.isolation_level);
                    by_leader.entry(key).or_default().push(*id);
                }
                None => unknown.push(*id),
            }
        }
        for id in unknown {
            let Some(lookup) = self.lookups.get_mut(&id) else { continue };
            let count = metadata.topics.get(&lookup.topic).map_or(0, |topic| topic.partitions.len());
            if lookup.is_beyond(count) && lookup.deadline.is_some() {
                let error = unknown_partition(&lookup.topic, lookup.partition, count);
                self.fail(id, error);
            } else {
                lookup.state = LookupState::AfterMetadata;
                self.wants_metadata = true;
            }
        }
        for ((leader, ..), ids) in by_leader {
            for ids in self.without_repetition(ids) {
                self.ask(now, metadata, leader, ids);
            }
        }
    }

    /// The next request: its number, the node, and what to send.
    pub(crate) fn poll_request(&mut self) -> Option<(u64, i32, RoutedRequest)> {
        self.requests.pop_front()
    }

    /// The next answer.
    pub(crate) fn poll_finished(&mut self) -> Option<(LookupId, Result<ListedOffset, Error>)> {
        self.finished.pop_front()
    }

    /// True, once, if metadata is needed that nobody asked for yet.
    pub(crate) fn take_wants_metadata(&mut self) -> bool {
        std::mem::take(&mut self.wants_metadata)
    }

    /// True, once, if a broker's refusal says that the metadata is old. All lookups share the wait for newer one: if each
    /// waited for itself, a client would ask more often the more partitions it has.
    pub(crate) fn take_wants_metadata_soon(&mut self) -> bool {
        std::mem::take(&mut self.wants_metadata_soon)
    }

    /// New metadata came; true if some leader is still unknown.
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
            if let Some(error) = errors.iter().find(|error| error.name == lookup.topic) {
                let patient = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                    && now - lookup.since < TOPIC_PATIENCE
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
            let count = metadata.topics.get(&lookup.topic).map_or(0, |topic| topic.partitions.len());
            if metadata.leader(&lookup.topic, lookup.partition).is_some() {
                lookup.state = LookupState::Due;
                self.dirty = true;
            } else if lookup.is_beyond(count) && lookup.deadline.is_some() {
                failed.push((*id, unknown_partition(&lookup.topic, lookup.partition, count)));
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

    /// An answer to a request, or why there is none.
    pub(crate) fn handle_answer(&mut self, now: Instant, request: u64, result: Result<Response, Error>) {
        let Some(ids) = self.asked.remove(&request) else { return };
        let answer = result.and_then(|response| {
            let version = response.request.version;
            ListOffsetsResponse::decode(&mut Reader::new(response.body()), version)
                .map(|answer| (answer, version))
                .map_err(|error| {
                    Error::new(ErrorKind::BadResponse, error.to_string()).with_api("ListOffsets")
                })
        });
        let (answer, version) = match answer {
            Ok(answer) => answer,
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
        let answers: BTreeMap<(&str, i32), &ListedPartition> = answer
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|p| ((&*topic.name, p.partition_index), p)))
            .collect();
        for id in ids {
            let Some(lookup) = self.lookups.get(&id) else { continue };
            match answers.get(&(&*lookup.topic, lookup.partition)) {
                Some(listed) if listed.error_code == ErrorCode::NONE => {
                    let offset = match version {
                        // Version 0 lists offsets of segments, newest first.
                        0 => listed.old_style_offsets.first().copied().unwrap_or(-1),
                        _ => listed.offset,
                    };
                    let (timestamp, leader_epoch) = (listed.timestamp, listed.leader_epoch);
                    self.finish(id, Ok(ListedOffset { offset, timestamp, leader_epoch }));
                }
                Some(listed) => self.handle_refusal(now, id, listed.error_code),
                None => {
                    let error = Error::new(ErrorKind::BadResponse, "the answer leaves the partition out");
                    self.fail(id, error.with_api("ListOffsets"));
                }
            }
        }
    }

    fn handle_refusal(&mut self, now: Instant, id: LookupId, code: ErrorCode) {
        let error = Error::broker(code, None).with_api("ListOffsets");
        if code.is_retriable() {
            // An epoch that the leader does not know may be of a topic that is no more.
            let refresh = code.invalidates_metadata() || code == ErrorCode::UNKNOWN_LEADER_EPOCH;
            self.retry(now, id, error, refresh);
        } else {
            self.fail(id, error);
        }
    }

    /// Fires what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
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
            let error = match self.lookups.get_mut(&id).and_then(|lookup| lookup.last_error.take()) {
                Some(error) => error,
                None => Error::new(ErrorKind::TimedOut, "the leader did not answer").with_api("ListOffsets"),
            };
            self.fail(id, error);
        }
    }

    /// When to call [`OffsetLookups::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.lookups.values().fold(None, |deadline, lookup| {
            let later = match lookup.state {
                LookupState::Later { at } => Some(at),
                _ => None,
            };
            earliest(deadline, earliest(later, lookup.deadline))
        })
    }

    fn ask(&mut self, now: Instant, metadata: &Metadata, leader: i32, ids: Vec<LookupId>) {
        let mut topics: BTreeMap<Arc<str>, Vec<WantedPartition>> = BTreeMap::new();
        let mut timeout = self.request_timeout;
        for id in &ids {
            let Some(lookup) = self.lookups.get_mut(id) else { continue };
            lookup.state = LookupState::Asked;
            if let Some(deadline) = lookup.deadline {
                timeout = timeout.min(deadline - now);
            }
            let epoch = metadata.leader(&lookup.topic, lookup.partition).map_or(-1, |(_, epoch)| epoch);
            topics.entry(Arc::clone(&lookup.topic)).or_default().push(WantedPartition {
                partition_index: lookup.partition,
                current_leader_epoch: epoch,
                timestamp: lookup.spec.wire(),
                ..WantedPartition::default()
            });
        }
        let first = ids.first().and_then(|id| self.lookups.get(id));
        let isolation_level = first.map_or(self.isolation_level, |lookup| lookup.isolation_level);
        let lowest_version = match first.map(|lookup| lookup.spec) {
            // Before version 1 a timestamp meant the segment, not the record.
            Some(OffsetSpec::Timestamp(_)) => 1,
            Some(OffsetSpec::MaxTimestamp) => 7,
            _ => 0,
        };
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let topics = topics.iter().map(|(name, partitions)| WantedTopic {
                name: name.to_string(),
                partitions: partitions.clone(),
            });
            // Before version 2 there were no transactions to be isolated from.
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

    /// Splits questions so that no list names a partition twice.
    fn without_repetition(&self, ids: Vec<LookupId>) -> Vec<Vec<LookupId>> {
        let mut named: BTreeMap<(&str, i32), usize> = BTreeMap::new();
        let mut lists: Vec<Vec<LookupId>> = Vec::new();
        for id in ids {
            let Some(lookup) = self.lookups.get(&id) else { continue };
            let times = named.entry((&lookup.topic, lookup.partition)).or_default();
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
            self.wants_metadata_soon = true;
        } else {
            if self.next_retry <= now {
                self.next_retry = now + self.retry_backoff;
            }
            lookup.state = LookupState::Later { at: self.next_retry };
        }
    }

    fn fail(&mut self, id: LookupId, error: Error) {
        self.finish(id, Err(error));
    }

    fn finish(&mut self, id: LookupId, result: Result<ListedOffset, Error>) {
        let Some(lookup) = self.lookups.remove(&id) else { return };
        let result = result.map_err(|error| error.with_partition(&*lookup.topic, lookup.partition));
        let Some((number, index)) = lookup.query else { return self.finished.push_back((id, result)) };
        let Some(query) = self.queries.get_mut(&number) else { return };
        query.answers[index] = Some(result);
        query.missing -= 1;
        if query.missing == 0
            && let Some(query) = self.queries.remove(&number)
        {
            query.completion.complete(query.answers.into_iter().flatten().collect());
        }
    }
}

impl Lookup {
    /// True if the topic is known and has no such partition. It may get one.
    fn is_beyond(&self, count: usize) -> bool {
        count > 0 && !(0..count as i32).contains(&self.partition)
    }
}

/// Orders questions so that those that may share a request come together.
type OffsetKindOrder = u8;

impl OffsetSpec {
    const fn wire(self) -> i64 {
        match self {
            Self::Earliest => EARLIEST,
            Self::Latest => LATEST,
            Self::Timestamp(ms) => ms,
            Self::MaxTimestamp => MAX_TIMESTAMP,
        }
    }

    const fn order(self) -> OffsetKindOrder {
        match self {
            Self::Earliest | Self::Latest => 0,
            Self::Timestamp(_) => 1,
            Self::MaxTimestamp => 2,
        }
    }
}

/// The error for a topic that an answer says can't be used.
pub(crate) fn topic_error(error: &TopicError) -> Error {
    let result = match error.code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
            Error::new(ErrorKind::UnknownTopic, "no broker knows it; create it, or check its name")
        }
        code => Error::broker(code, None).with_api("Metadata"),
    };
    result.with_topic(&*error.name)
}

/// The error for a partition that the topic does not have.
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
        let id = lookups.start(Instant::ZERO, &Arc::from("t"), 0, OffsetSpec::Earliest, None);
        lookups.handle_refusal(Instant::ZERO, id, ErrorCode::UNKNOWN_LEADER_EPOCH);
        assert!(!lookups.take_wants_metadata(), "not before the back-off");
        assert!(lookups.take_wants_metadata_soon());
    }
}
