//! The state that administrative requests change: quotas, delegation tokens, reassignments, and the places of replicas.

use ottla_protocol::time::Instant;
use ottla_sorted::SortedMap;

use crate::{
    api::broker_limits::BrokerLimits,
    cluster::{Cluster, Timer},
    options::BrokerId,
    topics::TopicIndex,
};

/// The clients that quotas are for: names by entity type; `None` is the default.
pub(crate) type QuotaEntity = SortedMap<String, Option<String>>;

/// The state of administrative requests, besides topics, groups and access rules.
#[derive(Debug, Default)]
pub(crate) struct Administration {
    /// The quotas of each entity.
    pub quotas: SortedMap<QuotaEntity, SortedMap<String, f64>>,
    /// The limits of brokers that were changed, which are not enforced.
    pub broker_limits: BrokerLimits,
    /// The delegation tokens by ID.
    pub tokens: SortedMap<String, Token>,
    /// The reassignments in progress.
    pub reassignments: SortedMap<(TopicIndex, i32), Reassignment>,
    /// The log directories of replicas that were moved; all others are in the first.
    pub log_dirs: SortedMap<(BrokerId, TopicIndex, i32), usize>,
}

/// A delegation token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub hmac: Vec<u8>,
    pub owner: (String, String),
    pub requester: (String, String),
    pub renewers: Vec<(String, String)>,
    pub issued_ms: i64,
    pub expires_ms: i64,
    pub max_ms: i64,
}

/// A reassignment of a partition's replicas in progress.
#[derive(Clone, Debug)]
pub(crate) struct Reassignment {
    /// The replicas before.
    pub original: Vec<BrokerId>,
    /// The replicas afterwards.
    pub target: Vec<BrokerId>,
}

impl Cluster {
    /// Starts to move a partition's replicas. The old ones stay until the new ones have all records.
    pub(crate) fn start_reassignment(&mut self, topic: TopicIndex, partition: i32, target: Vec<BrokerId>) {
        let key = (topic, partition);
        let before = self.administration.reassignments.remove(&key);
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let original = before.map_or_else(|| state.replicas.clone(), |before| before.original);
        let removed = original.iter().filter(|id| !target.contains(id));
        state.replicas = target.iter().chain(removed).copied().collect();
        self.administration.reassignments.insert(key, Reassignment { original, target });
        let until: Instant = self.now + self.options.reassignment_duration;
        if until <= self.now {
            self.finish_reassignment(topic, partition);
        } else {
            self.timers.set(until, Timer::Reassignment(topic, partition));
        }
    }

    /// Returns the replicas to those before the reassignment. Returns false if none is in progress.
    pub(crate) fn cancel_reassignment(&mut self, topic: TopicIndex, partition: i32) -> bool {
        let Some(Reassignment { original, .. }) =
            self.administration.reassignments.remove(&(topic, partition))
        else {
            return false;
        };
        self.set_replicas(topic, partition, original);
        true
    }

    /// Ends a reassignment: the new replicas are in sync, and the others are removed.
    pub(crate) fn finish_reassignment(&mut self, topic: TopicIndex, partition: i32) {
        if let Some(Reassignment { target, .. }) =
            self.administration.reassignments.remove(&(topic, partition))
        {
            self.set_replicas(topic, partition, target);
        }
    }

    fn set_replicas(&mut self, topic: TopicIndex, partition: i32, replicas: Vec<BrokerId>) {
        let alive = self.alive_brokers();
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        state.in_sync = replicas.iter().copied().filter(|id| alive.contains(id)).collect();
        let leader = state.leader.filter(|leader| state.in_sync.contains(leader));
        let elected = leader.or_else(|| state.in_sync.first().copied());
        state.replicas = replicas;
        if elected != state.leader {
            state.elect(elected);
        }
        let end = state.log.end_offset();
        self.advance_high_watermark(topic, partition, end);
        self.wake_partition(topic, partition);
        self.run();
    }
}
