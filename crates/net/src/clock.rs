//! The time: one reading of the monotonic clock gives both the machines' time and the record's timestamp.
//!
//! Reading the clock costs as much as encoding four small records, so a thread that sends many records in a row reads
//! it once per microsecond. The processor's cycle counter shows when that microsecond has passed.

use std::{
    cell::Cell,
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
/// The time of the measurement.
static MEASURED_AT: AtomicU64 = AtomicU64::new(0);

/// The maximum age of the offset in nanoseconds. It is measured again because the wall clock may be set.
const OFFSET_AGE_NANOS: u64 = 1_000_000_000;

/// Returns the monotonic time for machines.
#[inline]
pub fn now() -> Instant {
    let origin = ORIGIN.get_or_init(StdInstant::now);
    // At least one, because the origin stands for "never".
    Instant::from_nanos(origin.elapsed().as_nanos() as u64 + 1)
}

/// Converts a time of the machines into nanoseconds since 1970.
pub fn unix_nanos(at: Instant) -> u64 {
    let (now, wall_ms) = now_and_wall_ms();
    let wall_nanos = u64::try_from(wall_ms).unwrap_or(0).saturating_mul(1_000_000);
    wall_nanos.saturating_add(at.as_nanos()).saturating_sub(now.as_nanos())
}

/// Returns the monotonic time for machines, and the milliseconds since 1970.
#[inline]
pub fn now_and_wall_ms() -> (Instant, i64) {
    let cycles = cycles();
    LAST_READING.with(|last| {
        let (at, now, wall_ms) = last.get();
        // A counter that went backwards gives a huge difference, which causes a reading of the clock.
        if cycles.wrapping_sub(at) < REUSED_FOR_CYCLES {
            return (now, wall_ms);
        }
        let (now, wall_ms) = read_both();
        last.set((cycles, now, wall_ms));
        (now, wall_ms)
    })
}

thread_local! {
    /// The cycle counter at this thread's last reading, and the reading.
    static LAST_READING: Cell<(u64, Instant, i64)> = const { Cell::new((1 << 63, Instant::ZERO, 0)) };
}

/// About a microsecond: cycle counters run at 1 to 5 GHz.
const REUSED_FOR_CYCLES: u64 = 2_000;

/// Returns the cycle counter; without one, a number that prevents the reuse of a reading.
#[inline]
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it only reads a register. It faults only under a
        // kernel that forbids it to processes (PR_SET_TSC), which also disables clock_gettime in user space.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}

fn read_both() -> (Instant, i64) {
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
    fn wall_clock_agrees_with_the_system() {
        let (_, millis) = now_and_wall_ms();
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!((system - millis).abs() < 1000, "{system} {millis}");
    }
}
