//! The workers of a client, which compress its batches: a job takes virtual time, and now and then a worker drops one.

use std::sync::{Arc, Mutex, PoisonError};

use ottla_core::produce::compression::{CompressionJob, Workers};
use ottla_protocol::compress::Compression;

/// The jobs of a client that the world has not taken yet. Batches from a few bytes on are jobs.
#[derive(Clone, Debug, Default)]
pub struct Jobs(Arc<Mutex<Vec<CompressionJob>>>);

impl Jobs {
    /// Takes the jobs.
    pub fn take(&self) -> Vec<CompressionJob> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Workers for Jobs {
    fn submit(&self, job: CompressionJob) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(job);
    }

    fn worth_a_job(&self, _: Compression) -> usize {
        150
    }
}
