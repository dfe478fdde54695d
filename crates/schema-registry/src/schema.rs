//! Schemas as the registry knows them: a type, a text, and references to other schemas.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value, json};

use crate::{Error, Result};

/// The largest text of a schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 4 << 20;

/// The format of a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaType {
    /// Apache Avro, which the registry assumes if nothing is said.
    #[default]
    Avro,
    /// Protocol Buffers.
    Protobuf,
    /// JSON Schema.
    Json,
}

impl SchemaType {
    /// The registry's name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SchemaType::Avro => "AVRO",
            SchemaType::Protobuf => "PROTOBUF",
            SchemaType::Json => "JSON",
        }
    }
}

impl fmt::Display for SchemaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SchemaType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let types = [SchemaType::Avro, SchemaType::Protobuf, SchemaType::Json];
        types.into_iter().find(|it| it.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            Error::config(format!("unknown type of schema {name:?}; write AVRO, PROTOBUF or JSON"))
        })
    }
}

/// A reference to a version of a subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// What the schema calls it: a full name in Avro, an import in Protobuf, a `$ref` in JSON Schema.
    pub name: String,
    /// The subject.
    pub subject: String,
    /// The version of the subject.
    pub version: i32,
}

impl Reference {
    /// Creates a reference.
    #[must_use]
    pub fn new(name: impl Into<String>, subject: impl Into<String>, version: i32) -> Self {
        Self { name: name.into(), subject: subject.into(), version }
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        let version = value.get("version")?.as_i64()?;
        Some(Self { name: text("name")?, subject: text("subject")?, version: version.try_into().ok()? })
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"name": self.name, "subject": self.subject, "version": self.version})
    }
}

/// A schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    /// The format.
    pub schema_type: SchemaType,
    /// The text; for Protobuf also a serialized descriptor in base64.
    pub text: String,
    /// The schemas that this one uses.
    pub references: Vec<Reference>,
}

impl Schema {
    /// Creates a schema in Avro.
    #[must_use]
    pub fn avro(text: impl Into<String>) -> Self {
        Self { schema_type: SchemaType::Avro, text: text.into(), references: Vec::new() }
    }

    /// Creates a schema in Protobuf.
    #[must_use]
    pub fn protobuf(text: impl Into<String>) -> Self {
        Self { schema_type: SchemaType::Protobuf, text: text.into(), references: Vec::new() }
    }

    /// Creates a JSON Schema.
    #[must_use]
    pub fn json(text: impl Into<String>) -> Self {
        Self { schema_type: SchemaType::Json, text: text.into(), references: Vec::new() }
    }

    /// Adds a reference.
    #[must_use]
    pub fn with_reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Reads the fields of a schema from a request or an answer.
    ///
    /// # Errors
    ///
    /// A field is missing or has another type, the type of schema is unknown, or the text is too large.
    pub fn from_json(value: &Value) -> Result<Self> {
        let text = value.get("schema").and_then(Value::as_str);
        let text = text.ok_or_else(|| Error::schema("the field \"schema\" is missing"))?;
        check_size(text)?;
        let schema_type = match value.get("schemaType") {
            None | Some(Value::Null) => SchemaType::Avro,
            Some(Value::String(name)) => name.parse()?,
            Some(_) => return Err(Error::schema("the field \"schemaType\" is not a string")),
        };
        let references = match value.get("references") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list
                .iter()
                .map(|it| {
                    Reference::from_json(it)
                        .ok_or_else(|| Error::schema(format!("a reference is broken: {it}")))
                })
                .collect::<Result<_>>()?,
            Some(_) => return Err(Error::schema("the field \"references\" is not a list")),
        };
        Ok(Self { schema_type, text: text.to_owned(), references })
    }

    /// Writes the fields of a schema, as in a request.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("schema".to_owned(), json!(self.text));
        if self.schema_type != SchemaType::Avro {
            out.insert("schemaType".to_owned(), json!(self.schema_type.name()));
        }
        if !self.references.is_empty() {
            let list = self.references.iter().map(Reference::to_json).collect();
            out.insert("references".to_owned(), Value::Array(list));
        }
        Value::Object(out)
    }
}

/// Checks the size of a schema's text.
///
/// # Errors
///
/// It has more than [`MAX_SCHEMA_BYTES`] bytes.
pub(crate) fn check_size(text: &str) -> Result<()> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(Error::schema(format!(
            "its text has {} bytes, and {MAX_SCHEMA_BYTES} are the limit; divide it by references",
            text.len()
        )));
    }
    Ok(())
}

/// Reads a file.
///
/// # Errors
///
/// It can't be read, or has more than [`MAX_SCHEMA_BYTES`] bytes.
#[cfg(feature = "protobuf")]
pub(crate) fn read_bytes(path: &std::path::Path) -> Result<Vec<u8>> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| Error::schema(format!("{} can't be read: {error}", path.display()));
    let mut bytes = Vec::new();
    // One byte more than the limit says that there are more.
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_SCHEMA_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() > MAX_SCHEMA_BYTES {
        true => Err(Error::schema(format!(
            "{} has more than {MAX_SCHEMA_BYTES} bytes, the limit",
            path.display()
        ))),
        false => Ok(bytes),
    }
}

/// Reads the text of a file. See [`read_bytes`].
///
/// # Errors
///
/// It can't be read, is not UTF-8, or is too large.
#[cfg(feature = "protobuf")]
pub(crate) fn read_file(path: &std::path::Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?)
        .map_err(|_| Error::schema(format!("{} is not a text in UTF-8", path.display())))
}
