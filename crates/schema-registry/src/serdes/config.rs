//! How a serializer finds its schema and names it.

use crate::{
    Error, Part, Result, SubjectNameStrategy,
    wire::{KEY_SCHEMA_ID_HEADER, SchemaId, VALUE_SCHEMA_ID_HEADER},
};

/// Where the ID of the schema is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// The ID, before the data.
    #[default]
    Prefix,
    /// The GUID, in a header. The registry must have GUIDs.
    Header,
}

/// The configuration of a serializer. Its fields have the names of Confluent's properties.
#[derive(Clone, Debug)]
pub struct SerializerConfig {
    /// Registers the schema if the subject does not have it (`auto.register.schemas`); true by default.
    pub auto_register: bool,
    /// Writes with the latest version of the subject (`use.latest.version`).
    pub use_latest_version: bool,
    /// Writes with the schema that has this ID (`use.schema.id`).
    pub use_schema_id: Option<u32>,
    /// Has the registry compare schemas in their normal form (`normalize.schemas`).
    pub normalize: bool,
    /// How the subject is derived (`subject.name.strategy`).
    pub strategy: SubjectNameStrategy,
    /// Whether the key or the value is written.
    pub part: Part,
    /// Where the ID of the schema is (`schema.id.serializer`).
    pub framing: Framing,
}

impl SerializerConfig {
    /// Returns the configuration for keys.
    #[must_use]
    pub fn key() -> Self {
        Self {
            auto_register: true,
            use_latest_version: false,
            use_schema_id: None,
            normalize: false,
            strategy: SubjectNameStrategy::Topic,
            part: Part::Key,
            framing: Framing::Prefix,
        }
    }

    /// Returns the configuration for values.
    #[must_use]
    pub fn value() -> Self {
        Self { part: Part::Value, ..Self::key() }
    }

    /// Has the serializer register nothing.
    #[must_use]
    pub fn without_registration(mut self) -> Self {
        self.auto_register = false;
        self
    }

    /// Has the serializer write with the latest version of the subject, and register nothing.
    #[must_use]
    pub fn with_latest_version(mut self) -> Self {
        self.use_latest_version = true;
        self.without_registration()
    }

    /// Has the serializer write with the schema that has this ID, and register nothing.
    #[must_use]
    pub fn with_schema_id(mut self, id: u32) -> Self {
        self.use_schema_id = Some(id);
        self.without_registration()
    }

    /// Sets how the subject is derived.
    #[must_use]
    pub fn with_strategy(mut self, strategy: SubjectNameStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets where the ID of the schema is.
    #[must_use]
    pub fn with_framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        match (self.auto_register, self.use_latest_version, self.use_schema_id) {
            (true, true, _) | (true, _, Some(_)) => Err(Error::config(
                "auto_register can't be combined with use_latest_version or use_schema_id; set it to false",
            )),
            (_, true, Some(_)) => {
                Err(Error::config("use_latest_version and use_schema_id exclude each other"))
            }
            _ => Ok(()),
        }
    }
}

/// What goes into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// The key or the value.
    pub payload: Vec<u8>,
    /// The name and the value of the header with the ID, with [`Framing::Header`].
    pub header: Option<(&'static str, Vec<u8>)>,
}

/// The name of the header of a part.
pub(super) const fn header_name(part: Part) -> &'static str {
    match part {
        Part::Key => KEY_SCHEMA_ID_HEADER,
        Part::Value => VALUE_SCHEMA_ID_HEADER,
    }
}

/// The ID, what follows it, and the data if it stands alone.
pub(super) type Parts<'a> = (SchemaId, &'a [u8], Option<&'a [u8]>);

/// Reads the ID of a record's schema, and returns what follows it, and the data. With a header these are two texts.
pub(super) fn unframed<'a>(header: Option<&'a [u8]>, payload: &'a [u8]) -> Result<Parts<'a>> {
    match header {
        Some(header) => {
            let (id, rest) = SchemaId::read(header)?;
            Ok((id, rest, Some(payload)))
        }
        None => {
            let (id, rest) = SchemaId::read(payload)?;
            Ok((id, rest, None))
        }
    }
}
