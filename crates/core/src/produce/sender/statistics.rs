//! The statistics of a [`Sender`]: retries, batches per topic, and the counters of its collector.

use std::sync::Arc;

use ottla_protocol::vocabulary::{NodeId, TopicPartition};
use ottla_sorted::SortedMap;

use super::Sender;
use crate::{
    produce::{collector::Linger, request::ProduceBatch},
    stats::{BrokerStatistics, CollectorStatistics, Purpose, SendReason, Statistics, Window},
};

/// Counters of a sender, per request and per batch.
#[derive(Debug, Default)]
pub(super) struct SenderCounters {
    pub(super) collector: CollectorStatistics,
    pub(super) retries: i64,
    /// Bytes and messages of the batches of each topic.
    pub(super) topics: SortedMap<Arc<str>, (Window, Window)>,
}

impl Sender {
    pub(super) fn count_request(&mut self, reason: SendReason, batches: &[ProduceBatch]) {
        let (mut messages, mut bytes) = (0, 0);
        let topic_of = |batch: &ProduceBatch| self.slots.get(batch.slot).map(|entry| entry.partition.topic());
        let topics = &mut self.counters.topics;
        // Adjacent batches mostly belong to one topic, which is then looked up once.
        for of_topic in batches.chunk_by(|a, b| topic_of(a) == topic_of(b)) {
            let Some(topic) = topic_of(&of_topic[0]) else { continue };
            if !topics.contains_key(topic) {
                topics.insert(Arc::clone(topic), Default::default());
            }
            let Some((sizes, counts)) = topics.get_mut(topic) else { continue };
            for ProduceBatch { batch, .. } in of_topic {
                messages += batch.sealed.record_count() as usize;
                bytes += batch.sealed.len();
                sizes.record(batch.sealed.len() as u64);
                counts.record(u64::from(batch.sealed.record_count()));
            }
        }
        self.counters.collector.count_send(reason, batches.len(), messages, bytes);
    }

    /// Adds the sender's statistics to a snapshot; windows restart as the purpose demands. Topics and partitions are left
    /// out of a push.
    pub fn add_statistics(
        &mut self,
        statistics: &mut Statistics,
        broker: &mut BrokerStatistics,
        node: Option<NodeId>,
        purpose: Purpose,
    ) {
        let counters = &mut *self.counters;
        broker.collector = counters.collector.snapshot(purpose);
        broker.int_latency = broker.collector.wait.clone();
        broker.collector.waiting = self.collector.len() as i64;
        if self.shared.settings.linger == Linger::Auto {
            let pace = self.collector.pace();
            broker.collector.window = pace.window() as i64;
            broker.collector.spacing = i64::try_from(pace.distance().as_micros()).unwrap_or(i64::MAX);
        }
        broker.tx_retries = counters.retries;
        if purpose == Purpose::Push {
            return;
        }
        for (topic, (sizes, counts)) in &mut counters.topics {
            let entry = statistics.topic(topic);
            entry.batchsize.add(&sizes.snapshot(purpose));
            entry.batchcnt.add(&counts.snapshot(purpose));
        }
        // In the order of topics, so that each is looked up once.
        let mut partitions = self.slots.by_partition().peekable();
        while let Some((TopicPartition { topic, .. }, _)) = partitions.peek() {
            let topic = Arc::clone(topic);
            let entry = statistics.topic(&topic);
            while let Some((partition, slot)) = partitions.next_if(|(next, _)| next.topic == topic) {
                slot.partition.add_statistics(entry.partitions.entry(partition.partition).or_default(), node);
                broker.toppars.push(partition.clone());
            }
        }
    }
}
