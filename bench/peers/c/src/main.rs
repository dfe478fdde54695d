//! Calls the C program [`peer.c`](../peer.c), linked to librdkafka.

use std::{
    env,
    ffi::{CString, c_char, c_int},
    os::unix::ffi::OsStringExt,
    ptr,
};

// The functions that the C program calls.
use rdkafka_sys as _;

unsafe extern "C" {
    fn peer_c_main(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

fn main() {
    let arguments: Vec<CString> =
        env::args_os().map(|argument| CString::new(argument.into_vec()).expect("no zero byte")).collect();
    let mut pointers: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.clone().into_raw()).collect();
    let count = pointers.len() as c_int;
    pointers.push(ptr::null_mut());
    // SAFETY: `count` strings and a NULL, as `main` gets them; they live as long as the process.
    std::process::exit(unsafe { peer_c_main(count, pointers.as_mut_ptr()) });
}
