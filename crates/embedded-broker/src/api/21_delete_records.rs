//! DeleteRecords (21), versions 0 to 2: moves a partition's log start offset forward; -1 means the high watermark.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, response},
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn delete_records(
        &mut self,
        request: &mut Request,
        body: DeleteRecordsRequest,
    ) -> DeleteRecordsResponse {
        let mut response =
            DeleteRecordsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let mut partitions = Vec::new();
            for partition in topic.partitions {
                let index = partition.partition_index;
                let (low_watermark, error_code) =
                    match self.delete_before(request, &topic.name, index, partition.offset) {
                        Ok(start) => (start, ErrorCode::NONE),
                        Err(error) => (-1, error),
                    };
                partitions.push(response::Partition { partition_index: index, low_watermark, error_code });
            }
            response.topics.push(response::Topic { name: topic.name, partitions });
        }
        response
    }

    fn delete_before(
        &mut self,
        request: &mut Request,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Result<i64, ErrorCode> {
        if let Some(error) = self.topic_error(request, topic, partition) {
            return Err(error);
        }
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let state = self.topics.partition(index, partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        state.check_leader(request.broker, -1)?;
        let offset = if offset == -1 { state.log.high_watermark() } else { offset };
        if offset < 0 || offset > state.log.high_watermark() {
            return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        self.delete_records_before(index, partition, offset);
        self.topics.partition(index, partition).map_or(Ok(offset), |state| Ok(state.log.start_offset()))
    }
}
