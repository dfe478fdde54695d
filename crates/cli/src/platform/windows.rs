//! Windows.

use std::{
    ffi::OsString,
    fs::{DirBuilder, OpenOptions},
    process::ExitCode,
    time::Duration,
};

use crate::standard_error::note;

/// A folder below the user's temporary folder is private already.
pub fn make_private(_builder: &mut DirBuilder) {}

/// A file in the user's folder for applications is private already.
pub fn make_file_private(_options: &mut OpenOptions) {}

/// The CPU time of this process is not read here.
pub fn cpu_time() -> Option<Duration> {
    None
}

/// Refuses librdkafka's benchmark program, which needs the C library.
pub fn rdkafka_performance(_arguments: Vec<OsString>) -> ExitCode {
    note!(
        "rdkafka_performance needs the C library, which is not there on Windows; producer-perf-test measures without it"
    );
    ExitCode::FAILURE
}
