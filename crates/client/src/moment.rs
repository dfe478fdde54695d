//! A moment, read once for many records.

use ottla_core::machine::Instant;
use ottla_net::clock;

/// The time of a call, on the monotonic clock and on the wall's: for callers that need it themselves, or send many records
/// at one time. Within a microsecond a thread reads the clock once.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub(crate) now: Instant,
    pub(crate) wall_ms: i64,
}

impl Moment {
    /// Now.
    #[inline]
    pub fn now() -> Self {
        let (now, wall_ms) = clock::now_and_wall_ms();
        Self { now, wall_ms }
    }

    /// Milliseconds since 1970.
    #[inline]
    pub const fn wall_ms(self) -> i64 {
        self.wall_ms
    }

    /// Microseconds since a moment of the process's start, for differences.
    #[inline]
    pub const fn micros(self) -> i64 {
        (self.now.as_nanos() / 1000) as i64
    }
}
