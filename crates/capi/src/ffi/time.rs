//! Timeouts in the interface's milliseconds, and a cheap clock.

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

fn coarse(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `clock_gettime` gets a writable struct.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Returns the milliseconds since 1970, up to a few milliseconds late.
#[inline]
pub(crate) fn coarse_wall_ms() -> i64 {
    let time = coarse(crate::platform::COARSE_WALL_CLOCK);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}
