//! The configuration of topics, brokers, groups and client metrics: describes it, changes single properties, or replaces it as a whole.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        alter_configs::{self, AlterConfigsRequest, AlterConfigsResponse},
        describe_configs::{self, DescribeConfigsRequest, DescribeConfigsResponse},
        incremental_alter_configs::{self, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse},
    },
    primitive::Reader,
};

use super::{AdminCall, Operation, Verdict, undecodable};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// A resource that has a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigResource {
    /// The kind of the resource, as the protocol's number.
    pub kind: ResourceKind,
    /// The name of the resource; for a broker, its ID.
    pub name: String,
}

impl ConfigResource {
    /// Returns the topic of this name.
    pub fn topic(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::TOPIC, name: name.into() }
    }

    /// Returns the broker of this ID.
    pub fn broker(id: i32) -> Self {
        Self { kind: ResourceKind::BROKER, name: id.to_string() }
    }

    /// Returns the loggers of the broker of this ID.
    pub fn broker_logger(id: i32) -> Self {
        Self { kind: ResourceKind::BROKER_LOGGER, name: id.to_string() }
    }

    /// Returns the subscription to client metrics of this name.
    pub fn client_metrics(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::CLIENT_METRICS, name: name.into() }
    }

    /// Returns the ID of the broker that alone knows the configuration; `None` if all brokers know it.
    pub fn of_broker(&self) -> Option<i32> {
        let is_of_broker = matches!(self.kind, ResourceKind::BROKER | ResourceKind::BROKER_LOGGER);
        if is_of_broker { self.name.parse().ok() } else { None }
    }

    /// Returns the group of this name.
    pub fn group(name: impl Into<String>) -> Self {
        Self { kind: ResourceKind::GROUP, name: name.into() }
    }
}

/// A kind of resource, as the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKind(pub i8);

impl ResourceKind {
    /// A topic.
    pub const TOPIC: Self = Self(2);
    /// A broker.
    pub const BROKER: Self = Self(4);
    /// The levels of a broker's loggers.
    pub const BROKER_LOGGER: Self = Self(8);
    /// A subscription to client metrics (KIP-714).
    pub const CLIENT_METRICS: Self = Self(16);
    /// A group.
    pub const GROUP: Self = Self(32);
}

/// A property of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigEntry {
    /// The name of the property.
    pub name: String,
    /// The value; `None` if it is a secret.
    pub value: Option<String>,
    /// The source of the value, as the protocol's number.
    pub source: i8,
    /// True if the property cannot be changed.
    pub is_read_only: bool,
    /// True if the value is the default.
    pub is_default: bool,
    /// True if the value is a secret.
    pub is_sensitive: bool,
    /// The sources that would give the value if it were not set here, in order of precedence.
    pub synonyms: Vec<ConfigSynonym>,
}

/// Another source of a property's value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigSynonym {
    /// The property's name at this source.
    pub name: String,
    /// The property's value at this source.
    pub value: Option<String>,
    /// The source, as the protocol's number.
    pub source: i8,
}

/// A change of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// The name of the property.
    pub name: String,
    /// The operation.
    pub operation: ConfigOperation,
    /// The value of the operation; `None` to delete.
    pub value: Option<String>,
}

impl ConfigChange {
    /// Sets the property to this value.
    pub fn set(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), operation: ConfigOperation::Set, value: Some(value.into()) }
    }

    /// Resets the property to its default.
    pub fn delete(name: impl Into<String>) -> Self {
        Self { name: name.into(), operation: ConfigOperation::Delete, value: None }
    }

    /// Adds elements to the property, which is a list; `value` separates them by commas.
    pub fn append(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), operation: ConfigOperation::Append, value: Some(value.into()) }
    }

    /// Removes elements from the property, which is a list; `value` separates them by commas.
    pub fn subtract(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), operation: ConfigOperation::Subtract, value: Some(value.into()) }
    }
}

/// The operation on a property, as the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOperation {
    /// Sets the property to the value.
    Set = 0,
    /// Resets the property to its default.
    Delete = 1,
    /// Appends the value's elements to the property's list.
    Append = 2,
    /// Removes the value's elements from the property's list.
    Subtract = 3,
}

/// The result of each resource, in the order of the request: its properties, or none after a change.
pub type ConfigResults = Vec<(ConfigResource, Result<Vec<ConfigEntry>, Error>)>;

/// The resources, each with the changes of its properties.
pub type ConfigChanges = Vec<(ConfigResource, Vec<ConfigChange>)>;

/// Describes configurations.
pub fn describe_configs(
    resources: Vec<ConfigResource>,
    timeout: Duration,
    done: Completion<ConfigResults>,
) -> AdminCall {
    let changes = resources.into_iter().map(|resource| (resource, Vec::new())).collect();
    operation(Kind::Describe, changes, false, timeout, done)
}

/// Changes properties of resources; properties that are not named keep their values.
pub fn change_configs(
    changes: ConfigChanges,
    validate_only: bool,
    timeout: Duration,
    done: Completion<ConfigResults>,
) -> AdminCall {
    operation(Kind::Change, changes, validate_only, timeout, done)
}

/// Replaces the configuration of resources: properties that are not named are reset to their defaults.
pub fn replace_configs(
    changes: ConfigChanges,
    validate_only: bool,
    timeout: Duration,
    done: Completion<ConfigResults>,
) -> AdminCall {
    operation(Kind::Replace, changes, validate_only, timeout, done)
}

fn operation(
    kind: Kind,
    changes: ConfigChanges,
    validate_only: bool,
    timeout: Duration,
    done: Completion<ConfigResults>,
) -> AdminCall {
    let results = changes.iter().map(|_| None).collect();
    AdminCall::operation(ConfigCall { kind, changes, validate_only, results, done }, timeout)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Describe,
    Change,
    Replace,
}

struct ConfigCall {
    kind: Kind,
    changes: ConfigChanges,
    validate_only: bool,
    results: Vec<Option<Result<Vec<ConfigEntry>, Error>>>,
    done: Completion<ConfigResults>,
}

impl ConfigCall {
    /// Stores the response for a resource. A transient error is returned instead, so that the call retries.
    fn add(
        &mut self,
        kind: i8,
        name: &str,
        (code, message): (ErrorCode, Option<&str>),
        entries: Vec<ConfigEntry>,
    ) -> Option<Error> {
        let is_it = |(resource, _): &(ConfigResource, _)| resource.kind.0 == kind && resource.name == name;
        let place = self.changes.iter().position(is_it)?;
        if code == ErrorCode::NONE {
            self.results[place] = Some(Ok(entries));
            return None;
        }
        let error = Error::broker(code, message);
        if matches!(code, ErrorCode::NOT_CONTROLLER | ErrorCode::THROTTLING_QUOTA_EXCEEDED) {
            return Some(error);
        }
        self.results[place] = Some(Err(error));
        None
    }

    /// Returns the resources that have no response yet.
    fn lacking(&self) -> impl Iterator<Item = &(ConfigResource, Vec<ConfigChange>)> {
        self.changes
            .iter()
            .zip(&self.results)
            .filter(|(_, result)| result.is_none())
            .map(|(change, _)| change)
    }
}

impl Operation for ConfigCall {
    fn api(&self) -> ApiKey {
        match self.kind {
            Kind::Describe => ApiKey::DescribeConfigs,
            Kind::Change => ApiKey::IncrementalAlterConfigs,
            Kind::Replace => ApiKey::AlterConfigs,
        }
    }

    /// Returns the route: only a broker itself responds for its own configuration.
    fn route(&self) -> Route {
        let node = self.changes.iter().find_map(|(resource, _)| resource.of_broker());
        node.map_or(Route::Any, Route::Node)
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let validate_only = self.validate_only;
        match self.kind {
            Kind::Describe => {
                let resources = self.lacking().map(|(resource, _)| describe_configs::request::Resource {
                    resource_type: resource.kind.0,
                    resource_name: resource.name.clone(),
                    configuration_keys: None,
                });
                let resources: Vec<_> = resources.collect();
                Box::new(move |version, out| {
                    let request = DescribeConfigsRequest {
                        resources: resources.clone(),
                        include_synonyms: version >= 1,
                        include_documentation: false,
                    };
                    request.encode(version, out)
                })
            }
            Kind::Change => {
                let change = |change: &ConfigChange| incremental_alter_configs::request::Config {
                    name: change.name.clone(),
                    config_operation: change.operation as i8,
                    value: change.value.clone(),
                };
                let resources =
                    self.lacking().map(|(resource, changes)| incremental_alter_configs::request::Resource {
                        resource_type: resource.kind.0,
                        resource_name: resource.name.clone(),
                        configs: changes.iter().map(change).collect(),
                    });
                let request =
                    IncrementalAlterConfigsRequest { resources: resources.collect(), validate_only };
                Box::new(move |version, out| request.encode(version, out))
            }
            Kind::Replace => {
                let config = |change: &ConfigChange| alter_configs::request::Config {
                    name: change.name.clone(),
                    value: change.value.clone(),
                };
                let resources = self.lacking().map(|(resource, changes)| alter_configs::request::Resource {
                    resource_type: resource.kind.0,
                    resource_name: resource.name.clone(),
                    configs: changes.iter().map(config).collect(),
                });
                let request = AlterConfigsRequest { resources: resources.collect(), validate_only };
                Box::new(move |version, out| request.encode(version, out))
            }
        }
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let mut passing = None;
        match self.kind {
            Kind::Describe => {
                let response =
                    DescribeConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in response.results {
                    let entries = one.configs.into_iter().map(|config| entry(config, version)).collect();
                    let outcome = (one.error_code, one.error_message.as_deref());
                    passing = self.add(one.resource_type, &one.resource_name, outcome, entries).or(passing);
                }
            }
            Kind::Change => {
                let response =
                    IncrementalAlterConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in response.responses {
                    let outcome = (one.error_code, one.error_message.as_deref());
                    passing =
                        self.add(one.resource_type, &one.resource_name, outcome, Vec::new()).or(passing);
                }
            }
            Kind::Replace => {
                let response = AlterConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in response.responses {
                    let outcome = (one.error_code, one.error_message.as_deref());
                    passing =
                        self.add(one.resource_type, &one.resource_name, outcome, Vec::new()).or(passing);
                }
            }
        }
        Ok(match passing {
            Some(error) => Verdict::Again(error),
            None if self.results.iter().all(Option::is_some) => Verdict::Done,
            None => Verdict::Again(Error::new(ErrorKind::BadResponse, "the response omits a resource")),
        })
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let rest =
            error.unwrap_or_else(|| Error::new(ErrorKind::BadResponse, "the response omits the resource"));
        let results = self.changes.into_iter().zip(self.results).map(|((resource, _), result)| {
            let result = result.unwrap_or_else(|| Err(rest.clone()));
            (resource, result)
        });
        self.done.complete(results.collect());
    }
}

fn entry(config: describe_configs::response::Config, version: i16) -> ConfigEntry {
    let synonym = |synonym: describe_configs::response::Synonym| ConfigSynonym {
        name: synonym.name,
        value: synonym.value,
        source: synonym.source,
    };
    ConfigEntry {
        name: config.name,
        value: config.value,
        source: config.config_source,
        is_read_only: config.read_only,
        // From version 1 on the source shows whether the value is the default: 5.
        is_default: if version == 0 { config.is_default } else { config.config_source == 5 },
        is_sensitive: config.is_sensitive,
        synonyms: config.synonyms.into_iter().map(synonym).collect(),
    }
}
