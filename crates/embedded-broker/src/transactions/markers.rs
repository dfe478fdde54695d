//! The end of a transaction: a control batch in each of its partitions, and its offsets in each of its groups.
//!
//! Each participant has a timer of its own, `transaction_marker_delay` after the decision or later if a test has set a
//! delay for the partition. A partition without a leader is tried again until it has one. The transaction is complete
//! once the followers have all markers.

use std::time::Duration;

use bytes::Bytes;
use ottla_protocol::{
    batch::{
        control::ControlRecord,
        layout,
        reader::{BatchHeader, Records},
    },
    error_code::ErrorCode,
};

use super::{Participant, ProducerKey, TransactionState, offsets_partition};
use crate::{
    cluster::{Cluster, Timer},
    rewriting::seal,
    topics::TopicIndex,
};

/// The end of a producer's transaction, as its coordinator announces it to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub producer: ProducerKey,
    pub coordinator_epoch: i32,
    pub committed: bool,
    /// From 2 on, the epoch is higher than that of the records.
    pub version: i16,
}

/// A round of marker writing for a transactional ID. A move of the coordinator begins another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub transactional_id: String,
    pub number: u64,
}

/// The state of a participant's marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerStep {
    Unwritten,
    /// The leader of an epoch has appended it; followers must have all records up to the offset after it.
    Written {
        topic: TopicIndex,
        leader_epoch: i32,
        end: i64,
    },
}

/// The delay after which a marker that can't be written, or that followers don't have, is checked again.
const TRY_AGAIN: Duration = Duration::from_millis(20);

impl Cluster {
    /// Plans the markers of a transaction whose end is decided.
    pub(crate) fn begin_markers(&mut self, id: &str) {
        let (now, delay) = (self.now, self.options.transaction_marker_delay);
        let Some(transaction) = self.transactions.ids.get_mut(id) else { return };
        transaction.round += 1;
        let round = Round { transactional_id: id.to_owned(), number: transaction.round };
        let participants = transaction.participants.iter();
        transaction.unmarked = participants.map(|p| (p.clone(), MarkerStep::Unwritten)).collect();
        if transaction.unmarked.is_empty() {
            self.timers.set(now + delay, Timer::Marker(round, None));
            return;
        }
        for participant in transaction.unmarked.keys() {
            let delay = match participant {
                Participant::Partition(topic, partition) => {
                    let set = self.transactions.marker_delays.get(&(topic.clone(), *partition));
                    set.copied().unwrap_or(delay)
                }
                Participant::Group(_) => delay,
            };
            self.timers.set(now + delay, Timer::Marker(round.clone(), Some(participant.clone())));
        }
    }

    /// Handles the timer of a marker.
    pub(crate) fn marker_timeout(&mut self, round: Round, participant: Option<Participant>) {
        let is_served = self.is_transaction_served(&round.transactional_id);
        let id = &round.transactional_id;
        let Some(transaction) = self.transactions.ids.get(id) else { return };
        if transaction.round != round.number || !transaction.state.is_ending() {
            return;
        }
        let marker = Marker {
            producer: ProducerKey { id: transaction.producer_id, epoch: transaction.epoch },
            coordinator_epoch: transaction.coordinator_epoch,
            committed: transaction.state == TransactionState::PrepareCommit,
            version: transaction.version,
        };
        let step = participant.as_ref().and_then(|p| transaction.unmarked.get(p)).copied();
        let result = match (&participant, step) {
            _ if !is_served => Err(Some(MarkerStep::Unwritten)),
            (Some(Participant::Partition(_, partition)), Some(step @ MarkerStep::Written { .. })) => {
                self.check_replicated(*partition, step)
            }
            (Some(Participant::Partition(topic, partition)), _) => {
                self.mark_partition(topic, *partition, &marker)
            }
            (Some(Participant::Group(group)), _) => self.mark_group(group, &marker),
            (None, _) => Ok(()),
        };
        let Some(transaction) = self.transactions.ids.get_mut(&round.transactional_id) else { return };
        match (result, participant) {
            (Ok(()), participant) => {
                if let Some(participant) = &participant {
                    transaction.unmarked.remove(participant);
                }
                if transaction.unmarked.is_empty() {
                    transaction.complete();
                }
            }
            (Err(Some(step)), participant) => {
                if let Some(participant) = &participant {
                    transaction.unmarked.insert(participant.clone(), step);
                }
                self.timers.set(self.now + TRY_AGAIN, Timer::Marker(round, participant));
            }
            // A later producer or coordinator exists. Kafka's coordinator stops here, too.
            (Err(None), _) => {}
        }
    }

    /// Appends a marker to a partition; returns the offset that followers must reach.
    pub(crate) fn write_marker(
        &mut self,
        topic: TopicIndex,
        partition: i32,
        marker: &Marker,
    ) -> Result<i64, ErrorCode> {
        let now_ms = self.unix_ms();
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let limits = self.topics.get(topic).ok_or(unknown)?.limits;
        let state = self.topics.partition(topic, partition).ok_or(unknown)?;
        if state.in_sync.len() < limits.min_insync_replicas {
            return Err(ErrorCode::NOT_ENOUGH_REPLICAS);
        }
        if self.options.discard {
            let end = state.log.end_offset() + 1;
            if let Some(state) = self.topics.partition_mut(topic, partition) {
                state.log.skip(1);
            }
            return Ok(end);
        }
        state.check_marker(marker)?;
        let bytes = control_batch(marker, now_ms, state.log.end_offset(), state.leader_epoch);
        let header = crate::batch::read_header(&bytes)?;
        let end = header.last_offset() + 1;
        self.append(topic, partition, &header, now_ms, bytes);
        Ok(end)
    }

    /// Ends the transaction of a producer in the groups of a partition of the offsets topic.
    pub(crate) fn end_offsets_in(&mut self, partition: i32, marker: &Marker) -> Result<(), ErrorCode> {
        if !(0..super::OFFSETS_PARTITIONS).contains(&partition) {
            return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let groups = self.groups.iter().map(|(name, _)| name.clone());
        for group in groups.filter(|name| offsets_partition(name) == partition).collect::<Vec<_>>() {
            let Some(state) = self.groups.get_mut(&group) else { continue };
            state.pending.check_epoch(marker.producer.id, marker.producer.epoch)?;
            self.end_offsets(&group, marker.producer.id, marker.producer.epoch, marker.committed);
        }
        Ok(())
    }

    /// Error: the next step to try, or none if the marker is fenced.
    fn mark_partition(
        &mut self,
        topic: &str,
        partition: i32,
        marker: &Marker,
    ) -> Result<(), Option<MarkerStep>> {
        let Some(index) = self.topics.by_name(topic) else { return Ok(()) };
        let Some(state) = self.topics.partition(index, partition) else { return Ok(()) };
        let is_led = state.leader.is_some_and(|id| self.brokers.get(&id).is_some_and(|broker| broker.alive));
        if !is_led {
            return Err(Some(MarkerStep::Unwritten));
        }
        let leader_epoch = state.leader_epoch;
        match self.write_marker(index, partition, marker) {
            Ok(end) => {
                self.check_replicated(partition, MarkerStep::Written { topic: index, leader_epoch, end })
            }
            Err(ErrorCode::INVALID_PRODUCER_EPOCH | ErrorCode::TRANSACTION_COORDINATOR_FENCED) => Err(None),
            Err(_) => Err(Some(MarkerStep::Unwritten)),
        }
    }

    fn check_replicated(&self, partition: i32, step: MarkerStep) -> Result<(), Option<MarkerStep>> {
        let MarkerStep::Written { topic, leader_epoch, end } = step else { return Err(Some(step)) };
        let Some(state) = self.topics.partition(topic, partition) else { return Ok(()) };
        // A leader that lost its tail lost the marker, too. The next one may have appended other records in its place.
        let is_replaced = state.log.epoch_of(end - 1).is_some_and(|epoch| epoch != leader_epoch);
        if state.log.end_offset() < end || is_replaced {
            return Err(Some(MarkerStep::Unwritten));
        }
        if state.log.high_watermark() >= end { Ok(()) } else { Err(Some(step)) }
    }

    /// Makes a transaction's offsets visible, or drops them, at the group's coordinator.
    fn mark_group(&mut self, group: &str, marker: &Marker) -> Result<(), Option<MarkerStep>> {
        let coordinator = self.coordinator_of(0, group);
        let is_alive = coordinator.is_some_and(|id| self.brokers.get(&id).is_some_and(|b| b.alive));
        let is_loading = self.loading_groups.get(group).is_some_and(|until| *until > self.now);
        if !is_alive || is_loading {
            return Err(Some(MarkerStep::Unwritten));
        }
        // A producer may add the offsets of a group and then commit none, or the group may be deleted.
        self.end_offsets(group, marker.producer.id, marker.producer.epoch, marker.committed);
        Ok(())
    }
}

/// Returns the control record of a batch, if it is a control batch.
pub(crate) fn marker_in(header: &BatchHeader, bytes: &[u8]) -> Option<ControlRecord> {
    if !header.is_control() {
        return None;
    }
    let records = bytes.get(layout::RECORDS..header.size)?;
    let record = Records::new(header, records).next()?.ok()?;
    ControlRecord::parse(record.key, record.value).ok()
}

/// Returns the batch of a marker, as Kafka's brokers write it.
fn control_batch(marker: &Marker, timestamp: i64, base_offset: i64, leader_epoch: i32) -> Bytes {
    let control = ControlRecord::EndTransaction {
        committed: marker.committed,
        coordinator_epoch: marker.coordinator_epoch,
    };
    let (key, value) = control.encode();
    // Attributes, timestamp delta, offset delta, key with its length, value with its length, no headers. All lengths
    // fit into one byte of a zigzag varint.
    let length = |bytes: &[u8]| u8::try_from(bytes.len() * 2).unwrap_or(u8::MAX);
    let record = [&[0, 0, 0, length(&key)][..], &key, &[length(&value)], &value, &[0]].concat();
    let mut batch = vec![0; layout::RECORDS];
    batch.push(length(&record));
    batch.extend_from_slice(&record);
    let mut put = |at: usize, bytes: &[u8]| batch[at..at + bytes.len()].copy_from_slice(bytes);
    put(layout::BASE_OFFSET, &base_offset.to_be_bytes());
    put(layout::PARTITION_LEADER_EPOCH, &leader_epoch.to_be_bytes());
    put(layout::MAGIC, &[2]);
    put(layout::ATTRIBUTES, &(layout::TRANSACTIONAL | layout::CONTROL).to_be_bytes());
    put(layout::BASE_TIMESTAMP, &timestamp.to_be_bytes());
    put(layout::MAX_TIMESTAMP, &timestamp.to_be_bytes());
    put(layout::PRODUCER_ID, &marker.producer.id.to_be_bytes());
    put(layout::PRODUCER_EPOCH, &marker.producer.epoch.to_be_bytes());
    put(layout::BASE_SEQUENCE, &(-1i32).to_be_bytes());
    put(layout::RECORD_COUNT, &1i32.to_be_bytes());
    let counted = i32::try_from(batch.len() - layout::LENGTH_PREFIX).unwrap_or(i32::MAX);
    batch[layout::LENGTH..][..4].copy_from_slice(&counted.to_be_bytes());
    seal(&mut batch);
    batch.into()
}
