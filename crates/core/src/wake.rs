//! Notifications from shared state to the actor that owns it.

use std::{fmt, sync::Arc};

/// Schedules the thread that drives a machine. A wake-up carries no information: the machine checks its whole state.
pub trait Wake: Send + Sync {
    /// Makes the actor run soon. Cheap if it is already scheduled.
    fn wake(&self);
}

/// A shared [`Wake`].
#[derive(Clone)]
pub struct WakeHandle(Arc<dyn Wake>);

impl WakeHandle {
    /// Wraps a waker of the driver.
    pub fn new(wake: Arc<dyn Wake>) -> Self {
        Self(wake)
    }

    /// Creates a handle that does nothing, for drivers that poll every machine anyway.
    pub fn noop() -> Self {
        struct Noop;
        impl Wake for Noop {
            fn wake(&self) {}
        }
        Self(Arc::new(Noop))
    }

    /// Makes the actor run soon.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl fmt::Debug for WakeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeHandle")
    }
}
