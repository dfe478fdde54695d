//! The state of a partition's records in a share group: the member, delivery count and lock of each record (KIP-932).
//!
//! ```text
//!                     acquire                    accept
//!   Available ─────────────────────► Acquired ───────────► Acknowledged
//!       ▲     one delivery more       │  │  │    reject, gap
//!       │     release, lock expired   │  │  └─────────────► Archived
//!       └─────────────────────────────┘  │                     ▲
//!                                        └─────────────────────┘
//!                                          delivered as often as allowed
//! ```
//!
//! Consecutive records with the same state form a run, so that memory depends on the number of separate
//! acknowledgements and not on the number of records that a batch claims to have. The start offset follows all records
//! that are acknowledged or archived.
//!
//! # Pitfalls
//!
//! - A lock limit of 2,000 records does not divide a batch of 8,000 unless the client's own limit is strict
//!   (`lock_limit_divides_batches_only_with_a_strict_limit`).
//! - Locks of a share group are not persisted: the next leader knows neither locks nor delivery counts, so a record can
//!   be delivered for the first time twice (`new_leader_is_named_and_has_no_locks`).
//! - A batch of a few bytes may claim billions of records. Their states are kept as runs, not per record
//!   (`batch_that_claims_billions_of_records_takes_little_memory`).

use std::sync::Arc;

use bytes::Bytes;
use ottla_protocol::{error_code::ErrorCode, time::Instant};
use ottla_sorted::SortedMap;

use crate::{
    batch::read_header,
    log::{PartitionLog, StoredBatch},
    topics::Partition,
    transactions::PartitionTransactions,
};

/// The state of a partition in one share group.
#[derive(Debug)]
pub(crate) struct SharePartition {
    /// All records before are acknowledged or archived.
    start_offset: i64,
    /// No record from here on was ever delivered.
    end_offset: i64,
    /// The runs between start and end offset by their first offset, without gaps.
    runs: SortedMap<i64, Run>,
    /// The leader epoch of this state: a new leader has no locks.
    leader_epoch: i32,
    /// The time of the next lock check, if a timer is set.
    timer: Option<Instant>,
}

/// Consecutive records in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    last: i64,
    state: RecordState,
    delivery_count: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RecordState {
    Available,
    Acquired { member: Arc<str>, until: Instant },
    Acknowledged,
    Archived,
}

/// The use of consecutive records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordUse<'a> {
    Available,
    /// A member has them.
    Acquired(&'a str),
    Acknowledged,
    Archived,
}

/// The limits of a ShareFetch for one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireLimits {
    /// The maximum number of records; the last batch may exceed it.
    pub max_records: i64,
    /// The last batch may not exceed `max_records`.
    pub is_strict: bool,
    /// Ranges of new records end with the batch in which they reach this number of records.
    pub batch_size: i64,
    pub max_bytes: usize,
    /// Returns the first batch regardless of its size.
    pub at_least_one: bool,
    /// The maximum number of records in flight. The last batch may exceed it, unless the limit of records is strict.
    pub max_record_locks: i64,
    /// The time at which the locks expire.
    pub until: Instant,
}

/// The records that a share group may get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub log: &'a PartitionLog,
    /// The high watermark, or the last stable offset with `read_committed`.
    pub end: i64,
    /// The transactions of the partition with `read_committed`: records of aborted ones are skipped.
    pub committed: Option<&'a PartitionTransactions>,
}

/// The result of a ShareFetch for one partition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub ranges: Vec<AcquiredRange>,
    /// The record batches that contain the acquired records.
    pub batches: Vec<Bytes>,
    pub bytes: usize,
    pub records: i64,
}

/// Consecutive records that a member has acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcquiredRange {
    pub first: i64,
    pub last: i64,
    pub delivery_count: i16,
}

/// The acknowledgement of consecutive records in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    pub first: i64,
    pub last: i64,
    /// One type for all records, or one for each.
    pub types: Vec<AcknowledgeType>,
}

/// The type of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcknowledgeType {
    /// The log has no record at this offset.
    Gap,
    Accept,
    /// The record may be delivered again.
    Release,
    Reject,
    /// The member needs more time (KIP-1222).
    Renew,
}

/// The rules for released and renewed records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRules {
    /// The maximum number of deliveries of a record.
    pub max_delivery_count: i16,
    /// The time at which renewed locks expire.
    pub renewed_until: Instant,
}

impl AcknowledgeType {
    /// Converts the protocol's number.
    pub fn from_i8(value: i8) -> Option<Self> {
        match value {
            0 => Some(Self::Gap),
            1 => Some(Self::Accept),
            2 => Some(Self::Release),
            3 => Some(Self::Reject),
            4 => Some(Self::Renew),
            _ => None,
        }
    }
}

impl SharePartition {
    /// Creates the state of a partition from which nothing was delivered; delivery begins at `start_offset`.
    pub fn new(start_offset: i64, leader_epoch: i32) -> Self {
        Self { start_offset, end_offset: start_offset, runs: SortedMap::new(), leader_epoch, timer: None }
    }

    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Returns the use of the records between start and end offset: first and last offset, and use.
    pub fn uses(&self) -> impl Iterator<Item = (i64, i64, RecordUse<'_>)> {
        self.runs.iter().map(|(first, run)| {
            let used = match &run.state {
                RecordState::Available => RecordUse::Available,
                RecordState::Acquired { member, .. } => RecordUse::Acquired(member),
                RecordState::Acknowledged => RecordUse::Acknowledged,
                RecordState::Archived => RecordUse::Archived,
            };
            (*first, run.last, used)
        })
    }

    /// Returns the number of records before `end` that are neither acknowledged nor archived.
    pub fn lag(&self, end: i64) -> i64 {
        let done = self.runs.iter().filter(|(_, run)| run.is_done()).map(|(first, run)| run.last - first + 1);
        (end - self.start_offset - done.sum::<i64>()).max(0)
    }

    /// Adapts to changes of the partition: its log start, its end and its leader epoch.
    pub fn see(&mut self, partition: &Partition) {
        self.move_to(partition.leader_epoch);
        self.truncate(partition.log.end_offset());
        self.advance_start(partition.log.start_offset());
    }

    /// Drops the state of records before the new log start offset, locked or not.
    fn advance_start(&mut self, offset: i64) {
        if offset <= self.start_offset {
            return;
        }
        self.split(offset);
        self.runs = self.runs.split_off(&offset);
        self.start_offset = offset;
        self.end_offset = self.end_offset.max(offset);
        self.drop_done();
    }

    /// Drops the state of records that the log lost from this offset on.
    fn truncate(&mut self, offset: i64) {
        if offset >= self.end_offset {
            return;
        }
        self.split(offset);
        drop(self.runs.split_off(&offset));
        self.start_offset = self.start_offset.min(offset);
        self.end_offset = offset;
    }

    /// Drops all locks and their deliveries because the leader has changed: leaders persist only the outcome of
    /// records.
    fn move_to(&mut self, leader_epoch: i32) {
        if leader_epoch == self.leader_epoch {
            return;
        }
        self.leader_epoch = leader_epoch;
        for run in self.runs.values_mut() {
            if matches!(run.state, RecordState::Acquired { .. }) {
                run.state = RecordState::Available;
                run.delivery_count -= 1;
            }
        }
    }

    /// Acquires records for a member.
    pub fn acquire(&mut self, member: &Arc<str>, limits: &AcquireLimits, source: Source<'_>) -> Acquired {
        let mut acquired = Acquired::default();
        for batch in source.log.batches_from(self.first_available()) {
            let is_first = acquired.bytes == 0 && limits.at_least_one;
            let is_full = !is_first && acquired.bytes + batch.bytes.len() > limits.max_bytes;
            let is_enough = acquired.records >= limits.max_records || is_full;
            if is_enough || batch.last_offset >= source.end || !self.may_reach(batch, limits) {
                break;
            }
            if batch.last_offset >= self.end_offset && source.skips(batch) {
                self.skip_to(batch.last_offset + 1);
                continue;
            }
            let before = acquired.records;
            let first = batch.base_offset.max(self.start_offset);
            self.acquire_within(first, batch.last_offset, member, limits, &mut acquired);
            if acquired.records > before {
                acquired.bytes += batch.bytes.len();
                acquired.batches.push(batch.bytes.clone());
            }
        }
        self.drop_done();
        acquired
    }

    /// Returns how many bytes can be acquired; stops counting at `enough`.
    pub fn available_bytes(&self, limits: &AcquireLimits, source: Source<'_>, enough: usize) -> usize {
        let mut bytes = 0;
        for batch in source.log.batches_from(self.first_available()) {
            if bytes >= enough || batch.last_offset >= source.end || !self.may_reach(batch, limits) {
                break;
            }
            let has_new = batch.last_offset >= self.end_offset && self.room(limits) > 0;
            let is_available = |(_, run): &(i64, Run)| run.state == RecordState::Available;
            if has_new && !source.skips(batch)
                || self.within(batch.base_offset, batch.last_offset).iter().any(is_available)
            {
                bytes += batch.bytes.len();
            }
        }
        bytes
    }

    /// Applies a member's acknowledgements, all or none. Returns true if records became available.
    pub fn acknowledge(
        &mut self,
        member: &str,
        acknowledgements: &[Acknowledgement],
        rules: DeliveryRules,
    ) -> Result<bool, (ErrorCode, &'static str)> {
        let before = self.runs.clone();
        let mut released = false;
        for acknowledgement in acknowledgements {
            match self.acknowledge_range(member, acknowledgement, rules) {
                Ok(some) => released |= some,
                Err(error) => {
                    self.runs = before;
                    return Err(error);
                }
            }
        }
        self.drop_done();
        Ok(released)
    }

    /// Releases all records of a member that has left. Returns true if there were any.
    pub fn release(&mut self, member: &str, max_delivery_count: i16) -> bool {
        self.give_back(max_delivery_count, |owner, _| owner == member)
    }

    /// Releases expired locks. Returns true if records became available.
    pub fn expire(&mut self, now: Instant, max_delivery_count: i16) -> bool {
        self.timer = self.timer.filter(|timer| *timer > now);
        self.give_back(max_delivery_count, |_, until| until <= now)
    }

    /// Returns when the locks must be checked next, if no timer is set for it.
    pub fn next_timer(&mut self) -> Option<Instant> {
        let next = self.runs.values().filter_map(Run::locked_until).min()?;
        if self.timer.is_some_and(|timer| timer <= next) {
            return None;
        }
        self.timer = Some(next);
        Some(next)
    }

    fn first_available(&self) -> i64 {
        let available = self.runs.iter().find(|(_, run)| run.state == RecordState::Available);
        available.map_or(self.end_offset, |(first, _)| *first)
    }

    /// Returns true if records of the batch, or records behind it, may be acquired.
    fn may_reach(&self, batch: &StoredBatch, limits: &AcquireLimits) -> bool {
        // A strict limit may have divided the batch: its first records are acquired again after a release.
        let is_known = batch.base_offset < self.end_offset;
        is_known || self.room(limits) > 0
    }

    /// Returns how many new records the lock limit allows.
    fn room(&self, limits: &AcquireLimits) -> i64 {
        limits.max_record_locks - (self.end_offset - self.start_offset)
    }

    /// Acquires available records within the offsets of a batch.
    fn acquire_within(
        &mut self,
        first: i64,
        last: i64,
        member: &Arc<str>,
        limits: &AcquireLimits,
        acquired: &mut Acquired,
    ) {
        let left = |acquired: &Acquired| {
            if limits.is_strict { limits.max_records - acquired.records } else { i64::MAX }
        };
        let locked = RecordState::Acquired { member: member.clone(), until: limits.until };
        for (from, run) in self.within(first, last) {
            let count = (run.last - from + 1).min(left(acquired));
            if run.state == RecordState::Available && count > 0 {
                let range = AcquiredRange {
                    first: from,
                    last: from + count - 1,
                    delivery_count: run.delivery_count.saturating_add(1),
                };
                self.put(range.first, range.last, locked.clone(), range.delivery_count);
                acquired.push(range, limits.batch_size);
            }
        }
        let at = first.max(self.end_offset);
        let room = self.room(limits);
        let most = if limits.is_strict { room } else { i64::MAX };
        let count = (last - at + 1).min(left(acquired)).min(most);
        if room > 0 && count > 0 {
            self.skip_to(at);
            let range = AcquiredRange { first: at, last: at + count - 1, delivery_count: 1 };
            self.end_offset = range.last + 1;
            self.put(range.first, range.last, locked, range.delivery_count);
            acquired.push(range, limits.batch_size);
        }
    }

    /// Archives the missing offsets before `offset`.
    fn skip_to(&mut self, offset: i64) {
        let from = self.end_offset;
        if from < offset {
            self.end_offset = offset;
            self.put(from, offset - 1, RecordState::Archived, 0);
        }
    }

    fn acknowledge_range(
        &mut self,
        member: &str,
        acknowledgement: &Acknowledgement,
        rules: DeliveryRules,
    ) -> Result<bool, (ErrorCode, &'static str)> {
        let Acknowledgement { first, last, types } = acknowledgement;
        if *last < self.start_offset {
            return Ok(false);
        }
        if *last >= self.end_offset {
            return Err((ErrorCode::INVALID_REQUEST, "The offsets are past all records that were acquired."));
        }
        let mut released = false;
        let from = (*first).max(self.start_offset);
        for (at, run) in self.within(from, *last) {
            match &run.state {
                RecordState::Acquired { member: owner, .. } if **owner == *member => {}
                RecordState::Acquired { .. } => {
                    return Err((
                        ErrorCode::INVALID_RECORD_STATE,
                        "The member is not the owner of the records.",
                    ));
                }
                _ => return Err((ErrorCode::INVALID_RECORD_STATE, "The records are not acquired.")),
            }
            let (mut at, mut rest) = (at, types.as_slice());
            if let [one] = types.as_slice() {
                released |= self.settle(at, run.last, &run, *one, rules);
                continue;
            }
            // There is one type for each offset: equal neighbours are grouped.
            let skipped = usize::try_from(at - first).unwrap_or(usize::MAX);
            rest = rest.get(skipped..).unwrap_or_default();
            while let Some(next) = rest.first()
                && at <= run.last
            {
                let same = rest.iter().take_while(|other| *other == next).count();
                let count = i64::try_from(same).unwrap_or(i64::MAX).min(run.last - at + 1);
                released |= self.settle(at, at + count - 1, &run, *next, rules);
                at += count;
                rest = &rest[usize::try_from(count).unwrap_or(0)..];
            }
        }
        Ok(released)
    }

    /// Applies an acknowledgement to acquired records. Returns true if they became available.
    fn settle(
        &mut self,
        first: i64,
        last: i64,
        run: &Run,
        acknowledge_type: AcknowledgeType,
        rules: DeliveryRules,
    ) -> bool {
        let state = match (acknowledge_type, &run.state) {
            (AcknowledgeType::Accept, _) => RecordState::Acknowledged,
            (AcknowledgeType::Release, _) => run.given_back(rules.max_delivery_count),
            (AcknowledgeType::Renew, RecordState::Acquired { member, .. }) => {
                RecordState::Acquired { member: member.clone(), until: rules.renewed_until }
            }
            (AcknowledgeType::Renew | AcknowledgeType::Reject | AcknowledgeType::Gap, _) => {
                RecordState::Archived
            }
        };
        let is_available = state == RecordState::Available;
        self.put(first, last, state, run.delivery_count);
        is_available
    }

    /// Makes acquired records available, or archives them after too many deliveries.
    fn give_back(&mut self, max_delivery_count: i16, is_meant: impl Fn(&str, Instant) -> bool) -> bool {
        let mut changed = false;
        for (first, run) in self.within(self.start_offset, self.end_offset - 1) {
            if let RecordState::Acquired { member, until } = &run.state
                && is_meant(member, *until)
            {
                self.put(first, run.last, run.given_back(max_delivery_count), run.delivery_count);
                changed = true;
            }
        }
        self.drop_done();
        changed
    }

    /// Returns the runs of these offsets, clipped at both ends.
    fn within(&self, first: i64, last: i64) -> Vec<(i64, Run)> {
        let before = self.runs.range(..first).next_back();
        let all = before.into_iter().chain(self.runs.range(first..=last.max(first)));
        let overlapping = all.filter(|(from, run)| run.last >= first && **from <= last);
        overlapping
            .map(|(from, run)| (first.max(*from), Run { last: last.min(run.last), ..run.clone() }))
            .collect()
    }

    /// Sets the state of records, and merges the run with neighbours in the same state.
    fn put(&mut self, mut first: i64, mut last: i64, state: RecordState, delivery_count: i16) {
        let delivery_count = match state {
            RecordState::Available | RecordState::Acquired { .. } => delivery_count,
            RecordState::Acknowledged | RecordState::Archived => 0,
        };
        self.split(first);
        self.split(last + 1);
        for (from, _) in self.within(first, last) {
            self.runs.remove(&from);
        }
        let is_same = |run: &Run| run.state == state && run.delivery_count == delivery_count;
        if let Some((from, run)) = self.runs.range(..first).next_back()
            && run.last + 1 == first
            && is_same(run)
        {
            first = *from;
        }
        if let Some(run) = self.runs.get(&(last + 1))
            && is_same(run)
        {
            let next = last + 1;
            last = run.last;
            self.runs.remove(&next);
        }
        self.runs.insert(first, Run { last, state, delivery_count });
    }

    /// Splits the run that contains `offset`, so that a run begins there.
    fn split(&mut self, offset: i64) {
        if let Some((_, run)) = self.runs.range_mut(..offset).next_back()
            && run.last >= offset
        {
            let after = run.clone();
            run.last = offset - 1;
            self.runs.insert(offset, after);
        }
    }

    /// Advances the start offset past acknowledged and archived records.
    fn drop_done(&mut self) {
        while let Some(run) = self.runs.first_entry()
            && run.get().is_done()
        {
            self.start_offset = run.remove().last + 1;
        }
    }
}

impl Source<'_> {
    /// Returns true if the batch has no records for the group.
    fn skips(&self, batch: &StoredBatch) -> bool {
        let is_aborted = |producer_id| {
            self.committed.is_some_and(|committed| committed.is_aborted(producer_id, batch.base_offset))
        };
        read_header(&batch.bytes).is_ok_and(|header| {
            header.is_control() || header.is_transactional() && is_aborted(header.producer_id)
        })
    }
}

impl Run {
    fn is_done(&self) -> bool {
        matches!(self.state, RecordState::Acknowledged | RecordState::Archived)
    }

    fn locked_until(&self) -> Option<Instant> {
        match self.state {
            RecordState::Acquired { until, .. } => Some(until),
            _ => None,
        }
    }

    /// Returns the state of released records.
    fn given_back(&self, max_delivery_count: i16) -> RecordState {
        if self.delivery_count >= max_delivery_count { RecordState::Archived } else { RecordState::Available }
    }
}

impl Acquired {
    /// Adds records, to the last range if they follow it and it is short enough.
    fn push(&mut self, range: AcquiredRange, batch_size: i64) {
        self.records += range.last - range.first + 1;
        match self.ranges.last_mut() {
            Some(last)
                if last.last + 1 == range.first
                    && last.delivery_count == range.delivery_count
                    && last.last - last.first + 1 < batch_size =>
            {
                last.last = range.last;
            }
            _ => self.ranges.push(range),
        }
    }
}

#[cfg(test)]
mod tests;
