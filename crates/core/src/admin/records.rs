//! Deletes the oldest records of partitions, with one request to each leader.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, request},
    primitive::Reader,
    vocabulary::TopicPartition,
};

use super::{
    AdminCall, by_topic,
    leader_batches::{PartitionsOperation, Results},
    millis, undecodable,
};
use crate::{
    cluster::route::EncodeBody,
    completion::Completion,
    error::{Error, ErrorKind},
};

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
    let operation = DeleteRecords {
        order: partitions.clone(),
        before: before.into_iter().collect(),
        low: BTreeMap::new(),
        done,
    };
    AdminCall::of_partitions(operation, partitions, timeout)
}

struct DeleteRecords {
    order: Vec<TopicPartition>,
    before: BTreeMap<TopicPartition, i64>,
    /// The first remaining offsets so far.
    low: BTreeMap<TopicPartition, i64>,
    done: Completion<DeletedRecords>,
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
                    ErrorCode::NONE => Ok(()),
                    code => Err(Error::broker(code, None).with_partition(&*key.topic, key.partition)),
                };
                // A response may contain partitions that were not requested.
                if result.is_ok()
                    && self.before.contains_key(&key)
                    && let Entry::Vacant(low) = self.low.entry(key.clone())
                {
                    low.insert(one.low_watermark);
                }
                results.push((key, result));
            }
        }
        Ok(results)
    }

    fn finish(mut self: Box<Self>, mut failed: BTreeMap<TopicPartition, Error>) {
        let missing = || Error::new(ErrorKind::Bug, "a call ended without a result");
        let results = self.order.iter().map(|key| match failed.remove(key) {
            Some(error) => Err(error),
            None => self.low.remove(key).ok_or_else(missing),
        });
        let results = results.collect();
        self.done.complete(results);
    }
}
