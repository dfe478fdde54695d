//! Creates and deletes topics, and adds partitions. Each topic has a result of its own; topics with a transient error
//! are requested again.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        create_partitions::{self, CreatePartitionsRequest, CreatePartitionsResponse},
        create_topics::{self, CreateTopicsRequest, CreateTopicsResponse},
        delete_topics::{self, DeleteTopicsRequest, DeleteTopicsResponse},
    },
    primitive::Reader,
};

use super::{AdminCall, Operation, Verdict, undecodable};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewTopic {
    /// The name.
    pub name: String,
    /// The number of partitions; -1 for the broker's default (from Kafka 2.4 on).
    pub partitions: i32,
    /// The number of replicas; -1 for the broker's default (from Kafka 2.4 on).
    pub replication_factor: i16,
    /// The brokers of each partition's replicas, the preferred leader first. If set, the two numbers above are not
    /// used.
    pub assignments: BTreeMap<i32, Vec<i32>>,
    /// The topic's configuration. Brokers refuse properties without a value.
    pub configs: Vec<(String, Option<String>)>,
}

impl NewTopic {
    /// Describes a new topic with this number of partitions and replicas.
    pub fn new(name: impl Into<String>, partitions: i32, replication_factor: i16) -> Self {
        Self {
            name: name.into(),
            partitions,
            replication_factor,
            assignments: BTreeMap::new(),
            configs: Vec::new(),
        }
    }

    /// Sets a property of the topic.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((name.into(), Some(value.into())));
        self
    }

    /// Sets the brokers of a partition's replicas, the preferred leader first. Every partition must then be assigned.
    #[must_use]
    pub fn assign(mut self, partition: i32, brokers: &[i32]) -> Self {
        self.assignments.insert(partition, brokers.to_vec());
        self
    }
}

/// A topic that gets more partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewPartitions {
    /// The topic.
    pub topic: String,
    /// The total number of partitions afterwards.
    pub count: i32,
    /// The brokers of each new partition's replicas, the preferred leader first; empty to let the broker choose.
    pub assignments: Vec<Vec<i32>>,
}

impl NewPartitions {
    /// Creates the request to grow a topic to this total number of partitions; the controller chooses the replicas.
    pub fn new(topic: impl Into<String>, count: i32) -> Self {
        Self { topic: topic.into(), count, assignments: Vec::new() }
    }
}

/// The result of each topic, in the order of the request.
pub type TopicResults = Vec<(String, Result<(), Error>)>;

/// Creates topics; with `validate_only` the broker only validates the request.
pub fn create_topics(
    topics: Vec<NewTopic>,
    validate_only: bool,
    timeout: Duration,
    done: Completion<TopicResults>,
) -> AdminCall {
    let names = topics.iter().map(|topic| topic.name.clone()).collect();
    let kind = Kind::Create { topics, validate_only };
    AdminCall::operation(TopicOperation { kind, outcomes: Outcomes::new(names), done }, timeout)
}

/// Deletes topics.
pub fn delete_topics(names: Vec<String>, timeout: Duration, done: Completion<TopicResults>) -> AdminCall {
    AdminCall::operation(TopicOperation { kind: Kind::Delete, outcomes: Outcomes::new(names), done }, timeout)
}

/// Adds partitions to topics.
pub fn create_partitions(
    topics: Vec<NewPartitions>,
    validate_only: bool,
    timeout: Duration,
    done: Completion<TopicResults>,
) -> AdminCall {
    let names = topics.iter().map(|topic| topic.topic.clone()).collect();
    let kind = Kind::CreatePartitions { topics, validate_only };
    AdminCall::operation(TopicOperation { kind, outcomes: Outcomes::new(names), done }, timeout)
}

/// The first version of CreateTopics with `validate_only`.
const FIRST_CREATE_WITH_VALIDATION: i16 = 1;

struct TopicOperation {
    kind: Kind,
    outcomes: Outcomes,
    done: Completion<TopicResults>,
}

enum Kind {
    Create { topics: Vec<NewTopic>, validate_only: bool },
    Delete,
    CreatePartitions { topics: Vec<NewPartitions>, validate_only: bool },
}

/// The results of the topics so far.
struct Outcomes {
    names: Vec<String>,
    results: BTreeMap<String, Result<(), Error>>,
    /// True if an earlier request was lost or refused, so that it may have been carried out.
    repeated: bool,
}

impl Outcomes {
    /// Creates the state without results. A name that is requested twice has one result, because responses name each
    /// topic once.
    fn new(mut names: Vec<String>) -> Self {
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Self { names, results: BTreeMap::new(), repeated: false }
    }

    /// True if a topic has no result yet.
    fn lacks(&self, name: &str) -> bool {
        !self.results.contains_key(name)
    }

    /// Stores the result of a topic. A transient error is returned instead, so that the call retries.
    fn add(&mut self, name: &str, code: ErrorCode, message: Option<&str>) -> Option<Error> {
        let error = Error::broker(code, message).with_topic(name);
        if code == ErrorCode::NONE {
            self.results.insert(name.to_owned(), Ok(()));
            return None;
        }
        let passes = matches!(
            code,
            ErrorCode::NOT_CONTROLLER
                | ErrorCode::THROTTLING_QUOTA_EXCEEDED
                | ErrorCode::COORDINATOR_NOT_AVAILABLE
        );
        if passes {
            self.repeated = true;
            return Some(error);
        }
        self.results.insert(name.to_owned(), Err(error));
        None
    }

    /// Returns the verdict after one response.
    fn verdict(&self, passing: Option<Error>) -> Verdict {
        match passing {
            Some(error) => Verdict::Again(error),
            None if self.names.iter().all(|name| self.results.contains_key(name)) => Verdict::Done,
            None => Verdict::Again(Error::new(ErrorKind::BadResponse, "the response omits a topic")),
        }
    }
}

impl Operation for TopicOperation {
    fn api(&self) -> ApiKey {
        match self.kind {
            Kind::Create { .. } => ApiKey::CreateTopics,
            Kind::Delete => ApiKey::DeleteTopics,
            Kind::CreatePartitions { .. } => ApiKey::CreatePartitions,
        }
    }

    /// Returns the versions. A validation is not sent to a broker that does not support it and would create the topics.
    fn versions(&self) -> RangeInclusive<i16> {
        let all = self.api().versions();
        let first = match self.kind {
            Kind::Create { validate_only: true, .. } => FIRST_CREATE_WITH_VALIDATION,
            _ => *all.start(),
        };
        first..=*all.end()
    }

    fn route(&self) -> Route {
        Route::Controller
    }

    fn encode(&self, timeout: Duration) -> EncodeBody {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let lacking = |name: &str| self.outcomes.lacks(name);
        match &self.kind {
            Kind::Create { topics, validate_only } => {
                let topics = topics.iter().filter(|topic| lacking(&topic.name)).map(request_topic).collect();
                let validate_only = *validate_only;
                let request = CreateTopicsRequest { topics, timeout_ms, validate_only };
                Box::new(move |version, out| request.encode(version, out))
            }
            Kind::Delete => {
                let names: Vec<String> =
                    self.outcomes.names.iter().filter(|name| lacking(name)).cloned().collect();
                Box::new(move |version, out| {
                    let mut request = DeleteTopicsRequest { timeout_ms, ..DeleteTopicsRequest::default() };
                    if version >= 6 {
                        let topic = |name: &String| delete_topics::request::Topic {
                            name: Some(name.clone()),
                            ..delete_topics::request::Topic::default()
                        };
                        request.topics = names.iter().map(topic).collect();
                    } else {
                        request.topic_names.clone_from(&names);
                    }
                    request.encode(version, out)
                })
            }
            Kind::CreatePartitions { topics, validate_only } => {
                let topics = topics.iter().filter(|topic| lacking(&topic.topic)).map(|topic| {
                    let assignment = |brokers: &Vec<i32>| create_partitions::request::Assignment {
                        broker_ids: brokers.clone(),
                    };
                    let assignments: Vec<_> = topic.assignments.iter().map(assignment).collect();
                    create_partitions::request::Topic {
                        name: topic.topic.clone(),
                        count: topic.count,
                        assignments: (!assignments.is_empty()).then_some(assignments),
                    }
                });
                let request = CreatePartitionsRequest {
                    topics: topics.collect(),
                    timeout_ms,
                    validate_only: *validate_only,
                };
                Box::new(move |version, out| request.encode(version, out))
            }
        }
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let outcomes = &mut self.outcomes;
        let mut passing = None;
        match &self.kind {
            Kind::Create { .. } => {
                let response = CreateTopicsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &response.topics {
                    let message = match topic.error_code {
                        ErrorCode::TOPIC_ALREADY_EXISTS if outcomes.repeated => {
                            Some("an earlier attempt of this call may have created it")
                        }
                        _ => topic.error_message.as_deref(),
                    };
                    passing = outcomes.add(&topic.name, topic.error_code, message).or(passing);
                }
            }
            Kind::Delete => {
                let response = DeleteTopicsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &response.responses {
                    let name = topic.name.as_deref().unwrap_or_default();
                    let error = outcomes.add(name, topic.error_code, topic.error_message.as_deref());
                    passing = error.or(passing);
                }
            }
            Kind::CreatePartitions { .. } => {
                let response =
                    CreatePartitionsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &response.results {
                    let error = outcomes.add(&topic.name, topic.error_code, topic.error_message.as_deref());
                    passing = error.or(passing);
                }
            }
        }
        Ok(self.outcomes.verdict(passing))
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let Outcomes { names, mut results, .. } = self.outcomes;
        let rest =
            error.unwrap_or_else(|| Error::new(ErrorKind::BadResponse, "the response omits the topic"));
        let results = names.into_iter().map(|name| {
            let result = results.remove(&name).unwrap_or_else(|| Err(rest.clone().with_topic(&*name)));
            (name, result)
        });
        self.done.complete(results.collect());
    }
}

fn request_topic(topic: &NewTopic) -> create_topics::request::Topic {
    let NewTopic { name, partitions, replication_factor, assignments, configs } = topic;
    let assigned = !assignments.is_empty();
    let assignments = assignments.iter().map(|(partition, brokers)| create_topics::request::Assignment {
        partition_index: *partition,
        broker_ids: brokers.clone(),
    });
    let configs = configs
        .iter()
        .map(|(name, value)| create_topics::request::Config { name: name.clone(), value: value.clone() });
    create_topics::request::Topic {
        name: name.clone(),
        num_partitions: if assigned { -1 } else { *partitions },
        replication_factor: if assigned { -1 } else { *replication_factor },
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}
