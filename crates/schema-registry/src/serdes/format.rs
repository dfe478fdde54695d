//! What the formats have in common.

use crate::{Result, SchemaType};

/// A compiled schema of a format.
pub trait Format: Sized {
    const TYPE: SchemaType;

    /// Compiles a text with the names and texts of its references.
    fn compile(text: &str, references: Vec<(String, String)>) -> Result<Self>;

    /// The name for strategies of subjects.
    fn record_name(&self) -> Option<String>;
}

#[cfg(feature = "avro")]
impl Format for crate::avro::AvroSchema {
    const TYPE: SchemaType = SchemaType::Avro;

    fn compile(text: &str, references: Vec<(String, String)>) -> Result<Self> {
        let mut texts: Vec<String> = Vec::new();
        for (_, text) in references {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        Self::parse(text, &texts)
    }

    fn record_name(&self) -> Option<String> {
        self.name().map(str::to_owned)
    }
}

#[cfg(feature = "protobuf")]
impl Format for crate::protobuf::ProtobufSchema {
    const TYPE: SchemaType = SchemaType::Protobuf;

    fn compile(text: &str, references: Vec<(String, String)>) -> Result<Self> {
        Self::parse(text, &references)
    }

    fn record_name(&self) -> Option<String> {
        self.message(None).ok().map(|it| it.full_name().to_owned())
    }
}

#[cfg(feature = "json")]
impl Format for crate::json_schema::JsonSchema {
    const TYPE: SchemaType = SchemaType::Json;

    fn compile(text: &str, references: Vec<(String, String)>) -> Result<Self> {
        Self::parse(text, &references)
    }

    fn record_name(&self) -> Option<String> {
        self.title().map(str::to_owned)
    }
}
