//! Committed offsets of a group: queries the group's coordinator for them, and commits offsets.
//!
//! Queries of positions are batched into one request. Calls of the application ([`GroupCall`]) are sent one at a time,
//! so that a retried commit never overtakes a later one. The cluster actor finds the coordinator; the response handlers
//! return true if the broker reported that it is no longer the coordinator.
//!
//! # Pitfalls
//!
//! - A consumer without partitions has not requested metadata yet. The coordinator lookup finds a broker without
//!   metadata (`committed_offsets_are_used_when_the_coordinator_refuses_at_first`).
//! - A commit of a group member belongs to the generation in which it was made. If it were retried in a later
//!   generation, it could overwrite the offset of the partition's next consumer, unless the member held the partition all
//!   the time (`commit_is_not_repeated_in_another_generation`).
//! - Calls to the coordinator are sent one at a time: a retried commit must not overtake a later one
//!   (`retried_commit_does_not_overtake_a_later_one`).
//! - A subscribed consumer that is not a member at the moment may have partitions whose positions are queried: what another
//!   member commits meanwhile would be read again. The query waits for the membership
//!   (`partitions_assigned_outside_the_group_wait_for_a_membership`), and a response that arrives after its end is not used
//!   (`offsets_that_arrive_outside_the_group_are_queried_again`).
//! - A request timeout closes its connection. A call that is sent shortly before its deadline fails at the deadline, and
//!   its request is given a little longer (`late_commit_fails_at_its_deadline_and_keeps_its_connection`).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        offset_commit::OffsetCommitResponse,
        offset_fetch::{
            OffsetFetchRequest, OffsetFetchResponse,
            request::{Group, GroupTopic, OffsetFetchTopic},
        },
    },
    primitive::Reader,
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

pub use super::committer::{Committer, Held, HeldSince, MemberIdentity};
use super::{
    commit::{CommitCall, Progress, is_coordinators},
    committed_response::{metadata_in, offsets_in},
    committed_versions::{
        FIRST_IN_KAFKA, FIRST_WITH_IDS, FIRST_WITH_STABLE_OFFSETS, LAST_WITH_NAMES, LAST_WITH_ONE_GROUP,
    },
    queued_call::{Asked, CallTerms, QueuedCall, QueuedKind},
    topic_ids::{RequestIds, TopicIds},
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        metadata::Metadata,
        route::{CoordinatorKey, Route, RoutedRequest, request_timeout},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    stats::Window,
};

/// A committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    /// The offset of the next record to read.
    pub(crate) offset: i64,
    /// The leader epoch of the record before `offset`.
    pub(crate) leader_epoch: Option<LeaderEpoch>,
}

/// An offset to commit, or a committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOffset {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the record before `offset`, if it is known.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's metadata string of the commit.
    pub metadata: String,
    /// The ID of the topic whose records the offset is about. If the topic was recreated since, the offset is not
    /// committed for the new one. `None`: the topic that the partition is consumed from when the commit is called, or
    /// else the one that exists when the commit begins. Queries return `None`.
    pub topic_id: Option<Uuid>,
}

impl GroupOffset {
    /// Creates an offset without leader epoch, metadata and topic ID. `offset` is the offset of the next record to read.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32, offset: i64) -> Self {
        let (leader_epoch, metadata, topic_id) = (None, String::new(), None);
        Self { topic: topic.into(), partition, offset, leader_epoch, metadata, topic_id }
    }
}

/// The result of each offset to commit.
pub type CommitResult = Result<Vec<Result<(), Error>>, Error>;
/// The committed offset of each partition; `None` without one.
pub type CommittedResult = Result<Vec<Result<Option<GroupOffset>, Error>>, Error>;

/// A call of the application to the group's coordinator.
#[derive(Debug)]
pub struct GroupCall {
    /// The maximum duration of the call, including retries.
    pub timeout: Duration,
    /// The kind of call.
    pub kind: GroupCallKind,
}

/// The kinds of calls to the group's coordinator.
#[derive(Debug)]
pub enum GroupCallKind {
    /// Commits these offsets.
    Commit(Vec<GroupOffset>, Completion<CommitResult>),
    /// Fetches the committed offsets of these partitions.
    Committed(Vec<TopicPartition>, Completion<CommittedResult>),
}

impl GroupCallKind {
    /// Ends the call with an error.
    pub(crate) fn fail(self, error: Error) {
        match self {
            Self::Commit(_, done) => done.complete(Err(error.with_api("OffsetCommit"))),
            Self::Committed(_, done) => done.complete(Err(error.with_api("OffsetFetch"))),
        }
    }
}

/// The ID of a query for one partition's committed offset.
pub(crate) type QuestionId = u64;

/// The queries and calls for the group's coordinator.
#[derive(Debug)]
pub(crate) struct CommittedOffsets {
    group: Arc<str>,
    /// True if the coordinator returns only offsets that no open transaction may change.
    require_stable: bool,
    timeout: Duration,
    /// The first and the longest wait before a repetition.
    retry_backoff: (Duration, Duration),
    /// The number of waits in a row.
    failures: u32,
    /// The end of the back-off; no query is sent before.
    backoff_until: Option<Instant>,
    requested: SortedMap<QuestionId, TopicPartition>,
    asked: SortedMap<u64, Asked>,
    next_id: QuestionId,
    next_request: u64,
    finished: VecDeque<(QuestionId, Result<Option<CommittedOffset>, Error>)>,
    /// Offsets that the coordinator accepted, for the statistics of their partitions.
    committed: VecDeque<GroupOffset>,
    /// The identity under which offsets are committed.
    committer: Committer,
    /// Calls that are not sent yet.
    calls: VecDeque<QueuedCall>,
    /// True while a call is in flight.
    is_calling: bool,
    /// The IDs of topics, as newest metadata has them.
    ids: TopicIds,
    /// Topics whose ID the coordinator does not know: newer metadata is needed.
    outdated_topics: SortedSet<Arc<str>>,
    /// True if the coordinator refused a generation or epoch, so that the member has to learn the current one.
    must_check_membership: bool,
    /// From OffsetCommit to its response, in microseconds.
    pub(crate) commit_latency: Window,
}

impl CommittedOffsets {
    /// Creates the state without queries and calls.
    pub(crate) fn new(
        group: Arc<str>,
        require_stable: bool,
        timeout: Duration,
        retry_backoff: (Duration, Duration),
    ) -> Self {
        Self {
            group,
            require_stable,
            timeout,
            retry_backoff,
            failures: 0,
            backoff_until: None,
            requested: SortedMap::new(),
            asked: SortedMap::new(),
            next_id: 0,
            next_request: 0,
            finished: VecDeque::new(),
            committed: VecDeque::new(),
            committer: Committer::Nobody,
            calls: VecDeque::new(),
            is_calling: false,
            ids: TopicIds::default(),
            outdated_topics: SortedSet::new(),
            must_check_membership: false,
            commit_latency: Window::default(),
        }
    }

    /// Queries the committed offset of a partition.
    pub(crate) fn start(&mut self, key: TopicPartition) -> QuestionId {
        let id = self.next_id;
        self.next_id += 1;
        self.requested.insert(id, key);
        id
    }

    /// Queues a call. It is sent as soon as the calls before it are done. A commit without offsets is not sent: it
    /// completes when the commits before it have an outcome.
    pub(crate) fn call(&mut self, now: Instant, call: GroupCall) {
        let terms =
            CallTerms { deadline: now + call.timeout, committer: self.committer.clone(), stale: None };
        let kind = match call.kind {
            GroupCallKind::Commit(offsets, done) => {
                QueuedKind::Commit(CommitCall::new(offsets, &self.ids, done))
            }
            GroupCallKind::Committed(partitions, done) => QueuedKind::Committed(partitions, done),
        };
        self.calls.push_back(QueuedCall { terms, kind });
        self.complete_empty_commits();
    }

    /// Completes commits without offsets that no other commit precedes.
    fn complete_empty_commits(&mut self) {
        if self.asked.values().any(Asked::is_commit) {
            return;
        }
        let mut waiting = VecDeque::with_capacity(self.calls.len());
        let mut is_first = true;
        for call in self.calls.drain(..) {
            match call.kind {
                QueuedKind::Commit(commit) if is_first && commit.is_empty() => commit.complete(),
                kind => {
                    is_first &= !matches!(kind, QueuedKind::Commit(_));
                    waiting.push_back(QueuedCall { terms: call.terms, kind });
                }
            }
        }
        self.calls = waiting;
    }

    /// Sets the identity of later commits. Commits that were queued under the previous identity and are not sent yet
    /// fail.
    pub(crate) fn commit_as(&mut self, committer: Committer) {
        self.committer = committer;
    }

    /// Adopts the topic IDs of newer metadata. Offsets of later calls belong to these topics.
    pub(crate) fn handle_metadata(&mut self, metadata: &Metadata) {
        self.ids.update(metadata);
    }

    /// Returns the IDs of the topics that exist, by name.
    pub(crate) fn topic_ids(&self) -> Arc<SortedMap<Arc<str>, Uuid>> {
        self.ids.known()
    }

    /// Takes the topics whose ID the coordinator does not know.
    pub(crate) fn take_outdated_topics(&mut self) -> SortedSet<Arc<str>> {
        std::mem::take(&mut self.outdated_topics)
    }

    /// Cancels a query: its result is no longer needed.
    pub(crate) fn cancel(&mut self, id: QuestionId) {
        self.requested.remove(&id);
        for asked in self.asked.values_mut() {
            if let Asked::Offsets(questions, _) = asked {
                questions.remove(&id);
            }
        }
    }

    /// Fails everything that is pending, because the client closes.
    pub(crate) fn close(&mut self) {
        self.requested.clear();
        self.asked.clear();
        self.calls.clear();
    }

    /// Returns the next request to the group's coordinator, with its number.
    pub(crate) fn poll_request(&mut self, now: Instant) -> Option<(u64, RoutedRequest)> {
        if self.backoff_until.is_some() {
            return None;
        }
        let (asked, request) = match self.next_call() {
            Some(QueuedCall { mut terms, kind }) => {
                self.is_calling = true;
                (terms.committer, terms.stale) = (self.committer.clone(), None);
                let (mut request, ids) = match &kind {
                    QueuedKind::Commit(call) => {
                        (call.request(&self.group, &self.committer, self.timeout), RequestIds::default())
                    }
                    QueuedKind::Committed(partitions, _) => self.fetch_offsets(partitions.iter()),
                };
                let remaining = terms.deadline.saturating_since(now);
                request.timeout = request_timeout(request.timeout, remaining);
                (Asked::Call(QueuedCall { terms, kind }, ids), request)
            }
            None if self.requested.is_empty() || self.is_querying() => return None,
            // The offset would belong to no generation: the member that has the partition may commit more.
            None if self.committer == Committer::Outside => return None,
            None => {
                let questions = self.take_questions();
                let (request, ids) = self.fetch_offsets(questions.values());
                (Asked::Offsets(questions, ids), request)
            }
        };
        let number = self.next_request;
        self.next_request += 1;
        self.asked.insert(number, asked);
        Some((number, request))
    }

    /// Takes the next call that can be sent. Commits of an earlier generation fail: their partitions may belong to
    /// another member now.
    fn next_call(&mut self) -> Option<QueuedCall> {
        while !self.is_calling {
            let QueuedCall { terms, kind } = self.calls.front_mut()?;
            if let (Some(refusal), QueuedKind::Commit(call)) = (&terms.stale, kind)
                && terms.committer.must_wait(&self.committer)
                && !call.stop_waiting(&self.committer, refusal)
            {
                return None;
            }
            let (terms, is_outside) = (terms.clone(), self.committer == Committer::Outside);
            let QueuedCall { kind, .. } = self.calls.pop_front()?;
            match kind {
                QueuedKind::Commit(call) if call.is_empty() => call.complete(),
                QueuedKind::Commit(call) if is_outside => call.fail(outside().with_api("OffsetCommit")),
                QueuedKind::Commit(mut call) => {
                    if !call.refuse_outdated(&terms.committer, &self.committer, &self.ids) {
                        return Some(QueuedCall { terms, kind: QueuedKind::Commit(call) });
                    }
                    call.complete_refused();
                }
                kind => return Some(QueuedCall { terms, kind }),
            }
        }
        None
    }

    /// Returns the route to the group's coordinator.
    pub(crate) fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group)))
    }

    /// Returns true while a request with queries is in flight. Others wait for its response: a burst of rebalances must not
    /// become a burst of requests.
    fn is_querying(&self) -> bool {
        self.asked.values().any(|asked| matches!(asked, Asked::Offsets(..)))
    }

    /// Takes the queries that one request can carry: a request may name a partition only once.
    fn take_questions(&mut self) -> SortedMap<QuestionId, TopicPartition> {
        let mut named = SortedSet::new();
        let requested = std::mem::take(&mut self.requested).into_iter();
        let (questions, repeated) = requested.partition(|(_, key)| named.insert(key.clone()));
        self.requested = repeated;
        questions
    }

    /// Handles the response to a request, or the error instead of one. Returns true if the broker reported that it is
    /// no longer the coordinator.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: u64,
        result: Result<Response, Error>,
    ) -> bool {
        let failures = self.failures;
        let has_moved = match self.asked.remove(&request) {
            Some(Asked::Offsets(questions, ids)) => self.handle_offsets(now, questions, &ids, result),
            Some(Asked::Call(QueuedCall { terms, kind }, ids)) => {
                self.is_calling = false;
                match kind {
                    QueuedKind::Commit(call) => self.handle_commit(now, terms, call, result),
                    QueuedKind::Committed(partitions, done) => {
                        self.handle_committed(now, terms, partitions, &ids, done, result)
                    }
                }
            }
            Some(Asked::GivenUp { .. }) => {
                self.is_calling = false;
                if result.is_err() {
                    self.rest(now);
                }
                false
            }
            None => false,
        };
        if self.failures == failures {
            self.failures = 0;
        }
        self.complete_empty_commits();
        has_moved
    }

    /// Returns the next result of a query; the offset is `None` where none is committed.
    pub(crate) fn poll_finished(&mut self) -> Option<(QuestionId, Result<Option<CommittedOffset>, Error>)> {
        self.finished.pop_front()
    }

    /// Returns the next offset that the coordinator accepted.
    pub(crate) fn poll_committed(&mut self) -> Option<GroupOffset> {
        self.committed.pop_front()
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.backoff_until.is_some_and(|until| until <= now) {
            self.backoff_until = None;
        }
        let (late, waiting): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.calls).into_iter().partition(|call| call.terms.deadline <= now);
        self.calls = waiting;
        for call in late {
            let late = || Error::new(ErrorKind::TimedOut, "the group's coordinator was not reached in time");
            call.kind.fail(call.terms.stale.unwrap_or_else(late));
        }
        for asked in self.asked.values_mut().filter(|asked| asked.deadline().is_some_and(|at| at <= now)) {
            let late =
                "the group's coordinator did not respond in time; the request may have been carried out";
            asked.give_up(Error::new(ErrorKind::TimedOut, late));
        }
        self.complete_empty_commits();
    }

    /// Returns true once after the coordinator refused the generation or epoch of a commit.
    pub(crate) const fn take_must_check_membership(&mut self) -> bool {
        std::mem::replace(&mut self.must_check_membership, false)
    }

    /// Returns the time at which to call [`CommittedOffsets::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let backoff = self.backoff_until.filter(|_| !self.requested.is_empty() || !self.calls.is_empty());
        let in_flight = self.asked.values().filter_map(Asked::deadline);
        let deadlines = self.calls.iter().map(|call| call.terms.deadline).chain(in_flight);
        earliest(backoff, deadlines.min())
    }

    fn fetch_offsets<'a>(
        &self,
        partitions: impl Iterator<Item = &'a TopicPartition>,
    ) -> (RoutedRequest, RequestIds) {
        let mut topics: SortedMap<Arc<str>, Vec<i32>> = SortedMap::new();
        for key in partitions {
            topics.entry(Arc::clone(&key.topic)).or_default().push(key.partition);
        }
        let ids = self.ids.all(topics.keys());
        let last = if ids.is_some() { FIRST_WITH_IDS } else { LAST_WITH_NAMES };
        let ids = ids.unwrap_or_default();
        let sent_ids = ids.clone();
        let (group_id, require_stable) = (self.group.clone(), self.require_stable);
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            // A broker before Kafka 2.5 cannot wait for transactions: it returns the offsets that are committed now.
            let require_stable = require_stable && version >= FIRST_WITH_STABLE_OFFSETS;
            let mut request = OffsetFetchRequest { require_stable, ..OffsetFetchRequest::default() };
            let topics = topics.iter();
            if version > LAST_WITH_ONE_GROUP {
                let by_id = version >= FIRST_WITH_IDS;
                let topics = topics.map(|(name, partitions)| GroupTopic {
                    name: if by_id { String::new() } else { name.to_string() },
                    topic_id: if by_id { sent_ids.get(name) } else { Uuid::ZERO },
                    partition_indexes: partitions.clone(),
                });
                let topics = Some(topics.collect());
                request.groups = vec![Group { group_id: group_id.to_string(), topics, ..Group::default() }];
            } else {
                let topics = topics.map(|(name, partitions)| OffsetFetchTopic {
                    name: name.to_string(),
                    partition_indexes: partitions.clone(),
                });
                request.group_id = group_id.to_string();
                request.topics = Some(topics.collect());
            }
            request.encode(version, out)
        });
        let api = ApiKey::OffsetFetch;
        (RoutedRequest { api, versions: FIRST_IN_KAFKA..=last, timeout: self.timeout, encode }, ids)
    }

    fn handle_offsets(
        &mut self,
        now: Instant,
        questions: SortedMap<QuestionId, TopicPartition>,
        ids: &RequestIds,
        result: Result<Response, Error>,
    ) -> bool {
        let response = result.and_then(|response| {
            OffsetFetchResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetFetch", error.to_string()))
        });
        let response = match response {
            Ok(response) => response,
            Err(error) if is_final(&error) => {
                self.requested.extend(questions);
                self.fail_requested(&error);
                return false;
            }
            Err(_) => {
                self.requested.extend(questions);
                self.rest(now);
                return false;
            }
        };
        let code = response.groups.first().map_or(response.error_code, |group| group.error_code);
        let reported = offsets_in(&response, ids);
        let mut lost = false;
        for (id, key) in questions {
            let of_partition = reported.get(&(&*key.topic, key.partition)).copied();
            let (code, offset, leader_epoch) = match (code, of_partition) {
                (ErrorCode::NONE, Some(reported)) => reported,
                (ErrorCode::NONE, None) => {
                    let error = bad_response("OffsetFetch", "the response omits the partition".to_owned());
                    self.finished.push_back((id, Err(error)));
                    continue;
                }
                (code, _) => (code, -1, None),
            };
            if code == ErrorCode::NONE && self.committer == Committer::Outside {
                self.requested.insert(id, key);
            } else if code == ErrorCode::NONE {
                let found = (offset >= 0).then_some(CommittedOffset { offset, leader_epoch });
                self.finished.push_back((id, Ok(found)));
            } else if code.is_retriable() {
                lost |= has_moved(code);
                if code == ErrorCode::UNKNOWN_TOPIC_ID {
                    self.outdated_topics.insert(Arc::clone(&key.topic));
                }
                self.requested.insert(id, key);
                self.rest(now);
            } else {
                let error = Error::broker(code, None).with_api("OffsetFetch");
                self.finished.push_back((id, Err(error)));
            }
        }
        lost
    }

    /// Starts the back-off, which doubles until a response needs none.
    fn rest(&mut self, now: Instant) {
        let (first, longest) = self.retry_backoff;
        let wait = first.saturating_mul(1 << self.failures.min(20)).min(longest.max(first));
        self.failures = self.failures.saturating_add(1);
        self.backoff_until = Some(now + wait);
    }

    fn fail_requested(&mut self, error: &Error) {
        let failed = std::mem::take(&mut self.requested).into_keys();
        self.finished.extend(failed.map(|id| (id, Err(error.clone()))));
        self.calls.drain(..).for_each(|call| call.kind.fail(error.clone()));
    }

    fn handle_commit(
        &mut self,
        now: Instant,
        terms: CallTerms,
        mut call: CommitCall,
        result: Result<Response, Error>,
    ) -> bool {
        let response = result.and_then(|response| {
            self.commit_latency.record_micros(now.saturating_since(response.request.queued_at));
            OffsetCommitResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetCommit", error.to_string()))
        });
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                self.try_again(now, terms, QueuedKind::Commit(call), error);
                return false;
            }
        };
        let committers = (&terms.committer, &self.committer);
        match call.handle_response(&response, committers, &mut self.committed) {
            Progress::Done => call.complete(),
            Progress::Coordinator(code) => {
                self.try_again(now, terms, QueuedKind::Commit(call), Error::broker(code, None));
                return has_moved(code);
            }
            Progress::UnknownId => {
                self.outdated_topics.extend(call.topics_by_id().cloned());
                let error = Error::broker(ErrorCode::UNKNOWN_TOPIC_ID, None);
                self.try_again(now, terms, QueuedKind::Commit(call), error);
            }
            Progress::Stale(code) => {
                let error = Error::broker(code, None).with_api("OffsetCommit");
                self.repeat_later(now, terms, call, error);
            }
        }
        false
    }

    fn handle_committed(
        &mut self,
        now: Instant,
        terms: CallTerms,
        partitions: Vec<TopicPartition>,
        ids: &RequestIds,
        done: Completion<CommittedResult>,
        result: Result<Response, Error>,
    ) -> bool {
        let response = result.and_then(|response| {
            OffsetFetchResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetFetch", error.to_string()))
        });
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                self.try_again(now, terms, QueuedKind::Committed(partitions, done), error);
                return false;
            }
        };
        let code = response.groups.first().map_or(response.error_code, |group| group.error_code);
        let reported = offsets_in(&response, ids);
        let of_coordinator =
            reported.values().map(|reported| reported.0).chain([code]).find(|code| is_coordinators(*code));
        if reported.values().any(|reported| reported.0 == ErrorCode::UNKNOWN_TOPIC_ID) {
            self.outdated_topics.extend(partitions.iter().map(|key| Arc::clone(&key.topic)));
            let error = Error::broker(ErrorCode::UNKNOWN_TOPIC_ID, None);
            self.try_again(now, terms, QueuedKind::Committed(partitions, done), error);
            return false;
        }
        if let Some(code) = of_coordinator {
            let error = Error::broker(code, None);
            self.try_again(now, terms, QueuedKind::Committed(partitions, done), error);
            return has_moved(code);
        }
        if code.is_error() {
            done.complete(Err(Error::broker(code, None).with_api("OffsetFetch")));
            return false;
        }
        let metadata = metadata_in(&response, ids);
        let results = partitions.iter().map(|key| match reported.get(&(&*key.topic, key.partition)) {
            Some((ErrorCode::NONE, offset, leader_epoch)) => Ok((*offset >= 0).then(|| GroupOffset {
                leader_epoch: *leader_epoch,
                metadata: metadata.get(&(&*key.topic, key.partition)).copied().unwrap_or_default().to_owned(),
                ..GroupOffset::new(Arc::clone(&key.topic), key.partition, *offset)
            })),
            Some((code, ..)) => Err(Error::broker(*code, None)
                .with_api("OffsetFetch")
                .with_partition(&*key.topic, key.partition)),
            None => Err(bad_response("OffsetFetch", "the response omits the partition".to_owned())),
        });
        done.complete(Ok(results.collect()));
        false
    }

    /// Keeps a commit until the member is in a later generation or epoch, or fails it after its deadline.
    fn repeat_later(&mut self, now: Instant, mut terms: CallTerms, call: CommitCall, error: Error) {
        self.must_check_membership = true;
        if terms.deadline <= now {
            return call.fail(error);
        }
        terms.stale = Some(error);
        self.calls.push_front(QueuedCall { terms, kind: QueuedKind::Commit(call) });
    }

    /// Puts a call that failed because of the coordinator back to the front of the queue, or fails it after its
    /// deadline.
    fn try_again(&mut self, now: Instant, terms: CallTerms, kind: QueuedKind, error: Error) {
        if is_final(&error) || error.kind() == ErrorKind::BadResponse || terms.deadline <= now {
            return kind.fail(error);
        }
        self.calls.push_front(QueuedCall { terms, kind });
        self.rest(now);
    }
}

/// True if the error code means that the group has another coordinator.
const fn has_moved(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR)
}

/// The refusal of a commit outside the group.
fn outside() -> Error {
    let detail = "not sent: the consumer subscribes to topics and is not a member of its group at the moment; commit again what \
                  the consumer has after the next assignment";
    Error::new(ErrorKind::State, detail).with_refusal(ErrorCode::UNKNOWN_MEMBER_ID)
}

/// True if the same request would fail the same way.
fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Broker(code) => !code.is_retriable(),
        kind => matches!(kind, ErrorKind::UnsupportedVersion | ErrorKind::Bug),
    }
}

fn bad_response(api: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::BadResponse, detail).with_api(api)
}
