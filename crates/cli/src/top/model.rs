//! The state of the cluster as far as the samples tell it, with rates over time.

use std::sync::Arc;

use ottla::TopicPartition;
use ottla_sorted::SortedMap;

use super::groups::{self, Group};
use super::history::{Counter, History};
use super::update::{ClusterSample, EndsSample, PartitionSample, SizesSample, TopicSample, Update};

/// The cluster.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The cluster ID.
    pub id: Option<String>,
    /// The controller.
    pub controller: Option<i32>,
    /// The brokers that were part of the cluster since the start.
    pub brokers: SortedMap<i32, Broker>,
    /// The topics.
    pub topics: SortedMap<Arc<str>, Topic>,
    /// The groups of consumers.
    pub groups: SortedMap<String, Group>,
    /// Records per second of the whole cluster.
    pub rate: History,
    /// Why the newest values are missing; `None` if all is well.
    pub trouble: Option<String>,
    /// Why sizes are missing.
    pub sizes_failure: Option<String>,
    /// Why groups are missing.
    pub groups_failure: Option<String>,
    /// Whether no broker responds: nothing is current.
    pub is_stale: bool,
    knows_ends: bool,
    /// Whether groups were read.
    pub knows_groups: bool,
}

/// A broker.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// Host and port.
    pub address: String,
    /// The rack, if the broker has one.
    pub rack: Option<String>,
    /// Whether the broker is part of the cluster now.
    pub is_up: bool,
    /// The number of partitions that it leads.
    pub leads: usize,
    /// The number of its replicas.
    pub replicas: usize,
    /// The number of its replicas that are not in sync.
    pub lagging: usize,
    /// Records per second of the partitions that it leads.
    pub rate: History,
    /// The bytes of its replicas.
    pub bytes: Counter,
}

/// A topic.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// The partitions, by number.
    pub partitions: SortedMap<i32, Partition>,
    /// The reason why the topic can't be described.
    pub error: Option<String>,
    /// Records per second.
    pub rate: History,
    /// The bytes of the leaders' logs.
    pub bytes: Counter,
}

/// A partition.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    /// The leader.
    pub leader: Option<i32>,
    /// The brokers with a replica.
    pub replicas: Vec<i32>,
    /// The brokers whose replica is in sync.
    pub in_sync: Vec<i32>,
    /// The end of the log, in records.
    pub end: Counter,
    /// Whether the last question for the end was in vain.
    pub is_missing: bool,
    /// The bytes of the leader's log.
    pub bytes: Counter,
}

impl Partition {
    /// Whether a replica is not in sync.
    pub fn is_under_replicated(&self) -> bool {
        self.in_sync.len() < self.replicas.len()
    }

    /// Whether nobody leads the partition.
    pub fn is_leaderless(&self) -> bool {
        self.leader.is_none()
    }

    /// Whether the end is known, and was given when it was asked for last.
    fn is_current(&self) -> bool {
        !self.is_missing && !self.is_leaderless() && self.end.at().is_some()
    }
}

impl Topic {
    /// Returns the number of partitions that lack a replica.
    pub fn under_replicated(&self) -> usize {
        self.partitions.values().filter(|one| one.is_under_replicated()).count()
    }

    /// Returns the number of partitions without a leader.
    pub fn leaderless(&self) -> usize {
        self.partitions.values().filter(|one| one.is_leaderless()).count()
    }
}

impl Model {
    /// Takes a report of the collector.
    pub fn apply(&mut self, update: Update) {
        match update {
            Update::Cluster(sample) => self.take_cluster(sample),
            Update::Ends(sample) => self.take_ends(sample),
            Update::Groups(mut sample) => {
                self.knows_groups = true;
                self.groups_failure = sample.failure.clone();
                sample.groups.retain(|group| !group.id.is_empty());
                let mut groups = std::mem::take(&mut self.groups);
                groups::apply(&mut groups, sample, |key| self.end(key));
                self.groups = groups;
            }
            Update::Sizes(sample) => self.take_sizes(sample),
            Update::Trouble(text) => {
                self.trouble = Some(text);
                self.is_stale = true;
            }
        }
    }

    /// Returns the end of a partition.
    pub fn end(&self, key: &TopicPartition) -> Option<i64> {
        self.topics.get(&*key.topic)?.partitions.get(&key.partition)?.end.value()
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.topics.values().map(|topic| topic.partitions.len()).sum()
    }

    /// Whether the end of a partition is not known, or older than those of others because its broker did not respond.
    pub fn is_old(&self, partition: &Partition) -> bool {
        self.is_stale || !partition.is_current()
    }

    fn take_cluster(&mut self, sample: ClusterSample) {
        (self.id, self.controller) = (sample.id, sample.controller);
        for broker in self.brokers.values_mut() {
            (broker.is_up, broker.leads, broker.replicas, broker.lagging) = (false, 0, 0, 0);
        }
        for one in sample.brokers {
            let broker = self.brokers.entry(one.id).or_default();
            (broker.address, broker.rack, broker.is_up) = (one.address, one.rack, true);
        }
        let mut before = std::mem::take(&mut self.topics);
        for topic in sample.topics {
            let known = before.remove(&*topic.name).unwrap_or_default();
            topic.partitions.iter().for_each(|partition| self.count_replicas(partition));
            self.topics.insert(Arc::clone(&topic.name), known.described(topic));
        }
    }

    fn count_replicas(&mut self, partition: &PartitionSample) {
        if let Some(leader) = partition.leader {
            self.brokers.entry(leader).or_default().leads += 1;
        }
        for id in &partition.replicas {
            let broker = self.brokers.entry(*id).or_default();
            broker.replicas += 1;
            broker.lagging += usize::from(!partition.in_sync.contains(id));
        }
    }

    fn take_ends(&mut self, sample: EndsSample) {
        // The partitions of a topic follow each other.
        for ends in sample.ends.chunk_by(|(one, _), (other, _)| one.topic == other.topic) {
            let topic = ends.first().and_then(|(key, _)| self.topics.get_mut(&*key.topic));
            let Some(topic) = topic else { continue };
            for (key, end) in ends {
                if let Some(partition) = topic.partitions.get_mut(&key.partition) {
                    partition.end.set(sample.at, *end);
                    partition.is_missing = false;
                }
            }
        }
        for key in &sample.missing {
            let topic = self.topics.get_mut(&*key.topic);
            if let Some(partition) = topic.and_then(|topic| topic.partitions.get_mut(&key.partition)) {
                partition.is_missing = true;
            }
        }
        let is_first = !std::mem::replace(&mut self.knows_ends, true);
        (self.is_stale, self.trouble) = (false, sample.failure);
        if is_first {
            return;
        }
        let mut of_brokers: SortedMap<i32, f64> = self.brokers.keys().map(|id| (*id, 0.0)).collect();
        let mut total = 0.0;
        for topic in self.topics.values_mut() {
            let mut sum = 0.0;
            let current = topic.partitions.values().filter(|one| one.is_current());
            for (partition, rate) in current.filter_map(|one| Some((one, one.end.rate()?))) {
                sum += rate;
                if let Some(leader) = partition.leader {
                    *of_brokers.entry(leader).or_default() += rate;
                }
            }
            topic.rate.push(sum);
            total += sum;
        }
        for (id, rate) in of_brokers {
            if let Some(broker) = self.brokers.get_mut(&id) {
                broker.rate.push(rate);
            }
        }
        self.rate.push(total);
    }

    fn take_sizes(&mut self, sample: SizesSample) {
        let mut of_brokers: SortedMap<i32, i64> = SortedMap::new();
        let mut of_topics: SortedMap<Arc<str>, i64> = SortedMap::new();
        for (broker, key, bytes) in sample.replicas {
            let sum = of_brokers.entry(broker).or_default();
            *sum = sum.saturating_add(bytes);
            let topic = self.topics.get_mut(&*key.topic);
            let Some(partition) = topic.and_then(|topic| topic.partitions.get_mut(&key.partition)) else {
                continue;
            };
            if partition.leader == Some(broker) {
                partition.bytes.set(sample.at, bytes);
                let sum = of_topics.entry(key.topic).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        for (id, bytes) in of_brokers {
            if let Some(broker) = self.brokers.get_mut(&id) {
                broker.bytes.set(sample.at, bytes);
            }
        }
        for (name, bytes) in of_topics {
            if let Some(topic) = self.topics.get_mut(&*name) {
                topic.bytes.set(sample.at, bytes);
            }
        }
        self.sizes_failure = sample.failure;
    }
}

impl Topic {
    /// Returns the topic with new metadata; the counters of its partitions stay.
    fn described(mut self, sample: TopicSample) -> Topic {
        let mut before = std::mem::take(&mut self.partitions);
        for one in sample.partitions {
            let known = before.remove(&one.id).unwrap_or_default();
            let PartitionSample { id, leader, replicas, in_sync } = one;
            self.partitions.insert(id, Partition { leader, replicas, in_sync, ..known });
        }
        self.error = sample.error;
        self
    }
}
