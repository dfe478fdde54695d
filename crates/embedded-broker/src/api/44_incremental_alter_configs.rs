//! IncrementalAlterConfigs (44), versions 0 and 1, for topics, groups, client metrics and the limits of brokers: set (0), delete
//! (1), append to a list (2) and subtract from a list (3).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::incremental_alter_configs::{
        IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, request, response,
    },
};
use ottla_sorted::SortedMap;

use super::{
    client_metrics::CLIENT_METRICS,
    configs::{default_of, is_list},
    describe_configs::{BROKER, TOPIC},
    group_configs::GROUP,
};
use crate::{
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
};

impl Cluster {
    pub(crate) fn incremental_alter_configs(
        &mut self,
        request: &mut Request,
        body: IncrementalAlterConfigsRequest,
    ) -> IncrementalAlterConfigsResponse {
        let mut response =
            IncrementalAlterConfigsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for resource in body.resources {
            let done = self.alter_configs(request, &resource, body.validate_only);
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

    fn alter_configs(
        &mut self,
        request: &mut Request,
        resource: &request::Resource,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        if let Some(error) = self.injected_error(request, &resource.resource_name, -1) {
            return Err((error, "A fault was injected.".to_owned()));
        }
        self.check_config_access(request, resource.resource_type, &resource.resource_name)?;
        if resource.resource_type == GROUP {
            let group = &resource.resource_name;
            let mut configs = self.group_configs.get(group).cloned().unwrap_or_default();
            for change in &resource.configs {
                alter(&mut configs, change)?;
            }
            return self.set_group_configs(group, configs, validate_only);
        }
        if resource.resource_type == CLIENT_METRICS {
            let name = &resource.resource_name;
            let mut configs = self.client_metrics_config_map(name);
            for change in &resource.configs {
                alter(&mut configs, change)?;
            }
            return self.set_client_metrics_configs(name, configs, validate_only);
        }
        if resource.resource_type == BROKER {
            let id = self.broker_of_resource(&resource.resource_name)?;
            let mut limits = self.administration.broker_limits.get(&id).cloned().unwrap_or_default();
            for change in &resource.configs {
                alter(&mut limits, change)?;
            }
            return self.set_broker_limits(id, limits, validate_only);
        }
        if resource.resource_type != TOPIC {
            let message = "Only topics, brokers, groups and client metrics have a configuration.".to_owned();
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
        let unknown = || {
            (
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                format!("Topic {} doesn't exist.", resource.resource_name),
            )
        };
        let index = self.topics.by_name(&resource.resource_name).ok_or_else(unknown)?;
        let mut configs = self.topic_config_map(&resource.resource_name).ok_or_else(unknown)?;
        for change in &resource.configs {
            alter(&mut configs, change)?;
        }
        if validate_only { self.limits(&configs).map(|_| ()) } else { self.set_topic_configs(index, configs) }
    }
}

fn alter(configs: &mut SortedMap<String, String>, change: &request::Config) -> Result<(), Refusal> {
    let name = &change.name;
    if change.config_operation == 1 {
        configs.remove(name);
        return Ok(());
    }
    let Some(value) = &change.value else {
        return Err((ErrorCode::INVALID_REQUEST, format!("Null value not supported for {name}")));
    };
    if change.config_operation == 0 {
        configs.insert(name.clone(), value.clone());
        return Ok(());
    }
    if !is_list(name) {
        return Err((
            ErrorCode::INVALID_CONFIG,
            format!("Can't append to or subtract from {name}: it is not a list"),
        ));
    }
    let now = configs.get(name).map(String::as_str).or_else(|| default_of(name)).unwrap_or_default();
    let mut entries: Vec<&str> = now.split(',').filter(|entry| !entry.is_empty()).collect();
    for entry in value.split(',').filter(|entry| !entry.is_empty()) {
        match change.config_operation {
            2 if !entries.contains(&entry) => entries.push(entry),
            2 => {}
            3 => entries.retain(|known| *known != entry),
            other => return Err((ErrorCode::INVALID_REQUEST, format!("Unknown operation {other}"))),
        }
    }
    let joined = entries.join(",");
    configs.insert(name.clone(), joined);
    Ok(())
}
