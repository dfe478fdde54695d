//! The time: one reading of the monotonic clock gives both the machines' time and the record's timestamp.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Instant as StdInstant, SystemTime, UNIX_EPOCH},
};

use ottla_core::machine::Instant;

static ORIGIN: OnceLock<StdInstant> = OnceLock::new();
/// Wall clock minus monotonic clock, in nanoseconds, as last measured.
static OFFSET_NANOS: AtomicI64 = AtomicI64::new(i64::MIN);
/// When it was measured.
static MEASURED_AT: AtomicU64 = AtomicU64::new(0);

/// The wall clock may be set: the offset is measured again when it is older than this.
const OFFSET_AGE_NANOS: u64 = 1_000_000_000;

/// The time for machines.
#[inline]
pub fn now() -> Instant {
    let origin = ORIGIN.get_or_init(StdInstant::now);
    // One, so that no reading equals the origin, which stands for "never".
    Instant::from_nanos(origin.elapsed().as_nanos() as u64 + 1)
}

/// The time for machines, and the milliseconds since 1970.
#[inline]
pub fn now_and_wall_ms() -> (Instant, i64) {
    let now = now();
    let nanos = now.as_nanos();
    let mut offset = OFFSET_NANOS.load(Ordering::Relaxed);
    if offset == i64::MIN || nanos.saturating_sub(MEASURED_AT.load(Ordering::Relaxed)) > OFFSET_AGE_NANOS {
        offset = measure(nanos);
    }
    (now, (nanos as i64 + offset) / 1_000_000)
}

#[cold]
fn measure(nanos: u64) -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    let offset = wall - nanos as i64;
    OFFSET_NANOS.store(offset, Ordering::Relaxed);
    MEASURED_AT.store(nanos, Ordering::Relaxed);
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_agrees_with_the_system() {
        let (_, millis) = now_and_wall_ms();
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!((system - millis).abs() < 1000, "{system} {millis}");
    }
}
