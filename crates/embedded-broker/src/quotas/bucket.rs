//! A bucket of tokens for changes of topics, as Kafka's controllers have it (KIP-599).

use std::time::Duration;

use ottla_protocol::time::Instant;

/// The seconds' worth of tokens of a full bucket: `controller.quota.window.num` windows of one second.
const CAPACITY_SECONDS: f64 = 11.0;

/// The tokens that are left; a debt is negative.
#[derive(Debug)]
pub(super) struct TokenBucket {
    tokens: f64,
    refilled: Instant,
}

impl TokenBucket {
    /// Returns the bucket of a client that has changed nothing yet. The quota is in tokens per second.
    pub fn full(quota: f64, now: Instant) -> Self {
        Self { tokens: quota * CAPACITY_SECONDS, refilled: now }
    }

    /// Adds the tokens for the time that has passed.
    pub fn refill(&mut self, quota: f64, now: Instant) {
        let passed = now.saturating_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + passed * quota).min(quota * CAPACITY_SECONDS);
        self.refilled = now;
    }

    /// Takes tokens, also more than there are.
    pub fn take(&mut self, tokens: f64) {
        self.tokens -= tokens;
    }

    /// Returns the time until the debt is paid.
    pub fn wait(&self, quota: f64) -> Duration {
        let millis = (-self.tokens / quota * 1000.0).round();
        if self.tokens < 0.0 {
            Duration::from_millis(millis.min(f64::from(i32::MAX)) as u64)
        } else {
            Duration::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debt_is_permitted_once_and_paid_with_time() {
        let mut bucket = TokenBucket::full(2.0, Instant::ZERO);
        bucket.take(22.0);
        assert_eq!(bucket.wait(2.0), Duration::ZERO);
        bucket.take(5.0);
        assert_eq!(bucket.wait(2.0), Duration::from_millis(2500));
        bucket.refill(2.0, Instant::ZERO + Duration::from_secs(1));
        assert_eq!(bucket.wait(2.0), Duration::from_millis(1500));
        bucket.refill(2.0, Instant::ZERO + Duration::from_secs(1000));
        bucket.take(22.0);
        assert_eq!(bucket.wait(2.0), Duration::ZERO, "a bucket holds 11 seconds' worth");
        bucket.take(1.0);
        assert_eq!(bucket.wait(2.0), Duration::from_millis(500));
    }
}
