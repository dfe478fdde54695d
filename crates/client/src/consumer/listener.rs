//! Rebalances as callbacks, on the thread that polls.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use ottla_core::{completion::Waiting, group::shared::RebalanceKind, waiters::Waiter};

use super::{
    Consumer,
    rebalances::{Questions, Rebalance},
};

/// Receives the rebalances of a consumer as callbacks. See [`Consumer::set_rebalance_listener`].
///
/// Each function gets the change as a token. It takes effect when the token is accepted or dropped: normally when the
/// function returns. A function may also move the token to another thread, which accepts it later, for example when its
/// work on the revoked partitions is done; [`Rebalance::time_left`] is the deadline.
pub trait RebalanceListener: Send {
    /// The consumer gets these partitions. [`Rebalance::accept_from`] chooses where they start.
    fn on_assigned(&mut self, rebalance: Rebalance) {
        rebalance.accept();
    }

    /// The consumer gives these partitions up. Their offsets can still be committed.
    fn on_revoked(&mut self, rebalance: Rebalance) {
        rebalance.accept();
    }

    /// The consumer lost these partitions: others may consume them already, and their offsets can't be committed.
    fn on_lost(&mut self, rebalance: Rebalance) {
        rebalance.accept();
    }
}

impl Consumer {
    /// Calls `listener` for each change of the assignment, as an alternative to [`Consumer::rebalances`].
    ///
    /// The functions run inside [`Consumer::poll`], [`Consumer::next`] and the other calls and futures that wait for
    /// records, and inside [`Consumer::unsubscribe`] and [`Consumer::close`], on the thread of the call. They may call
    /// the consumer; calls that would wait for the next rebalance return without records. A change that no poll has
    /// delivered when its deadline has passed, half of `max.poll.interval.ms`, takes effect without the listener.
    /// Another listener replaces this one.
    pub fn set_rebalance_listener(&self, listener: impl RebalanceListener + 'static) {
        let subscription = &self.inner.subscription;
        subscription.questions().set_listener(Box::new(listener));
        subscription.group().set_sink(Arc::clone(subscription.questions()) as _);
    }

    /// Calls the listener for the rebalances that wait for it, and registers for the next one.
    pub(super) fn serve_listener(&self, waiter: &mut Waiter<Questions>, context: &Context<'_>) {
        let questions = self.inner.subscription.questions();
        if !questions.has_listener.load(Ordering::Acquire) {
            return;
        }
        while let Some(mut held) = Held::take(questions) {
            let Poll::Ready(Some(event)) = questions.poll(waiter, context) else { return };
            let kind = event.kind;
            let rebalance = Rebalance::new(self.clone(), event);
            let Some(listener) = &mut held.listener else { return };
            match kind {
                RebalanceKind::Assign => listener.on_assigned(rebalance),
                RebalanceKind::Revoke => listener.on_revoked(rebalance),
                RebalanceKind::Lost => listener.on_lost(rebalance),
            }
        }
    }

    /// Waits until the consumer has left its group, and calls the listener meanwhile.
    pub(super) fn serving_until_left<'a>(
        &'a self,
        left: &'a mut Waiting<()>,
    ) -> impl Future<Output = Option<()>> + Send + 'a {
        let mut waiter = Waiter::default();
        poll_fn(move |context| {
            self.serve_listener(&mut waiter, context);
            Pin::new(&mut *left).poll(context)
        })
    }

    /// Waits until the consumer has left its group, and accepts rebalances meanwhile.
    pub(super) fn accepting_until_left<'a>(
        &'a self,
        left: &'a mut Waiting<()>,
    ) -> impl Future<Output = Option<()>> + Send + 'a {
        let mut waiter = Waiter::default();
        poll_fn(move |context| {
            if let Some(number) = self.inner.subscription.questions().take_unanswered(&mut waiter, context) {
                self.answer(number, Vec::new());
            }
            Pin::new(&mut *left).poll(context)
        })
    }
}

/// A listener while it is called. It goes back when this is dropped, after a panic, too.
struct Held<'a> {
    questions: &'a Questions,
    listener: Option<Box<dyn RebalanceListener>>,
}

impl<'a> Held<'a> {
    fn take(questions: &'a Questions) -> Option<Self> {
        let listener = questions.listener.lock().take()?;
        Some(Self { questions, listener: Some(listener) })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let old = {
            let mut place = self.questions.listener.lock();
            // The listener may have been replaced while it ran.
            if place.is_none() {
                std::mem::swap(&mut *place, &mut self.listener)
            };
            self.listener.take()
        };
        drop(old);
    }
}
