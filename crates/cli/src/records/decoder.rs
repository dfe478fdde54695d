//! The decoder of keys, and that of values, as `-s` chooses them.

use serde_json::Value;

use super::part_format::{PartFormat, PartFormats};
use super::registry::Registry;
use super::{Part, RecordParts};
use crate::failure::Outcome;

/// What a decoder returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded<'a> {
    /// The bytes as they are.
    Bytes(&'a [u8]),
    /// A value with a structure, or a number.
    Value(Value),
    /// The text of a JSON value.
    Json(String),
    /// The text of a pack format, and its values for JSON.
    Packed(Vec<u8>, Value),
}

/// The decoders of a command.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Decoders {
    formats: PartFormats,
    /// The registry of those that need one.
    registry: Option<Registry>,
}

impl Decoders {
    /// Returns the decoders of formats, connected with the registry if one needs it.
    ///
    /// # Errors
    ///
    /// That of `registry`.
    pub fn new(formats: PartFormats, registry: impl FnOnce() -> Outcome<Registry>) -> Outcome<Decoders> {
        let registry = formats.need_registry().then(registry).transpose()?;
        Ok(Decoders { formats, registry })
    }

    /// Decodes a record's key; `None` for null.
    ///
    /// # Errors
    ///
    /// Why the bytes do not have the format.
    pub fn key_of<'a>(&self, parts: &RecordParts<'a>) -> Result<Option<Decoded<'a>>, String> {
        parts.key.map(|bytes| self.decode(&self.formats.key, Part::Key, parts, bytes)).transpose()
    }

    /// Decodes a record's value, as [`Decoders::key_of`].
    ///
    /// # Errors
    ///
    /// Why the bytes do not have the format.
    pub fn value_of<'a>(&self, parts: &RecordParts<'a>) -> Result<Option<Decoded<'a>>, String> {
        parts.value.map(|bytes| self.decode(&self.formats.value, Part::Value, parts, bytes)).transpose()
    }

    fn decode<'a>(
        &self,
        format: &PartFormat,
        part: Part,
        parts: &RecordParts<'a>,
        bytes: &'a [u8],
    ) -> Result<Decoded<'a>, String> {
        match (format, &self.registry) {
            (PartFormat::Plain, _) => Ok(Decoded::Bytes(bytes)),
            (PartFormat::Json, _) => serde_json::from_slice(bytes)
                .map(Decoded::Value)
                .map_err(|error| format!("it is not JSON: {error}")),
            (PartFormat::Pack(pack), _) => {
                pack.unpack(bytes).map(|(text, value)| Decoded::Packed(text, value))
            }
            (PartFormat::Local(local), _) => local.decode(bytes).map(Decoded::Json),
            (PartFormat::Registered(format), Some(registry)) => {
                registry.decode(format, part, parts).map(Decoded::Json)
            }
            (PartFormat::Registered(_), None) => {
                Err("the format is not connected with a registry".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RECORD;
    use super::*;

    #[test]
    fn json_that_does_not_parse_is_an_error() {
        let formats = PartFormats::parse(&["json".to_owned()], &[]).unwrap();
        let decoders = Decoders { formats, registry: None };
        let decode = |value| decoders.value_of(&RecordParts { value: Some(value), ..RECORD });
        assert_eq!(decode(b"[1]"), Ok(Some(Decoded::Value(serde_json::json!([1])))));
        assert!(decode(b"{").unwrap_err().starts_with("it is not JSON"));
        let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(decode(&nested).unwrap_err().contains("recursion limit"));
    }
}
