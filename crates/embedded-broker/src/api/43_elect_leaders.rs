//! ElectLeaders (43), versions 0 to 2.
//!
//! # Pitfalls
//!
//! - With a null list of partitions, those that need no election are left out; if they are named, they have the error
//!   ELECTION_NOT_NEEDED (`elections_that_are_not_needed_are_left_out_of_the_whole_cluster`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::elect_leaders::{
        ElectLeadersRequest, ElectLeadersResponse,
        response::{PartitionResult, ReplicaElectionResult},
    },
};

use crate::{
    acls::AclOperation, cluster::Cluster, connection::Request, options::BrokerId, provisioning::Refusal,
    topics::Partition,
};

/// The number of unclean elections.
const UNCLEAN: i8 = 1;

impl Cluster {
    pub(crate) fn elect_leaders(
        &mut self,
        request: &mut Request,
        body: ElectLeadersRequest,
    ) -> ElectLeadersResponse {
        let mut response =
            ElectLeadersResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err(error) = self.check_cluster_request(request, AclOperation::Alter) {
            response.error_code = error;
            return response;
        }
        if !(0..=UNCLEAN).contains(&body.election_type) {
            response.error_code = ErrorCode::INVALID_REQUEST;
            return response;
        }
        let is_unclean = body.election_type == UNCLEAN;
        let all = body.topic_partitions.is_none();
        let requested = match body.topic_partitions {
            Some(topics) => topics.into_iter().map(|topic| (topic.topic, topic.partitions)).collect(),
            None => self.every_partition(),
        };
        for (topic, partitions) in requested {
            let mut partition_result = Vec::new();
            for partition_id in partitions {
                let result = self.elect(&topic, partition_id, is_unclean);
                if all && matches!(result, Err((ErrorCode::ELECTION_NOT_NEEDED, _))) {
                    continue;
                }
                let (error_code, error_message) = match result {
                    Ok(()) => (ErrorCode::NONE, None),
                    Err((error, message)) => (error, Some(message)),
                };
                partition_result.push(PartitionResult { partition_id, error_code, error_message });
            }
            if !all || !partition_result.is_empty() {
                response.replica_election_results.push(ReplicaElectionResult { topic, partition_result });
            }
        }
        self.run();
        response
    }

    fn every_partition(&self) -> Vec<(String, Vec<i32>)> {
        let topics = self.topics.in_order();
        topics
            .map(|(_, topic)| (topic.name.clone(), topic.partitions.iter().map(|one| one.index).collect()))
            .collect()
    }

    fn elect(&mut self, topic: &str, partition: i32, is_unclean: bool) -> Result<(), Refusal> {
        let unknown = |what: String| (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("No such {what}"));
        let index = self.topics.by_name(topic).ok_or_else(|| unknown(format!("topic as {topic}")))?;
        let state = self.topics.partition(index, partition);
        let state = state.ok_or_else(|| unknown(format!("partition as {topic}-{partition}")))?;
        let leader = self.elected(state, is_unclean)?;
        let end = state.log.end_offset();
        let Some(state) = self.topics.partition_mut(index, partition) else { return Ok(()) };
        if !state.in_sync.contains(&leader) {
            state.in_sync = vec![leader];
        }
        state.elect(Some(leader));
        self.advance_high_watermark(index, partition, end);
        self.wake_partition(index, partition);
        Ok(())
    }

    /// Returns the replica that an election makes the leader.
    fn elected(&self, state: &Partition, is_unclean: bool) -> Result<BrokerId, Refusal> {
        let not_needed = || {
            let error = ErrorCode::ELECTION_NOT_NEEDED;
            (error, error.description().to_owned())
        };
        let is_up = |id: &BrokerId| self.brokers.get(id).is_some_and(|broker| broker.alive);
        if is_unclean {
            if state.leader.is_some() {
                return Err(not_needed());
            }
            let found = state.replicas.iter().copied().find(|id| is_up(id));
            let error = ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE;
            return found.ok_or_else(|| (error, "The eligible leaders are not available.".to_owned()));
        }
        let preferred = state.replicas.first().copied();
        if preferred == state.leader {
            return Err(not_needed());
        }
        let error = ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE;
        preferred
            .filter(|id| is_up(id) && state.in_sync.contains(id))
            .ok_or_else(|| (error, "The preferred leader was not available.".to_owned()))
    }
}
