//! macOS and its relatives.

use std::ffi::c_int;

/// The clock for timestamps. macOS has no coarse wall clock, so it is the precise one.
pub(crate) const COARSE_WALL_CLOCK: libc::clockid_t = libc::CLOCK_REALTIME;

/// Returns the address of this thread's `errno`.
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the function has no conditions.
    unsafe { libc::__error() }
}
