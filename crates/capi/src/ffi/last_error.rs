//! The error of a thread's last call.

use std::{cell::Cell, ffi::c_int};

use super::codes::{RespErr, code};

thread_local! {
    static LAST: Cell<RespErr> = const { Cell::new(code::NO_ERROR) };
}

/// Returns the code of this thread's last call that failed.
pub(crate) fn last() -> RespErr {
    LAST.get()
}

/// Sets the error of this thread's last call, and `errno` with it; returns -1.
#[cold]
pub(crate) fn fail(code: RespErr) -> c_int {
    set_last(code);
    -1
}

/// The `errno` that the interface documents for a code.
fn errno_of(code: RespErr) -> c_int {
    match code {
        code::NO_ERROR => 0,
        code::_QUEUE_FULL => libc::ENOBUFS,
        code::MSG_SIZE_TOO_LARGE => libc::EMSGSIZE,
        code::_UNKNOWN_PARTITION => libc::ESRCH,
        code::_UNKNOWN_TOPIC => libc::ENOENT,
        code::_TIMED_OUT | code::_MSG_TIMED_OUT => libc::ETIMEDOUT,
        code::_FATAL => libc::ECANCELED,
        code::_CONFLICT => libc::EBUSY,
        code::_STATE => libc::ENOEXEC,
        code::_PREV_IN_PROGRESS => libc::EEXIST,
        code::_NOT_IMPLEMENTED => libc::ENOSYS,
        _ => libc::EINVAL,
    }
}

/// Sets the error of this thread's last call, and `errno` with it.
pub(crate) fn set_last(code: RespErr) {
    LAST.set(code);
    // SAFETY: `errno`'s address is valid in this thread.
    unsafe { *crate::platform::errno() = errno_of(code) };
}
