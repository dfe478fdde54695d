//! When the next token of OAUTHBEARER is requested from the application.

use std::time::Duration;

use crate::machine::Instant;

/// The time until the next request after a failure that the application has reported.
pub const RETRY: Duration = Duration::from_secs(10);

/// The schedule of requests for tokens. At most one request is outstanding.
///
/// ```text
///   Due(at) ── time ──► Requested ── token ──► Due(after 80 % of its lifetime)
///      ▲                    │ failure
///      └── after a delay ───┘
/// ```
#[derive(Debug)]
pub struct TokenRefresh {
    state: State,
    /// The reason of the last failure, until a token arrives.
    failure: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Due(Instant),
    Requested,
}

impl Default for TokenRefresh {
    /// The first token is due at once.
    fn default() -> Self {
        Self { state: State::Due(Instant::ZERO), failure: None }
    }
}

impl TokenRefresh {
    /// Handles a token that lives until `expires_at`, whether it was requested or not.
    pub fn handle_token(&mut self, now: Instant, expires_at: Instant) {
        self.failure = None;
        self.state = State::Due(now + expires_at.saturating_since(now) * 4 / 5);
    }

    /// Handles the reason why no token could be obtained; the next request is due after `retry_in`. Returns true if the
    /// reason is news for the application.
    pub fn handle_failure(&mut self, now: Instant, reason: &str, retry_in: Duration) -> bool {
        self.state = State::Due(now + retry_in);
        let is_news = self.failure.as_deref() != Some(reason);
        self.failure = Some(reason.to_owned());
        is_news
    }

    /// Returns true if a token must be requested now.
    pub fn take_due(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.state, State::Due(at) if at <= now);
        if is_due {
            self.state = State::Requested;
        }
        is_due
    }

    /// Returns when to call [`TokenRefresh::take_due`].
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Due(at) => Some(at),
            State::Requested => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn token_is_requested_at_once_and_after_four_fifths_of_its_life() {
        let mut refresh = TokenRefresh::default();
        assert!(refresh.take_due(at(1)) && !refresh.take_due(at(2)), "one request is outstanding");
        assert_eq!(refresh.poll_timeout(), None);
        refresh.handle_token(at(10), at(110));
        assert_eq!(refresh.poll_timeout(), Some(at(90)));
        assert!(!refresh.take_due(at(89)) && refresh.take_due(at(90)));
    }

    #[test]
    fn failure_is_repeated_after_its_delay_and_reported_once() {
        let mut refresh = TokenRefresh::default();
        assert!(refresh.take_due(at(1)));
        assert!(refresh.handle_failure(at(2), "down", RETRY));
        assert!(!refresh.take_due(at(11)) && refresh.take_due(at(12)));
        assert!(
            !refresh.handle_failure(at(13), "down", RETRY)
                && refresh.handle_failure(at(14), "refused", RETRY)
        );
        refresh.handle_token(at(20), at(30));
        assert!(refresh.handle_failure(at(29), "refused", RETRY), "after a token it is news again");
    }
}
