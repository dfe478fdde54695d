//! The directories of brokers' logs (KIP-113): describes them, and moves replicas between them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::{
        alter_replica_log_dirs::{
            AlterReplicaLogDirsRequest,
            request::{Dir, Topic},
        },
        describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse, request},
    },
    primitive::Reader,
    vocabulary::{NodeId, TopicPartition},
};

use super::{
    AdminCall, by_topic, check,
    every_broker::{BrokerOperation, BrokerResults, OfBrokers},
    item_results::{ItemResults, Items},
    one_result::OneResult,
    undecodable,
};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::Error,
};

/// A directory of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogDir {
    /// The path.
    pub path: String,
    /// The error if the directory is offline.
    pub error: Option<Error>,
    /// The size of the volume in bytes, if the broker reports it (Kafka 3.3).
    pub total_bytes: Option<u64>,
    /// The free bytes of the volume, if the broker reports them (Kafka 3.3).
    pub usable_bytes: Option<u64>,
    /// True if no new replicas are placed here (Kafka 4.3).
    pub is_cordoned: bool,
    /// The replicas in the directory.
    pub replicas: BTreeMap<TopicPartition, ReplicaInLogDir>,
}

/// A replica in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaInLogDir {
    /// The size of its log in bytes.
    pub size: i64,
    /// The offsets that it lacks: compared with the leader, or for a future replica with the current one.
    pub offset_lag: i64,
    /// True for a replica that is being moved here, and replaces the one in another directory at the end.
    pub is_future: bool,
}

/// The directories of each broker.
pub type LogDirs = BrokerResults<Vec<LogDir>>;

fn request(partitions: Option<&[TopicPartition]>) -> DescribeLogDirsRequest {
    let topic = |(name, partitions): (&str, _)| request::Topic { topic: name.to_owned(), partitions };
    DescribeLogDirsRequest { topics: partitions.map(|all| by_topic(all).into_iter().map(topic).collect()) }
}

fn dirs(response: DescribeLogDirsResponse) -> Result<Vec<LogDir>, Error> {
    check(response.error_code, None)?;
    let dirs = response.results.into_iter().map(|dir| {
        let mut replicas = BTreeMap::new();
        for topic in dir.topics {
            let name: Arc<str> = topic.name.into();
            for one in topic.partitions {
                let replica = ReplicaInLogDir {
                    size: one.partition_size,
                    offset_lag: one.offset_lag,
                    is_future: one.is_future_key,
                };
                replicas.insert(TopicPartition::new(Arc::clone(&name), one.partition_index), replica);
            }
        }
        LogDir {
            path: dir.log_dir,
            error: check(dir.error_code, None).err(),
            total_bytes: u64::try_from(dir.total_bytes).ok(),
            usable_bytes: u64::try_from(dir.usable_bytes).ok(),
            is_cordoned: dir.is_cordoned,
            replicas,
        }
    });
    Ok(dirs.collect())
}

/// Describes the directories of a broker, with the replicas of these partitions or of all.
pub fn describe_log_dirs(
    broker: i32,
    partitions: Option<Vec<TopicPartition>>,
    timeout: Duration,
    done: Completion<Result<Vec<LogDir>, Error>>,
) -> AdminCall {
    let request = move |_, _| request(partitions.as_deref());
    OneResult::new(Route::Node(broker), request, |response, _| dirs(response)).call(timeout, done)
}

/// Describes the directories of all brokers. A broker that fails is part of the result.
pub fn describe_all_log_dirs(
    partitions: Option<Vec<TopicPartition>>,
    timeout: Duration,
    done: Completion<Result<LogDirs, Error>>,
) -> AdminCall {
    AdminCall::every_broker(OfAllBrokers { partitions, results: OfBrokers::new(done) }, timeout)
}

struct OfAllBrokers {
    partitions: Option<Vec<TopicPartition>>,
    results: OfBrokers<Vec<LogDir>>,
}

impl BrokerOperation for OfAllBrokers {
    fn api(&self) -> ApiKey {
        ApiKey::DescribeLogDirs
    }

    fn encode(&self) -> EncodeBody {
        let request = request(self.partitions.as_deref());
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, node: NodeId, body: &[u8], version: i16) -> Result<(), Error> {
        let response =
            DescribeLogDirsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        self.results.add(node, dirs(response)?);
        Ok(())
    }

    fn finish(self: Box<Self>, failed: Vec<(NodeId, Error)>, error: Option<Error>) {
        self.results.finish(failed, error);
    }
}

/// Moves replicas of a broker to other directories. The broker starts to copy them, and replaces them later.
pub fn alter_log_dirs(
    broker: i32,
    paths: BTreeMap<TopicPartition, String>,
    timeout: Duration,
    done: Completion<Result<ItemResults<TopicPartition, ()>, Error>>,
) -> AdminCall {
    let keys = paths.keys().cloned().collect();
    let request = move |keys: &[TopicPartition], _, _| {
        let mut dirs = BTreeMap::<&str, Vec<&TopicPartition>>::new();
        for (key, path) in keys.iter().filter_map(|key| Some((key, paths.get(key)?))) {
            dirs.entry(path).or_default().push(key);
        }
        let topic = |(name, partitions): (&str, _)| Topic { name: name.to_owned(), partitions };
        let dirs = dirs.into_iter().map(|(path, keys)| Dir {
            path: path.to_owned(),
            topics: by_topic(keys).into_iter().map(topic).collect(),
        });
        AlterReplicaLogDirsRequest { dirs: dirs.collect() }
    };
    let call = Items::new(keys, request, |_, response| {
        let mut results = Vec::new();
        for topic in response.results {
            for one in topic.partitions {
                let result = check(one.error_code, None)
                    .map_err(|error| error.with_partition(&*topic.topic_name, one.partition_index));
                results.push((TopicPartition::new(&*topic.topic_name, one.partition_index), result));
            }
        }
        Ok(results)
    });
    call.to(Route::Node(broker)).call(timeout, done)
}
