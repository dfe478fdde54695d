//! Topic IDs, member IDs and similar 128-bit identifiers.

use std::{fmt, str::FromStr};

/// A 128-bit identifier, written as Kafka writes it: 22 characters of base64 for URLs.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// No identifier.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this is [`Uuid::ZERO`].
    pub const fn is_zero(&self) -> bool {
        u128::from_be_bytes(self.0) == 0
    }

    /// Parses the output of [`Display`](fmt::Display). Padding (`==`) may follow.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix("==").unwrap_or(text);
        if text.len() != 22 {
            return None;
        }
        let mut value = 0_u128;
        for (index, byte) in text.bytes().enumerate() {
            let digit = ALPHABET.iter().position(|each| *each == byte)? as u128;
            // 21 characters of six bits, and the upper two bits of the last.
            value = if index < 21 { value << 6 | digit } else { value << 2 | digit >> 4 };
        }
        Some(Self(value.to_be_bytes()))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let mut text = [0; 22];
        for (index, byte) in text.iter_mut().enumerate() {
            let digit = if index < 21 { value >> (122 - 6 * index) } else { value << 4 };
            *byte = ALPHABET[(digit & 63) as usize];
        }
        f.pad(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Error: a text is not a [`Uuid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseUuidError;

impl fmt::Display for ParseUuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a uuid in Kafka's notation, 22 characters of base64 for URLs")
    }
}

impl std::error::Error for ParseUuidError {}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        Self::parse(text).ok_or(ParseUuidError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_uuid_is_22_letters_a() {
        assert_eq!(Uuid::ZERO.to_string(), "A".repeat(22));
        assert!(Uuid::ZERO.is_zero());
    }

    #[test]
    fn uuids_round_trip_through_text() {
        let uuid = Uuid(*b"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\xff");
        let text = uuid.to_string();
        assert_eq!(text, "ASNFZ4mrze_-3LqYdlQy_w");
        assert_eq!(Uuid::parse(&text), Some(uuid));
        assert_eq!((text + "==").parse(), Ok(uuid));
    }

    #[test]
    fn invalid_uuid_is_refused() {
        for text in ["", "A", "ASNFZ4mrze_-3LqYdlQy", "ASNFZ4mrze/-3LqYdlQy_w", "ASNFZ4mrze_-3LqYdlQy_wAA"] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError), "{text}");
        }
    }
}
