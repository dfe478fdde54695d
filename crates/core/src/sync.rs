//! The locks and atomics of state that threads share: those of [`crate::lock`]. With `--cfg ottla_loom` they are
//! loom's, which explores every interleaving of the threads; the crate's `models` assert the invariants that hold in
//! each.

#[cfg(not(ottla_loom))]
pub use std::sync::atomic;

#[cfg(not(ottla_loom))]
pub use crate::lock::{Mutex, RwLock};
#[cfg(ottla_loom)]
pub use loom::sync::atomic;

#[cfg(ottla_loom)]
pub use self::modelled::{Mutex, RwLock};

/// loom's locks with the interface of [`crate::lock`].
#[cfg(ottla_loom)]
mod modelled {
    use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A mutual exclusion lock.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// A lock for one writer or several readers.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> Mutex<T> {
        /// Creates an unlocked lock.
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked goes no further")
        }
    }

    impl<T> RwLock<T> {
        /// Waits for shared access.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("a model that panicked goes no further")
        }

        /// Waits for exclusive access.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("a model that panicked goes no further")
        }
    }
}
