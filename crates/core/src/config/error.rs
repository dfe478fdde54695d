//! The errors of a configuration.

use std::fmt;

/// Error: a property of a configuration can't be used. Names the property, what is wrong with it and what would be
/// valid.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// The property's name, as it was written.
    pub property: String,
    /// What is wrong.
    pub kind: ConfigErrorKind,
    /// The file and the line, if the property was read from a file.
    pub place: Option<(String, usize)>,
}

/// What is wrong with a property.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// There is no such property.
    Unknown {
        /// A name that is nearly the same.
        suggestion: Option<&'static str>,
    },
    /// The value is not of the property's kind, for example not a number.
    Malformed {
        /// The value.
        value: String,
        /// The expected kind of value, in words.
        expected: String,
    },
    /// An entry of a list of servers is invalid.
    BadServer {
        /// The entry and the reason.
        sentence: String,
    },
    /// The number is too small or too large.
    OutOfRange {
        /// The value.
        value: String,
        /// The allowed range, in words.
        range: String,
    },
    /// The word isn't one of those allowed.
    NotOneOf {
        /// The value.
        value: String,
        /// The permitted words, comma-separated.
        allowed: String,
    },
    /// The property is known, but this client can't do what it asks for.
    Refused {
        /// The value.
        value: String,
        /// Why not.
        reason: &'static str,
    },
    /// It contradicts another property.
    Conflict {
        /// The other property, as it was written.
        other: String,
        /// The reason; names both properties.
        sentence: String,
    },
    /// The property is required and not set.
    Missing {
        /// The feature that needs the property.
        purpose: &'static str,
    },
    /// A line of a file is not a property. The error does not have its text, which may be a part of a password or a key.
    NotAProperty,
    /// A warning that `config.strict` turns into an error.
    Strict {
        /// The warning.
        warning: String,
    },
}

impl ConfigError {
    pub(crate) fn new(property: impl Into<String>, kind: ConfigErrorKind) -> ConfigError {
        ConfigError { property: property.into(), kind, place: None }
    }

    /// Returns whether the error is about the property's name, not its value.
    pub fn is_unknown_property(&self) -> bool {
        matches!(self.kind, ConfigErrorKind::Unknown { .. })
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.place {
            write!(f, "{file}:{line}: ")?;
        }
        let property = &self.property;
        match &self.kind {
            ConfigErrorKind::Unknown { suggestion: Some(name) } => {
                write!(f, "there is no property `{property}`; did you mean `{name}`?")
            }
            ConfigErrorKind::Unknown { suggestion: None } => {
                write!(
                    f,
                    "there is no property `{property}`; `ottla properties` and CONFIGURATION.md (installed in share/doc/ottla) list all \
                     properties"
                )
            }
            ConfigErrorKind::Malformed { value, expected } => {
                write!(f, "`{property}` is \"{value}\", but must be {expected}")
            }
            ConfigErrorKind::BadServer { sentence } => write!(f, "`{property}`: {sentence}"),
            ConfigErrorKind::OutOfRange { value, range } => {
                write!(f, "`{property}` is {value}, but must be in {range}")
            }
            ConfigErrorKind::NotOneOf { value, allowed } => {
                write!(f, "`{property}` is \"{value}\", but must be one of: {allowed}")
            }
            ConfigErrorKind::Refused { value, reason } if value.is_empty() => {
                write!(f, "`{property}` can't be set: {reason}")
            }
            ConfigErrorKind::Refused { value, reason } => {
                write!(f, "`{property}` can't be \"{value}\": {reason}")
            }
            ConfigErrorKind::Conflict { sentence, .. } => f.write_str(sentence),
            ConfigErrorKind::Missing { purpose } => write!(f, "`{property}` isn't set: {purpose}"),
            ConfigErrorKind::NotAProperty => {
                f.write_str("the line is not a property; write name=value, and a backslash at the end of a line that continues")
            }
            ConfigErrorKind::Strict { warning } => {
                write!(f, "{warning} (an error because of `config.strict`)")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
