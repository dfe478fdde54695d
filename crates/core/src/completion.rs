//! One answer, handed from a machine to whoever waits for it: a future, or a thread.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::sync::Mutex;

/// The answering end. Dropping it without an answer wakes the waiter, who then gets `None`.
pub struct Completion<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

/// The waiting end: a future that resolves to the answer, or to `None` if none will come.
pub struct Waiting<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    answer: Option<T>,
    over: bool,
    waker: Option<Waker>,
}

/// A completion and the future that waits for it.
pub fn completion<T>() -> (Completion<T>, Waiting<T>) {
    let slot = Arc::new(Mutex::new(Slot { answer: None, over: false, waker: None }));
    (Completion { slot: Arc::clone(&slot) }, Waiting { slot })
}

impl<T> Completion<T> {
    /// Gives the answer and wakes the waiter.
    pub fn complete(self, answer: T) {
        self.slot.lock().answer = Some(answer);
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
    /// The answer, if it is there already.
    pub fn try_take(&self) -> Option<T> {
        self.slot.lock().answer.take()
    }
}

impl<T> Future for Waiting<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.slot.lock();
        if let Some(answer) = slot.answer.take() {
            return Poll::Ready(Some(answer));
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
    fn an_answer_reaches_the_waiter_once() {
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
