//! The failed attempts at a call, or at one of its groups, partitions or brokers, which are repeated with back-offs.

use std::time::Duration;

use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
};

/// The number of invalid responses after which a call fails. Another broker may give a valid response, but if none
/// does, the call need not wait for its deadline.
pub(super) const BAD_RESPONSES: u32 = 4;

/// The attempts so far.
#[derive(Debug)]
pub(super) struct Attempts {
    backoff: Backoff,
    bad_responses: u32,
    /// The error to report if no attempt succeeds in time.
    pub(super) last_error: Option<Error>,
}

impl Attempts {
    /// Creates the state before the first attempt. Repetitions back off from `backoff.0` to `backoff.1`.
    pub(super) fn new((first, longest): (Duration, Duration)) -> Self {
        Self { backoff: Backoff::new(first, longest), bad_responses: 0, last_error: None }
    }

    /// Counts an invalid response. Returns true if a repetition can't succeed where the attempt failed with this error.
    pub(super) fn ends_with(&mut self, error: &Error) -> bool {
        let is_bad = error.kind() == ErrorKind::BadResponse;
        self.bad_responses += u32::from(is_bad);
        !error.is_retriable() && (!is_bad || self.bad_responses >= BAD_RESPONSES)
    }

    /// Keeps the error of an attempt. Returns when to repeat it.
    pub(super) fn repeat(&mut self, now: Instant, error: Error, rng: &mut Rng) -> Instant {
        self.last_error = Some(error);
        now + self.backoff.next(rng)
    }
}
