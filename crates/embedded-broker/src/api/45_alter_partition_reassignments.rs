//! AlterPartitionReassignments (45), versions 0 and 1, and ListPartitionReassignments (46), version 0. A reassignment takes
//! `ClusterOptions::reassignment_duration`.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_partition_reassignments::{
            AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, request, response,
        },
        list_partition_reassignments::{
            self as list, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
        },
    },
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    options::BrokerId,
    provisioning::{Refusal, code_and_message},
};

impl Cluster {
    pub(crate) fn alter_partition_reassignments(
        &mut self,
        request: &mut Request,
        body: AlterPartitionReassignmentsRequest,
    ) -> AlterPartitionReassignmentsResponse {
        let mut response = AlterPartitionReassignmentsResponse {
            throttle_time_ms: request.throttle_ms(),
            ..Default::default()
        };
        response.allow_replication_factor_change = body.allow_replication_factor_change;
        if let Err(error) = self.check_cluster_request(request, AclOperation::Alter) {
            (response.error_code, response.error_message) = (error, Some(error.description().to_owned()));
            return response;
        }
        for topic in body.topics {
            let name = topic.name;
            let partitions = topic.partitions.into_iter().map(|one| {
                let may_change = body.allow_replication_factor_change;
                let (error_code, error_message) = code_and_message(self.reassign(&name, &one, may_change));
                response::Partition { partition_index: one.partition_index, error_code, error_message }
            });
            let partitions = partitions.collect();
            response.responses.push(response::Response { name, partitions });
        }
        response
    }

    fn reassign(&mut self, topic: &str, one: &request::Partition, may_change: bool) -> Result<(), Refusal> {
        let partition = one.partition_index;
        let unknown = |message: String| (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
        let missing = || unknown(format!("Unable to find a topic named {topic}."));
        let index = self.topics.by_name(topic).ok_or_else(missing)?;
        let missing = || unknown(format!("Unable to find partition {topic}:{partition}."));
        let state = self.topics.partition(index, partition).ok_or_else(missing)?;
        let Some(replicas) = &one.replicas else {
            return match self.cancel_reassignment(index, partition) {
                true => Ok(()),
                false => {
                    let error = ErrorCode::NO_REASSIGNMENT_IN_PROGRESS;
                    Err((error, "No partition reassignment is in progress.".to_owned()))
                }
            };
        };
        let before = self.administration.reassignments.get(&(index, partition));
        let size = before.map_or(state.replicas.len(), |before| before.original.len());
        let replicas: Vec<BrokerId> = replicas.iter().map(|id| BrokerId(*id)).collect();
        self.check_replicas(&replicas)?;
        if !may_change && replicas.len() != size {
            let message = format!("The replication factor is changed from {size} to {}", replicas.len());
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        self.start_reassignment(index, partition, replicas);
        Ok(())
    }

    pub(crate) fn list_partition_reassignments(
        &mut self,
        request: &mut Request,
        body: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        let mut response = ListPartitionReassignmentsResponse {
            throttle_time_ms: request.throttle_ms(),
            ..Default::default()
        };
        if let Err(error) = self.check_cluster_request(request, AclOperation::Describe) {
            (response.error_code, response.error_message) = (error, Some(error.description().to_owned()));
            return response;
        }
        let is_requested = |topic: &str, partition| {
            body.topics.as_ref().is_none_or(|topics| {
                topics.iter().any(|one| one.name == topic && one.partition_indexes.contains(&partition))
            })
        };
        for ((index, partition), ongoing) in &self.administration.reassignments {
            let Some(topic) = self.topics.get(*index) else { continue };
            let Some(state) = self.topics.partition(*index, *partition) else { continue };
            if !is_requested(&topic.name, *partition) {
                continue;
            }
            let ids = |ids: &[BrokerId], without: &[BrokerId]| {
                ids.iter().filter(|id| !without.contains(id)).map(|id| id.0).collect::<Vec<i32>>()
            };
            let described = list::response::Partition {
                partition_index: *partition,
                replicas: ids(&state.replicas, &[]),
                adding_replicas: ids(&ongoing.target, &ongoing.original),
                removing_replicas: ids(&ongoing.original, &ongoing.target),
            };
            match response.topics.last_mut() {
                Some(last) if last.name == topic.name => last.partitions.push(described),
                _ => response
                    .topics
                    .push(list::response::Topic { name: topic.name.clone(), partitions: vec![described] }),
            }
        }
        response
    }
}
