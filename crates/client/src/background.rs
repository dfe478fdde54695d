//! Futures that go on after their owner was dropped, without a thread of their own.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use ottla_core::lock::Mutex;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that each wake-up continues, on the thread that wakes it.
struct Task(Mutex<State>);

enum State {
    /// The future waits for a wake-up.
    Waiting(Work),
    /// A thread runs a step, without the lock; true if another wake-up has come meanwhile.
    Running(bool),
    Over,
}

/// Runs a future to its end. Its steps must not block: they run on the client's threads.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    Arc::new(Task(Mutex::new(State::Waiting(Box::pin(future))))).wake();
}

impl Task {
    /// Returns the future, if this thread is to continue it.
    fn begin(&self) -> Option<Work> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Running(false)) {
            State::Waiting(work) => Some(work),
            State::Running(_) => {
                *state = State::Running(true);
                None
            }
            State::Over => {
                *state = State::Over;
                None
            }
        }
    }

    /// Keeps the future for the next wake-up; returns it if that has come already.
    fn pause(&self, work: Work) -> Option<Work> {
        let mut state = self.0.lock();
        if matches!(*state, State::Running(true)) {
            *state = State::Running(false);
            return Some(work);
        }
        *state = State::Waiting(work);
        None
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut next = self.begin();
        let waker = Waker::from(Arc::clone(&self));
        while let Some(mut work) = next {
            next = match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => self.pause(work),
                Poll::Ready(()) => {
                    *self.0.lock() = State::Over;
                    None
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn step_that_wakes_its_task_is_followed_by_another() {
        static STEPS: AtomicUsize = AtomicUsize::new(0);
        spawn(poll_fn(|context| {
            if STEPS.fetch_add(1, Ordering::SeqCst) == 2 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        assert_eq!(STEPS.load(Ordering::SeqCst), 3);
    }
}
