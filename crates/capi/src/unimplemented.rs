//! Stubs of unimplemented functions: `build.rs` generates one for each from `abi/functions.txt`.
#![allow(clippy::missing_const_for_fn, reason = "they are generated")]

use std::ffi::{c_char, c_void};

use crate::ffi::{
    boundary::put_text,
    codes::{RespErr, code},
    error::{ErrorObject, fail},
    export,
};

const NOT_IMPLEMENTED: RespErr = code::_NOT_IMPLEMENTED;

fn sentence(name: &str) -> String {
    format!("{name} is not implemented yet; STATUS.md lists what is")
}

fn unimplemented_errstr(name: &str, errstr: *mut c_void, size: usize) {
    // SAFETY: the header demands NULL or a buffer of `size` bytes.
    unsafe { put_text(errstr.cast::<c_char>(), size, &sentence(name)) };
}

fn unimplemented_error(name: &str) -> *mut c_void {
    ErrorObject::new(NOT_IMPLEMENTED, sentence(name)).into_raw().cast()
}

fn unimplemented_minus_one() -> i32 {
    fail(NOT_IMPLEMENTED)
}

include!(concat!(env!("OUT_DIR"), "/unimplemented.rs"));
