//! The APIs that a broker serves, by their key.

use std::{fmt, ops::RangeInclusive};

pub use crate::generated::ApiKey;

/// The properties of an API that `schema/` defines.
pub(crate) struct ApiFacts {
    pub(crate) name: &'static str,
    pub(crate) versions: RangeInclusive<i16>,
    pub(crate) served: RangeInclusive<i16>,
    pub(crate) flexible_from: i16,
}

impl ApiKey {
    /// Returns the API's number on the wire.
    pub const fn as_i16(self) -> i16 {
        self as i16
    }

    /// Returns the API's name, as Kafka writes it.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The versions that this crate reads and writes.
    pub fn versions(self) -> RangeInclusive<i16> {
        self.facts().versions.clone()
    }

    /// The stable versions that Apache Kafka 4.4.0 serves.
    pub fn served_versions(self) -> RangeInclusive<i16> {
        self.facts().served.clone()
    }

    /// Returns whether `version` has compact lengths and tagged fields.
    pub fn is_flexible(self, version: i16) -> bool {
        version >= self.facts().flexible_from
    }

    /// The version of the request header in front of a request in `version`.
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the response header in front of a response in `version`.
    ///
    /// ApiVersions always uses version 0, so that a client can read the response before it knows the broker's versions.
    pub fn response_header_version(self, version: i16) -> i16 {
        (self != Self::ApiVersions && self.is_flexible(version)).into()
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_number_name_and_versions() {
        assert_eq!(ApiKey::from_i16(18), Some(ApiKey::ApiVersions));
        assert_eq!(ApiKey::from_i16(4), None);
        assert_eq!(ApiKey::from_i16(-1), None);
        assert_eq!(ApiKey::Produce.versions(), 0..=13);
        assert_eq!(ApiKey::Produce.served_versions(), 3..=13);
        assert_eq!(ApiKey::ALL.iter().map(|api| api.as_i16()).max(), Some(94));
        assert!(ApiKey::ALL.iter().all(|api| ApiKey::from_i16(api.as_i16()) == Some(*api)));
        assert_eq!(ApiKey::Metadata.to_string(), "Metadata");
    }

    #[test]
    fn response_header_of_api_versions_is_always_the_oldest() {
        assert_eq!(ApiKey::ApiVersions.request_header_version(4), 2);
        assert_eq!(ApiKey::ApiVersions.response_header_version(4), 0);
        assert_eq!(ApiKey::Metadata.response_header_version(8), 0);
        assert_eq!(ApiKey::Metadata.response_header_version(9), 1);
        assert_eq!(ApiKey::SaslHandshake.request_header_version(1), 1);
    }
}
