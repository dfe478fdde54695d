//! The records of one partition that one response acquired, and the application's verdict on each.
//!
//! The application's threads mark records, and a commit collects the marks. Both are atomic per record: a mark that is
//! collected can't be changed any more, so that each record is acknowledged at most once.

use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{uuid::Uuid, vocabulary::TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    acknowledgement::{AcknowledgeType, AcknowledgedRange, Verdict, append, append_range},
    marks::{Mark, Marks},
    shared::SessionId,
    upkeep::Warned,
    walk::AcquiredWalk,
};
use crate::{
    error::{Error, ErrorKind},
    fetch::deliver::{FetchedRecords, MessageRef},
    machine::Instant,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

/// The session in which records were acquired. An acknowledgement is valid in the same session only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) session: SessionId,
    /// The number of the partition's stay at this broker: records that were acquired before its leader moved away are
    /// not acquired any more, even if it came back.
    pub(crate) stay: u64,
    pub(crate) topic_id: Uuid,
}

/// Consecutive acquired offsets, each with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) offsets: RangeInclusive<i64>,
    pub(crate) delivery_count: i16,
}

/// The number of fetched records after which a walk checks whether acquired ones follow.
const SOME: usize = 256;

/// Acquired offsets that could not be decoded. The client has acknowledged them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRecords {
    /// The offsets.
    pub offsets: RangeInclusive<i64>,
    /// The defect, and how the records were acknowledged.
    pub error: Error,
}

/// The records of one partition that one response acquired for this member.
pub struct AcquiredRecords {
    pub(crate) fetched: Arc<FetchedRecords>,
    pub(crate) origin: Origin,
    pub(super) runs: Vec<Run>,
    /// The index of the first mark of each run.
    starts: Vec<usize>,
    marks: Marks,
    damaged: Vec<DamagedRecords>,
    /// The bytes that count for the budget of fetches.
    bytes: usize,
    /// True for a record that is handed out alone, because its next delivery may be the last one.
    is_single: bool,
    /// When the acquisition lock ends that came with the records.
    lock_until: Instant,
    /// How long a lock lasts.
    lock: Duration,
    /// True once the application has the records.
    is_handed_out: AtomicBool,
    /// A [`Warned`].
    warned: AtomicU8,
    /// Records that differ from the others.
    special: Mutex<Special>,
}

/// Times of renewed and delayed records.
#[derive(Debug, Default)]
struct Special {
    /// The ends of locks that were renewed.
    renewed: SortedMap<i64, Instant>,
    /// The times at which records are released.
    delayed: SortedMap<i64, Instant>,
    /// Records that this member has acquired again since. Verdicts on them would count for the later acquisition.
    superseded: SortedSet<i64>,
}

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lock ends at this time.
    Until(Instant),
    /// The lock is as before: the renewal was not sent.
    Unchanged,
    /// The record is not acquired any more.
    Lost,
}

impl AcquiredRecords {
    /// Creates the records of ascending `runs`, whose number the fetched bytes bound.
    pub(crate) fn new(
        fetched: Arc<FetchedRecords>,
        origin: Origin,
        runs: Vec<Run>,
        damaged: Vec<DamagedRecords>,
        (acquired_at, lock): (Instant, Duration),
    ) -> Self {
        let mut starts = Vec::with_capacity(runs.len());
        let mut count = 0;
        for run in &runs {
            starts.push(count);
            count += usize::try_from(run.offsets.end() - run.offsets.start() + 1).unwrap_or(0);
        }
        Self {
            bytes: fetched.bytes,
            fetched,
            origin,
            runs,
            starts,
            marks: Marks::new(count),
            damaged,
            is_single: false,
            lock_until: acquired_at + lock,
            lock,
            is_handed_out: AtomicBool::new(false),
            warned: AtomicU8::new(Warned::No as u8),
            special: Mutex::default(),
        }
    }

    /// Splits records off whose delivery count is `limit` or more, each for itself: see [`AcquiredRecords::is_single`].
    pub(crate) fn split_singles(mut self, limit: i16) -> Vec<Self> {
        let is_late = |run: &Run| run.delivery_count >= limit;
        if limit <= 0 || self.len() < 2 || !self.runs.iter().any(is_late) {
            return vec![self];
        }
        let (late, early): (Vec<Run>, Vec<Run>) =
            std::mem::take(&mut self.runs).into_iter().partition(is_late);
        let locked = (self.lock_until, Duration::ZERO);
        let (fetched, origin, lock) = (Arc::clone(&self.fetched), self.origin, self.lock);
        let part = |runs: Vec<Run>, damaged: Vec<DamagedRecords>| Self {
            lock,
            ..Self::new(Arc::clone(&fetched), origin, runs, damaged, locked)
        };
        let mut parts = vec![part(early, std::mem::take(&mut self.damaged))];
        for run in late {
            for offset in run.offsets.clone() {
                let one = Run { offsets: offset..=offset, delivery_count: run.delivery_count };
                // The bytes count once.
                parts.push(Self { is_single: true, bytes: 0, ..part(vec![one], Vec::new()) });
            }
        }
        parts
    }

    /// Returns true for a record that is handed out alone: it was delivered so often that its next delivery may be the last
    /// one, and others must not be lost with it if it ends the process.
    pub const fn is_single(&self) -> bool {
        self.is_single
    }

    /// The application has the records from now on.
    pub(crate) fn set_handed_out(&self) {
        self.is_handed_out.store(true, Ordering::Release);
    }

    pub(super) fn is_handed_out(&self) -> bool {
        self.is_handed_out.load(Ordering::Acquire)
    }

    /// Returns topic and partition.
    pub fn partition(&self) -> &TopicPartition {
        self.fetched.handle.key()
    }

    /// Returns the batches that the records are in, which also contain records that were not acquired.
    pub const fn fetched(&self) -> &Arc<FetchedRecords> {
        &self.fetched
    }

    /// Returns the batches that could not be decoded.
    pub fn damaged(&self) -> &[DamagedRecords] {
        &self.damaged
    }

    /// Returns the number of acquired records, without those of damaged batches.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Returns true if no record was acquired.
    pub fn is_empty(&self) -> bool {
        self.marks.len() == 0
    }

    /// Returns the size of the fetched batches in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how often the record was delivered, including this time; `None` if the offset was not acquired.
    pub fn delivery_count(&self, offset: i64) -> Option<i16> {
        self.find(offset).map(|(run, _)| run.delivery_count)
    }

    /// Returns when the acquisition lock ends that came with the records. Then those that were not renewed may go to another
    /// member.
    pub const fn lock_until(&self) -> Instant {
        self.lock_until
    }

    /// Returns when the lock on a record ends.
    pub fn lock_until_of(&self, offset: i64) -> Instant {
        self.special.lock().renewed.get(&offset).copied().unwrap_or(self.lock_until)
    }

    /// Returns when a lock that ends at `until` is renewed, or the application is warned: after two thirds of it.
    fn renewed_at(&self, until: Instant) -> Instant {
        until.earlier_by(self.lock / 3)
    }

    /// Returns when the locks first need attention.
    pub(super) fn check_at(&self) -> Instant {
        self.renewed_at(self.lock_until)
    }

    /// Sets how far the application was warned; false if it knows.
    pub(super) fn warn(&self, warned: Warned) -> bool {
        self.warned.fetch_max(warned as u8, Ordering::AcqRel) < warned as u8
    }

    /// Calls `each` with the offset of every record and the index of its mark.
    fn each_mark(&self, mut each: impl FnMut(i64, usize)) {
        for (run, start) in self.runs.iter().zip(&self.starts) {
            run.offsets.clone().zip(*start..).for_each(|(offset, index)| each(offset, index));
        }
    }

    /// Returns the offsets without a verdict whose locks end until `until`, as ranges.
    pub(super) fn open_until(&self, until: Instant) -> Vec<(i64, i64)> {
        let special = self.special.lock();
        let mut open: Vec<(i64, i64)> = Vec::new();
        self.each_mark(|offset, index| {
            if !self.marks.get(index).needs_verdict()
                || special.renewed.get(&offset).copied().unwrap_or(self.lock_until) > until
            {
                return;
            }
            match open.last_mut() {
                Some(last) if last.1 + 1 == offset => last.1 = offset,
                _ => open.push((offset, offset)),
            }
        });
        open
    }

    /// Releases a record at this time; it stays acquired until then. Error: as for [`AcquiredRecords::acknowledge`].
    pub fn release_at(&self, offset: i64, at: Instant) -> Result<(), Error> {
        // Under the lock: what releases delayed records at the same time must find both the mark and the time, or neither.
        let mut special = self.special.lock();
        self.acknowledge_as(offset, Mark::Delayed)?;
        special.delayed.insert(offset, at);
        Ok(())
    }

    /// Releases all records now that were to be released later.
    pub fn release_delayed(&self) {
        let delayed = std::mem::take(&mut self.special.lock().delayed);
        for (_, index) in delayed.into_keys().filter_map(|offset| self.find(offset)) {
            self.marks.change(index, |mark| mark.is_delayed().then_some(Mark::Released));
        }
    }

    /// Takes the records whose release is due: at its time, or before the lock ends if it can't be renewed.
    pub(super) fn collect_delayed(&self, now: Instant, can_renew: bool) -> Vec<AcknowledgedRange> {
        let due: Vec<i64> = {
            let special = self.special.lock();
            let is_due = |offset: &i64, at: Instant| {
                let until = special.renewed.get(offset).copied().unwrap_or(self.lock_until);
                at <= now || !can_renew && self.renewed_at(until) <= now
            };
            special
                .delayed
                .iter()
                .filter(|(offset, at)| is_due(offset, **at))
                .map(|(offset, _)| *offset)
                .collect()
        };
        let mut ranges = Vec::new();
        for offset in due {
            if self.change(offset, |mark| (mark == Mark::Delayed).then_some(Mark::Sent)) {
                self.special.lock().delayed.remove(&offset);
                append(&mut ranges, offset, Verdict::Of(AcknowledgeType::Release));
            }
        }
        ranges
    }

    /// Takes all records that are to be released later.
    pub(super) fn collect_all_delayed(&self) -> Vec<AcknowledgedRange> {
        let delayed = std::mem::take(&mut self.special.lock().delayed);
        let mut ranges = Vec::new();
        for offset in delayed.into_keys() {
            if self.change(offset, |mark| mark.is_delayed().then_some(Mark::Sent)) {
                append(&mut ranges, offset, Verdict::Of(AcknowledgeType::Release));
            }
        }
        ranges
    }

    /// Takes the records whose lock is to be renewed: delayed ones, and with `all` those without a verdict.
    pub(super) fn collect_renewals(&self, now: Instant, all: bool) -> Vec<AcknowledgedRange> {
        let mut ranges = Vec::new();
        self.each_mark(|offset, index| {
            let is_renewed = |mark| mark == Mark::Delayed || all && mark == Mark::Open;
            if !is_renewed(self.marks.get(index)) {
                return;
            }
            let until = self.lock_until_of(offset);
            if until <= now || self.renewed_at(until) > now {
                return;
            }
            if self.marks.change(index, |mark| is_renewed(mark).then_some(mark.renewing())) {
                append(&mut ranges, offset, Verdict::Of(AcknowledgeType::Renew));
            }
        });
        ranges
    }

    /// Returns when the records need attention again. With `all`, the locks of all records without a verdict are renewed.
    pub(super) fn next_check(&self, now: Instant, all: bool) -> Instant {
        let mut next = match self.warned.load(Ordering::Acquire) {
            _ if all || !self.has_open() => now + self.lock,
            // Events are only for records that the application has: those of queued records are overdue.
            warned if warned == Warned::No as u8 && self.check_at() > now => self.check_at(),
            warned if warned != Warned::Expired as u8 && self.lock_until > now => self.lock_until,
            _ => now + self.lock,
        };
        let special = self.special.lock();
        // The outcome of a renewal asks for a check itself, and a lock that has ended is not renewed.
        self.each_mark(|offset, index| {
            let mark = self.marks.get(index);
            if mark == Mark::Delayed || all && mark == Mark::Open {
                let until = special.renewed.get(&offset).copied().unwrap_or(self.lock_until);
                let renewed_at = if until > now { self.renewed_at(until) } else { Instant::FAR_FUTURE };
                let released_at = special.delayed.get(&offset).copied().filter(|_| mark == Mark::Delayed);
                next = next.min(renewed_at.min(released_at.unwrap_or(Instant::FAR_FUTURE)).max(now));
            }
        });
        next
    }

    /// Changes the mark of an offset as [`Marks::change`] does.
    fn change(&self, offset: i64, change: impl Fn(Mark) -> Option<Mark>) -> bool {
        self.find(offset).is_some_and(|(_, index)| self.marks.change(index, change))
    }

    /// Calls `each` with every acquired record and its delivery count, in the order of offsets.
    pub fn for_each(self: &Arc<Self>, mut each: impl FnMut(&MessageRef<'_>, i16)) {
        let mut walk = AcquiredWalk::new(Arc::clone(self));
        while walk.run(SOME, &mut each) {}
    }

    /// Sets the verdict on a record. A later verdict replaces one that is not sent.
    ///
    /// Error: the offset is not one of these records', or its acknowledgement was sent already.
    pub fn acknowledge(&self, offset: i64, kind: AcknowledgeType) -> Result<(), Error> {
        self.acknowledge_as(offset, Mark::of(kind))
    }

    fn acknowledge_as(&self, offset: i64, new: Mark) -> Result<(), Error> {
        let Some((_, index)) = self.find(offset) else {
            return Err(self.refused(offset, "was not acquired"));
        };
        if self.marks.change(index, |mark| (mark != Mark::Sent).then_some(new)) {
            Ok(())
        } else {
            Err(self.refused(offset, "was acknowledged already"))
        }
    }

    /// Sets a verdict on all records without one. Returns their number.
    pub fn acknowledge_open(&self, kind: AcknowledgeType) -> usize {
        let mut count = 0;
        let change = |mark: Mark| mark.needs_verdict().then_some(Mark::of(kind));
        self.marks.change_all(0..self.len(), change, |indices, _| count += indices.len());
        count
    }

    /// Returns true if some record has no verdict. A renewed record still needs one.
    pub fn has_open(&self) -> bool {
        self.marks.has_open()
    }

    /// Returns the number of records without a verdict.
    pub fn open_count(&self) -> usize {
        self.marks.count(Mark::needs_verdict)
    }

    /// Returns true if the acknowledgement of each record was collected.
    pub(crate) fn is_settled(&self) -> bool {
        self.marks.are_sent()
    }

    /// Takes the verdicts that are not sent.
    pub(crate) fn collect(&self) -> Vec<AcknowledgedRange> {
        let mut ranges = Vec::new();
        for (run, start) in self.runs.iter().zip(&self.starts) {
            let (first, last) = (*run.offsets.start(), *run.offsets.end());
            let count = usize::try_from(last - first + 1).unwrap_or(0);
            let offset = |index: usize| first + i64::try_from(index - start).unwrap_or(0);
            let next = |mark: Mark| mark.to_send().map(|(_, next)| next);
            self.marks.change_all(*start..*start + count, next, |indices, mark| {
                if let Some((kind, _)) = mark.to_send() {
                    append_range(
                        &mut ranges,
                        offset(indices.start),
                        offset(indices.end) - 1,
                        Verdict::Of(kind),
                    );
                }
            });
        }
        ranges
    }

    /// Handles the outcome of a renewal: a record whose lock could not be renewed needs no verdict any more. Returns the
    /// releases with a delay that this ends.
    pub(crate) fn handle_renewed(
        &self,
        range: &AcknowledgedRange,
        renewal: Renewal,
    ) -> Vec<AcknowledgedRange> {
        let mut special = self.special.lock();
        let mut ended = Vec::new();
        for offset in range.first..=range.last {
            match renewal {
                Renewal::Until(until) => {
                    special.renewed.insert(offset, until);
                    self.change(offset, Mark::renewed);
                }
                Renewal::Unchanged => {
                    self.change(offset, Mark::renewed);
                }
                Renewal::Lost => {
                    special.delayed.remove(&offset);
                    self.change(offset, |mark| (mark == Mark::Renewing).then_some(Mark::Sent));
                    // The application may have asked for the release while the renewal was in flight.
                    if self.change(offset, |mark| mark.is_delayed().then_some(Mark::Sent)) {
                        append(&mut ended, offset, Verdict::Of(AcknowledgeType::Release));
                    }
                }
            }
        }
        ended
    }

    /// The member has acquired `newer` records of the same session: locks of these ones have ended.
    pub(super) fn supersede(&self, newer: &Self) {
        let is_same = self.origin.topic_id == newer.origin.topic_id
            && self.partition().partition == newer.partition().partition;
        let (Some((first, last)), Some((newer_first, newer_last))) = (self.bounds(), newer.bounds()) else {
            return;
        };
        if !is_same || newer_first > last || newer_last < first {
            return;
        }
        let again = newer.runs.iter().flat_map(|run| run.offsets.clone());
        let again: Vec<i64> = again.filter(|offset| self.find(*offset).is_some()).collect();
        self.special.lock().superseded.extend(again);
    }

    /// Returns the first and the last offset.
    fn bounds(&self) -> Option<(i64, i64)> {
        Some((*self.runs.first()?.offsets.start(), *self.runs.last()?.offsets.end()))
    }

    /// Removes the offsets from `ranges` that were acquired again, and returns them.
    pub(super) fn split_superseded(&self, ranges: &mut Vec<AcknowledgedRange>) -> Vec<AcknowledgedRange> {
        let special = self.special.lock();
        let mut removed = Vec::new();
        if special.superseded.is_empty() {
            return removed;
        }
        let mut kept = Vec::new();
        for range in ranges.drain(..) {
            let mut next = range.first;
            for offset in special.superseded.range(range.first..=range.last) {
                if next < *offset {
                    kept.push(AcknowledgedRange { first: next, last: offset - 1, ..range });
                }
                append(&mut removed, *offset, range.verdict);
                next = offset + 1;
            }
            if next <= range.last {
                kept.push(AcknowledgedRange { first: next, ..range });
            }
        }
        *ranges = kept;
        removed
    }

    /// Returns the run of an offset, and the index of its mark.
    fn find(&self, offset: i64) -> Option<(&Run, usize)> {
        let at = self.runs.partition_point(|run| *run.offsets.end() < offset);
        let run = self.runs.get(at).filter(|run| run.offsets.contains(&offset))?;
        Some((run, self.starts[at] + usize::try_from(offset - run.offsets.start()).ok()?))
    }

    fn refused(&self, offset: i64, why: &str) -> Error {
        let key = self.partition();
        let detail = format!("the record with offset {offset} {why}");
        Error::new(ErrorKind::State, detail).with_partition(&*key.topic, key.partition)
    }
}

impl fmt::Debug for AcquiredRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquiredRecords")
            .field("partition", self.partition())
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}
