//! The locks of the C library, and the rule that nothing is called out while one is held.
//!
//! Functions of the application, log callbacks and other queues are called after every lock is released, because each
//! of them may call the library again and need the same lock. Two mechanisms enforce this:
//!
//! - [`SealedMutex`], the lock of a queue, runs plain functions only. They capture nothing, and their argument has to
//!   be [`Inert`], which a client is not. Calls that have to be made are returned, and run after the lock is released.
//! - Debug builds count the locks that each thread holds. The library calls [`assert_none_held`] before it calls out;
//!   it panics if the count is not zero. The C test programs run on a debug build.
//!
//! # Pitfalls
//!
//! - Dropping a value can call out, too: dropping the last topic of a client drops the client. Values that may own one
//!   leave the lock before they are dropped (`calling_out_under_a_lock_panics`).
//! - A poll serves callbacks, log lines and other queues, each of which may need the lock of the queue that is polled.
//!   Code under that lock is a plain function that cannot reach a client, and debug builds panic when a callback runs
//!   under any lock of the library (`callouts.c`).

use std::{
    ops::{Deref, DerefMut},
    time::Instant,
};

use ottla_core::lock::{Condvar as RawCondvar, Mutex as RawMutex, MutexGuard as RawGuard};

/// A mutex whose guards are counted in debug builds.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(RawMutex<T>);

/// The guard of a [`Mutex`].
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    /// The standard guard, which is released before the count goes down.
    data: RawGuard<'a, T>,
    _held: Held,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(data: T) -> Self {
        Self(RawMutex::new(data))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let data = self.0.lock();
        MutexGuard { data, _held: Held::begin() }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}

/// A condition variable for [`Mutex`] and [`SealedMutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(RawCondvar);

impl Condvar {
    #[inline]
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut guard.data);
    }

    /// Waits until notified; returns false if `until` passes first.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> bool {
        let timeout = until.saturating_duration_since(Instant::now());
        !self.0.wait_for(&mut guard.data, timeout).timed_out()
    }
}

/// A value that code under a [`SealedMutex`] may use: it does not lead to the application, to a log or to another
/// queue.
pub(crate) trait Inert {}

impl Inert for () {}
impl Inert for bool {}
impl Inert for u64 {}

/// A mutex whose content only plain functions can reach.
#[derive(Debug, Default)]
pub(crate) struct SealedMutex<T>(Mutex<T>);

/// The result of one step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The condition is met, with this result.
    Over,
    /// The condition is not met.
    On,
}

impl<T> SealedMutex<T> {
    /// Runs `work` under the lock.
    #[inline]
    pub(crate) fn with<I: Inert, O>(&self, input: I, work: fn(&mut T, I) -> O) -> O {
        // Checked before the lock is taken: two queues that are locked one inside the other can cause a deadlock.
        assert_none_held("the lock of a queue");
        work(&mut self.0.lock(), input)
    }

    /// Runs `work` under the lock each time that `changed` is notified, until `work` returns a value, or until `until`
    /// has passed (`None`: no limit).
    pub(crate) fn wait<I: Inert + Copy, O>(
        &self,
        changed: &Condvar,
        until: Option<Instant>,
        input: I,
        work: fn(&mut T, I, Wait) -> Option<O>,
    ) -> Option<O> {
        assert_none_held("the lock of a queue");
        let mut data = self.0.lock();
        loop {
            if let Some(found) = work(&mut data, input, Wait::On) {
                return Some(found);
            }
            let is_notified = match until {
                None => {
                    changed.wait(&mut data);
                    true
                }
                Some(until) => changed.wait_until(&mut data, until),
            };
            if !is_notified {
                return work(&mut data, input, Wait::Over);
            }
        }
    }
}

#[cfg(debug_assertions)]
mod count {
    use std::cell::Cell;

    thread_local! {
        /// The number of locks that this thread holds.
        static HELD: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Debug)]
    pub(super) struct Held;

    impl Held {
        pub(super) fn begin() -> Self {
            HELD.set(HELD.get() + 1);
            Self
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.set(HELD.get() - 1);
        }
    }

    pub(super) fn held() -> usize {
        HELD.get()
    }
}

#[cfg(not(debug_assertions))]
mod count {
    #[derive(Debug)]
    pub(super) struct Held;

    impl Held {
        #[inline(always)]
        pub(super) const fn begin() -> Self {
            Self
        }
    }
}

use count::Held;

/// Panics in debug builds if this thread holds a lock of the library; `what` names the call or lock that would follow.
#[inline(always)]
pub(crate) fn assert_none_held(what: &str) {
    #[cfg(debug_assertions)]
    if count::held() > 0 && !std::thread::panicking() {
        panic!("{what} is reached while a lock of the library is held");
    }
    #[cfg(not(debug_assertions))]
    let _ = what;
}

#[cfg(test)]
mod tests {
    use std::{panic::catch_unwind, sync::Arc, thread, time::Duration};

    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn calling_out_under_a_lock_panics() {
        static OUTER: Mutex<u32> = Mutex::new(1);
        assert_none_held("a callback");
        let called = catch_unwind(|| {
            let _guard = OUTER.lock();
            assert_none_held("a callback");
        });
        assert!(called.is_err());
        assert_none_held("a callback after the guard was dropped");
    }

    #[test]
    #[cfg(debug_assertions)]
    fn locking_a_queue_under_another_lock_panics() {
        let (outer, queue) = (Mutex::new(1), SealedMutex::<u64>::default());
        assert_eq!(
            queue.with(7, |state, add| {
                *state += add;
                *state
            }),
            7
        );
        let nested = catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = outer.lock();
            queue.with((), |state, ()| *state)
        }));
        assert!(nested.is_err());
        assert_eq!(queue.with((), |state, ()| *state), 7);
    }

    #[test]
    fn wait_ends_when_its_condition_holds() {
        let both = Arc::new((SealedMutex::<u64>::default(), Condvar::default()));
        let other = Arc::clone(&both);
        let waiter = thread::spawn(move || {
            other.0.wait(&other.1, None, 3, |state, enough, _| (*state >= enough).then_some(*state))
        });
        for _ in 0..3 {
            both.0.with((), |state, ()| *state += 1);
            both.1.notify_all();
        }
        assert_eq!(waiter.join().unwrap(), Some(3));
        let soon = Instant::now() + Duration::from_millis(1);
        let timed_out =
            both.0.wait(&both.1, Some(soon), (), |_, (), wait| (wait == Wait::Over).then_some(()));
        assert_eq!(timed_out, Some(()));
    }
}
