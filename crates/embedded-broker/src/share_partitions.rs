//! What a share group has made of a partition's records: who has which, how often they were delivered, until when (KIP-932).
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
//! Records of one state lie in runs of consecutive offsets, so that memory follows what was acknowledged apart, and not how
//! many records a batch claims to have. The start offset is behind everything that is acknowledged or archived for good.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use ottla_protocol::{error_code::ErrorCode, time::Instant};

use crate::{
    batch::read_header,
    log::{PartitionLog, StoredBatch},
    topics::Partition,
};

/// A partition as one share group sees it.
#[derive(Debug)]
pub(crate) struct SharePartition {
    /// Everything before is done with.
    start_offset: i64,
    /// Nothing from here on was ever delivered.
    end_offset: i64,
    /// What lies in between, by its first offset, without holes.
    runs: BTreeMap<i64, Run>,
    /// In which epoch of the partition's leader this was true: a new leader knows of no locks.
    leader_epoch: i32,
    /// When the locks are looked at next, if that was arranged for.
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

/// What a ShareFetch may acquire of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireLimits {
    /// So many records, and what follows in the last one's batch.
    pub max_records: i64,
    /// Not even what follows in the last one's batch.
    pub is_strict: bool,
    /// Ranges of new records end with the batch in which they reach so many.
    pub batch_size: i64,
    pub max_bytes: usize,
    /// The first batch is given whatever its size.
    pub at_least_one: bool,
    /// So many records may be under way at once.
    pub max_record_locks: i64,
    /// Until when the member has them for itself.
    pub until: Instant,
    /// Nothing from the first record of a transaction on: there are no transactions here that could end.
    pub read_committed: bool,
}

/// What a ShareFetch got of a partition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub ranges: Vec<AcquiredRange>,
    /// The record batches in which these lie.
    pub batches: Vec<Bytes>,
    pub bytes: usize,
    pub records: i64,
}

/// Consecutive records that a member has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcquiredRange {
    pub first: i64,
    pub last: i64,
    pub delivery_count: i16,
}

/// What becomes of consecutive records, in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    pub first: i64,
    pub last: i64,
    /// One for all, or one for each.
    pub types: Vec<AcknowledgeType>,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcknowledgeType {
    /// There is no such record in the log.
    Gap,
    Accept,
    /// It may be delivered again.
    Release,
    Reject,
    /// The member needs more time (KIP-1222).
    Renew,
}

/// What decides over records that are given back or kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRules {
    /// How often a record is delivered at most.
    pub max_delivery_count: i16,
    /// Until when a renewed lock holds.
    pub renewed_until: Instant,
}

impl AcknowledgeType {
    /// As it is written in requests.
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
    /// A partition from which nothing was delivered, and nothing before `start_offset` will be.
    pub fn new(start_offset: i64, leader_epoch: i32) -> Self {
        Self { start_offset, end_offset: start_offset, runs: BTreeMap::new(), leader_epoch, timer: None }
    }

    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// How many records up to `end` are not done with.
    pub fn lag(&self, end: i64) -> i64 {
        let done = self.runs.iter().filter(|(_, run)| run.is_done()).map(|(first, run)| run.last - first + 1);
        (end - self.start_offset - done.sum::<i64>()).max(0)
    }

    /// Takes notice of what has become of the partition since.
    pub fn see(&mut self, partition: &Partition) {
        self.move_to(partition.leader_epoch);
        self.truncate(partition.log.end_offset());
        self.advance_start(partition.log.start_offset());
    }

    /// The log begins here now: what was before is gone, whoever had it.
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

    /// The log lost what was from here on.
    fn truncate(&mut self, offset: i64) {
        if offset >= self.end_offset {
            return;
        }
        self.split(offset);
        self.runs.split_off(&offset);
        self.start_offset = self.start_offset.min(offset);
        self.end_offset = offset;
    }

    /// Another leader has taken over: locks are lost, and with them the deliveries that they stood for, because leaders
    /// write down only what became of records.
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

    /// Gives a member records below `end`.
    pub fn acquire(
        &mut self,
        member: &Arc<str>,
        limits: &AcquireLimits,
        log: &PartitionLog,
        end: i64,
    ) -> Acquired {
        let mut acquired = Acquired::default();
        for batch in log.batches_from(self.first_available()) {
            let is_first = acquired.bytes == 0 && limits.at_least_one;
            let is_full = !is_first && acquired.bytes + batch.bytes.len() > limits.max_bytes;
            let is_enough = acquired.records >= limits.max_records || is_full;
            if is_enough || batch.last_offset >= end || !self.may_reach(batch, limits) {
                break;
            }
            if batch.last_offset >= self.end_offset && is_control(batch) {
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

    /// How many bytes could be acquired below `end`, at least if it is less than `enough`.
    pub fn available_bytes(
        &self,
        limits: &AcquireLimits,
        log: &PartitionLog,
        end: i64,
        enough: usize,
    ) -> usize {
        let mut bytes = 0;
        for batch in log.batches_from(self.first_available()) {
            if bytes >= enough || batch.last_offset >= end || !self.may_reach(batch, limits) {
                break;
            }
            let is_new = batch.last_offset >= self.end_offset;
            let is_available = |(_, run): &(i64, Run)| run.state == RecordState::Available;
            if is_new && !is_control(batch)
                || self.within(batch.base_offset, batch.last_offset).iter().any(is_available)
            {
                bytes += batch.bytes.len();
            }
        }
        bytes
    }

    /// A member says what becomes of records that it has: all of it is done, or nothing. True if some became available.
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

    /// A member is gone: what it has is for others. True if that is something.
    pub fn release(&mut self, member: &str, max_delivery_count: i16) -> bool {
        self.give_back(max_delivery_count, |owner, _| owner == member)
    }

    /// Locks have expired. True if that made records available.
    pub fn expire(&mut self, now: Instant, max_delivery_count: i16) -> bool {
        self.timer = self.timer.filter(|timer| *timer > now);
        self.give_back(max_delivery_count, |_, until| until <= now)
    }

    /// When the locks have to be looked at next, if that wasn't arranged for already.
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

    /// Something of the batch may be acquired, or something behind it.
    fn may_reach(&self, batch: &StoredBatch, limits: &AcquireLimits) -> bool {
        let is_known = batch.last_offset < self.end_offset;
        is_known || self.room(limits) > 0 && !(limits.read_committed && is_transactional(batch))
    }

    /// How many records that were never delivered may be.
    fn room(&self, limits: &AcquireLimits) -> i64 {
        limits.max_record_locks - (self.end_offset - self.start_offset)
    }

    /// Acquires what there is within the offsets of a batch.
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
        let count = (last - at + 1).min(left(acquired)).min(self.room(limits));
        if count > 0 {
            self.skip_to(at);
            let range = AcquiredRange { first: at, last: at + count - 1, delivery_count: 1 };
            self.end_offset = range.last + 1;
            self.put(range.first, range.last, locked, range.delivery_count);
            acquired.push(range, limits.batch_size);
        }
    }

    /// Archives what there never was before `offset`.
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
            // One type for each offset: those that are the same go together.
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

    /// Does to acquired records what their acknowledgement demands. True if they became available.
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

    /// Makes acquired records available, or archives them if they were delivered too often.
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

    /// The runs of these offsets, cut off at both ends.
    fn within(&self, first: i64, last: i64) -> Vec<(i64, Run)> {
        let before = self.runs.range(..first).next_back();
        let all = before.into_iter().chain(self.runs.range(first..=last.max(first)));
        let overlapping = all.filter(|(from, run)| run.last >= first && **from <= last);
        overlapping
            .map(|(from, run)| (first.max(*from), Run { last: last.min(run.last), ..run.clone() }))
            .collect()
    }

    /// Brings records into a state, and into one run with their neighbours if these are in the same.
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

    /// Lets a run begin at `offset`, if there are records before and after.
    fn split(&mut self, offset: i64) {
        if let Some((_, run)) = self.runs.range_mut(..offset).next_back()
            && run.last >= offset
        {
            let after = run.clone();
            run.last = offset - 1;
            self.runs.insert(offset, after);
        }
    }

    /// Moves the start offset behind what is done with.
    fn drop_done(&mut self) {
        while let Some(run) = self.runs.first_entry()
            && run.get().is_done()
        {
            self.start_offset = run.remove().last + 1;
        }
    }
}

fn is_control(batch: &StoredBatch) -> bool {
    read_header(&batch.bytes).is_ok_and(|header| header.is_control())
}

fn is_transactional(batch: &StoredBatch) -> bool {
    read_header(&batch.bytes).is_ok_and(|header| header.is_transactional())
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

    /// What becomes of records that nobody has any more.
    fn given_back(&self, max_delivery_count: i16) -> RecordState {
        if self.delivery_count >= max_delivery_count { RecordState::Archived } else { RecordState::Available }
    }
}

impl Acquired {
    /// Adds records: to the last range if they go on from there, unless it is long enough.
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
mod tests {
    use std::time::Duration;

    use ottla_protocol::batch::reader::BatchHeader;

    use super::*;
    use crate::random::Random;

    /// What is known of one record.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Known {
        state: RecordState,
        delivery_count: i16,
    }

    /// The same partition, record by record.
    #[derive(Debug)]
    struct Model {
        start: usize,
        records: Vec<Known>,
    }

    impl Model {
        fn drop_done(&mut self) {
            let is_done =
                |known: &Known| matches!(known.state, RecordState::Acknowledged | RecordState::Archived);
            while self.records.get(self.start).is_some_and(is_done) {
                self.start += 1;
            }
        }

        fn give_back(&mut self, limit: i16, is_meant: impl Fn(&str, Instant) -> bool) {
            for known in &mut self.records[self.start..] {
                if let RecordState::Acquired { member, until } = &known.state
                    && is_meant(member, *until)
                {
                    let often = known.delivery_count >= limit;
                    known.state = if often { RecordState::Archived } else { RecordState::Available };
                }
            }
            self.drop_done();
        }

        /// Acquires as the partition says it did, which has to be what was available, without exception from its start.
        fn acquire(&mut self, acquired: &Acquired, locked: &RecordState, limits: &AcquireLimits) {
            let mut records = 0;
            for range in &acquired.ranges {
                for offset in range.first..=range.last {
                    let at = usize::try_from(offset).unwrap();
                    if at == self.records.len() {
                        self.records.push(Known { state: RecordState::Available, delivery_count: 0 });
                    }
                    let known = &mut self.records[at];
                    assert_eq!(known.state, RecordState::Available, "offset {offset}");
                    known.delivery_count += 1;
                    assert_eq!(known.delivery_count, range.delivery_count);
                    known.state = locked.clone();
                    records += 1;
                }
            }
            assert_eq!(records, acquired.records);
            assert!(!limits.is_strict || records <= limits.max_records);
            assert!(i64::try_from(self.records.len() - self.start).unwrap() <= limits.max_record_locks);
            if let Some(last) = acquired.ranges.last() {
                let before = &self.records[self.start..usize::try_from(last.last).unwrap()];
                assert!(before.iter().all(|known| known.state != RecordState::Available), "none is skipped");
            }
        }

        fn acknowledge(
            &mut self,
            member: &str,
            acknowledgement: &Acknowledgement,
            rules: DeliveryRules,
        ) -> bool {
            let first = usize::try_from(acknowledgement.first).unwrap();
            let last = usize::try_from(acknowledgement.last).unwrap();
            if last < self.start {
                return true;
            }
            if last >= self.records.len() {
                return false;
            }
            let has = |known: &Known| matches!(&known.state, RecordState::Acquired { member: owner, .. } if **owner == *member);
            if !self.records[first.max(self.start)..=last].iter().all(has) {
                return false;
            }
            for at in first.max(self.start)..=last {
                let types = &acknowledgement.types;
                let acknowledge_type = if types.len() == 1 { types[0] } else { types[at - first] };
                let known = &mut self.records[at];
                let often = known.delivery_count >= rules.max_delivery_count;
                known.state = match acknowledge_type {
                    AcknowledgeType::Accept => RecordState::Acknowledged,
                    AcknowledgeType::Release if !often => RecordState::Available,
                    AcknowledgeType::Renew => {
                        RecordState::Acquired { member: member.into(), until: rules.renewed_until }
                    }
                    _ => RecordState::Archived,
                };
            }
            true
        }

        fn compare(&self, partition: &SharePartition) {
            assert_eq!(partition.start_offset, i64::try_from(self.start).unwrap());
            assert_eq!(partition.end_offset, i64::try_from(self.records.len()).unwrap());
            let mut next = partition.start_offset;
            for (first, run) in &partition.runs {
                assert_eq!(*first, next, "runs follow each other");
                assert!(run.last >= *first);
                for offset in *first..=run.last {
                    let known = &self.records[usize::try_from(offset).unwrap()];
                    assert_eq!(known.state, run.state, "offset {offset}");
                    assert!(run.is_done() || known.delivery_count == run.delivery_count);
                }
                next = run.last + 1;
            }
            assert_eq!(next, partition.end_offset);
        }
    }

    /// Batches of 1 to 7 records.
    fn log(random: &mut Random, batches: i32) -> PartitionLog {
        let mut log = PartitionLog::default();
        for _ in 0..batches {
            let records = i32::try_from(random.next_u64() % 7 + 1).unwrap();
            let header = BatchHeader {
                base_offset: 0,
                partition_leader_epoch: 0,
                crc: 0,
                attributes: 0,
                last_offset_delta: records - 1,
                base_timestamp: 0,
                max_timestamp: 0,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: records,
                size: 100,
            };
            log.append(&header, 0, 0, Bytes::from(vec![0; 100]));
        }
        log
    }

    #[test]
    fn runs_say_the_same_as_a_list_of_all_records_whatever_is_done() {
        const TYPES: [AcknowledgeType; 5] = [
            AcknowledgeType::Gap,
            AcknowledgeType::Accept,
            AcknowledgeType::Release,
            AcknowledgeType::Reject,
            AcknowledgeType::Renew,
        ];
        let members: Vec<Arc<str>> = vec!["a".into(), "b".into(), "c".into()];
        let mut done = 0;
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let log = log(&mut random, 30);
            let mut partition = SharePartition::new(0, 0);
            let mut model = Model { start: 0, records: Vec::new() };
            let mut now = Instant::ZERO;
            for _ in 0..150 {
                let mut below = |n: u64| i64::try_from(random.next_u64() % n).unwrap();
                let rules =
                    DeliveryRules { max_delivery_count: 3, renewed_until: now + Duration::from_secs(20) };
                let member = members[usize::try_from(below(3)).unwrap()].clone();
                match below(10) {
                    0..=3 => {
                        let limits = AcquireLimits {
                            max_records: below(12),
                            is_strict: below(2) == 0,
                            batch_size: below(5) + 1,
                            max_bytes: usize::try_from(below(5) * 100).unwrap(),
                            at_least_one: below(2) == 0,
                            max_record_locks: 25,
                            until: now + Duration::from_secs(10),
                            read_committed: false,
                        };
                        let acquired = partition.acquire(&member, &limits, &log, log.end_offset());
                        let locked = RecordState::Acquired { member, until: limits.until };
                        model.acquire(&acquired, &locked, &limits);
                    }
                    4..=7 => {
                        let first = below(u64::try_from(partition.end_offset).unwrap() + 2);
                        let last = first + below(6);
                        let count = if below(2) == 0 { 1 } else { last - first + 1 };
                        let types = (0..count).map(|_| TYPES[usize::try_from(below(5)).unwrap()]).collect();
                        let acknowledgement = Acknowledgement { first, last, types };
                        let expected = model.acknowledge(&member, &acknowledgement, rules);
                        let acknowledged = partition.acknowledge(&member, &[acknowledgement], rules);
                        assert_eq!(acknowledged.is_ok(), expected);
                        model.drop_done();
                        done += usize::from(expected);
                    }
                    8 => {
                        now += Duration::from_secs(4);
                        partition.expire(now, 3);
                        model.give_back(3, |_, until| until <= now);
                    }
                    _ => {
                        partition.release(&member, 3);
                        model.give_back(3, |owner, _| owner == &*member);
                    }
                }
                model.compare(&partition);
            }
        }
        assert!(done > 1000, "only {done} acknowledgements were of records that the member had");
    }
}
