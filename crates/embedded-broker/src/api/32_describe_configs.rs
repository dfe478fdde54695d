//! DescribeConfigs (32), versions 1 to 4, for topics (2), brokers (4), client metrics subscriptions (16) and groups
//! (32).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_configs::{DescribeConfigsRequest, DescribeConfigsResponse, request, response},
};
use ottla_sorted::SortedMap;

use super::{
    client_metrics::CLIENT_METRICS,
    configs::{ConfigEntry, ConfigSource, broker_configs, topic_configs},
    group_configs::GROUP,
};
use crate::{cluster::Cluster, connection::Request, provisioning::Refusal};

pub(crate) const TOPIC: i8 = 2;
pub(crate) const BROKER: i8 = 4;

impl Cluster {
    pub(crate) fn describe_configs(
        &mut self,
        request: &mut Request,
        body: DescribeConfigsRequest,
    ) -> DescribeConfigsResponse {
        let mut response =
            DescribeConfigsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for resource in body.resources {
            let found = self.find_configs(request, &resource);
            let (error_code, error_message, entries) = match found {
                Ok(entries) => (ErrorCode::NONE, None, entries),
                Err((error, message)) => (error, Some(message), Vec::new()),
            };
            let requested = |entry: &ConfigEntry| {
                resource
                    .configuration_keys
                    .as_ref()
                    .is_none_or(|keys| keys.iter().any(|key| key == entry.name))
            };
            let entries = entries.into_iter().filter(requested);
            let configs =
                entries.map(|entry| describe(entry, request.version, body.include_synonyms)).collect();
            response.results.push(response::DescribeConfigsResult {
                error_code,
                error_message,
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                configs,
            });
        }
        response
    }

    fn find_configs(
        &mut self,
        request: &mut Request,
        resource: &request::Resource,
    ) -> Result<Vec<ConfigEntry>, Refusal> {
        if let Some(error) = self.injected_error(request, &resource.resource_name, -1) {
            return Err((error, "A fault was injected.".to_owned()));
        }
        self.check_config_access(request, resource.resource_type, &resource.resource_name)?;
        match resource.resource_type {
            TOPIC => {
                let index = self.topics.by_name(&resource.resource_name);
                let Some(topic) = index.and_then(|index| self.topics.get(index)) else {
                    let message = format!("Topic {} doesn't exist.", resource.resource_name);
                    return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
                };
                Ok(topic_configs(&self.options, &topic.configs))
            }
            BROKER if resource.resource_name.is_empty() => Ok(Vec::new()),
            BROKER => {
                let id = self.broker_of_resource(&resource.resource_name)?;
                Ok(broker_configs(self, id).into_iter().chain(self.broker_limits(id)).collect())
            }
            CLIENT_METRICS => self.client_metrics_configs(&resource.resource_name),
            GROUP => self.group_configs_of(&resource.resource_name),
            other => Err((ErrorCode::INVALID_REQUEST, format!("Unsupported resource type: {other}"))),
        }
    }

    /// Returns a topic's explicitly set configuration, to be changed by the caller.
    pub(crate) fn topic_config_map(&self, topic: &str) -> Option<SortedMap<String, String>> {
        self.topics.by_name(topic).and_then(|index| self.topics.get(index)).map(|topic| topic.configs.clone())
    }
}

fn describe(entry: ConfigEntry, version: i16, include_synonyms: bool) -> response::Config {
    let mut config = response::Config {
        name: entry.name.to_owned(),
        value: Some(entry.value.clone()),
        read_only: entry.read_only,
        config_source: entry.source as i8,
        ..Default::default()
    };
    if version >= 3 {
        config.config_type = entry.config_type as i8;
    }
    if include_synonyms {
        if entry.source != ConfigSource::Default {
            config.synonyms.push(response::Synonym {
                name: entry.name.to_owned(),
                value: Some(entry.value),
                source: entry.source as i8,
            });
        }
        if let Some(synonym) = entry.synonym {
            config.synonyms.push(response::Synonym {
                name: synonym.to_owned(),
                value: Some(entry.default),
                source: ConfigSource::Default as i8,
            });
        }
    }
    config
}
