//! The locks and atomics of the places where threads meet: parking_lot's and the standard library's. Built with
//! `--cfg ottla_loom` they are loom's, which tries every order in which threads can pass through them; the crate's
//! `models` say what must hold in each.

#[cfg(not(ottla_loom))]
pub use std::sync::atomic;

#[cfg(ottla_loom)]
pub use loom::sync::atomic;
#[cfg(not(ottla_loom))]
pub use parking_lot::{Mutex, RwLock};

#[cfg(ottla_loom)]
pub use self::modelled::{Mutex, RwLock};

/// loom's locks with parking_lot's methods.
#[cfg(ottla_loom)]
mod modelled {
    use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A lock for one.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// A lock for one who writes, or many who read.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> Mutex<T> {
        /// An open lock.
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked goes no further")
        }
    }

    impl<T> RwLock<T> {
        /// Waits to read.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("a model that panicked goes no further")
        }

        /// Waits to write.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("a model that panicked goes no further")
        }
    }
}
