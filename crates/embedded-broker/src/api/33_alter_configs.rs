//! AlterConfigs (33), versions 0 to 2, for topics: entries that the request doesn't name are reset to their defaults.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::alter_configs::{AlterConfigsRequest, AlterConfigsResponse, request, response},
};
use ottla_sorted::SortedMap;

use super::describe_configs::TOPIC;
use crate::{
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
};

impl Cluster {
    pub(crate) fn alter_configs_api(
        &mut self,
        request: &mut Request,
        body: AlterConfigsRequest,
    ) -> AlterConfigsResponse {
        let mut response =
            AlterConfigsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for resource in body.resources {
            let done = self.replace_configs(request, &resource, body.validate_only);
            let (error_code, error_message) = code_and_message(done);
            response.responses.push(response::Response {
                error_code,
                error_message,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
            });
        }
        response
    }

    fn replace_configs(
        &mut self,
        request: &mut Request,
        resource: &request::Resource,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if let Some(error) = self.injected_error(request, &resource.resource_name, -1) {
            return Err((error, "A fault was injected.".to_owned()));
        }
        self.check_config_access(request, resource.resource_type, &resource.resource_name)?;
        if resource.resource_type != TOPIC {
            let message = "Only the configuration of topics can be changed.".to_owned();
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
        let Some(index) = self.topics.by_name(&resource.resource_name) else {
            let message = format!("Topic {} doesn't exist.", resource.resource_name);
            return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
        };
        let mut configs = SortedMap::new();
        for config in &resource.configs {
            let Some(value) = &config.value else {
                return Err((
                    ErrorCode::INVALID_REQUEST,
                    format!("Null value not supported for {}", config.name),
                ));
            };
            configs.insert(config.name.clone(), value.clone());
        }
        if validate_only { self.limits(&configs).map(|_| ()) } else { self.set_topic_configs(index, configs) }
    }
}
