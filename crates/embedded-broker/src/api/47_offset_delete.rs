//! OffsetDelete (47), version 0: deletes committed offsets of topics that no member of the group subscribes to.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse, response},
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn offset_delete(
        &mut self,
        request: &mut Request,
        body: OffsetDeleteRequest,
    ) -> OffsetDeleteResponse {
        let mut response =
            OffsetDeleteResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err(error_code) = self.check_offset_delete(request, &body.group_id) {
            return OffsetDeleteResponse { error_code, ..response };
        }
        for topic in body.topics {
            let found = self.topics.by_name(&topic.name);
            let group = self.groups.get(&body.group_id);
            let is_subscribed = group.is_some_and(|group| group.subscribes_to(&self.topics, &topic.name));
            let refused = self.topic_refusal(request, &topic.name);
            let mut partitions = Vec::new();
            for partition in topic.partitions {
                let partition_index = partition.partition_index;
                let is_known =
                    found.and_then(|index| self.topics.partition(index, partition_index)).is_some();
                let error_code = if let Some(error) = refused {
                    error
                } else if !is_known {
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                } else if is_subscribed {
                    ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
                } else {
                    self.delete_offset(&body.group_id, (topic.name.clone(), partition_index));
                    ErrorCode::NONE
                };
                partitions.push(response::Partition { partition_index, error_code });
            }
            response.topics.push(response::Topic { name: topic.name, partitions });
        }
        response
    }

    /// Error: offsets of the group can't be deleted at all.
    fn check_offset_delete(&mut self, request: &mut Request, group: &str) -> Result<(), ErrorCode> {
        self.check_group(request, group)?;
        let group = self.groups.get(group).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        let is_of_consumers = group.protocol_type() == "consumer";
        if group.is_empty() || is_of_consumers { Ok(()) } else { Err(ErrorCode::NON_EMPTY_GROUP) }
    }
}
