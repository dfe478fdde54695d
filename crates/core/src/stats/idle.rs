//! The time that the application's threads wait in polls.

use std::time::Duration;

use crate::{
    machine::Instant,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Measures the time in which at least one thread waits. Threads that begin and end at the same time may each miss the
/// time between the two.
#[derive(Debug, Default)]
pub struct IdleTime {
    waiting: AtomicUsize,
    since: AtomicU64,
    total_nanos: AtomicU64,
}

impl IdleTime {
    /// Creates a measurement without a waiting thread.
    pub fn new() -> Self {
        Self { waiting: AtomicUsize::new(0), since: AtomicU64::new(0), total_nanos: AtomicU64::new(0) }
    }

    /// A thread begins to wait.
    pub fn begin(&self, now: Instant) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// A thread no longer waits.
    pub fn end(&self, now: Instant) {
        let since = self.since.load(Ordering::Relaxed);
        if self.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.total_nanos.fetch_add(now.as_nanos().saturating_sub(since), Ordering::Relaxed);
        }
    }

    /// Returns the time so far.
    pub fn total(&self, now: Instant) -> Duration {
        let waiting = if self.waiting.load(Ordering::Relaxed) > 0 {
            now.as_nanos().saturating_sub(self.since.load(Ordering::Relaxed))
        } else {
            0
        };
        Duration::from_nanos(self.total_nanos.load(Ordering::Relaxed) + waiting)
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::*;

    #[test]
    fn time_of_overlapping_waits_counts_once() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let idle = IdleTime::new();
        idle.begin(at(10));
        idle.begin(at(11));
        assert_eq!(idle.total(at(12)), Duration::from_secs(2));
        idle.end(at(13));
        idle.end(at(15));
        assert_eq!(idle.total(at(100)), Duration::from_secs(5));
        idle.begin(at(100));
        idle.end(at(101));
        assert_eq!(idle.total(at(200)), Duration::from_secs(6));
    }
}
