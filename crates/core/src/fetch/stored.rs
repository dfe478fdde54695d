//! Offsets that are committed for a group, asked from and told to the group's coordinator.
//!
//! Questions for positions are gathered; calls of the application ([`GroupCall`]) go one after the other, so that a commit
//! that is tried again never overtakes a later one.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
        offset_commit::{OffsetCommitRequest, OffsetCommitResponse, request as commit},
        offset_fetch::{
            OffsetFetchRequest, OffsetFetchResponse,
            request::{Group, GroupTopic, OffsetFetchTopic},
        },
    },
    primitive::Reader,
};

use crate::{
    broker::connection::Response,
    cluster::{Route, RoutedRequest},
    completion::Completion,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
};

/// A committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredOffset {
    /// The next record to read.
    pub(crate) offset: i64,
    /// The leader epoch of the record before it; -1 if unknown.
    pub(crate) leader_epoch: i32,
}

/// An offset to be committed, or one that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOffset {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The next record to read.
    pub offset: i64,
    /// The leader epoch of the record before it; -1 if unknown.
    pub leader_epoch: i32,
    /// What the application says along with it.
    pub metadata: String,
}

/// What became of each offset that was to be committed.
pub type CommitAnswer = Result<Vec<Result<(), Error>>, Error>;
/// What is committed for each partition; `None` where nothing is.
pub type CommittedAnswer = Result<Vec<Result<Option<GroupOffset>, Error>>, Error>;

/// Something that the application wants of the group's coordinator.
#[derive(Debug)]
pub struct GroupCall {
    /// How long it may take in all.
    pub timeout: Duration,
    /// What.
    pub kind: GroupCallKind,
}

/// What an application wants of the group's coordinator.
#[derive(Debug)]
pub enum GroupCallKind {
    /// Commit these offsets, as no member of the group.
    Commit(Vec<GroupOffset>, Completion<CommitAnswer>),
    /// Tell what is committed for these partitions.
    Committed(Vec<(Arc<str>, i32)>, Completion<CommittedAnswer>),
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

/// Names a question.
pub(crate) type StoredId = u64;

/// Questions for the group's coordinator.
#[derive(Debug)]
pub(crate) struct StoredOffsets {
    group: String,
    /// Offsets of transactions under way are waited for.
    require_stable: bool,
    timeout: Duration,
    retry_backoff: Duration,
    coordinator: Coordinator,
    /// Nothing is asked before.
    resting_until: Option<Instant>,
    wanted: BTreeMap<StoredId, (Arc<str>, i32)>,
    asked: BTreeMap<u64, Asked>,
    next_id: StoredId,
    next_request: u64,
    finished: VecDeque<(StoredId, Result<Option<StoredOffset>, Error>)>,
    /// Calls that are not sent, with the time when they fail.
    calls: VecDeque<(Instant, GroupCallKind)>,
    /// A call is on its way.
    is_calling: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coordinator {
    Unknown,
    Finding,
    Known(i32),
}

#[derive(Debug)]
enum Asked {
    Coordinator,
    Offsets(Vec<(StoredId, (Arc<str>, i32))>),
    Call(Instant, GroupCallKind),
}

/// What an answer says of one partition: code, offset, leader epoch.
type Told = (ErrorCode, i64, i32);

impl StoredOffsets {
    /// No questions yet.
    pub(crate) const fn new(
        group: String,
        require_stable: bool,
        timeout: Duration,
        retry_backoff: Duration,
    ) -> Self {
        Self {
            group,
            require_stable,
            timeout,
            retry_backoff,
            coordinator: Coordinator::Unknown,
            resting_until: None,
            wanted: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_id: 0,
            next_request: 0,
            finished: VecDeque::new(),
            calls: VecDeque::new(),
            is_calling: false,
        }
    }

    /// Asks for a partition's offset.
    pub(crate) fn start(&mut self, topic: &Arc<str>, partition: i32) -> StoredId {
        let id = self.next_id;
        self.next_id += 1;
        self.wanted.insert(id, (Arc::clone(topic), partition));
        id
    }

    /// Does what the application wants as soon as it can be done.
    pub(crate) fn call(&mut self, now: Instant, call: GroupCall) {
        self.calls.push_back((now + call.timeout, call.kind));
    }

    /// Nobody wants to know any more.
    pub(crate) fn cancel(&mut self, id: StoredId) {
        self.wanted.remove(&id);
    }

    /// The client closes.
    pub(crate) fn close(&mut self) {
        self.wanted.clear();
        self.asked.clear();
        self.calls.clear();
    }

    /// The next request: its number, where to, and what to send.
    pub(crate) fn poll_request(&mut self, now: Instant) -> Option<(u64, Route, RoutedRequest)> {
        let can_call = !self.calls.is_empty() && !self.is_calling;
        if self.wanted.is_empty() && !can_call || self.resting_until.is_some() {
            return None;
        }
        let (route, asked, request) = match self.coordinator {
            Coordinator::Finding => return None,
            Coordinator::Unknown => {
                self.coordinator = Coordinator::Finding;
                (Route::Any, Asked::Coordinator, self.find_coordinator())
            }
            Coordinator::Known(node) if can_call => {
                let (deadline, kind) = self.calls.pop_front()?;
                self.is_calling = true;
                let mut request = match &kind {
                    GroupCallKind::Commit(offsets, _) => self.commit_offsets(offsets),
                    GroupCallKind::Committed(partitions, _) => self.fetch_offsets(partitions.iter()),
                };
                request.timeout = request.timeout.min(deadline.saturating_since(now));
                (Route::Node(node), Asked::Call(deadline, kind), request)
            }
            Coordinator::Known(node) => {
                let mut questions: Vec<_> = std::mem::take(&mut self.wanted).into_iter().collect();
                // A request may name a partition only once.
                questions.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
                let repeated = questions.extract_if(.., {
                    let mut last: Option<(Arc<str>, i32)> = None;
                    move |(_, key)| last.replace(key.clone()).as_ref() == Some(key)
                });
                self.wanted = repeated.collect();
                let request = self.fetch_offsets(questions.iter().map(|(_, key)| key));
                (Route::Node(node), Asked::Offsets(questions), request)
            }
        };
        let number = self.next_request;
        self.next_request += 1;
        self.asked.insert(number, asked);
        Some((number, route, request))
    }

    /// An answer to a request, or why there is none.
    pub(crate) fn handle_answer(&mut self, now: Instant, request: u64, result: Result<Response, Error>) {
        match self.asked.remove(&request) {
            Some(Asked::Coordinator) => self.handle_coordinator(now, result),
            Some(Asked::Offsets(questions)) => self.handle_offsets(now, questions, result),
            Some(Asked::Call(deadline, GroupCallKind::Commit(offsets, done))) => {
                self.is_calling = false;
                self.handle_commit(now, deadline, offsets, done, result);
            }
            Some(Asked::Call(deadline, GroupCallKind::Committed(partitions, done))) => {
                self.is_calling = false;
                self.handle_committed(now, deadline, partitions, done, result);
            }
            None => {}
        }
    }

    /// The next answer; `None` where no offset is committed.
    pub(crate) fn poll_finished(&mut self) -> Option<(StoredId, Result<Option<StoredOffset>, Error>)> {
        self.finished.pop_front()
    }

    /// Fires what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.resting_until.is_some_and(|until| until <= now) {
            self.resting_until = None;
        }
        let (late, waiting): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.calls).into_iter().partition(|(deadline, _)| *deadline <= now);
        self.calls = waiting;
        for (_, kind) in late {
            kind.fail(Error::new(ErrorKind::TimedOut, "the group's coordinator was not reached in time"));
        }
    }

    /// When to call [`StoredOffsets::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let resting = self.resting_until.filter(|_| !self.wanted.is_empty() || !self.calls.is_empty());
        earliest(resting, self.calls.iter().map(|(deadline, _)| *deadline).min())
    }

    fn find_coordinator(&self) -> RoutedRequest {
        let group = self.group.clone();
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            // From version 4 on several groups can be asked for at once.
            let mut request = FindCoordinatorRequest::default();
            match version {
                4.. => request.coordinator_keys = vec![group.clone()],
                _ => request.key = group.clone(),
            }
            request.encode(version, out)
        });
        let api = ApiKey::FindCoordinator;
        RoutedRequest { api, versions: api.versions(), timeout: self.timeout, encode }
    }

    fn fetch_offsets<'a>(&self, questions: impl Iterator<Item = &'a (Arc<str>, i32)>) -> RoutedRequest {
        let mut topics: BTreeMap<Arc<str>, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in questions {
            topics.entry(Arc::clone(topic)).or_default().push(*partition);
        }
        let (group_id, require_stable) = (self.group.clone(), self.require_stable);
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let mut request = OffsetFetchRequest { require_stable, ..OffsetFetchRequest::default() };
            let topics = topics.iter();
            if version > LAST_WITH_ONE_GROUP {
                let topics = topics.map(|(name, partitions)| GroupTopic {
                    name: name.to_string(),
                    partition_indexes: partitions.clone(),
                    ..GroupTopic::default()
                });
                let topics = Some(topics.collect());
                request.groups = vec![Group { group_id: group_id.clone(), topics, ..Group::default() }];
            } else {
                let topics = topics.map(|(name, partitions)| OffsetFetchTopic {
                    name: name.to_string(),
                    partition_indexes: partitions.clone(),
                });
                request.group_id.clone_from(&group_id);
                request.topics = Some(topics.collect());
            }
            request.encode(version, out)
        });
        let api = ApiKey::OffsetFetch;
        RoutedRequest { api, versions: FIRST_IN_KAFKA..=LAST_WITH_NAMES, timeout: self.timeout, encode }
    }

    fn handle_coordinator(&mut self, now: Instant, result: Result<Response, Error>) {
        let answer = result.and_then(|response| {
            FindCoordinatorResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("FindCoordinator", error.to_string()))
        });
        let found = answer.map(|answer| match answer.coordinators.first() {
            Some(found) => (found.error_code, found.node_id),
            None => (answer.error_code, answer.node_id),
        });
        match found {
            Ok((ErrorCode::NONE, node)) if node >= 0 => self.coordinator = Coordinator::Known(node),
            Ok((code, _)) if code.is_error() && !code.is_retriable() => {
                self.coordinator = Coordinator::Unknown;
                self.fail_wanted(&Error::broker(code, None).with_api("FindCoordinator"));
            }
            Err(error) if is_final(&error) => {
                self.coordinator = Coordinator::Unknown;
                self.fail_wanted(&error);
            }
            _ => self.find_another(now),
        }
    }

    fn handle_offsets(
        &mut self,
        now: Instant,
        questions: Vec<(StoredId, (Arc<str>, i32))>,
        result: Result<Response, Error>,
    ) {
        let answer = result.and_then(|response| {
            OffsetFetchResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetFetch", error.to_string()))
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_final(&error) => {
                self.wanted.extend(questions);
                return self.fail_wanted(&error);
            }
            Err(_) => {
                self.wanted.extend(questions);
                return self.find_another(now);
            }
        };
        let code = answer.groups.first().map_or(answer.error_code, |group| group.error_code);
        let told = told_offsets(&answer);
        for (id, key) in questions {
            let of_partition = told.get(&(&*key.0, key.1)).copied();
            let (code, offset, leader_epoch) = match (code, of_partition) {
                (ErrorCode::NONE, Some(told)) => told,
                (ErrorCode::NONE, None) => {
                    let error = bad_response("OffsetFetch", "the answer leaves the partition out".to_owned());
                    self.finished.push_back((id, Err(error)));
                    continue;
                }
                (code, _) => (code, -1, -1),
            };
            if code == ErrorCode::NONE {
                let found = (offset >= 0).then_some(StoredOffset { offset, leader_epoch });
                self.finished.push_back((id, Ok(found)));
            } else if code.is_retriable() {
                self.wanted.insert(id, key);
                self.find_another(now);
            } else {
                let error = Error::broker(code, None).with_api("OffsetFetch");
                self.finished.push_back((id, Err(error)));
            }
        }
    }

    /// The coordinator may have moved: it is looked for again after a while.
    fn find_another(&mut self, now: Instant) {
        self.coordinator = Coordinator::Unknown;
        self.resting_until = Some(now + self.retry_backoff);
    }

    fn fail_wanted(&mut self, error: &Error) {
        let failed = std::mem::take(&mut self.wanted).into_keys();
        self.finished.extend(failed.map(|id| (id, Err(error.clone()))));
        self.calls.drain(..).for_each(|(_, kind)| kind.fail(error.clone()));
    }

    fn commit_offsets(&self, offsets: &[GroupOffset]) -> RoutedRequest {
        let mut topics: BTreeMap<Arc<str>, Vec<commit::Partition>> = BTreeMap::new();
        for offset in offsets {
            topics.entry(Arc::clone(&offset.topic)).or_default().push(commit::Partition {
                partition_index: offset.partition,
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch,
                committed_metadata: Some(offset.metadata.clone()),
                ..commit::Partition::default()
            });
        }
        let group_id = self.group.clone();
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let topics = topics.iter().map(|(name, partitions)| commit::Topic {
                name: name.to_string(),
                partitions: partitions.clone(),
                ..commit::Topic::default()
            });
            let request = OffsetCommitRequest {
                group_id: group_id.clone(),
                topics: topics.collect(),
                ..OffsetCommitRequest::default()
            };
            request.encode(version, out)
        });
        let api = ApiKey::OffsetCommit;
        RoutedRequest { api, versions: FIRST_COMMIT..=LAST_WITH_NAMES, timeout: self.timeout, encode }
    }

    fn handle_commit(
        &mut self,
        now: Instant,
        deadline: Instant,
        offsets: Vec<GroupOffset>,
        done: Completion<CommitAnswer>,
        result: Result<Response, Error>,
    ) {
        let answer = result.and_then(|response| {
            OffsetCommitResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetCommit", error.to_string()))
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.try_again(now, deadline, GroupCallKind::Commit(offsets, done), error),
        };
        let told: BTreeMap<(&str, i32), ErrorCode> = answer
            .topics
            .iter()
            .flat_map(|topic| {
                let name = &*topic.name;
                topic.partitions.iter().map(move |told| ((name, told.partition_index), told.error_code))
            })
            .collect();
        if let Some(code) = told.values().copied().find(|code| is_coordinators(*code)) {
            let error = Error::broker(code, None);
            return self.try_again(now, deadline, GroupCallKind::Commit(offsets, done), error);
        }
        let results = offsets.iter().map(|offset| match told.get(&(&*offset.topic, offset.partition)) {
            Some(&ErrorCode::NONE) => Ok(()),
            Some(&code) => Err(Error::broker(code, None)
                .with_api("OffsetCommit")
                .with_partition(&*offset.topic, offset.partition)),
            None => Err(bad_response("OffsetCommit", "the answer leaves the partition out".to_owned())),
        });
        done.complete(Ok(results.collect()));
    }

    fn handle_committed(
        &mut self,
        now: Instant,
        deadline: Instant,
        partitions: Vec<(Arc<str>, i32)>,
        done: Completion<CommittedAnswer>,
        result: Result<Response, Error>,
    ) {
        let answer = result.and_then(|response| {
            OffsetFetchResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| bad_response("OffsetFetch", error.to_string()))
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                return self.try_again(now, deadline, GroupCallKind::Committed(partitions, done), error);
            }
        };
        let code = answer.groups.first().map_or(answer.error_code, |group| group.error_code);
        let told = told_offsets(&answer);
        let of_coordinator =
            told.values().map(|told| told.0).chain([code]).find(|code| is_coordinators(*code));
        if let Some(code) = of_coordinator {
            let error = Error::broker(code, None);
            return self.try_again(now, deadline, GroupCallKind::Committed(partitions, done), error);
        }
        if code.is_error() {
            return done.complete(Err(Error::broker(code, None).with_api("OffsetFetch")));
        }
        let metadata = told_metadata(&answer);
        let results = partitions.iter().map(|(topic, partition)| match told.get(&(&**topic, *partition)) {
            Some((ErrorCode::NONE, offset, leader_epoch)) => Ok((*offset >= 0).then(|| GroupOffset {
                topic: Arc::clone(topic),
                partition: *partition,
                offset: *offset,
                leader_epoch: *leader_epoch,
                metadata: metadata.get(&(&**topic, *partition)).map_or_else(String::new, |m| (*m).to_owned()),
            })),
            Some((code, ..)) => {
                Err(Error::broker(*code, None).with_api("OffsetFetch").with_partition(&**topic, *partition))
            }
            None => Err(bad_response("OffsetFetch", "the answer leaves the partition out".to_owned())),
        });
        done.complete(Ok(results.collect()));
    }

    /// A call that failed for the coordinator's sake comes first when a coordinator is known, unless its time is over.
    fn try_again(&mut self, now: Instant, deadline: Instant, kind: GroupCallKind, error: Error) {
        if is_final(&error) || error.kind() == ErrorKind::BadResponse || deadline <= now {
            return kind.fail(error);
        }
        self.calls.push_front((deadline, kind));
        self.find_another(now);
    }
}

/// Whether an error says that another coordinator is to be asked, or the same one later.
fn is_coordinators(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::UNSTABLE_OFFSET_COMMIT
    )
}

/// Earlier ones have a time for each offset, or go to ZooKeeper.
const FIRST_COMMIT: i16 = 2;

/// Version 0 asked ZooKeeper.
const FIRST_IN_KAFKA: i16 = 1;
/// Later ones ask for several groups at once.
const LAST_WITH_ONE_GROUP: i16 = 7;
/// Later ones name topics by id.
const LAST_WITH_NAMES: i16 = 9;

/// What an answer says, by topic and partition.
fn told_offsets(answer: &OffsetFetchResponse) -> BTreeMap<(&str, i32), Told> {
    let old = answer.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let told = (partition.error_code, partition.committed_offset, partition.committed_leader_epoch);
            ((&*topic.name, partition.partition_index), told)
        })
    });
    let new = answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            let told = (partition.error_code, partition.committed_offset, partition.committed_leader_epoch);
            ((&*topic.name, partition.partition_index), told)
        })
    });
    old.chain(new).collect()
}

/// What was said along with offsets, by topic and partition.
fn told_metadata(answer: &OffsetFetchResponse) -> BTreeMap<(&str, i32), &str> {
    let old = answer.topics.iter().flat_map(|topic| {
        let told = topic.partitions.iter().map(|told| (told.partition_index, &told.metadata));
        told.map(|(partition, metadata)| ((&*topic.name, partition), metadata))
    });
    let new = answer.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| {
        let told = topic.partitions.iter().map(|told| (told.partition_index, &told.metadata));
        told.map(|(partition, metadata)| ((&*topic.name, partition), metadata))
    });
    old.chain(new).filter_map(|(key, metadata)| Some((key, metadata.as_deref()?))).collect()
}

fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::UnsupportedVersion | ErrorKind::Bug)
}

fn bad_response(api: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::BadResponse, detail).with_api(api)
}
