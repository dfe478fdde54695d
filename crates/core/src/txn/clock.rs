//! The countdown of `transaction.timeout.ms`.
//!
//! The coordinator aborts a transaction after that time and fences its producer. The client counts from the first
//! registration on, warns, and ends the transaction itself before: the producer then stays usable.

use std::time::Duration;

use super::{Registered, Transactions, ending::JobKind, overdue};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    produce::transaction::state::TransactionState,
    states::See,
};

/// The countdown of an open transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
    timeout: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Warned,
    Over,
}

impl Clock {
    const fn new(started: Instant, timeout: Duration) -> Self {
        Self { started, timeout, phase: Phase::Running }
    }

    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("countdown of a transaction", 0, &self.phase);
    }

    fn warn_at(&self) -> Instant {
        self.started + self.timeout * 4 / 5
    }

    /// Returns when the transaction can't be committed any more: so early that an abort reaches the coordinator in time.
    fn over_at(&self) -> Instant {
        let margin = (self.timeout / 20).clamp(Duration::from_millis(50), Duration::from_secs(1));
        self.started + self.timeout.saturating_sub(margin)
    }

    /// Returns true if the coordinator may have ended the transaction.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.over_at() <= now
    }

    /// Returns when to call [`Transactions::check_clock`]. A transaction that has failed needs no warning.
    pub(super) fn poll_timeout(&self, has_failed: bool) -> Option<Instant> {
        match self.phase {
            Phase::Running if !has_failed => Some(self.warn_at()),
            Phase::Running | Phase::Warned => Some(self.over_at()),
            Phase::Over => None,
        }
    }
}

impl Transactions {
    /// Starts the countdown with the first registration of the transaction.
    pub(super) fn start_clock(&mut self, now: Instant) {
        let timeout = self.producer.settings.transaction_timeout;
        self.clock.get_or_insert(Clock::new(now, timeout));
    }

    /// Warns at 80 % of the time. Close to its end, makes the transaction abortable, unless EndTxn was sent: then its outcome
    /// is open. With the newer protocol, a transaction that can only be aborted is aborted then, so that the coordinator does
    /// not fence the producer of an application that is late.
    pub(super) fn check_clock(&mut self, now: Instant) {
        let Some(clock) = &mut self.clock else { return };
        if self.state == TransactionState::AbortableError && clock.phase != Phase::Over && clock.is_over(now)
        {
            clock.phase = Phase::Over;
            self.aborts_early = self.shared.is_implicit();
        }
        if !self.state.may_send() {
            return;
        }
        if clock.phase == Phase::Running && clock.warn_at() <= now {
            clock.phase = Phase::Warned;
            self.needs.push_back(overdue(now.saturating_since(clock.started), clock.timeout));
        }
        if clock.phase == Phase::Warned && clock.over_at() <= now {
            clock.phase = Phase::Over;
            let detail = format!(
                "the transaction has been open for {} ms, and the coordinator aborts it after transaction.timeout.ms={}; use \
                 shorter transactions or raise the property",
                now.saturating_since(clock.started).as_millis(),
                clock.timeout.as_millis()
            );
            self.fail(now, Error::new(ErrorKind::TimedOut, detail));
            self.aborts_early = self.shared.is_implicit();
        }
    }

    /// Aborts a transaction whose timeout has passed, before the application does. Its batches in flight have the epoch
    /// that the abort ends, so brokers refuse them afterwards. With the older protocol they could still be appended, so
    /// there the application's abort must come first, which waits for them.
    pub(super) fn abort_early(&mut self) {
        let is_due = self.aborts_early && self.state == TransactionState::AbortableError;
        if !is_due || self.job.is_some() || self.registering.is_in_flight() || self.has_offsets_in_flight() {
            return;
        }
        self.aborts_early = false;
        if self.registered != Registered::Nothing {
            self.start_job(JobKind::End { commit: false, raises_epoch: true });
        }
    }
}
