//! JSON Schema.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    chooser::Chooser,
    config::{Framed, SerializerConfig, unframed},
    lookup::Lookup,
};
use crate::{Error, Result, Schema, client::Client, json_schema::JsonSchema};

/// Writes values in JSON that their schema permits.
#[derive(Debug)]
pub struct JsonSerializer {
    chooser: Chooser<JsonSchema>,
}

impl JsonSerializer {
    /// Creates a serializer. Without a schema, the configuration names one of the registry.
    ///
    /// # Errors
    ///
    /// The schema or the configuration is wrong, or the registry lacks a reference.
    pub fn new(client: &Client, schema: Option<Schema>, config: SerializerConfig) -> Result<Self> {
        Ok(Self { chooser: Chooser::new(client, schema, config)? })
    }

    /// Writes a value for a topic.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema; the registry can't be reached or refuses the schema.
    pub fn serialize<T: Serialize + ?Sized>(&self, topic: &str, value: &T) -> Result<Framed> {
        let value = serde_json::to_value(value).map_err(|error| Error::value(error.to_string()))?;
        let chosen = self.chooser.choose(topic, None)?;
        chosen.compiled.validate(&value)?;
        self.chooser.framed(
            &chosen,
            |_| (),
            |out| serde_json::to_writer(out, &value).map_err(|error| Error::value(error.to_string())),
        )
    }
}

/// Reads values in JSON, and checks them.
#[derive(Debug)]
pub struct JsonDeserializer {
    lookup: Lookup<JsonSchema>,
    is_trusting: bool,
}

impl JsonDeserializer {
    /// Creates a deserializer that checks values.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self { lookup: Lookup::new(client), is_trusting: false }
    }

    /// Has the deserializer check nothing and ask no registry.
    #[must_use]
    pub fn without_validation(mut self) -> Self {
        self.is_trusting = true;
        self
    }

    /// Reads a value. `header` is that with the ID of the schema, if the record has one.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's, not JSON, or does not fit its schema or the type; the registry can't be reached or
    /// refuses.
    pub fn deserialize<T: DeserializeOwned>(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<T> {
        let (id, rest, data) = unframed(header, payload)?;
        let data = data.unwrap_or(rest);
        let value: Value = serde_json::from_slice(data)
            .map_err(|error| Error::record(error.column(), format!("it is not JSON: {error}")))?;
        if !self.is_trusting {
            self.lookup.get(id)?.validate(&value)?;
        }
        serde_json::from_value(value).map_err(|error| Error::value(error.to_string()))
    }
}
