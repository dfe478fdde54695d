//! One FetchRequest for all partitions of a broker.

use std::sync::Arc;

use ottla_protocol::{
    generated::fetch::{
        FetchRequest,
        request::{ForgottenTopicsData, Partition, Topic},
    },
    uuid::Uuid,
};

use super::{session::ForgottenPartition, shared::ConsumerSettings};
use crate::{config::IsolationLevel, mutation::Mutant};

/// The first version in which topics are named by id.
pub(crate) const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// The first version with fetch sessions.
pub(crate) const FIRST_WITH_SESSIONS: i16 = 7;

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) max_bytes: i32,
}

/// A FetchRequest being put together.
#[derive(Debug)]
pub(crate) struct FetchRequestBuilder {
    request: FetchRequest,
}

impl FetchRequestBuilder {
    /// A request of a session, by its id and epoch, for up to `max_bytes`.
    pub(crate) fn new(settings: &ConsumerSettings, head: (i32, i32), max_bytes: i32) -> Self {
        let millis = i32::try_from(settings.fetch_wait_max.as_millis()).unwrap_or(i32::MAX);
        let waits = !settings.mutation.is(Mutant::FetchWithoutWait);
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: if waits { millis } else { 0 },
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

    /// Adds a partition. Those of one topic come one after the other.
    pub(crate) fn add(&mut self, topic: &Arc<str>, topic_id: Uuid, partition: i32, asked: Asked) {
        let topics = &mut self.request.topics;
        if topics.last().is_none_or(|last| *last.topic != **topic) {
            topics.push(Topic { topic: topic.to_string(), topic_id, ..Topic::default() });
        }
        if let Some(last) = topics.last_mut() {
            last.partitions.push(Partition {
                partition,
                current_leader_epoch: asked.leader_epoch,
                fetch_offset: asked.offset,
                partition_max_bytes: asked.max_bytes,
                ..Partition::default()
            });
        }
    }

    /// Tells the broker what it may forget.
    pub(crate) fn forget(&mut self, mut forgotten: Vec<ForgottenPartition>) {
        forgotten.sort_unstable_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        forgotten.dedup();
        for ForgottenPartition { topic, topic_id, partition } in forgotten {
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

    /// The request.
    pub(crate) fn finish(self) -> FetchRequest {
        self.request
    }
}
