//! DescribeProducers (61), version 0: the producers that a partition's leader knows, and where their open transactions
//! begin (KIP-664).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_producers::{DescribeProducersRequest, DescribeProducersResponse, response},
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn describe_producers(
        &mut self,
        request: &mut Request,
        body: DescribeProducersRequest,
    ) -> DescribeProducersResponse {
        let mut response =
            DescribeProducersResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for topic in body.topics {
            let mut partitions = Vec::new();
            for partition_index in topic.partition_indexes {
                let mut partition = response::Partition { partition_index, ..Default::default() };
                match self.active_producers(request, &topic.name, partition_index) {
                    Ok(producers) => partition.active_producers = producers,
                    Err(error_code) => partition.error_code = error_code,
                }
                partitions.push(partition);
            }
            response.topics.push(response::Topic { name: topic.name, partitions });
        }
        response
    }

    fn active_producers(
        &mut self,
        request: &mut Request,
        topic: &str,
        partition: i32,
    ) -> Result<Vec<response::ActiveProducer>, ErrorCode> {
        if let Some(error) = self.topic_error(request, topic, partition) {
            return Err(error);
        }
        let index = self.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let state = self.topics.partition(index, partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        state.check_leader(request.broker, -1)?;
        let producers = state.producers.iter().map(|producer| response::ActiveProducer {
            producer_id: producer.id,
            producer_epoch: i32::from(producer.epoch),
            last_sequence: producer.last_sequence,
            last_timestamp: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            current_txn_start_offset: state.transactions.first_offset_of(producer.id).unwrap_or(-1),
        });
        Ok(producers.collect())
    }
}
