//! Version, memory, logging, and names of values.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io::Write,
};

use crate::{
    boundary::guarded_local,
    client::{Client, rd_kafka_name},
    queue::coarse_wall_ms,
};

/// See the header.
#[unsafe(no_mangle)]
pub const extern "C" fn rd_kafka_version() -> c_int {
    0x020f_00ff
}

/// See the header.
#[unsafe(no_mangle)]
pub const extern "C" fn rd_kafka_version_str() -> *const c_char {
    c"2.15.0-ottla-0.1.0".as_ptr()
}

/// See the header.
#[unsafe(no_mangle)]
pub const extern "C" fn rd_kafka_get_debug_contexts() -> *const c_char {
    c"all,generic,broker,topic,metadata,feature,queue,msg,protocol,cgrp,security,fetch,interceptor,plugin,consumer,admin,eos,mock,assignor,conf,telemetry"
        .as_ptr()
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mem_malloc(_: *const Client, size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mem_calloc(_: *const Client, num: usize, size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { libc::calloc(num, size) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mem_free(_: *const Client, memory: *mut c_void) {
    // SAFETY: NULL or memory of the library, all of which that C may free comes from `malloc`.
    unsafe { libc::free(memory) };
}

/// Prints a log line in the usual form.
pub(crate) fn print_log(name: &str, level: c_int, facility: &CStr, line: &CStr) {
    let now = coarse_wall_ms();
    let line = format!(
        "%{level}|{}.{:03}|{}|{name}| {}\n",
        now / 1000,
        now % 1000,
        facility.to_string_lossy(),
        line.to_string_lossy()
    );
    // Nobody can be told that standard error is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_log_print(
    rk: *const Client,
    level: c_int,
    fac: *const c_char,
    buf: *const c_char,
) {
    guarded_local((), || {
        if fac.is_null() || buf.is_null() {
            return;
        }
        // SAFETY: a client or NULL, and texts, says the caller.
        unsafe {
            let name = rd_kafka_name(rk);
            let name = if name.is_null() {
                String::new()
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            };
            print_log(&name, level, CStr::from_ptr(fac), CStr::from_ptr(buf));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_log_syslog(
    _: *const Client,
    level: c_int,
    fac: *const c_char,
    buf: *const c_char,
) {
    if !fac.is_null() && !buf.is_null() {
        // SAFETY: two texts for a format that takes two.
        unsafe { libc::syslog(level.clamp(0, 7), c"%s: %s".as_ptr(), fac, buf) };
    }
}
