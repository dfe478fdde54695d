//! The queue of records per partition, which application threads append to: one of the three structures that threads
//! share.
//!
//! ```text
//!  any thread ── append ──► open batch ── full ──► full batches ── take ──► the broker that leads the partition
//! ```
//!
//! It is keyed by partition, never by broker: a leader change only swaps the [`ReadyList`] that gets notifications.
//! Under one short lock a record is encoded directly into the open batch; its room in the queue comes from a lease of
//! the partition.

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::batch::{ChunkPool, RecordBatchBuilder};

use super::{
    budget::{Budget, Lease},
    pending_reports::PendingReports,
    ready::{Ready, ReadyList},
    record::Record,
    report::{Tags, Tracker},
    short_lock::{ShortGuard, ShortLock},
};
use crate::{
    machine::Instant,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// The records of one partition that no broker has taken yet.
#[derive(Debug)]
pub struct Accumulator {
    topic: Arc<str>,
    partition: i32,
    budget: Arc<Budget>,
    state: ShortLock<State>,
    /// The number of sealed batches with pending reports.
    unreported: AtomicU32,
    /// Pending reports that actors dropped in a panic.
    lost: Mutex<Vec<PendingReports>>,
}

/// The limits at which a batch is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// `batch.size`: bytes of a batch.
    pub max_bytes: usize,
    /// `batch.num.messages`: records of a batch.
    pub max_records: usize,
    /// The maximum time for which a batch collects, in nanoseconds, so that its records time out close to their own time.
    pub max_age_nanos: u64,
    /// True if the batch will not be compressed: each record is added to the checksum as it arrives.
    pub sums_early: bool,
}

/// A batch that still accepts records.
#[derive(Debug)]
pub struct OpenBatch {
    /// The encoded records.
    pub builder: RecordBatchBuilder,
    /// The data of each record for its delivery report.
    pub tags: Tags,
    /// The waiters for single records of the batch.
    pub tracker: Option<Arc<Tracker>>,
    /// When its first record was appended.
    pub since: Instant,
    /// The bytes that its records were charged in the budget.
    pub charged_bytes: u64,
    /// When each record was appended, if the records were reordered; otherwise empty.
    pub ages: Vec<Instant>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The record is in a batch.
    Yes,
    /// There was no open batch to join, and the caller did not want a new one: nothing was appended.
    NothingToJoin,
}

/// The reason why a record was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The accumulator is sealed: the topic is gone or the client is closed.
    Sealed,
    /// The queue has no room.
    NoRoom,
}

/// How a record's room in the queue is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// It is charged to the budget now.
    Now,
    /// It was charged before.
    Paid,
}

#[derive(Debug)]
struct State {
    open: Option<OpenBatch>,
    full: VecDeque<OpenBatch>,
    broker: Option<BrokerSlot>,
    /// True if the broker actor was notified.
    announced: bool,
    sealed: bool,
    /// Room in the queue for the next records of the open batch.
    lease: Lease,
    /// Lengths of the last batch, to reserve the next one's side entries in one allocation.
    last_len: usize,
    /// When the newest batch was started.
    newest: Instant,
}

/// The broker that leads the partition.
#[derive(Clone, Debug)]
struct BrokerSlot {
    ready: Arc<ReadyList>,
    slot: usize,
}

impl Accumulator {
    /// Creates an empty accumulator without a broker.
    pub fn new(topic: Arc<str>, partition: i32, budget: Arc<Budget>) -> Self {
        Self {
            topic,
            partition,
            budget,
            state: ShortLock::new(State {
                open: None,
                full: VecDeque::new(),
                broker: None,
                announced: false,
                sealed: false,
                lease: Lease::default(),
                last_len: 0,
                newest: Instant::ZERO,
            }),
            unreported: AtomicU32::new(0),
            lost: Mutex::default(),
        }
    }

    /// Returns the topic's name.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Returns the partition.
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Locks the accumulator for several records in a row.
    #[inline]
    pub(super) fn hold(&self) -> Held<'_> {
        Held { budget: &self.budget, state: self.state.lock_to_send(), wake: WakeLater(None) }
    }

    /// Attaches the partition to a broker actor's ready list. Returns an entry if records are waiting.
    pub fn attach(&self, ready: &Arc<ReadyList>, slot: usize) -> Option<Ready> {
        let mut state = self.state.lock();
        state.broker = Some(BrokerSlot { ready: Arc::clone(ready), slot });
        let oldest = state.full.front().or(state.open.as_ref()).map(|batch| batch.since);
        state.announced = oldest.is_some();
        oldest.map(|since| Ready { slot, since, full: !state.full.is_empty() })
    }

    /// Detaches the partition from its broker actor.
    pub fn detach(&self) {
        let mut state = self.state.lock();
        state.broker = None;
        state.announced = false;
    }

    /// Takes the oldest batch. `open_too` takes the batch that still collects when no full one is left. When nothing
    /// remains, the next append announces itself again.
    pub fn take(&self, open_too: bool) -> (Option<OpenBatch>, Remaining) {
        let mut state = self.state.lock();
        let batch = match state.full.pop_front() {
            Some(batch) => Some(batch),
            None if open_too => {
                let batch = state.open.take();
                if let Some(batch) = &batch {
                    state.last_len = batch.builder.record_count() as usize;
                }
                batch
            }
            None => None,
        };
        let remaining = Remaining {
            full: state.full.front().map(|batch| batch.since),
            open: state.open.as_ref().map(|batch| batch.since),
        };
        if remaining == Remaining::default() {
            state.announced = false;
        }
        if remaining.open.is_none() {
            self.budget.give_back(&mut state.lease);
        }
        (batch, remaining)
    }

    /// Returns the age of the waiting records, without taking them.
    pub fn remaining(&self) -> Remaining {
        let state = self.state.lock();
        Remaining {
            full: state.full.front().map(|batch| batch.since),
            open: state.open.as_ref().map(|batch| batch.since),
        }
    }

    /// Returns the size in bytes of the batch that [`Self::take`] would take; 0 if there is none.
    pub(super) fn next_bytes(&self, open_too: bool) -> usize {
        let state = self.state.lock();
        let next = state.full.front().or(state.open.as_ref().filter(|_| open_too));
        next.map_or(0, |batch| batch.builder.len())
    }

    /// Notifies the broker that leads the partition, if there is one, that a worker has compressed a batch.
    pub(super) fn announce_compressed(&self) {
        let broker = self.state.lock().broker.clone();
        if let Some(BrokerSlot { ready, slot }) = broker {
            ready.push_compressed(slot);
            ready.wake();
        }
    }

    /// Returns the number of waiting messages and bytes, without taking them.
    pub fn queued(&self) -> (usize, u64) {
        let state = self.state.lock();
        let count = |(messages, bytes): (usize, u64), batch: &OpenBatch| {
            (messages + batch.builder.record_count() as usize, bytes + batch.charged_bytes)
        };
        state.full.iter().chain(&state.open).fold((0, 0), count)
    }

    /// Takes the batches whose records were appended before `limit`, oldest first.
    pub fn take_older_than(&self, limit: Instant, into: &mut Vec<OpenBatch>) {
        let mut state = self.state.lock();
        while state.full.front().is_some_and(|batch| batch.since < limit) {
            into.extend(state.full.pop_front());
        }
        if state.full.is_empty() && state.open.as_ref().is_some_and(|batch| batch.since < limit) {
            into.extend(state.open.take());
        }
        if state.open.is_none() {
            self.budget.give_back(&mut state.lease);
            if state.full.is_empty() {
                state.announced = false;
            }
        }
    }

    /// Takes everything; with `seal` nothing can be appended afterwards.
    pub fn take_all(&self, seal: bool, into: &mut Vec<OpenBatch>) {
        let mut state = self.state.lock();
        state.sealed |= seal;
        into.extend(state.full.drain(..));
        into.extend(state.open.take());
        state.announced = false;
        self.budget.give_back(&mut state.lease);
    }

    /// Returns true if batches must be reordered before the next one is taken, which may be the open one.
    pub(super) fn is_unarranged(&self, open_too: bool) -> bool {
        let state = self.state.lock();
        let is_unarranged = |batch: &OpenBatch| batch.ages.is_empty();
        state.open.is_some() && (open_too || !state.full.is_empty()) || state.full.iter().any(is_unarranged)
    }

    /// Returns true if a record in a reordered batch was appended before `limit`.
    pub(super) fn has_arranged_before(&self, limit: Instant) -> bool {
        let state = self.state.lock();
        state.full.iter().any(|batch| !batch.ages.is_empty() && batch.since < limit)
    }

    /// Puts reordered batches back in front of those appended meanwhile, after the broker actor took all. The age of a
    /// batch is that of the oldest record in it or behind it.
    pub(super) fn put_back(&self, mut batches: Vec<OpenBatch>) {
        let mut oldest: Option<Instant> = None;
        for batch in batches.iter_mut().rev() {
            let own = batch.oldest();
            batch.since = oldest.map_or(own, |oldest| oldest.min(own));
            oldest = Some(batch.since);
        }
        let mut state = self.state.lock();
        for batch in batches.into_iter().rev() {
            state.full.push_front(batch);
        }
        state.announced |= !state.full.is_empty();
    }

    /// Returns true if no batch was started since `limit`, nothing waits and every record has its report.
    pub(crate) fn is_idle_since(&self, limit: Instant) -> bool {
        let state = self.state.lock();
        let is_empty = state.open.is_none() && state.full.is_empty();
        is_empty && state.newest < limit && self.unreported.load(Ordering::Relaxed) == 0
    }

    /// Counts a sealed batch whose reports are pending.
    pub(super) fn add_unreported(&self) {
        self.unreported.fetch_add(1, Ordering::Relaxed);
    }

    /// Uncounts a sealed batch that was reported.
    pub(super) fn subtract_unreported(&self) {
        self.unreported.fetch_sub(1, Ordering::Relaxed);
    }

    /// Keeps the pending reports of records whose batch was dropped.
    pub(super) fn keep_lost(&self, pending: PendingReports) {
        self.lost.lock().push(pending);
    }

    /// Takes the pending reports of batches that were dropped.
    pub(super) fn take_lost(&self) -> Vec<PendingReports> {
        std::mem::take(&mut self.lost.lock())
    }

    /// Returns the unused part of the lease.
    pub fn end_lease(&self) {
        self.budget.give_back(&mut self.state.lock().lease);
    }

    /// Returns the messages and bytes that the lease still has room for.
    pub fn leased(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.lease.messages(), state.lease.bytes())
    }
}

impl OpenBatch {
    pub(super) const fn empty(builder: RecordBatchBuilder) -> Self {
        Self {
            builder,
            tags: Tags::None,
            tracker: None,
            since: Instant::ZERO,
            charged_bytes: 0,
            ages: Vec::new(),
        }
    }

    /// Encodes a record and notes its number.
    #[inline(always)]
    pub(super) fn append(&mut self, timestamp: i64, record: &Record<'_>) {
        match record.shared {
            Some(value) => self.builder.append_shared(timestamp, record.key, value, &record.headers),
            None => self.builder.append(timestamp, record.key, record.value, &record.headers),
        }
        if record.is_kept {
            self.builder.keep_records();
        }
        self.tags.push(record.opaque);
    }

    /// Returns when its oldest record was appended.
    pub(super) fn oldest(&self) -> Instant {
        self.ages.iter().copied().min().unwrap_or(self.since)
    }
}

/// A locked accumulator that one thread appends to.
#[derive(Debug)]
pub(super) struct Held<'a> {
    budget: &'a Budget,
    state: ShortGuard<'a, State>,
    /// Dropped after the lock: a broker actor that is woken earlier would wait for the lock.
    wake: WakeLater,
}

/// The ready list to wake after unlocking.
#[derive(Debug)]
struct WakeLater(Option<Arc<ReadyList>>);

impl WakeLater {
    #[inline]
    fn note(&mut self, broker: Option<&Arc<ReadyList>>) {
        if let Some(broker) = broker {
            self.0 = Some(Arc::clone(broker));
        }
    }
}

impl Drop for WakeLater {
    #[inline]
    fn drop(&mut self) {
        if let Some(ready) = &self.0 {
            ready.wake();
        }
    }
}

impl Held<'_> {
    /// Encodes a record into the open batch. With `join_only` no new batch is started.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "the hot path passes what it has, without a struct in between"
    )]
    pub(super) fn append(
        &mut self,
        now: Instant,
        record: &Record<'_>,
        timestamp: i64,
        payload_bytes: usize,
        keep_tags: bool,
        join_only: bool,
        charge: Charge,
        limits: &BatchLimits,
        pool: &ChunkPool,
        track: Option<&mut Option<(Arc<Tracker>, usize)>>,
    ) -> Result<Appended, Refused> {
        let state = &mut *self.state;
        if state.sealed {
            return Err(Refused::Sealed);
        }
        let mut filled = false;
        if let Some(open) = &state.open {
            let upper = payload_bytes + RECORD_OVERHEAD + record.headers.len() * HEADER_OVERHEAD;
            if open.builder.record_count() as usize >= limits.max_records
                || open.builder.len() + upper > limits.max_bytes
                || now.as_nanos().saturating_sub(open.since.as_nanos()) > limits.max_age_nanos
            {
                state.last_len = open.builder.record_count() as usize;
                state.full.extend(state.open.take());
                filled = true;
            }
        }
        let opened_batch = state.open.is_none();
        let mut has_room = true;
        if opened_batch {
            if join_only {
                if filled {
                    self.wake.note(state.announce(true, now));
                }
                return Ok(Appended::NothingToJoin);
            }
            has_room = charge != Charge::Now || self.budget.admits_batch(pool);
        }
        if has_room && charge == Charge::Now {
            let charged = self.budget.try_charge_lease(&mut state.lease, payload_bytes, state.last_len);
            has_room = charged.is_ok();
        }
        if !has_room {
            if filled {
                self.wake.note(state.announce(true, now));
            }
            return Err(Refused::NoRoom);
        }
        let last_len = state.last_len;
        let open = state.open.get_or_insert_with(|| {
            let expected = last_len.max(1).saturating_mul(payload_bytes + RECORD_OVERHEAD);
            let mut builder = RecordBatchBuilder::expecting(pool, expected);
            OpenBatch {
                tags: if keep_tags { Tags::in_list(builder.take_numbers(), last_len) } else { Tags::None },
                since: now,
                ..OpenBatch::empty(if limits.sums_early { builder.summed_early() } else { builder })
            }
        });
        open.append(timestamp, record);
        open.charged_bytes += payload_bytes as u64;
        if let Some(track) = track {
            let tracker = open.tracker.get_or_insert_with(|| Arc::new(Tracker::default()));
            *track = Some((Arc::clone(tracker), open.builder.record_count() as usize - 1));
        }
        if let Some(broker) = &state.broker
            && broker.ready.add_bytes(payload_bytes)
        {
            self.wake.note(Some(&broker.ready));
        }
        if opened_batch {
            state.newest = now;
            self.wake.note(state.announce(filled, now));
        }
        Ok(Appended::Yes)
    }
}

impl State {
    /// Notifies the broker actor, unless it was notified and nothing is urgent. Returns the list if its actor must be
    /// woken.
    fn announce(&mut self, full: bool, now: Instant) -> Option<&Arc<ReadyList>> {
        let since = self.full.front().map_or(now, |oldest| oldest.since);
        let broker = self.broker.as_ref()?;
        if self.announced && !full {
            return None;
        }
        self.announced = true;
        broker.ready.push(Ready { slot: broker.slot, since, full }).then_some(&broker.ready)
    }
}

/// The age of what is left in an accumulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// When the oldest full batch started to wait.
    pub full: Option<Instant>,
    /// When the open batch started to collect.
    pub open: Option<Instant>,
}

impl Remaining {
    /// Returns when the oldest record started to wait.
    pub fn since(self) -> Option<Instant> {
        self.full.or(self.open)
    }
}

/// The largest size of length, attributes, timestamp and offset deltas, key and value lengths, and header count.
pub const RECORD_OVERHEAD: usize = 36;
/// The largest size of the two lengths of a header.
pub const HEADER_OVERHEAD: usize = 10;

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use super::*;
    use crate::wake::{Wake, WakeHandle};

    /// Behaves like a woken broker actor: checks the accumulator immediately.
    #[derive(Default)]
    struct Eager {
        accumulator: OnceLock<Arc<Accumulator>>,
        seen: AtomicUsize,
    }

    impl Wake for Eager {
        fn wake(&self) {
            let accumulator = self.accumulator.get().expect("it was set before the first record");
            self.seen.fetch_add(accumulator.queued().0, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_owner_is_woken_when_the_partition_is_free_again() {
        let eager = Arc::new(Eager::default());
        let wake = WakeHandle::new(Arc::clone(&eager) as Arc<dyn Wake>);
        let (flushing, differ) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let ready = Arc::new(ReadyList::new(wake, flushing, differ, None, None));
        let budget = Arc::new(Budget::new(100, 1_000_000));
        let accumulator = Arc::new(Accumulator::new(Arc::from("t"), 0, budget));
        accumulator.attach(&ready, 0);
        eager.accumulator.set(Arc::clone(&accumulator)).unwrap();
        let limits = BatchLimits { max_bytes: 1000, max_records: 10, max_age_nanos: 1, sums_early: false };
        let (now, record, pool) = (Instant::from_nanos(1), Record::new(), ChunkPool::new());
        let appended =
            accumulator.hold().append(now, &record, 0, 0, false, false, Charge::Now, &limits, &pool, None);
        assert_eq!(appended, Ok(Appended::Yes));
        assert_eq!(eager.seen.load(Ordering::Relaxed), 1);
    }
}
