//! The records of one partition that one response acquired, and the application's verdict on each.
//!
//! The application's threads mark records, and a commit collects the marks. Both are atomic per record: a mark that is
//! collected can't be changed any more, so that each record is acknowledged at most once.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use ottla_protocol::{uuid::Uuid, vocabulary::TopicPartition};

use super::{
    acknowledgement::{AcknowledgeType, AcknowledgedRange, Verdict, append},
    shared::SessionId,
};
use crate::{
    error::{Error, ErrorKind},
    fetch::deliver::{FetchedRecords, MessageRef, PieceWalk},
    machine::Instant,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
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

/// Acquired offsets that could not be decoded. The client has acknowledged them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRecords {
    /// The offsets.
    pub offsets: RangeInclusive<i64>,
    /// Their error, and how they were acknowledged.
    pub error: Error,
}

/// The records of one partition that one response acquired for this member.
pub struct AcquiredRecords {
    pub(crate) fetched: Arc<FetchedRecords>,
    pub(crate) origin: Origin,
    runs: Vec<Run>,
    /// The index of the first mark of each run.
    starts: Vec<usize>,
    marks: Box<[AtomicU8]>,
    damaged: Vec<DamagedRecords>,
    /// When the acquisition lock ends, in nanoseconds.
    lock_until: AtomicU64,
}

/// The state of an acquired record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mark {
    /// The record needs a verdict.
    Open = 0,
    /// The record is accepted, and the acknowledgement not yet sent.
    Accepted = 1,
    Released = 2,
    Rejected = 3,
    /// The lock is to be renewed.
    ToRenew = 4,
    /// The acknowledgement was collected to be sent.
    Sent = 5,
    /// A renewal was collected to be sent; the record still needs a verdict.
    Renewing = 6,
}

impl Mark {
    const fn of(kind: AcknowledgeType) -> Self {
        match kind {
            AcknowledgeType::Accept => Self::Accepted,
            AcknowledgeType::Release => Self::Released,
            AcknowledgeType::Reject => Self::Rejected,
            AcknowledgeType::Renew => Self::ToRenew,
        }
    }

    const fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Open,
            1 => Self::Accepted,
            2 => Self::Released,
            3 => Self::Rejected,
            4 => Self::ToRenew,
            5 => Self::Sent,
            _ => Self::Renewing,
        }
    }

    /// Returns the verdict to send, and the mark of a record whose verdict is sent.
    const fn to_send(self) -> Option<(AcknowledgeType, Self)> {
        match self {
            Self::Accepted => Some((AcknowledgeType::Accept, Self::Sent)),
            Self::Released => Some((AcknowledgeType::Release, Self::Sent)),
            Self::Rejected => Some((AcknowledgeType::Reject, Self::Sent)),
            Self::ToRenew => Some((AcknowledgeType::Renew, Self::Renewing)),
            Self::Open | Self::Sent | Self::Renewing => None,
        }
    }

    const fn needs_verdict(self) -> bool {
        matches!(self, Self::Open | Self::ToRenew | Self::Renewing)
    }
}

impl AcquiredRecords {
    /// Creates the records of ascending `runs`, whose number the fetched bytes bound.
    pub(crate) fn new(
        fetched: FetchedRecords,
        origin: Origin,
        runs: Vec<Run>,
        damaged: Vec<DamagedRecords>,
        lock_until: Instant,
    ) -> Self {
        let mut starts = Vec::with_capacity(runs.len());
        let mut count = 0;
        for run in &runs {
            starts.push(count);
            count += usize::try_from(run.offsets.end() - run.offsets.start() + 1).unwrap_or(0);
        }
        Self {
            fetched: Arc::new(fetched),
            origin,
            runs,
            starts,
            marks: (0..count).map(|_| AtomicU8::new(Mark::Open as u8)).collect(),
            damaged,
            lock_until: AtomicU64::new(lock_until.as_nanos()),
        }
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
        self.marks.is_empty()
    }

    /// Returns the size of the fetched batches in bytes.
    pub fn bytes(&self) -> usize {
        self.fetched.bytes
    }

    /// Returns how often the record was delivered, including this time; `None` if the offset was not acquired.
    pub fn delivery_count(&self, offset: i64) -> Option<i16> {
        self.find(offset).map(|(run, _)| run.delivery_count)
    }

    /// Returns when the acquisition lock ends. Then the records may go to another member.
    pub fn lock_until(&self) -> Instant {
        Instant::from_nanos(self.lock_until.load(Ordering::Acquire))
    }

    /// Calls `each` with every acquired record and its delivery count, in the order of offsets.
    pub fn for_each(&self, mut each: impl FnMut(&MessageRef<'_>, i16)) {
        let mut walk = PieceWalk::new(Arc::clone(&self.fetched));
        let mut runs = self.runs.iter().peekable();
        while walk.run(usize::MAX, |message| {
            while runs.peek().is_some_and(|run| *run.offsets.end() < message.offset()) {
                runs.next();
            }
            if let Some(run) = runs.peek().filter(|run| run.offsets.contains(&message.offset())) {
                each(message, run.delivery_count);
            }
        }) > 0
        {}
    }

    /// Sets the verdict on a record. A later verdict replaces one that is not sent.
    ///
    /// Error: the offset is not one of these records', or its acknowledgement was sent already.
    pub fn acknowledge(&self, offset: i64, kind: AcknowledgeType) -> Result<(), Error> {
        let Some((_, index)) = self.find(offset) else {
            return Err(self.refused(offset, "was not acquired"));
        };
        let set = self.marks[index].fetch_update(Ordering::AcqRel, Ordering::Acquire, |mark| {
            (Mark::from_u8(mark) != Mark::Sent).then_some(Mark::of(kind) as u8)
        });
        set.map(|_| ()).map_err(|_| self.refused(offset, "was acknowledged already"))
    }

    /// Sets a verdict on all records without one. Returns their number.
    pub fn acknowledge_open(&self, kind: AcknowledgeType) -> usize {
        let set = |mark: &&AtomicU8| {
            mark.fetch_update(Ordering::AcqRel, Ordering::Acquire, |mark| {
                Mark::from_u8(mark).needs_verdict().then_some(Mark::of(kind) as u8)
            })
            .is_ok()
        };
        self.marks.iter().filter(set).count()
    }

    /// Returns true if some record has no verdict. A renewed record still needs one.
    pub fn has_open(&self) -> bool {
        self.marks.iter().any(|mark| Mark::from_u8(mark.load(Ordering::Acquire)).needs_verdict())
    }

    /// Returns true if the acknowledgement of each record was collected.
    pub(crate) fn is_settled(&self) -> bool {
        self.marks.iter().all(|mark| Mark::from_u8(mark.load(Ordering::Acquire)) == Mark::Sent)
    }

    /// Takes the verdicts that are not sent.
    pub(crate) fn collect(&self) -> Vec<AcknowledgedRange> {
        let mut ranges = Vec::new();
        for (run, start) in self.runs.iter().zip(&self.starts) {
            for (offset, mark) in run.offsets.clone().zip(&self.marks[*start..]) {
                let taken = mark.fetch_update(Ordering::AcqRel, Ordering::Acquire, |mark| {
                    Mark::from_u8(mark).to_send().map(|(_, next)| next as u8)
                });
                if let Ok(Some((kind, _))) = taken.map(|mark| Mark::from_u8(mark).to_send()) {
                    append(&mut ranges, offset, Verdict::Of(kind));
                }
            }
        }
        ranges
    }

    /// Handles the outcome of a renewal: a record whose lock could not be renewed needs no verdict any more.
    pub(crate) fn handle_renewed(&self, range: &AcknowledgedRange, lock_until: Option<Instant>) {
        let next = if lock_until.is_some() { Mark::Open } else { Mark::Sent };
        for offset in range.first..=range.last {
            if let Some((_, index)) = self.find(offset) {
                let _ = self.marks[index].compare_exchange(
                    Mark::Renewing as u8,
                    next as u8,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
            }
        }
        if let Some(until) = lock_until {
            self.lock_until.fetch_max(until.as_nanos(), Ordering::AcqRel);
        }
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
