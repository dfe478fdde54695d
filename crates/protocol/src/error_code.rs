//! Kafka's error codes.

use std::fmt;

use crate::generated::errors::ERRORS;

/// An error code in a response. Unknown codes are preserved.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

/// The properties of an error code in `schema/errors.tsv`.
pub(crate) struct ErrorFacts {
    pub(crate) name: &'static str,
    pub(crate) retriable: bool,
    pub(crate) invalidates_metadata: bool,
    pub(crate) description: &'static str,
}

impl ErrorCode {
    /// Whether there is no error.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether there is an error.
    pub const fn is_error(self) -> bool {
        self.0 != 0
    }

    /// `Err(self)` if there is an error.
    pub const fn ok(self) -> Result<(), Self> {
        if self.is_none() { Ok(()) } else { Err(self) }
    }

    /// Whether Kafka 4.4 defines the code.
    pub fn is_known(self) -> bool {
        self.facts().is_some()
    }

    /// Returns Kafka's name of the code, or `UNKNOWN`.
    pub fn name(self) -> &'static str {
        self.facts().map_or("UNKNOWN", |facts| facts.name)
    }

    /// Returns the meaning of the code, in a few words.
    pub fn description(self) -> &'static str {
        self.facts().map_or("an error code that this version does not know", |facts| facts.description)
    }

    /// Whether the same request may succeed later.
    pub fn is_retriable(self) -> bool {
        self.facts().is_some_and(|facts| facts.retriable)
    }

    /// Returns whether the code indicates that the client's metadata is out of date.
    pub fn invalidates_metadata(self) -> bool {
        self.facts().is_some_and(|facts| facts.invalidates_metadata)
    }

    /// Iterates over all known codes, from -1 up.
    pub fn all() -> impl Iterator<Item = Self> {
        (-1..).take(ERRORS.len()).map(Self)
    }

    fn facts(self) -> Option<&'static ErrorFacts> {
        ERRORS.get(usize::try_from(i32::from(self.0) + 1).ok()?)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.facts() {
            Some(facts) => f.pad(facts.name),
            None => write!(f, "UNKNOWN({})", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_have_names_and_properties() {
        let error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
        assert_eq!((error.0, error.name()), (6, "NOT_LEADER_OR_FOLLOWER"));
        assert!(error.is_retriable() && error.invalidates_metadata());
        assert!(!ErrorCode::MESSAGE_TOO_LARGE.is_retriable());
        assert_eq!(ErrorCode::UNKNOWN_SERVER_ERROR.0, -1);
        assert_eq!(ErrorCode::NONE.ok(), Ok(()));
        assert!(ErrorCode::all().all(|code| code.is_known() && !code.description().is_empty()));
    }

    #[test]
    fn unknown_codes_are_preserved() {
        let error = ErrorCode(i16::MAX);
        assert_eq!(error.to_string(), "UNKNOWN(32767)");
        assert_eq!(error.ok(), Err(error));
        assert!(!error.is_known() && !error.is_retriable() && !error.invalidates_metadata());
        assert!(!ErrorCode(-2).is_known());
    }
}
