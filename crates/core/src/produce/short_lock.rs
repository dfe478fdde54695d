//! A lock for operations of a few dozen nanoseconds that run millions of times a second. A plain store releases it; a
//! lock that can park its waiters needs a second atomic instruction, which waits until every byte of the record has
//! left the processor's store buffer. That wait was a third of the cost of sending a record.
//!
//! A collision is shorter than the fraction of a microsecond for which a waiter spins. What it does then depends on why it
//! waits:
//!
//! - A thread that sends sleeps for a short time ([`ShortLock::lock_to_send`]). If several threads send as fast as they can,
//!   one of them sends some hundred records while the others sleep, and the partition's cache lines stay on its core. Passing
//!   the lock on after every record costs twice as much.
//! - A thread that takes whole batches ([`ShortLock::lock`]) lets other threads run some times before it sleeps: the holder may
//!   have been preempted, and a waiter with a real-time priority must not keep it from running.

use std::{hint, thread, time::Duration};

use crate::lock::{Condvar, Mutex};
use spin::mutex::SpinMutex;
/// A guard of the locked value.
pub(super) use spin::mutex::SpinMutexGuard as ShortGuard;

/// A value behind a lock that is held for nanoseconds only.
#[derive(Debug)]
pub(super) struct ShortLock<T>(SpinMutex<T>);

impl<T> ShortLock<T> {
    /// Creates an unlocked value.
    pub(super) const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Waits for the lock.
    #[inline]
    pub(super) fn lock(&self) -> ShortGuard<'_, T> {
        match self.0.try_lock() {
            Some(guard) => guard,
            None => self.wait(YIELDS),
        }
    }

    /// Waits for the lock to send a record.
    #[inline]
    pub(super) fn lock_to_send(&self) -> ShortGuard<'_, T> {
        match self.0.try_lock() {
            Some(guard) => guard,
            None => self.wait(0),
        }
    }

    #[cold]
    fn wait(&self, mut yields: u32) -> ShortGuard<'_, T> {
        loop {
            for _ in 0..SPINS {
                // Reading the flag does not take the cache line from the holder.
                if !self.0.is_locked()
                    && let Some(guard) = self.0.try_lock()
                {
                    return guard;
                }
                hint::spin_loop();
            }
            if yields > 0 {
                yields -= 1;
                thread::yield_now();
            } else {
                nap();
            }
        }
    }
}

/// A pause takes 10 to 140 cycles: these are at most 0.3 microseconds. With 40 of them four threads that send to one
/// partition need half as much CPU again.
const SPINS: u32 = 5;
/// The number of times that a thread which takes batches lets others run before it sleeps.
const YIELDS: u32 = 20;

/// Sleeps for a short time. There is never a notification.
fn nap() {
    static BED: Mutex<()> = Mutex::new(());
    static NOBODY: Condvar = Condvar::new();
    NOBODY.wait_for(&mut BED.lock(), Duration::from_micros(20));
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::{fs, sync::mpsc};
    use std::{sync::Arc, thread};

    use super::*;
    #[cfg(target_os = "linux")]
    use crate::lock::tests::sleeps;

    #[test]
    fn only_one_thread_at_a_time_holds_the_value() {
        let counter = Arc::new(ShortLock::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    for _ in 0..50_000 {
                        let mut counter =
                            if number % 2 == 0 { counter.lock() } else { counter.lock_to_send() };
                        let seen = *counter;
                        *counter = hint::black_box(seen) + 1;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*counter.lock(), 200_000);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn long_waiter_sleeps_and_is_woken() {
        let lock = Arc::new(ShortLock::new(()));
        let held = lock.lock();
        let (begins, began) = mpsc::channel();
        let waiters = [ShortLock::lock, ShortLock::lock_to_send].map(|wait| {
            let (lock, begins) = (Arc::clone(&lock), begins.clone());
            thread::spawn(move || {
                begins.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
                drop(wait(&lock));
            })
        });
        for thread in began.iter().take(waiters.len()) {
            let before = sleeps(&thread);
            while sleeps(&thread) < before + 5 {
                thread::yield_now();
            }
        }
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        drop(held);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    }
}
