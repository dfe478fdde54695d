//! `-X debug=CONTEXT,...`: the client's debug lines on standard error, above a progress bar if there is one.

use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Log, Metadata, Record};
use ottla::Config;

use crate::standard_error::note;

/// Prints the debug lines of all clients from now on, if the configuration requests any. Errors and warnings are events,
/// which every command prints anyway.
pub fn print_if_requested(config: &Config) {
    let is_requested = config.get("debug").is_some_and(|contexts| !contexts.is_empty());
    if is_requested && log::set_logger(&StandardError).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Debug && metadata.target().starts_with("ottla")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (seconds, millis) = (since.as_secs(), since.subsec_millis());
            let context = record.target().trim_start_matches("ottla::");
            note!("{seconds}.{millis:03} {context}: {}", record.args());
        }
    }

    fn flush(&self) {}
}
