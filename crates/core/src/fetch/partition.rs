//! One partition that is consumed, in two halves: the struct that is fetched with, which exactly one owner has, and the
//! handle that the application's threads see.

use std::{fmt, sync::Arc};

use ottla_protocol::uuid::Uuid;

use crate::{
    stats::PartitionStatistics,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    wake::WakeHandle,
};

/// A partition being fetched. It belongs to the broker that leads it and moves when the leader changes.
#[derive(Debug)]
pub struct PartitionConsumer {
    /// What the application's threads see of it.
    pub handle: Arc<PartitionHandle>,
    /// The handle's version for which this was made; records of an older one go no further.
    pub version: u64,
    /// The offset to fetch next.
    pub offset: i64,
    /// The topic's id; zero if the broker does not know ids.
    pub topic_id: Uuid,
    /// The leader's epoch as known from the metadata; -1 if unknown.
    pub leader_epoch: i32,
    /// The epoch in which the last record before `offset` was written; -1 if unknown.
    pub position_epoch: i32,
    /// The leader's epoch for which it is known that the log still has what was read.
    pub checked_epoch: i32,
    /// How many leaders in a row refused it.
    pub refusals: u32,
    /// Something was answered since it starts here.
    pub answered: bool,
    /// It is asked for by the topic's id, so that the topic can't be another one.
    pub by_id: bool,
    /// The offset at which the end was told last, so that it is told once.
    pub end_told: i64,
}

impl PartitionConsumer {
    /// A partition to be fetched from `offset` on.
    pub const fn new(handle: Arc<PartitionHandle>, version: u64, offset: i64) -> Self {
        Self {
            handle,
            version,
            offset,
            topic_id: Uuid::ZERO,
            leader_epoch: -1,
            position_epoch: -1,
            checked_epoch: -1,
            refusals: 0,
            answered: false,
            by_id: false,
            end_told: -1,
        }
    }

    /// True if the application meanwhile wants it from somewhere else, or not at all.
    pub fn is_stale(&self) -> bool {
        self.handle.version() != self.version
    }
}

/// What the threads share of a partition.
pub struct PartitionHandle {
    topic: Arc<str>,
    partition: i32,
    version: AtomicU64,
    paused: AtomicBool,
    position: AtomicI64,
    low_watermark: AtomicI64,
    high_watermark: AtomicI64,
    /// The last stable offset; -1 where it is not told.
    last_stable: AtomicI64,
    queued_messages: AtomicUsize,
    queued_bytes: AtomicUsize,
    received_messages: AtomicUsize,
    received_bytes: AtomicUsize,
    /// Messages that were out of date before the application saw them.
    dropped_messages: AtomicUsize,
    /// The fetcher waits until no more than half of the limits is queued.
    starved: AtomicBool,
    fetcher: Mutex<Option<WakeHandle>>,
    /// Who takes it from the queue: 0 is everybody.
    route: AtomicU64,
}

/// How much of a partition may be fetched in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchLimits {
    /// `queued.min.messages`.
    pub messages: usize,
    /// `queued.max.messages.kbytes`, in bytes.
    pub bytes: usize,
}

impl PartitionHandle {
    /// A partition that nothing is known of.
    pub fn new(topic: Arc<str>, partition: i32) -> Self {
        Self {
            topic,
            partition,
            version: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            position: AtomicI64::new(-1),
            low_watermark: AtomicI64::new(-1),
            high_watermark: AtomicI64::new(-1),
            last_stable: AtomicI64::new(-1),
            queued_messages: AtomicUsize::new(0),
            queued_bytes: AtomicUsize::new(0),
            received_messages: AtomicUsize::new(0),
            received_bytes: AtomicUsize::new(0),
            dropped_messages: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            fetcher: Mutex::new(None),
            route: AtomicU64::new(0),
        }
    }

    /// The topic.
    pub const fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The partition's number.
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Counts how often the application said where to fetch from.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// True while nothing of it is handed out.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// The offset after the last record that was handed out; before the first one, where it will start.
    pub fn position(&self) -> Option<i64> {
        Some(self.position.load(Ordering::Acquire)).filter(|position| *position >= 0)
    }

    /// The lowest and the highest offset as the last fetch told them.
    pub fn watermarks(&self) -> Option<(i64, i64)> {
        let low = self.low_watermark.load(Ordering::Relaxed);
        let high = self.high_watermark.load(Ordering::Relaxed);
        (high >= 0).then_some((low.max(0), high))
    }

    /// Who takes it from the queue.
    pub(crate) fn route(&self) -> u64 {
        self.route.load(Ordering::Acquire)
    }

    /// Under the queue's lock.
    pub(crate) fn set_route(&self, route: u64) {
        self.route.store(route, Ordering::Release);
    }

    /// Makes the fetcher look at the partition again.
    pub fn wake_fetcher(&self) {
        if let Some(fetcher) = &*self.fetcher.lock() {
            fetcher.wake();
        }
    }

    /// Everything that was fetched up to now is out of date. Under the queue's lock.
    pub(crate) fn bump_version(&self, position: i64) -> u64 {
        self.position.store(position, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Under the queue's lock.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    /// Records up to here were handed out, or it starts here. Under the queue's lock.
    pub(crate) fn set_position(&self, position: i64) {
        self.position.store(position, Ordering::Release);
    }

    pub(crate) fn set_watermarks(&self, low: i64, high: i64, last_stable: i64) {
        if low >= 0 {
            self.low_watermark.store(low, Ordering::Relaxed);
        }
        self.high_watermark.store(high, Ordering::Relaxed);
        self.last_stable.store(last_stable, Ordering::Relaxed);
    }

    /// Names the fetcher that is to be told from now on, or that there is none.
    pub(crate) fn set_fetcher(&self, fetcher: Option<WakeHandle>) {
        *self.fetcher.lock() = fetcher;
    }

    /// Records are queued for the application.
    pub(crate) fn charge(&self, messages: usize, bytes: usize) {
        self.queued_messages.fetch_add(messages, Ordering::AcqRel);
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Records came from the broker.
    pub(crate) fn count_received(&self, messages: usize, bytes: usize) {
        self.received_messages.fetch_add(messages, Ordering::Relaxed);
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Queued records are out of date, and nobody will see them.
    pub(crate) fn count_dropped(&self, messages: usize) {
        self.dropped_messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Adds what is known of the partition to a snapshot.
    pub(crate) fn add_statistics(&self, statistics: &mut PartitionStatistics) {
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
        let position = self.position();
        if let Some(position) = position {
            statistics.app_offset = position;
        }
        if let Some((low, high)) = self.watermarks() {
            let stable = self.last_stable.load(Ordering::Relaxed);
            let stable = if stable >= 0 { stable } else { high };
            (statistics.lo_offset, statistics.hi_offset, statistics.ls_offset) = (low, high, stable);
            if let Some(position) = position {
                statistics.consumer_lag = (high - position).max(0);
            }
        }
    }

    /// Records left the queue; true if the fetcher waits for just that and is to be woken.
    pub(crate) fn release(&self, messages: usize, bytes: usize, limits: &PrefetchLimits) -> bool {
        let messages = self.queued_messages.fetch_sub(messages, Ordering::SeqCst) - messages;
        let bytes = self.queued_bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        messages <= limits.messages / 2
            && bytes <= limits.bytes / 2
            && self.starved.load(Ordering::SeqCst)
            && self.starved.swap(false, Ordering::SeqCst)
    }

    /// True if more may be fetched. If not, the fetcher is woken when half of what is queued is consumed.
    pub(crate) fn has_room(&self, limits: &PrefetchLimits) -> bool {
        if self.starved.load(Ordering::SeqCst) {
            return false;
        }
        if !self.is_full(limits) {
            return true;
        }
        self.starved.store(true, Ordering::SeqCst);
        // The application may have consumed it all between the two lines above. Adding nothing, unlike loading, is seen
        // by the next `release`, and with it that somebody waits.
        let drained = self.queued_messages.fetch_add(0, Ordering::SeqCst) <= limits.messages / 2
            && self.queued_bytes.fetch_add(0, Ordering::SeqCst) <= limits.bytes / 2;
        drained && self.starved.swap(false, Ordering::SeqCst)
    }

    /// Messages and bytes that are queued.
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
        write!(f, "{} [{}] version {}", self.topic, self.partition, self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PrefetchLimits = PrefetchLimits { messages: 100, bytes: 10_000 };

    #[test]
    fn a_full_partition_has_room_again_when_half_is_consumed() {
        let handle = PartitionHandle::new(Arc::from("t"), 0);
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
        let handle = PartitionHandle::new(Arc::from("t"), 0);
        handle.charge(1, 10_000);
        assert!(!handle.has_room(&LIMITS));
        assert!(handle.release(1, 10_000, &LIMITS));
    }
}
