//! The pace of `--throughput` and `--rate`: the number of records per second, on average since the start.

use std::time::{Duration, Instant};

use crate::failure::Outcome;
use crate::signals::Interrupt;

/// Computes how long to wait before the next record.
#[derive(Debug)]
pub struct Pace {
    start: Instant,
    per_second: f64,
}

/// Shorter waits are accumulated, because a sleep has a cost.
const SHORTEST_WAIT: Duration = Duration::from_millis(2);

impl Pace {
    /// Starts a pace of `per_second` records per second at `start`.
    pub fn new(start: Instant, per_second: f64) -> Pace {
        Pace { start, per_second }
    }

    /// Waits while `sent` records are ahead of the pace.
    ///
    /// # Errors
    ///
    /// A signal arrived.
    pub fn keep(&self, sent: u64, interrupt: &Interrupt) -> Outcome {
        self.wait(sent, Instant::now()).map_or(Ok(()), |wait| interrupt.pause(wait))
    }

    /// Returns the time to wait if `sent` records are ahead of the pace.
    fn wait(&self, sent: u64, now: Instant) -> Option<Duration> {
        let due = Duration::from_secs_f64(sent as f64 / self.per_second);
        let ahead = due.saturating_sub(now.saturating_duration_since(self.start));
        (ahead >= SHORTEST_WAIT).then_some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_waits_only_when_far_enough_ahead() {
        let start = Instant::now();
        let pace = Pace::new(start, 1000.0);
        assert_eq!(pace.wait(1, start), None);
        assert_eq!(pace.wait(100, start), Some(Duration::from_millis(100)));
        assert_eq!(pace.wait(100, start + Duration::from_millis(99)), None);
        assert_eq!(pace.wait(100, start + Duration::from_secs(5)), None);
    }
}
