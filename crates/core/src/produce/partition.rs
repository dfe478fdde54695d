//! One partition's order: what is sent when, what comes back, and what goes out again. Owned by the broker that leads
//! the partition, and moved to the next one on a leader change.

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::{
    batch::{ChunkPool, SealOptions},
    uuid::Uuid,
};

use super::{
    accumulator::{Accumulator, BatchLimits},
    batch::ReadyBatch,
    order::{self, QueueOrder},
    owed::Owed,
    producer_id::{ProducerIdentity, sequence_after},
    report::PersistenceStatus,
    shared::ProducerShared,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    mutation::{Mutant, Mutation},
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
/// With idempotence each batch has a sequence number for good once it was sealed. When one of them fails, the broker
/// may refuse all that follow: the partition then waits until nothing is in flight, takes an identity with a higher
/// epoch, and numbers what is left from 0. A batch that may have been written is never numbered anew, because it would
/// be written twice: it goes out once more under its old number. Either the broker takes or knows it, and then it knows
/// what came before, too; or it says that the number is out of order. Then the batch fails as possibly written: an older
/// connection may still bring it, and all that came before it, to the broker.
#[derive(Debug)]
pub struct PartitionProducer {
    accumulator: Arc<Accumulator>,
    /// The topic's id, zero where the broker does not know ids.
    pub topic_id: Uuid,
    /// The leader epoch at which the current owner was chosen; -1 if unknown.
    pub leader_epoch: i32,
    retries: VecDeque<ReadyBatch>,
    /// Nothing is sent before then.
    pub retry_at: Option<Instant>,
    next_order: u64,
    /// Batches in flight.
    pub in_flight: usize,
    /// What was sent so far.
    pub counters: PartitionCounters,
    /// The partition leaves as soon as nothing is in flight.
    pub leaving: bool,
    identity: Option<ProducerIdentity>,
    next_sequence: i32,
    /// A sequence number may be missing at the broker: the order of the newest batch that failed.
    gap: Option<u64>,
    /// The broker has acknowledged a batch of the identity. Until then only one is in flight: a broker takes whatever
    /// number comes first from a producer that it does not know, so a second batch could pass a first that failed.
    confirmed: bool,
    /// The order of the first batch that was sent under the identity.
    first_order: Option<u64>,
    /// Where the newest records that were acknowledged end in the log.
    last_end: Option<i64>,
    /// Why the last batch that has to go again was not written.
    refusal: Option<Box<Error>>,
    /// How often it went to another leader with something to send again since a leader took something.
    moves: u32,
    /// How many purges of the queue its records have seen.
    pub purges: u32,
    mutation: Mutation,
}

/// So many new leaders in a row get what the last one refused without a back-off.
const QUICK_MOVES: u32 = 2;

/// What was sent of a partition.
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

/// What [`PartitionProducer::next`] found.
#[derive(Debug)]
pub enum Next {
    /// Nothing that may go now.
    Nothing,
    /// A batch.
    Batch(ReadyBatch),
    /// A batch could not be sealed.
    Failed(Box<(Owed, Error)>),
    /// The partition needs another identity than this one first.
    NeedsIdentity(Option<ProducerIdentity>),
}

/// Which of the records that wait, and are not in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Those that came before then.
    Since(Instant),
    /// All.
    All,
    /// All, and no more may come.
    AllForGood,
}

impl PartitionProducer {
    /// A partition that has sent nothing.
    pub fn new(accumulator: Arc<Accumulator>, topic_id: Uuid, leader_epoch: i32) -> Self {
        Self {
            accumulator,
            topic_id,
            leader_epoch,
            retries: VecDeque::new(),
            retry_at: None,
            next_order: 0,
            in_flight: 0,
            counters: PartitionCounters::default(),
            leaving: false,
            identity: None,
            next_sequence: 0,
            gap: None,
            confirmed: false,
            first_order: None,
            last_end: None,
            refusal: None,
            moves: 0,
            purges: 0,
            mutation: Mutation::NONE,
        }
    }

    /// As if so many records had been sent.
    #[cfg(test)]
    pub(super) const fn set_next_sequence(&mut self, sequence: i32) {
        self.next_sequence = sequence;
    }

    /// As a deliberate mistake: what comes next gets the numbers of the last records once more.
    pub(super) fn reuse_sequences(&mut self, records: u32) {
        self.next_sequence = (self.next_sequence - records as i32).max(0);
    }

    /// Makes a deliberate mistake from now on.
    pub(crate) const fn mutate(&mut self, mutation: Mutation) {
        self.mutation = mutation;
    }

    /// Where records for it are collected.
    pub fn accumulator(&self) -> &Arc<Accumulator> {
        &self.accumulator
    }

    /// The topic's id as the metadata has it. True if it is another topic than before: nothing of this producer is in its
    /// log, so sequence numbers start again, under the same identity. Only when nothing is in flight. An id that is not
    /// known any more belongs to a topic that an old broker, without ids, told to be made anew: it is called by its name.
    pub fn set_topic_id(&mut self, id: Uuid) -> bool {
        let is_another = !self.topic_id.is_zero() && id != self.topic_id;
        self.topic_id = id;
        if is_another {
            self.last_end = None;
            if let Some(identity) = self.identity {
                self.start_from_zero(identity);
            }
        }
        is_another
    }

    /// The broker says at which offset it wrote records of this partition. Answers where they can't be, if something was
    /// written behind it before.
    pub fn note_offset(&mut self, base: i64, records: u32) -> Option<i64> {
        let end = base.saturating_add(i64::from(records));
        let last_end = self.last_end.replace(end);
        last_end.filter(|last_end| base < *last_end)
    }

    /// The topic's name.
    pub fn topic(&self) -> &Arc<str> {
        self.accumulator.topic()
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.accumulator.partition()
    }

    /// True if something waits that may go only when nothing is in flight any more.
    pub fn is_draining(&self) -> bool {
        let unconfirmed =
            self.identity.is_some() && !self.confirmed && !self.mutation.is(Mutant::SecondBeforeFirst);
        self.in_flight > 0 && (self.gap.is_some() || unconfirmed || !self.retries.is_empty())
    }

    /// Takes the batch to send next: a retry first, else the oldest of the accumulator. With idempotence `current` is
    /// the producer's identity.
    pub fn next(
        &mut self,
        open_too: bool,
        options: &SealOptions,
        idempotent: bool,
        current: Option<ProducerIdentity>,
    ) -> Next {
        if self.is_draining() {
            return Next::Nothing;
        }
        // Before the identity is confirmed only its first batch was sent under its number: a doubt about another one is
        // from before, and of another number.
        let doubtful = self.retries.front().is_some_and(|batch| {
            batch.possibly_persisted && (self.confirmed || self.first_order == Some(batch.order))
        }) && !self.mutation.is(Mutant::RenumberDoubtful);
        if idempotent
            && (self.identity.is_none() || (self.gap.is_some() && !doubtful))
            && !self.take_identity(current)
        {
            return Next::NeedsIdentity(self.identity);
        }
        if let Some(batch) = self.retries.pop_front() {
            self.first_order.get_or_insert(batch.order);
            return Next::Batch(batch);
        }
        let (batch, _) = self.accumulator.take(open_too);
        let Some(mut open) = batch else { return Next::Nothing };
        open.since = open.oldest();
        let order = self.next_order;
        self.next_order += 1;
        self.first_order.get_or_insert(order);
        let mut options = *options;
        if let Some(identity) = self.identity {
            options.producer_id = identity.id;
            options.producer_epoch = identity.epoch;
            options.base_sequence = self.next_sequence;
        }
        match ReadyBatch::seal(open, order, &options, &self.accumulator) {
            Ok(batch) if order % 8 == 7 && self.mutation.is(Mutant::ReuseSequence) => Next::Batch(batch),
            Ok(batch) => {
                self.next_sequence = sequence_after(self.next_sequence, batch.sealed.record_count());
                Next::Batch(batch)
            }
            Err(failed) => Next::Failed(failed),
        }
    }

    /// Puts what waits in order before [`PartitionProducer::next`] takes of it.
    pub fn arrange(&mut self, order: &QueueOrder, open_too: bool, limits: &BatchLimits, pool: &ChunkPool) {
        if self.retries.is_empty() && !self.is_draining() && self.accumulator.is_unarranged(open_too) {
            order.arrange(&self.accumulator, limits, pool);
        }
    }

    /// Puts a batch back that is to be sent again, at its place in the order.
    pub fn put_back(&mut self, batch: ReadyBatch) {
        let mut at = self.retries.partition_point(|other| other.order < batch.order);
        if self.mutation.is(Mutant::RetryOutOfOrder) {
            at = self.retries.len();
        }
        self.retries.insert(at, batch);
    }

    /// A batch was not written and has to go again.
    pub fn note_refusal(&mut self, error: &Error) {
        self.refusal = Some(Box::new(error.clone()));
    }

    /// It goes to another leader. The first ones need not wait for the back-off that the last leader's refusal began; but
    /// brokers that send it to and fro would do so for ever.
    pub fn leave(&mut self) {
        self.leaving = false;
        self.moves = self.moves.saturating_add(u32::from(self.retry_at.is_some()));
        if self.moves <= QUICK_MOVES {
            self.retry_at = None;
        }
    }

    /// Why the last batch that has to go again was not written.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_deref()
    }

    /// The order of the oldest batch that waits to be sent again.
    pub fn oldest_retry(&self) -> Option<u64> {
        self.retries.front().map(|batch| batch.order)
    }

    /// A batch that had a sequence number failed, or its number is not what the broker expects.
    pub fn note_gap(&mut self, order: u64) {
        if self.identity.is_some() {
            self.gap = self.gap.max(Some(order));
        }
    }

    /// A batch was split. Its halves have no sequence numbers, so that all that waits has to be numbered anew, whatever the
    /// broker takes meanwhile.
    pub fn note_unnumbered(&mut self) {
        self.note_gap(u64::MAX);
    }

    /// The broker has written a batch of the current identity, and so all that came before it.
    pub fn confirm(&mut self, order: u64) {
        self.confirmed = true;
        self.refusal = None;
        self.moves = 0;
        if self.gap.is_some_and(|gap| gap < order) {
            self.gap = None;
        }
    }

    /// Adds what is known of the partition to a snapshot.
    pub fn add_statistics(&self, statistics: &mut PartitionStatistics, broker: Option<i32>) {
        let (queued, queued_bytes) = self.accumulator.queued();
        let resent: i64 = self.retries.iter().map(|batch| i64::from(batch.sealed.record_count())).sum();
        let counters = &self.counters;
        statistics.broker = broker.map_or(-1, i64::from);
        statistics.leader = statistics.broker;
        statistics.leader_epoch = i64::from(self.leader_epoch);
        statistics.msgq_cnt = queued as i64;
        statistics.msgq_bytes = queued_bytes as i64;
        statistics.xmit_msgq_cnt = resent;
        statistics.xmit_msgq_bytes = self.retries.iter().map(|batch| batch.charged_bytes() as i64).sum();
        statistics.txmsgs = counters.messages as i64;
        statistics.txbytes = counters.bytes as i64;
        statistics.msgs = counters.messages as i64 + statistics.msgq_cnt;
        statistics.msgs_inflight = counters.in_flight as i64;
        statistics.acked_msgid = counters.acknowledged as i64;
        if self.identity.is_some() {
            let unacknowledged = counters.in_flight as i64 + resent;
            let next = (i64::from(self.next_sequence) - unacknowledged).rem_euclid(1 << 31);
            (statistics.next_ack_seq, statistics.next_err_seq) = (next, next);
        }
    }

    /// Since when the oldest record waits to be sent, and whether there is no reason to let it wait.
    pub fn waiting(&self) -> Option<(Instant, bool)> {
        if let Some(batch) = self.retries.front() {
            return Some((batch.since, true));
        }
        let remaining = self.accumulator.remaining();
        remaining.since().map(|since| (since, remaining.full.is_some()))
    }

    /// Reports records that wait as failed, with what `error` makes of it where there are any. Answers how many bytes were charged for those that were never sent; `None` if
    /// nothing waited.
    pub fn fail_waiting(
        &mut self,
        shared: &ProducerShared,
        which: Waiting,
        error: impl FnOnce(&Self) -> Error,
    ) -> Option<u64> {
        let mut retries = Vec::new();
        let mut open = Vec::new();
        match which {
            Waiting::Since(limit) => {
                let late = self.retries.partition_point(|batch| batch.since < limit);
                retries.extend(self.retries.drain(..late));
                // What came first goes first: a record is not reported before an older one that still waits.
                if self.retries.is_empty() {
                    order::take_older_than(&self.accumulator, limit, &shared.pool, &mut open);
                    self.accumulator.take_older_than(limit, &mut open);
                }
            }
            Waiting::All | Waiting::AllForGood => {
                retries.extend(self.retries.drain(..));
                self.accumulator.take_all(which == Waiting::AllForGood, &mut open);
            }
        }
        if retries.is_empty() && open.is_empty() {
            return None;
        }
        if let Some(last) = retries.last() {
            self.note_gap(last.order);
        }
        if self.mutation.is(Mutant::FailNewestFirst) {
            open.reverse();
        }
        // Reports are the application's, who may panic in one: the others are still owed.
        let open: Vec<Owed> = open.iter_mut().map(|batch| Owed::of(batch, Some(&self.accumulator))).collect();
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
        for owed in open {
            unsent_bytes += owed.charged_bytes();
            shared.report_unsent(&topic, partition, owed, error.clone());
        }
        Some(unsent_bytes)
    }

    /// Takes the producer's identity if it is another one than before, and numbers what waits from 0.
    fn take_identity(&mut self, current: Option<ProducerIdentity>) -> bool {
        let Some(identity) = current.filter(|identity| Some(*identity) != self.identity) else {
            return false;
        };
        self.start_from_zero(identity);
        true
    }

    fn start_from_zero(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        self.gap = None;
        self.confirmed = false;
        self.first_order = None;
        self.next_sequence = 0;
        for batch in &mut self.retries {
            batch.sealed.set_producer(identity.id, identity.epoch, self.next_sequence);
            self.next_sequence = sequence_after(self.next_sequence, batch.sealed.record_count());
        }
    }
}
