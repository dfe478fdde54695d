//! Where application threads leave their records: one accumulator per partition, the first of the three places where
//! threads meet.
//!
//! ```text
//!  any thread ── append ──► open batch ── full ──► full batches ── take ──► the broker that leads the partition
//! ```
//!
//! It is keyed by partition, never by broker: a leader change swaps the [`ReadyList`] that is told, and nothing else.
//! One short lock; under it a record is encoded straight into the open batch, and pays for its room in the queue from a
//! lease that the partition has.

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::batch::{ChunkPool, RecordBatchBuilder};

use super::{
    budget::{Budget, Lease, NoRoom},
    owed::Owed,
    ready::{Ready, ReadyList},
    record::Record,
    report::{Tags, Tracker},
    short_lock::{ShortGuard, ShortLock},
};
use crate::{machine::Instant, sync::Mutex};

/// The records of one partition that no broker has taken yet.
#[derive(Debug)]
pub struct Accumulator {
    topic: Arc<str>,
    partition: i32,
    budget: Arc<Budget>,
    state: ShortLock<State>,
    /// What was dropped without a report, by owners that panicked.
    lost: Mutex<Vec<Owed>>,
}

/// When a batch is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// `batch.size`: bytes of a batch.
    pub max_bytes: usize,
    /// `batch.num.messages`: records of a batch.
    pub max_records: usize,
    /// No batch collects for longer than so many nanoseconds, so that its records time out close to their own time.
    pub max_age_nanos: u64,
    /// It is not going to be compressed: its records are summed while they come.
    pub sums_early: bool,
}

/// A batch that still takes records.
#[derive(Debug)]
pub struct OpenBatch {
    /// The encoded records.
    pub builder: RecordBatchBuilder,
    /// What the delivery report needs of each record.
    pub tags: Tags,
    /// Who waits for the batch.
    pub tracker: Option<Arc<Tracker>>,
    /// When its first record came.
    pub since: Instant,
    /// What its records were charged in the budget.
    pub charged_bytes: u64,
    /// When each record came, in a batch whose records were put in another order; otherwise nothing.
    pub ages: Vec<Instant>,
}

/// How an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The record is in a batch.
    Yes,
    /// There was no batch to join, and no other was wanted: nothing happened.
    NothingToJoin,
}

/// Why a record was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Appending is over: the topic is gone or the client is closed.
    Sealed,
    /// The queue has no room.
    NoRoom,
}

/// Who pays for a record's room in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// It is charged to the budget now.
    Now,
    /// It was charged when it came.
    Paid,
}

#[derive(Debug)]
struct State {
    open: Option<OpenBatch>,
    full: VecDeque<OpenBatch>,
    owner: Option<Owner>,
    /// The owner knows that there is something.
    announced: bool,
    sealed: bool,
    /// Room in the queue for the next records of the open batch.
    lease: Lease,
    /// Lengths of the last batch, to reserve the next one's side entries in one go.
    last_len: usize,
}

/// The broker that leads the partition.
#[derive(Clone, Debug)]
struct Owner {
    ready: Arc<ReadyList>,
    slot: usize,
}

impl Accumulator {
    /// An empty accumulator without an owner.
    pub fn new(topic: Arc<str>, partition: i32, budget: Arc<Budget>) -> Self {
        Self {
            topic,
            partition,
            budget,
            state: ShortLock::new(State {
                open: None,
                full: VecDeque::new(),
                owner: None,
                announced: false,
                sealed: false,
                lease: Lease::default(),
                last_len: 0,
            }),
            lost: Mutex::default(),
        }
    }

    /// The topic's name.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The partition.
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Keeps others out for a few records in a row.
    #[inline]
    pub(super) fn hold(&self) -> Held<'_> {
        Held { budget: &self.budget, state: self.state.lock(), wake: WakeLater(None) }
    }

    /// Names the broker that is to be told from now on, and says whether there is something to send already.
    pub fn set_owner(&self, ready: &Arc<ReadyList>, slot: usize) -> Option<Ready> {
        let mut state = self.state.lock();
        state.owner = Some(Owner { ready: Arc::clone(ready), slot });
        let oldest = state.full.front().or(state.open.as_ref()).map(|batch| batch.since);
        state.announced = oldest.is_some();
        oldest.map(|since| Ready { slot, since, full: !state.full.is_empty() })
    }

    /// No broker is to be told any more.
    pub fn clear_owner(&self) {
        let mut state = self.state.lock();
        state.owner = None;
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

    /// What waits, without taking it.
    pub fn remaining(&self) -> Remaining {
        let state = self.state.lock();
        Remaining {
            full: state.full.front().map(|batch| batch.since),
            open: state.open.as_ref().map(|batch| batch.since),
        }
    }

    /// Messages and bytes that wait, without taking them.
    pub fn queued(&self) -> (usize, u64) {
        let state = self.state.lock();
        let count = |(messages, bytes): (usize, u64), batch: &OpenBatch| {
            (messages + batch.builder.record_count() as usize, bytes + batch.charged_bytes)
        };
        state.full.iter().chain(&state.open).fold((0, 0), count)
    }

    /// Takes the batches whose records came before `limit`, oldest first.
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

    /// Takes everything; with `seal` nothing can be appended any more.
    pub fn take_all(&self, seal: bool, into: &mut Vec<OpenBatch>) {
        let mut state = self.state.lock();
        state.sealed |= seal;
        into.extend(state.full.drain(..));
        into.extend(state.open.take());
        state.announced = false;
        self.budget.give_back(&mut state.lease);
    }

    /// True if batches are to be put in order before the next one is taken, which may be one that still collects.
    pub(super) fn is_unarranged(&self, open_too: bool) -> bool {
        let state = self.state.lock();
        let is_unarranged = |batch: &OpenBatch| batch.ages.is_empty();
        state.open.is_some() && (open_too || !state.full.is_empty()) || state.full.iter().any(is_unarranged)
    }

    /// True if a record came before `limit` that is in an arranged batch.
    pub(super) fn has_arranged_before(&self, limit: Instant) -> bool {
        let state = self.state.lock();
        state.full.iter().any(|batch| !batch.ages.is_empty() && batch.since < limit)
    }

    /// Puts back before what came meanwhile what the owner has taken all of. A batch waits since the oldest record in it or
    /// behind it came.
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

    /// Keeps what records of here are still owed after their batch is gone.
    pub(super) fn keep_lost(&self, owed: Owed) {
        self.lost.lock().push(owed);
    }

    /// What was dropped without a report.
    pub(super) fn take_lost(&self) -> Vec<Owed> {
        std::mem::take(&mut self.lost.lock())
    }

    /// Gives back the room in the queue that the open batch has not used.
    pub fn end_lease(&self) {
        self.budget.give_back(&mut self.state.lock().lease);
    }

    /// The messages and bytes that have room here and have not come.
    pub fn leased(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.lease.messages(), state.lease.bytes())
    }
}

impl OpenBatch {
    /// When its oldest record came.
    pub(super) fn oldest(&self) -> Instant {
        self.ages.iter().copied().min().unwrap_or(self.since)
    }
}

/// An accumulator that one thread appends to.
#[derive(Debug)]
pub(super) struct Held<'a> {
    budget: &'a Budget,
    state: ShortGuard<'a, State>,
    /// Dropped after the lock: an owner who is woken while it is held would run into it.
    wake: WakeLater,
}

/// Whom to wake in the end.
#[derive(Debug)]
struct WakeLater(Option<Arc<ReadyList>>);

impl WakeLater {
    #[inline]
    fn note(&mut self, owner: Option<&Arc<ReadyList>>) {
        if let Some(owner) = owner {
            self.0 = Some(Arc::clone(owner));
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
    /// Encodes a record into the open batch. With `join_only` no new batch is begun.
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
        if opened_batch && join_only {
            if filled {
                self.wake.note(state.announce(true, now));
            }
            return Ok(Appended::NothingToJoin);
        }
        if charge == Charge::Now
            && let Err(NoRoom) = self.budget.try_charge_lease(&mut state.lease, payload_bytes, state.last_len)
        {
            if filled {
                self.wake.note(state.announce(true, now));
            }
            return Err(Refused::NoRoom);
        }
        let last_len = state.last_len;
        let open = state.open.get_or_insert_with(|| OpenBatch {
            builder: if limits.sums_early {
                RecordBatchBuilder::new(pool).summed_early()
            } else {
                RecordBatchBuilder::new(pool)
            },
            tags: if keep_tags { Tags::with_capacity(last_len) } else { Tags::None },
            tracker: None,
            since: now,
            charged_bytes: 0,
            ages: Vec::new(),
        });
        match record.shared {
            Some(value) => open.builder.append_shared(timestamp, record.key, value, &record.headers),
            None => open.builder.append(timestamp, record.key, record.value, &record.headers),
        }
        open.tags.push(record.opaque);
        open.charged_bytes += payload_bytes as u64;
        if let Some(track) = track {
            let tracker = open.tracker.get_or_insert_with(|| Arc::new(Tracker::default()));
            *track = Some((Arc::clone(tracker), open.builder.record_count() as usize - 1));
        }
        if let Some(owner) = &state.owner
            && owner.ready.add_bytes(payload_bytes)
        {
            self.wake.note(Some(&owner.ready));
        }
        if opened_batch {
            self.wake.note(state.announce(filled, now));
        }
        Ok(Appended::Yes)
    }
}

impl State {
    /// Tells the owner that there is something, unless it knows and nothing is urgent; answers it if it is to be woken.
    fn announce(&mut self, full: bool, now: Instant) -> Option<&Arc<ReadyList>> {
        let since = self.full.front().map_or(now, |oldest| oldest.since);
        let owner = self.owner.as_ref()?;
        if self.announced && !full {
            return None;
        }
        self.announced = true;
        owner.ready.push(Ready { slot: owner.slot, since, full }).then_some(&owner.ready)
    }
}

/// The age of what is left in an accumulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Since when the oldest full batch waits.
    pub full: Option<Instant>,
    /// Since when the open batch collects.
    pub open: Option<Instant>,
}

impl Remaining {
    /// Since when the oldest record waits.
    pub fn since(self) -> Option<Instant> {
        self.full.or(self.open)
    }
}

/// Length, attributes, timestamp and offset deltas, key and value lengths, header count: never more than this.
pub const RECORD_OVERHEAD: usize = 36;
/// The two lengths of a header.
pub const HEADER_OVERHEAD: usize = 10;

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use super::*;
    use crate::wake::{Wake, WakeHandle};

    /// Does at once what an owner does that is woken: looks at the accumulator.
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
        accumulator.set_owner(&ready, 0);
        eager.accumulator.set(Arc::clone(&accumulator)).unwrap();
        let limits = BatchLimits { max_bytes: 1000, max_records: 10, max_age_nanos: 1, sums_early: false };
        let (now, record, pool) = (Instant::from_nanos(1), Record::new(), ChunkPool::new());
        let appended =
            accumulator.hold().append(now, &record, 0, 0, false, false, Charge::Now, &limits, &pool, None);
        assert_eq!(appended, Ok(Appended::Yes));
        assert_eq!(eager.seen.load(Ordering::Relaxed), 1);
    }
}
