//! Setting a property, and what the interface returns of it.

use std::{ffi::c_int, fmt};

use ottla_core::config::{ConfigError, RawConfig, table as properties, table::Kind};

use crate::ffi::argument::Buffer;

pub(crate) const CONF_UNKNOWN: c_int = -2;
pub(crate) const CONF_INVALID: c_int = -1;
pub(crate) const CONF_OK: c_int = 0;

/// Sets a property. For texts, NULL is the same as an empty value; other values can't be NULL.
pub(crate) fn set(raw: &mut RawConfig, name: &str, value: Option<&str>) -> Result<(), SetError> {
    let kind = properties::find(raw.scope(), name).map(|property| property.kind);
    match value {
        None if kind.is_some_and(|kind| kind != Kind::Text) => Err(SetError::Empty(name.to_owned())),
        Some("") if matches!(kind, Some(Kind::Flags(_))) => Err(SetError::Empty(name.to_owned())),
        value => raw.set(name, value.unwrap_or_default()).map_err(SetError::Config),
    }
}

/// The reason why a property was not set.
#[derive(Debug)]
pub(crate) enum SetError {
    Config(ConfigError),
    /// The property needs a value, and the application passed none.
    Empty(String),
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Empty(name) => {
                write!(f, "`{name}` can't be empty or NULL: only properties that hold text can be unset")
            }
        }
    }
}

/// Writes the outcome of setting a property to the application's buffer, and returns its code.
pub(crate) fn report(outcome: Result<(), SetError>, errstr: Buffer<'_>, size: usize) -> c_int {
    match outcome {
        Ok(()) => CONF_OK,
        Err(error) => {
            errstr.put(size, &error.to_string());
            match error {
                SetError::Config(error) if error.is_unknown_property() => CONF_UNKNOWN,
                _ => CONF_INVALID,
            }
        }
    }
}
