//! The time of the system, which machines get as a function: they have no clock.

use std::{fmt, sync::Arc};

use crate::machine::Instant;

/// Converts the machines' time into the time of the wall clock.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn(Instant) -> u64 + Send + Sync>);

impl WallClock {
    /// Creates a clock from a function that returns nanoseconds since 1970.
    pub fn new(unix_nanos: impl Fn(Instant) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(unix_nanos))
    }

    /// Returns the nanoseconds since 1970.
    pub fn unix_nanos(&self, at: Instant) -> u64 {
        (self.0)(at)
    }
}

/// The machines' own time, for tests.
impl Default for WallClock {
    fn default() -> Self {
        Self::new(Instant::as_nanos)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}
