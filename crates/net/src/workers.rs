//! The threads that compress large batches, so that the I/O threads don't wait for a codec. All clients of the process
//! share them; the first batch that needs one starts them.
//! With a single processor there are none, and the I/O threads compress.

use std::{
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

use ottla_core::{
    lock::{Condvar, Mutex},
    produce::compression::{CompressionJob, Workers},
};

/// The pool of threads. Dropping it waits for the jobs that run, and drops the others.
pub struct WorkerPool(PoolHandle);

/// The pool, for the clients that give it jobs.
#[derive(Clone)]
struct PoolHandle(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The largest number of threads.
    most: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<CompressionJob>,
    threads: Vec<JoinHandle<()>>,
    /// The number of threads that wait for a job.
    idle: usize,
    is_over: bool,
}

impl WorkerPool {
    /// Creates a pool that starts up to this number of threads when it needs them.
    pub fn new(most: usize) -> Self {
        Self(PoolHandle(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), most })))
    }

    /// Returns the workers for a client; `None` if the pool has no threads.
    pub fn workers(&self) -> Option<Arc<dyn Workers>> {
        (self.0.0.most > 0).then(|| Arc::new(self.0.clone()) as Arc<dyn Workers>)
    }

    /// Returns the number of threads that run.
    pub fn running(&self) -> usize {
        self.0.0.state.lock().threads.len()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        let (jobs, threads) = {
            let mut state = self.0.0.state.lock();
            state.is_over = true;
            (std::mem::take(&mut state.jobs), std::mem::take(&mut state.threads))
        };
        self.0.0.changed.notify_all();
        drop(jobs);
        for thread in threads {
            // Panics of jobs are caught.
            let _ = thread.join();
        }
    }
}

impl Workers for PoolHandle {
    fn submit(&self, job: CompressionJob) {
        let left = {
            let mut state = self.0.state.lock();
            if !state.is_over {
                state.jobs.push_back(job);
                self.see_to(&mut state);
                // Without any thread the jobs are dropped, and the broker actors compress.
                if state.threads.is_empty() { std::mem::take(&mut state.jobs) } else { VecDeque::new() }
            } else {
                VecDeque::from([job])
            }
        };
        self.0.changed.notify_one();
        drop(left);
    }
}

impl PoolHandle {
    /// Starts a thread if no idle one is left for the newest job.
    fn see_to(&self, state: &mut State) {
        if state.jobs.len() <= state.idle || state.threads.len() >= self.0.most {
            return;
        }
        let (name, shared) = (format!("ottla-codec-{}", state.threads.len()), Arc::clone(&self.0));
        state.threads.extend(thread::Builder::new().name(name).spawn(move || shared.work()));
    }
}

impl Shared {
    /// Runs jobs until the pool ends.
    fn work(&self) {
        while let Some(job) = self.next() {
            // The batch of a codec that panics is reported as failed by the partition that waits for it.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
        }
    }

    /// Waits for a job; `None` at the end.
    fn next(&self) -> Option<CompressionJob> {
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            self.changed.wait(&mut state);
            state.idle -= 1;
        }
    }
}

impl fmt::Debug for PoolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerPool(up to {} threads)", self.0.most)
    }
}
