//! WriteTxnMarkers (27), versions 1 and 2: writes the end of a transaction to partitions. Brokers send it, and
//! administrators who end a hanging transaction. Partitions of `__consumer_offsets` stand for the groups in them.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse, response},
};

use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    transactions::{Marker, ProducerKey},
};

impl Cluster {
    pub(crate) fn write_txn_markers(
        &mut self,
        request: &mut Request,
        body: WriteTxnMarkersRequest,
    ) -> WriteTxnMarkersResponse {
        let access = self
            .check_cluster_access(request, AclOperation::Alter)
            .or_else(|_| self.check_cluster_access(request, AclOperation::ClusterAction));
        let mut response = WriteTxnMarkersResponse::default();
        for requested in body.markers {
            let marker = Marker {
                producer: ProducerKey { id: requested.producer_id, epoch: requested.producer_epoch },
                coordinator_epoch: requested.coordinator_epoch,
                committed: requested.transaction_result,
                version: requested.transaction_version.into(),
            };
            let topics = requested.topics.into_iter().map(|topic| {
                let partitions = topic.partition_indexes.iter().map(|partition_index| {
                    let written =
                        access.and_then(|()| self.write_one(request, &topic.name, *partition_index, &marker));
                    let error_code = written.err().unwrap_or_default();
                    response::Partition { partition_index: *partition_index, error_code }
                });
                let partitions = partitions.collect();
                response::Topic { name: topic.name, partitions }
            });
            let topics = topics.collect();
            response.markers.push(response::Marker { producer_id: requested.producer_id, topics });
        }
        response
    }

    fn write_one(
        &mut self,
        request: &mut Request,
        topic: &str,
        partition: i32,
        marker: &Marker,
    ) -> Result<(), ErrorCode> {
        if let Some(error) = self.injected_error(request, topic, partition) {
            return Err(error);
        }
        if marker.producer.epoch < 0 {
            return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        if topic == crate::transactions::OFFSETS_TOPIC {
            return self.end_offsets_in(partition, marker);
        }
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let index = self.topics.by_name(topic).ok_or(unknown)?;
        self.topics.partition(index, partition).ok_or(unknown)?.check_leader(request.broker, -1)?;
        self.write_marker(index, partition, marker).map(|_| ())
    }
}
