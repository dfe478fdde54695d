//! Blocking on a future, without a runtime.

use std::{
    cell::Cell,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use ottla_core::error::{Error, ErrorKind};

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a callback of the application. Meanwhile [`check_may_wait`] refuses calls that would block.
pub fn in_callback<R>(call: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_CALLBACK.set(self.0);
        }
    }
    let _restore = Restore(IN_CALLBACK.replace(true));
    call()
}

/// Returns an error on a thread that runs a delivery callback, because the call would wait for this thread.
pub fn check_may_wait(call: &str) -> Result<(), Error> {
    if !IN_CALLBACK.get() {
        return Ok(());
    }
    let detail = format!(
        "{call} would deadlock in a delivery callback, whose thread sends and reports; use a call that does not block, or \
         another thread"
    );
    Err(Error::new(ErrorKind::State, detail))
}

/// Runs a future on this thread. Returns `None` after `timeout`.
pub fn wait_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let waker = thread_waker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    // A timeout that the clock can't represent never ends.
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        match deadline {
            None => thread::park(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                thread::park_timeout(left);
            }
        }
    }
}

/// Returns the waker that unparks this thread. A thread that exits has none of its own any more.
fn thread_waker() -> Waker {
    thread_local! {
        static OWN: Waker = Waker::from(Arc::new(Unpark(thread::current())));
    }
    OWN.try_with(Waker::clone).unwrap_or_else(|_| Waker::from(Arc::new(Unpark(thread::current()))))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_returns_none_after_the_timeout() {
        let start = Instant::now();
        assert_eq!(wait_for(std::future::pending::<()>(), Duration::from_millis(20)), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert_eq!(wait_for(async { 5 }, Duration::ZERO), Some(5));
    }
}
