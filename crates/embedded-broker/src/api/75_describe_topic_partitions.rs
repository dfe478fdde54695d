//! DescribeTopicPartitions (75), version 0: partitions of topics in order, a page at a time.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_topic_partitions::{
        DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, response,
    },
};

use super::metadata::TOPIC_OPERATIONS;
use crate::{acls::ResourceType, cluster::Cluster, connection::Request, topics::TopicIndex};

const MOST: usize = 2000;

impl Cluster {
    pub(crate) fn describe_topic_partitions(
        &mut self,
        request: &mut Request,
        body: DescribeTopicPartitionsRequest,
    ) -> DescribeTopicPartitionsResponse {
        let mut response =
            DescribeTopicPartitionsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let mut names: Vec<String> = body.topics.into_iter().map(|topic| topic.name).collect();
        let names_all = names.is_empty();
        if names_all {
            names = self.topics.in_order().map(|(_, topic)| topic.name.clone()).collect();
        }
        names.sort();
        names.dedup();
        let (from, mut first) = match body.cursor {
            Some(cursor) => (cursor.topic_name, usize::try_from(cursor.partition_index).unwrap_or(0)),
            None => (String::new(), 0),
        };
        let mut left = usize::try_from(body.response_partition_limit).unwrap_or(0).clamp(1, MOST);
        for name in names.into_iter().filter(|name| *name >= from) {
            let start = if name == from { std::mem::take(&mut first) } else { 0 };
            if left == 0 {
                response.next_cursor = Some(response::NextCursor { topic_name: name, partition_index: 0 });
                return response;
            }
            let error = self.topic_error(request, &name, -1);
            // Kafka leaves out the topics that the client may not describe, unless it names them.
            if names_all && error == Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED) {
                continue;
            }
            let found = self.topics.by_name(&name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            match error.map_or(found, Err) {
                Err(error_code) => {
                    response.topics.push(response::Topic {
                        error_code,
                        name: Some(name),
                        ..Default::default()
                    });
                }
                Ok(index) => {
                    let (mut topic, end, all) = self.describe_page(index, start, left);
                    topic.topic_authorized_operations = self.permitted_operations(
                        request.connection,
                        TOPIC_OPERATIONS,
                        ResourceType::Topic,
                        &name,
                    );
                    left -= end - start.min(end);
                    response.topics.push(topic);
                    if end < all {
                        response.next_cursor = Some(response::NextCursor {
                            topic_name: name,
                            partition_index: i32::try_from(end).unwrap_or(i32::MAX),
                        });
                        return response;
                    }
                }
            }
        }
        response
    }

    /// Returns a topic with at most `most` of its partitions, the partition after the last one, and the number of
    /// partitions.
    fn describe_page(&self, index: TopicIndex, start: usize, most: usize) -> (response::Topic, usize, usize) {
        let Some(topic) = self.topics.get(index) else { return (response::Topic::default(), start, start) };
        let all = topic.partitions.len();
        let start = start.min(all);
        let end = (start + most).min(all);
        let partitions = topic.partitions[start..end].iter().map(|partition| {
            let (leader, leader_epoch) = self.reported_leader(index, partition);
            response::Partition {
                error_code: if leader.is_some() { ErrorCode::NONE } else { ErrorCode::LEADER_NOT_AVAILABLE },
                partition_index: partition.index,
                leader_id: leader.map_or(-1, |leader| leader.0),
                leader_epoch,
                replica_nodes: partition.replicas.iter().map(|id| id.0).collect(),
                isr_nodes: partition.in_sync.iter().map(|id| id.0).collect(),
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                offline_replicas: partition
                    .replicas
                    .iter()
                    .filter(|id| self.brokers.get(id).is_none_or(|broker| !broker.alive))
                    .map(|id| id.0)
                    .collect(),
            }
        });
        let topic = response::Topic {
            name: Some(topic.name.clone()),
            topic_id: topic.id,
            partitions: partitions.collect(),
            ..Default::default()
        };
        (topic, end, all)
    }
}
