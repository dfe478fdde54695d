//! Avro: schemas that are compiled once, and then encode and decode without looking anything up.
//!
//! ```text
//! text ── apache-avro parses ──> Plan ──┬── encode: from types with serde, or from JSON
//!         references                    └── resolve(writer, reader) ──> Steps ── decode: into types, or JSON
//! ```
//!
//! Logical types are encoded as the type under them: a decimal is bytes, a date an int.

mod bytes;
mod compile;
mod compound;
mod decode;
mod from_json;
mod from_serde;
mod plan;
mod resolve;
mod scalar;
mod steps;
mod to_json;

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::{plan::Plan, steps::Steps};
use crate::{Error, Result};

/// How JSON shows Avro's unions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JsonStyle {
    /// With the name of the branch, as Avro's JSON encoding and Confluent's tools: `{"string": "a"}`.
    #[default]
    Tagged,
    /// Without: `"a"`.
    Plain,
}

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct AvroSchema {
    plan: Arc<Plan>,
}

impl AvroSchema {
    /// Parses a schema. `references` are the texts of the schemas whose names it uses.
    ///
    /// # Errors
    ///
    /// A text is too large, is not a schema, or uses an unknown name.
    pub fn parse(text: &str, references: &[String]) -> Result<Self> {
        Ok(Self { plan: Arc::new(compile::compile(text, references)?) })
    }

    /// The full name of a record, enum or fixed; the type's name otherwise.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.plan.name()
    }

    /// Appends the encoding of a value.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T, out: &mut Vec<u8>) -> Result<()> {
        from_serde::encode(&self.plan, value, out)
    }

    /// Appends the encoding of a value in JSON. Branches of unions may have their names, or none if only one branch can take the value.
    /// Bytes are a string whose characters are U+0000 to U+00FF.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn encode_json(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        from_json::encode(&self.plan, value, out)
    }

    /// Prepares reading what was written with this schema. The value has the form of the reader's schema, if there is one.
    #[must_use]
    pub fn reader(&self, reader: Option<&AvroSchema>) -> AvroReader {
        let reader = reader.unwrap_or(self);
        AvroReader { steps: Arc::new(resolve::resolve(&self.plan, &reader.plan)) }
    }

    /// Says why this schema can't read everything that the writer's schema writes; nothing if it can.
    #[must_use]
    pub fn incompatibilities(&self, writer: &AvroSchema) -> Vec<String> {
        resolve::resolve(&writer.plan, &self.plan).mismatches()
    }
}

/// Reads what a writer's schema wrote.
#[derive(Clone, Debug)]
pub struct AvroReader {
    steps: Arc<Steps>,
}

impl AvroReader {
    /// Decodes a value.
    ///
    /// # Errors
    ///
    /// The bytes do not match the schema, the schemas do not match, or the type does not.
    pub fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        decode::decode(&self.steps, bytes)
    }

    /// Decodes a value into JSON.
    ///
    /// # Errors
    ///
    /// The bytes do not match the schema, or the schemas do not match.
    pub fn decode_json(&self, bytes: &[u8], style: JsonStyle) -> Result<Value> {
        let text = self.decode_json_text(bytes, style)?;
        serde_json::from_str(&text).map_err(|error| Error::record(0, error.to_string()))
    }

    /// Decodes a value into the text of JSON, whose fields have the order of the writer's schema.
    ///
    /// # Errors
    ///
    /// As [`AvroReader::decode_json`].
    pub fn decode_json_text(&self, bytes: &[u8], style: JsonStyle) -> Result<String> {
        to_json::decode(&self.steps, bytes, style)
    }
}

#[cfg(test)]
mod tests;
