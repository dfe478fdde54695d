//! The decoder of keys, and that of values, as `-s` chooses them.

use serde_json::Value;

use super::pack::Pack;
use super::registry::{FORMATS, Registry, SchemaType};
use super::{Part, RecordParts};
use crate::failure::Outcome;

/// The decoders, for `--help`.
pub const DECODER_HELP: &str = "\
Decoders of -s (key=DECODER, value=DECODER, or DECODER for both):
  string        the bytes as they are (default)
  json          a JSON value: an object in -J, and paths in --filter
  avro, protobuf, jsonschema
                what the schema in the registry says, as JSON (--registry)
  PACK          numbers of fixed size, in the letters of kcat:
                < little-endian, > big-endian (default), b B 8-bit integer, h H 16-bit, i I 32-bit, q Q 64-bit (capitals are
                unsigned), c a character, s the rest as a string, $ the end is required; a space prints a space";

/// How the bytes of a key or value are read. Each format is a variant.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Decoder {
    /// The bytes as they are.
    #[default]
    Plain,
    /// A JSON value.
    Json,
    /// Numbers and strings in kcat's pack format.
    Pack(Pack),
    /// What a schema of the registry describes.
    Registered(SchemaType),
}

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
    /// That of keys.
    pub key: Decoder,
    /// That of values.
    pub value: Decoder,
    /// The registry of those that need one.
    registry: Option<Registry>,
}

impl Decoders {
    /// Parses the values of `-s`. A later one replaces an earlier one.
    ///
    /// # Errors
    ///
    /// A text that names the wrong part.
    pub fn parse(texts: &[String]) -> Result<Decoders, String> {
        let mut decoders = Decoders::default();
        for text in texts {
            let of = |name: &str| {
                Decoder::parse(name).map_err(|error| format!("-s {text}: {error}\n\n{DECODER_HELP}"))
            };
            match text.split_once('=') {
                Some(("key", name)) => decoders.key = of(name)?,
                Some(("value", name)) => decoders.value = of(name)?,
                Some(_) => {
                    return Err(format!("-s {text}: write key=DECODER or value=DECODER\n\n{DECODER_HELP}"));
                }
                None => (decoders.key, decoders.value) = (of(text)?, of(text)?),
            }
        }
        Ok(decoders)
    }

    /// Connects them with the registry, if one needs it.
    ///
    /// # Errors
    ///
    /// That of `registry`.
    pub fn connect(&mut self, registry: impl FnOnce() -> Outcome<Registry>) -> Outcome {
        let needs = |decoder: &Decoder| matches!(decoder, Decoder::Registered(_));
        if needs(&self.key) || needs(&self.value) {
            self.registry = Some(registry()?);
        }
        Ok(())
    }

    /// Decodes a record's key; `None` for null.
    ///
    /// # Errors
    ///
    /// Why the bytes do not have the format.
    pub fn key_of<'a>(&self, parts: &RecordParts<'a>) -> Result<Option<Decoded<'a>>, String> {
        parts.key.map(|bytes| self.decode(&self.key, Part::Key, parts, bytes)).transpose()
    }

    /// Decodes a record's value, as [`Decoders::key_of`].
    ///
    /// # Errors
    ///
    /// Why the bytes do not have the format.
    pub fn value_of<'a>(&self, parts: &RecordParts<'a>) -> Result<Option<Decoded<'a>>, String> {
        parts.value.map(|bytes| self.decode(&self.value, Part::Value, parts, bytes)).transpose()
    }

    fn decode<'a>(
        &self,
        decoder: &Decoder,
        part: Part,
        parts: &RecordParts<'a>,
        bytes: &'a [u8],
    ) -> Result<Decoded<'a>, String> {
        match (decoder, &self.registry) {
            (Decoder::Plain, _) => Ok(Decoded::Bytes(bytes)),
            (Decoder::Json, _) => serde_json::from_slice(bytes)
                .map(Decoded::Value)
                .map_err(|error| format!("it is not JSON: {error}")),
            (Decoder::Pack(pack), _) => pack.unpack(bytes).map(|(text, value)| Decoded::Packed(text, value)),
            (Decoder::Registered(format), Some(registry)) => {
                registry.decode(*format, part, parts).map(Decoded::Json)
            }
            (Decoder::Registered(_), None) => Err("the decoder is not connected with a registry".into()),
        }
    }
}

impl Decoder {
    fn parse(name: &str) -> Result<Decoder, String> {
        match name {
            "string" => Ok(Decoder::Plain),
            "json" => Ok(Decoder::Json),
            name => match FORMATS.iter().find(|(known, _)| *known == name) {
                Some((_, format)) => Ok(Decoder::Registered(*format)),
                None if FORMATS.is_empty() && ["avro", "protobuf", "jsonschema"].contains(&name) => {
                    Err("this program was built without the feature `schemas`".to_owned())
                }
                None => Pack::parse(name).map(Decoder::Pack),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RECORD;
    use super::*;

    fn parse(texts: &[&str]) -> Result<Decoders, String> {
        Decoders::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn decoders_are_chosen_for_key_value_or_both() {
        assert_eq!(parse(&[]), Ok(Decoders::default()));
        let both = parse(&["json"]).unwrap();
        assert_eq!((both.key, both.value), (Decoder::Json, Decoder::Json));
        let one = parse(&["value=json", "key=>q"]).unwrap();
        assert!(matches!(one, Decoders { key: Decoder::Pack(_), value: Decoder::Json, .. }));
        for wrong in ["keys=json", "value=", "xml", "value=avrox"] {
            assert!(parse(&[wrong]).unwrap_err().contains("Decoders of -s"), "{wrong}");
        }
    }

    #[test]
    fn json_that_does_not_parse_is_an_error() {
        let decoders = parse(&["json"]).unwrap();
        let decode = |value| decoders.value_of(&RecordParts { value: Some(value), ..RECORD });
        assert_eq!(decode(b"[1]"), Ok(Some(Decoded::Value(serde_json::json!([1])))));
        assert!(decode(b"{").unwrap_err().starts_with("it is not JSON"));
        let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(decode(&nested).unwrap_err().contains("recursion limit"));
    }
}
