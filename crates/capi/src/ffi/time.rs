//! Timeouts as the interface says them, in milliseconds, and a cheap clock.

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// How long a call waits. The clock is read when the call really begins to wait: most find something at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollTimeout {
    timeout_ms: c_int,
    /// Since when it waits: when that is over, or never.
    until: Option<Option<Instant>>,
}

impl PollTimeout {
    pub(crate) const fn new(timeout_ms: c_int) -> Self {
        Self { timeout_ms, until: None }
    }

    /// When it is over; from the first question on time passes.
    pub(crate) fn until(&mut self) -> Option<Instant> {
        *self.until.get_or_insert_with(|| deadline(self.timeout_ms))
    }
}

/// When a timeout in the interface's milliseconds is over; `None` is never.
pub(crate) fn deadline(timeout_ms: c_int) -> Option<Instant> {
    let timeout = u64::try_from(timeout_ms).ok()?;
    Instant::now().checked_add(Duration::from_millis(timeout))
}

/// A moment that is over already.
pub(crate) fn past() -> Instant {
    Instant::now()
}

/// A timeout in the interface's milliseconds, -1 being very long.
pub(crate) fn timeout(timeout_ms: c_int) -> Duration {
    u64::try_from(timeout_ms).map_or(Duration::from_secs(86_400 * 365), Duration::from_millis)
}

fn coarse(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is writable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Milliseconds since 1970, some milliseconds late.
#[inline]
pub(crate) fn coarse_wall_ms() -> i64 {
    let time = coarse(libc::CLOCK_REALTIME_COARSE);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}
