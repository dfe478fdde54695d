//! OffsetForLeaderEpoch (23), versions 2 to 4: returns the end offset of a leader epoch, from which a client detects a
//! truncated log (KIP-320).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::offset_for_leader_epoch::{
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, request, response,
    },
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn offset_for_leader_epoch(
        &mut self,
        request: &mut Request,
        body: OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        let mut response =
            OffsetForLeaderEpochResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let mut partitions = Vec::new();
            for requested in &topic.partitions {
                let found = self.end_of_epoch(request, &topic.topic, requested);
                let (error_code, (leader_epoch, end_offset)) =
                    found.map_or_else(|error| (error, (-1, -1)), |end| (ErrorCode::NONE, end));
                partitions.push(response::Partition {
                    error_code,
                    partition: requested.partition,
                    leader_epoch,
                    end_offset,
                });
            }
            response.topics.push(response::Topic { topic: topic.topic, partitions });
        }
        response
    }

    fn end_of_epoch(
        &mut self,
        request: &mut Request,
        topic: &str,
        requested: &request::Partition,
    ) -> Result<(i32, i64), ErrorCode> {
        if let Some(error) = self.topic_error(request, topic, requested.partition) {
            return Err(error);
        }
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let state =
            self.topics.partition(index, requested.partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        state.check_leader(request.broker, requested.current_leader_epoch)?;
        if requested.leader_epoch > state.leader_epoch {
            return Ok((-1, -1));
        }
        if requested.leader_epoch == state.leader_epoch {
            return Ok((requested.leader_epoch, state.log.end_offset()));
        }
        Ok(state.log.end_of_epoch(requested.leader_epoch).unwrap_or((-1, -1)))
    }
}
