//! The partitions that a broker actor fetches.

use std::sync::{Arc, atomic::Ordering};

use ottla_protocol::{uuid::Uuid, vocabulary::TopicPartition};
use ottla_sorted::SortedMap;

use super::{
    super::{
        partition::PartitionConsumer,
        request::{Asked, FetchRequestBuilder},
        session::ForgottenPartition,
    },
    Fetcher,
};
use crate::{error::ErrorKind, machine::Instant};

#[derive(Debug, Default)]
pub(super) struct TopicSlots {
    pub(super) id: Uuid,
    pub(super) partitions: SortedMap<i32, Slot>,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) partition: Box<PartitionConsumer>,
    /// The partition's parameters in the last request, and the generation of the session.
    pub(super) known: Option<(u64, Asked)>,
    /// The partition's end as the broker has reported it in the fetch session.
    pub(super) end: Option<i64>,
    pub(super) retry_at: Option<Instant>,
    /// The size limit of the next fetch; above `max.partition.fetch.bytes` if an old broker needs that to send a whole
    /// batch.
    pub(super) max_bytes: i32,
    /// The number of times that the batch at the current offset was damaged.
    pub(super) damaged: u32,
    /// The last reported error: each is reported once.
    pub(super) reported: Option<ErrorKind>,
}

/// The partitions of the next Fetch.
pub(super) enum Choice {
    /// There is none to fetch.
    Nothing,
    /// A partition has reached its queue limit, and the others wait with it.
    Full,
    /// These.
    Partitions(Vec<TopicPartition>),
}

impl Fetcher {
    pub(super) fn adopt(&mut self, partition: Box<PartitionConsumer>) {
        let TopicPartition { topic, partition: number } = partition.handle.key().clone();
        self.remove(&topic, number);
        partition.handle.set_fetcher(Some(self.wake.clone()));
        if self.partitions == 0 {
            self.shared.fetchers.fetch_add(1, Ordering::Relaxed);
        }
        self.partitions += 1;
        let slots = self.topics.entry(Arc::clone(&topic)).or_default();
        if slots.id != partition.topic_id {
            // The topic was recreated, or its ID became known only now.
            self.ids.remove(&slots.id);
            slots.id = partition.topic_id;
            self.session.restart();
        }
        if !slots.id.is_zero() {
            self.ids.insert(slots.id, topic);
        }
        let max_bytes = self.shared.settings.partition_fetch_max_bytes;
        let slot =
            Slot { partition, known: None, end: None, retry_at: None, max_bytes, damaged: 0, reported: None };
        slots.partitions.insert(number, slot);
    }

    pub(super) fn remove(&mut self, topic: &str, partition: i32) -> Option<Slot> {
        let slots = self.topics.get_mut(topic)?;
        let slot = slots.partitions.remove(&partition)?;
        if slot.known.is_some_and(|(generation, _)| generation == self.session.generation()) {
            let key = slot.partition.handle.key().clone();
            self.session.forget(ForgottenPartition { key, topic_id: slots.id, end: slot.end });
        }
        if slots.partitions.is_empty() {
            self.ids.remove(&slots.id);
            self.topics.remove(topic);
        }
        self.partitions -= 1;
        if self.partitions == 0 {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
        slot.partition.handle.set_fetcher(None);
        Some(slot)
    }

    /// Returns the partitions to fetch.
    pub(super) fn choose(&self) -> Choice {
        let limits = self.shared.queue.limits();
        let mut chosen = Vec::with_capacity(self.partitions);
        for slots in self.topics.values() {
            for slot in slots.partitions.values() {
                let handle = &slot.partition.handle;
                if slot.retry_at.is_some() || handle.is_paused() || slot.partition.is_stale() {
                    continue;
                }
                if !handle.has_room(limits) {
                    return Choice::Full;
                }
                chosen.push(handle.key().clone());
            }
        }
        if chosen.is_empty() { Choice::Nothing } else { Choice::Partitions(chosen) }
    }

    /// Adds to a request the partitions that changed since the last one; all of them if the session is new.
    pub(super) fn fill(&mut self, builder: &mut FetchRequestBuilder, chosen: &[TopicPartition], by_id: bool) {
        let generation = self.session.generation();
        let mut forgotten = self.session.take_forgotten();
        let mut next_chosen = chosen.iter().peekable();
        let mut asked_for = Vec::new();
        for slots in self.topics.values_mut() {
            for slot in slots.partitions.values_mut() {
                let known = slot.known.filter(|(known, _)| *known == generation).map(|(_, asked)| asked);
                if next_chosen.next_if(|next| *next == slot.partition.handle.key()).is_some() {
                    let asked = Asked {
                        offset: slot.partition.offset,
                        leader_epoch: slot.partition.leader_epoch,
                        max_bytes: slot.max_bytes,
                    };
                    slot.known = Some((generation, asked));
                    slot.partition.by_id = by_id;
                    if slot.partition.handle.take_resumed() {
                        slot.partition.reported_end = None;
                        // The broker reports an end once in a session, and the partition may never have left it.
                        if slot.end == Some(asked.offset) {
                            self.kept_at_end.push(slot.partition.handle.key().clone());
                        }
                    }
                    if known != Some(asked) {
                        let key = slot.partition.handle.key();
                        asked_for.push((key, slots.id, asked));
                        for kept in forgotten.extract_if(.., |gone| gone.key == *key) {
                            slot.end = kept.end;
                            if kept.end == Some(asked.offset) {
                                self.kept_at_end.push(kept.key);
                            }
                        }
                    }
                } else if known.is_some() {
                    (slot.known, slot.end) = (None, None);
                    let key = slot.partition.handle.key().clone();
                    forgotten.push(ForgottenPartition { key, topic_id: slots.id, end: None });
                }
            }
        }
        if !asked_for.is_empty() {
            // Each request starts with another topic; the partitions of a topic stay together.
            self.rotation = self.rotation.wrapping_add(1);
            let start = self.rotation % asked_for.len();
            let boundary = (start..asked_for.len())
                .find(|i| *i == 0 || asked_for[*i].0.topic != asked_for[*i - 1].0.topic);
            asked_for.rotate_left(boundary.unwrap_or(0));
        }
        for (key, topic_id, asked) in asked_for {
            builder.add(key, topic_id, asked);
        }
        if !self.session.is_full() {
            builder.forget(forgotten);
        }
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.topics.values().flat_map(|topic| topic.partitions.values())
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.topics.values_mut().flat_map(|topic| topic.partitions.values_mut())
    }
}
