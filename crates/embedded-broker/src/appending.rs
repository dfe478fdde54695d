//! Appends records to a log, makes them visible, and removes them.

use bytes::Bytes;
use ottla_protocol::{batch::reader::BatchHeader, time::Instant};

use crate::{
    changes::Change,
    cluster::{Cluster, Timer},
    connection::{Pending, Waiter},
    log::segments::BatchSize,
    topics::TopicIndex,
    transactions::marker_in,
};

/// The sizes of the batches that became visible at a partition, in bytes.
#[derive(Clone, Copy, Debug)]
struct Visible {
    all: usize,
    /// For read_committed consumers.
    stable: usize,
}

impl Cluster {
    /// Appends a validated batch whose base offset and leader epoch are filled in.
    pub(crate) fn append(
        &mut self,
        topic: TopicIndex,
        partition: i32,
        header: &BatchHeader,
        max_timestamp: i64,
        bytes: Bytes,
    ) {
        let Some(segments) = self.topics.get(topic).map(|topic| topic.limits.segments) else { return };
        let unix_ms = self.unix_ms();
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let base_offset = state.log.end_offset();
        self.stored_bytes += bytes.len() as u64;
        let control = marker_in(header, &bytes);
        state.log.make_room(segments, BatchSize { bytes: bytes.len() as u64, max_timestamp }, unix_ms);
        state.log.append(header, state.leader_epoch, max_timestamp, bytes.clone());
        state.note_batch(header, base_offset, control);
        let end = state.log.end_offset();
        self.note_batch(topic, partition, header, control, &bytes);
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        if self.options.replication_lag.is_zero() || state.in_sync.len() <= 1 {
            self.advance_high_watermark(topic, partition, end);
        } else {
            let due = self.now + self.options.replication_lag;
            state.replicating.push_back((due, end));
            if due != Instant::FAR_FUTURE {
                self.timers.set(due, Timer::Replicate(topic, partition));
            }
        }
        self.clean_up(topic, partition);
        if self.stored_bytes > self.options.retention_bytes {
            self.retain();
        }
    }

    /// Deletes the expired records of a partition, and compacts it, as `cleanup.policy` says.
    pub(crate) fn clean_up(&mut self, topic: TopicIndex, partition: i32) {
        self.enforce_retention(topic, partition);
        self.enforce_compaction(topic, partition);
    }

    /// Advances the high watermark to the offset that the followers have reached by now.
    pub(crate) fn replicate(&mut self, topic: TopicIndex, partition: i32) {
        let now = self.now;
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let mut reached = None;
        while state.replicating.front().is_some_and(|(due, _)| *due <= now) {
            reached = state.replicating.pop_front().map(|(_, end)| end);
        }
        if let Some(end) = reached {
            self.advance_high_watermark(topic, partition, end);
            self.clean_up(topic, partition);
        }
    }

    /// Makes records up to `offset` visible, and completes the requests that waited for them.
    pub(crate) fn advance_high_watermark(&mut self, topic: TopicIndex, partition: i32, offset: i64) {
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let (before, stable_before) = (state.log.high_watermark(), state.last_stable_offset());
        state.log.advance_high_watermark(offset);
        let watermark = state.log.high_watermark();
        if watermark == before {
            return;
        }
        state.transactions.replicated(watermark);
        if !state.fetch_waiters.is_empty() {
            let visible = Visible {
                all: state.log.bytes_between(before, watermark),
                stable: state.log.bytes_between(stable_before, state.last_stable_offset()),
            };
            let mut waiters = std::mem::take(&mut state.fetch_waiters);
            waiters.retain(|waiter| self.count_for_fetch(*waiter, visible));
            self.put_back(topic, partition, waiters);
        }
        self.wake_share_fetches(topic, partition);
        self.wake_producers(topic, partition);
    }

    /// Wakes every request that waits at a partition: its leader or its records changed.
    pub(crate) fn wake_partition(&mut self, topic: TopicIndex, partition: i32) {
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        let waiters = std::mem::take(&mut state.fetch_waiters);
        self.satisfied.extend(waiters);
        self.wake_share_fetches(topic, partition);
        self.wake_producers(topic, partition);
    }

    /// Deletes a partition's records before `offset` for a client.
    pub(crate) fn delete_records_before(&mut self, topic: TopicIndex, partition: i32, before: i64) {
        self.advance_log_start(topic, partition, before);
        if let Some(topic) = self.topics.get(topic).map(|topic| topic.name.clone()) {
            self.note_change(|| Change::RecordsDeleted { topic, partition, before });
        }
    }

    /// Drops a partition's records before `offset`.
    pub(crate) fn advance_log_start(&mut self, topic: TopicIndex, partition: i32, offset: i64) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            let before = state.log.bytes();
            state.log.advance_start(offset);
            state.transactions.advance_start(state.log.start_offset());
            self.stored_bytes -= before - state.log.bytes();
        }
    }

    /// Responds to one request whose wait has ended; returns false if no request is ready.
    pub(crate) fn finish_satisfied(&mut self) -> bool {
        let Some(waiter) = self.satisfied.pop_front() else { return false };
        match self.take_pending(waiter) {
            Some(Pending::Fetch(pending)) => self.finish_fetch(pending),
            Some(Pending::Produce(pending)) => self.finish_produce(pending),
            Some(Pending::ShareFetch(pending)) => self.resume_share_fetch(pending),
            Some(Pending::Admission(pending)) => self.produce_again(pending),
            Some(Pending::Group(_)) | None => {}
        }
        true
    }

    /// Adds new bytes to a waiting Fetch; returns true if it must continue to wait.
    fn count_for_fetch(&mut self, waiter: Waiter, visible: Visible) -> bool {
        let Some(Pending::Fetch(pending)) = self.pending_mut(waiter) else { return false };
        pending.bytes += if pending.is_read_committed() { visible.stable } else { visible.all };
        if pending.bytes < pending.min_bytes {
            return true;
        }
        self.satisfied.push_back(waiter);
        false
    }

    fn wake_producers(&mut self, topic: TopicIndex, partition: i32) {
        let Some(state) = self.topics.partition_mut(topic, partition) else { return };
        if state.produce_waiters.is_empty() {
            return;
        }
        let waiters = std::mem::take(&mut state.produce_waiters);
        let mut left = Vec::new();
        for waiter in waiters {
            let Some(Pending::Produce(pending)) = self.pending_mut(waiter) else { continue };
            let parts = pending.parts.clone();
            if parts.iter().all(|part| self.produce_part_is_done(part)) {
                self.satisfied.push_back(waiter);
            } else {
                left.push(waiter);
            }
        }
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            state.produce_waiters = left;
        }
    }

    fn put_back(&mut self, topic: TopicIndex, partition: i32, waiters: Vec<Waiter>) {
        if let Some(state) = self.topics.partition_mut(topic, partition) {
            state.fetch_waiters = waiters;
        }
    }

    /// Drops the oldest batches of the longest logs until a twentieth of the limit is free.
    fn retain(&mut self) {
        let target = self.options.retention_bytes - self.options.retention_bytes / 20;
        while self.stored_bytes > target {
            let partitions = self.topics.iter_mut().flat_map(|(_, topic)| topic.partitions.iter_mut());
            let Some(longest) = partitions.max_by_key(|partition| partition.log.bytes()) else { return };
            let before = longest.log.bytes();
            // Drops one chunk at a time, so that logs of the same length shrink together.
            let chunk = (before / 16).max(1);
            while before - longest.log.bytes() < chunk && longest.log.drop_oldest() {}
            let dropped = before - longest.log.bytes();
            if dropped == 0 {
                return;
            }
            self.stored_bytes -= dropped;
        }
    }
}
