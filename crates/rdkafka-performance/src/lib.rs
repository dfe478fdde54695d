//! `rdkafka_performance`: the flags and result lines of librdkafka's benchmark program, on our C library.
//!
//! The program is [`c/rdkafka_performance.c`](../c/rdkafka_performance.c), which uses only `rdkafka.h`; this crate
//! calls it. `ottla` does so if it is called by that name.

use std::{
    ffi::{CString, c_char, c_int},
    io::Write as _,
    ptr,
    sync::OnceLock,
};

// The functions that the C program calls.
use rdkafka as _;

unsafe extern "C" {
    fn ottla_rdkafka_performance(
        argc: c_int,
        argv: *mut *mut c_char,
        own_brokers: extern "C" fn() -> *const c_char,
    ) -> c_int;
}

type Brokers = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

static OWN_BROKERS: OnceLock<Brokers> = OnceLock::new();
static STARTED: OnceLock<CString> = OnceLock::new();

/// Runs the program and returns its exit code. The first argument is the program's name. If the arguments name no
/// brokers, `own_brokers` is called: it starts brokers and returns their addresses. May be called once, because
/// `getopt` of the C library has one state per process.
pub fn run(arguments: Vec<CString>, own_brokers: Brokers) -> i32 {
    let _ = OWN_BROKERS.set(own_brokers);
    let mut pointers: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    let count = pointers.len() as c_int;
    pointers.push(ptr::null_mut());
    // SAFETY: `argv` contains `count` strings and a NULL, as for `main`; `getopt` changes their order, but not their
    // text.
    unsafe { ottla_rdkafka_performance(count, pointers.as_mut_ptr(), brokers) }
}

extern "C" fn brokers() -> *const c_char {
    let started = || {
        let servers = OWN_BROKERS.get().ok_or("no brokers".to_owned())?();
        servers.and_then(|servers| CString::new(servers).map_err(|error| error.to_string()))
    };
    match started() {
        Ok(servers) => STARTED.get_or_init(|| servers).as_ptr(),
        Err(error) => {
            // Nothing helps where standard error is closed.
            let _ = writeln!(std::io::stderr(), "% the embedded brokers can't start: {error}");
            ptr::null()
        }
    }
}
