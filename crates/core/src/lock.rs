//! Locks without poisoning, built on those of the standard library.
//!
//! Each lock holds all of its state itself. A lock library that keeps waiting threads in a process-wide table can't be
//! used after `fork`: the child inherits the table's own locks and the entries of threads that it does not have.
//!
//! # Pitfalls
//!
//! - The standard library asks the kernel to wait even if the timeout is zero, and the kernel's timers are some 50 µs late:
//!   programs that poll without waiting would do so each time (`wait_without_time_does_not_wait`).

use std::{
    ops::{Deref, DerefMut},
    sync::{self, PoisonError, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

/// A lock for one thread at a time. A panic of the thread that holds it does not poison it.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// The value of a [`Mutex`], locked until this is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized>(Option<sync::MutexGuard<'a, T>>);

/// A lock for one thread that writes, or many that read.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

/// Wakes threads that wait for a change of the value in a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// Reports whether a wait ended by its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl<T> Mutex<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the lock if no thread has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()))),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value; the exclusive reference replaces the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().expect("a guard is empty only while its condition variable waits")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("a guard is empty only while its condition variable waits")
    }
}

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condvar {
    /// Creates a condition variable without waiting threads.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Unlocks, waits for a notification or a spurious wake-up, and locks again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let Some(locked) = guard.0.take() else { return };
        guard.0 = Some(self.0.wait(locked).unwrap_or_else(PoisonError::into_inner));
    }

    /// Like [`Condvar::wait`], for at most `timeout`. A timeout of zero ends at once.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        if timeout.is_zero() {
            return WaitTimeoutResult(true);
        }
        let Some(locked) = guard.0.take() else { return WaitTimeoutResult(true) };
        let (locked, result) = self.0.wait_timeout(locked, timeout).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(locked);
        WaitTimeoutResult(result.timed_out())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl WaitTimeoutResult {
    /// Returns true if the timeout ended the wait.
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Returns how often a thread has given up its processor to wait for something.
    pub(crate) fn sleeps(thread: &Path) -> u64 {
        let status = fs::read_to_string(Path::new("/proc").join(thread).join("status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.expect("Linux counts them").trim().parse().unwrap()
    }

    #[test]
    fn wait_without_time_does_not_wait() {
        let (lock, changed) = (Mutex::new(()), Condvar::new());
        let this_thread = fs::read_link("/proc/thread-self").unwrap();
        let before = sleeps(&this_thread);
        for _ in 0..100 {
            assert!(changed.wait_for(&mut lock.lock(), Duration::ZERO).timed_out());
        }
        // Reading the count may sleep, too.
        assert!(sleeps(&this_thread) < before + 50);
    }
}
