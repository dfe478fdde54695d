//! Compression beside the I/O threads: a batch whose compression takes long is a job for the process's [`Workers`].
//!
//! ```text
//!  partition ── CompressionJob ──► workers: compress, store the result
//!      ▲  keeps the reports             │
//!      └──────── ready list ◄───────────┘
//! ```
//!
//! Partition and job share a cell. Dropping the job, also without running it, notifies the broker that leads the
//! partition; a batch that no worker compressed is compressed when it is taken.
//!
//! # Pitfalls
//!
//! - A report in C shows the payload, which is in the batch. A batch that a worker compresses can't be reported before the
//!   worker returned it; one whose job waits can (`purge_reports_a_batch_at_a_worker_with_its_records`,
//!   `batch_that_no_worker_begins_times_out`).
//! - The leader may change meanwhile. The job notifies the broker that leads the partition when it ends
//!   (`batch_at_a_worker_moves_with_its_partition`).

use std::{fmt, sync::Arc};

use ottla_protocol::{
    batch::{KeptRecords, RecordBatchBuilder, SealError, SealOptions, SealedBatch},
    compress::Compression,
};

use super::{
    accumulator::{Accumulator, OpenBatch},
    batch::ReadyBatch,
    pending_reports::PendingReports,
};
use crate::{
    error::Error,
    machine::Instant,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// The threads of the driver that compress. They run every job that they get, or drop it.
pub trait Workers: fmt::Debug + Send + Sync {
    /// Takes a job, without waiting for it.
    fn submit(&self, job: CompressionJob);

    /// Returns the size in bytes from which on a batch is worth a job. The default is what takes about 150 µs on a
    /// processor of 2020.
    fn worth_a_job(&self, compression: Compression) -> usize {
        match compression {
            Compression::None => usize::MAX,
            Compression::Lz4 | Compression::Snappy => 64 << 10,
            Compression::Zstd => 32 << 10,
            Compression::Gzip => 8 << 10,
        }
    }
}

/// A batch to compress.
pub struct CompressionJob {
    cell: Arc<Cell>,
    accumulator: Arc<Accumulator>,
    bytes: usize,
}

/// The partition's side of a [`CompressionJob`].
#[derive(Debug)]
pub(crate) struct Compressing {
    cell: Arc<Cell>,
    /// When its oldest record was appended.
    pub(crate) since: Instant,
    /// The number of its records.
    pub(crate) records: u32,
    pending: PendingReports,
}

/// The batch, shared by its partition and the job.
#[derive(Debug)]
struct Cell {
    /// Locked while a worker compresses.
    state: Mutex<CellState>,
    /// True from the time at which a worker begins the job.
    is_begun: AtomicBool,
    /// True after the job has ended.
    is_done: AtomicBool,
}

#[derive(Debug)]
enum CellState {
    Waiting(RecordBatchBuilder, SealOptions),
    Done(Result<SealedBatch, Box<SealError>>),
    /// A worker compresses it, or panicked.
    AtWorker,
}

impl CompressionJob {
    /// Returns the bytes to compress.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Compresses the batch.
    pub fn run(self) {
        self.cell.is_begun.store(true, Ordering::SeqCst);
        let mut state = self.cell.state.lock();
        *state = match std::mem::replace(&mut *state, CellState::AtWorker) {
            CellState::Waiting(builder, options) => CellState::Done(builder.seal(&options)),
            other => other,
        };
    }
}

impl Drop for CompressionJob {
    fn drop(&mut self) {
        self.cell.is_done.store(true, Ordering::SeqCst);
        self.accumulator.announce_compressed();
    }
}

impl fmt::Debug for CompressionJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompressionJob({}/{})", self.accumulator.topic(), self.accumulator.partition())
    }
}

impl Compressing {
    /// Turns a batch into a job. The sequence number comes later, when the batch is sent.
    pub(crate) fn start(
        mut open: OpenBatch,
        options: &SealOptions,
        accumulator: &Arc<Accumulator>,
    ) -> (Self, CompressionJob) {
        let pending = PendingReports::of(&mut open, Some(accumulator));
        let (records, bytes) = (open.builder.record_count(), open.builder.len());
        let cell = Arc::new(Cell {
            state: Mutex::new(CellState::Waiting(open.builder, *options)),
            is_begun: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
        });
        let job = CompressionJob { cell: Arc::clone(&cell), accumulator: Arc::clone(accumulator), bytes };
        (Self { cell, since: open.since, records, pending }, job)
    }

    /// Returns true if the job has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.cell.is_done.load(Ordering::SeqCst)
    }

    /// Returns true while a worker compresses the batch. A job that no worker has begun can be given up.
    pub(crate) fn is_running(&self) -> bool {
        self.cell.is_begun.load(Ordering::SeqCst) && !self.is_done()
    }

    /// Returns the bytes that its records were charged in the budget.
    pub(crate) const fn charged_bytes(&self) -> u64 {
        self.pending.charged_bytes()
    }

    /// Returns the compressed batch. Waits if a worker is compressing it.
    pub(crate) fn into_batch(self, order: u64) -> Result<ReadyBatch, Box<(PendingReports, Error)>> {
        let sealed = match self.cell.take() {
            CellState::Waiting(builder, options) => builder.seal(&options).map_err(Some),
            CellState::Done(sealed) => sealed.map_err(Some),
            CellState::AtWorker => Err(None),
        };
        ReadyBatch::sealed(sealed, self.since, order, self.pending)
    }

    /// Returns the reports of the records, which are not sent. Waits if a worker is compressing them.
    pub(crate) fn into_unsent(mut self) -> PendingReports {
        let records: Option<KeptRecords> = match self.cell.take() {
            CellState::Waiting(mut builder, _) => builder.take_kept(),
            CellState::Done(Ok(sealed)) => sealed.into_kept(),
            CellState::Done(Err(mut unsealed)) => unsealed.builder.take_kept(),
            CellState::AtWorker => None,
        };
        self.pending.keep_records(records);
        self.pending
    }
}

impl Cell {
    fn take(&self) -> CellState {
        std::mem::replace(&mut *self.state.lock(), CellState::AtWorker)
    }
}
