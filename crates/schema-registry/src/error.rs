//! Errors: who is at fault, what was tried, and what to do.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The party at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The application: its configuration, its schema, or its value.
    Application,
    /// The network, or a registry that does not run.
    Network,
    /// The registry, or what answers in its place.
    Registry,
    /// Whoever wrote the record.
    Record,
}

/// An attempt at one address of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The address, without a user's name and password.
    pub address: String,
    /// Why it failed.
    pub why: String,
}

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is wrong.
    Config {
        /// What is wrong, and what to write instead.
        why: String,
    },
    /// No address of the registry gave an answer.
    Unreachable {
        /// The request, for example `GET /schemas/ids/7`.
        request: String,
        /// Each address that was tried, in order.
        attempts: Vec<Attempt>,
    },
    /// The registry refused a request.
    Refused {
        /// The request, for example `GET /schemas/ids/7`.
        request: String,
        /// The address that answered.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The registry's code, for example 40403; the status if the registry gave none.
        code: u32,
        /// The registry's message.
        message: String,
    },
    /// The answer is not one of a schema registry: HTML, a redirect, broken JSON, too large, or another schema.
    Answer {
        /// The request, for example `GET /schemas/ids/7`.
        request: String,
        /// The address that answered.
        address: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// The identity provider gave no token.
    Token {
        /// The endpoint.
        endpoint: String,
        /// What it answered.
        why: String,
    },
    /// A schema can't be used: it does not parse, it is too large, or its references are missing or cyclic.
    Schema {
        /// What is wrong, and where.
        why: String,
    },
    /// The value does not fit the schema.
    Value {
        /// The field, for example `order.lines[3].price`; empty for the whole value.
        path: String,
        /// Why it does not fit.
        why: String,
    },
    /// The bytes of a record are not in the format that their schema describes.
    Record {
        /// The number of bytes read before the fault.
        offset: usize,
        /// What is wrong there.
        why: String,
    },
    /// The writer's schema can't be resolved to the reader's.
    Resolution {
        /// The field, for example `order.price`; empty for the whole value.
        path: String,
        /// Why they do not match.
        why: String,
    },
}

impl Error {
    /// The party at fault.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Error::Config { .. }
            | Error::Schema { .. }
            | Error::Value { .. }
            | Error::Resolution { .. }
            | Error::Refused { status: 401 | 403 | 404 | 409 | 422, .. } => Fault::Application,
            Error::Unreachable { .. } => Fault::Network,
            Error::Refused { .. } | Error::Answer { .. } | Error::Token { .. } => Fault::Registry,
            Error::Record { .. } => Fault::Record,
        }
    }

    /// The registry's code of a refusal, for example 40403.
    #[must_use]
    pub fn code(&self) -> Option<u32> {
        if let Error::Refused { code, .. } = self { Some(*code) } else { None }
    }

    /// Returns true if the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Refused { status: 408 | 429 | 500..=599, .. })
    }

    /// Returns true if the registry has no such subject, version or schema.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Refused { status: 404, .. })
    }

    /// What to do, for refusals whose code says it.
    fn advice(&self) -> &'static str {
        match self.code() {
            Some(401 | 40101) => "; check the user, password or token of the registry",
            Some(403 | 40301) => "; this user needs more rights",
            Some(40401) => "; check the subject's name and the strategy that derives it from the topic",
            Some(40402) => "; list the subject's versions",
            Some(40403) => {
                "; register the schema, or allow auto.register.schemas; is it another registry's ID?"
            }
            Some(409) => "; change the schema, or the subject's compatibility level",
            Some(42201) => "; the registry can't parse the schema or lacks a reference",
            Some(42205) => "; set the subject's mode to READWRITE",
            _ => "",
        }
    }

    #[allow(dead_code)]
    pub(crate) fn config(why: impl Into<String>) -> Self {
        Error::Config { why: why.into() }
    }

    #[allow(dead_code)]
    pub(crate) fn schema(why: impl Into<String>) -> Self {
        Error::Schema { why: shortened(&why.into()) }
    }

    #[allow(dead_code)]
    pub(crate) fn value(why: impl Into<String>) -> Self {
        Error::Value { path: String::new(), why: why.into() }
    }

    #[allow(dead_code)]
    pub(crate) fn record(offset: usize, why: impl Into<String>) -> Self {
        Error::Record { offset, why: why.into() }
    }

    /// Puts a field's name before the path of an error about a value.
    #[allow(dead_code)]
    pub(crate) fn within(mut self, name: impl fmt::Display) -> Self {
        if let Error::Value { path, .. } | Error::Resolution { path, .. } = &mut self {
            let is_index = path.is_empty() || path.starts_with('[');
            *path = if is_index { format!("{name}{path}") } else { format!("{name}.{path}") };
        }
        self
    }
}

/// The longest text of another party in an error, in characters.
const LONGEST_QUOTE: usize = 300;

/// Cuts a text of another party, and replaces its control characters.
pub(crate) fn shortened(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(LONGEST_QUOTE).map(plain).collect();
    if text.chars().nth(LONGEST_QUOTE).is_some() {
        short.push_str("...");
    }
    short
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config { why } => write!(f, "the configuration of the schema registry's client: {why}"),
            Error::Unreachable { request, attempts } => {
                write!(f, "{request}: no schema registry answered: ")?;
                for (number, attempt) in attempts.iter().enumerate() {
                    let separator = if number > 0 { "; " } else { "" };
                    write!(f, "{separator}{}: {}", attempt.address, attempt.why)?;
                }
                write!(f, "; check the addresses and that the registry runs")
            }
            Error::Refused { request, address, status, code, message } => {
                write!(f, "{request}: the schema registry {address} refused with status {status}")?;
                if *code != u32::from(*status) {
                    write!(f, ", code {code}")?;
                }
                write!(f, ": {message}{}", self.advice())
            }
            Error::Answer { request, address, why } => write!(
                f,
                "{request}: {address} does not answer as a schema registry: {why}; check the address and its path"
            ),
            Error::Token { endpoint, why } => {
                write!(f, "the identity provider {endpoint} gave no token for the schema registry: {why}")
            }
            Error::Schema { why } => write!(f, "the schema can't be used: {why}"),
            Error::Value { path, why } if path.is_empty() => {
                write!(f, "the value does not fit its schema: {why}")
            }
            Error::Value { path, why } => write!(f, "the value does not fit its schema: {path}: {why}"),
            Error::Record { offset, why } => {
                write!(f, "the record can't be read with its schema: {why} (after {offset} bytes)")
            }
            Error::Resolution { path, why } if path.is_empty() => {
                write!(f, "the writer's schema does not match the reader's: {why}")
            }
            Error::Resolution { path, why } => {
                write!(f, "the writer's schema does not match the reader's: {path}: {why}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::Value { path: String::new(), why: message.to_string() }
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::Value { path: String::new(), why: message.to_string() }
    }
}
