//! Detection of truncated logs (KIP-320). Before the consumer fetches from a new leader, it asks that leader for the
//! end offset of the epoch in which the last record that was read was written.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::offset_for_leader_epoch::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
        request::{Partition as RequestPartition, Topic as RequestTopic},
    },
    primitive::Reader,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    connection::Response,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
};

/// A query about one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EpochQuestion {
    pub(crate) key: TopicPartition,
    /// The leader's epoch.
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    /// The epoch in which the last record that was read was written.
    pub(crate) position_epoch: LeaderEpoch,
}

/// A leader's response about an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EpochOutcome {
    /// The newest epoch that is not after the requested one, and the offset at which it ended.
    End { epoch: LeaderEpoch, offset: i64 },
    /// The leader has no record of that epoch or an older one.
    Unknown,
    /// The broker does not support such queries, or refuses them permanently.
    NoResponse,
    /// Retry later, with newer metadata if `refresh` is true.
    Later { refresh: bool },
}

/// The ID of a query.
pub(crate) type CheckId = u64;

/// The queries that are due or in flight.
#[derive(Debug)]
pub(crate) struct EpochChecks {
    timeout: Duration,
    next_id: CheckId,
    due: SortedMap<NodeId, Vec<(CheckId, EpochQuestion)>>,
    asked: SortedMap<u64, Vec<(CheckId, EpochQuestion)>>,
    next_request: u64,
    finished: VecDeque<(CheckId, EpochOutcome)>,
}

/// The first version that brokers serve to consumers; earlier ones are for other brokers only.
const FIRST_FOR_CONSUMERS: i16 = 3;

impl EpochChecks {
    /// Creates the state without queries; a broker may take `timeout` to respond.
    pub(crate) const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            next_id: 0,
            due: SortedMap::new(),
            asked: SortedMap::new(),
            next_request: 0,
            finished: VecDeque::new(),
        }
    }

    /// Adds a query for a leader.
    pub(crate) fn start(&mut self, leader: NodeId, question: EpochQuestion) -> CheckId {
        let id = self.next_id;
        self.next_id += 1;
        self.due.entry(leader).or_default().push((id, question));
        id
    }

    /// Returns the next request, with all queries for one leader: its number, the node and the request.
    pub(crate) fn poll_request(&mut self) -> Option<(u64, NodeId, RoutedRequest)> {
        let mut entry = self.due.first_entry()?;
        let leader = *entry.key();
        // A request may name a partition only once.
        let mut named = SortedSet::new();
        let (questions, rest): (Vec<_>, Vec<_>) = std::mem::take(entry.get_mut())
            .into_iter()
            .partition(|(_, question)| named.insert(question.key.clone()));
        if rest.is_empty() {
            entry.remove();
        } else {
            *entry.get_mut() = rest;
        }
        let mut topics: SortedMap<Arc<str>, Vec<RequestPartition>> = SortedMap::new();
        for (_, question) in &questions {
            topics.entry(Arc::clone(&question.key.topic)).or_default().push(RequestPartition {
                partition: question.key.partition,
                current_leader_epoch: LeaderEpoch::to_wire(question.leader_epoch),
                leader_epoch: question.position_epoch.get(),
            });
        }
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let topics = topics.iter().map(|(name, partitions)| RequestTopic {
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

    /// Handles the response to a request, or the error instead of one.
    pub(crate) fn handle_response(&mut self, request: u64, result: Result<Response, Error>) {
        let Some(questions) = self.asked.remove(&request) else { return };
        let response = result.and_then(|response| {
            OffsetForLeaderEpochResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                let verdict = match error.kind() {
                    ErrorKind::UnsupportedVersion | ErrorKind::Bug => EpochOutcome::NoResponse,
                    _ => EpochOutcome::Later { refresh: true },
                };
                self.finished.extend(questions.into_iter().map(|(id, _)| (id, verdict.clone())));
                return;
            }
        };
        for (id, question) in questions {
            let found = response
                .topics
                .iter()
                .filter(|topic| *topic.topic == *question.key.topic)
                .flat_map(|topic| &topic.partitions)
                .find(|partition| partition.partition == question.key.partition);
            let verdict = match found {
                // The response omits the partition.
                None => EpochOutcome::Later { refresh: true },
                Some(end) if end.error_code == ErrorCode::NONE => {
                    match LeaderEpoch::from_wire(end.leader_epoch).filter(|_| end.end_offset >= 0) {
                        Some(epoch) if epoch <= question.position_epoch => {
                            EpochOutcome::End { epoch, offset: end.end_offset }
                        }
                        // The broker must not return an epoch after the requested one.
                        Some(_) => EpochOutcome::Later { refresh: true },
                        None => EpochOutcome::Unknown,
                    }
                }
                // An epoch that the leader does not know may belong to a deleted topic.
                Some(end) if end.error_code.is_retriable() => EpochOutcome::Later {
                    refresh: end.error_code.invalidates_metadata()
                        || end.error_code == ErrorCode::UNKNOWN_LEADER_EPOCH,
                },
                // The Fetch will get the same error and report it.
                Some(_) => EpochOutcome::NoResponse,
            };
            self.finished.push_back((id, verdict));
        }
    }

    /// Returns the next result.
    pub(crate) fn poll_finished(&mut self) -> Option<(CheckId, EpochOutcome)> {
        self.finished.pop_front()
    }

    /// Drops all queries, because the client closes.
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
        connection::{
            frame::Frame,
            inflight::{InFlight, Payload, RequestTag},
        },
        machine::Instant,
    };

    /// Returns the result of a query for this response of the leader.
    fn verdict(error_code: ErrorCode, leader_epoch: i32, end_offset: i64) -> EpochOutcome {
        let mut checks = EpochChecks::new(Duration::from_secs(1));
        let epoch = |number| LeaderEpoch::from_wire(number).unwrap();
        let key = TopicPartition::new("t", 0);
        let question = EpochQuestion { key, leader_epoch: Some(epoch(7)), position_epoch: epoch(5) };
        checks.start(NodeId::from_wire(1).unwrap(), question);
        let (number, _, request) = checks.poll_request().expect("it is asked");
        let end = Partition { error_code, partition: 0, leader_epoch, end_offset };
        let topic = Topic { topic: "t".into(), partitions: vec![end] };
        let mut bytes = Vec::new();
        let version = *request.versions.end();
        let response = OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() };
        response.encode(version, &mut bytes).unwrap();
        let request = InFlight {
            correlation_id: 1,
            api: request.api,
            version,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: request.timeout,
        };
        let frame = Frame { len: bytes.len(), bytes };
        checks.handle_response(number, Ok(Response { request, frame, body: 0 }));
        checks.poll_finished().expect("one response").1
    }

    #[test]
    fn each_response_about_an_epoch_has_a_result() {
        use EpochOutcome::*;
        let end = |epoch, offset| verdict(ErrorCode::NONE, epoch, offset);
        let epoch = |number| LeaderEpoch::from_wire(number).unwrap();
        assert_eq!(end(5, 10), End { epoch: epoch(5), offset: 10 });
        assert_eq!(end(3, 10), End { epoch: epoch(3), offset: 10 }, "epoch 5 was truncated");
        assert_eq!(end(-1, -1), Unknown);
        assert_eq!(end(6, 10), Later { refresh: true }, "an epoch after the one that was asked for");
        for (code, expected) in [
            (ErrorCode::NOT_LEADER_OR_FOLLOWER, Later { refresh: true }),
            (ErrorCode::FENCED_LEADER_EPOCH, Later { refresh: true }),
            (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Later { refresh: true }),
            (ErrorCode::KAFKA_STORAGE_ERROR, Later { refresh: true }),
            (ErrorCode::OFFSET_NOT_AVAILABLE, Later { refresh: false }),
            (ErrorCode::TOPIC_AUTHORIZATION_FAILED, NoResponse),
        ] {
            assert_eq!(verdict(code, -1, -1), expected, "{code}");
        }
    }

    #[test]
    fn unknown_epoch_is_checked_again_with_newer_metadata() {
        assert_eq!(
            verdict(ErrorCode::UNKNOWN_LEADER_EPOCH, -1, -1),
            EpochOutcome::Later { refresh: true },
            "it may be of a topic that was deleted, and would never be known"
        );
    }
}
