//! Describes the cluster and its topics, without changing anything.
//!
//! | call | API | with older brokers |
//! |---|---|---|
//! | [`describe`], [`describe_operations`] | Metadata | |
//! | [`describe_cluster`] | DescribeCluster (`describe_cluster`) | Metadata |
//! | [`describe_topics`] | DescribeTopicPartitions (`topic_pages`) | Metadata |

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{MetadataRequest, MetadataResponse, request::Topic as RequestTopic, response},
    primitive::Reader,
    uuid::Uuid,
    vocabulary::LeaderEpoch,
};

use super::{
    AdminCall, Operation, Verdict, describe_cluster as cluster, topic_pages::TopicPages, undecodable,
};
use crate::{
    completion::Completion,
    contract::route::{EncodeBody, OF_CONTROLLERS, Route},
    error::{Error, ErrorKind},
};

/// The description of a cluster by one of its brokers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterDescription {
    /// The cluster ID, if the broker knows one.
    pub cluster_id: Option<String>,
    /// The ID of the controller, which serves administrative requests.
    pub controller_id: Option<i32>,
    /// The brokers, by ID.
    pub brokers: Vec<BrokerDescription>,
    /// The requested topics, by name.
    pub topics: Vec<TopicDescription>,
    /// The permitted operations on the cluster, if they were requested and the broker reports them.
    pub authorized_operations: Option<AuthorizedOperations>,
}

/// The operations that the application may perform on a topic or the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizedOperations(i32);

impl AuthorizedOperations {
    /// Creates the set; `None` for the smallest integer, which a broker sends if the operations were not requested or
    /// it does not know them.
    pub(super) fn new(bits: i32) -> Option<Self> {
        (bits != i32::MIN).then_some(Self(bits))
    }

    /// Iterates over the operations, as the numbers of Kafka's ACL operations: 3 is reading, 12 idempotent writing.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..31).filter(move |operation| self.0 >> operation & 1 == 1)
    }
}

/// The description of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerDescription {
    /// The broker ID.
    pub id: i32,
    /// The host.
    pub host: String,
    /// The port.
    pub port: i32,
    /// The rack, if the broker has one.
    pub rack: Option<String>,
    /// True if the controller has fenced the broker: it is not part of the cluster until it is up to date.
    pub is_fenced: bool,
}

/// The description of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicDescription {
    /// The name.
    pub name: String,
    /// The topic ID, if the broker supports IDs.
    pub id: Option<String>,
    /// True for Kafka's internal topics.
    pub is_internal: bool,
    /// The error, if the topic cannot be described.
    pub error: Option<Error>,
    /// The partitions, by number.
    pub partitions: Vec<PartitionDescription>,
    /// The permitted operations, if they were requested and the broker reports them.
    pub authorized_operations: Option<AuthorizedOperations>,
}

impl TopicDescription {
    /// Creates the description of a topic that can't be described, for this reason.
    pub fn refused(name: impl Into<String>, error: Error) -> Self {
        Self {
            name: name.into(),
            id: None,
            is_internal: false,
            error: Some(error),
            partitions: Vec::new(),
            authorized_operations: None,
        }
    }
}

/// The description of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionDescription {
    /// The partition's number.
    pub id: i32,
    /// The broker that leads the partition.
    pub leader: Option<i32>,
    /// The leader epoch, which counts the leader changes; `None` if the broker does not report it.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The brokers that have a replica, the preferred leader first.
    pub replicas: Vec<i32>,
    /// The brokers whose replica is in sync.
    pub in_sync_replicas: Vec<i32>,
    /// The brokers whose replica is offline.
    pub offline_replicas: Vec<i32>,
    /// The brokers that are not in sync and may be elected all the same (KIP-966), if reported.
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// The brokers that were the last to be in sync or eligible, if reported.
    pub last_known_eligible_leader_replicas: Option<Vec<i32>>,
    /// The error, if the partition cannot be used.
    pub error: Option<Error>,
}

/// The topics to describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichTopics {
    /// All topics that the client may see.
    All,
    /// Only these topics.
    These(Vec<String>),
    /// No topics, just the cluster.
    None,
}

/// Describes the cluster and topics. The request does not create topics.
pub fn describe(
    topics: WhichTopics,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    describe_operations(topics, false, timeout, done)
}

/// Like [`describe`], and also requests the permitted operations: on the topics, or on the cluster if no topics are
/// requested.
pub fn describe_operations(
    topics: WhichTopics,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    start(topics, with_operations, Source::Metadata, timeout, done)
}

/// Describes the cluster without topics, and also its fenced brokers if `with_fenced` is set, which needs Kafka 4.0 or later.
pub fn describe_cluster(
    with_operations: bool,
    with_fenced: bool,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    start(WhichTopics::None, with_operations, Source::Cluster { with_fenced }, timeout, done)
}

/// Describes the topics with these names; there is at least one. The description has no brokers if the broker supports
/// DescribeTopicPartitions.
pub fn describe_topics(
    names: Vec<String>,
    with_operations: bool,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    let source = Source::Topics(TopicPages::new(names.clone()));
    start(WhichTopics::These(names), with_operations, source, timeout, done)
}

fn start(
    topics: WhichTopics,
    with_operations: bool,
    source: Source,
    timeout: Duration,
    done: Completion<Result<ClusterDescription, Error>>,
) -> AdminCall {
    AdminCall::operation(Describe { topics, with_operations, source, response: None, done }, timeout)
}

/// The API that the call uses.
enum Source {
    Metadata,
    Cluster {
        with_fenced: bool,
    },
    /// The controllers, described by one of them.
    Controllers,
    Topics(TopicPages),
}

/// The first version of Metadata that reports the permitted operations on topics.
const FIRST_WITH_OPERATIONS: i16 = 8;
/// The last version of Metadata that reports the permitted operations on the cluster.
const LAST_WITH_CLUSTER_OPERATIONS: i16 = 10;

struct Describe {
    topics: WhichTopics,
    with_operations: bool,
    source: Source,
    response: Option<ClusterDescription>,
    done: Completion<Result<ClusterDescription, Error>>,
}

impl Describe {
    fn metadata_versions(&self) -> RangeInclusive<i16> {
        let all = ApiKey::Metadata.versions();
        // Later versions do not report the permitted operations on the cluster.
        let is_in_old_versions = self.with_operations && self.topics == WhichTopics::None;
        *all.start()..=if is_in_old_versions { LAST_WITH_CLUSTER_OPERATIONS } else { *all.end() }
    }

    fn encode_metadata(&self) -> EncodeBody {
        let topics = self.topics.clone();
        let with_operations = self.with_operations;
        Box::new(move |version, out| {
            let with_operations = with_operations && version >= FIRST_WITH_OPERATIONS;
            let of_cluster = topics == WhichTopics::None && version <= LAST_WITH_CLUSTER_OPERATIONS;
            let with_topics = topics != WhichTopics::None;
            let topics = match &topics {
                // In version 0 an empty list means all topics, and no topics can't be said.
                WhichTopics::All if version == 0 => Some(Vec::new()),
                WhichTopics::All => None,
                WhichTopics::None => Some(Vec::new()),
                WhichTopics::These(names) => Some(
                    names
                        .iter()
                        .map(|name| RequestTopic { name: Some(name.clone()), ..RequestTopic::default() })
                        .collect(),
                ),
            };
            let request = MetadataRequest {
                topics,
                // Before version 4 the broker alone decides whether to create a topic.
                allow_auto_topic_creation: version < 4,
                include_topic_authorized_operations: with_operations && with_topics,
                include_cluster_authorized_operations: with_operations && of_cluster,
            };
            request.encode(version, out)
        })
    }

    fn handle_metadata(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            MetadataResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        if response.error_code != ErrorCode::NONE {
            return Err(Error::broker(response.error_code, None));
        }
        self.response = Some(description(response, &self.topics));
        Ok(Verdict::Done)
    }
}

impl Operation for Describe {
    fn ask_controllers(&mut self) {
        if self.topics == WhichTopics::None {
            self.source = Source::Controllers;
        }
    }

    fn api(&self) -> ApiKey {
        match self.source {
            Source::Metadata => ApiKey::Metadata,
            Source::Cluster { .. } | Source::Controllers => ApiKey::DescribeCluster,
            Source::Topics(_) => ApiKey::DescribeTopicPartitions,
        }
    }

    fn versions(&self) -> RangeInclusive<i16> {
        match self.source {
            Source::Metadata => self.metadata_versions(),
            Source::Cluster { with_fenced } => cluster::versions(with_fenced),
            Source::Controllers => OF_CONTROLLERS,
            Source::Topics(_) => self.api().versions(),
        }
    }

    fn route(&self) -> Route {
        Route::Any
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        match &self.source {
            Source::Metadata => self.encode_metadata(),
            Source::Cluster { with_fenced } => cluster::encode(self.with_operations, *with_fenced),
            Source::Controllers => cluster::encode_for_controllers(self.with_operations),
            Source::Topics(pages) => pages.encode(),
        }
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        match &mut self.source {
            Source::Metadata => self.handle_metadata(body, version),
            Source::Cluster { .. } | Source::Controllers => {
                self.response = Some(cluster::description(body, version)?);
                Ok(Verdict::Done)
            }
            Source::Topics(pages) => pages.handle_response(body, version, self.with_operations),
        }
    }

    /// Requests metadata from a broker that lacks the newer API. Fenced brokers are not in there.
    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        let is_final = matches!(
            self.source,
            Source::Metadata | Source::Controllers | Source::Cluster { with_fenced: true }
        );
        if error.kind() != ErrorKind::UnsupportedVersion || is_final {
            return Err(error);
        }
        self.source = Source::Metadata;
        Ok(Verdict::Next)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let result = match (self.source, self.response) {
            (_, Some(description)) => Ok(description),
            (Source::Topics(pages), None) => {
                let topics = pages.into_result(error);
                topics.map(|topics| ClusterDescription { topics, ..ClusterDescription::default() })
            }
            (_, None) => {
                Err(error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result")))
            }
        };
        self.done.complete(result);
    }
}

fn description(response: MetadataResponse, which: &WhichTopics) -> ClusterDescription {
    let mut brokers: Vec<BrokerDescription> = response
        .brokers
        .into_iter()
        .map(|b| BrokerDescription {
            id: b.node_id,
            host: b.host,
            port: b.port,
            rack: b.rack,
            is_fenced: false,
        })
        .collect();
    brokers.sort_unstable_by_key(|broker| broker.id);
    let mut topics: Vec<TopicDescription> = Vec::new();
    if *which != WhichTopics::None {
        topics.extend(response.topics.into_iter().map(topic_description));
    }
    topics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    ClusterDescription {
        cluster_id: response.cluster_id,
        controller_id: Some(response.controller_id).filter(|id| *id >= 0),
        brokers,
        topics,
        authorized_operations: AuthorizedOperations::new(response.cluster_authorized_operations),
    }
}

/// Returns the description of a topic in metadata.
pub(super) fn topic_description(topic: response::Topic) -> TopicDescription {
    let name = topic.name.unwrap_or_default();
    let mut partitions: Vec<PartitionDescription> = topic
        .partitions
        .into_iter()
        .map(|p| PartitionDescription {
            id: p.partition_index,
            leader: Some(p.leader_id).filter(|leader| *leader >= 0),
            leader_epoch: LeaderEpoch::from_wire(p.leader_epoch),
            replicas: p.replica_nodes,
            in_sync_replicas: p.isr_nodes,
            offline_replicas: p.offline_replicas,
            eligible_leader_replicas: None,
            last_known_eligible_leader_replicas: None,
            error: error_of(p.error_code).map(|error| error.with_partition(&*name, p.partition_index)),
        })
        .collect();
    partitions.sort_unstable_by_key(|partition| partition.id);
    TopicDescription {
        id: (topic.topic_id != Uuid::ZERO).then(|| topic.topic_id.to_string()),
        is_internal: topic.is_internal,
        error: error_of(topic.error_code).map(|error| error.with_topic(&*name)),
        partitions,
        authorized_operations: AuthorizedOperations::new(topic.topic_authorized_operations),
        name,
    }
}

/// Returns the error of a topic or partition, if the code is one.
pub(super) fn error_of(code: ErrorCode) -> Option<Error> {
    match code {
        ErrorCode::NONE => None,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => Some(Error::new(ErrorKind::UnknownTopic, "")),
        code => Some(Error::broker(code, None)),
    }
}
