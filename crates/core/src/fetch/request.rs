//! One FetchRequest for all partitions of a broker.

use ottla_protocol::{
    generated::fetch::{
        FetchRequest,
        request::{ForgottenTopicsData, Partition, Topic},
    },
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};

use super::{session::ForgottenPartition, settings::ConsumerSettings};
use crate::config::IsolationLevel;

/// The first version in which topics are named by ID.
pub(crate) const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// The first version with fetch sessions.
pub(crate) const FIRST_WITH_SESSIONS: i16 = 7;

/// The part of a request about one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    pub(crate) max_bytes: i32,
}

/// Builds a FetchRequest.
#[derive(Debug)]
pub(crate) struct FetchRequestBuilder {
    request: FetchRequest,
}

impl FetchRequestBuilder {
    /// Creates a request of a session, given by its ID and epoch, for up to `max_bytes`.
    pub(crate) fn new(settings: &ConsumerSettings, head: (i32, i32), max_bytes: i32) -> Self {
        let millis = i32::try_from(settings.fetch_wait_max.as_millis()).unwrap_or(i32::MAX);
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: millis,
            min_bytes: settings.fetch_min_bytes,
            max_bytes,
            isolation_level: i8::from(settings.isolation_level == IsolationLevel::ReadCommitted),
            session_id: head.0,
            session_epoch: head.1,
            rack_id: settings.rack.clone(),
            ..FetchRequest::default()
        };
        Self { request }
    }

    /// Adds a partition. The partitions of a topic must be added one after the other.
    pub(crate) fn add(&mut self, key: &TopicPartition, topic_id: Uuid, asked: Asked) {
        let topics = &mut self.request.topics;
        if topics.last().is_none_or(|last| *last.topic != *key.topic) {
            topics.push(Topic { topic: key.topic.to_string(), topic_id, ..Topic::default() });
        }
        if let Some(last) = topics.last_mut() {
            last.partitions.push(Partition {
                partition: key.partition,
                current_leader_epoch: LeaderEpoch::to_wire(asked.leader_epoch),
                fetch_offset: asked.offset,
                partition_max_bytes: asked.max_bytes,
                ..Partition::default()
            });
        }
    }

    /// Adds partitions that the broker has to remove from the session.
    pub(crate) fn forget(&mut self, mut forgotten: Vec<ForgottenPartition>) {
        forgotten.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        forgotten.dedup();
        for ForgottenPartition { key: TopicPartition { topic, partition }, topic_id, .. } in forgotten {
            let topics = &mut self.request.forgotten_topics_data;
            match topics.last_mut() {
                Some(last) if *last.topic == *topic && last.topic_id == topic_id => {
                    last.partitions.push(partition)
                }
                _ => topics.push(ForgottenTopicsData {
                    topic: topic.to_string(),
                    topic_id,
                    partitions: vec![partition],
                }),
            }
        }
    }

    /// Returns the request.
    pub(crate) fn finish(self) -> FetchRequest {
        self.request
    }
}
