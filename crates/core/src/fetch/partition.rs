//! One consumed partition, in two halves: the struct to fetch with, which exactly one actor has, and the handle that
//! the application's threads share.

use std::{fmt, sync::Arc};

use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};

use super::assignment::AssignmentVersion;
use crate::{
    config::IsolationLevel,
    stats::{PartitionStatistics, Statistics},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    wake::WakeHandle,
};

/// A partition being fetched. The broker actor of its leader has it; it moves when the leader changes.
#[derive(Debug)]
pub struct PartitionConsumer {
    /// The half that the application's threads see.
    pub handle: Arc<PartitionHandle>,
    /// The assignment that it is fetched for; records of an older one are dropped.
    pub version: AssignmentVersion,
    /// The offset to fetch next.
    pub offset: i64,
    /// The topic's ID; zero if the broker does not support IDs.
    pub topic_id: Uuid,
    /// The leader's epoch as known from the metadata.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The epoch in which the last record before `offset` was written.
    pub position_epoch: Option<LeaderEpoch>,
    /// The newest leader epoch in which the log had the records up to `offset`.
    pub checked_epoch: Option<LeaderEpoch>,
    /// The number of consecutive leaders that refused the partition.
    pub refusals: u32,
    /// True if a broker responded without an error since this struct was created.
    pub was_fetched: bool,
    /// True if it is fetched by the topic's ID, so that responses cannot be about a recreated topic.
    pub by_id: bool,
    /// The offset of the last end of the partition that was reached: each is reported once.
    pub reported_end: Option<i64>,
    /// The offset of a record that could not be read: the batch that has it is read to its end before it is delivered.
    pub suspect: Option<i64>,
}

impl PartitionConsumer {
    /// Creates a partition that is fetched from `offset` on.
    pub const fn new(handle: Arc<PartitionHandle>, version: AssignmentVersion, offset: i64) -> Self {
        Self {
            handle,
            version,
            offset,
            topic_id: Uuid::ZERO,
            leader_epoch: None,
            position_epoch: None,
            checked_epoch: None,
            refusals: 0,
            was_fetched: false,
            by_id: false,
            reported_end: None,
            suspect: None,
        }
    }

    /// True if the assignment was replaced or ended meanwhile.
    pub fn is_stale(&self) -> bool {
        !self.handle.version().is_same_assignment(self.version)
    }

    /// Goes back to a record that could not be read when the application reached it, or that was dropped while the partition
    /// was paused. Returns true if there is one.
    pub(crate) fn restart(&mut self) -> bool {
        let (version, offset) = self.handle.restart();
        let is_due = version != self.version && version.is_same_assignment(self.version);
        if is_due {
            self.suspect = self.handle.stopped_at(self.version);
            (self.version, self.offset, self.position_epoch) = (version, offset, None);
        }
        is_due
    }
}

/// The half of a consumed partition that threads share.
pub struct PartitionHandle {
    key: TopicPartition,
    version: AtomicU64,
    /// The offset at which this version of the assignment restarted.
    restarted_at: AtomicI64,
    /// The version before it, which ended at a damaged record; 0 if none did.
    stopped: AtomicU64,
    /// [`PAUSED`] and [`HELD`].
    pauses: AtomicU8,
    /// The application resumed the partition, so that its end is reported again.
    is_resumed: AtomicBool,
    /// The offset that the application stored since the assignment began; it is committed instead of the position.
    stored: Mutex<Option<StoredOffset>>,
    position: AtomicI64,
    /// The offset that the assignment or the last seek started from; -1 while it is unknown.
    start: AtomicI64,
    /// The leader epoch of the last record that was handed out; -1 if unknown.
    position_epoch: AtomicI32,
    low_watermark: AtomicI64,
    high_watermark: AtomicI64,
    /// The last stable offset; -1 if unknown.
    last_stable: AtomicI64,
    /// The group's committed offset, as the coordinator reported it last; -1 if unknown.
    committed: AtomicI64,
    /// The leader epoch that was committed with it; -1 if unknown.
    committed_epoch: AtomicI32,
    queued_messages: AtomicUsize,
    queued_bytes: AtomicUsize,
    received_messages: AtomicUsize,
    received_bytes: AtomicUsize,
    /// The number of messages that became stale before the application took them.
    dropped_messages: AtomicUsize,
    /// True while the fetcher waits until at most half of the limits is queued.
    starved: AtomicBool,
    fetcher: Mutex<Option<WakeHandle>>,
    /// The route on which the partition is delivered; 0 is the common one.
    route: AtomicU64,
    /// The version of the assignment since which the topic exists: earlier ones are about a topic that was deleted.
    topic_since: AtomicU64,
    /// The ID of the topic that is consumed, if it is known. Changed under the lock of the consumer's partitions.
    topic_id: Mutex<Option<Uuid>>,
}

/// The application paused the partition.
const PAUSED: u8 = 1;
/// The partition waits for the end of a rebalance.
const HELD: u8 = 2;

/// An offset that the application stored, to be committed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOffset {
    /// The offset of the next record to process.
    pub offset: i64,
    /// The leader epoch of the record before `offset`.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The application's metadata string.
    pub metadata: String,
}

/// The limits for prefetching a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchLimits {
    /// `queued.min.messages`.
    pub messages: usize,
    /// `queued.max.messages.kbytes`, in bytes.
    pub bytes: usize,
}

impl PartitionHandle {
    /// Creates a handle without an assignment.
    pub fn new(key: TopicPartition) -> Self {
        Self {
            key,
            version: AtomicU64::new(0),
            restarted_at: AtomicI64::new(-1),
            stopped: AtomicU64::new(0),
            pauses: AtomicU8::new(0),
            is_resumed: AtomicBool::new(false),
            stored: Mutex::new(None),
            position: AtomicI64::new(-1),
            start: AtomicI64::new(-1),
            position_epoch: AtomicI32::new(-1),
            low_watermark: AtomicI64::new(-1),
            high_watermark: AtomicI64::new(-1),
            last_stable: AtomicI64::new(-1),
            committed: AtomicI64::new(-1),
            committed_epoch: AtomicI32::new(-1),
            queued_messages: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            received_messages: AtomicUsize::new(0),
            received_bytes: AtomicUsize::new(0),
            dropped_messages: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            fetcher: Mutex::new(None),
            route: AtomicU64::new(0),
            topic_since: AtomicU64::new(0),
            topic_id: Mutex::new(None),
        }
    }

    /// The topic and the number.
    pub const fn key(&self) -> &TopicPartition {
        &self.key
    }

    /// The topic.
    pub const fn topic(&self) -> &Arc<str> {
        &self.key.topic
    }

    /// The partition's number.
    pub const fn partition(&self) -> i32 {
        self.key.partition
    }

    /// The version of the current assignment.
    #[inline]
    pub fn version(&self) -> AssignmentVersion {
        AssignmentVersion::from_bits(self.version.load(Ordering::Acquire))
    }

    /// Returns the current version, and the offset from which it goes on after a damaged record or dropped ones.
    fn restart(&self) -> (AssignmentVersion, i64) {
        let version = self.version();
        (version, self.restarted_at.load(Ordering::Acquire))
    }

    /// Returns the offset of the damaged record at which this version ended.
    pub(crate) fn stopped_at(&self, version: AssignmentVersion) -> Option<i64> {
        let is_stopped = self.stopped.load(Ordering::Acquire) == version.bits() && version != self.version();
        is_stopped.then(|| self.restarted_at.load(Ordering::Acquire))
    }

    /// Returns true while the application has paused the partition, or a rebalance holds it.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Acquire) != 0
    }

    /// The offset after the last record that was handed out; before the first one, the offset to start from.
    pub fn position(&self) -> Option<i64> {
        Some(self.position.load(Ordering::Acquire)).filter(|position| *position >= 0)
    }

    /// The leader epoch of the last record that was handed out; `None` before the first one, and where records have none.
    pub fn position_epoch(&self) -> Option<i32> {
        Some(self.position_epoch.load(Ordering::Acquire)).filter(|epoch| *epoch >= 0)
    }

    /// Returns the offset after the last record that was handed out since the start of the assignment or the last seek,
    /// with the leader epoch of that record.
    pub(crate) fn consumed(&self) -> Option<(i64, Option<LeaderEpoch>)> {
        let start = self.start.load(Ordering::Acquire);
        let position = self.position.load(Ordering::Acquire);
        let epoch = LeaderEpoch::from_wire(self.position_epoch.load(Ordering::Acquire));
        (start >= 0 && position > start).then_some((position, epoch))
    }

    /// Returns how far the position is behind the start: about the number of records that were handed out since the start of
    /// the assignment or the last seek.
    pub(crate) fn distance(&self) -> i64 {
        let start = self.start.load(Ordering::Acquire);
        self.consumed().map_or(0, |(position, _)| position - start)
    }

    /// Returns the offset that the group's coordinator reported last as committed, or accepted.
    pub(crate) fn committed(&self) -> Option<i64> {
        Some(self.committed.load(Ordering::Relaxed)).filter(|offset| *offset >= 0)
    }

    /// Stores the offset that the group's coordinator reported as committed, or accepted.
    pub(crate) fn set_committed(&self, offset: i64, leader_epoch: Option<LeaderEpoch>) {
        self.committed_epoch.store(LeaderEpoch::to_wire(leader_epoch), Ordering::Relaxed);
        self.committed.store(offset, Ordering::Relaxed);
    }

    /// The low and the high watermark of the last Fetch response.
    pub fn watermarks(&self) -> Option<(i64, i64)> {
        let low = self.low_watermark.load(Ordering::Relaxed);
        let high = self.high_watermark.load(Ordering::Relaxed);
        (high >= 0).then_some((low.max(0), high))
    }

    /// Returns the route on which the partition is delivered.
    pub fn route(&self) -> u64 {
        self.route.load(Ordering::Acquire)
    }

    /// The topic was recreated: versions before this one are about the old topic.
    pub(crate) fn begin_topic(&self, version: AssignmentVersion) {
        self.topic_since.fetch_max(version.bits(), Ordering::AcqRel);
    }

    /// Returns the ID of the topic that is consumed, if it is known.
    pub(crate) fn topic_id(&self) -> Option<Uuid> {
        *self.topic_id.lock()
    }

    /// Sets the ID of the topic that is consumed, if it is known. Returns the former one. Called under the lock of the
    /// consumer's partitions.
    pub(super) fn set_topic_id(&self, id: Option<Uuid>) -> Option<Uuid> {
        std::mem::replace(&mut *self.topic_id.lock(), id)
    }

    /// Returns false if the topic was recreated since this version.
    pub(crate) fn is_of_current_topic(&self, version: AssignmentVersion) -> bool {
        version >= AssignmentVersion::from_bits(self.topic_since.load(Ordering::Acquire))
    }

    /// Changes the route. Called under the queue's lock.
    pub(crate) fn set_route(&self, route: u64) {
        self.route.store(route, Ordering::Release);
    }

    /// Wakes the fetcher, so that it checks again whether to fetch.
    pub fn wake_fetcher(&self) {
        if let Some(fetcher) = &*self.fetcher.lock() {
            fetcher.wake();
        }
    }

    /// Ends the current assignment, so that all records fetched for it are stale, and begins the next one. Called under
    /// the queue's lock.
    pub(crate) fn bump_version(&self, position: Option<i64>) -> AssignmentVersion {
        let position = position.unwrap_or(-1);
        self.position_epoch.store(-1, Ordering::Release);
        self.position.store(position, Ordering::Release);
        self.start.store(position, Ordering::Release);
        let version = self.version().next_assignment();
        self.version.store(version.bits(), Ordering::Release);
        version
    }

    /// Goes on with another version from a record that can't be read. What was handed out before it still counts as
    /// consumed. Called under the queue's lock.
    pub(crate) fn stop_at(&self, offset: i64) {
        let stopped = self.version();
        self.restarted_at.store(offset, Ordering::Release);
        self.stopped.store(stopped.bits(), Ordering::Release);
        self.position_epoch.store(-1, Ordering::Release);
        self.position.store(offset, Ordering::Release);
        self.version.store(stopped.next_restart().bits(), Ordering::Release);
    }

    /// Goes on with another version from an offset whose record was fetched, but not handed out. Called under the queue's lock.
    pub(super) fn restart_at(&self, offset: i64) {
        self.restarted_at.store(offset, Ordering::Release);
        self.stopped.store(0, Ordering::Release);
        self.version.store(self.version().next_restart().bits(), Ordering::Release);
    }

    /// Pauses or resumes the partition. Called under the queue's lock.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.set_pause(PAUSED, paused);
    }

    /// Returns true while the application has paused the partition.
    pub(super) fn is_paused_by_application(&self) -> bool {
        self.pauses.load(Ordering::Acquire) & PAUSED != 0
    }

    /// Has the end of the partition reported again. Called under the queue's lock.
    pub(super) fn note_resumed(&self) {
        self.is_resumed.store(true, Ordering::Release);
    }

    /// Returns true once after the application resumed the partition.
    pub(super) fn take_resumed(&self) -> bool {
        self.is_resumed.load(Ordering::Relaxed) && self.is_resumed.swap(false, Ordering::AcqRel)
    }

    /// Holds the partition during a rebalance, or releases it, whether or not the application paused it. Called under the
    /// queue's lock.
    pub(crate) fn set_held(&self, held: bool) {
        self.set_pause(HELD, held);
    }

    fn set_pause(&self, bit: u8, is_set: bool) {
        if is_set {
            self.pauses.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.pauses.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Stores an offset to be committed instead of the position; `None` forgets it.
    pub(crate) fn set_stored(&self, stored: Option<StoredOffset>) {
        *self.stored.lock() = stored;
    }

    /// Returns the offset that the application stored since the assignment began.
    pub fn stored(&self) -> Option<StoredOffset> {
        self.stored.lock().clone()
    }

    /// Stores the position after records were handed out, or the position from which the partition starts.
    /// `leader_epoch` is the epoch of the last record; -1 if unknown, as in a batch's header. Called under the queue's
    /// lock.
    #[inline]
    pub(crate) fn set_position(&self, position: i64, leader_epoch: i32) {
        self.position_epoch.store(leader_epoch, Ordering::Release);
        self.position.store(position, Ordering::Release);
    }

    /// Returns the offset that the assignment or the last seek started from, if it is known.
    pub(crate) fn start(&self) -> Option<i64> {
        Some(self.start.load(Ordering::Acquire)).filter(|start| *start >= 0)
    }

    /// Lets what was handed out since `start` count as consumed. Called under the queue's lock.
    pub(crate) fn keep_start(&self, start: i64) {
        self.start.store(start, Ordering::Release);
    }

    /// Stores the offset to start from, unless it is known. Called under the queue's lock.
    pub(crate) fn start_at(&self, offset: i64) {
        if self.position() == Some(offset) && self.start().is_some() {
            return;
        }
        self.set_position(offset, -1);
        self.start.store(offset, Ordering::Release);
    }

    pub(crate) fn set_watermarks(&self, low: i64, high: i64, last_stable: i64) {
        if low >= 0 {
            self.low_watermark.store(low, Ordering::Relaxed);
        }
        self.high_watermark.store(high, Ordering::Relaxed);
        self.last_stable.store(last_stable, Ordering::Relaxed);
    }

    /// Sets the fetcher to wake from now on, if there is one.
    pub(crate) fn set_fetcher(&self, fetcher: Option<WakeHandle>) {
        *self.fetcher.lock() = fetcher;
    }

    /// Counts records that are queued for the application.
    pub(crate) fn charge(&self, messages: usize, bytes: usize) {
        self.queued_messages.fetch_add(messages, Ordering::AcqRel);
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Counts records that came from the broker.
    pub(crate) fn count_received(&self, messages: usize, bytes: usize) {
        self.received_messages.fetch_add(messages, Ordering::Relaxed);
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts queued records that are stale and dropped.
    pub(crate) fn count_dropped(&self, messages: usize) {
        self.dropped_messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Adds the fetched messages and bytes to the sums of a snapshot.
    pub(crate) fn add_received(&self, statistics: &mut Statistics) {
        statistics.rxmsgs += self.received_messages.load(Ordering::Relaxed) as i64;
        statistics.rxmsg_bytes += self.received_bytes.load(Ordering::Relaxed) as i64;
    }

    /// Returns the number of messages after the last one that the application received; -1 if unknown.
    pub(crate) fn application_lag(&self, isolation_level: IsolationLevel) -> i64 {
        let mut known = PartitionStatistics::default();
        self.add_statistics(&mut known, isolation_level);
        known.lag_behind_end(known.app_offset)
    }

    /// Adds the partition's statistics to a snapshot.
    pub(crate) fn add_statistics(
        &self,
        statistics: &mut PartitionStatistics,
        isolation_level: IsolationLevel,
    ) {
        statistics.desired = true;
        statistics.fetchq_cnt = self.queued_messages.load(Ordering::Relaxed) as i64;
        statistics.fetchq_size = self.queued_bytes.load(Ordering::Relaxed) as i64;
        if self.is_paused() {
            statistics.fetch_state = "paused";
        }
        statistics.rxmsgs = self.received_messages.load(Ordering::Relaxed) as i64;
        statistics.rxbytes = self.received_bytes.load(Ordering::Relaxed) as i64;
        statistics.msgs = statistics.rxmsgs;
        statistics.rx_ver_drops = self.dropped_messages.load(Ordering::Relaxed) as i64;
        if let Some((position, _)) = self.consumed() {
            statistics.app_offset = position;
        }
        let committed = self.committed.load(Ordering::Relaxed);
        if committed >= 0 {
            statistics.committed_offset = committed;
            statistics.committed_leader_epoch = i64::from(self.committed_epoch.load(Ordering::Relaxed));
        }
        if let Some((low, high)) = self.watermarks() {
            let stable = self.last_stable.load(Ordering::Relaxed);
            let stable = if stable >= 0 { stable } else { high };
            (statistics.lo_offset, statistics.hi_offset, statistics.ls_offset) = (low, high, stable);
            statistics.end_offset = match isolation_level {
                IsolationLevel::ReadCommitted => stable,
                IsolationLevel::ReadUncommitted => high,
            };
            statistics.consumer_lag = statistics.lag_behind_end(statistics.committed_offset);
        }
    }

    /// Subtracts records that left the queue. Returns true if the fetcher waits for that and has to be woken.
    pub(crate) fn release(&self, messages: usize, bytes: usize, limits: &PrefetchLimits) -> bool {
        let messages = self.queued_messages.fetch_sub(messages, Ordering::SeqCst) - messages;
        let bytes = self.queued_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        messages <= limits.messages / 2
            && bytes <= limits.bytes / 2
            && self.starved.load(Ordering::SeqCst)
            && self.starved.swap(false, Ordering::SeqCst)
    }

    /// Returns true if more may be fetched. If not, the fetcher is woken when half of the queued records are consumed.
    pub(crate) fn has_room(&self, limits: &PrefetchLimits) -> bool {
        if self.starved.load(Ordering::SeqCst) {
            return false;
        }
        if !self.is_full(limits) {
            return true;
        }
        self.starved.store(true, Ordering::SeqCst);
        // The application may have consumed all records between the two lines above. Adding 0, unlike loading, is
        // ordered before the next `release`, which then sees `starved`.
        let drained = self.queued_messages.fetch_add(0, Ordering::SeqCst) <= limits.messages / 2
            && self.queued_bytes.fetch_add(0, Ordering::SeqCst) <= limits.bytes / 2;
        drained && self.starved.swap(false, Ordering::SeqCst)
    }

    /// Returns the numbers of messages and bytes that are queued.
    #[cfg(all(test, ottla_loom))]
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.queued_messages.load(Ordering::SeqCst), self.queued_bytes.load(Ordering::SeqCst))
    }

    fn is_full(&self, limits: &PrefetchLimits) -> bool {
        self.queued_messages.load(Ordering::SeqCst) >= limits.messages.max(1)
            || self.queued_bytes.load(Ordering::SeqCst) >= limits.bytes.max(1)
    }
}

impl fmt::Debug for PartitionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", self.key, self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PrefetchLimits = PrefetchLimits { messages: 100, bytes: 10_000 };

    #[test]
    fn full_partition_has_room_again_when_half_is_consumed() {
        let handle = PartitionHandle::new(TopicPartition::new("t", 0));
        handle.charge(99, 50);
        assert!(handle.has_room(&LIMITS));
        handle.charge(1, 50);
        assert!(!handle.has_room(&LIMITS));
        assert!(!handle.release(49, 0, &LIMITS), "51 are left");
        assert!(!handle.has_room(&LIMITS));
        assert!(handle.release(1, 0, &LIMITS), "the fetcher is woken once");
        assert!(!handle.release(1, 0, &LIMITS));
        assert!(handle.has_room(&LIMITS));
    }

    #[test]
    fn bytes_fill_a_partition_as_messages_do() {
        let handle = PartitionHandle::new(TopicPartition::new("t", 0));
        handle.charge(1, 10_000);
        assert!(!handle.has_room(&LIMITS));
        assert!(handle.release(1, 10_000, &LIMITS));
    }
}
