//! The thread that takes readings while a test runs.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::recorder::{Latencies, Reading, Recorder};
use crate::platform::cpu_time;

/// The time between two readings.
const INTERVAL: Duration = Duration::from_millis(250);

/// What a test counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// The records so far.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The requests of the client so far.
    pub requests: u64,
    /// The latencies since the last call.
    pub latencies: Latencies,
}

/// Readings that are taken until the end of a test.
#[derive(Debug)]
pub struct Sampling {
    recorder: Arc<Mutex<Recorder>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampling {
    /// Starts to take readings of a test that started at `start`.
    pub fn start(start: Instant, mut counters: impl FnMut() -> Counters + Send + 'static) -> Sampling {
        let mut read = move || {
            let at = start.elapsed();
            let Counters { records, bytes, requests, latencies } = counters();
            Reading { at, records, bytes, requests, cpu: cpu_time(), latencies }
        };
        let recorder = Recorder::new(Reading { at: Duration::ZERO, ..read() });
        let recorder = Arc::new(Mutex::new(recorder));
        let (shared, (stop, stopped)) = (Arc::clone(&recorder), mpsc::channel());
        let thread = thread::spawn(move || {
            loop {
                let wait = stopped.recv_timeout(INTERVAL);
                let reading = read();
                lock(&shared).add(reading);
                if wait != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Sampling { recorder, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns a function that says what the latencies of the last second are.
    pub fn live(&self) -> impl Fn() -> String + Send + 'static {
        let shared = Arc::clone(&self.recorder);
        move || lock(&shared).live()
    }

    /// Returns the records per second of the last second.
    pub fn live_rate(&self) -> f64 {
        lock(&self.recorder).live_rate()
    }

    /// Takes the last reading, and ends.
    pub fn stop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Returns the readings.
    pub fn recorder(&self) -> MutexGuard<'_, Recorder> {
        lock(&self.recorder)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Locks the readings, even if a thread panicked meanwhile.
fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}
