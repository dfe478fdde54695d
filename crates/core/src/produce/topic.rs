//! A topic for the application's threads: the accumulators of its partitions, or the records that wait until the
//! partitions are known.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    task::Waker,
    time::Duration,
};

use bytes::Bytes;

use super::{
    accumulator::Accumulator,
    budget::Budget,
    record::{Record, SendError},
    report::Tracker,
    settings::{LoadChoice, ProducerSettings},
    topic_settings::TopicSettings,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering},
    },
    waiters::{WaitPlace, Waiter, Waiters},
};

/// A topic of the producer.
pub struct ProducerTopic {
    name: Arc<str>,
    settings: TopicSettings,
    /// The number of partitions, or [`UNKNOWN`] before the first metadata.
    partition_count: AtomicI32,
    /// Segment `i` holds the partitions from `2^i - 1` to `2^(i+1) - 2`: partitions are only ever added, so no reader
    /// needs a lock.
    segments: [OnceLock<Box<[Arc<Accumulator>]>>; 24],
    waiting: Mutex<Waiting>,
    /// The current partition for records without a key.
    sticky_partition: AtomicU32,
    /// The latest end of that choice, in nanoseconds.
    sticky_until: AtomicU64,
    /// Partitions without a leader, in order, while others have one: records without a fixed partition avoid them.
    leaderless: Mutex<Vec<i32>>,
    /// The length of `leaderless`; the lock is not taken while it is 0.
    leaderless_count: AtomicU32,
    /// Partitions whose leaders are in other racks, in order, while others have one in the producer's rack: records without a
    /// key avoid them (KIP-1123).
    elsewhere: Mutex<Vec<i32>>,
    /// The length of `elsewhere`; the lock is not taken while it is 0.
    elsewhere_count: AtomicU32,
    /// True if no partition has a leader.
    is_leaderless: AtomicBool,
    /// True while the metadata refresh leaves the topic out, because nothing is sent to it.
    is_idle: AtomicBool,
    /// The topic's own `broker.linger.ms` in nanoseconds, or [`NO_LINGER`].
    linger: AtomicU64,
    /// Random numbers for the partitioner.
    pub(crate) rng: Mutex<Rng>,
    /// The queue's limits.
    budget: Arc<Budget>,
}

/// The partitions are not known yet.
const UNKNOWN: i32 = -1;
/// The topic has no linger of its own.
const NO_LINGER: u64 = u64::MAX;

/// Records that wait for the topic's metadata.
#[derive(Debug, Default)]
struct Waiting {
    records: Vec<WaitingRecord>,
    /// The reason why the topic can't be written to.
    error: Option<Error>,
    /// The waiters for the number of partitions.
    wakers: Waiters,
}

/// A record that waits for its topic's metadata.
#[derive(Debug)]
pub struct WaitingRecord {
    /// When it was sent.
    pub since: Instant,
    /// Its timestamp.
    pub timestamp: i64,
    /// The bytes that it was charged.
    pub payload_bytes: usize,
    /// The tracker of the record, if the application waits for its outcome.
    pub tracker: Option<Arc<Tracker>>,
    partition: Option<i32>,
    key: Option<Box<[u8]>>,
    value: Option<Bytes>,
    headers: Vec<WaitingHeader>,
    opaque: u64,
    is_kept: bool,
}

/// A header's key and value.
type WaitingHeader = (Box<[u8]>, Option<Box<[u8]>>);

/// The client's knowledge of a topic.
#[derive(Debug)]
pub enum TopicState {
    /// Nothing: the record may wait.
    Unknown,
    /// The number of partitions.
    Known(i32),
}

impl ProducerTopic {
    /// Creates a topic without metadata.
    pub fn new(name: Arc<str>, settings: TopicSettings, budget: Arc<Budget>, rng: Rng) -> Self {
        Self {
            name,
            settings,
            partition_count: AtomicI32::new(UNKNOWN),
            segments: [const { OnceLock::new() }; 24],
            waiting: Mutex::default(),
            sticky_partition: AtomicU32::new(u32::MAX),
            sticky_until: AtomicU64::new(0),
            leaderless: Mutex::default(),
            leaderless_count: AtomicU32::new(0),
            elsewhere: Mutex::default(),
            elsewhere_count: AtomicU32::new(0),
            is_leaderless: AtomicBool::new(false),
            is_idle: AtomicBool::new(false),
            linger: AtomicU64::new(NO_LINGER),
            rng: Mutex::new(rng),
            budget,
        }
    }

    /// Returns true while the metadata refresh leaves the topic out.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// Leaves the topic out of the metadata refresh if it `is_healthy` and had no message since `limit`, and includes it
    /// otherwise.
    pub(crate) fn check_idle(&self, limit: Instant, is_healthy: bool) {
        // A sender that gets a message after the check below finds the mark.
        self.is_idle.store(is_healthy, Ordering::Relaxed);
        let is_idle = || self.slots().all(|accumulator| accumulator.is_idle_since(limit));
        if is_healthy && !is_idle() {
            self.is_idle.store(false, Ordering::Relaxed);
        }
    }

    /// Includes the topic in the metadata refresh again. Returns true if it was left out.
    #[inline]
    pub(crate) fn end_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed) && self.is_idle.swap(false, Ordering::Relaxed)
    }

    /// Returns the topic's own linger, if it has one.
    pub fn linger(&self) -> Option<Duration> {
        Some(self.linger.load(Ordering::Relaxed))
            .filter(|nanos| *nanos != NO_LINGER)
            .map(Duration::from_nanos)
    }

    pub(super) fn set_linger(&self, linger: Duration) {
        let nanos = u64::try_from(linger.as_nanos()).unwrap_or(NO_LINGER - 1);
        self.linger.store(nanos, Ordering::Relaxed);
    }

    /// Returns the topic's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the topic's own settings, or else the producer's defaults.
    #[inline]
    pub const fn settings(&self) -> &TopicSettings {
        &self.settings
    }

    /// Returns what is known of the topic.
    #[inline]
    pub fn state(&self) -> TopicState {
        match self.partition_count.load(Ordering::Acquire) {
            UNKNOWN => TopicState::Unknown,
            count => TopicState::Known(count),
        }
    }

    /// Returns the number of partitions, once known.
    pub fn partition_count(&self) -> Option<i32> {
        match self.state() {
            TopicState::Unknown => None,
            TopicState::Known(count) => Some(count),
        }
    }

    /// The current partition of records without a key, and whether they went there before: then they only join the
    /// batch that is open there, unless time alone decides. They move on with that batch, at the latest after `linger`,
    /// and with a `linger` of zero for every record.
    #[inline]
    pub(crate) fn sticky_partition(
        &self,
        count: i32,
        now: Instant,
        settings: &ProducerSettings,
    ) -> (i32, bool) {
        let sticky = self.sticky_partition.load(Ordering::Relaxed);
        if sticky < count as u32 && now.as_nanos() < self.sticky_until.load(Ordering::Relaxed) {
            return (sticky as i32, true);
        }
        (self.next_sticky_partition(count, now, settings), false)
    }

    /// Chooses another partition for records without a key; not the same one if there is a choice.
    pub(crate) fn next_sticky_partition(&self, count: i32, now: Instant, settings: &ProducerSettings) -> i32 {
        let linger = u64::try_from(settings.sticky_linger.as_nanos()).unwrap_or(u64::MAX);
        self.sticky_until.store(now.as_nanos().saturating_add(linger), Ordering::Relaxed);
        let current = self.sticky_partition.load(Ordering::Relaxed);
        if let Some(choice) = settings.load_choice
            && let Some(next) = self.next_by_load(count, current as i32, now, choice)
        {
            self.sticky_partition.store(next as u32, Ordering::Relaxed);
            return next;
        }
        if self.leaderless_count.load(Ordering::Relaxed) + self.elsewhere_count.load(Ordering::Relaxed) > 0
            && let Some(next) = self.next_with_leader(count, current as i32)
        {
            self.sticky_partition.store(next as u32, Ordering::Relaxed);
            return next;
        }
        let count = count.max(1) as u32;
        let mut rng = self.rng.lock();
        let next = if current < count && count > 1 {
            (current + 1 + rng.below(u64::from(count) - 1) as u32) % count
        } else {
            rng.below(u64::from(count)) as u32
        };
        self.sticky_partition.store(next, Ordering::Relaxed);
        next as i32
    }

    /// Returns a partition with a leader by the load of the partitions; not `current` if there is another one. `None` if
    /// none is available.
    #[cold]
    fn next_by_load(&self, count: i32, current: i32, now: Instant, choice: LoadChoice) -> Option<i32> {
        let is_drained = |partition: i32| {
            let (Some(timeout), Some(accumulator)) =
                (choice.availability_timeout, self.accumulator(partition))
            else {
                return true;
            };
            accumulator.remaining().since().is_none_or(|since| now.saturating_since(since) < timeout)
        };
        let may_choose = |partition: &i32| self.is_available(*partition) && is_drained(*partition);
        let mut candidates: Vec<i32> = (0..count).filter(may_choose).collect();
        self.prefer_near(&mut candidates);
        if candidates.len() > 1 {
            candidates.retain(|partition| *partition != current);
        }
        let mut rng = self.rng.lock();
        let mut pick = || candidates.get(rng.below(candidates.len() as u64) as usize).copied();
        let (first, second) = (pick()?, pick()?);
        drop(rng);
        let waiting =
            |partition: i32| self.accumulator(partition).map_or(0, |accumulator| accumulator.queued().1);
        let is_longer = choice.prefers_shorter_queue && waiting(second) < waiting(first);
        Some(if is_longer { second } else { first })
    }

    /// Returns a partition with a leader; not `current` if there is another one.
    #[cold]
    fn next_with_leader(&self, count: i32, current: i32) -> Option<i32> {
        let leaderless = self.leaderless.lock();
        let has_leader = |partition: &i32| leaderless.binary_search(partition).is_err();
        let mut choice: Vec<i32> = (0..count).filter(has_leader).collect();
        drop(leaderless);
        self.prefer_near(&mut choice);
        if choice.len() > 1 {
            choice.retain(|partition| *partition != current);
        }
        let index = self.rng.lock().below(choice.len() as u64) as usize;
        choice.get(index).copied()
    }

    /// Removes the partitions whose leaders are in other racks, unless all are.
    fn prefer_near(&self, partitions: &mut Vec<i32>) {
        if self.elsewhere_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let elsewhere = self.elsewhere.lock();
        let is_near = |partition: &i32| elsewhere.binary_search(partition).is_err();
        if partitions.iter().any(is_near) {
            partitions.retain(is_near);
        }
    }

    /// Sets the partitions whose leaders are in other racks, in order.
    pub(crate) fn set_elsewhere(&self, partitions: Vec<i32>) {
        let mut elsewhere = self.elsewhere.lock();
        if *elsewhere == partitions {
            return;
        }
        let sticky = self.sticky_partition.load(Ordering::Relaxed);
        if partitions.contains(&(sticky as i32)) {
            self.sticky_until.store(0, Ordering::Relaxed);
        }
        self.elsewhere_count.store(partitions.len() as u32, Ordering::Relaxed);
        *elsewhere = partitions;
    }

    /// Sets the partitions without a leader, in order. If all lack one, none is avoided.
    pub(crate) fn set_leaderless(&self, mut partitions: Vec<i32>, count: i32) {
        let is_leaderless = partitions.len() >= count.max(0) as usize;
        self.is_leaderless.store(is_leaderless, Ordering::Relaxed);
        if is_leaderless {
            partitions.clear();
        }
        let mut leaderless = self.leaderless.lock();
        if *leaderless == partitions {
            return;
        }
        let sticky = self.sticky_partition.load(Ordering::Relaxed);
        if partitions.contains(&(sticky as i32)) {
            // The next record chooses again. Records that wait in the old partition stay there.
            self.sticky_until.store(0, Ordering::Relaxed);
        }
        self.leaderless_count.store(partitions.len() as u32, Ordering::Relaxed);
        *leaderless = partitions;
    }

    /// Returns whether the partition exists and has a known leader.
    pub fn has_leader(&self, partition: i32) -> bool {
        let exists = self.partition_count().is_some_and(|count| (0..count).contains(&partition));
        exists && !self.is_leaderless.load(Ordering::Relaxed) && self.is_available(partition)
    }

    /// Returns false if the partition has no leader while others have one.
    pub(crate) fn is_available(&self, partition: i32) -> bool {
        self.leaderless_count.load(Ordering::Relaxed) == 0
            || self.leaderless.lock().binary_search(&partition).is_err()
    }

    /// Returns a partition's accumulator.
    #[inline]
    pub fn accumulator(&self, partition: i32) -> Option<&Arc<Accumulator>> {
        let count = self.partition_count.load(Ordering::Acquire);
        if partition < 0 || partition >= count {
            return None;
        }
        self.slot(partition)
    }

    /// Keeps a record until the partitions are known. Returns false if they are known by now, and an error if the topic has
    /// one, or the producer, according to `check`.
    pub(crate) fn wait(
        &self,
        check: impl FnOnce() -> Result<(), SendError>,
        record: impl FnOnce() -> WaitingRecord,
    ) -> Result<bool, SendError> {
        let mut waiting = self.waiting.lock();
        if let Some(error) = &waiting.error {
            let error = error.clone();
            return Err(match error.kind() {
                ErrorKind::Closed => SendError::Closed,
                _ => SendError::Topic(error),
            });
        }
        // A transaction may have ended since the caller's check.
        check()?;
        if !matches!(self.state(), TopicState::Unknown) {
            return Ok(false);
        }
        waiting.records.push(record());
        Ok(true)
    }

    /// The partitions became known, or more were added: makes accumulators for the new ones and hands them out. The
    /// records that waited come back through `with_waiting`, which appends them by `slot` before any
    /// thread can append behind them.
    pub fn set_partitions(
        &self,
        count: i32,
        mut with_new: impl FnMut(&Arc<Accumulator>),
        with_waiting: impl FnOnce(Vec<WaitingRecord>),
    ) {
        let mut waiting = self.waiting.lock();
        waiting.error = None;
        let known = self.partition_count.load(Ordering::Acquire).max(0);
        for segment in 0..self.segments.len() {
            let first = (1 << segment) - 1;
            if first >= count {
                break;
            }
            self.segments[segment].get_or_init(|| {
                let partitions = first..first + (1 << segment);
                partitions
                    .map(|partition| {
                        let (name, budget) = (Arc::clone(&self.name), Arc::clone(&self.budget));
                        Arc::new(Accumulator::new(name, partition, budget))
                    })
                    .collect()
            });
        }
        for partition in known..count {
            if let Some(accumulator) = self.slot(partition) {
                with_new(accumulator);
            }
        }
        with_waiting(std::mem::take(&mut waiting.records));
        self.partition_count.store(count.max(known), Ordering::Release);
        let wakers = std::mem::take(&mut waiting.wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Handles a topic that was recreated with fewer partitions: the others are not chosen any more. Their accumulators
    /// stay, because partitions may be added again.
    pub(crate) fn shrink(&self, count: i32) {
        let _waiting = self.waiting.lock();
        self.partition_count.store(count, Ordering::Release);
    }

    /// Sets the error of a topic that can't be written to. Returns the records that waited.
    pub fn set_error(&self, error: Option<Error>) -> Vec<WaitingRecord> {
        let mut waiting = self.waiting.lock();
        let failed = if error.is_some() { std::mem::take(&mut waiting.records) } else { Vec::new() };
        waiting.error = error;
        let wakers = std::mem::take(&mut waiting.wakers);
        wakers.into_iter().for_each(Waker::wake);
        failed
    }

    /// Rejects records until the topic's partitions are known again, because the cluster rejects the topic. Returns the
    /// records that waited; records in the accumulators stay there.
    pub(crate) fn refuse(&self, error: Error) -> Vec<WaitingRecord> {
        let mut waiting = self.waiting.lock();
        self.partition_count.store(UNKNOWN, Ordering::Release);
        waiting.error = Some(error);
        let wakers = std::mem::take(&mut waiting.wakers);
        wakers.into_iter().for_each(Waker::wake);
        std::mem::take(&mut waiting.records)
    }

    /// Returns why the topic can't be written to.
    pub fn error(&self) -> Option<Error> {
        self.waiting.lock().error.clone()
    }

    /// Registers to be woken when the partitions are known or the topic has an error. Check again after this call.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) {
        waiter.register(self, waker);
    }

    /// Takes the waiting records that were sent before `limit`.
    pub fn expire_waiting(&self, limit: Instant) -> Vec<WaitingRecord> {
        let mut waiting = self.waiting.lock();
        let fresh = waiting.records.partition_point(|record| record.since < limit);
        waiting.records.drain(..fresh).collect()
    }

    /// Returns when the oldest record started to wait.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.waiting.lock().records.first().map(|record| record.since)
    }

    /// Returns the accumulators of all partitions that are or were known.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Arc<Accumulator>> {
        (0..).map_while(|partition| self.slot(partition))
    }

    /// Returns a partition's accumulator, even while the partitions are being published.
    pub(crate) fn slot(&self, partition: i32) -> Option<&Arc<Accumulator>> {
        if partition < 0 {
            return None;
        }
        let number = partition as u32 + 1;
        let segment = 31 - number.leading_zeros();
        self.segments.get(segment as usize)?.get()?.get((number - (1 << segment)) as usize)
    }
}

impl WaitPlace for ProducerTopic {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.waiting.lock().wakers)
    }
}

impl WaitingRecord {
    /// Copies a record.
    pub(crate) fn new(
        record: &Record<'_>,
        since: Instant,
        timestamp: i64,
        payload_bytes: usize,
        tracker: Option<Arc<Tracker>>,
    ) -> Self {
        Self {
            since,
            timestamp,
            payload_bytes,
            tracker,
            partition: record.partition,
            key: record.key.map(Box::from),
            value: record.shared.cloned().or_else(|| record.value.map(Bytes::copy_from_slice)),
            headers: record.headers.iter().map(|h| (Box::from(h.key), h.value.map(Box::from))).collect(),
            opaque: record.opaque,
            is_kept: record.is_kept,
        }
    }

    /// Returns the record as a borrowed one.
    pub(crate) fn record(&self) -> Record<'_> {
        Record {
            partition: self.partition,
            timestamp: Some(self.timestamp),
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            shared: self.value.as_ref(),
            headers: self
                .headers
                .iter()
                .map(|(key, value)| ottla_protocol::batch::HeaderRef { key, value: value.as_deref() })
                .collect(),
            opaque: self.opaque,
            is_kept: self.is_kept,
        }
    }
}

impl fmt::Debug for ProducerTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerTopic")
            .field("name", &self.name)
            .field("partitions", &self.partition_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> ProducerTopic {
        let settings = TopicSettings::default();
        ProducerTopic::new(Arc::from("t"), settings, Arc::new(Budget::new(0, 1000)), Rng::from_seed(1))
    }

    #[test]
    fn partitions_are_added_without_moving_the_old_ones() {
        let topic = topic();
        assert!(topic.accumulator(0).is_none());
        let mut made = Vec::new();
        topic.set_partitions(5, |accumulator| made.push(accumulator.partition()), |_| ());
        assert_eq!(made, [0, 1, 2, 3, 4]);
        let third = Arc::clone(topic.accumulator(3).unwrap());
        topic.set_partitions(100, |accumulator| made.push(accumulator.partition()), |_| ());
        assert_eq!(made, (0..100).collect::<Vec<_>>());
        assert!(Arc::ptr_eq(&third, topic.accumulator(3).unwrap()));
        assert!((0..100).all(|p| topic.accumulator(p).unwrap().partition() == p));
        assert!(topic.accumulator(100).is_none() && topic.accumulator(-1).is_none());
    }

    #[test]
    fn records_that_may_go_anywhere_avoid_partitions_without_a_leader() {
        let topic = topic();
        let settings =
            ProducerSettings { sticky_linger: Duration::from_millis(10), ..ProducerSettings::default() };
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let sticky = topic.sticky_partition(4, at(1), &settings).0;
        topic.set_leaderless(vec![sticky], 4);
        assert_ne!(topic.sticky_partition(4, at(2), &settings).0, sticky, "at once, not after the linger");
        topic.set_leaderless(vec![0, 3], 4);
        let mut hits = [0; 4];
        for n in 0..100 {
            hits[topic.sticky_partition(4, at(100 + n * 20), &settings).0 as usize] += 1;
        }
        assert_eq!(hits, [0, 50, 50, 0], "in turn, as there are two to choose from");
        assert!(topic.is_available(1) && !topic.is_available(3));
        topic.set_leaderless(vec![0, 1, 2, 3], 4);
        assert!(topic.is_available(3), "no leader anywhere: all are as good");
        topic.set_leaderless(vec![0, 1, 2], 4);
        let only = |n: u64| topic.sticky_partition(4, at(9000 + n * 20), &settings).0;
        assert!((0..10).all(|n| only(n) == 3));
    }

    #[test]
    fn records_without_a_key_prefer_leaders_in_the_rack() {
        let topic = topic();
        let settings = ProducerSettings { sticky_linger: Duration::ZERO, ..ProducerSettings::default() };
        let by_load = LoadChoice { prefers_shorter_queue: true, availability_timeout: None };
        let by_load = ProducerSettings { load_choice: Some(by_load), ..settings.clone() };
        let passed = std::cell::Cell::new(0);
        let hits = |settings: &ProducerSettings| {
            let mut hits = [0; 4];
            (0..100).for_each(|_| {
                passed.set(passed.get() + 1);
                let now = Instant::from_nanos(passed.get());
                hits[topic.sticky_partition(4, now, settings).0 as usize] += 1;
            });
            hits
        };
        topic.set_elsewhere(vec![0, 3]);
        for settings in [&settings, &by_load] {
            let hits = hits(settings);
            assert_eq!((hits[0], hits[3]), (0, 0), "{hits:?}");
            assert!(hits[1] > 40 && hits[2] > 40, "{hits:?}");
        }
        topic.set_leaderless(vec![1, 2], 4);
        let far = hits(&settings);
        assert_eq!((far[1], far[2]), (0, 0), "only leaders in other racks are left: {far:?}");
        topic.set_leaderless(Vec::new(), 4);
        topic.set_elsewhere(Vec::new());
        assert!(hits(&settings).iter().all(|hits| *hits > 10), "without the property");
    }

    #[test]
    fn only_a_partition_that_exists_and_that_somebody_leads_has_a_leader() {
        let topic = topic();
        assert!(!topic.has_leader(0), "nothing is known yet");
        topic.set_partitions(4, |_| (), |_| ());
        topic.set_leaderless(vec![3], 4);
        assert!(topic.has_leader(1) && !topic.has_leader(3) && !topic.has_leader(4) && !topic.has_leader(-1));
        topic.set_leaderless(vec![0, 1, 2, 3], 4);
        assert!(!topic.has_leader(1));
        topic.set_leaderless(Vec::new(), 4);
        assert!(topic.has_leader(3));
    }

    #[test]
    fn a_record_waits_only_while_the_partitions_are_unknown() {
        let topic = topic();
        let waiting = || WaitingRecord::new(&Record::new().value("v"), Instant::ZERO, 0, 1, None);
        assert_eq!(topic.wait(|| Ok(()), waiting), Ok(true));
        let mut came = 0;
        topic.set_partitions(1, |_| (), |records| came = records.len());
        assert_eq!(came, 1);
        assert_eq!(topic.wait(|| Ok(()), waiting), Ok(false));
    }
}
