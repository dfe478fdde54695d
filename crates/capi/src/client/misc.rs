//! Version, memory, and names of values.

use std::{
    ffi::{c_char, c_int, c_void},
    io::Write,
    ptr,
};

use ottla_net::Runtime;

use crate::{
    client::handle::Client,
    ffi::{argument::Ref, codes::VERSION, export},
    self_test::self_test,
};

export!(
    #[local(0)]
    fn rd_kafka_version() -> c_int {
        0x0210_00ff
    }
);

export!(
    #[local(c"".as_ptr())]
    fn rd_kafka_version_str() -> *const c_char {
        VERSION.as_ptr()
    }
);

export!(
    #[local(c"".as_ptr())]
    fn rd_kafka_get_debug_contexts() -> *const c_char {
        c"all,generic,broker,topic,metadata,feature,queue,msg,protocol,cgrp,security,fetch,interceptor,plugin,consumer,admin,eos,mock,assignor,conf"
        .as_ptr()
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_mem_malloc(_rk: Ref<Client>, size: usize) -> *mut c_void {
        // SAFETY: any size is valid.
        unsafe { libc::malloc(size) }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_mem_calloc(_rk: Ref<Client>, num: usize, size: usize) -> *mut c_void {
        // SAFETY: any size is valid.
        unsafe { libc::calloc(num, size) }
    }
);

export!(
    #[local(())]
    fn rd_kafka_mem_free(_rk: Ref<Client>, memory: *mut c_void) {
        // SAFETY: NULL or memory of the library; all memory that C may free comes from `malloc`.
        unsafe { libc::free(memory) };
    }
);

export!(
    #[local(0)]
    fn rd_kafka_thread_cnt() -> c_int {
        let count = Runtime::running_threads() + crate::client::queue_thread::thread_count();
        c_int::try_from(count).unwrap_or(c_int::MAX)
    }
);

export!(
    #[local(1)]
    fn rd_kafka_unittest() -> c_int {
        let failures = self_test();
        for failure in &failures {
            // A missing standard error can't be reported anywhere.
            let _ = writeln!(std::io::stderr(), "rd_kafka_unittest: {failure}");
        }
        c_int::try_from(failures.len()).unwrap_or(c_int::MAX)
    }
);
