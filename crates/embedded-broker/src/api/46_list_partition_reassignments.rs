//! ListPartitionReassignments (46), version 0: always returns an empty list, because partitions are never reassigned.
//! Kafka's topic tool sends this request.

use ottla_protocol::generated::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use crate::{cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn list_partition_reassignments(
        &mut self,
        request: &mut Request,
        _: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        ListPartitionReassignmentsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        }
    }
}
