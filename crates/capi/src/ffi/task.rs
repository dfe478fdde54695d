//! Futures without a thread: each wake-up runs the next step in the thread that delivers the response.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use crate::ffi::lock::{Mutex, assert_none_held};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    state: Mutex<State>,
}

/// The state of a task.
enum State {
    /// The future waits for a wake-up.
    Waiting(Work),
    /// A thread runs a step, without the lock: the step may call the application.
    Running {
        is_woken: bool,
    },
    Over,
}

/// Runs a future to its end. Its steps must not block: they run in the thread that delivers the response.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    Arc::new(Task { state: Mutex::new(State::Waiting(Box::pin(future))) }).wake();
}

impl Task {
    /// Returns the future, if this thread has to run it.
    fn begin(&self) -> Option<Work> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Running { is_woken: false }) {
            State::Waiting(work) => Some(work),
            State::Running { .. } => {
                *state = State::Running { is_woken: true };
                None
            }
            State::Over => {
                *state = State::Over;
                None
            }
        }
    }

    /// Stores the future for the next wake-up; returns it if a wake-up has come meanwhile.
    fn pause(&self, work: Work) -> Option<Work> {
        let mut state = self.state.lock();
        if let State::Running { is_woken: is_woken @ true } = &mut *state {
            *is_woken = false;
            return Some(work);
        }
        *state = State::Waiting(work);
        None
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        assert_none_held("a step of a task");
        let mut next = self.begin();
        let waker = Waker::from(Arc::clone(&self));
        while let Some(mut work) = next {
            next = match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => self.pause(work),
                Poll::Ready(()) => {
                    *self.state.lock() = State::Over;
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
    fn task_runs_another_step_when_its_step_wakes_it() {
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
