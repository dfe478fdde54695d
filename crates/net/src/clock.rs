//! The time: one reading of the monotonic clock gives both the machines' time and the record's timestamp.
//!
//! Reading the clock costs as much as encoding a small record four times, so a thread that sends many records in a row
//! reads it once per microsecond. The processor's cycle counter tells whether that microsecond is over.

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
    let cycles = cycles();
    LAST_READING.with(|last| {
        let (at, now, wall_ms) = last.get();
        // A counter that went backwards gives a huge difference: then the clock is read.
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

/// About a microsecond: cycle counters tick at 1 to 5 GHz.
const REUSED_FOR_CYCLES: u64 = 2_000;

/// The cycle counter; where there is none, a number that never lets a reading be reused.
#[inline]
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it only reads a register. It faults only under a
        // kernel that forbids it to processes (PR_SET_TSC), which also takes clock_gettime away from them.
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
    fn the_wall_clock_agrees_with_the_system() {
        let (_, millis) = now_and_wall_ms();
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!((system - millis).abs() < 1000, "{system} {millis}");
    }
}
