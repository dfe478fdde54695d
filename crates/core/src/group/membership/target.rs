//! The target assignment of a member of the consumer protocol: topic IDs from the coordinator, and the topics' names.
//!
//! Heartbeats identify topics by ID, everything else in the client by name. The names come from metadata. Partitions of
//! a topic whose name is unknown are assigned as soon as it becomes known.
//!
//! # Pitfalls
//!
//! - A recreated topic has the same name under another ID. The member must give its partitions up before it takes over
//!   those of the new topic (`recreated_topic_is_revoked_before_it_is_assigned`).

use std::sync::Arc;

use ottla_protocol::{
    generated::consumer_group_heartbeat::{request, response},
    uuid::Uuid,
    vocabulary::TopicPartition,
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::contract::metadata::Metadata;

/// Partitions by topic ID.
pub(super) type PartitionsById = SortedMap<Uuid, SortedSet<i32>>;

/// The partitions that the coordinator assigned to the member.
#[derive(Debug, Default)]
pub(super) struct Target {
    partitions: PartitionsById,
    /// The known names of assigned topics.
    names: SortedMap<Uuid, Arc<str>>,
    /// The ID under which the member got its partitions of a topic.
    ids: SortedMap<Arc<str>, Uuid>,
}

impl Target {
    /// Replaces the assignment. Returns true if it lacks a partition of the previous one. Error: the partition number that
    /// no topic can have.
    pub(super) fn replace(&mut self, assignment: &response::Assignment) -> Result<bool, i32> {
        let mut partitions = PartitionsById::new();
        for topic in &assignment.topic_partitions {
            if let Some(negative) = topic.partitions.iter().find(|number| **number < 0) {
                return Err(*negative);
            }
            partitions.entry(topic.topic_id).or_default().extend(&topic.partitions);
        }
        partitions.retain(|_, numbers| !numbers.is_empty());
        self.names.retain(|id, _| partitions.contains_key(id));
        let before = std::mem::replace(&mut self.partitions, partitions);
        Ok(!self.covers(&before))
    }

    /// Returns true if all these partitions are assigned.
    pub(super) fn covers(&self, others: &PartitionsById) -> bool {
        others.iter().all(|(id, numbers)| self.partitions.get(id).is_some_and(|own| numbers.is_subset(own)))
    }

    /// Removes the assignment, because the membership ended.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns true if no partition is assigned.
    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Adopts the names of assigned topics from metadata.
    pub(super) fn resolve(&mut self, metadata: &Metadata) {
        let unresolved: SortedSet<Uuid> = self.unresolved().collect();
        if unresolved.is_empty() {
            return;
        }
        for (name, topic) in &metadata.topics {
            if unresolved.contains(&topic.id) && !topic.gone {
                self.names.insert(topic.id, Arc::clone(name));
            }
        }
    }

    /// Sets the name of a topic, if the topic is assigned.
    pub(super) fn name(&mut self, id: Uuid, name: Arc<str>) {
        if self.partitions.contains_key(&id) {
            self.names.insert(id, name);
        }
    }

    /// Returns the assigned topics whose names are unknown.
    pub(super) fn unresolved(&self) -> impl Iterator<Item = Uuid> {
        self.partitions.keys().filter(|id| !self.names.contains_key(id)).copied()
    }

    /// Returns the names of the assigned topics, as far as they are known.
    pub(super) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.values()
    }

    /// Returns the partitions that the member should own next, given those that it owns. Partitions of a recreated topic
    /// are left out while the member owns those of its predecessor.
    pub(super) fn next(&self, owned: &SortedSet<TopicPartition>) -> SortedSet<TopicPartition> {
        let mut next = SortedSet::new();
        for (id, numbers) in &self.partitions {
            if let Some(name) = self.names.get(id)
                && self.id_to_own(name, owned) == Some(*id)
            {
                next.extend(numbers.iter().map(|number| TopicPartition::new(Arc::clone(name), *number)));
            }
        }
        next
    }

    /// Records that the member takes over what [`Target::next`] returned for the same owned partitions.
    pub(super) fn take_over(&mut self, owned: &SortedSet<TopicPartition>) {
        let names: SortedSet<&Arc<str>> = self.names.values().collect();
        let ids = names.into_iter().filter_map(|name| Some((Arc::clone(name), self.id_to_own(name, owned)?)));
        let ids: Vec<_> = ids.collect();
        self.ids.extend(ids);
    }

    /// Returns the ID of the topic of this name whose partitions the member may own.
    fn id_to_own(&self, name: &Arc<str>, owned: &SortedSet<TopicPartition>) -> Option<Uuid> {
        let first = TopicPartition::new(Arc::clone(name), 0);
        let owns_topic = owned.range(first..).next().is_some_and(|key| key.topic == *name);
        match self.ids.get(name) {
            Some(id) if owns_topic => Some(*id),
            _ => self.names.iter().find(|(_, known)| *known == name).map(|(id, _)| *id),
        }
    }

    /// Returns owned partitions as a heartbeat reports them.
    pub(super) fn to_ids<'a>(&self, owned: impl Iterator<Item = &'a TopicPartition>) -> PartitionsById {
        let mut by_id = PartitionsById::new();
        for key in owned {
            if let Some(id) = self.ids.get(&key.topic) {
                by_id.entry(*id).or_default().insert(key.partition);
            }
        }
        by_id
    }
}

/// Returns partitions in the form of the request.
pub(super) fn encode(partitions: &PartitionsById) -> Vec<request::TopicPartition> {
    let topics = partitions.iter().map(|(topic_id, numbers)| request::TopicPartition {
        topic_id: *topic_id,
        partitions: numbers.iter().copied().collect(),
    });
    topics.collect()
}
