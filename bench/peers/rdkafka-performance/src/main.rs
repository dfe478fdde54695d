//! Runs librdkafka's benchmark program, or Ottla's on librdkafka: `original ARGS...` or `ours ARGS...`.

use std::{
    env,
    ffi::{CString, c_char, c_int},
    os::unix::ffi::OsStrExt as _,
    process, ptr,
};

// The library that both programs call.
use rdkafka_sys as _;

unsafe extern "C" {
    fn original_rdkafka_performance(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn ottla_rdkafka_performance(
        argc: c_int,
        argv: *mut *mut c_char,
        own_brokers: extern "C" fn() -> *const c_char,
    ) -> c_int;
}

fn main() {
    let arguments: Vec<CString> = env::args_os()
        .skip(1)
        .map(|it| CString::new(it.as_bytes()).expect("arguments hold no NUL"))
        .collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|it| it.as_ptr().cast_mut()).collect();
    let count = pointers.len() as c_int;
    pointers.push(ptr::null_mut());
    // SAFETY: `count` strings and a NULL, as `main` gets them.
    let code = match arguments.first().map(|name| name.as_bytes()) {
        Some(b"original") => unsafe { original_rdkafka_performance(count, pointers.as_mut_ptr()) },
        Some(b"ours") => unsafe { ottla_rdkafka_performance(count, pointers.as_mut_ptr(), no_brokers) },
        _ => {
            eprintln!("which program, original or ours?");
            2
        }
    };
    // Flushes stdio, as the end of `main` in C does.
    process::exit(code);
}

/// Ottla's program would start embedded brokers; here there are none.
extern "C" fn no_brokers() -> *const c_char {
    eprintln!("-b is missing");
    ptr::null()
}
