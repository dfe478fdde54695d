//! Schemas in files, without a registry: values have neither an ID nor anything else before them.

use std::path::{Path, PathBuf};

use prost_reflect::MessageDescriptor;
use serde_json::Value;

use crate::{
    Error, Result, SchemaType,
    avro::{AvroReader, AvroSchema, JsonStyle},
    json_schema::JsonSchema,
    protobuf::ProtobufSchema,
    schema::{read_bytes, read_file},
};

/// The largest number of files that a JSON Schema refers to.
const MAX_FILES: usize = 1000;

/// A schema in a file, compiled.
#[derive(Clone, Debug)]
pub enum LocalSchema {
    /// Avro.
    Avro(AvroSchema, AvroReader),
    /// A message of Protobuf.
    Protobuf(MessageDescriptor),
    /// JSON Schema.
    Json(JsonSchema),
}

impl LocalSchema {
    /// Reads a file. `includes` are folders with the files that it imports (`.proto`) or refers to (JSON Schema), and files with
    /// types that it uses (Avro). `name` is that of a message of Protobuf, if it is not the first one. A file of Protobuf whose name
    /// does not end with `.proto` is a descriptor set, as protoc writes it.
    ///
    /// # Errors
    ///
    /// A file can't be read or is too large, is not a schema, lacks one that it uses, or has no such message.
    pub fn open(
        schema_type: SchemaType,
        path: &Path,
        includes: &[PathBuf],
        name: Option<&str>,
    ) -> Result<Self> {
        match schema_type {
            SchemaType::Avro => {
                let files = includes.iter().filter(|it| it.is_file());
                let texts = files.map(|it| read_file(it)).collect::<Result<Vec<_>>>()?;
                let schema = AvroSchema::parse(&read_file(path)?, &texts)?;
                let reader = schema.reader(None);
                Ok(Self::Avro(schema, reader))
            }
            SchemaType::Protobuf => {
                let is_text = path.extension().is_some_and(|it| it == "proto");
                let schema = match is_text {
                    true => ProtobufSchema::open(path, includes)?,
                    false => ProtobufSchema::from_descriptor_set(&read_bytes(path)?)?,
                };
                Ok(Self::Protobuf(schema.message(name)?))
            }
            SchemaType::Json => {
                let text = read_file(path)?;
                let folders = path.parent().into_iter().chain(includes.iter().map(PathBuf::as_path));
                let references = references(&text, &folders.collect::<Vec<_>>())?;
                Ok(Self::Json(JsonSchema::parse(&text, &references)?))
            }
        }
    }

    /// Appends the encoding of a value in JSON.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn encode_json(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Avro(schema, _) => schema.encode_json(value, out)?,
            Self::Protobuf(message) => out.extend(ProtobufSchema::encode_json(message, value)?),
            Self::Json(schema) => {
                schema.validate(value)?;
                serde_json::to_writer(out, value).map_err(|error| Error::value(error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Decodes a value into the text of JSON.
    ///
    /// # Errors
    ///
    /// The bytes do not match the schema.
    pub fn decode_json_text(&self, bytes: &[u8], style: JsonStyle) -> Result<String> {
        match self {
            Self::Avro(_, reader) => reader.decode_json_text(bytes, style),
            Self::Protobuf(message) => {
                ProtobufSchema::decode_json(message, bytes).map(|value| value.to_string())
            }
            Self::Json(schema) => {
                let value: Value = serde_json::from_slice(bytes)
                    .map_err(|error| Error::record(error.column(), format!("it is not JSON: {error}")))?;
                schema.validate(&value)?;
                Ok(value.to_string())
            }
        }
    }
}

/// Returns the names and the texts of the files to which a JSON Schema refers, and of those to which these refer.
fn references(text: &str, folders: &[&Path]) -> Result<Vec<(String, String)>> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut left = documents(text)?;
    while let Some(name) = left.pop() {
        if found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if found.len() == MAX_FILES {
            return Err(Error::schema(format!("it refers to more than {MAX_FILES} files")));
        }
        // What is not a file may be the `$id` of a schema within this one: the validator says if it is not.
        let path = folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
        if let Some(path) = path {
            let text = read_file(&path)?;
            left.extend(documents(&text)?);
            found.push((name, text));
        }
    }
    Ok(found)
}

/// Returns the documents to which a JSON Schema refers.
fn documents(text: &str) -> Result<Vec<String>> {
    let root: Value =
        serde_json::from_str(text).map_err(|error| Error::schema(format!("it is not JSON: {error}")))?;
    let (mut found, mut left) = (Vec::new(), vec![&root]);
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => {
                let target = map.get("$ref").and_then(Value::as_str).unwrap_or_default();
                let document = target.split('#').next().unwrap_or_default();
                if !document.is_empty() && !document.contains("://") {
                    found.push(document.to_owned());
                }
                left.extend(map.values());
            }
            Value::Array(list) => left.extend(list),
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
