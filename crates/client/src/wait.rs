//! Blocking on a future, without a runtime.
//!
//! With `io.on.waiting.threads` a thread that waits for its client does the I/O threads' work meanwhile ([`Drivers::wait`]), if no other
//! thread does.

use std::{
    cell::Cell,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use ottla_core::error::{Error, ErrorKind};
use ottla_net::{Drivers, Sleeper, notes_wait, running};

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
    wait_in_lead(None, future, timeout)
}

/// Runs a future on this thread, which does the work of the I/O threads while it waits. Returns `None` after `timeout`.
pub fn wait_in_lead<F: Future>(drivers: Option<&Drivers>, future: F, timeout: Duration) -> Option<F::Output> {
    let own = own_waker();
    let mut context = Context::from_waker(&own.waker);
    let mut future = pin!(future);
    // A timeout that the clock can't represent never ends.
    let deadline = Instant::now().checked_add(timeout);
    own.thread.sleeper.begin();
    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
        return Some(output);
    }
    if drivers.is_some() {
        notes_wait();
    }
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        own.thread.sleep(drivers, left);
        own.thread.sleeper.begin();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
    }
}

/// What wakes a thread that waits.
#[derive(Clone)]
struct OwnWaker {
    thread: Arc<Unpark>,
    waker: Waker,
}

impl OwnWaker {
    fn new() -> Self {
        let sleeper = Sleeper::default();
        let thread =
            Arc::new(Unpark { thread: thread::current(), sleeper, woken_by: AtomicU64::new(NOBODY) });
        Self { waker: Waker::from(Arc::clone(&thread)), thread }
    }
}

/// Returns the waker of this thread. A thread that exits has none of its own any more.
fn own_waker() -> OwnWaker {
    thread_local! {
        static OWN: OwnWaker = OwnWaker::new();
    }
    OWN.try_with(OwnWaker::clone).unwrap_or_else(|_| OwnWaker::new())
}

/// A thread that sleeps, or polls in the place of an I/O thread.
struct Unpark {
    thread: Thread,
    sleeper: Sleeper,
    /// The number of the I/O thread whose machines woke this thread last.
    woken_by: AtomicU64,
}

/// The number of no I/O thread.
const NOBODY: u64 = u64::MAX;

impl Unpark {
    /// Waits for a wake-up, for at most this time.
    fn sleep(&self, drivers: Option<&Drivers>, left: Option<Duration>) {
        let last = Some(self.woken_by.load(Ordering::Relaxed)).filter(|number| *number != NOBODY);
        let leads =
            drivers.is_some_and(|drivers| drivers.wait(&self.sleeper, last, left.unwrap_or(Duration::MAX)));
        match left {
            _ if leads => {}
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(number) = running() {
            self.woken_by.store(number, Ordering::Relaxed);
        }
        self.sleeper.wake();
        self.thread.unpark();
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
