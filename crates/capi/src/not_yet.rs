//! Functions that are not there yet: `build.rs` writes one for each from `abi/functions.txt`.
#![allow(clippy::missing_const_for_fn, reason = "they are generated")]

use std::ffi::{c_char, c_void};

use crate::{
    boundary::put_text,
    client::Client,
    codes::code,
    error::{ErrorObject, fail},
    event::Event,
    queue::{Op, Queue},
};

const NOT_IMPLEMENTED: i32 = code::_NOT_IMPLEMENTED;

fn sentence(name: &str) -> String {
    format!("{name} is not implemented yet; STATUS.md lists what is")
}

fn not_yet_errstr(name: &str, errstr: *mut c_void, size: usize) {
    // SAFETY: the interface says that `errstr` has `size` bytes, or is NULL.
    unsafe { put_text(errstr.cast::<c_char>(), size, &sentence(name)) };
}

fn not_yet_error(name: &str) -> *mut c_void {
    ErrorObject::new(NOT_IMPLEMENTED, sentence(name)).into_raw().cast()
}

fn not_yet_minus_one() -> i32 {
    fail(NOT_IMPLEMENTED)
}

/// A request whose answer would be an event gets an event that says so.
fn not_yet_event(name: &str, rk: *mut c_void, queue: *mut c_void) {
    // SAFETY: the interface says that these are a client and a queue, or NULL.
    if let (Some(_), Some(queue)) = unsafe { (Client::of(rk.cast()), Queue::of(queue.cast())) } {
        queue.push(Op::Event(Box::new(Event::of_error(NOT_IMPLEMENTED, sentence(name)))));
    }
}

include!(concat!(env!("OUT_DIR"), "/not_yet.rs"));
