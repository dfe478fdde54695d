//! A lock for something that takes a few dozen nanoseconds and is done millions of times a second: it is released by a
//! plain store, where a lock that can park its waiters needs a second atomic instruction, which waits until every byte
//! of the record has left the processor's store buffer. That wait was a third of what sending a record cost.
//!
//! Who finds it taken spins for some microseconds, and then sleeps and looks again: the holder may have lost its
//! processor, and a thread with a real-time priority must not keep it from getting it back.

use std::{hint, time::Duration};

use parking_lot::{Condvar, Mutex};
use spin::mutex::SpinMutex;
/// The value, held.
pub(super) use spin::mutex::SpinMutexGuard as ShortGuard;

/// A value behind a lock that is only ever held for a moment.
#[derive(Debug)]
pub(super) struct ShortLock<T>(SpinMutex<T>);

impl<T> ShortLock<T> {
    /// A value that nobody holds.
    pub(super) const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Waits until nobody else holds the value.
    #[inline]
    pub(super) fn lock(&self) -> ShortGuard<'_, T> {
        match self.0.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> ShortGuard<'_, T> {
        loop {
            for _ in 0..SPINS {
                // Looking does not take the cache line from the holder.
                if !self.0.is_locked()
                    && let Some(guard) = self.0.try_lock()
                {
                    return guard;
                }
                hint::spin_loop();
            }
            nap();
        }
    }
}

/// A pause takes 10 to 140 cycles: these are 1 to 10 microseconds.
const SPINS: u32 = 200;

/// Sleeps for a moment. Nobody ever notifies.
fn nap() {
    static BED: Mutex<()> = Mutex::new(());
    static NOBODY: Condvar = Condvar::new();
    NOBODY.wait_for(&mut BED.lock(), Duration::from_micros(20));
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn only_one_thread_at_a_time_holds_the_value() {
        let counter = Arc::new(ShortLock::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    for _ in 0..50_000 {
                        let mut counter = counter.lock();
                        let seen = *counter;
                        *counter = hint::black_box(seen) + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*counter.lock(), 200_000);
    }

    #[test]
    fn who_waits_for_long_sleeps_and_still_gets_it() {
        let lock = Arc::new(ShortLock::new(()));
        let held = lock.lock();
        let waiter = thread::spawn({
            let lock = Arc::clone(&lock);
            move || drop(lock.lock())
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!waiter.is_finished());
        drop(held);
        waiter.join().unwrap();
    }
}
