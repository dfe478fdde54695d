//! Compressing: batches whose compression takes long go to the process's workers, in rounds.
//!
//! A round is what is due at one time. Its partitions stay out of the collector until the last batch of the round is
//! compressed; then all of them are due, so that they leave in one request. Partitions that need a worker meanwhile wait
//! for the next round. All others are sent as usual.
//!
//! Many small batches take as long as a large one: once the batches of a request that were compressed here are together worth a
//! job, the workers get the others too, unless they are tiny.

use ottla_protocol::compress::Compression;
use ottla_sorted::SortedSet;

use super::Sender;
use crate::produce::{compression::CompressionJob, partition::Compress};

/// The bytes of uncompressed batches after which a round takes no further one. Some requests' worth: compression makes
/// records smaller, and the workers should not wait while a request is built.
const ROUND_BYTES: usize = 4 << 20;

/// The bytes below which a batch is always compressed here: handing it over would take as long.
const TINY: usize = 4096;

/// The batches of a sender that workers compress.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The partitions whose batch is not compressed yet, by slot.
    at_work: SortedSet<usize>,
    /// The partitions that wait for the end of the round: compressed ones, and those of the next round.
    waiting: Vec<usize>,
    bytes: usize,
    /// The uncompressed bytes of the request's batches that were compressed here.
    compressed_here: usize,
    /// True until the sender has added what was due.
    is_open: bool,
}

impl Round {
    /// Returns true if nothing is at the workers or waits for them.
    pub(super) fn is_empty(&self) -> bool {
        self.at_work.is_empty() && self.waiting.is_empty()
    }

    /// Counts a batch that was compressed here.
    pub(super) const fn note_compressed(&mut self, bytes: u64) {
        self.compressed_here = self.compressed_here.saturating_add(bytes as usize);
    }
}

impl Sender {
    /// Opens a round, unless one is at work.
    pub(super) fn open_round(&mut self) {
        self.round.compressed_here = 0;
        self.round.is_open = self.round.at_work.is_empty();
        if self.round.is_open {
            self.round.bytes = 0;
            self.end_round();
        }
    }

    /// Returns where the next batch is compressed if that takes long.
    pub(super) fn compress_where(&self, compression: Compression) -> Compress {
        let worth = self.shared.worth_a_job(compression);
        let left = |worth: usize| worth.saturating_sub(self.round.compressed_here).max(worth.min(TINY));
        match worth.map(left) {
            None => Compress::Here,
            Some(from) if self.round.is_open && self.round.bytes < ROUND_BYTES => Compress::AtWorker(from),
            Some(from) => Compress::Later(from),
        }
    }

    /// Adds a batch to the round.
    pub(super) fn start_job(&mut self, slot: usize, job: CompressionJob) {
        self.round.at_work.insert(slot);
        self.round.bytes += job.bytes();
        self.shared.compress(job);
    }

    /// A partition waits for the next round.
    pub(super) fn wait_for_round(&mut self, slot: usize) {
        self.round.waiting.push(slot);
    }

    /// Adds an adopted partition whose batch is at a worker.
    pub(super) fn join_round(&mut self, slot: usize) {
        if self.slots.get(slot).is_some_and(|entry| entry.partition.is_compressing()) {
            self.round.at_work.insert(slot);
        }
    }

    /// Handles the notifications of the workers.
    pub(super) fn take_compressed(&mut self) {
        for slot in self.ready.take_compressed() {
            self.leave_round(slot);
        }
    }

    /// Ends a partition's part in the round if its batch is not at a worker any more.
    pub(super) fn leave_round(&mut self, slot: usize) {
        if self.slots.get(slot).is_some_and(|entry| entry.is_compressing()) {
            return;
        }
        if self.round.at_work.remove(&slot) {
            self.round.waiting.push(slot);
        } else {
            self.collect(slot);
        }
        self.end_round();
    }

    /// Makes the waiting partitions due if nothing is at the workers.
    pub(super) fn end_round(&mut self) {
        if self.round.at_work.is_empty() {
            for slot in std::mem::take(&mut self.round.waiting) {
                self.collect(slot);
            }
        }
    }
}
