//! Creating and deleting topics, adding partitions. Each topic has a result of its own; those that the controller could
//! not take care of are asked for again.

use std::{collections::BTreeMap, time::Duration};

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
    cluster::Route,
    completion::Completion,
    error::{Error, ErrorKind},
    mail::EncodeBody,
};

/// A topic to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// The name.
    pub name: String,
    /// How many partitions; -1 leaves it to the broker (from Kafka 2.4 on).
    pub partitions: i32,
    /// How many replicas; -1 leaves it to the broker (from Kafka 2.4 on).
    pub replication_factor: i16,
    /// Which brokers hold which partition, first the preferred leader; then the two numbers above are not used.
    pub assignments: BTreeMap<i32, Vec<i32>>,
    /// The topic's configuration.
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic of so many partitions, each on so many brokers.
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
        self.configs.push((name.into(), value.into()));
        self
    }

    /// Says which brokers hold a partition, first the preferred leader. Then every partition has to be named.
    #[must_use]
    pub fn assign(mut self, partition: i32, brokers: &[i32]) -> Self {
        self.assignments.insert(partition, brokers.to_vec());
        self
    }
}

/// A topic that is to get more partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartitions {
    /// The topic.
    pub topic: String,
    /// How many partitions there are to be in all.
    pub count: i32,
    /// Which brokers hold the new ones, first the preferred leader: all of them, or none for the broker's choice.
    pub assignments: Vec<Vec<i32>>,
}

impl NewPartitions {
    /// So many partitions in all, on brokers of the broker's choice.
    pub fn new(topic: impl Into<String>, count: i32) -> Self {
        Self { topic: topic.into(), count, assignments: Vec::new() }
    }
}

/// What became of each topic, in the order in which they were named.
pub type TopicResults = Vec<(String, Result<(), Error>)>;

/// Creates topics; with `validate_only` it only says whether it could.
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

/// Gives topics more partitions.
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

/// What is known of each topic's fate.
struct Outcomes {
    names: Vec<String>,
    results: BTreeMap<String, Result<(), Error>>,
    /// An earlier request was lost: it may have been carried out.
    repeated: bool,
}

impl Outcomes {
    const fn new(names: Vec<String>) -> Self {
        Self { names, results: BTreeMap::new(), repeated: false }
    }

    /// True if a topic has no result yet.
    fn lacks(&self, name: &str) -> bool {
        !self.results.contains_key(name)
    }

    /// Takes in a topic's answer; an error that may pass is handed back.
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

    /// The verdict after the answers of one response.
    fn verdict(&self, passing: Option<Error>) -> Verdict {
        match passing {
            Some(error) => Verdict::Again(error),
            None if self.names.iter().all(|name| self.results.contains_key(name)) => Verdict::Done,
            None => Verdict::Again(Error::new(ErrorKind::BadResponse, "the answer leaves a topic out")),
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

    fn route(&self) -> Route {
        Route::Controller
    }

    fn encode(&self, timeout: Duration) -> EncodeBody {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let lacking = |name: &str| self.outcomes.lacks(name);
        match &self.kind {
            Kind::Create { topics, validate_only } => {
                let topics = topics.iter().filter(|topic| lacking(&topic.name)).map(wanted_topic).collect();
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

    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let reader = &mut Reader::new(body);
        let outcomes = &mut self.outcomes;
        let mut passing = None;
        match &self.kind {
            Kind::Create { .. } => {
                let answer = CreateTopicsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &answer.topics {
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
                let answer = DeleteTopicsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &answer.responses {
                    let name = topic.name.as_deref().unwrap_or_default();
                    let error = outcomes.add(name, topic.error_code, topic.error_message.as_deref());
                    passing = error.or(passing);
                }
            }
            Kind::CreatePartitions { .. } => {
                let answer =
                    CreatePartitionsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
                for topic in &answer.results {
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
            error.unwrap_or_else(|| Error::new(ErrorKind::BadResponse, "the answer leaves the topic out"));
        let results = names.into_iter().map(|name| {
            let result = results.remove(&name).unwrap_or_else(|| Err(rest.clone().with_topic(&*name)));
            (name, result)
        });
        self.done.complete(results.collect());
    }
}

fn wanted_topic(topic: &NewTopic) -> create_topics::request::Topic {
    let NewTopic { name, partitions, replication_factor, assignments, configs } = topic;
    let assigned = !assignments.is_empty();
    let assignments = assignments.iter().map(|(partition, brokers)| create_topics::request::Assignment {
        partition_index: *partition,
        broker_ids: brokers.clone(),
    });
    let configs = configs.iter().map(|(name, value)| create_topics::request::Config {
        name: name.clone(),
        value: Some(value.clone()),
    });
    create_topics::request::Topic {
        name: name.clone(),
        num_partitions: if assigned { -1 } else { *partitions },
        replication_factor: if assigned { -1 } else { *replication_factor },
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}
