//! The time of a call.

use ottla_core::machine::Instant;
use ottla_net::clock;

/// The time of a call on the monotonic and the wall clock, read once for all its messages. A thread reads the clock at
/// most once per microsecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTime {
    pub(super) now: Instant,
    pub(super) wall_ms: i64,
}

impl CallTime {
    /// Reads the clocks.
    #[inline]
    pub(crate) fn now() -> Self {
        let (now, wall_ms) = clock::now_and_wall_ms();
        Self { now, wall_ms }
    }

    /// Returns the time in microseconds, on the clock of the messages' latency.
    #[inline]
    pub(crate) const fn micros(self) -> i64 {
        (self.now.as_nanos() / 1000) as i64
    }
}
