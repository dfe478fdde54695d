//! Timeouts in the interface's milliseconds.

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// The duration of a wait. The clock is read when the call begins to block: most calls find something at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollTimeout {
    timeout_ms: c_int,
    /// The deadline, once the call has begun to wait; the inner `None` means no limit.
    until: Option<Option<Instant>>,
}

impl PollTimeout {
    pub(crate) const fn new(timeout_ms: c_int) -> Self {
        Self { timeout_ms, until: None }
    }

    /// Returns the deadline. The first call starts the clock.
    pub(crate) fn until(&mut self) -> Option<Instant> {
        *self.until.get_or_insert_with(|| deadline(self.timeout_ms))
    }
}

/// Returns the deadline for a timeout in the interface's milliseconds; `None` means no limit.
pub(crate) fn deadline(timeout_ms: c_int) -> Option<Instant> {
    let timeout = u64::try_from(timeout_ms).ok()?;
    Instant::now().checked_add(Duration::from_millis(timeout))
}

/// Returns a time that has passed already.
pub(crate) fn past() -> Instant {
    Instant::now()
}

/// Returns a timeout in the interface's milliseconds as a duration; -1 is the longest one.
pub(crate) fn timeout(timeout_ms: c_int) -> Duration {
    u64::try_from(timeout_ms).map_or(Duration::from_secs(86_400 * 365), Duration::from_millis)
}
