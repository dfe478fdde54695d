//! Topics and partitions: who leads, who follows, and the logs.

use std::collections::{BTreeMap, VecDeque};

use ottla_protocol::{error_code::ErrorCode, time::Instant, uuid::Uuid};

use crate::{connection::Waiter, log::PartitionLog, options::BrokerId, producer_state::ProducerStates};

/// A topic's place in the cluster. Never used again, so a recreated topic is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicIndex(pub usize);

/// All topics, by name and by id.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    entries: Vec<Option<Topic>>,
    by_name: BTreeMap<String, TopicIndex>,
    by_id: BTreeMap<[u8; 16], TopicIndex>,
    partitions: usize,
    version: u64,
}

/// One topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub name: String,
    pub id: Uuid,
    pub partitions: Vec<Partition>,
    pub configs: BTreeMap<String, String>,
    /// From its configuration or the cluster's: what every Produce needs.
    pub limits: TopicLimits,
}

/// The configuration that appending looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopicLimits {
    pub max_message_bytes: usize,
    pub min_insync_replicas: usize,
    pub log_append_time: bool,
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
    /// Connections whose Fetch waits for records here.
    pub fetch_waiters: Vec<Waiter>,
    /// Connections whose ShareFetch waits for records here.
    pub share_waiters: Vec<Waiter>,
    /// Connections whose Produce waits for followers here.
    pub produce_waiters: Vec<Waiter>,
    /// When followers will have got to which offset.
    pub replicating: VecDeque<(Instant, i64)>,
    /// Where the leader sends consumers, whatever their rack.
    pub preferred_replica: Option<BrokerId>,
    /// What that replica gives as log start offset and high watermark, if not the truth.
    pub preferred_watermarks: (Option<i64>, Option<i64>),
    /// Leader and leader epoch that the next Metadata answers name, one each.
    pub told_leaders: VecDeque<(i32, i32)>,
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

    /// How many topics there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// How many partitions all topics have.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Gives a topic more partitions.
    pub fn add_partitions(&mut self, index: TopicIndex, partitions: Vec<Partition>) {
        let count = partitions.len();
        if let Some(topic) = self.get_mut(index) {
            topic.partitions.extend(partitions);
            self.partitions += count;
            self.version += 1;
        }
    }

    /// Another one whenever topics or partitions came or went.
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

    /// In order of their names.
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
            fetch_waiters: Vec::new(),
            share_waiters: Vec::new(),
            produce_waiters: Vec::new(),
            replicating: VecDeque::new(),
            preferred_replica: None,
            preferred_watermarks: (None, None),
            told_leaders: VecDeque::new(),
        }
    }

    /// `broker` leads, and the client isn't wrong about the epoch (-1: it doesn't say).
    pub fn check_leader(&self, broker: BrokerId, client_epoch: i32) -> Result<(), ErrorCode> {
        self.check_epoch(client_epoch)?;
        if self.leader == Some(broker) { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
    }

    /// `broker` has a replica, and the client isn't wrong about the epoch.
    pub fn check_replica(&self, broker: BrokerId, client_epoch: i32) -> Result<(), ErrorCode> {
        self.check_epoch(client_epoch)?;
        let is_replica = self.replicas.contains(&broker) || self.preferred_replica == Some(broker);
        if self.leader.is_some() && is_replica { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
    }

    /// Log start offset and high watermark as `broker` gives them.
    pub fn watermarks_at(&self, broker: BrokerId) -> (i64, i64) {
        let (start, end) = (self.log.start_offset(), self.log.high_watermark());
        if self.leader == Some(broker) || self.preferred_replica != Some(broker) {
            return (start, end);
        }
        (self.preferred_watermarks.0.unwrap_or(start), self.preferred_watermarks.1.unwrap_or(end))
    }

    /// Makes `leader` the leader of a new epoch.
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

/// Kafka's rule for topic names.
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
