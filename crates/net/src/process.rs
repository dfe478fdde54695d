//! Notices `fork`, so that a child can have clients of its own.
//!
//! A forked child has a copy of its parent's memory but only the thread that called `fork`: I/O threads are missing,
//! and locks that another thread held stay locked. Therefore state of the process as a whole is in a [`PerProcess`],
//! and objects that need the parent's threads store the [`Generation`] in which they were created.

use std::{
    fmt, ptr,
    sync::{
        Once,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use crate::platform;

/// The number of forks between the first process that used the library and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which an object was created; a forked child is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// Returns the generation of this process.
    #[inline]
    pub fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Returns true in the process that created the object.
    #[inline]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// Registers the fork handler. Must be called before the first object stores its generation.
pub fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The handler only changes an atomic, which is permitted between fork and exec.
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        platform::after_fork(in_child);
    });
}

/// A value per process. A forked child gets a value of its own, because a lock inside the parent's may be locked
/// forever.
pub struct PerProcess<T> {
    slot: AtomicPtr<Slot<T>>,
}

/// A value and its process. Slots are never freed: there is one per generation.
struct Slot<T> {
    generation: Generation,
    value: T,
    /// The parent's slot, which stays reachable for leak checkers.
    _previous: *mut Self,
}

impl<T> PerProcess<T> {
    /// Creates a `PerProcess` without a value.
    pub const fn new() -> Self {
        Self { slot: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns the value of this process.
    #[inline]
    pub fn get(&'static self) -> &'static T {
        let found = self.slot.load(Ordering::Acquire);
        // SAFETY: a published slot lives as long as the process.
        match unsafe { found.as_ref() } {
            Some(slot) if slot.generation.is_current() => &slot.value,
            _ => self.make(found),
        }
    }

    #[cold]
    fn make(&'static self, previous: *mut Slot<T>) -> &'static T {
        let slot = Slot { generation: Generation::current(), value: T::default(), _previous: previous };
        let made = Box::into_raw(Box::new(slot));
        match self.slot.compare_exchange(previous, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the slot was just published, and lives as long as the process.
            Ok(_) => unsafe { &(*made).value },
            Err(other) => {
                // SAFETY: the new slot was never published, because another thread of this process published its own.
                unsafe {
                    drop(Box::from_raw(made));
                    &(*other).value
                }
            }
        }
    }
}

// SAFETY: only shared references are returned, and any thread may create the value.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerProcess")
    }
}
