//! Values in JSON, written in the format that their schema has.

use serde_json::Value;

use super::{
    AvroSerializer, JsonSerializer, ProtobufSerializer,
    config::{Framed, SerializerConfig},
};
use crate::{
    Error, Result, SchemaType,
    client::{Client, Version},
};

/// Writes JSON with a schema of the registry: the latest version of a subject, or that with an ID.
#[derive(Debug)]
pub struct DynamicSerializer {
    client: Client,
    config: SerializerConfig,
    avro: AvroSerializer,
    protobuf: ProtobufSerializer,
    json: JsonSerializer,
}

impl DynamicSerializer {
    /// Creates a serializer. `message` is the name of a message of Protobuf, if it is not the first one.
    ///
    /// # Errors
    ///
    /// The configuration has neither `use_latest_version` nor `use_schema_id`.
    pub fn new(client: &Client, message: Option<&str>, config: SerializerConfig) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            avro: AvroSerializer::new(client, None, config.clone())?,
            protobuf: ProtobufSerializer::new(client, None, message, config.clone())?,
            json: JsonSerializer::new(client, None, config.clone())?,
            config,
        })
    }

    /// Writes a value for a topic.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema; there is no schema; the registry can't be reached or refuses.
    pub fn serialize_json(&self, topic: &str, value: &Value) -> Result<Framed> {
        match self.schema_type(topic)? {
            SchemaType::Avro => self.avro.serialize_json(topic, value),
            SchemaType::Protobuf => self.protobuf.serialize_json(topic, value),
            SchemaType::Json => self.json.serialize(topic, value),
        }
    }

    fn schema_type(&self, topic: &str) -> Result<SchemaType> {
        if let Some(id) = self.config.use_schema_id {
            return Ok(self.client.schema_by_id(id)?.schema_type);
        }
        let subject = self.config.strategy.subject(topic, self.config.part, None)?;
        let latest =
            self.client.version(&subject, Version::Latest).map_err(|error| match error.is_not_found() {
                true => Error::config(format!("topic {topic:?} has no schema: {error}")),
                false => error,
            })?;
        Ok(latest.schema.schema_type)
    }
}
