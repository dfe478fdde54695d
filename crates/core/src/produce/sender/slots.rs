//! The partitions of a [`Sender`](super::Sender), each in a slot whose index it keeps while anything of it is in flight.
//!
//! ```text
//!  insert ──► found by topic and partition ──start_leaving──► leaving ──remove, nothing in flight──► index is free
//! ```

use std::sync::Arc;

use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedMap;

use crate::{
    backoff::Backoff,
    machine::Instant,
    produce::{partition::PartitionProducer, topic::ProducerTopic},
};

/// The partitions by index, and the indices by topic and partition.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// The partitions that are not leaving.
    by_partition: SortedMap<TopicPartition, usize>,
}

/// A partition and what the sender knows of it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) topic: Arc<ProducerTopic>,
    pub(super) partition: PartitionProducer,
    pub(super) backoff: Backoff,
    /// The time of the next check for messages that timed out.
    pub(super) next_expiry: Instant,
    /// The partition returns to the cluster actor as soon as nothing of it is in flight.
    is_leaving: bool,
}

impl Slot {
    /// Creates the slot of a partition that the broker leads.
    pub(super) const fn new(
        topic: Arc<ProducerTopic>,
        partition: PartitionProducer,
        backoff: Backoff,
    ) -> Self {
        Self { topic, partition, backoff, next_expiry: Instant::ZERO, is_leaving: false }
    }

    /// Returns true if the partition's next batch may be sent now.
    pub(super) fn may_collect(&self) -> bool {
        !(self.is_leaving
            || self.partition.retry_at.is_some()
            || self.partition.is_draining()
            || self.partition.is_compressing())
    }

    /// Returns true if a worker compresses the next batch of a partition that is not leaving.
    pub(super) fn is_compressing(&self) -> bool {
        !self.is_leaving && self.partition.is_compressing()
    }
}

impl Slots {
    /// Adds a partition, and returns its index.
    pub(super) fn insert(&mut self, slot: Slot) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.by_partition.insert(slot.partition.topic_partition(), index);
        self.slots[index] = Some(slot);
        index
    }

    /// Returns the slot of an index.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)?.as_ref()
    }

    /// Returns the slot of an index.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.slots.get_mut(index)?.as_mut()
    }

    /// Returns an upper bound of the indices.
    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slots, also those that are leaving.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().flatten()
    }

    /// Returns the partitions that are not leaving, in the order of topics.
    pub(super) fn by_partition(&self) -> impl Iterator<Item = (&TopicPartition, &Slot)> {
        self.by_partition.iter().filter_map(|(key, index)| Some((key, self.get(*index)?)))
    }

    /// Marks a partition as leaving, and returns its index.
    pub(super) fn start_leaving(&mut self, partition: &TopicPartition) -> Option<usize> {
        let index = self.by_partition.remove(partition)?;
        self.get_mut(index)?.is_leaving = true;
        Some(index)
    }

    /// Removes a leaving partition of which nothing is in flight; its index is free then.
    pub(super) fn remove_idle(&mut self, index: usize) -> Option<Slot> {
        let slot = self.slots.get_mut(index)?;
        let left = slot.take_if(|slot| slot.is_leaving && !slot.partition.is_in_flight())?;
        self.free.push(index);
        Some(left)
    }

    /// Removes all partitions.
    pub(super) fn take_all(&mut self) -> Vec<PartitionProducer> {
        self.by_partition.clear();
        self.free.clear();
        self.slots.drain(..).flatten().map(|slot| slot.partition).collect()
    }
}
