//! Looking at the cluster and its topics, without changing anything.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{MetadataRequest, MetadataResponse, request::Topic as WantedTopic},
    primitive::Reader,
    uuid::Uuid,
};

use super::{AdminCall, Operation, Verdict, undecodable};
use crate::{
    cluster::Route,
    completion::Completion,
    error::{Error, ErrorKind},
    mail::EncodeBody,
};

/// A cluster as one of its brokers describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id, if the broker knows one.
    pub cluster_id: Option<String>,
    /// The broker that takes administrative requests.
    pub controller_id: Option<i32>,
    /// The brokers, by id.
    pub brokers: Vec<BrokerDescription>,
    /// The topics that were asked about, by name.
    pub topics: Vec<TopicDescription>,
    /// What may be done with the cluster, if that was asked for and the broker tells.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// What the application may do with a topic or the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizedOperations(i32);

impl AuthorizedOperations {
    /// A broker that was not asked, or does not know, answers the smallest number.
    fn new(bits: i32) -> Option<Self> {
        (bits != i32::MIN).then_some(Self(bits))
    }

    /// The numbers of the operations, as Kafka's access rules have them: 3 is reading, 12 idempotent writing.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..31).filter(move |operation| self.0 >> operation & 1 == 1)
    }
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerDescription {
    /// Its id.
    pub id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its name.
    pub name: String,
    /// Its id, if the broker knows ids.
    pub id: Option<String>,
    /// True for the cluster's own topics.
    pub is_internal: bool,
    /// Why nothing is known of it.
    pub error: Option<Error>,
    /// Its partitions, by number.
    pub partitions: Vec<PartitionDescription>,
    /// What may be done with it, if that was asked for and the broker tells.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Its number.
    pub id: i32,
    /// The broker that leads it.
    pub leader: Option<i32>,
    /// Counts the leader changes; -1 if the broker does not tell.
    pub leader_epoch: i32,
    /// The brokers that hold it, first the preferred leader.
    pub replicas: Vec<i32>,
    /// Those of them that are in sync.
    pub in_sync_replicas: Vec<i32>,
    /// Those of them that are down.
    pub offline_replicas: Vec<i32>,
    /// Why it can't be used.
    pub error: Option<Error>,
}

/// Which topics are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichTopics {
    /// All that may be seen.
    All,
    /// Only these.
    These(Vec<String>),
    /// None: just the cluster.
    None,
}

/// Describes the cluster and topics. No topic is created by being asked about.
pub fn describe(
    topics: WhichTopics,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    describe_operations(topics, false, timeout, done)
}

/// The same, and what may be done: with the topics, or with the cluster if it is without topics.
pub fn describe_operations(
    topics: WhichTopics,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    AdminCall::operation(Describe { topics, with_operations, answer: None, done }, timeout)
}

/// Metadata tells what may be done with topics from this version on,
const FIRST_WITH_OPERATIONS: i16 = 8;
/// and what may be done with the cluster up to this one.
const LAST_WITH_CLUSTER_OPERATIONS: i16 = 10;

struct Describe {
    topics: WhichTopics,
    with_operations: bool,
    answer: Option<ClusterDescription>,
    done: Completion<Result<ClusterDescription, Error>>,
}

impl Operation for Describe {
    fn api(&self) -> ApiKey {
        ApiKey::Metadata
    }

    fn versions(&self) -> RangeInclusive<i16> {
        let all = self.api().versions();
        // Later versions don't tell what may be done with the cluster.
        let is_told_early = self.with_operations && self.topics == WhichTopics::None;
        *all.start()..=if is_told_early { LAST_WITH_CLUSTER_OPERATIONS } else { *all.end() }
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let topics = self.topics.clone();
        let with_operations = self.with_operations;
        Box::new(move |version, out| {
            let with_operations = with_operations && version >= FIRST_WITH_OPERATIONS;
            let of_cluster = topics == WhichTopics::None && version <= LAST_WITH_CLUSTER_OPERATIONS;
            let topics_are_wanted = topics != WhichTopics::None;
            let topics = match &topics {
                // In version 0 an empty list means all topics, and no topics can't be said.
                WhichTopics::All if version == 0 => Some(Vec::new()),
                WhichTopics::All => None,
                WhichTopics::None => Some(Vec::new()),
                WhichTopics::These(names) => Some(
                    names
                        .iter()
                        .map(|name| WantedTopic { name: Some(name.clone()), ..WantedTopic::default() })
                        .collect(),
                ),
            };
            let request = MetadataRequest {
                topics,
                // Before version 4 the broker decides alone.
                allow_auto_topic_creation: version < 4,
                include_topic_authorized_operations: with_operations && topics_are_wanted,
                include_cluster_authorized_operations: with_operations && of_cluster,
            };
            request.encode(version, out)
        })
    }

    fn handle_answer(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let answer =
            MetadataResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        if answer.error_code != ErrorCode::NONE {
            return Err(Error::broker(answer.error_code, None));
        }
        self.answer = Some(description(answer, &self.topics));
        Ok(Verdict::Done)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without an answer"));
        self.done.complete(self.answer.ok_or_else(none));
    }
}

fn description(answer: MetadataResponse, which: &WhichTopics) -> ClusterDescription {
    let mut brokers: Vec<BrokerDescription> = answer
        .brokers
        .into_iter()
        .map(|b| BrokerDescription { id: b.node_id, host: b.host, port: b.port, rack: b.rack })
        .collect();
    brokers.sort_unstable_by_key(|broker| broker.id);
    let mut topics: Vec<TopicDescription> = Vec::new();
    if *which != WhichTopics::None {
        for topic in answer.topics {
            let name = topic.name.unwrap_or_default();
            let mut partitions: Vec<PartitionDescription> = topic
                .partitions
                .into_iter()
                .map(|p| PartitionDescription {
                    id: p.partition_index,
                    leader: Some(p.leader_id).filter(|leader| *leader >= 0),
                    leader_epoch: p.leader_epoch,
                    replicas: p.replica_nodes,
                    in_sync_replicas: p.isr_nodes,
                    offline_replicas: p.offline_replicas,
                    error: error_of(p.error_code)
                        .map(|error| error.with_partition(&*name, p.partition_index)),
                })
                .collect();
            partitions.sort_unstable_by_key(|partition| partition.id);
            topics.push(TopicDescription {
                id: (topic.topic_id != Uuid::ZERO).then(|| topic.topic_id.to_string()),
                is_internal: topic.is_internal,
                error: error_of(topic.error_code).map(|error| error.with_topic(&*name)),
                partitions,
                authorized_operations: AuthorizedOperations::new(topic.topic_authorized_operations),
                name,
            });
        }
    }
    topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    ClusterDescription {
        cluster_id: answer.cluster_id,
        controller_id: Some(answer.controller_id).filter(|id| *id >= 0),
        brokers,
        topics,
        authorized_operations: AuthorizedOperations::new(answer.cluster_authorized_operations),
    }
}

fn error_of(code: ErrorCode) -> Option<Error> {
    match code {
        ErrorCode::NONE => None,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => Some(Error::new(ErrorKind::UnknownTopic, "")),
        code => Some(Error::broker(code, None)),
    }
}
