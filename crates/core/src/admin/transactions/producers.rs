//! Describes the producers that write to partitions, with one request to each leader.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    generated::describe_producers::{DescribeProducersRequest, DescribeProducersResponse, request, response},
    primitive::Reader,
    vocabulary::TopicPartition,
};
use ottla_sorted::SortedMap;

use crate::{
    admin::{
        AdminCall, by_topic, check,
        leader_batches::{Collected, PartitionsOperation, Results},
        undecodable,
    },
    completion::Completion,
    contract::route::EncodeBody,
    error::Error,
};

/// An idempotent or transactional producer that has written to a partition lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveProducer {
    /// The producer ID.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i32,
    /// The sequence number of its last record; `None` if its last record was a marker.
    pub last_sequence: Option<i32>,
    /// The time of its last record, in milliseconds since 1970.
    pub last_timestamp: Option<i64>,
    /// The epoch of the coordinator that wrote its last marker; `None` before the first one.
    pub coordinator_epoch: Option<i32>,
    /// The offset of the first record of its open transaction.
    pub transaction_start: Option<i64>,
}

/// The producers of each partition, in the order of the arguments.
pub type ActiveProducers = Vec<Result<Vec<ActiveProducer>, Error>>;

/// Describes the producers of partitions, as their leaders know them. No partition is named twice.
pub fn describe_producers(
    partitions: Vec<TopicPartition>,
    timeout: Duration,
    done: Completion<ActiveProducers>,
) -> AdminCall {
    AdminCall::of_partitions(DescribeProducers(Collected::new(partitions.clone(), done)), partitions, timeout)
}

struct DescribeProducers(Collected<Vec<ActiveProducer>>);

impl From<&response::ActiveProducer> for ActiveProducer {
    fn from(one: &response::ActiveProducer) -> Self {
        Self {
            producer_id: one.producer_id,
            producer_epoch: one.producer_epoch,
            last_sequence: (one.last_sequence >= 0).then_some(one.last_sequence),
            last_timestamp: (one.last_timestamp >= 0).then_some(one.last_timestamp),
            coordinator_epoch: (one.coordinator_epoch >= 0).then_some(one.coordinator_epoch),
            transaction_start: (one.current_txn_start_offset >= 0).then_some(one.current_txn_start_offset),
        }
    }
}

impl PartitionsOperation for DescribeProducers {
    fn api(&self) -> ApiKey {
        ApiKey::DescribeProducers
    }

    fn encode(&self, partitions: &[TopicPartition], _timeout: Duration) -> EncodeBody {
        let topics = by_topic(partitions).into_iter();
        let topics = topics
            .map(|(name, partition_indexes)| request::Topic { name: name.to_owned(), partition_indexes });
        let request = DescribeProducersRequest { topics: topics.collect() };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Results, Error> {
        let response = DescribeProducersResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let mut results = Results::new();
        for topic in response.topics {
            for one in topic.partitions {
                let key = TopicPartition::new(topic.name.as_str(), one.partition_index);
                let result = check(one.error_code, one.error_message.as_deref())
                    .map(|()| one.active_producers.iter().map(ActiveProducer::from).collect())
                    .map_err(|error| error.with_partition(&*key.topic, key.partition));
                results.push(self.0.add(key, result));
            }
        }
        Ok(results)
    }

    fn finish(self: Box<Self>, failed: SortedMap<TopicPartition, Error>) {
        self.0.finish(failed);
    }
}
