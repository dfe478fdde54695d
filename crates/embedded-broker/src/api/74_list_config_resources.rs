//! ListConfigResources (74), versions 0 and 1: the resources with a configuration of their own. Version 0 lists only
//! client metrics subscriptions. Broker loggers have no configuration here.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::list_config_resources::{
        ListConfigResourcesRequest, ListConfigResourcesResponse, response::ConfigResource,
    },
};

use super::{
    client_metrics::CLIENT_METRICS,
    describe_configs::{BROKER, TOPIC},
    group_configs::GROUP,
};
use crate::{cluster::Cluster, connection::Request};

/// Kafka's number for broker loggers.
const BROKER_LOGGER: i8 = 8;

impl Cluster {
    pub(crate) fn list_config_resources(
        &mut self,
        request: &mut Request,
        body: ListConfigResourcesRequest,
    ) -> ListConfigResourcesResponse {
        let mut response = ListConfigResourcesResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        };
        let requested = match (request.version, body.resource_types) {
            (0, _) => vec![CLIENT_METRICS],
            (_, types) if types.is_empty() => vec![TOPIC, BROKER, CLIENT_METRICS, GROUP],
            (_, types) => types,
        };
        let is_known =
            |resource: &i8| [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP].contains(resource);
        if response.error_code == ErrorCode::NONE && !requested.iter().all(is_known) {
            response.error_code = ErrorCode::UNSUPPORTED_VERSION;
        }
        if response.error_code != ErrorCode::NONE {
            return response;
        }
        for resource_type in requested {
            let names: Vec<String> = match resource_type {
                TOPIC => self.topics.in_order().map(|(_, topic)| topic.name.clone()).collect(),
                BROKER => self.alive_brokers().into_iter().map(|id| id.to_string()).collect(),
                CLIENT_METRICS => self.telemetry.subscription_names().map(str::to_owned).collect(),
                GROUP => self.group_configs.keys().cloned().collect(),
                _ => Vec::new(),
            };
            response.config_resources.extend(
                names.into_iter().map(|resource_name| ConfigResource { resource_name, resource_type }),
            );
        }
        response
    }
}
