//! The limit of calls that wait without a timeout argument: `max.block.ms`, if it is set.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    cluster::{command::Command, reminders::Reminder},
    completion::{Waiting, completion},
    produce::record::SendError,
};
use ottla_net::clock;

use super::Inner;

/// The limit of one call.
#[derive(Debug)]
pub(super) struct MaxBlock {
    limit: Option<Duration>,
    timer: Option<Waiting<()>>,
}

impl MaxBlock {
    /// Creates the limit of a call that begins to wait.
    pub(super) fn new(inner: &Inner) -> Self {
        Self { limit: inner.shared.settings.max_block, timer: None }
    }

    /// Creates the limit of a call that has a timeout: none.
    pub(super) const fn none() -> Self {
        Self { limit: None, timer: None }
    }

    /// Returns the result of an attempt to send a record; [`SendError::QueueFull`] at the end of the time.
    pub(super) fn apply(
        &mut self,
        inner: &Inner,
        context: &mut Context<'_>,
        sent: Poll<Result<(), SendError>>,
    ) -> Poll<Result<(), SendError>> {
        if sent.is_pending() && self.is_over(inner, context) {
            return Poll::Ready(Err(SendError::QueueFull));
        }
        sent
    }

    /// Runs a future until the end of the time.
    pub(super) async fn run<F: Future>(&mut self, inner: &Inner, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.is_over(inner, context) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Returns true if the time is over; otherwise registers to be woken then. The first call starts the time.
    fn is_over(&mut self, inner: &Inner, context: &mut Context<'_>) -> bool {
        let Some(after) = self.limit else { return false };
        if after.is_zero() {
            return true;
        }
        let timer = self.timer.get_or_insert_with(|| {
            let (done, timer) = completion();
            let _ = inner.client.command(Command::Remind(Reminder { at: clock::now() + after, done }));
            timer
        });
        match Pin::new(timer).poll(context) {
            Poll::Ready(Some(())) => {
                self.limit = Some(Duration::ZERO);
                true
            }
            // The client has ended, which ends the call.
            Poll::Ready(None) => {
                self.limit = None;
                false
            }
            Poll::Pending => false,
        }
    }
}
