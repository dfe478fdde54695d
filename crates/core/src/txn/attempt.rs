//! A request that is sent until it succeeds or must not be repeated.

use std::time::Duration;

use crate::{
    backoff::Backoff,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::transaction::error::Reaction,
    rng::Rng,
    states::See,
};

/// The wait before the first repetition after CONCURRENT_TRANSACTIONS: writing markers takes a few milliseconds. It doubles with
/// each repetition, so that a coordinator that can't write its markers gets ten requests in the first second.
const SOON: Duration = Duration::from_millis(2);

/// The attempts to send a request, of which one is in flight.
#[derive(Debug)]
pub(super) struct Attempt {
    phase: Phase,
    backoff: Backoff,
    soon: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Due(Instant),
    InFlight(u64),
}

impl Attempt {
    /// Creates a request that is due at once; repetitions wait from `backoff.0` to `backoff.1`.
    pub(super) const fn new(backoff: (Duration, Duration)) -> Self {
        Self {
            phase: Phase::Due(Instant::ZERO),
            backoff: Backoff::new(backoff.0, backoff.1),
            soon: Backoff::new(SOON, backoff.1),
        }
    }

    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("request of a transaction", 0, &self.phase);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Due(at) if at <= now)
    }

    /// Returns when the request is due; `None` while it is in flight.
    pub(super) const fn due_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Due(at) => Some(at),
            Phase::InFlight(_) => None,
        }
    }

    pub(super) const fn is_in_flight(&self) -> bool {
        matches!(self.phase, Phase::InFlight(_))
    }

    /// The request was sent under this number.
    pub(super) const fn note_sent(&mut self, number: u64) {
        self.phase = Phase::InFlight(number);
    }

    /// Returns true if the response with this number belongs to the request in flight.
    pub(super) fn is_response(&self, number: u64) -> bool {
        self.phase == Phase::InFlight(number)
    }

    /// The request is repeated after the back-off.
    pub(super) fn retry(&mut self, now: Instant, reaction: Reaction, rng: &mut Rng) {
        let wait = match reaction {
            Reaction::RetrySoon => self.soon.next(rng),
            _ => self.backoff.next(rng),
        };
        self.phase = Phase::Due(now + wait);
    }

    /// The request is repeated at once, in another form.
    pub(super) const fn repeat_now(&mut self, now: Instant) {
        self.phase = Phase::Due(now);
    }
}

/// Returns false if a request that failed with this error was certainly not sent.
pub(crate) fn may_have_been_sent(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::AllBrokersDown
            | ErrorKind::UnsupportedVersion
            // The lookup of the coordinator failed.
            | ErrorKind::Broker(_)
    )
}
