//! Linux.

use std::ffi::c_int;

/// The wall clock as of the last tick, which is cheaper to read than the exact one.
pub(crate) const COARSE_WALL_CLOCK: libc::clockid_t = libc::CLOCK_REALTIME_COARSE;

/// Returns the address of this thread's `errno`.
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the function has no conditions.
    unsafe { libc::__errno_location() }
}
