//! Whether a log was cut off behind what was read of it (KIP-320): a new leader is asked where the epoch ended in which the
//! last record was written, before anything is fetched from it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::offset_for_leader_epoch::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        request::{Partition as WantedPartition, Topic as WantedTopic},
    },
    primitive::Reader,
};

use crate::{
    broker::connection::Response,
    cluster::RoutedRequest,
    error::{Error, ErrorKind},
};

/// What is asked about one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EpochQuestion {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    /// The leader's epoch.
    pub(crate) leader_epoch: i32,
    /// The epoch in which the last record that was read was written.
    pub(crate) position_epoch: i32,
}

/// What a leader knows of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EpochAnswer {
    /// The newest epoch that is not after the one asked for, and the offset at which it ended.
    End { epoch: i32, offset: i64 },
    /// The leader has no record of that epoch or an older one.
    Unknown,
    /// The broker can't tell, and never will.
    NoAnswer,
    /// Ask again, with newer metadata if so.
    Later { refresh: bool },
}

/// Names a question.
pub(crate) type CheckId = u64;

/// Questions under way.
#[derive(Debug)]
pub(crate) struct EpochChecks {
    timeout: Duration,
    next_id: CheckId,
    due: BTreeMap<i32, Vec<(CheckId, EpochQuestion)>>,
    asked: BTreeMap<u64, Vec<(CheckId, EpochQuestion)>>,
    next_request: u64,
    finished: VecDeque<(CheckId, EpochAnswer)>,
}

/// Before version 3 brokers answer only to other brokers.
const FIRST_FOR_CONSUMERS: i16 = 3;

impl EpochChecks {
    /// No questions yet; a broker may take `timeout` to answer one.
    pub(crate) const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            next_id: 0,
            due: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_request: 0,
            finished: VecDeque::new(),
        }
    }

    /// Asks a leader about a partition.
    pub(crate) fn start(&mut self, leader: i32, question: EpochQuestion) -> CheckId {
        let id = self.next_id;
        self.next_id += 1;
        self.due.entry(leader).or_default().push((id, question));
        id
    }

    /// The next request, with all questions for one leader: its number, the node, and what to send.
    pub(crate) fn poll_request(&mut self) -> Option<(u64, i32, RoutedRequest)> {
        let mut entry = self.due.first_entry()?;
        let leader = *entry.key();
        // A request may name a partition only once.
        let mut named = BTreeSet::new();
        let (questions, rest): (Vec<_>, Vec<_>) = std::mem::take(entry.get_mut())
            .into_iter()
            .partition(|(_, question)| named.insert((Arc::clone(&question.topic), question.partition)));
        if rest.is_empty() {
            entry.remove();
        } else {
            *entry.get_mut() = rest;
        }
        let mut topics: BTreeMap<Arc<str>, Vec<WantedPartition>> = BTreeMap::new();
        for (_, question) in &questions {
            topics.entry(Arc::clone(&question.topic)).or_default().push(WantedPartition {
                partition: question.partition,
                current_leader_epoch: question.leader_epoch,
                leader_epoch: question.position_epoch,
            });
        }
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let topics = topics.iter().map(|(name, partitions)| WantedTopic {
                topic: name.to_string(),
                partitions: partitions.clone(),
            });
            OffsetForLeaderEpochRequest { replica_id: -1, topics: topics.collect() }.encode(version, out)
        });
        let number = self.next_request;
        self.next_request += 1;
        self.asked.insert(number, questions);
        let api = ApiKey::OffsetForLeaderEpoch;
        let versions = FIRST_FOR_CONSUMERS..=*api.versions().end();
        Some((number, leader, RoutedRequest { api, versions, timeout: self.timeout, encode }))
    }

    /// An answer to a request, or why there is none.
    pub(crate) fn handle_answer(&mut self, request: u64, result: Result<Response, Error>) {
        let Some(questions) = self.asked.remove(&request) else { return };
        let answer = result.and_then(|response| {
            OffsetForLeaderEpochResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let verdict = match error.kind() {
                    ErrorKind::UnsupportedVersion | ErrorKind::Bug => EpochAnswer::NoAnswer,
                    _ => EpochAnswer::Later { refresh: true },
                };
                self.finished.extend(questions.into_iter().map(|(id, _)| (id, verdict.clone())));
                return;
            }
        };
        for (id, question) in questions {
            let found = answer
                .topics
                .iter()
                .filter(|topic| *topic.topic == *question.topic)
                .flat_map(|topic| &topic.partitions)
                .find(|partition| partition.partition == question.partition);
            let verdict = match found {
                // What is left out is asked for again.
                None => EpochAnswer::Later { refresh: true },
                Some(end) if end.error_code == ErrorCode::NONE => {
                    match (end.leader_epoch >= 0 && end.end_offset >= 0, end.leader_epoch) {
                        (true, epoch) if epoch <= question.position_epoch => {
                            EpochAnswer::End { epoch, offset: end.end_offset }
                        }
                        // Not what was asked: an epoch that is not after ours.
                        (true, _) => EpochAnswer::Later { refresh: true },
                        (false, _) => EpochAnswer::Unknown,
                    }
                }
                Some(end) if end.error_code.is_retriable() => {
                    EpochAnswer::Later { refresh: end.error_code.invalidates_metadata() }
                }
                // The fetch will be told the same, and tells the application.
                Some(_) => EpochAnswer::NoAnswer,
            };
            self.finished.push_back((id, verdict));
        }
    }

    /// The next answer.
    pub(crate) fn poll_finished(&mut self) -> Option<(CheckId, EpochAnswer)> {
        self.finished.pop_front()
    }

    /// The client closes.
    pub(crate) fn close(&mut self) {
        self.due.clear();
        self.asked.clear();
    }
}
