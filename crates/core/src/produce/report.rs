//! Delivery reports: one per batch, expanded per record only when the application reads them.

use std::{
    fmt,
    ops::Range,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use ottla_protocol::{batch::KeptRecords, vocabulary::NodeId};

use crate::{
    error::{Error, ErrorKind},
    sync::Mutex,
    waiters::{WaitPlace, Waiter, Waiters},
};

/// The outcome of some records of one partition, in the order in which they were sent.
#[derive(Debug)]
pub struct DeliveryBatch {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) outcome: Result<Delivered, Error>,
    pub(crate) status: PersistenceStatus,
    pub(crate) tags: Tags,
    pub(crate) len: usize,
    pub(crate) charged_bytes: u64,
    /// The records that the broker rejected, if it named them.
    pub(crate) invalid: Option<Box<InvalidRecords>>,
    /// The ID of the broker to which the records were sent; -1 if they were not sent.
    pub(crate) broker_id: Option<NodeId>,
    /// The records themselves, if one of them asked for it.
    pub(crate) records: Option<KeptRecords>,
}

/// The outcomes of single records of a batch that was rejected because of some of them (KIP-467).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRecords {
    /// The rejected records by their index in the batch, in order, each with its error.
    refused: Vec<(usize, Error)>,
    /// The error of all other records.
    others: Error,
}

impl InvalidRecords {
    /// The errors of a batch of `len` records: `errors` has the place of each record that the broker refused and its message.
    /// `None` if the broker named none.
    pub(crate) fn new<'a>(
        batch: &Error,
        len: usize,
        errors: impl Iterator<Item = (i32, Option<&'a str>)>,
    ) -> Option<Self> {
        let mut refused: Vec<(usize, Error)> = errors
            .filter_map(|(place, message)| {
                let place = usize::try_from(place).ok().filter(|place| *place < len)?;
                let error =
                    message.map_or_else(|| batch.clone(), |message| batch.clone().with_detail(message));
                Some((place, error))
            })
            .collect();
        refused.sort_by_key(|(place, _)| *place);
        refused.dedup_by_key(|(place, _)| *place);
        let others = batch.clone().with_kind(ErrorKind::InvalidDifferentRecord).with_detail("");
        (!refused.is_empty()).then_some(Self { refused, others })
    }

    pub(super) fn at(&self, place: usize) -> &Error {
        let found = self.refused.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(&self.others, |index| &self.refused[index].1)
    }
}

/// The broker's response to a batch that it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The first record's offset; `None` with `acks=0`, because there is no response.
    pub base_offset: Option<i64>,
    /// The broker's timestamp in milliseconds, if the topic uses LogAppendTime.
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

/// The outcome of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryReport<'a> {
    /// The offset in the partition, if the broker reported it.
    pub offset: Option<i64>,
    /// The application's number for the record.
    pub opaque: u64,
    /// Whether the record is in the log.
    pub status: PersistenceStatus,
    /// The error, if the record was not delivered.
    pub error: Option<&'a Error>,
}

impl DeliveryBatch {
    /// Returns the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the partition; -1 if the records never got one.
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Returns the error, if the records were not delivered.
    pub fn error(&self) -> Option<&Error> {
        self.outcome.as_ref().err()
    }

    /// Returns the error of the record at an index of the batch: the same for all, unless the broker named single
    /// records.
    pub fn error_at(&self, place: usize) -> Option<&Error> {
        match &self.invalid {
            Some(invalid) => Some(invalid.at(place)),
            None => self.error(),
        }
    }

    /// Returns whether the errors of the records differ.
    pub const fn has_invalid_records(&self) -> bool {
        self.invalid.is_some()
    }

    /// Returns whether the records are in the log.
    pub const fn status(&self) -> PersistenceStatus {
        self.status
    }

    /// Returns the first record's offset.
    pub fn base_offset(&self) -> Option<i64> {
        self.outcome.as_ref().ok().and_then(|delivered| delivered.base_offset)
    }

    /// Returns the broker's timestamp in milliseconds, if the topic uses LogAppendTime.
    pub fn log_append_time(&self) -> Option<i64> {
        self.outcome.as_ref().ok().and_then(|delivered| delivered.log_append_time)
    }

    /// Returns the broker that responded, or the last one that was sent the records; `None` if they were never sent, or
    /// its ID is not known.
    pub const fn broker_id(&self) -> Option<i32> {
        match self.broker_id {
            Some(id) => Some(id.get()),
            None => None,
        }
    }

    /// Returns the records in the order of the reports, if one of them was sent to be kept for its report. Records that an actor
    /// dropped in a panic are not there.
    #[doc(hidden)]
    pub const fn records(&self) -> Option<&KeptRecords> {
        self.records.as_ref()
    }

    pub(crate) const fn sent_to(mut self, broker_id: Option<NodeId>) -> Self {
        self.broker_id = broker_id;
        self
    }

    /// Returns the number of records.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no record, which does not happen.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of the records' keys, values and headers, as the queue's limit counts them.
    pub const fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// Returns the application's numbers of the records, in order; empty if reports carry none.
    pub fn opaques(&self) -> &[u64] {
        match &self.tags {
            Tags::None => &[],
            Tags::Opaque(opaques) => opaques,
        }
    }

    /// Returns a report per record.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DeliveryReport<'_>> {
        let base = self.base_offset();
        let opaques = self.opaques();
        let (same, invalid) = (self.error(), self.invalid.as_deref());
        (0..self.len).map(move |index| DeliveryReport {
            offset: base.map(|base| base + index as i64),
            opaque: opaques.get(index).copied().unwrap_or(0),
            status: self.status,
            error: invalid.map_or(same, |invalid| Some(invalid.at(index))),
        })
    }
}

impl Drop for DeliveryBatch {
    /// Leaves the list of numbers to a later batch, with the memory of the records.
    fn drop(&mut self) {
        if let (Some(records), Tags::Opaque(numbers)) = (&mut self.records, &mut self.tags) {
            records.return_numbers(std::mem::take(numbers));
        }
    }
}

/// The destination of reports. It is called on the broker actor's thread; it must not block.
pub trait DeliverySink: Send + Sync {
    /// Takes a batch of reports.
    fn deliver(&self, batch: DeliveryBatch);

    /// Takes the reports of all batches that the broker has written according to one response. A sink whose readers wait for
    /// reports wakes them once.
    fn deliver_all(&self, batches: &mut dyn Iterator<Item = DeliveryBatch>) {
        batches.for_each(|batch| self.deliver(batch));
    }

    /// Returns true if the records count for the queue's limits until the sink's owner releases them, because the
    /// application has not seen the reports yet.
    fn keeps_charge(&self) -> bool {
        false
    }
}

/// A sink that discards all reports.
#[derive(Debug)]
pub struct NoReports;

impl DeliverySink for NoReports {
    fn deliver(&self, _: DeliveryBatch) {}
}

/// The data of each record for its report.
#[derive(Debug)]
pub enum Tags {
    /// Nothing: reports carry no numbers.
    None,
    /// The application's number.
    Opaque(Vec<u64>),
}

impl Tags {
    /// Creates room for as many records as the last batch had.
    pub fn with_capacity(records: usize) -> Self {
        Self::Opaque(Vec::with_capacity(records))
    }

    /// Creates room for as many records as the last batch had in an empty list.
    pub fn in_list(mut list: Vec<u64>, records: usize) -> Self {
        list.reserve(records);
        Self::Opaque(list)
    }

    /// Appends a record's number.
    #[inline]
    pub fn push(&mut self, opaque: u64) {
        if let Self::Opaque(opaques) = self {
            opaques.push(opaque);
        }
    }

    /// Returns the numbers, if reports carry them.
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

/// The state that waiters for single records of a batch share.
#[derive(Default)]
pub struct Tracker {
    state: Mutex<TrackerState>,
}

#[derive(Default)]
struct TrackerState {
    /// The outcomes of ranges of records: more than one if the batch was split.
    outcomes: Vec<(Range<usize>, TrackedOutcome)>,
    /// Records that were tracked elsewhere before they joined this batch, each with that tracker and the index there.
    forwards: Vec<(usize, Arc<Tracker>, usize)>,
    wakers: Waiters,
}

/// The outcome of tracked records.
#[derive(Clone, Debug)]
pub struct TrackedOutcome {
    /// The partition.
    pub partition: i32,
    /// The broker's response for the first record, or the error.
    pub outcome: Result<Delivered, Error>,
    /// Whether the records are in the log.
    pub status: PersistenceStatus,
}

impl TrackedOutcome {
    /// Returns the outcome of the record that is `index` places behind the first.
    fn at(&self, index: usize) -> Self {
        let mut outcome = self.clone();
        if let Ok(delivered) = &mut outcome.outcome {
            delivered.base_offset = delivered.base_offset.map(|base| base + index as i64);
        }
        outcome
    }
}

impl Tracker {
    /// Returns the outcome of record `index` with its own offset, or registers to be woken.
    pub fn poll(
        self: &Arc<Self>,
        index: usize,
        waiter: &mut Waiter<Self>,
        context: &Context<'_>,
    ) -> Poll<TrackedOutcome> {
        let number = waiter.number_at(self);
        let mut state = self.state.lock();
        if let Some((range, outcome)) = state.outcomes.iter().find(|(range, _)| range.contains(&index)) {
            return Poll::Ready(outcome.at(index - range.start));
        }
        let waker = context.waker();
        let old = state.wakers.register(number, waker);
        drop(state);
        drop(old);
        Poll::Pending
    }

    /// Forwards the outcome of record `index` to `outer`, a tracker of one record, as soon as it is known.
    pub(crate) fn forward(&self, index: usize, outer: &Arc<Self>) {
        self.forward_to(index, outer, 0);
    }

    /// Like [`Self::forward`], to the index `outer_index` in the previous batch.
    pub(crate) fn forward_to(&self, index: usize, outer: &Arc<Self>, outer_index: usize) {
        let state = &mut *self.state.lock();
        match state.outcomes.iter().find(|(range, _)| range.contains(&index)) {
            Some((range, outcome)) => {
                outer.complete(outer_index..outer_index + 1, outcome.at(index - range.start));
            }
            None => state.forwards.push((index, Arc::clone(outer), outer_index)),
        }
    }

    /// Reports the outcome of a range of records to all waiters.
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

impl WaitPlace for Tracker {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").field("outcomes", &self.state.lock().outcomes).finish_non_exhaustive()
    }
}
