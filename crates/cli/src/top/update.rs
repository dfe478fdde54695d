//! What the collector reports: parts of the cluster's state, each with the time at which it was read.

use std::sync::Arc;
use std::time::Duration;

use ottla::TopicPartition;

/// A report of the collector. Times count from the start of the command.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The brokers, topics and partitions.
    Cluster(ClusterSample),
    /// The ends of the partitions.
    Ends(EndsSample),
    /// The groups of consumers.
    Groups(GroupsSample),
    /// The sizes of the replicas.
    Sizes(SizesSample),
    /// Nothing could be read, for this reason.
    Trouble(String),
}

/// The metadata of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSample {
    /// The cluster ID, if the broker knows one.
    pub id: Option<String>,
    /// The controller.
    pub controller: Option<i32>,
    /// The brokers that are part of the cluster now.
    pub brokers: Vec<BrokerSample>,
    /// All topics.
    pub topics: Vec<TopicSample>,
}

/// A broker.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerSample {
    /// The broker ID.
    pub id: i32,
    /// Host and port.
    pub address: String,
    /// The rack, if the broker has one.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSample {
    /// The name.
    pub name: Arc<str>,
    /// The partitions, by number.
    pub partitions: Vec<PartitionSample>,
    /// The reason why the topic can't be described.
    pub error: Option<String>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSample {
    /// The number.
    pub id: i32,
    /// The leader.
    pub leader: Option<i32>,
    /// The brokers with a replica.
    pub replicas: Vec<i32>,
    /// The brokers whose replica is in sync.
    pub in_sync: Vec<i32>,
}

/// The ends of partitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndsSample {
    /// The time.
    pub at: Duration,
    /// The offset after the last record of each partition that was asked for; that of the others is as before.
    pub ends: Vec<(TopicPartition, i64)>,
    /// The partitions whose end was asked for in vain.
    pub missing: Vec<TopicPartition>,
    /// The reason why ends of some partitions are missing.
    pub failure: Option<String>,
}

/// The groups of consumers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupsSample {
    /// The time.
    pub at: Duration,
    /// The groups.
    pub groups: Vec<GroupSample>,
    /// The reason why groups are missing.
    pub failure: Option<String>,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSample {
    /// The group ID.
    pub id: String,
    /// The state, in Kafka's words.
    pub state: String,
    /// The coordinator.
    pub coordinator: Option<i32>,
    /// The members.
    pub members: Vec<MemberSample>,
    /// The committed offsets.
    pub committed: Vec<(TopicPartition, i64)>,
}

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberSample {
    /// The member ID.
    pub id: String,
    /// The client ID.
    pub client_id: String,
    /// The host that the coordinator sees.
    pub host: String,
    /// The partitions that are assigned to the member.
    pub partitions: Vec<TopicPartition>,
}

/// The sizes of replicas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizesSample {
    /// The time.
    pub at: Duration,
    /// Broker, partition and bytes of each replica.
    pub replicas: Vec<(i32, TopicPartition, i64)>,
    /// The reason why sizes are missing.
    pub failure: Option<String>,
}
