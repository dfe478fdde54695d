//! The decoder of records that name a schema of a registry.

use std::fmt;
use std::sync::Arc;

pub use ottla_schema_registry::SchemaType;
use ottla_schema_registry::avro::JsonStyle;
use ottla_schema_registry::serdes::DynamicDeserializer;
use ottla_schema_registry::wire::{KEY_SCHEMA_ID_HEADER, VALUE_SCHEMA_ID_HEADER};

use super::{Part, RecordParts};
use crate::client_options::ClientOptions;
use crate::failure::Outcome;
pub use crate::registry_options::RegistryOptions;
use crate::registry_options::failure;

/// The formats of a registry, with the names that `-s` gives them.
pub const FORMATS: [(&str, SchemaType); 3] =
    [("avro", SchemaType::Avro), ("protobuf", SchemaType::Protobuf), ("jsonschema", SchemaType::Json)];

/// Decodes what the schemas of a registry describe. Clones share the schemas that were fetched.
#[derive(Clone)]
pub struct Registry(Arc<DynamicDeserializer>);

impl Registry {
    /// Returns the decoder for a registry; `client` chooses the profile that may name it.
    ///
    /// # Errors
    ///
    /// The client's configuration is wrong.
    pub fn new(options: &RegistryOptions, client: &ClientOptions) -> Outcome<Registry> {
        let client = options.client(client)?;
        Ok(Registry(Arc::new(DynamicDeserializer::new(&client, JsonStyle::Plain).map_err(failure)?)))
    }

    /// Returns the JSON of a key or value that has a schema of this format.
    ///
    /// # Errors
    ///
    /// It names no schema, one of another format or one that the registry does not have, or does not match it.
    pub(super) fn decode(
        &self,
        format: SchemaType,
        part: Part,
        parts: &RecordParts<'_>,
    ) -> Result<String, String> {
        let (name, bytes) = match part {
            Part::Key => (KEY_SCHEMA_ID_HEADER, parts.key),
            Part::Value => (VALUE_SCHEMA_ID_HEADER, parts.value),
        };
        let header = parts.headers.iter().rev().find(|(key, _)| *key == name.as_bytes());
        let (header, bytes) = (header.and_then(|(_, value)| *value), bytes.unwrap_or_default());
        let (id, schema) = self.0.schema(header, bytes).map_err(|error| error.to_string())?;
        if schema.schema_type != format {
            let of =
                |wanted| FORMATS.iter().find(|(_, format)| *format == wanted).map_or("?", |(name, _)| name);
            return Err(format!(
                "its schema {id} is one of {}: use -s {}",
                schema.schema_type,
                of(schema.schema_type)
            ));
        }
        self.0.deserialize_text(header, bytes).map_err(|error| error.to_string())
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
