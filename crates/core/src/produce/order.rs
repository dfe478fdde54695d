//! Records that are sent in another order than that of the calls (`queuing.strategy`, `msg_order_cmp`).
//!
//! ```text
//!   accumulator: [arranged][arranged] [came since][came since][open]
//!                        │ take all              │
//!                        └────────► one order ◄──┘ ──► [arranged][arranged][arranged] ──► the next batch is the first
//! ```
//!
//! `send` encodes a record, so reordering works on encoded records: before the partition's broker actor takes a batch,
//! it decodes the waiting records, sorts them and encodes them again. This costs the sending threads nothing, nor
//! topics in the order of arrival. A batch that was put into a request once does not change.
//!
//! # Pitfalls
//!
//! - Records are encoded when they are sent, so a topic's own order (`queuing.strategy`, `msg_order_cmp`) decodes the
//!   queue. A batch then has records of any age, each with its own time-out; a comparator that contradicts itself must
//!   not lose a record, so the standard sort is not used
//!   (`records_time_out_at_their_own_time_in_whatever_batch_they_are`,
//!   `an_order_that_contradicts_itself_loses_no_record`).

use std::{cmp::Ordering, fmt, sync::Arc};

use ottla_protocol::batch::{ChunkPool, HeaderRef, RecordBatchBuilder, RecordView};

use super::{
    accumulator::{Accumulator, BatchLimits, HEADER_OVERHEAD, OpenBatch, RECORD_OVERHEAD},
    pending_reports::PendingReports,
    report::{Tags, Tracker},
};
use crate::{callback::attributed, machine::Instant};

/// The order in which a partition's waiting records are sent.
pub enum QueueOrder {
    /// The newest goes first.
    NewestFirst,
    /// The application's own order; of equal records the older one goes first. The comparison runs on an I/O thread,
    /// never under a lock. An inconsistent comparison results in an arbitrary order.
    By(Box<Comparison>),
}

/// Decides which of two waiting records goes first.
pub type Comparison = dyn Fn(&QueuedRecord<'_>, &QueuedRecord<'_>) -> Ordering + Send + Sync;

/// A record that waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedRecord<'a> {
    /// The partition.
    pub partition: i32,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The application's number for the record; 0 if reports carry none.
    pub opaque: u64,
}

impl fmt::Debug for QueueOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NewestFirst => "NewestFirst",
            Self::By(_) => "By",
        })
    }
}

impl QueueOrder {
    /// Returns true if both give the same order. An application's order equals only itself.
    pub(super) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || matches!((&**self, &**other), (Self::NewestFirst, Self::NewestFirst))
    }

    /// Reorders the waiting records into batches to be taken from the front. Only the broker actor of the accumulator
    /// may call this.
    pub(super) fn arrange(&self, accumulator: &Arc<Accumulator>, limits: &BatchLimits, pool: &ChunkPool) {
        let mut waiting = Vec::new();
        accumulator.take_all(false, &mut waiting);
        let arranged = waiting.iter().take_while(|batch| !batch.ages.is_empty()).count();
        let mut new = waiting.split_off(arranged);
        let mut old = waiting;
        let kept = match self {
            // All new records precede all old ones, whose batches only have to be filled up.
            Self::NewestFirst => {
                let unfilled = old.iter().take_while(|batch| has_room(batch, limits)).count();
                old.split_off(unfilled)
            }
            Self::By(_) => Vec::new(),
        };
        // If the comparison panics, the accumulator gets the pending reports.
        let mut pending: Vec<PendingReports> = Vec::with_capacity(old.len() + new.len());
        let [old, new] = [&mut old, &mut new].map(|batches| {
            let batches = std::mem::take(batches).into_iter();
            batches.map(|mut batch| Decoded::of(&mut batch, accumulator, &mut pending)).collect::<Vec<_>>()
        });
        let mut new: Vec<Waiting<'_>> = new.iter().flat_map(Decoded::records).collect();
        let old: Vec<Waiting<'_>> = old.iter().flat_map(Decoded::records).collect();
        let ordered = match self {
            Self::NewestFirst => {
                new.reverse();
                [new, old].concat()
            }
            Self::By(compare) => {
                let partition = accumulator.partition();
                let mut before = |one: &Waiting<'_>, other: &Waiting<'_>| {
                    let compare = || compare(&one.shown(partition), &other.shown(partition));
                    attributed("the order of the queue", compare) == Ordering::Less
                };
                let new = sorted(new, &mut before);
                merged(old, new, &mut before)
            }
        };
        let mut arranged = Vec::new();
        for record in &ordered {
            let is_full = arranged.last().is_none_or(|batch: &OpenBatch| {
                let upper =
                    record.payload_bytes + RECORD_OVERHEAD + record.view.headers().count() * HEADER_OVERHEAD;
                batch.builder.record_count() as usize >= limits.max_records
                    || batch.builder.len() + upper > limits.max_bytes
            });
            if is_full {
                arranged.push(empty(pool, limits.sums_early));
            }
            if let Some(batch) = arranged.last_mut() {
                record.append_to(batch);
            }
        }
        pending.into_iter().for_each(PendingReports::hand_on);
        arranged.extend(kept);
        accumulator.put_back(arranged);
    }
}

/// Takes the records of reordered batches that were appended before `limit`. Only for the accumulator's broker actor.
pub(super) fn take_older_than(
    accumulator: &Arc<Accumulator>,
    limit: Instant,
    pool: &ChunkPool,
    into: &mut Vec<OpenBatch>,
) {
    if !accumulator.has_arranged_before(limit) {
        return;
    }
    let (mut waiting, mut left) = (Vec::new(), Vec::new());
    accumulator.take_all(false, &mut waiting);
    for mut batch in waiting {
        if batch.ages.iter().all(|since| *since >= limit) {
            left.push(batch);
            continue;
        }
        let mut pending = Vec::new();
        let decoded = Decoded::of(&mut batch, accumulator, &mut pending);
        let (late, rest): (Vec<_>, Vec<_>) =
            decoded.records().into_iter().partition(|record| record.since < limit);
        for (records, into) in [(late, &mut *into), (rest, &mut left)] {
            if !records.is_empty() {
                let mut part = empty(pool, false);
                records.iter().for_each(|record| record.append_to(&mut part));
                into.push(part);
            }
        }
        pending.into_iter().for_each(PendingReports::hand_on);
    }
    accumulator.put_back(left);
}

/// A decoded batch that was waiting.
struct Decoded {
    records: ottla_protocol::batch::CopiedRecords,
    opaques: Option<Vec<u64>>,
    tracker: Option<Arc<Tracker>>,
    ages: Vec<Instant>,
    since: Instant,
    is_kept: bool,
}

/// A record of the batch.
#[derive(Clone)]
struct Waiting<'a> {
    view: RecordView<'a>,
    payload_bytes: usize,
    /// The application's number, if reports carry it.
    opaque: Option<u64>,
    tracker: Option<(&'a Arc<Tracker>, usize)>,
    since: Instant,
    is_kept: bool,
}

impl Decoded {
    fn of(batch: &mut OpenBatch, keeper: &Arc<Accumulator>, pending: &mut Vec<PendingReports>) -> Self {
        let opaques = match &batch.tags {
            Tags::None => None,
            Tags::Opaque(opaques) => Some(opaques.clone()),
        };
        let tracker = batch.tracker.clone();
        let ages = std::mem::take(&mut batch.ages);
        pending.push(PendingReports::of(batch, Some(keeper)));
        let is_kept = batch.builder.keeps_records();
        Self { records: batch.builder.copied(), opaques, tracker, ages, since: batch.since, is_kept }
    }

    /// Returns its records in order. A batch that this library encoded can always be decoded.
    fn records(&self) -> Vec<Waiting<'_>> {
        self.records.iter().enumerate().map(|(index, view)| self.record(index, view)).collect()
    }

    fn record<'a>(&'a self, index: usize, view: RecordView<'a>) -> Waiting<'a> {
        let headers = view.headers().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len));
        let payload_bytes =
            view.key.map_or(0, <[u8]>::len) + view.value.map_or(0, <[u8]>::len) + headers.sum::<usize>();
        Waiting {
            view,
            payload_bytes,
            opaque: self.opaques.as_ref().and_then(|opaques| opaques.get(index).copied()),
            tracker: self.tracker.as_ref().map(|tracker| (tracker, index)),
            since: self.ages.get(index).copied().unwrap_or(self.since),
            is_kept: self.is_kept,
        }
    }
}

impl<'a> Waiting<'a> {
    const fn shown(&self, partition: i32) -> QueuedRecord<'a> {
        let RecordView { key, value, timestamp, .. } = self.view;
        let opaque = match self.opaque {
            Some(opaque) => opaque,
            None => 0,
        };
        QueuedRecord { partition, key, value, timestamp, opaque }
    }

    fn append_to(&self, batch: &mut OpenBatch) {
        let headers: Vec<HeaderRef<'_>> = self.view.headers().collect();
        if self.is_kept {
            batch.builder.keep_records();
        }
        batch.builder.append(self.view.timestamp, self.view.key, self.view.value, &headers);
        if let Some(opaque) = self.opaque {
            if batch.ages.is_empty() {
                batch.tags = Tags::with_capacity(0);
            }
            batch.tags.push(opaque);
        }
        if let Some((outer, outer_index)) = self.tracker {
            let tracker = batch.tracker.get_or_insert_with(Arc::default);
            tracker.forward_to(batch.ages.len(), outer, outer_index);
        }
        batch.charged_bytes += self.payload_bytes as u64;
        batch.ages.push(self.since);
    }
}

/// Returns true if a batch has room for a quarter more.
fn has_room(batch: &OpenBatch, limits: &BatchLimits) -> bool {
    batch.builder.record_count() as usize * 4 < limits.max_records.saturating_mul(3)
        && batch.builder.len() * 4 < limits.max_bytes.saturating_mul(3)
}

/// Creates an empty batch.
fn empty(pool: &ChunkPool, sums_early: bool) -> OpenBatch {
    let builder = RecordBatchBuilder::new(pool);
    OpenBatch::empty(if sums_early { builder.summed_early() } else { builder })
}

/// Sorts items and keeps the order of equal ones. Each item is in the result once, even if `before` is inconsistent:
/// the standard library's sort may panic then.
fn sorted<T>(mut items: Vec<T>, before: &mut impl FnMut(&T, &T) -> bool) -> Vec<T> {
    if items.len() < 2 {
        return items;
    }
    let second = items.split_off(items.len() / 2);
    let first = sorted(items, before);
    let second = sorted(second, before);
    merged(first, second, before)
}

/// Merges two sorted lists; of equal items those of the first list come first.
fn merged<T>(first: Vec<T>, second: Vec<T>, before: &mut impl FnMut(&T, &T) -> bool) -> Vec<T> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some(one), Some(other)) = (first.peek(), second.peek()) {
        merged.extend(if before(other, one) { second.next() } else { first.next() });
    }
    merged.extend(first);
    merged.extend(second);
    merged
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::*;
    use crate::produce::{
        accumulator::Charge,
        budget::Budget,
        record::Record,
        report::{PersistenceStatus, TrackedOutcome},
    };

    const LIMITS: BatchLimits =
        BatchLimits { max_bytes: 1_000_000, max_records: 3, max_age_nanos: u64::MAX, sums_early: true };

    fn accumulator() -> Arc<Accumulator> {
        Arc::new(Accumulator::new(Arc::from("t"), 0, Arc::new(Budget::new(1000, 1_000_000))))
    }

    fn by_key() -> QueueOrder {
        QueueOrder::By(Box::new(|one, other| one.key.cmp(&other.key)))
    }

    fn send(accumulator: &Accumulator, pool: &ChunkPool, at: u64, keys: &[&str]) {
        for key in keys {
            let headers = Record::new().key(*key).value("value").header("h", "x").opaque(at);
            let bytes = headers.payload_bytes();
            let now = Instant::from_nanos(at);
            let taken = accumulator.hold().append(
                now,
                &headers,
                5,
                bytes,
                true,
                false,
                Charge::Now,
                &LIMITS,
                pool,
                None,
            );
            taken.expect("there is room");
        }
    }

    /// The keys of the batches that are taken, one after the other.
    fn keys(accumulator: &Accumulator, open_too: bool) -> Vec<Vec<String>> {
        let mut taken = Vec::new();
        while let (Some(batch), _) = accumulator.take(open_too) {
            let records = batch.builder.copied();
            let key = |record: RecordView<'_>| {
                assert_eq!((record.timestamp, record.value), (5, Some(&b"value"[..])));
                assert_eq!(record.headers().count(), 1);
                String::from_utf8_lossy(record.key.expect("a key")).into_owned()
            };
            taken.push(records.iter().map(key).collect());
        }
        taken
    }

    #[test]
    fn waiting_records_follow_the_applications_order_in_full_batches() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        send(&accumulator, &pool, 1, &["d", "b", "a", "c", "e"]);
        by_key().arrange(&accumulator, &LIMITS, &pool);
        send(&accumulator, &pool, 2, &["b", "0"]);
        by_key().arrange(&accumulator, &LIMITS, &pool);
        assert_eq!(accumulator.queued(), (7, 7 * 8));
        let (first, _) = accumulator.take(false);
        assert_eq!(
            first.map(|batch| batch.tags.opaques().to_vec()),
            Some(vec![2, 1, 1]),
            "the older b first"
        );
        assert_eq!(keys(&accumulator, true), [vec!["b", "c", "d"], vec!["e"]]);
    }

    #[test]
    fn newest_goes_first_among_arranged_records_too() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        send(&accumulator, &pool, 1, &["1", "2", "3", "4"]);
        QueueOrder::NewestFirst.arrange(&accumulator, &LIMITS, &pool);
        send(&accumulator, &pool, 2, &["5", "6"]);
        QueueOrder::NewestFirst.arrange(&accumulator, &LIMITS, &pool);
        assert_eq!(accumulator.queued().0, 6);
        send(&accumulator, &pool, 3, &["7", "8"]);
        QueueOrder::NewestFirst.arrange(&accumulator, &LIMITS, &pool);
        assert_eq!(
            keys(&accumulator, true),
            [vec!["8", "7", "6"], vec!["5"], vec!["4", "3", "2"], vec!["1"]]
        );
        assert_eq!(pool.in_use_bytes(), 0);
    }

    #[test]
    fn records_time_out_at_their_own_time_in_whatever_batch_they_are() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        send(&accumulator, &pool, 10, &["a", "d", "f"]);
        send(&accumulator, &pool, 20, &["b", "c", "e"]);
        by_key().arrange(&accumulator, &LIMITS, &pool);
        assert_eq!(accumulator.remaining().since(), Some(Instant::from_nanos(10)));
        let mut late = Vec::new();
        take_older_than(&accumulator, Instant::from_nanos(10), &pool, &mut late);
        assert!(late.is_empty());
        take_older_than(&accumulator, Instant::from_nanos(11), &pool, &mut late);
        assert_eq!(late.iter().map(|batch| batch.charged_bytes).collect::<Vec<_>>(), [8, 16]);
        assert_eq!(accumulator.remaining().since(), Some(Instant::from_nanos(20)));
        assert_eq!(keys(&accumulator, true), [vec!["b", "c"], vec!["e"]]);
    }

    #[test]
    fn tracked_record_completes_after_it_was_rearranged() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        let mut waiting = Vec::new();
        for key in ["b", "a"] {
            let (record, mut track) = (Record::new().key(key), None);
            let now = Instant::from_nanos(1);
            let charge = Charge::Now;
            let mut held = accumulator.hold();
            let taken =
                held.append(now, &record, 5, 1, true, false, charge, &LIMITS, &pool, Some(&mut track));
            taken.expect("there is room");
            waiting.extend(track);
        }
        by_key().arrange(&accumulator, &LIMITS, &pool);
        let (batch, _) = accumulator.take(true);
        let tracker = batch.and_then(|batch| batch.tracker).expect("somebody waits");
        let delivered = crate::produce::report::Delivered { base_offset: Some(7), log_append_time: None };
        let status = PersistenceStatus::Persisted;
        tracker.complete(0..2, TrackedOutcome { partition: 0, outcome: Ok(delivered), status });
        let mut waiter = crate::waiters::Waiter::default();
        let context = std::task::Context::from_waker(std::task::Waker::noop());
        let offsets: Vec<_> = waiting
            .iter()
            .map(|(tracker, index)| match tracker.poll(*index, &mut waiter, &context) {
                std::task::Poll::Ready(outcome) => outcome.outcome.expect("written").base_offset,
                std::task::Poll::Pending => None,
            })
            .collect();
        assert_eq!(offsets, [Some(8), Some(7)]);
    }

    #[test]
    fn an_order_that_contradicts_itself_loses_no_record() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        send(&accumulator, &pool, 1, &all.iter().map(String::as_str).collect::<Vec<_>>());
        let turn = std::sync::atomic::AtomicUsize::new(0);
        let order = QueueOrder::By(Box::new(move |_, _| {
            [Ordering::Less, Ordering::Greater]
                [turn.fetch_add(7, std::sync::atomic::Ordering::Relaxed) / 5 % 2]
        }));
        order.arrange(&accumulator, &LIMITS, &pool);
        order.arrange(&accumulator, &LIMITS, &pool);
        let mut left = keys(&accumulator, true).concat();
        left.sort_by_key(|key| key.parse::<u32>().ok());
        assert_eq!(left, all);
    }

    #[test]
    fn panicking_comparison_keeps_the_pending_reports() {
        let (accumulator, pool) = (accumulator(), ChunkPool::new());
        send(&accumulator, &pool, 1, &["b", "a", "d", "c"]);
        let order = QueueOrder::By(Box::new(|_, _| panic!("the application's mistake")));
        let arrange = std::panic::AssertUnwindSafe(|| order.arrange(&accumulator, &LIMITS, &pool));
        std::panic::catch_unwind(arrange).expect_err("it panics");
        let lost: u64 = accumulator.take_lost().iter().map(PendingReports::charged_bytes).sum();
        assert_eq!((lost, accumulator.queued().0), (4 * 8, 0));
    }
}
