//! DeleteShareGroupOffsets (92), version 0: deletes the offsets of topics in a share group without members.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::delete_share_group_offsets::{
        DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, response,
    },
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn delete_share_group_offsets(
        &mut self,
        request: &mut Request,
        body: DeleteShareGroupOffsetsRequest,
    ) -> DeleteShareGroupOffsetsResponse {
        let mut response =
            DeleteShareGroupOffsetsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err((error_code, message)) = self.check_empty_share_group(request, &body.group_id) {
            response.error_code = error_code;
            response.error_message = Some(message).filter(|message| !message.is_empty());
            return response;
        }
        for topic in body.topics {
            let mut deleted = response::Response { topic_name: topic.topic_name, ..Default::default() };
            if let Some(error_code) = self.topic_refusal(request, &deleted.topic_name) {
                response.responses.push(response::Response { error_code, ..deleted });
                continue;
            }
            let index = self.topics.by_name(&deleted.topic_name);
            match index.and_then(|index| Some((index, self.topics.get(index)?))) {
                Some((index, topic)) => {
                    deleted.topic_id = topic.id;
                    if let Some(group) = self.share_groups.groups.get_mut(&body.group_id) {
                        group.partitions.retain(|(of, _), _| *of != index);
                    }
                }
                None => deleted.error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            }
            response.responses.push(deleted);
        }
        response
    }
}
