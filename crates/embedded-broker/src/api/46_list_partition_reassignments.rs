//! ListPartitionReassignments (46), version 0: always returns an empty list, because partitions are never reassigned.
//! Kafka's topic tool sends this request.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::list_partition_reassignments::{
        ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
    },
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn list_partition_reassignments(
        &mut self,
        request: &mut Request,
        _: ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        ListPartitionReassignmentsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: match request.injected_error() {
                ErrorCode::NONE => {
                    self.check_cluster_access(request, AclOperation::Describe).err().unwrap_or_default()
                }
                injected => injected,
            },
            ..Default::default()
        }
    }
}
