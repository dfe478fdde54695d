//! Cancellation of threads (`pthread_cancel`), delayed while the library runs.
//!
//! A thread that is cancelled unwinds its stack at the next cancellation point: a `write` to a descriptor, a log line, a
//! callback that prints. Rust's frames can't be unwound that way, the process would be aborted, and locks would stay
//! locked. So a cancelled thread ends at its first cancellation point after the call has returned.
//!
//! Setting the state costs some 15 instructions. A function that is called for each message sets it only on the way to a
//! cancellation point, such as the wake-up of an I/O thread. `tests/c/cancelled.c` of the C library cancels threads in each kind
//! of call.

use std::ffi::c_int;

/// While this exists, its thread is not cancelled.
#[derive(Debug)]
pub struct Uncancelled {
    before: c_int,
}

#[cfg(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple"))]
mod thread {
    use std::ffi::c_int;

    /// `PTHREAD_CANCEL_DISABLE`.
    pub(super) const DISABLED: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };

    unsafe extern "C" {
        safe fn pthread_setcancelstate(state: c_int, before: &mut c_int) -> c_int;
    }

    /// Sets whether the thread may be cancelled, and returns what was set before.
    #[inline]
    pub(super) fn set(state: c_int) -> c_int {
        let mut before = DISABLED;
        pthread_setcancelstate(state, &mut before);
        before
    }
}

/// Systems on which threads can't be cancelled, such as Android.
#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple")))]
mod thread {
    use std::ffi::c_int;

    pub(super) const DISABLED: c_int = 0;

    pub(super) fn set(_: c_int) -> c_int {
        DISABLED
    }
}

impl Uncancelled {
    /// Delays the cancellation of this thread.
    #[inline]
    #[must_use]
    pub fn begin() -> Self {
        Self { before: thread::set(thread::DISABLED) }
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        thread::set(self.before);
    }
}
