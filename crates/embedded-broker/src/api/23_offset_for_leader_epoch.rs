//! OffsetForLeaderEpoch (23), versions 2 to 4: where a leader epoch ended, so that a client finds out whether the log that
//! it read was cut off (KIP-320).

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
        let mut answer =
            OffsetForLeaderEpochResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let mut partitions = Vec::new();
            for wanted in &topic.partitions {
                let found = self.end_of_epoch(request, &topic.topic, wanted);
                let (error_code, (leader_epoch, end_offset)) =
                    found.map_or_else(|error| (error, (-1, -1)), |end| (ErrorCode::NONE, end));
                partitions.push(response::Partition {
                    error_code,
                    partition: wanted.partition,
                    leader_epoch,
                    end_offset,
                });
            }
            answer.topics.push(response::Topic { topic: topic.topic, partitions });
        }
        answer
    }

    fn end_of_epoch(
        &mut self,
        request: &mut Request,
        topic: &str,
        wanted: &request::Partition,
    ) -> Result<(i32, i64), ErrorCode> {
        if let Some(error) = self.injected_error(request, topic, wanted.partition) {
            return Err(error);
        }
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let state =
            self.topics.partition(index, wanted.partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        state.check_leader(request.broker, wanted.current_leader_epoch)?;
        if wanted.leader_epoch > state.leader_epoch {
            return Ok((-1, -1));
        }
        if wanted.leader_epoch == state.leader_epoch {
            return Ok((wanted.leader_epoch, state.log.end_offset()));
        }
        Ok(state.log.end_of_epoch(wanted.leader_epoch).unwrap_or((-1, -1)))
    }
}
