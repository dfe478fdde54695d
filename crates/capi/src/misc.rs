//! Version, memory, and names of values.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io::Write,
};

use crate::{boundary::guarded_local, client::Client};

/// The version as a text: librdkafka's, and ours.
pub(crate) const VERSION: &CStr = c"2.15.0-ottla-0.1.0";

/// See the header.
#[unsafe(no_mangle)]
pub const extern "C" fn rd_kafka_version() -> c_int {
    0x020f_00ff
}

/// See the header.
#[unsafe(no_mangle)]
pub const extern "C" fn rd_kafka_version_str() -> *const c_char {
    VERSION.as_ptr()
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

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_thread_cnt() -> c_int {
    guarded_local(0, || {
        let count = ottla::running_threads() + crate::background::thread_count();
        c_int::try_from(count).unwrap_or(c_int::MAX)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_unittest() -> c_int {
    guarded_local(1, || {
        let failures = ottla::self_test();
        for failure in &failures {
            // Nobody to tell where there is no stderr.
            let _ = writeln!(std::io::stderr(), "rd_kafka_unittest: {failure}");
        }
        c_int::try_from(failures.len()).unwrap_or(c_int::MAX)
    })
}
