//! Log lines as events of `tracing` (feature `tracing`).
//!
//! Beside the fields of all lines, an event has those of the C library's lines: `facility`, and `severity` as syslog numbers it. Its
//! parent is the current span of the thread, or else the span in which the client was created. The client does not keep that
//! span open.

use std::fmt;

use tracing::{Id, Span, level_filters::LevelFilter};

use super::line::{Field, Level, Line};

pub(super) fn has_subscriber() -> bool {
    tracing::dispatcher::has_been_set()
}

pub(super) fn is_enabled(level: Level) -> bool {
    let level = match level {
        Level::Error => tracing::Level::ERROR,
        Level::Warn => tracing::Level::WARN,
        Level::Info => tracing::Level::INFO,
        Level::Debug => tracing::Level::DEBUG,
    };
    level <= LevelFilter::current()
}

/// Returns the number of the level in syslog.
const fn severity(level: Level) -> i64 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    }
}

/// Defines the function that emits an event, whose target, level and names of fields are fixed at each place.
macro_rules! events {
    ($($target:literal $level:ident $tracing:ident,)*) => {
        /// Passes the line to the application's subscriber.
        pub(super) fn write(line: &Line<'_>, text: fmt::Arguments<'_>) {
            let parent: Option<Id> = Span::current().id().or_else(|| line.origin.span.clone());
            match (line.target, line.level) {
                $(($target, Level::$level) => tracing::event!(
                    target: $target,
                    parent: parent,
                    tracing::Level::$tracing,
                    client = line.origin.client.as_str(),
                    facility = line.facility,
                    severity = severity(line.level),
                    broker = line.text_of("broker"),
                    api = line.text_of("api"),
                    topic = line.text_of("topic"),
                    partition = line.number_of("partition"),
                    version = line.number_of("version"),
                    correlation_id = line.number_of("correlation_id"),
                    bytes = line.number_of("bytes"),
                    records = line.number_of("records"),
                    offset = line.number_of("offset"),
                    throttle_ms = line.number_of("throttle_ms"),
                    state = line.text_of("state"),
                    thread = line.text_of("thread"),
                    "{text}"
                ),)*
                _ => debug_assert!(false, "{} has no events of this level", line.target),
            }
        }
    };
}

events! {
    "ottla" Error ERROR,
    "ottla" Warn WARN,
    "ottla" Info INFO,
    "ottla::generic" Debug DEBUG,
    "ottla::broker" Debug DEBUG,
    "ottla::topic" Debug DEBUG,
    "ottla::metadata" Debug DEBUG,
    "ottla::feature" Debug DEBUG,
    "ottla::msg" Debug DEBUG,
    "ottla::protocol" Debug DEBUG,
    "ottla::cgrp" Debug DEBUG,
    "ottla::fetch" Debug DEBUG,
    "ottla::consumer" Debug DEBUG,
    "ottla::admin" Debug DEBUG,
    "ottla::eos" Debug DEBUG,
    "ottla::telemetry" Debug DEBUG,
}

impl Line<'_> {
    fn text_of(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(field, value)| match value {
            Field::Text(text) if *field == name => Some(*text),
            _ => None,
        })
    }

    fn number_of(&self, name: &str) -> Option<i64> {
        self.fields.iter().find_map(|(field, value)| match value {
            Field::Number(number) if *field == name => Some(*number),
            _ => None,
        })
    }
}
