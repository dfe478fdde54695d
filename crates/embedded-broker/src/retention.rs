//! `retention.ms` and `retention.bytes`: deletes old segments and advances the log start offset.
//!
//! As in Kafka, segments are deleted from the oldest on, up to the first one that has to stay. The age of a segment is
//! that of its newest record, at least `retention.bytes` stay, and nothing above the high watermark is deleted. The active
//! segment is deleted, too, once all of its records are too old. Kafka checks at intervals; here sizes are checked at each append, ages
//! when they are reached. Only a topic's explicitly set values are enforced: the cluster's default of seven days would delete
//! records with invented timestamps.
//!
//! # Pitfalls
//!
//! - Without a smaller `segment.bytes` or `segment.ms` all records of a test are in one segment, which goes as a whole
//!   (`records_of_one_segment_are_deleted_together`).

use std::time::Duration;

use ottla_sorted::SortedMap;

use crate::{
    cluster::{Cluster, Timer},
    log::PartitionLog,
    topics::TopicIndex,
};

/// The retention time and size of a topic's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    millis: Option<i64>,
    bytes: Option<u64>,
}

/// The minimum delay between age checks.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

impl Retention {
    pub fn new(configs: &SortedMap<String, String>) -> Self {
        if configs.get("cleanup.policy").is_some_and(|policy| !policy.contains("delete")) {
            return Self::default();
        }
        let number = |name| configs.get(name).and_then(|value: &String| value.parse::<i64>().ok());
        Self {
            millis: number("retention.ms").filter(|millis| *millis >= 0),
            bytes: number("retention.bytes").and_then(|bytes| u64::try_from(bytes).ok()),
        }
    }

    /// Returns the offset of the first record that stays.
    fn start(&self, log: &PartitionLog, unix_ms: i64) -> i64 {
        let mut left = log.bytes();
        let mut start = log.start_offset();
        for (segment, end) in log.segments().with_ends(log.end_offset()) {
            let is_too_old =
                self.millis.is_some_and(|millis| unix_ms.saturating_sub(segment.newest_ms()) > millis);
            let is_too_much = self.bytes.is_some_and(|bytes| left.saturating_sub(segment.bytes) >= bytes);
            let is_empty = segment.bytes == 0 && end == log.end_offset();
            if is_empty || !(is_too_old || is_too_much) || end > log.high_watermark() {
                break;
            }
            left = left.saturating_sub(segment.bytes);
            start = end;
        }
        start
    }

    /// Returns the time until the oldest segment expires.
    fn next_check(&self, log: &PartitionLog, unix_ms: i64) -> Option<Duration> {
        let (oldest, end) = log.segments().with_ends(log.end_offset()).next()?;
        if oldest.bytes == 0 && end == log.end_offset() {
            return None;
        }
        let oldest = oldest.newest_ms();
        let wait = oldest.saturating_add(self.millis?).saturating_sub(unix_ms).saturating_add(1);
        Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)).max(SHORTEST_WAIT))
    }
}

impl Cluster {
    /// Deletes the expired and surplus records of a partition.
    pub(crate) fn enforce_retention(&mut self, topic: TopicIndex, partition: i32) {
        let Some(retention) = self.topics.get(topic).map(|topic| topic.limits.retention) else { return };
        if retention == Retention::default() {
            return;
        }
        let (now, unix_ms) = (self.now, self.unix_ms());
        let Some(state) = self.topics.partition(topic, partition) else { return };
        let start = retention.start(&state.log, unix_ms);
        if start > state.log.start_offset() {
            self.advance_log_start(topic, partition, start);
        }
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        if !state.retention_timer
            && let Some(wait) = retention.next_check(&state.log, unix_ms)
        {
            state.retention_timer = true;
            self.timers.set(now + wait, Timer::Retention(topic, partition));
        }
    }

    /// Handles the timer for the age of a partition's oldest records.
    pub(crate) fn retention_timeout(&mut self, topic: TopicIndex, partition: i32) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            state.retention_timer = false;
        }
        self.enforce_retention(topic, partition);
    }
}
