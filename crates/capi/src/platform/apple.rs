//! macOS and its relatives.

use std::ffi::c_int;

/// The wall clock; there is no coarse one.
pub(crate) const COARSE_WALL_CLOCK: libc::clockid_t = libc::CLOCK_REALTIME;

/// Returns the address of this thread's `errno`.
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the function has no conditions.
    unsafe { libc::__error() }
}
