//! The configuration of topics, brokers and groups: described, changed property by property, or replaced as a whole.

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
    cluster::Route,
    completion::Completion,
    error::{Error, ErrorKind},
    mail::EncodeBody,
};

/// What has a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigResource {
    /// Its kind, by the protocol's number.
    pub kind: ResourceKind,
    /// Its name: of a broker, its id.
    pub name: String,
}

/// A kind of resource, by the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceKind(pub i8);

impl ResourceKind {
    /// A topic.
    pub const TOPIC: Self = Self(2);
    /// A broker.
    pub const BROKER: Self = Self(4);
    /// A consumer group.
    pub const GROUP: Self = Self(32);
}

/// A property of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value; none if it is a secret.
    pub value: Option<String>,
    /// Where the value comes from, by the protocol's number.
    pub source: i8,
    /// It can't be changed.
    pub is_read_only: bool,
    /// The value is the default.
    pub is_default: bool,
    /// It is a secret.
    pub is_sensitive: bool,
    /// Where the value would come from if it were not set here, the most important first.
    pub synonyms: Vec<ConfigSynonym>,
}

/// Another place that a value can come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The property's name there.
    pub name: String,
    /// Its value there.
    pub value: Option<String>,
    /// The place, by the protocol's number.
    pub source: i8,
}

/// A property that is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// Its name.
    pub name: String,
    /// What is to be done.
    pub operation: ConfigOperation,
    /// With this value; none to delete.
    pub value: Option<String>,
}

/// What is done to a property, by the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOperation {
    /// It gets the value.
    Set = 0,
    /// It goes back to its default.
    Delete = 1,
    /// The value's elements are added to its list.
    Append = 2,
    /// The value's elements are taken out of its list.
    Subtract = 3,
}

/// What became of each resource, in the order in which they were named: its properties, or none where they were changed.
pub type ConfigResults = Vec<(ConfigResource, Result<Vec<ConfigEntry>, Error>)>;

/// Resources and what is to be changed in each.
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

/// Changes properties of resources; the others stay as they are.
pub fn change_configs(
    changes: ConfigChanges,
    validate_only: bool,
    timeout: Duration,
    done: Completion<ConfigResults>,
) -> AdminCall {
    operation(Kind::Change, changes, validate_only, timeout, done)
}

/// Gives resources a new configuration: properties that are not named go back to their defaults.
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
    /// Takes in a resource's answer; an error that may pass is handed back.
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

    /// The resources that have no answer yet.
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

    /// A broker answers for its own configuration only.
    fn route(&self) -> Route {
        let brokers = self.changes.iter().filter(|(resource, _)| resource.kind == ResourceKind::BROKER);
        let node = brokers.filter_map(|(resource, _)| resource.name.parse().ok()).next();
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

    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let mut passing = None;
        match self.kind {
            Kind::Describe => {
                let answer = DescribeConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in answer.results {
                    let entries = one.configs.into_iter().map(|config| entry(config, version)).collect();
                    let said = (one.error_code, one.error_message.as_deref());
                    passing = self.add(one.resource_type, &one.resource_name, said, entries).or(passing);
                }
            }
            Kind::Change => {
                let answer =
                    IncrementalAlterConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in answer.responses {
                    let said = (one.error_code, one.error_message.as_deref());
                    passing = self.add(one.resource_type, &one.resource_name, said, Vec::new()).or(passing);
                }
            }
            Kind::Replace => {
                let answer = AlterConfigsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for one in answer.responses {
                    let said = (one.error_code, one.error_message.as_deref());
                    passing = self.add(one.resource_type, &one.resource_name, said, Vec::new()).or(passing);
                }
            }
        }
        Ok(match passing {
            Some(error) => Verdict::Again(error),
            None if self.results.iter().all(Option::is_some) => Verdict::Done,
            None => Verdict::Again(Error::new(ErrorKind::BadResponse, "the answer leaves a resource out")),
        })
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let rest =
            error.unwrap_or_else(|| Error::new(ErrorKind::BadResponse, "the answer leaves the resource out"));
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
        // From version 1 on the source says it: 5 is the default.
        is_default: if version == 0 { config.is_default } else { config.config_source == 5 },
        is_sensitive: config.is_sensitive,
        synonyms: config.synonyms.into_iter().map(synonym).collect(),
    }
}
