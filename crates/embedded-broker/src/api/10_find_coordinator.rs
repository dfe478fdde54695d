//! FindCoordinator (10), versions 0 to 6; several keys at once from version 4 on. A hash of the key selects the
//! coordinator of a group (0) or transactional ID (1) among the brokers that are up, unless a test has set one. Share
//! groups are treated as groups. Share partitions (2), which only brokers look up, are not served.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse, response},
};

use crate::{
    acls::{AclOperation, ResourceType},
    cluster::Cluster,
    connection::Request,
};

impl Cluster {
    pub(crate) fn find_coordinator(
        &mut self,
        request: &mut Request,
        body: FindCoordinatorRequest,
    ) -> FindCoordinatorResponse {
        let mut response =
            FindCoordinatorResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let error = request.injected_error();
        if request.version >= 4 {
            for key in body.coordinator_keys {
                let coordinator = self.find_one(request, &key, body.key_type, error);
                response.coordinators.push(response::Coordinator { key, ..coordinator });
            }
            return response;
        }
        let coordinator = self.find_one(request, &body.key, body.key_type, error);
        response.error_code = coordinator.error_code;
        if request.version >= 1 {
            response.error_message = coordinator.error_message;
        }
        (response.node_id, response.host, response.port) =
            (coordinator.node_id, coordinator.host, coordinator.port);
        response
    }

    fn find_one(
        &self,
        request: &Request,
        key: &str,
        key_type: i8,
        injected: ErrorCode,
    ) -> response::Coordinator {
        let injected = match (injected, key_type) {
            (ErrorCode::NONE, 0) => self.check_group_access(request, key).err().unwrap_or_default(),
            (ErrorCode::NONE, 1)
                if !self.permits(
                    request.connection,
                    AclOperation::Describe,
                    ResourceType::TransactionalId,
                    key,
                ) =>
            {
                ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            }
            (error, _) => error,
        };
        let found = match (injected, key_type) {
            (ErrorCode::NONE, 0 | 1) => self
                .coordinator_of(key_type, key)
                .and_then(|id| Some((id, self.port_for(request.connection, id)?)))
                .ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            (ErrorCode::NONE, _) => Err(ErrorCode::INVALID_REQUEST),
            (error, _) => Err(error),
        };
        match found {
            Ok((id, port)) => response::Coordinator {
                node_id: id.0,
                host: self.brokers[&id].host.clone(),
                port,
                ..Default::default()
            },
            Err(error_code) => {
                response::Coordinator { node_id: -1, port: -1, error_code, ..Default::default() }
            }
        }
    }
}
