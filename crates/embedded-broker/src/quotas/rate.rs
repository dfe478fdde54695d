//! A rate over the last eleven windows of one second, as Kafka's brokers measure it.

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::time::Instant;

/// `quota.window.num`.
const WINDOWS: u32 = 11;
/// `quota.window.size.seconds`.
const WINDOW: Duration = Duration::from_secs(1);
/// The windows without the current one, in seconds: what a client may use at once is the quota times this.
pub(super) const FULL_WINDOWS_SECONDS: f64 = 10.0;

/// The use of each window.
#[derive(Debug, Default)]
pub(super) struct SampledRate {
    windows: VecDeque<(Instant, f64)>,
}

impl SampledRate {
    /// Counts use.
    pub fn record(&mut self, now: Instant, used: f64) {
        self.forget(now);
        match self.windows.back_mut() {
            Some((start, sum)) if now.saturating_since(*start) < WINDOW => *sum += used,
            _ => self.windows.push_back((now, used)),
        }
    }

    /// Returns how long a client has to wait until its rate has fallen to the quota, which is per second.
    pub fn wait(&mut self, now: Instant, quota: f64) -> Duration {
        self.forget(now);
        let window = self.measured(now).as_secs_f64();
        let rate = self.windows.iter().map(|(_, sum)| sum).sum::<f64>() / window;
        if rate <= quota {
            return Duration::ZERO;
        }
        // Without further use, the rate is the quota after this much more time.
        let seconds = (rate - quota) / quota * window;
        let millis = (seconds * 1000.0).round().clamp(0.0, f64::from(i32::MAX));
        Duration::from_millis(millis as u64)
    }

    /// Returns true if nothing was used in the last windows.
    pub fn is_unused(&self, now: Instant) -> bool {
        self.windows.back().is_none_or(|(start, _)| now.saturating_since(*start) >= WINDOW * WINDOWS)
    }

    /// Returns the time over which the rate is measured: at least all windows but the current one.
    fn measured(&self, now: Instant) -> Duration {
        let elapsed = self.windows.front().map_or(Duration::ZERO, |(start, _)| now.saturating_since(*start));
        let full = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        elapsed + WINDOW * (WINDOWS - 1).saturating_sub(full)
    }

    fn forget(&mut self, now: Instant) {
        while self.windows.front().is_some_and(|(start, _)| now.saturating_since(*start) >= WINDOW * WINDOWS)
        {
            self.windows.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn idle_client_may_send_ten_seconds_worth_at_once() {
        let mut rate = SampledRate::default();
        rate.record(at(0), 1000.0);
        assert_eq!(rate.wait(at(0), 100.0), Duration::ZERO);
        rate.record(at(0), 100.0);
        assert_eq!(
            rate.wait(at(0), 100.0),
            Duration::from_secs(1),
            "1100 at 100 per second are 11 s, not 10"
        );
    }

    #[test]
    fn client_that_waits_as_told_has_the_rate_of_its_quota() {
        let mut rate = SampledRate::default();
        let (mut now, mut used) = (0, 0.0);
        while now < 200_000 {
            rate.record(at(now), 35.0);
            used += 35.0;
            now += u64::try_from(rate.wait(at(now), 100.0).as_millis()).unwrap();
        }
        let per_second = used / (now as f64 / 1000.0);
        assert!((90.0..115.0).contains(&per_second), "{per_second}");
    }

    #[test]
    fn windows_of_long_ago_do_not_count() {
        let mut rate = SampledRate::default();
        rate.record(at(0), 100_000.0);
        assert!(rate.wait(at(0), 100.0) > Duration::from_secs(900));
        assert!(!rate.is_unused(at(10_999)));
        assert!(rate.is_unused(at(11_000)));
        assert_eq!(rate.wait(at(11_000), 100.0), Duration::ZERO);
    }
}
