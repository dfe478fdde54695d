//! AlterReplicaLogDirs (34), versions 1 and 2, and DescribeLogDirs (35), versions 1 to 5. Nothing is written to the directories,
//! so that a replica moves at once.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_replica_log_dirs::{self, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse},
        describe_log_dirs::{
            DescribeLogDirsRequest, DescribeLogDirsResponse,
            response::{DescribeLogDirsResult, Partition, Topic},
        },
    },
};
use ottla_sorted::SortedMap;

use crate::{acls::AclOperation, cluster::Cluster, connection::Request, options::BrokerId};

/// Returns the path of a broker's directory of this number.
fn path(broker: BrokerId, number: usize) -> String {
    format!("/embedded/broker-{broker}/logs-{number}")
}

impl Cluster {
    pub(crate) fn describe_log_dirs(
        &mut self,
        request: &mut Request,
        body: DescribeLogDirsRequest,
    ) -> DescribeLogDirsResponse {
        let mut response =
            DescribeLogDirsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err(error) = self.check_cluster_request(request, AclOperation::Describe) {
            response.error_code = error;
            return response;
        }
        let requested: Option<SortedMap<String, Vec<i32>>> =
            body.topics.map(|topics| topics.into_iter().map(|one| (one.topic, one.partitions)).collect());
        let is_requested = |topic: &str, partition: &i32| {
            let of_topic = |topics: &SortedMap<String, Vec<i32>>| {
                topics.get(topic).is_some_and(|partitions| partitions.contains(partition))
            };
            requested.as_ref().is_none_or(of_topic)
        };
        let broker = request.broker;
        for number in 0..self.options.log_dirs.max(1) {
            let mut topics = Vec::new();
            for (index, topic) in self.topics.in_order() {
                let here = topic.partitions.iter().filter(|partition| {
                    let dir = self.administration.log_dirs.get(&(broker, index, partition.index)).copied();
                    partition.replicas.contains(&broker)
                        && dir.unwrap_or(0) == number
                        && is_requested(&topic.name, &partition.index)
                });
                let partitions: Vec<Partition> = here
                    .map(|partition| Partition {
                        partition_index: partition.index,
                        partition_size: i64::try_from(partition.log.bytes()).unwrap_or(i64::MAX),
                        ..Partition::default()
                    })
                    .collect();
                if !partitions.is_empty() {
                    topics.push(Topic { name: topic.name.clone(), partitions });
                }
            }
            let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            response.results.push(DescribeLogDirsResult {
                log_dir: path(broker, number),
                topics,
                total_bytes: bytes(self.options.retention_bytes),
                usable_bytes: bytes(self.options.retention_bytes.saturating_sub(self.stored_bytes)),
                ..Default::default()
            });
        }
        response
    }

    pub(crate) fn alter_replica_log_dirs(
        &mut self,
        request: &mut Request,
        body: AlterReplicaLogDirsRequest,
    ) -> AlterReplicaLogDirsResponse {
        let permitted = self.check_cluster_request(request, AclOperation::Alter);
        let broker = request.broker;
        let mut topics = SortedMap::<String, Vec<alter_replica_log_dirs::response::Partition>>::new();
        for dir in body.dirs {
            let number = (0..self.options.log_dirs.max(1)).find(|number| path(broker, *number) == dir.path);
            for topic in dir.topics {
                for partition_index in topic.partitions {
                    let moved = permitted.and_then(|()| {
                        let number = number.ok_or(ErrorCode::LOG_DIR_NOT_FOUND)?;
                        self.move_replica(broker, &topic.name, partition_index, number)
                    });
                    let error_code = moved.err().unwrap_or_default();
                    let result = alter_replica_log_dirs::response::Partition { partition_index, error_code };
                    topics.entry(topic.name.clone()).or_default().push(result);
                }
            }
        }
        let results = topics.into_iter().map(|(topic_name, partitions)| {
            alter_replica_log_dirs::response::AlterReplicaLogDirsResult { topic_name, partitions }
        });
        AlterReplicaLogDirsResponse { throttle_time_ms: request.throttle_ms(), results: results.collect() }
    }

    fn move_replica(
        &mut self,
        broker: BrokerId,
        topic: &str,
        partition: i32,
        number: usize,
    ) -> Result<(), ErrorCode> {
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let state = self.topics.partition(index, partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if !state.replicas.contains(&broker) {
            return Err(ErrorCode::REPLICA_NOT_AVAILABLE);
        }
        self.administration.log_dirs.insert((broker, index, partition), number);
        Ok(())
    }
}
