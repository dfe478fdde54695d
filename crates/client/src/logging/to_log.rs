//! Log lines through the `log` facade (feature `log`).

use std::fmt;

use log::kv::Value;

use super::line::{Field, Level, Line};

pub(super) fn is_enabled(level: Level, target: &str) -> bool {
    log::log_enabled!(target: target, level_of(level))
}

/// Passes the line to the application's logger. The text begins with the client's name.
pub(super) fn write(line: &Line<'_>, text: fmt::Arguments<'_>) {
    let client = line.origin.client.as_str();
    let fields = line.fields.iter().map(|(name, value)| match *value {
        Field::Text(text) => (*name, Value::from(text)),
        Field::Number(number) => (*name, Value::from(number)),
    });
    let fields: Vec<(&str, Value<'_>)> =
        std::iter::once(("client", Value::from(client))).chain(fields).collect();
    log::logger().log(
        &log::Record::builder()
            .level(level_of(line.level))
            .target(line.target)
            .module_path_static(Some("ottla"))
            .args(format_args!("{client}: {text}"))
            .key_values(&fields.as_slice())
            .build(),
    );
}

const fn level_of(level: Level) -> log::Level {
    match level {
        Level::Error => log::Level::Error,
        Level::Warn => log::Level::Warn,
        Level::Info => log::Level::Info,
        Level::Debug => log::Level::Debug,
    }
}
