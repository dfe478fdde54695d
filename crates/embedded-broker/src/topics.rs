//! Topics and partitions: leaders, replicas and logs.

use std::collections::VecDeque;

use ottla_protocol::{error_code::ErrorCode, time::Instant, uuid::Uuid};
use ottla_sorted::SortedMap;

use crate::{
    compaction::Compaction,
    connection::Waiter,
    log::{PartitionLog, segments::SegmentLimits},
    options::BrokerId,
    producer_state::ProducerStates,
    retention::Retention,
    timers::TimerKey,
    transactions::PartitionTransactions,
    validation::Demands,
};

/// A topic's index in the cluster. Indexes are never reused, so a recreated topic has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicIndex(pub usize);

/// All topics, by name and by ID.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    entries: Vec<Option<Topic>>,
    by_name: SortedMap<String, TopicIndex>,
    by_id: SortedMap<[u8; 16], TopicIndex>,
    partitions: usize,
    version: u64,
}

/// One topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub name: String,
    pub id: Uuid,
    pub partitions: Vec<Partition>,
    pub configs: SortedMap<String, String>,
    /// The limits for each Produce, from the topic's configuration or the cluster's.
    pub limits: TopicLimits,
}

/// The configuration that appends depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopicLimits {
    pub max_message_bytes: usize,
    pub min_insync_replicas: usize,
    pub log_append_time: bool,
    /// The settings of compaction, if `cleanup.policy` contains `compact`: then records need keys.
    pub compaction: Option<Compaction>,
    pub segments: SegmentLimits,
    pub demands: Demands,
    pub retention: Retention,
}

/// One partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub index: i32,
    pub leader: Option<BrokerId>,
    pub leader_epoch: i32,
    pub replicas: Vec<BrokerId>,
    pub in_sync: Vec<BrokerId>,
    pub log: PartitionLog,
    pub producers: ProducerStates,
    pub transactions: PartitionTransactions,
    /// A timer for the age of the oldest records is set.
    pub retention_timer: bool,
    /// The timer for the lags of compaction.
    pub compaction_timer: Option<TimerKey>,
    /// Connections whose Fetch waits for records of this partition.
    pub fetch_waiters: Vec<Waiter>,
    /// Connections whose ShareFetch waits for records of this partition.
    pub share_waiters: Vec<Waiter>,
    /// Connections whose Produce waits for followers of this partition.
    pub produce_waiters: Vec<Waiter>,
    /// The times at which followers will have reached the offsets.
    pub replicating: VecDeque<(Instant, i64)>,
    /// The replica to which the leader directs consumers of any rack.
    pub preferred_replica: Option<BrokerId>,
    /// The log start offset and high watermark that this replica reports, if not the real ones.
    pub preferred_watermarks: (Option<i64>, Option<i64>),
    /// The leader and leader epoch that the next Metadata responses name, one each.
    pub reported_leaders: VecDeque<(i32, i32)>,
}

impl Topics {
    pub fn insert(&mut self, topic: Topic) -> TopicIndex {
        let index = TopicIndex(self.entries.len());
        self.by_name.insert(topic.name.clone(), index);
        self.by_id.insert(topic.id.0, index);
        self.partitions += topic.partitions.len();
        self.version += 1;
        self.entries.push(Some(topic));
        index
    }

    pub fn remove(&mut self, index: TopicIndex) -> Option<Topic> {
        let topic = self.entries.get_mut(index.0)?.take()?;
        self.by_name.remove(&topic.name);
        self.by_id.remove(&topic.id.0);
        self.partitions -= topic.partitions.len();
        self.version += 1;
        Some(topic)
    }

    /// Returns the number of topics.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the number of partitions of all topics.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Adds partitions to a topic.
    pub fn add_partitions(&mut self, index: TopicIndex, partitions: Vec<Partition>) {
        let count = partitions.len();
        if let Some(topic) = self.get_mut(index) {
            topic.partitions.extend(partitions);
            self.partitions += count;
            self.version += 1;
        }
    }

    /// Returns a number that changes whenever topics or partitions are created or deleted.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn by_name(&self, name: &str) -> Option<TopicIndex> {
        self.by_name.get(name).copied()
    }

    pub fn by_id(&self, id: Uuid) -> Option<TopicIndex> {
        self.by_id.get(&id.0).copied()
    }

    pub fn get(&self, index: TopicIndex) -> Option<&Topic> {
        self.entries.get(index.0)?.as_ref()
    }

    pub fn get_mut(&mut self, index: TopicIndex) -> Option<&mut Topic> {
        self.entries.get_mut(index.0)?.as_mut()
    }

    pub fn partition(&self, index: TopicIndex, partition: i32) -> Option<&Partition> {
        self.get(index)?.partitions.get(usize::try_from(partition).ok()?)
    }

    pub fn partition_mut(&mut self, index: TopicIndex, partition: i32) -> Option<&mut Partition> {
        self.get_mut(index)?.partitions.get_mut(usize::try_from(partition).ok()?)
    }

    /// Returns the topics in order of their names.
    pub fn in_order(&self) -> impl Iterator<Item = (TopicIndex, &Topic)> {
        self.by_name.values().filter_map(|index| Some((*index, self.get(*index)?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (TopicIndex, &mut Topic)> {
        self.entries.iter_mut().enumerate().filter_map(|(i, topic)| Some((TopicIndex(i), topic.as_mut()?)))
    }
}

impl Partition {
    pub fn new(index: i32, replicas: Vec<BrokerId>, in_sync: Vec<BrokerId>) -> Self {
        Self {
            index,
            leader: in_sync.first().copied(),
            leader_epoch: 0,
            replicas,
            in_sync,
            log: PartitionLog::default(),
            producers: ProducerStates::default(),
            transactions: PartitionTransactions::default(),
            retention_timer: false,
            compaction_timer: None,
            fetch_waiters: Vec::new(),
            share_waiters: Vec::new(),
            produce_waiters: Vec::new(),
            replicating: VecDeque::new(),
            preferred_replica: None,
            preferred_watermarks: (None, None),
            reported_leaders: VecDeque::new(),
        }
    }

    /// Checks that `broker` leads and that the client's leader epoch is current (-1: unknown).
    pub fn check_leader(&self, broker: BrokerId, client_epoch: i32) -> Result<(), ErrorCode> {
        self.check_epoch(client_epoch)?;
        if self.leader == Some(broker) { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
    }

    /// Checks that `broker` has a replica and that the client's leader epoch is current.
    pub fn check_replica(&self, broker: BrokerId, client_epoch: i32) -> Result<(), ErrorCode> {
        self.check_epoch(client_epoch)?;
        let is_replica = self.replicas.contains(&broker) || self.preferred_replica == Some(broker);
        if self.leader.is_some() && is_replica { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
    }

    /// Returns the log start offset and high watermark that `broker` reports.
    pub fn watermarks_at(&self, broker: BrokerId) -> (i64, i64) {
        let (start, end) = (self.log.start_offset(), self.log.high_watermark());
        if self.leader == Some(broker) || self.preferred_replica != Some(broker) {
            return (start, end);
        }
        (self.preferred_watermarks.0.unwrap_or(start), self.preferred_watermarks.1.unwrap_or(end))
    }

    /// The high watermark that was set for `broker` as the preferred replica, which may be behind or ahead of its log.
    pub fn set_watermark_at(&self, broker: BrokerId) -> Option<i64> {
        let is_follower = self.leader != Some(broker) && self.preferred_replica == Some(broker);
        self.preferred_watermarks.1.filter(|_| is_follower)
    }

    /// Makes `leader` the leader in a new epoch.
    pub fn elect(&mut self, leader: Option<BrokerId>) {
        self.leader = leader;
        self.leader_epoch += 1;
    }

    fn check_epoch(&self, client_epoch: i32) -> Result<(), ErrorCode> {
        match client_epoch {
            -1 => Ok(()),
            epoch if epoch < self.leader_epoch => Err(ErrorCode::FENCED_LEADER_EPOCH),
            epoch if epoch > self.leader_epoch => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
            _ => Ok(()),
        }
    }
}

/// Validates a topic name by Kafka's rule.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the empty string is not allowed".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("'{name}' is not allowed"));
    }
    if name.len() > 249 {
        return Err(format!("the length of '{name}' is longer than the max allowed length 249"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Err(format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ));
    }
    Ok(())
}
