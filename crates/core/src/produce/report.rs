//! Delivery reports: one per batch, unfolded per record only when the application looks.

use std::{
    fmt,
    ops::Range,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{error::Error, sync::Mutex};

/// The fate of some records of one partition, in the order in which they were sent.
#[derive(Debug)]
pub struct DeliveryBatch {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) outcome: Result<Delivered, Error>,
    pub(crate) status: PersistenceStatus,
    pub(crate) tags: Tags,
    pub(crate) len: usize,
    pub(crate) charged_bytes: u64,
    /// Who was sent the records, if anybody; -1 otherwise.
    pub(crate) broker_id: i32,
}

/// What the broker said of a batch that it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The first record's offset; `None` with `acks=0`, where the broker says nothing.
    pub base_offset: Option<i64>,
    /// The broker's time in milliseconds, if the topic keeps that instead of the producer's.
    pub log_append_time: Option<i64>,
}

/// Whether records are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistenceStatus {
    /// They were certainly not written.
    NotPersisted,
    /// They may have been written.
    PossiblyPersisted,
    /// They were written and acknowledged.
    Persisted,
}

/// The fate of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReport<'a> {
    /// The offset in the partition, where the broker told it.
    pub offset: Option<i64>,
    /// The number that came with the record.
    pub opaque: u64,
    /// Whether the record is in the log.
    pub status: PersistenceStatus,
    /// Why it was not delivered.
    pub error: Option<&'a Error>,
}

impl DeliveryBatch {
    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition; -1 if the records never got one.
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Why the records were not delivered.
    pub fn error(&self) -> Option<&Error> {
        self.outcome.as_ref().err()
    }

    /// Whether the records are in the log.
    pub const fn status(&self) -> PersistenceStatus {
        self.status
    }

    /// The first record's offset.
    pub fn base_offset(&self) -> Option<i64> {
        self.outcome.as_ref().ok().and_then(|delivered| delivered.base_offset)
    }

    /// The broker's time in milliseconds, if the topic keeps that.
    pub fn log_append_time(&self) -> Option<i64> {
        self.outcome.as_ref().ok().and_then(|delivered| delivered.log_append_time)
    }

    /// The broker that answered, or that was sent the records last and did not; `None` if they never left, or its id is
    /// not known.
    pub const fn broker_id(&self) -> Option<i32> {
        if self.broker_id < 0 { None } else { Some(self.broker_id) }
    }

    pub(crate) const fn sent_to(mut self, broker_id: i32) -> Self {
        self.broker_id = broker_id;
        self
    }

    /// How many records.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no record, which does not happen.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the records' keys, values and headers, as the queue's limit counts them.
    pub const fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// The records' numbers, in order; empty if the application asked for no reports.
    pub fn opaques(&self) -> &[u64] {
        match &self.tags {
            Tags::None => &[],
            Tags::Opaque(opaques) => opaques,
        }
    }

    /// A report per record.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DeliveryReport<'_>> {
        let base = self.base_offset();
        let error = self.error();
        let opaques = self.opaques();
        (0..self.len).map(move |index| DeliveryReport {
            offset: base.map(|base| base + index as i64),
            opaque: opaques.get(index).copied().unwrap_or(0),
            status: self.status,
            error,
        })
    }
}

/// Where reports go. Called on the thread that owns the broker, once per batch; must not block.
pub trait DeliverySink: Send + Sync {
    /// Takes a batch of reports.
    fn deliver(&self, batch: DeliveryBatch);

    /// True if the records go on counting for the queue's limits until the sink's owner gives them back, because the
    /// application has not seen the reports yet.
    fn keeps_charge(&self) -> bool {
        false
    }
}

/// A sink that forgets.
#[derive(Debug)]
pub struct NoReports;

impl DeliverySink for NoReports {
    fn deliver(&self, _: DeliveryBatch) {}
}

/// What is kept of each record for its report.
#[derive(Debug)]
pub enum Tags {
    /// Nothing: nobody wants reports.
    None,
    /// The application's number.
    Opaque(Vec<u64>),
}

impl Tags {
    /// Room for as many records as the last batch had.
    pub fn with_capacity(records: usize) -> Self {
        Self::Opaque(Vec::with_capacity(records))
    }

    /// Keeps a record's number.
    #[inline]
    pub fn push(&mut self, opaque: u64) {
        if let Self::Opaque(opaques) = self {
            opaques.push(opaque);
        }
    }

    /// The numbers, if any are kept.
    #[cfg(all(test, not(ottla_loom)))]
    pub(super) fn opaques(&self) -> &[u64] {
        match self {
            Self::None => &[],
            Self::Opaque(opaques) => opaques,
        }
    }

    /// Splits off the entries from `at` on.
    pub fn split_off(&mut self, at: usize) -> Self {
        match self {
            Self::None => Self::None,
            Self::Opaque(opaques) => Self::Opaque(opaques.split_off(at)),
        }
    }
}

/// What those who wait for single records of a batch share.
#[derive(Default)]
pub struct Tracker {
    state: Mutex<TrackerState>,
}

#[derive(Default)]
struct TrackerState {
    /// Fates of ranges of records: more than one if the batch was split.
    outcomes: Vec<(Range<usize>, TrackedOutcome)>,
    /// Records that were tracked before they had this batch, and their places where they were.
    forwards: Vec<(usize, Arc<Tracker>, usize)>,
    wakers: Vec<Waker>,
}

/// The fate of tracked records.
#[derive(Clone, Debug)]
pub struct TrackedOutcome {
    /// The partition.
    pub partition: i32,
    /// What the broker said of the first record, or what went wrong.
    pub outcome: Result<Delivered, Error>,
    /// Whether the records are in the log.
    pub status: PersistenceStatus,
}

impl TrackedOutcome {
    /// The fate of the record that stands `index` places behind the first.
    fn at(&self, index: usize) -> Self {
        let mut outcome = self.clone();
        if let Ok(delivered) = &mut outcome.outcome {
            delivered.base_offset = delivered.base_offset.map(|base| base + index as i64);
        }
        outcome
    }
}

impl Tracker {
    /// The fate of the batch's record `index`, with its own offset, or registers to be woken.
    pub fn poll(&self, index: usize, context: &mut Context<'_>) -> Poll<TrackedOutcome> {
        let mut state = self.state.lock();
        if let Some((range, outcome)) = state.outcomes.iter().find(|(range, _)| range.contains(&index)) {
            return Poll::Ready(outcome.at(index - range.start));
        }
        let waker = context.waker();
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        Poll::Pending
    }

    /// Sends the fate of record `index` on to `outer`, a tracker of one record, when it is known: at once if it is.
    pub(crate) fn forward(&self, index: usize, outer: &Arc<Self>) {
        self.forward_to(index, outer, 0);
    }

    /// The same to its place `outer_index` in a batch where it was before.
    pub(crate) fn forward_to(&self, index: usize, outer: &Arc<Self>, outer_index: usize) {
        let state = &mut *self.state.lock();
        match state.outcomes.iter().find(|(range, _)| range.contains(&index)) {
            Some((range, outcome)) => {
                outer.complete(outer_index..outer_index + 1, outcome.at(index - range.start));
            }
            None => state.forwards.push((index, Arc::clone(outer), outer_index)),
        }
    }

    /// Tells the fate of a range of records to all who wait.
    pub fn complete(&self, records: Range<usize>, outcome: TrackedOutcome) {
        let wakers = {
            let state = &mut *self.state.lock();
            for (index, outer, place) in state.forwards.extract_if(.., |(index, ..)| records.contains(index))
            {
                outer.complete(place..place + 1, outcome.at(index - records.start));
            }
            state.outcomes.push((records, outcome));
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").field("outcomes", &self.state.lock().outcomes).finish_non_exhaustive()
    }
}
