//! Avro.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    chooser::Chooser,
    config::{Framed, SerializerConfig, unframed},
    lookup::Lookup,
};
use crate::{
    Result, Schema,
    avro::{AvroReader, AvroSchema, JsonStyle},
    client::{Client, cache::Cache},
    wire::SchemaId,
};

/// Writes values in Avro.
#[derive(Debug)]
pub struct AvroSerializer {
    chooser: Chooser<AvroSchema>,
}

impl AvroSerializer {
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
        let chosen = self.chooser.choose(topic, None)?;
        self.chooser.framed(&chosen, |_| (), |out| chosen.compiled.encode(value, out))
    }

    /// Writes a value in Avro's JSON encoding, whose branches of unions may be without their names.
    ///
    /// # Errors
    ///
    /// As [`AvroSerializer::serialize`].
    pub fn serialize_json(&self, topic: &str, value: &Value) -> Result<Framed> {
        let chosen = self.chooser.choose(topic, None)?;
        self.chooser.framed(&chosen, |_| (), |out| chosen.compiled.encode_json(value, out))
    }
}

/// Reads values in Avro.
#[derive(Debug)]
pub struct AvroDeserializer {
    lookup: Lookup<AvroSchema>,
    reader: Option<AvroSchema>,
    readers: Cache<SchemaId, Arc<AvroReader>>,
}

impl AvroDeserializer {
    /// Creates a deserializer. With a schema, values have its form; otherwise that of the schema with which they were written.
    ///
    /// # Errors
    ///
    /// The schema is wrong, or the registry lacks a reference.
    pub fn new(client: &Client, reader: Option<&Schema>) -> Result<Self> {
        let lookup = Lookup::new(client);
        let reader = reader.map(|schema| lookup.compile(schema)).transpose()?;
        Ok(Self { lookup, reader, readers: Cache::new(client.cache_capacity()) })
    }

    /// Reads a value. `header` is that with the ID of the schema, if the record has one.
    ///
    /// # Errors
    ///
    /// The record is not one of a registry's; its schema is not there, or does not match; the registry can't be reached or refuses.
    pub fn deserialize<T: DeserializeOwned>(&self, header: Option<&[u8]>, payload: &[u8]) -> Result<T> {
        let (reader, data) = self.reader(header, payload)?;
        reader.decode(data)
    }

    /// Reads a value into JSON.
    ///
    /// # Errors
    ///
    /// As [`AvroDeserializer::deserialize`].
    pub fn deserialize_json(&self, header: Option<&[u8]>, payload: &[u8], style: JsonStyle) -> Result<Value> {
        let (reader, data) = self.reader(header, payload)?;
        reader.decode_json(data, style)
    }

    /// Reads a value into the text of JSON.
    ///
    /// # Errors
    ///
    /// As [`AvroDeserializer::deserialize`].
    pub fn deserialize_json_text(
        &self,
        header: Option<&[u8]>,
        payload: &[u8],
        style: JsonStyle,
    ) -> Result<String> {
        let (reader, data) = self.reader(header, payload)?;
        reader.decode_json_text(data, style)
    }

    fn reader<'a>(&self, header: Option<&'a [u8]>, payload: &'a [u8]) -> Result<(Arc<AvroReader>, &'a [u8])> {
        let (id, rest, data) = unframed(header, payload)?;
        let reader = self
            .readers
            .get(&id, None, || Ok(Arc::new(self.lookup.get(id)?.reader(self.reader.as_ref()))))?;
        Ok((reader, data.unwrap_or(rest)))
    }
}
