//! Waiting longer after each failure.

use std::time::Duration;

use crate::rng::Rng;

/// The shortest first wait: twice nothing is nothing, so that a wait of 0 would never grow.
const SHORTEST: Duration = Duration::from_millis(1);

/// Exponential backoff with 20 % jitter (KIP-580): the first wait is `initial`, or 1 ms if that is 0; each further one is
/// twice as long, up to `max`.
#[derive(Clone, Debug)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// Creates a backoff that counts no failure yet.
    pub const fn new(initial: Duration, max: Duration) -> Self {
        let initial = if initial.is_zero() { SHORTEST } else { initial };
        Self { initial, max, failures: 0 }
    }

    /// Counts a failure and returns the time to wait before the next attempt.
    pub fn next(&mut self, rng: &mut Rng) -> Duration {
        let wait = self.initial.saturating_mul(1 << self.failures.min(20)).min(self.max.max(self.initial));
        self.failures = self.failures.saturating_add(1);
        rng.jitter(wait, 20)
    }

    /// Resets the backoff after a successful attempt: the next wait is `initial` again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_wait_up_to_the_maximum() {
        let mut rng = Rng::from_seed(3);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let waits: Vec<u128> = (0..6).map(|_| backoff.next(&mut rng).as_millis()).collect();
        for (wait, expected) in waits.iter().zip([100, 200, 400, 800, 1000, 1000]) {
            assert!(*wait >= expected * 8 / 10 && *wait <= expected * 12 / 10, "{waits:?}");
        }
        backoff.reset();
        assert!(backoff.next(&mut rng) <= Duration::from_millis(120));
    }

    #[test]
    fn first_wait_of_zero_grows_too() {
        let mut rng = Rng::from_seed(3);
        let mut backoff = Backoff::new(Duration::ZERO, Duration::from_secs(1));
        let waits: Vec<u128> = (0..12).map(|_| backoff.next(&mut rng).as_micros()).collect();
        assert!((800..=1_200).contains(&waits[0]), "{waits:?}");
        assert!((800_000..=1_200_000).contains(&waits[11]), "{waits:?}");
    }
}
