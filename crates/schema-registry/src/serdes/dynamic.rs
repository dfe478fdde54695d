//! Records of any format, as the schema that they name says.

use std::sync::Arc;

use serde_json::Value;

use super::{AvroDeserializer, JsonDeserializer, ProtobufDeserializer, config::unframed};
use crate::{Result, Schema, SchemaType, avro::JsonStyle, client::Client, wire::SchemaId};

/// Reads records into JSON, in the format that their schema has.
#[derive(Debug)]
pub struct DynamicDeserializer {
    client: Client,
    avro: AvroDeserializer,
    protobuf: ProtobufDeserializer,
    json: JsonDeserializer,
    style: JsonStyle,
}

impl DynamicDeserializer {
    /// Creates a deserializer.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn new(client: &Client, style: JsonStyle) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            avro: AvroDeserializer::new(client, None)?,
            protobuf: ProtobufDeserializer::new(client),
            json: JsonDeserializer::new(client).without_validation(),
            style,
        })
    }

    /// Returns the ID and the schema of a record.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's; its schema is not there; the registry can't be reached or refuses.
    pub fn schema(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<(SchemaId, Arc<Schema>)> {
        let (id, ..) = unframed(header, payload)?;
        Ok((id, self.client.schema(id)?))
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's; its schema is not there, or does not match; the registry can't be reached or refuses.
    pub fn deserialize(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<Value> {
        match self.schema(header, payload)?.1.schema_type {
            SchemaType::Avro => self.avro.deserialize_json(header, payload, self.style),
            SchemaType::Protobuf => self.protobuf.deserialize_json(header, payload),
            SchemaType::Json => self.json.deserialize(header, payload),
        }
    }

    /// Reads a record into the text of JSON.
    ///
    /// # Errors
    ///
    /// As [`DynamicDeserializer::deserialize`].
    pub fn deserialize_text(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<String> {
        match self.schema(header, payload)?.1.schema_type {
            SchemaType::Avro => self.avro.deserialize_json_text(header, payload, self.style),
            _ => self.deserialize(header, payload).map(|it| it.to_string()),
        }
    }
}
