//! Formats of `-s` that have schemas: those of a registry, and those in files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ottla_schema_registry::avro::JsonStyle;
use ottla_schema_registry::serdes::DynamicDeserializer;
use ottla_schema_registry::wire::{KEY_SCHEMA_ID_HEADER, VALUE_SCHEMA_ID_HEADER};
use ottla_schema_registry::{Error, LocalSchema, SchemaType};
use serde_json::Value;

pub use super::registry_writer::{WriterOptions, Writers};
use super::{Part, RecordParts};
use crate::client_options::ClientOptions;
use crate::failure::Outcome;
pub use crate::registry_options::RegistryOptions;
use crate::registry_options::failure;

/// The formats with the names that `-s` gives them.
const FORMATS: [(&str, SchemaType, JsonStyle); 4] = [
    ("avro", SchemaType::Avro, JsonStyle::Plain),
    ("protobuf", SchemaType::Protobuf, JsonStyle::Plain),
    ("jsonschema", SchemaType::Json, JsonStyle::Plain),
    ("avro-json", SchemaType::Avro, JsonStyle::Tagged),
];

/// A format whose schema is in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The format.
    pub schema_type: SchemaType,
    /// The name of a message of Protobuf, to produce; `None` for the first one.
    pub message: Option<String>,
    style: JsonStyle,
}

impl Registered {
    /// True if a name, which may be followed by that of a message, is that of a format.
    pub fn is_format(name: &str) -> bool {
        FORMATS.iter().any(|(known, ..)| *known == divided(name).0)
    }

    /// Parses `FORMAT` or `protobuf#MESSAGE`.
    ///
    /// # Errors
    ///
    /// Another format has messages.
    pub fn parse(text: &str) -> Result<Registered, String> {
        let (name, message) = divided(text);
        let Some((_, schema_type, style)) = FORMATS.iter().find(|(known, ..)| *known == name) else {
            return Err(format!("{name} is unknown"));
        };
        if message.is_some() && *schema_type != SchemaType::Protobuf {
            return Err(format!("{name} has no messages: leave out what follows #"));
        }
        Ok(Registered { schema_type: *schema_type, message: message.map(str::to_owned), style: *style })
    }
}

/// Divides `NAME#MESSAGE`.
fn divided(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((name, message)) => (name, Some(message).filter(|message| !message.is_empty())),
        None => (text, None),
    }
}

/// A schema in a file.
#[derive(Clone)]
pub struct Local {
    schema: Arc<LocalSchema>,
    style: JsonStyle,
}

impl Local {
    /// Reads `FILE`, for Protobuf also `FILE#MESSAGE`.
    ///
    /// # Errors
    ///
    /// The file can't be used.
    pub fn open(format: &str, file: &str, includes: &[PathBuf]) -> Result<Local, String> {
        let Registered { schema_type, style, .. } = Registered::parse(format)?;
        let (file, message) = match schema_type {
            SchemaType::Protobuf => divided(file),
            _ => (file, None),
        };
        let schema = LocalSchema::open(schema_type, Path::new(file), includes, message);
        Ok(Local { schema: Arc::new(schema.map_err(|error| error.to_string())?), style })
    }

    /// Returns the JSON of a key or value.
    ///
    /// # Errors
    ///
    /// The bytes do not match the schema.
    pub fn decode(&self, bytes: &[u8]) -> Result<String, String> {
        self.schema.decode_json_text(bytes, self.style).map_err(|error| error.to_string())
    }

    /// Returns the bytes of a value.
    ///
    /// # Errors
    ///
    /// The value does not fit the schema.
    pub fn encode(&self, value: &Value) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        self.schema.encode_json(value, &mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

impl PartialEq for Local {
    fn eq(&self, other: &Local) -> bool {
        Arc::ptr_eq(&self.schema, &other.schema) && self.style == other.style
    }
}

impl Eq for Local {}

/// Decodes what the schemas of a registry describe. Clones share the schemas that were fetched.
#[derive(Clone)]
pub struct Registry(Arc<[DynamicDeserializer; 2]>);

impl Registry {
    /// Returns the decoder for a registry; `client` chooses the profile that may name it.
    ///
    /// # Errors
    ///
    /// The client's configuration is wrong.
    pub fn new(options: &RegistryOptions, client: &ClientOptions) -> Outcome<Registry> {
        let client = options.client(client)?;
        let of = |style| DynamicDeserializer::new(&client, style).map_err(failure);
        Ok(Registry(Arc::new([of(JsonStyle::Plain)?, of(JsonStyle::Tagged)?])))
    }

    /// Returns the JSON of a key or value that has a schema of this format.
    ///
    /// # Errors
    ///
    /// It names no schema, one of another format or one that the registry does not have, or does not match it.
    pub(super) fn decode(
        &self,
        format: &Registered,
        part: Part,
        parts: &RecordParts<'_>,
    ) -> Result<String, String> {
        let bytes = match part {
            Part::Key => parts.key,
            Part::Value => parts.value,
        };
        let header = parts.headers.iter().rev().find(|(key, _)| *key == id_header(part).as_bytes());
        let (header, bytes) = (header.and_then(|(_, value)| *value), bytes.unwrap_or_default());
        let read = || -> Result<Result<String, String>, Error> {
            let deserializer = &self.0[usize::from(format.style == JsonStyle::Tagged)];
            let (id, schema) = deserializer.schema(header, bytes)?;
            if schema.schema_type == format.schema_type {
                return deserializer.deserialize_text(header, bytes).map(Ok);
            }
            let of = FORMATS.iter().find(|(_, known, _)| *known == schema.schema_type);
            let name = of.map_or("?", |(name, ..)| name);
            Ok(Err(format!("its schema {id} is one of {}: use -s {name}", schema.schema_type)))
        };
        read().map_err(|error| error.to_string())?
    }
}

/// The name of the header that names the schema of a part.
pub fn id_header(part: Part) -> &'static str {
    match part {
        Part::Key => KEY_SCHEMA_ID_HEADER,
        Part::Value => VALUE_SCHEMA_ID_HEADER,
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registry")
    }
}

impl PartialEq for Registry {
    fn eq(&self, other: &Registry) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Registry {}
