//! Standard error: the only place that writes to it. Where it is closed or full, a command goes on, and its exit code stays.

use std::fmt::Display;
use std::io::{self, Write};

use crate::progress;

/// Prints a line to standard error, above the progress bar if there is one. Errors are ignored: `eprintln!` would panic.
pub fn print_line(line: impl Display) {
    // One write, so that lines of several processes do not mix.
    let text = format!("{line}\n");
    progress::above_bar(|| {
        let _ = io::stderr().write_all(text.as_bytes());
    });
}

/// Formats a line and prints it to standard error.
macro_rules! note {
    ($($part:tt)*) => { $crate::standard_error::print_line(format_args!($($part)*)) };
}
pub(crate) use note;
