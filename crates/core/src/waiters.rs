//! The wakers of the threads and tasks that wait at a place that threads share.
//!
//! ```text
//!  a call or future ── Waiter ── registers ──► Waiters of the place ── taken and woken by the next change
//!                        └── its drop deregisters
//! ```
//!
//! # Pitfalls
//!
//! - A waiter whose wait ended by a timeout is woken by nothing: if it stayed registered, each idle poll would cost more than
//!   the one before (`waiter_that_ends_leaves_nothing_behind`).
//! - Dropping a waker may drop a task, and with it other waiters of the same place: wakers are dropped without the place's lock
//!   (`dropping_a_waker_may_end_another_wait_at_the_same_place`).

use std::{
    fmt, mem,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use ottla_sorted::{Entry, SortedMap};

/// A place where threads and tasks wait.
pub trait WaitPlace {
    /// Calls `act` with the registered wakers, under the place's lock.
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R;
}

/// The registered wakers of a place, in the order of their waiters.
#[derive(Default)]
pub struct Waiters(SortedMap<u64, Waker>);

/// One waiter of a place: a call or a future. It has at most one waker there, and none after it was dropped.
pub struct Waiter<P: WaitPlace> {
    place: Weak<P>,
    /// Its number, unique in the process; 0 until it registers.
    number: u64,
}

impl Waiters {
    /// Registers the waker of a waiter instead of its last one, which is to be dropped without the lock.
    pub fn register(&mut self, number: u64, waker: &Waker) -> Option<Waker> {
        match self.0.entry(number) {
            Entry::Vacant(vacant) => {
                vacant.insert(waker.clone());
                None
            }
            Entry::Occupied(known) if known.get().will_wake(waker) => None,
            Entry::Occupied(mut known) => Some(known.insert(waker.clone())),
        }
    }

    /// Returns the number of wakers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no waker.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Waiters {
    type Item = Waker;
    type IntoIter = ottla_sorted::iter::IntoValues<u64, Waker>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_values()
    }
}

impl<P: WaitPlace> Waiter<P> {
    /// Returns the waiter's number at this place, with which it registers. It leaves its last place, if that is another one.
    pub fn number_at(&mut self, place: &Arc<P>) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.number == 0 || !std::ptr::eq(self.place.as_ptr(), Arc::as_ptr(place)) {
            self.leave();
            self.place = Arc::downgrade(place);
            self.number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.number
    }

    /// Registers a waker. Check once more after this call before sleeping.
    pub fn register(&mut self, place: &Arc<P>, waker: &Waker) {
        let number = self.number_at(place);
        let old = place.with_waiters(|waiters| waiters.register(number, waker));
        drop(old);
    }

    /// Deregisters.
    pub fn leave(&mut self) {
        let number = mem::take(&mut self.number);
        // Without the place there are no wakers.
        if number > 0
            && let Some(place) = self.place.upgrade()
        {
            let waker = place.with_waiters(|waiters| waiters.0.remove(&number));
            drop(waker);
        }
    }
}

impl<P: WaitPlace> Drop for Waiter<P> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<P: WaitPlace> Default for Waiter<P> {
    fn default() -> Self {
        Self { place: Weak::new(), number: 0 }
    }
}

impl<P: WaitPlace> fmt::Debug for Waiter<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiter({})", self.number)
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiters({})", self.len())
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::task::Wake;

    use super::*;
    use crate::sync::Mutex;

    #[derive(Default)]
    struct Place(Mutex<Waiters>);

    impl WaitPlace for Place {
        fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
            act(&mut self.0.lock())
        }
    }

    impl Place {
        fn len(&self) -> usize {
            self.0.lock().len()
        }
    }

    /// A task that waits at the same place.
    struct Task(#[expect(dead_code, reason = "its drop counts")] Mutex<Waiter<Place>>);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn waiter_that_ends_leaves_nothing_behind() {
        let place = Arc::new(Place::default());
        let mut kept = Waiter::default();
        for _ in 0..1000 {
            Waiter::default().register(&place, Waker::noop());
            kept.register(&place, Waker::noop());
        }
        assert_eq!(place.len(), 1);
        mem::take(&mut *place.0.lock()).into_iter().for_each(Waker::wake);
        assert_eq!(place.len(), 0);
        kept.register(&place, Waker::noop());
        let other = Arc::new(Place::default());
        kept.register(&other, Waker::noop());
        assert_eq!((place.len(), other.len()), (0, 1));
        drop(kept);
        assert_eq!(other.len(), 0);
    }

    #[test]
    fn dropping_a_waker_may_end_another_wait_at_the_same_place() {
        let place = Arc::new(Place::default());
        let task = || {
            let mut of_task = Waiter::default();
            of_task.register(&place, Waker::noop());
            Waker::from(Arc::new(Task(Mutex::new(of_task))))
        };
        let mut waiter = Waiter::default();
        waiter.register(&place, &task());
        waiter.register(&place, &task());
        assert_eq!(place.len(), 2, "the first task is over");
        drop(waiter);
        assert_eq!(place.len(), 0);
    }
}
