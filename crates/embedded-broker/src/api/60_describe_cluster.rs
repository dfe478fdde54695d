//! DescribeCluster (60), versions 0 to 2.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_cluster::{DescribeClusterRequest, DescribeClusterResponse, response},
};

use super::metadata::CLUSTER_OPERATIONS;
use crate::{
    acls::{CLUSTER_NAME, ResourceType},
    cluster::Cluster,
    connection::Request,
};

impl Cluster {
    pub(crate) fn describe_cluster(
        &mut self,
        request: &mut Request,
        body: DescribeClusterRequest,
    ) -> DescribeClusterResponse {
        let mut response = DescribeClusterResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            cluster_id: self.cluster_id(request.connection).to_owned(),
            controller_id: self.controller.0,
            ..Default::default()
        };
        if response.error_code != ErrorCode::NONE {
            return response;
        }
        let of_controllers = match self.check_endpoint_type(request.broker, body.endpoint_type) {
            Ok(of_controllers) => of_controllers,
            Err(code) => {
                response.error_code = code;
                response.error_message =
                    Some("The request was sent to an endpoint of the wrong type.".to_owned());
                return response;
            }
        };
        response.endpoint_type = body.endpoint_type;
        for (id, broker) in self.brokers.iter().filter(|(_, broker)| broker.is_controller == of_controllers) {
            if broker.is_listed()
                || broker.is_controller && broker.alive
                || !broker.unlisted && body.include_fenced_brokers && request.version >= 2
            {
                let Some(port) = self.port_for(request.connection, *id) else { continue };
                response.brokers.push(response::Broker {
                    broker_id: id.0,
                    host: broker.host.clone(),
                    port,
                    rack: broker.rack.clone(),
                    is_fenced: !broker.alive,
                });
            }
        }
        if body.include_cluster_authorized_operations {
            response.cluster_authorized_operations = self.permitted_operations(
                request.connection,
                CLUSTER_OPERATIONS,
                ResourceType::Cluster,
                CLUSTER_NAME,
            );
        }
        response
    }
}
