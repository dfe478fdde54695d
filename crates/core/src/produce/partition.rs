//! The sending order of one partition: the next batch, retries and acknowledgements. The leader's broker actor owns it;
//! on a leader change it moves to the next one.
//!
//! # Pitfalls
//!
//! - A recreated topic has no sequence numbers of this producer: they restart at 0 under the same identity
//!   (`sequences_of_a_recreated_topic_start_from_zero`).

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::{
    batch::{ChunkPool, SealOptions},
    uuid::Uuid,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};

use super::{
    accumulator::{Accumulator, BatchLimits},
    ack::Written,
    batch::ReadyBatch,
    compression::{Compressing, CompressionJob},
    order::{self, QueueOrder},
    pending_reports::PendingReports,
    producer_id::ProducerIdentity,
    report::PersistenceStatus,
    sequence::SequenceState,
    shared::ProducerShared,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    stats::PartitionStatistics,
};

/// The sending side of a partition.
///
/// ```text
///   accumulator ──► next() ──► in flight ──► acknowledged: report
///                    ▲             │
///                    └── retries ◄─┘ refused or lost: in their old order, before anything new,
///                                    and only when nothing of the partition is in flight any more
/// ```
///
/// With idempotence a sealed batch keeps its sequence number. When a batch fails, the broker may reject all that
/// follow: the partition then waits until nothing is in flight, takes a higher epoch, and renumbers the remaining
/// batches from 0. A batch that may have been written is never renumbered, because it would be written twice: it is
/// sent once more under its old number. If the broker accepts or knows it, it also has everything before it. If the
/// broker reports that the number is out of order, the batch fails as possibly written: an older connection may still
/// deliver it, and everything before it, to the broker.
#[derive(Debug)]
pub struct PartitionProducer {
    accumulator: Arc<Accumulator>,
    /// The topic ID, zero if the broker does not support topic IDs.
    pub topic_id: Uuid,
    /// The leader epoch at which the current broker actor was chosen.
    pub leader_epoch: Option<LeaderEpoch>,
    retries: VecDeque<ReadyBatch>,
    /// The batch that a worker compresses or has compressed: behind the retries, before the accumulator's.
    compressing: Option<Box<Compressing>>,
    /// Nothing is sent before then.
    pub retry_at: Option<Instant>,
    next_order: u64,
    /// The number of batches in flight.
    in_flight: usize,
    counters: PartitionCounters,
    /// The sequence numbers, once there is a producer ID.
    sequence: Option<SequenceState>,
    /// The end offset of the newest acknowledged records.
    last_end: Option<i64>,
    /// The error of the last batch that must be sent again.
    refusal: Option<Box<Error>>,
    /// The number of moves to another leader with something to retry since a leader last accepted a batch.
    moves: u32,
    /// The number of queue purges applied to its records.
    pub purges: u32,
    /// The number of the transaction in which its batches may be sent; 0 before the first one.
    pub transaction: u32,
    /// True while batches of a previous identity are in flight, which a transactional producer has replaced.
    awaits_previous: bool,
}

/// The number of new leaders in a row that get a rejected batch without a backoff.
const QUICK_MOVES: u32 = 2;

/// The send statistics of a partition.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartitionCounters {
    /// Messages, each once.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were acknowledged.
    pub acknowledged: u64,
    /// Messages in flight.
    pub in_flight: u64,
}

/// The result of [`PartitionProducer::next`].
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every value is a batch, and a box would be an allocation for each"
)]
#[derive(Debug)]
pub enum Next {
    /// Nothing may be sent now.
    Nothing,
    /// A batch.
    Batch(ReadyBatch),
    /// A batch that a worker should compress. [`PartitionProducer::is_compressing`] is true until the job has ended.
    Job(CompressionJob),
    /// The next batch needs a worker, and [`Compress::Later`] was requested.
    Later,
    /// A batch could not be sealed.
    Failed(Box<(PendingReports, Error)>),
    /// The partition first needs another producer ID or epoch than this one.
    NeedsIdentity(Option<ProducerIdentity>),
}

/// Where a batch whose compression takes long is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// Here, by the caller's thread.
    Here,
    /// By a worker, if it has at least this many bytes.
    AtWorker(usize),
    /// The same, but not now.
    Later(usize),
}

/// Selects records that wait and are not in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Those that were appended before this time.
    Since(Instant),
    /// All.
    All,
    /// All, and the accumulator is sealed.
    AllForGood,
}

impl PartitionProducer {
    /// Creates a partition that has sent nothing.
    pub fn new(accumulator: Arc<Accumulator>, topic_id: Uuid) -> Self {
        Self {
            accumulator,
            topic_id,
            leader_epoch: None,
            retries: VecDeque::new(),
            compressing: None,
            retry_at: None,
            next_order: 0,
            in_flight: 0,
            counters: PartitionCounters::default(),
            sequence: None,
            last_end: None,
            refusal: None,
            moves: 0,
            purges: 0,
            transaction: 0,
            awaits_previous: false,
        }
    }

    /// Continues with this sequence number.
    #[cfg(test)]
    pub(super) fn set_next_sequence(&mut self, sequence: i32) {
        self.sequence.as_mut().expect("an identity").set_next(sequence);
    }

    /// Returns the accumulator of its records.
    pub fn accumulator(&self) -> &Arc<Accumulator> {
        &self.accumulator
    }

    /// Sets the topic ID of the metadata. Returns true if it is another topic than before: its log has nothing of this
    /// producer, so sequence numbers restart under the same producer ID. Requires that nothing is in flight. An unknown
    /// ID belongs to a topic that an old broker, without IDs, reported as recreated: the topic's name is used.
    pub fn set_topic_id(&mut self, id: Uuid) -> bool {
        let is_another = !self.topic_id.is_zero() && id != self.topic_id;
        self.topic_id = id;
        if is_another {
            self.last_end = None;
            if let Some(identity) = self.sequence.as_ref().map(SequenceState::identity) {
                self.start_from_zero(identity);
            }
        }
        is_another
    }

    /// Records the offset that the broker assigned to records. Returns the previous end offset if the new offset is
    /// below it.
    pub fn note_offset(&mut self, base: i64, records: u32) -> Option<i64> {
        let end = base.saturating_add(i64::from(records));
        let last_end = self.last_end.replace(end);
        last_end.filter(|last_end| base < *last_end)
    }

    /// Returns the topic and the number of the partition.
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(Arc::clone(self.topic()), self.partition())
    }

    /// Returns the topic's name.
    pub fn topic(&self) -> &Arc<str> {
        self.accumulator.topic()
    }

    /// Returns the partition.
    pub fn partition(&self) -> i32 {
        self.accumulator.partition()
    }

    /// Returns true if something waits until nothing is in flight.
    pub fn is_draining(&self) -> bool {
        self.in_flight > 0
            && (self.awaits_previous
                || !self.retries.is_empty()
                || self
                    .sequence
                    .as_ref()
                    .is_some_and(|sequence| sequence.has_gap() || !sequence.is_confirmed()))
    }

    /// Returns true if a worker has not compressed the partition's next batch yet.
    pub fn is_compressing(&self) -> bool {
        self.compressing.as_ref().is_some_and(|compressing| !compressing.is_done())
    }

    /// Returns true if the partition's next batch is sealed, or at a worker.
    pub fn has_sealed(&self) -> bool {
        !self.retries.is_empty() || self.compressing.is_some()
    }

    /// Returns true if batches of the partition are in flight.
    pub const fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Returns true if more than one batch of the partition is in flight.
    pub const fn has_several_in_flight(&self) -> bool {
        self.in_flight > 1
    }

    /// Counts a batch into flight.
    pub fn note_sent(&mut self, batch: &ReadyBatch) {
        let messages = u64::from(batch.sealed.record_count());
        self.in_flight += 1;
        self.counters.in_flight += messages;
        if batch.attempts == 0 {
            self.counters.messages += messages;
            self.counters.bytes += batch.charged_bytes();
        }
    }

    /// Counts a batch out of flight: the broker responded, or its request was lost or recalled.
    pub fn note_landed(&mut self, batch: &ReadyBatch) {
        self.in_flight -= 1;
        self.counters.in_flight -= u64::from(batch.sealed.record_count());
    }

    /// Resets the count of batches in flight.
    #[cfg(test)]
    pub(super) const fn forget_in_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Takes the batch to send next: a retry first, then the one that a worker has compressed, else the oldest of the
    /// accumulator. With idempotence `current` is the producer's identity.
    pub fn next(
        &mut self,
        open_too: bool,
        options: &SealOptions,
        compress: Compress,
        idempotent: bool,
        current: Option<ProducerIdentity>,
    ) -> Next {
        if self.is_draining() {
            return Next::Nothing;
        }
        let doubtful = self.retries.front().is_some_and(|batch| {
            batch.written > Written::No
                && self.sequence.as_ref().is_some_and(|sequence| sequence.has_sent(batch.order))
        });
        // A transactional producer changes its identity only between transactions. Batches of the previous one that were
        // reported before they had a response may still be in flight.
        let is_replaced = options.is_transactional
            && self.sequence.as_ref().is_some_and(|sequence| Some(sequence.identity()) != current);
        if is_replaced && current.is_none() {
            return Next::NeedsIdentity(None);
        }
        self.awaits_previous = is_replaced && self.in_flight > 0;
        if self.awaits_previous {
            return Next::Nothing;
        }
        let needs_identity = idempotent
            && (is_replaced || self.sequence.as_ref().is_none_or(|sequence| sequence.has_gap() && !doubtful));
        if needs_identity && !self.take_identity(current) {
            return Next::NeedsIdentity(self.sequence.as_ref().map(SequenceState::identity));
        }
        if let Some(batch) = self.retries.pop_front() {
            if let Some(sequence) = &mut self.sequence {
                sequence.note_order(batch.order);
            }
            return Next::Batch(batch);
        }
        if self.is_compressing() {
            return Next::Nothing;
        }
        if self.compressing.is_none()
            && let Compress::AtWorker(from) | Compress::Later(from) = compress
            && self.accumulator.next_bytes(open_too) >= from
        {
            let is_later = matches!(compress, Compress::Later(_));
            return if is_later { Next::Later } else { self.start_job(open_too, options) };
        }
        let Some(sealed) = self.seal_next(open_too, options) else { return Next::Nothing };
        match sealed {
            Ok(batch) => {
                if let Some(sequence) = &mut self.sequence {
                    sequence.take(batch.sealed.record_count());
                }
                Next::Batch(batch)
            }
            Err(failed) => Next::Failed(failed),
        }
    }

    /// Gives the oldest batch of the accumulator to a worker.
    fn start_job(&mut self, open_too: bool, options: &SealOptions) -> Next {
        let (batch, _) = self.accumulator.take(open_too);
        let Some(mut open) = batch else { return Next::Nothing };
        open.since = open.oldest();
        let (compressing, job) = Compressing::start(open, options, &self.accumulator);
        self.compressing = Some(Box::new(compressing));
        Next::Job(job)
    }

    /// Seals the batch that a worker has compressed, or else the oldest of the accumulator, under the next number.
    fn seal_next(
        &mut self,
        open_too: bool,
        options: &SealOptions,
    ) -> Option<Result<ReadyBatch, Box<(PendingReports, Error)>>> {
        let compressed = self.compressing.take();
        let open = if compressed.is_none() { Some(self.accumulator.take(open_too).0?) } else { None };
        let order = self.next_order;
        self.next_order += 1;
        let mut options = *options;
        if let Some(sequence) = &mut self.sequence {
            sequence.note_order(order);
            let identity = sequence.identity();
            options.producer_id = identity.id;
            options.producer_epoch = identity.epoch;
            options.base_sequence = sequence.next();
        }
        if let Some(compressed) = compressed {
            return Some(compressed.into_batch(order).map(|mut batch| {
                if self.sequence.is_some() {
                    batch.sealed.set_producer(
                        options.producer_id,
                        options.producer_epoch,
                        options.base_sequence,
                    );
                }
                batch
            }));
        }
        let mut open = open?;
        open.since = open.oldest();
        Some(ReadyBatch::seal(open, order, &options, &self.accumulator))
    }

    /// Reorders the waiting records before [`PartitionProducer::next`] takes a batch.
    pub fn arrange(&mut self, order: &QueueOrder, open_too: bool, limits: &BatchLimits, pool: &ChunkPool) {
        if self.retries.is_empty() && !self.is_draining() && self.accumulator.is_unarranged(open_too) {
            order.arrange(&self.accumulator, limits, pool);
        }
    }

    /// Puts a batch back to be sent again, at its position in the order.
    pub fn put_back(&mut self, batch: ReadyBatch) {
        let at = self.retries.partition_point(|other| other.order < batch.order);
        self.retries.insert(at, batch);
    }

    /// Records that a batch was not written and must be sent again.
    pub fn note_refusal(&mut self, error: &Error) {
        self.refusal = Some(Box::new(error.clone()));
    }

    /// Records a move to another leader. The first moves skip the backoff of the last leader's error; brokers that keep
    /// bouncing a batch would otherwise cause an endless loop, so later moves wait.
    pub fn leave(&mut self) {
        self.moves = self.moves.saturating_add(u32::from(self.retry_at.is_some()));
        if self.moves <= QUICK_MOVES {
            self.retry_at = None;
        }
    }

    /// Returns the error of the last batch that must be sent again.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_deref()
    }

    /// Returns the order of the oldest batch that waits for a retry.
    pub fn oldest_retry(&self) -> Option<u64> {
        self.retries.front().map(|batch| batch.order)
    }

    /// Records that a batch with a sequence number failed, or that the broker expects another number.
    pub fn note_gap(&mut self, order: u64) {
        if let Some(sequence) = &mut self.sequence {
            sequence.note_gap(order);
        }
    }

    /// Records that a batch was split. Its halves have no sequence numbers, so all waiting batches must be renumbered,
    /// even if the broker accepts others meanwhile.
    pub fn note_unnumbered(&mut self) {
        self.note_gap(u64::MAX);
    }

    /// Records that the broker has written a batch of the current producer ID, and so everything before it.
    pub fn confirm(&mut self, batch: &ReadyBatch) {
        self.refusal = None;
        self.moves = 0;
        self.counters.acknowledged += u64::from(batch.sealed.record_count());
        if let Some(sequence) = &mut self.sequence {
            sequence.confirm(batch.order);
        }
    }

    /// Adds the statistics of the partition to a snapshot.
    pub fn add_statistics(&self, statistics: &mut PartitionStatistics, broker: Option<NodeId>) {
        let (queued, queued_bytes) = self.accumulator.queued();
        let compressing = self.compressing.as_deref().map(|batch| (batch.records, batch.charged_bytes()));
        let (compressing, compressing_bytes) = compressing.unwrap_or_default();
        let resent: i64 = self.retries.iter().map(|batch| i64::from(batch.sealed.record_count())).sum();
        let counters = &self.counters;
        statistics.broker = i64::from(NodeId::to_wire(broker));
        statistics.leader = statistics.broker;
        statistics.leader_epoch = i64::from(LeaderEpoch::to_wire(self.leader_epoch));
        statistics.msgq_cnt = queued as i64 + i64::from(compressing);
        statistics.msgq_bytes = (queued_bytes + compressing_bytes) as i64;
        statistics.xmit_msgq_cnt = resent;
        statistics.xmit_msgq_bytes = self.retries.iter().map(|batch| batch.charged_bytes() as i64).sum();
        statistics.txmsgs = counters.messages as i64;
        statistics.txbytes = counters.bytes as i64;
        statistics.msgs = counters.messages as i64 + statistics.msgq_cnt;
        statistics.msgs_inflight = counters.in_flight as i64;
        statistics.acked_msgid = counters.acknowledged as i64;
        if let Some(sequence) = &self.sequence {
            let unacknowledged = counters.in_flight as i64 + resent;
            let next = (i64::from(sequence.next()) - unacknowledged).rem_euclid(1 << 31);
            (statistics.next_ack_seq, statistics.next_err_seq) = (next, next);
        }
    }

    /// Returns when the oldest record started to wait, and whether it is due immediately.
    pub fn waiting(&self) -> Option<(Instant, bool)> {
        if let Some(batch) = self.retries.front() {
            return Some((batch.since, true));
        }
        if let Some(compressing) = &self.compressing {
            return compressing.is_done().then_some((compressing.since, true));
        }
        let remaining = self.accumulator.remaining();
        remaining.since().map(|since| (since, remaining.full.is_some()))
    }

    /// Fails waiting records with the error that `error` makes, if there are any. Returns the bytes charged for those
    /// that were never sent; `None` if nothing waited.
    pub fn fail_waiting(
        &mut self,
        shared: &ProducerShared,
        which: Waiting,
        error: impl FnOnce(&Self) -> Error,
    ) -> Option<u64> {
        let mut retries = Vec::new();
        let mut compressed = None;
        let mut open = Vec::new();
        match which {
            Waiting::Since(limit) => {
                let late = self.retries.partition_point(|batch| batch.since < limit);
                retries.extend(self.retries.drain(..late));
                // The oldest goes first: a record is not reported before an older one that still waits.
                if self.retries.is_empty() {
                    compressed = self.compressing.take_if(|batch| batch.since < limit && !batch.is_running());
                }
                if self.retries.is_empty() && self.compressing.is_none() {
                    order::take_older_than(&self.accumulator, limit, &shared.pool, &mut open);
                    self.accumulator.take_older_than(limit, &mut open);
                }
            }
            Waiting::All | Waiting::AllForGood => {
                retries.extend(self.retries.drain(..));
                compressed = self.compressing.take();
                self.accumulator.take_all(which == Waiting::AllForGood, &mut open);
            }
        }
        if retries.is_empty() && compressed.is_none() && open.is_empty() {
            return None;
        }
        if let Some(last) = retries.last() {
            self.note_gap(last.order);
            shared.transactions.iter().for_each(|transactions| transactions.note_doubt());
        }
        // A report calls the application, which may panic: the other reports are still pending then.
        let accumulator = Some(&self.accumulator);
        let unsent: Vec<PendingReports> = compressed
            .map(|compressed| compressed.into_unsent())
            .into_iter()
            .chain(open.iter_mut().map(|batch| PendingReports::of_unsent(batch, accumulator)))
            .collect();
        let (topic, partition) = (Arc::clone(self.topic()), self.partition());
        let error = error(self).with_partition(&*topic, partition);
        let mut unsent_bytes = 0;
        for batch in retries {
            unsent_bytes += if batch.is_new { batch.charged_bytes() } else { 0 };
            let status = batch.failure_status();
            let error = match (error.kind(), status) {
                (ErrorKind::MessageTimedOutInQueue, PersistenceStatus::PossiblyPersisted) => {
                    error.clone().with_kind(ErrorKind::MessageTimedOutInFlight)
                }
                _ => error.clone(),
            };
            shared.report(batch.into_report(&topic, partition, Err(error), status));
        }
        for pending in unsent {
            unsent_bytes += pending.charged_bytes();
            shared.report_unsent(&topic, partition, pending, error.clone());
        }
        Some(unsent_bytes)
    }

    /// Takes the current producer ID if it changed, and renumbers the waiting batches from 0.
    fn take_identity(&mut self, current: Option<ProducerIdentity>) -> bool {
        let used = self.sequence.as_ref().map(SequenceState::identity);
        let Some(identity) = current.filter(|identity| Some(*identity) != used) else {
            return false;
        };
        self.start_from_zero(identity);
        true
    }

    fn start_from_zero(&mut self, identity: ProducerIdentity) {
        let mut sequence = SequenceState::new(identity);
        for batch in &mut self.retries {
            batch.sealed.set_producer(identity.id, identity.epoch, sequence.next());
            sequence.take(batch.sealed.record_count());
        }
        self.sequence = Some(sequence);
    }
}
