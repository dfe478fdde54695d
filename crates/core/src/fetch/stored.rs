//! Offsets that were committed for a group, as the group's coordinator knows them.

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
    error::{Error, ErrorKind},
    machine::Instant,
};

/// A committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredOffset {
    /// The next record to read.
    pub(crate) offset: i64,
    /// The leader epoch of the record before it; -1 if unknown.
    pub(crate) leader_epoch: i32,
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
        }
    }

    /// Asks for a partition's offset.
    pub(crate) fn start(&mut self, topic: &Arc<str>, partition: i32) -> StoredId {
        let id = self.next_id;
        self.next_id += 1;
        self.wanted.insert(id, (Arc::clone(topic), partition));
        id
    }

    /// Nobody wants to know any more.
    pub(crate) fn cancel(&mut self, id: StoredId) {
        self.wanted.remove(&id);
    }

    /// The client closes.
    pub(crate) fn close(&mut self) {
        self.wanted.clear();
        self.asked.clear();
    }

    /// The next request: its number, where to, and what to send.
    pub(crate) fn poll_request(&mut self) -> Option<(u64, Route, RoutedRequest)> {
        if self.wanted.is_empty() || self.resting_until.is_some() {
            return None;
        }
        let (route, asked, request) = match self.coordinator {
            Coordinator::Finding => return None,
            Coordinator::Unknown => {
                self.coordinator = Coordinator::Finding;
                (Route::Any, Asked::Coordinator, self.find_coordinator())
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
                let request = self.fetch_offsets(&questions);
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
    }

    /// When to call [`StoredOffsets::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.resting_until.filter(|_| !self.wanted.is_empty())
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

    fn fetch_offsets(&self, questions: &[(StoredId, (Arc<str>, i32))]) -> RoutedRequest {
        let mut topics: BTreeMap<Arc<str>, Vec<i32>> = BTreeMap::new();
        for (_, (topic, partition)) in questions {
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
    }
}

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

fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::UnsupportedVersion | ErrorKind::Bug)
}

fn bad_response(api: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::BadResponse, detail).with_api(api)
}
