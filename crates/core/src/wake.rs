//! How shared state asks its owner to look at it.

use std::{fmt, sync::Arc};

/// Asks the thread that drives a machine to look at it. A wake-up is a hint: the machine looks at its whole state.
pub trait Wake: Send + Sync {
    /// Makes the owner run soon. Cheap when it is already going to.
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

    /// A handle that does nothing, for drivers that look at every machine anyway.
    pub fn noop() -> Self {
        struct Noop;
        impl Wake for Noop {
            fn wake(&self) {}
        }
        Self(Arc::new(Noop))
    }

    /// Makes the owner run soon.
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl fmt::Debug for WakeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeHandle")
    }
}
