//! Writes to descriptors of the application without SIGPIPE.
//!
//! A pipe without a reader raises SIGPIPE in the thread that writes, which ends a process that does not handle it.
//! Sockets have a flag against it; pipes have none. The thread blocks the signal during the write, and removes it from
//! the pending signals if the write raised it. The process's signal handling stays as it is.

use std::{ffi::c_int, mem::MaybeUninit};

/// Runs `write`, which may write to a pipe or socket without a reader, and suppresses the SIGPIPE that it raises.
pub(crate) fn without_sigpipe<R>(write: impl FnOnce() -> R) -> R {
    let guard = Blocked::new();
    let result = write();
    drop(guard);
    result
}

/// Writes to a descriptor once, as many bytes as it accepts; errors are ignored.
pub(crate) fn write_once(descriptor: c_int, bytes: &[u8]) {
    // SAFETY: the pointer and the length are those of a slice.
    without_sigpipe(|| unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) });
}

/// Writes to standard error, as many bytes as it accepts.
pub(crate) fn write_error(bytes: &[u8]) {
    write_once(libc::STDERR_FILENO, bytes);
}

/// Blocks SIGPIPE in this thread until it is dropped.
struct Blocked {
    /// The signal set that contains only SIGPIPE.
    signal: libc::sigset_t,
    /// The thread's signal mask before; `None` if SIGPIPE was pending or blocked already, so that nothing has to be
    /// restored.
    before: Option<libc::sigset_t>,
}

impl Blocked {
    fn new() -> Self {
        // SAFETY: the sets are initialized by the calls that get them before they are read.
        unsafe {
            let mut signal = MaybeUninit::zeroed();
            libc::sigemptyset(signal.as_mut_ptr());
            libc::sigaddset(signal.as_mut_ptr(), libc::SIGPIPE);
            let signal = signal.assume_init();
            let mut before = MaybeUninit::zeroed();
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signal, before.as_mut_ptr());
            let before = before.assume_init();
            let is_new = failed == 0 && libc::sigismember(&raw const before, libc::SIGPIPE) == 0;
            Self { signal, before: is_new.then_some(before) }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        take_pending(&self.signal);
        // SAFETY: `new` initialized the mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}

/// Removes a signal of the set from the pending signals, without waiting.
#[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
fn take_pending(signal: &libc::sigset_t) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are initialized; NULL means that the signal's details are not needed.
    unsafe { libc::sigtimedwait(signal, std::ptr::null_mut(), &raw const now) };
}

/// Removes a signal of the set from the pending signals, on systems without `sigtimedwait`.
#[cfg(any(target_vendor = "apple", target_os = "openbsd"))]
fn take_pending(signal: &libc::sigset_t) {
    // SAFETY: `sigpending` initializes `pending`, `sigwait` initializes `raised`, and the set is initialized.
    unsafe {
        let mut pending = MaybeUninit::zeroed();
        libc::sigpending(pending.as_mut_ptr());
        if libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1 {
            let mut raised = 0;
            libc::sigwait(signal, &raw mut raised);
        }
    }
}
