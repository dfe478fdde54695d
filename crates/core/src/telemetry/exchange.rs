//! The exchange with brokers: when to ask what they subscribe to, when to push, and the reactions to errors.
//!
//! ```text
//!  AwaitBroker ── a broker takes metrics ──► Asking ── none requested, error ──► Waiting ── due ──► Asking
//!      ▲ ▲                                     │ ▲
//!      │ └── no such broker is connected ──────┤ └── unknown subscription, at once, but not twice in a row
//!      │                                       ▼ metrics requested
//!      └──────────────────────────────────  Scheduled ── due ──► Gathering ── snapshot ──► Pushing
//!                                              ▲                                             │ accepted, error
//!                                              └─────────────────────────────────────────────┘
//!  any ── an error that stays ──► Off
//! ```
//!
//! Closing goes from `Scheduled`, or from the end of `Pushing`, through `Gathering` and `Pushing` once more.
//!
//! | error | reaction |
//! |---|---|
//! | INVALID_REQUEST, INVALID_RECORD, a response that can't be decoded | off |
//! | UNSUPPORTED_VERSION | another broker |
//! | UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE | ask at once; if the next push fails so, too, after the interval |
//! | TELEMETRY_TOO_LARGE | smaller pushes from the next interval on |
//! | THROTTLING_QUOTA_EXCEEDED, a lost request | the next interval |
//! | others | ask after the interval |
//!
//! # Pitfalls
//!
//! - All clients of a fleet may start at once: the first push of a subscription comes after 0.5 to 1.5 intervals
//!   (`first_pushes_of_many_clients_are_spread`).
//! - A shorter interval holds from the moment it is known, and not after the rest of the longer one
//!   (`shorter_interval_holds_at_once`).

use std::{collections::VecDeque, time::Duration};

use ottla_protocol::{compress::Compression, error_code::ErrorCode};

use super::subscription::Subscription;
use crate::{
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    rng::Rng,
    states::See,
};

/// The time until the next attempt if the first request got no response, and the interval is unknown.
const RETRY: Duration = Duration::from_secs(30);
/// The jitter of the first push of a subscription, in percent of the interval.
const FIRST_JITTER: u32 = 50;
/// The smallest limit of a push's size after brokers found pushes too large.
const MIN_SIZE_LIMIT: usize = 512;

/// The schedule of requests.
#[derive(Debug)]
pub(super) struct Exchange {
    state: State,
    life: Life,
    subscription: Option<Subscription>,
    /// Codecs that the broker named but refused.
    refused_codecs: Vec<Compression>,
    /// True if the last push failed for its subscription, which was renewed at once.
    has_renewed: bool,
    size_limit: usize,
    /// The end of the last push.
    pushed_at: Option<Instant>,
    /// No request before, except for a reason that permits it.
    ask_not_before: Instant,
    /// The broker of the last request does not take client metrics.
    has_refused_broker: bool,
    steps: VecDeque<Step>,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connected broker takes client metrics.
    AwaitBroker,
    /// GetTelemetrySubscriptions is in flight.
    Asking,
    /// It is sent then.
    Waiting(Instant),
    /// The next push is due then.
    Scheduled(Instant),
    /// The actors add their part of the statistics.
    Gathering,
    /// PushTelemetry is in flight.
    Pushing,
    /// Nothing is sent any more.
    Off,
}

/// How far the client is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    /// The last push is to be made until the deadline.
    Closing {
        deadline: Instant,
        is_last_sent: bool,
    },
    Ended,
}

/// A step for the part to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send GetTelemetrySubscriptions.
    Ask,
    /// Take a snapshot of the statistics.
    Gather,
    /// Send the prepared push.
    Push {
        /// True for the last one of the client.
        is_last: bool,
    },
}

/// The reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No broker that takes client metrics is connected: nothing was sent.
    NoBroker,
    /// The broker does not have the API.
    Unsupported,
    /// There was no response.
    Lost,
    /// The response can't be decoded, or has no client instance ID.
    BadResponse,
    /// The broker responded with this error.
    Code(ErrorCode),
}

impl Failure {
    /// Returns the reason for an error that replaces a response.
    pub(super) fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::State => Self::NoBroker,
            ErrorKind::UnsupportedVersion => Self::Unsupported,
            _ => Self::Lost,
        }
    }
}

/// The reaction to a failure.
enum Reaction {
    Stop,
    AwaitBroker,
    AnotherBroker,
    Renew,
    Smaller,
    PushLater,
    AskLater,
}

fn reaction(failure: Failure) -> Reaction {
    match failure {
        Failure::NoBroker => Reaction::AwaitBroker,
        Failure::BadResponse => Reaction::Stop,
        Failure::Unsupported => Reaction::AnotherBroker,
        Failure::Lost => Reaction::PushLater,
        Failure::Code(code) => match code {
            ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_RECORD => Reaction::Stop,
            ErrorCode::UNSUPPORTED_VERSION => Reaction::AnotherBroker,
            ErrorCode::UNKNOWN_SUBSCRIPTION_ID | ErrorCode::UNSUPPORTED_COMPRESSION_TYPE => Reaction::Renew,
            ErrorCode::TELEMETRY_TOO_LARGE => Reaction::Smaller,
            ErrorCode::THROTTLING_QUOTA_EXCEEDED => Reaction::PushLater,
            _ => Reaction::AskLater,
        },
    }
}

impl Exchange {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("telemetry", 0, &self.state);
        see("end of telemetry", 0, &self.life);
    }

    /// Creates an exchange that waits for a broker.
    pub(super) const fn new(rng: Rng) -> Self {
        Self {
            state: State::AwaitBroker,
            life: Life::Open,
            subscription: None,
            refused_codecs: Vec::new(),
            has_renewed: false,
            size_limit: usize::MAX,
            pushed_at: None,
            ask_not_before: Instant::ZERO,
            has_refused_broker: false,
            steps: VecDeque::new(),
            rng,
        }
    }

    /// Returns true if nothing is sent any more.
    pub(super) const fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// Returns what the broker subscribed to, if it wants metrics.
    pub(super) const fn subscription(&self) -> Option<&Subscription> {
        self.subscription.as_ref()
    }

    /// Returns the codecs that the broker named but refused.
    pub(super) fn refused_codecs(&self) -> &[Compression] {
        &self.refused_codecs
    }

    /// Returns the maximum size of a push after errors.
    pub(super) const fn size_limit(&self) -> usize {
        self.size_limit
    }

    /// Returns true, once, if the broker of the last request does not take client metrics.
    pub(super) const fn take_refused_broker(&mut self) -> bool {
        std::mem::replace(&mut self.has_refused_broker, false)
    }

    /// Returns the next step.
    pub(super) fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Handles a connection to a broker that takes client metrics.
    pub(super) fn handle_broker(&mut self, now: Instant) {
        if self.state != State::AwaitBroker {
            return;
        }
        match &self.subscription {
            Some(subscription) => {
                let at = self.pushed_at.map_or(now, |pushed_at| pushed_at + subscription.interval);
                self.state = State::Scheduled(at.max(now));
            }
            None if self.ask_not_before > now => self.state = State::Waiting(self.ask_not_before),
            None => self.ask(),
        }
    }

    /// Handles the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.life, Life::Closing { deadline, .. } if deadline <= now) {
            return self.end();
        }
        match self.state {
            State::Waiting(at) if at <= now => self.ask(),
            State::Scheduled(at) if at <= now => self.gather(),
            _ => {}
        }
    }

    /// Returns when to call [`Exchange::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.state {
            State::Waiting(at) | State::Scheduled(at) => Some(at),
            _ => None,
        };
        match self.life {
            Life::Open => next,
            Life::Closing { deadline, .. } => earliest(next, Some(deadline)),
            Life::Ended => None,
        }
    }

    /// Handles a subscription, or the failure to get one. Error: the failure that ends telemetry.
    pub(super) fn handle_subscription(
        &mut self,
        now: Instant,
        outcome: Result<Subscription, Failure>,
    ) -> Result<(), Failure> {
        if self.state != State::Asking {
            return Ok(());
        }
        let failure = match outcome {
            Ok(subscription) => {
                self.accept(now, subscription);
                return Ok(());
            }
            Err(failure) => failure,
        };
        let interval = self.subscription.take().map(|subscription| subscription.interval);
        let retry_at = now + interval.unwrap_or_else(|| self.rng.jitter(RETRY, 20));
        self.ask_not_before = retry_at;
        match reaction(failure) {
            Reaction::Stop => {
                self.end_with(State::Off);
                return Err(failure);
            }
            Reaction::AwaitBroker => {
                // Nothing was sent, so that the next broker may be asked at once.
                self.ask_not_before = now;
                self.state = State::AwaitBroker;
            }
            Reaction::AnotherBroker => {
                self.has_refused_broker = true;
                self.ask();
            }
            _ => self.state = State::Waiting(retry_at),
        }
        Ok(())
    }

    fn accept(&mut self, now: Instant, subscription: Subscription) {
        let interval = subscription.interval;
        self.size_limit = usize::MAX;
        self.ask_not_before = now + interval;
        if !subscription.is_requested {
            self.subscription = None;
            self.state = State::Waiting(now + interval);
            return;
        }
        let first = now + self.rng.jitter(interval, FIRST_JITTER);
        let earliest = self.pushed_at.map_or(first, |pushed_at| pushed_at + interval);
        self.subscription = Some(subscription);
        self.state = State::Scheduled(first.max(earliest));
    }

    /// Handles the arrival of the snapshot for a push. Returns false if the push was given up.
    pub(super) fn handle_snapshot(&mut self) -> bool {
        if self.state != State::Gathering {
            return false;
        }
        self.state = State::Pushing;
        let is_last = match &mut self.life {
            Life::Closing { is_last_sent, .. } => {
                *is_last_sent = true;
                true
            }
            Life::Open | Life::Ended => false,
        };
        self.steps.push_back(Step::Push { is_last });
        true
    }

    /// Handles the outcome of a push of this size. Error: the failure that ends telemetry.
    pub(super) fn handle_pushed(
        &mut self,
        now: Instant,
        size: usize,
        outcome: Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.state != State::Pushing {
            return Ok(());
        }
        if matches!(self.life, Life::Closing { is_last_sent: true, .. }) {
            self.end();
            return Ok(());
        }
        let Some(subscription) = &self.subscription else { return Ok(()) };
        let next = now + subscription.interval;
        if outcome != Err(Failure::NoBroker) {
            self.pushed_at = Some(now);
        }
        self.state = State::Scheduled(next);
        match outcome {
            Ok(()) => self.has_renewed = false,
            Err(failure) => match reaction(failure) {
                Reaction::Stop => {
                    self.end_with(State::Off);
                    return Err(failure);
                }
                Reaction::AwaitBroker => self.state = State::AwaitBroker,
                Reaction::AnotherBroker => self.has_refused_broker = true,
                Reaction::Renew => {
                    if failure == Failure::Code(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE)
                        && !self.refused_codecs.contains(&subscription.codec)
                    {
                        self.refused_codecs.push(subscription.codec);
                    }
                    self.renew(next);
                }
                Reaction::Smaller => self.size_limit = (size / 2).max(MIN_SIZE_LIMIT),
                Reaction::PushLater => {}
                Reaction::AskLater => {
                    self.ask_not_before = next;
                    self.state = State::Waiting(next);
                }
            },
        }
        self.go_on_closing();
        Ok(())
    }

    /// Asks again at once, unless the last push failed for the same reason.
    fn renew(&mut self, next: Instant) {
        if std::mem::replace(&mut self.has_renewed, true) {
            self.ask_not_before = next;
            self.state = State::Waiting(next);
        } else {
            self.ask();
        }
    }

    fn ask(&mut self) {
        self.state = State::Asking;
        self.steps.push_back(Step::Ask);
    }

    fn gather(&mut self) {
        self.state = State::Gathering;
        self.steps.push_back(Step::Gather);
    }

    // ---- the end

    /// Begins to close. Returns false if there is nothing to push.
    pub(super) fn begin_close(&mut self, now: Instant, deadline: Instant) -> bool {
        if self.life != Life::Open || deadline <= now || self.subscription.is_none() {
            return false;
        }
        match self.state {
            State::Scheduled(_) => self.gather(),
            State::Gathering | State::Pushing => {}
            State::AwaitBroker | State::Asking | State::Waiting(_) | State::Off => return false,
        }
        self.life = Life::Closing { deadline, is_last_sent: false };
        true
    }

    /// Returns true if the last push has ended.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.life, Life::Ended)
    }

    /// Ends the exchange.
    pub(super) fn end(&mut self) {
        self.end_with(State::Off);
        self.life = Life::Ended;
    }

    fn end_with(&mut self, state: State) {
        self.state = state;
        self.subscription = None;
        self.steps.clear();
        if matches!(self.life, Life::Closing { .. }) {
            self.life = Life::Ended;
        }
    }

    /// Makes the last push after an earlier one was in flight.
    fn go_on_closing(&mut self) {
        match (self.life, self.state) {
            (Life::Closing { .. }, State::Scheduled(_)) => self.gather(),
            (Life::Closing { .. }, _) => self.end(),
            (Life::Open | Life::Ended, _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
