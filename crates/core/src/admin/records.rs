//! Deletes the oldest records of partitions, with one request to each leader.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, request},
    primitive::Reader,
    vocabulary::TopicPartition,
};
use ottla_sorted::SortedMap;

use super::{
    AdminCall, by_topic,
    leader_batches::{Collected, PartitionsOperation, Results},
    millis, undecodable,
};
use crate::{completion::Completion, contract::route::EncodeBody, error::Error};

/// The offset of the first remaining record of each partition, in the order of the arguments.
pub type DeletedRecords = Vec<Result<i64, Error>>;

/// Deletes the records of partitions before an offset (-1: all records that consumers may read). No partition is named
/// twice.
pub fn delete_records(
    before: Vec<(TopicPartition, i64)>,
    timeout: Duration,
    done: Completion<DeletedRecords>,
) -> AdminCall {
    let partitions: Vec<TopicPartition> = before.iter().map(|(key, _)| key.clone()).collect();
    let results = Collected::new(partitions.clone(), done);
    let operation = DeleteRecords { before: before.into_iter().collect(), results };
    AdminCall::of_partitions(operation, partitions, timeout)
}

struct DeleteRecords {
    before: SortedMap<TopicPartition, i64>,
    /// The first remaining offsets.
    results: Collected<i64>,
}

impl PartitionsOperation for DeleteRecords {
    fn api(&self) -> ApiKey {
        ApiKey::DeleteRecords
    }

    fn encode(&self, partitions: &[TopicPartition], timeout: Duration) -> EncodeBody {
        let partition = |name: &str, partition_index| {
            let key = TopicPartition::new(name, partition_index);
            request::Partition { partition_index, offset: self.before.get(&key).copied().unwrap_or(0) }
        };
        let topics = by_topic(partitions).into_iter().map(|(name, partitions)| request::Topic {
            name: name.to_owned(),
            partitions: partitions.into_iter().map(|index| partition(name, index)).collect(),
        });
        let request = DeleteRecordsRequest { topics: topics.collect(), timeout_ms: millis(timeout) };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Results, Error> {
        let response =
            DeleteRecordsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let mut results = Results::new();
        for topic in response.topics {
            for one in topic.partitions {
                let key = TopicPartition::new(topic.name.as_str(), one.partition_index);
                let result = match one.error_code {
                    ErrorCode::NONE => Ok(one.low_watermark),
                    code => Err(Error::broker(code, None).with_partition(&*key.topic, key.partition)),
                };
                results.push(self.results.add(key, result));
            }
        }
        Ok(results)
    }

    fn finish(self: Box<Self>, failed: SortedMap<TopicPartition, Error>) {
        self.results.finish(failed);
    }
}
