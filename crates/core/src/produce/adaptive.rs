//! `broker.linger.ms=auto`: adapts the linger of a broker's records to its load.
//!
//! ```text
//!   requests in flight ── window full ──► the next response is the timer
//!           │ not full
//!           ▼
//!   allowance left? ── yes ──► send now
//!           │ no
//!           ▼
//!   send when the next one is earned: a window's worth of requests in one round trip, and no more than 2,000 a second
//! ```
//!
//! At low load the allowance is never used up, and a record leaves immediately. As the load grows the allowance is used
//! up, requests leave at even distances, and records that arrive in between share a request, so batches grow. The
//! window is halved, at most once per round trip, for a broker that takes longer than before for requests of the same
//! size, rejects a batch, or throttles; each good response adds a fraction of a request. Each broker has its own
//! window, so a slow broker does not delay the others.

use std::time::Duration;

use crate::machine::Instant;

/// Decides when a broker's next ProduceRequest may leave.
#[derive(Clone, Debug)]
pub struct Adaptive {
    /// The number of requests that may be in flight, with fractions: 1 to `largest_window`.
    window: f64,
    largest_window: f64,
    /// The smoothed round trip time.
    round_trip: Option<Duration>,
    /// The shortest round trip of the last seconds, by the power of two of the request's size.
    shortest: [Shortest; SIZE_CLASSES],
    /// When the allowance is full again: each request moves it by the distance between two.
    whole_at: Instant,
    /// The window is not halved again before this time.
    halved_until: Instant,
}

/// The shortest round trip of this period and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Shortest {
    began: Instant,
    now: Option<Duration>,
    before: Option<Duration>,
}

/// The quality of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The records were accepted.
    Good,
    /// The broker throttles, or could not accept the records now.
    Congested,
}

/// The maximum useful number of requests in flight.
const LARGEST_WINDOW: f64 = 16.0;
/// The smallest distance between requests when the allowance is used up, which shares the cost of a request.
const SHORTEST_DISTANCE: Duration = Duration::from_micros(500);
/// The largest distance; a longer one would add noticeable latency.
const LONGEST_DISTANCE: Duration = Duration::from_millis(100);
/// A request may take this many times the shortest round trip, and this much longer, before the broker counts as busy.
const TOLERATED_FACTOR: u32 = 2;
const TOLERATED: Duration = Duration::from_millis(2);
/// A short round trip expires after one to two of these periods.
const PERIOD: Duration = Duration::from_secs(5);
const SIZE_CLASSES: usize = 32;

impl Adaptive {
    /// Creates the pace of a broker that may have this number of requests in flight.
    pub fn new(max_in_flight: usize) -> Self {
        let largest_window = (max_in_flight as f64).clamp(1.0, LARGEST_WINDOW);
        Self {
            window: largest_window,
            largest_window,
            round_trip: None,
            shortest: [Shortest::default(); SIZE_CLASSES],
            whole_at: Instant::ZERO,
            halved_until: Instant::ZERO,
        }
    }

    /// Returns when the next request may leave with this number in flight; `None` means after the next response.
    pub fn send_at(&self, in_flight: usize) -> Option<Instant> {
        if in_flight >= self.window as usize {
            return None;
        }
        Some(self.whole_at.earlier_by(self.saved()))
    }

    /// Handles a request that leaves.
    pub fn sent(&mut self, now: Instant) {
        self.whole_at = self.whole_at.max(now) + self.distance();
    }

    /// Handles the response to a request of this size after `round_trip`, with this number of requests in flight.
    pub fn record_response(
        &mut self,
        now: Instant,
        in_flight: usize,
        round_trip: Duration,
        bytes: usize,
        outcome: Outcome,
    ) {
        if in_flight >= self.window() {
            // Delayed records must not leave in a burst: requests that left together get their responses together.
            self.whole_at = self.whole_at.max(now + self.saved());
        }
        let smoothed = match self.round_trip {
            // An estimate that is too long delays records, so it is corrected quickly.
            Some(before) if round_trip < before => (before + round_trip) / 2,
            Some(before) => (before * 7 + round_trip) / 8,
            None => round_trip,
        };
        self.round_trip = Some(smoothed);
        let class = (usize::BITS - bytes.leading_zeros()) as usize % SIZE_CLASSES;
        let shortest = self.shortest[class].add(now, round_trip);
        if outcome == Outcome::Congested || round_trip > shortest * TOLERATED_FACTOR + TOLERATED {
            if now >= self.halved_until {
                self.window = (self.window / 2.0).max(1.0);
                self.halved_until = now + smoothed;
            }
        } else {
            self.window = (self.window + 1.0 / self.window).min(self.largest_window);
        }
    }

    /// Resets the round trip estimate after the connection was lost.
    pub fn disconnected(&mut self) {
        *self = Self { window: self.window, ..Self::new(self.largest_window as usize) };
    }

    /// Returns the window, in whole requests.
    pub fn window(&self) -> usize {
        self.window as usize
    }

    /// Returns the duration that a full allowance covers: the window minus one request.
    fn saved(&self) -> Duration {
        self.distance() * (self.window as u32 - 1)
    }

    /// Returns the distance between requests under load.
    pub fn distance(&self) -> Duration {
        let even = self.round_trip.unwrap_or_default().div_f64(self.window);
        even.clamp(SHORTEST_DISTANCE, LONGEST_DISTANCE)
    }
}

impl Shortest {
    /// Adds a round trip and returns the shortest one known.
    fn add(&mut self, now: Instant, round_trip: Duration) -> Duration {
        if now >= self.began + PERIOD {
            *self = Self { began: now, now: None, before: self.now };
        }
        let shortest = self.now.map_or(round_trip, |known| known.min(round_trip));
        self.now = Some(shortest);
        self.before.map_or(shortest, |before| before.min(shortest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn the_first_requests_leave_at_once_and_the_next_ones_at_even_distances() {
        let mut adaptive = Adaptive::new(5);
        adaptive.record_response(at(0), 1, 50 * MS, 1000, Outcome::Good);
        for in_flight in 0..5 {
            assert!(adaptive.send_at(in_flight).is_some_and(|time| time <= at(100)), "{in_flight}");
            adaptive.sent(at(100));
        }
        assert_eq!(adaptive.send_at(5), None, "the window is full: a response is the timer");
        assert_eq!(adaptive.distance(), 10 * MS);
        assert_eq!(adaptive.send_at(4), Some(at(110)), "the allowance is used up");
    }

    #[test]
    fn records_behind_a_full_window_leave_gradually() {
        let mut adaptive = Adaptive::new(5);
        adaptive.record_response(at(0), 1, 50 * MS, 1000, Outcome::Good);
        (0..5).for_each(|_| adaptive.sent(at(100)));
        for in_flight in (1..=5).rev() {
            adaptive.record_response(at(150), in_flight, 50 * MS, 1000, Outcome::Good);
        }
        assert_eq!(adaptive.send_at(0), Some(at(150)));
        adaptive.sent(at(150));
        assert_eq!(adaptive.send_at(1), Some(at(160)));
    }

    #[test]
    fn a_busy_broker_gets_half_once_per_round_trip_and_earns_it_back() {
        let mut adaptive = Adaptive::new(8);
        adaptive.record_response(at(0), 1, 10 * MS, 1000, Outcome::Good);
        assert_eq!(adaptive.window(), 8);
        adaptive.record_response(at(10), 1, 40 * MS, 1000, Outcome::Good);
        adaptive.record_response(at(11), 1, 40 * MS, 1000, Outcome::Good);
        assert_eq!(adaptive.window(), 4, "once");
        adaptive.record_response(at(100), 1, 10 * MS, 1000, Outcome::Congested);
        assert_eq!(adaptive.window(), 2);
        for response in 0..40 {
            adaptive.record_response(at(200 + response), 1, 10 * MS, 1000, Outcome::Good);
        }
        assert_eq!(adaptive.window(), 8);
    }

    #[test]
    fn a_large_request_is_not_compared_with_a_small_one() {
        let mut adaptive = Adaptive::new(5);
        adaptive.record_response(at(0), 1, MS, 100, Outcome::Good);
        adaptive.record_response(at(1), 1, 30 * MS, 1_000_000, Outcome::Good);
        assert_eq!(adaptive.window(), 5);
    }

    #[test]
    fn lasting_longer_round_trip_becomes_the_measure_after_seconds() {
        let mut adaptive = Adaptive::new(5);
        adaptive.record_response(at(0), 1, MS, 100, Outcome::Good);
        for second in 1..30 {
            adaptive.record_response(at(second * 1000), 1, 50 * MS, 100, Outcome::Good);
        }
        assert_eq!(adaptive.window(), 5);
    }

    #[test]
    fn the_window_stays_within_its_bounds() {
        let mut adaptive = Adaptive::new(1_000_000);
        assert_eq!(adaptive.window(), 16);
        for response in 0..20 {
            adaptive.record_response(at(response * 1000), 1, MS, 100, Outcome::Congested);
        }
        assert_eq!(adaptive.window(), 1);
        assert_eq!(Adaptive::new(0).window(), 1);
    }
}
