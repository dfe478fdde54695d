//! What tests could not check.

use std::{env, fs::OpenOptions, io::Write};

/// Says that something was not checked, and why. The line is counted: it is also appended to the file that the environment
/// variable `OTTLA_NOT_CHECKED` names, because the output of tests that pass is not shown.
///
/// `what` begins with `test` if a whole test did nothing.
pub fn not_checked(what: &str, why: &str) {
    let line = format!("NOT CHECKED: {what}, because {why}\n");
    eprint!("{line}");
    if let Some(path) = env::var_os("OTTLA_NOT_CHECKED") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("OTTLA_NOT_CHECKED names a file");
    }
}
