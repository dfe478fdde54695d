//! `rdkafka_mock.h`: a cluster inside the process. Its place; the functions are not there yet.

use std::ffi::{c_char, c_int, c_void};

use crate::codes::code;

/// Called by the C halves of the functions that push errors.
pub(crate) extern "C" fn ottla_mock_push_errors(
    _cluster: *mut c_void,
    _broker: i32,
    _topic: *const c_char,
    _partition: i32,
    _api: i16,
    _count: usize,
    _errors: *const c_int,
    _rtts: *const c_int,
) -> c_int {
    code::_NOT_IMPLEMENTED
}
