//! `cleanup.policy=compact`: keeps the newest record of each key.
//!
//! ```text
//!   append ─► segment closes ─► choice: which closed segments, and is it time? ─► cleaner: which records stay
//!                 timer: a lag has passed ─┘                                        └─► rewriting: the batches that are left
//! ```
//!
//! As in Kafka, only closed segments are compacted, up to the last stable offset; the share of bytes that were never compacted
//! must exceed `min.cleanable.dirty.ratio`, or the oldest of them be older than `max.compaction.lag.ms`. Records keep their
//! offsets. Kafka's cleaner looks every 15 s (`log.cleaner.backoff.ms`); here a log is compacted as soon as it is due.
//!
//! # Pitfalls
//!
//! - A segment closes when a record is appended, never because time passes: the newest records of an idle topic are not
//!   compacted (`active_segment_is_never_compacted`).
//! - A tombstone gets its delete horizon from the first compaction that reaches it, `delete.retention.ms` later than that. Only a
//!   compaction after the horizon removes it, not the horizon itself (`tombstone_stays_for_delete_retention_ms`).

mod choice;
mod cleaner;

use ottla_sorted::SortedMap;

pub(crate) use choice::Choice;

use crate::{
    cluster::{Cluster, Timer},
    control::Control,
    topics::TopicIndex,
};

/// The settings of a compacted topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compaction {
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_dirty_ratio: f64,
}

impl Compaction {
    /// Reads the settings of a topic. `None`: it is not compacted.
    pub fn new(configs: &SortedMap<String, String>) -> Option<Self> {
        let policies = configs.get("cleanup.policy")?;
        if !policies.split(',').any(|policy| policy.trim() == "compact") {
            return None;
        }
        let millis = |name, default| {
            let set = configs.get(name).and_then(|value: &String| value.parse::<i64>().ok());
            set.unwrap_or(default).max(0)
        };
        let ratio = configs.get("min.cleanable.dirty.ratio").and_then(|ratio| ratio.parse().ok());
        Some(Self {
            delete_retention_ms: millis("delete.retention.ms", 86_400_000),
            min_lag_ms: millis("min.compaction.lag.ms", 0),
            max_lag_ms: millis("max.compaction.lag.ms", i64::MAX),
            min_dirty_ratio: ratio.unwrap_or(0.5),
        })
    }
}

impl Control<'_> {
    /// Closes the active segment of a partition and compacts everything up to the last stable offset, whatever the dirty ratio and
    /// the lags say. Returns false if the topic is not compacted or does not exist.
    pub fn compact(&mut self, topic: &str, partition: i32) -> bool {
        let Some(index) = self.cluster.topics.by_name(topic) else { return false };
        let compaction = self.cluster.topics.get(index).and_then(|topic| topic.limits.compaction);
        let Some(state) = self.cluster.topics.partition_mut(index, partition) else { return false };
        let Some(compaction) = compaction else { return false };
        state.log.roll();
        let any_time = Compaction { min_lag_ms: 0, ..compaction };
        let choice = Choice::new(&state.log, state.last_stable_offset(), any_time, 0);
        if choice.end > state.log.start_offset() {
            self.cluster.compact(index, partition, compaction, choice.end);
        }
        true
    }
}

impl Cluster {
    /// Compacts a partition if it is time, and sets the timer for the next time.
    pub(crate) fn enforce_compaction(&mut self, topic: TopicIndex, partition: i32) {
        let Some(compaction) = self.topics.get(topic).and_then(|topic| topic.limits.compaction) else {
            return;
        };
        let (now, unix_ms) = (self.now, self.unix_ms());
        let Some(state) = self.topics.partition(topic, partition) else { return };
        let choice = Choice::new(&state.log, state.last_stable_offset(), compaction, unix_ms);
        if choice.is_due {
            self.compact(topic, partition, compaction, choice.end);
        }
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let before = state.compaction_timer.take();
        let next = Choice::new(&state.log, state.last_stable_offset(), compaction, unix_ms).next_check;
        if let Some(before) = before {
            self.timers.cancel(before);
        }
        let timer = next.map(|wait| self.timers.set(now + wait, Timer::Compaction(topic, partition)));
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            state.compaction_timer = timer;
        }
    }

    /// Handles the timer for the lags of a partition's records.
    pub(crate) fn compaction_timeout(&mut self, topic: TopicIndex, partition: i32) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            state.compaction_timer = None;
        }
        self.enforce_compaction(topic, partition);
    }

    /// Compacts the records of a partition before `end`. A log with a batch that can't be read stays as it is.
    pub(crate) fn compact(&mut self, topic: TopicIndex, partition: i32, compaction: Compaction, end: i64) {
        let Some(limits) = self.topics.get(topic).map(|topic| topic.limits.segments) else { return };
        let unix_ms = self.unix_ms();
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let Some(cleaned) = cleaner::clean(state, compaction, end, unix_ms) else {
            state.log.give_up_compaction();
            return;
        };
        let before = state.log.bytes();
        state.log.replace_before(end, cleaned.batches, limits);
        state.transactions.forget_markers(&cleaned.removed_markers);
        let after = state.log.bytes();
        // Delete horizons may make batches larger.
        self.stored_bytes = self.stored_bytes.saturating_add_signed(after as i64 - before as i64);
    }
}
