//! Protobuf.

use prost::Message;
use prost_reflect::MessageDescriptor;
use serde_json::Value;

use super::{
    chooser::Chooser,
    config::{Framed, SerializerConfig, unframed},
    lookup::Lookup,
};
use crate::{Error, Result, Schema, client::Client, protobuf::ProtobufSchema, wire::MessageIndexes};

/// Writes messages in Protobuf.
#[derive(Debug)]
pub struct ProtobufSerializer {
    chooser: Chooser<ProtobufSchema>,
    /// The message's name, if it is not the first one of the file.
    message: Option<String>,
    /// The message's full name in the application's schema.
    full_name: Option<String>,
}

impl ProtobufSerializer {
    /// Creates a serializer for a message, or for the first one of the file. Without a schema, the configuration names one of the
    /// registry.
    ///
    /// # Errors
    ///
    /// The schema or the configuration is wrong, it has no such message, or the registry lacks a reference.
    pub fn new(
        client: &Client,
        schema: Option<Schema>,
        message: Option<&str>,
        config: SerializerConfig,
    ) -> Result<Self> {
        let chooser = Chooser::<ProtobufSchema>::new(client, schema, config)?;
        let full_name = match (chooser.own(), message) {
            (Some(own), Some(name)) => Some(own.message(Some(name))?.full_name().to_owned()),
            _ => None,
        };
        Ok(Self { chooser, message: message.map(str::to_owned), full_name })
    }

    /// Writes a message of prost for a topic.
    ///
    /// # Errors
    ///
    /// The registry can't be reached or refuses the schema.
    pub fn serialize(&self, topic: &str, message: &impl Message) -> Result<Framed> {
        self.write(topic, |_| Ok(message.encode_to_vec()))
    }

    /// Writes a message in Protobuf's JSON.
    ///
    /// # Errors
    ///
    /// The value does not fit the message; the registry can't be reached or refuses the schema.
    pub fn serialize_json(&self, topic: &str, value: &Value) -> Result<Framed> {
        self.write(topic, |message| ProtobufSchema::encode_json(message, value))
    }

    fn write(&self, topic: &str, data: impl FnOnce(&MessageDescriptor) -> Result<Vec<u8>>) -> Result<Framed> {
        let chosen = self.chooser.choose(topic, self.full_name.as_deref())?;
        let message = chosen.compiled.message(self.message.as_deref())?;
        let indexes = ProtobufSchema::indexes(&message);
        let data = data(&message)?;
        self.chooser.framed(
            &chosen,
            |out| indexes.write(out),
            |out| {
                out.extend_from_slice(&data);
                Ok(())
            },
        )
    }
}

/// Reads messages in Protobuf.
#[derive(Debug)]
pub struct ProtobufDeserializer {
    lookup: Lookup<ProtobufSchema>,
}

impl ProtobufDeserializer {
    /// Creates a deserializer.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self { lookup: Lookup::new(client) }
    }

    /// Reads a message of prost, whose type resolves by the numbers of its fields. Only the ID is looked at, and the registry is not
    /// asked.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's, or not such a message.
    pub fn deserialize<T: Message + Default>(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<T> {
        let (_, rest, data) = unframed(header, payload)?;
        let (_, rest) = MessageIndexes::read(rest)?;
        T::decode(data.unwrap_or(rest))
            .map_err(|error| Error::record(0, format!("it is not such a message: {error}")))
    }

    /// Reads a message into Protobuf's JSON.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's; its schema is not there, or does not match; the registry can't be reached or refuses.
    pub fn deserialize_json(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<Value> {
        let (id, rest, data) = unframed(header, payload)?;
        let (indexes, rest) = MessageIndexes::read(rest)?;
        let message = self.lookup.get(id)?.message_at(&indexes)?;
        ProtobufSchema::decode_json(&message, data.unwrap_or(rest))
    }
}
