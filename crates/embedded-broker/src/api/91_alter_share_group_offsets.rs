//! AlterShareGroupOffsets (91), version 0: changes the start offsets of a share group without members.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::alter_share_group_offsets::{
        AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, request as alter_request, response,
    },
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request, provisioning::Refusal, share_partitions::SharePartition};

impl Cluster {
    pub(crate) fn alter_share_group_offsets(
        &mut self,
        request: &mut Request,
        body: AlterShareGroupOffsetsRequest,
    ) -> AlterShareGroupOffsetsResponse {
        let mut response =
            AlterShareGroupOffsetsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let is_permitted =
            |topic: &alter_request::Topic| self.topic_refusal(request, &topic.topic_name).is_none();
        let (permitted, refused): (Vec<_>, Vec<_>) = body.topics.into_iter().partition(is_permitted);
        let checked = match self.check_group_access(request, &body.group_id) {
            // The coordinator does not learn of a request without topics.
            Ok(()) if permitted.is_empty() && !refused.is_empty() => Ok(()),
            _ => self.check_empty_share_group(request, &body.group_id),
        };
        if let Err((error_code, message)) = checked {
            response.error_code = error_code;
            response.error_message = Some(message).filter(|message| !message.is_empty());
            return response;
        }
        for topic in refused {
            let partition = |partition: alter_request::Partition| response::Partition {
                partition_index: partition.partition_index,
                error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED,
                error_message: None,
            };
            response.responses.push(response::Response {
                topic_name: topic.topic_name,
                topic_id: Uuid::ZERO,
                partitions: topic.partitions.into_iter().map(partition).collect(),
            });
        }
        for topic in permitted {
            let index = self.topics.by_name(&topic.topic_name);
            let mut altered = response::Response {
                topic_id: index.and_then(|index| self.topics.get(index)).map_or(Uuid::ZERO, |topic| topic.id),
                topic_name: topic.topic_name,
                partitions: Vec::new(),
            };
            for requested in topic.partitions {
                let partition_index = requested.partition_index;
                let found =
                    index.and_then(|index| Some((index, self.topics.partition(index, partition_index)?)));
                let group = self.share_groups.groups.get_mut(&body.group_id);
                let error_code = match (found, group) {
                    (Some((index, partition)), Some(group)) if requested.start_offset >= 0 => {
                        let mut state = SharePartition::new(requested.start_offset, partition.leader_epoch);
                        state.see(partition);
                        group.partitions.insert((index, partition_index), state);
                        ErrorCode::NONE
                    }
                    (Some(_), Some(_)) => ErrorCode::INVALID_REQUEST,
                    _ => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                };
                altered.partitions.push(response::Partition {
                    partition_index,
                    error_code,
                    error_message: None,
                });
            }
            response.responses.push(altered);
        }
        response
    }

    /// Checks that the share group exists and has no members.
    pub(crate) fn check_empty_share_group(
        &mut self,
        request: &mut Request,
        name: &str,
    ) -> Result<(), Refusal> {
        self.check_group(request, name).map_err(|error| (error, String::new()))?;
        match self.share_groups.groups.get(name) {
            None => Err((ErrorCode::GROUP_ID_NOT_FOUND, format!("Share group {name} not found."))),
            Some(group) if !group.members.is_empty() => {
                Err((ErrorCode::NON_EMPTY_GROUP, "The group is not empty.".to_owned()))
            }
            Some(_) => Ok(()),
        }
    }
}
