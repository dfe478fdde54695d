//! One partition's order: what is sent when, what comes back, and what goes out again. Owned by the broker that leads
//! the partition, and moved to the next one on a leader change.

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::{batch::SealOptions, uuid::Uuid};

use super::{accumulator::Accumulator, batch::ReadyBatch};
use crate::machine::Instant;

/// The sending side of a partition.
///
/// ```text
///   accumulator ──► next() ──► in flight ──► acknowledged: report
///                    ▲             │
///                    └── retries ◄─┘ refused or lost: in their old order, before anything new
/// ```
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
    /// The partition leaves as soon as nothing is in flight.
    pub leaving: bool,
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
            leaving: false,
        }
    }

    /// Where records for it are collected.
    pub fn accumulator(&self) -> &Arc<Accumulator> {
        &self.accumulator
    }

    /// The topic's name.
    pub fn topic(&self) -> &Arc<str> {
        self.accumulator.topic()
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.accumulator.partition()
    }

    /// Takes the batch to send next: a retry first, else the oldest of the accumulator. Failures of sealing come back
    /// as errors.
    pub fn next(&mut self, open_too: bool, options: &SealOptions) -> Next {
        if let Some(batch) = self.retries.pop_front() {
            return Next::Batch(batch);
        }
        let (batch, _) = self.accumulator.take(open_too);
        let Some(open) = batch else { return Next::Nothing };
        let order = self.next_order;
        self.next_order += 1;
        match ReadyBatch::seal(open, order, options) {
            Ok(batch) => Next::Batch(batch),
            Err(failed) => Next::Failed(failed),
        }
    }

    /// Puts a batch back that is to be sent again, at its place in the order.
    pub fn put_back(&mut self, batch: ReadyBatch) {
        let at = self.retries.partition_point(|other| other.order < batch.order);
        self.retries.insert(at, batch);
    }

    /// Since when the oldest record waits to be sent, and whether there is no reason to let it wait.
    pub fn waiting(&self) -> Option<(Instant, bool)> {
        if let Some(batch) = self.retries.front() {
            return Some((batch.since, true));
        }
        let remaining = self.accumulator.remaining();
        remaining.since().map(|since| (since, remaining.full.is_some()))
    }

    /// Takes the retries whose records came before `limit`.
    pub fn expire_retries(&mut self, limit: Instant, into: &mut Vec<ReadyBatch>) {
        while self.retries.front().is_some_and(|batch| batch.since < limit) {
            into.extend(self.retries.pop_front());
        }
    }

    /// Takes all retries.
    pub fn take_retries(&mut self) -> VecDeque<ReadyBatch> {
        std::mem::take(&mut self.retries)
    }
}

/// What [`PartitionProducer::next`] found.
#[derive(Debug)]
pub enum Next {
    /// Nothing that may go now.
    Nothing,
    /// A batch.
    Batch(ReadyBatch),
    /// A batch could not be sealed.
    Failed(Box<(super::batch::OpenBatchRest, crate::error::Error)>),
}
