//! The schedule of metadata requests.
//!
//! At most one request is in flight. Needs that arise meanwhile share its response, or the one after it.
//!
//! ```text
//!                    now                         response
//!   Scheduled(at) ─────────► InFlight(nothing) ───────────► Scheduled(interval)
//!        ▲  soon: sooner        │ soon   │ now
//!        └──────────────        ▼        ▼
//!                       InFlight(soon)  InFlight(at once) ──► Scheduled(back-off), or the next request
//! ```

use std::time::Duration;

use crate::{backoff::Backoff, machine::Instant, rng::Rng, states::See};

/// The schedule of metadata requests.
#[derive(Debug)]
pub(super) struct Refresh {
    state: State,
    interval: Option<Duration>,
    backoff: Backoff,
    rng: Rng,
    /// The time of the first request since the last good response.
    failing_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next request is due at this time.
    Scheduled(Due),
    /// No request is due.
    Idle,
    /// A request is in flight, and this follows its response.
    InFlight { next: Next, covers_all_topics: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Instant,
    /// True if only the timer requests it, and no part.
    is_periodic: bool,
}

/// The action after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Wait for the interval.
    Interval,
    /// Send another request after a backoff: the response may be older than the change.
    Soon,
    /// Send another request immediately, unless that has happened recently.
    Now,
}

impl Refresh {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("metadata", 0, &self.state);
    }

    /// Creates the schedule without a due request. Waits grow from `backoff.0` to `backoff.1` while metadata is
    /// incomplete.
    pub(super) const fn new(interval: Option<Duration>, backoff: (Duration, Duration), rng: Rng) -> Self {
        Self {
            state: State::Idle,
            interval,
            backoff: Backoff::new(backoff.0, backoff.1),
            rng,
            failing_since: None,
        }
    }

    /// Requests metadata now. Returns true if the caller has to send the request and call [`Refresh::sent`].
    pub(super) fn now(&mut self) -> bool {
        match &mut self.state {
            State::InFlight { next, .. } => {
                *next = Next::Now;
                false
            }
            State::Scheduled(_) | State::Idle => true,
        }
    }

    /// Requests metadata after a backoff, because the cluster takes time to settle.
    pub(super) fn soon(&mut self, now: Instant) {
        match &mut self.state {
            State::InFlight { next, .. } => *next = (*next).max(Next::Soon),
            State::Scheduled(_) | State::Idle => {
                let at = now + self.backoff.next(&mut self.rng);
                let at = self.poll_timeout().map_or(at, |known| known.min(at));
                self.state = State::Scheduled(Due { at, is_periodic: false });
            }
        }
    }

    /// Takes the request that is due, if any. True if only the timer needs it.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<bool> {
        let State::Scheduled(due) = self.state else { return None };
        (due.at <= now).then(|| {
            self.state = State::Idle;
            due.is_periodic
        })
    }

    /// Returns when to call [`Refresh::take_due`].
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Scheduled(due) => Some(due.at),
            State::Idle | State::InFlight { .. } => None,
        }
    }

    /// Records that a request was sent.
    pub(super) fn sent(&mut self, now: Instant, covers_all_topics: bool) {
        self.failing_since.get_or_insert(now);
        self.state = State::InFlight { next: Next::Interval, covers_all_topics };
    }

    /// Records that the request, which waits for a connection, will be for all topics of the cluster.
    pub(super) const fn cover_all_topics(&mut self) {
        if let State::InFlight { covers_all_topics, .. } = &mut self.state {
            *covers_all_topics = true;
        }
    }

    /// Returns true if a request is in flight.
    pub(super) const fn is_in_flight(&self) -> bool {
        matches!(self.state, State::InFlight { .. })
    }

    /// Returns true if the request in flight is for all topics of the cluster.
    pub(super) const fn covers_all_topics(&self) -> bool {
        matches!(self.state, State::InFlight { covers_all_topics: true, .. })
    }

    /// Handles the failure of the request in flight: schedules another one after a backoff.
    pub(super) fn failed(&mut self, now: Instant) {
        self.state = State::Idle;
        self.soon(now);
    }

    /// Handles any metadata response, even an incomplete one.
    pub(super) const fn handle_response(&mut self) {
        self.failing_since = None;
    }

    /// Handles an applied response; it is `incomplete` if a part misses something. Returns true if the caller has to
    /// send the next request immediately.
    pub(super) fn settle(&mut self, now: Instant, incomplete: bool) -> bool {
        let State::InFlight { next, .. } = std::mem::replace(&mut self.state, State::Idle) else {
            return false;
        };
        match next {
            Next::Now if self.backoff.failures() > 0 => self.soon(now),
            Next::Now => {
                self.backoff.next(&mut self.rng);
                return true;
            }
            Next::Soon => self.soon(now),
            Next::Interval if incomplete => self.soon(now),
            Next::Interval => {
                self.backoff.reset();
                if let Some(interval) = self.interval {
                    self.state = State::Scheduled(Due { at: now + interval, is_periodic: true });
                }
            }
        }
        false
    }

    /// Returns the time since which no broker responds, if that is the case.
    pub(super) const fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }

    /// Stops waiting for the request in flight.
    pub(super) fn restart(&mut self) {
        self.state = State::Idle;
        self.failing_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);
    const INTERVAL: Duration = Duration::from_secs(300);

    fn refresh() -> Refresh {
        let backoff = (Duration::from_millis(100), Duration::from_secs(1));
        Refresh::new(Some(INTERVAL), backoff, Rng::from_seed(1))
    }

    /// The state of a request in flight, and the action after its response.
    #[test]
    fn refresh_after_a_response_depends_on_newer_requests() {
        type Asked = fn(&mut Refresh);
        let (nothing, soon): (Asked, Asked) = (|_| {}, |refresh| refresh.soon(NOW));
        let at_once: Asked = |refresh| assert!(!refresh.now(), "the request in flight is shared");
        let both: Asked = |refresh| {
            assert!(!refresh.now());
            refresh.soon(NOW);
        };
        let short = Duration::from_millis(200);
        for (name, asked, incomplete, sends, within) in [
            ("nothing", nothing, false, false, INTERVAL),
            ("nothing, incomplete", nothing, true, false, short),
            ("soon", soon, false, false, short),
            ("now", at_once, false, true, Duration::ZERO),
            ("now and soon", both, true, true, Duration::ZERO),
        ] {
            let mut refresh = refresh();
            assert!(refresh.now());
            refresh.sent(NOW, false);
            asked(&mut refresh);
            refresh.handle_response();
            assert_eq!(refresh.settle(NOW, incomplete), sends, "{name}");
            match refresh.poll_timeout() {
                Some(at) => assert!(at - NOW <= within && at - NOW > within / 4, "{name}: {:?}", at - NOW),
                None => assert!(sends, "{name}"),
            }
        }
    }

    #[test]
    fn requests_at_once_are_not_repeated_without_a_back_off() {
        let mut refresh = refresh();
        refresh.sent(NOW, false);
        refresh.now();
        assert!(refresh.settle(NOW, false), "the first time");
        refresh.sent(NOW, false);
        refresh.now();
        assert!(!refresh.settle(NOW, false), "then after a back-off");
        assert!(refresh.poll_timeout().is_some_and(|at| at > NOW));
    }

    #[test]
    fn periodic_request_is_periodic_until_a_part_asks() {
        let mut refresh = refresh();
        refresh.sent(NOW, false);
        refresh.settle(NOW, false);
        assert_eq!(refresh.take_due(NOW), None);
        assert_eq!(refresh.take_due(NOW + INTERVAL), Some(true));
        refresh.sent(NOW, false);
        refresh.settle(NOW, false);
        refresh.soon(NOW);
        assert_eq!(refresh.take_due(NOW + INTERVAL), Some(false));
    }
}
