//! A one-shot channel that hands one result from a machine to a waiting future or thread.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::sync::Mutex;

/// The sending end. Dropping it without a result wakes the receiver, which then gets `None`.
pub struct Completion<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

/// The receiving end: a future that resolves to the result, or to `None` if the sending end was dropped.
pub struct Waiting<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    result: Option<T>,
    over: bool,
    waker: Option<Waker>,
}

/// Creates a completion and the future that waits for it.
pub fn completion<T>() -> (Completion<T>, Waiting<T>) {
    let slot = Arc::new(Mutex::new(Slot { result: None, over: false, waker: None }));
    (Completion { slot: Arc::clone(&slot) }, Waiting { slot })
}

impl<T> Completion<T> {
    /// Returns true if the receiving end still exists.
    pub(crate) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.slot) > 1
    }

    /// Delivers the result and wakes the receiver.
    pub fn complete(self, result: T) {
        self.slot.lock().result = Some(result);
    }
}

impl<T> Drop for Completion<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = self.slot.lock();
            slot.over = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Waiting<T> {
    /// Takes the result without waiting; `None` if it has not arrived.
    pub fn try_take(&self) -> Option<T> {
        self.slot.lock().result.take()
    }
}

/// A waker keeps a task in memory, which an operation that goes on must not.
impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        let waker = self.slot.lock().waker.take();
        drop(waker);
    }
}

impl<T> Future for Waiting<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.slot.lock();
        if let Some(result) = slot.result.take() {
            return Poll::Ready(Some(result));
        }
        if slot.over {
            return Poll::Ready(None);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

impl<T> fmt::Debug for Waiting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<T>(waiting: &mut Waiting<T>) -> Poll<Option<T>> {
        Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn result_reaches_the_waiter_once() {
        let (completion, mut waiting) = completion();
        assert_eq!(poll(&mut waiting), Poll::Pending);
        completion.complete(5);
        assert_eq!(poll(&mut waiting), Poll::Ready(Some(5)));
    }

    #[test]
    fn a_dropped_completion_ends_the_wait() {
        let (completion, mut waiting) = completion::<u8>();
        drop(completion);
        assert_eq!(poll(&mut waiting), Poll::Ready(None));
    }
}
