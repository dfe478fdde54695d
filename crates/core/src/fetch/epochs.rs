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
                // An epoch that the leader does not know may be of a topic that is no more.
                Some(end) if end.error_code.is_retriable() => EpochAnswer::Later {
                    refresh: end.error_code.invalidates_metadata()
                        || end.error_code == ErrorCode::UNKNOWN_LEADER_EPOCH,
                },
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

#[cfg(test)]
mod tests {
    use ottla_protocol::generated::offset_for_leader_epoch::response::{Partition, Topic};

    use super::*;
    use crate::{
        broker::{
            frame::Frame,
            inflight::{InFlight, Payload, RequestTag},
        },
        machine::Instant,
    };

    /// What a question comes to if the leader answers with this.
    fn verdict(error_code: ErrorCode, leader_epoch: i32, end_offset: i64) -> EpochAnswer {
        let mut checks = EpochChecks::new(Duration::from_secs(1));
        let topic: Arc<str> = Arc::from("t");
        let question = EpochQuestion { topic, partition: 0, leader_epoch: 7, position_epoch: 5 };
        checks.start(1, question);
        let (number, _, request) = checks.poll_request().expect("it is asked");
        let end = Partition { error_code, partition: 0, leader_epoch, end_offset };
        let topic = Topic { topic: "t".into(), partitions: vec![end] };
        let mut bytes = Vec::new();
        let version = *request.versions.end();
        let answer = OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() };
        answer.encode(version, &mut bytes).unwrap();
        let request = InFlight {
            correlation_id: 1,
            api: request.api,
            version,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_answer: true,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: request.timeout,
        };
        let frame = Frame { len: bytes.len(), bytes };
        checks.handle_answer(number, Ok(Response { request, frame, body: 0 }));
        checks.poll_finished().expect("one answer").1
    }

    #[test]
    fn every_answer_about_an_epoch_leads_on() {
        use EpochAnswer::*;
        let end = |epoch, offset| verdict(ErrorCode::NONE, epoch, offset);
        assert_eq!(end(5, 10), End { epoch: 5, offset: 10 });
        assert_eq!(end(3, 10), End { epoch: 3, offset: 10 }, "nothing of epoch 5 is there any more");
        assert_eq!(end(-1, -1), Unknown);
        assert_eq!(end(6, 10), Later { refresh: true }, "an epoch after the one that was asked for");
        for (code, expected) in [
            (ErrorCode::NOT_LEADER_OR_FOLLOWER, Later { refresh: true }),
            (ErrorCode::FENCED_LEADER_EPOCH, Later { refresh: true }),
            (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Later { refresh: true }),
            (ErrorCode::KAFKA_STORAGE_ERROR, Later { refresh: true }),
            (ErrorCode::OFFSET_NOT_AVAILABLE, Later { refresh: false }),
            (ErrorCode::TOPIC_AUTHORIZATION_FAILED, NoAnswer),
        ] {
            assert_eq!(verdict(code, -1, -1), expected, "{code}");
        }
    }

    #[test]
    fn an_epoch_that_the_leader_does_not_know_is_asked_about_with_newer_metadata() {
        assert_eq!(
            verdict(ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1),
            EpochAnswer::Later { refresh: true },
            "it may be of a topic that is no more, and would never be known"
        );
    }
}
