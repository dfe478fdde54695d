//! Compiled schemas of any format: whether two are the same, and whether one reads the other.

use serde_json::Value;

use crate::{
    Compatibility, Result, Schema, SchemaType, avro::AvroSchema, json_schema::JsonSchema,
    protobuf::ProtobufSchema,
};

/// A compiled schema.
pub enum Compiled {
    Avro(AvroSchema),
    Protobuf(ProtobufSchema),
    Json(JsonSchema),
}

impl Compiled {
    /// Compiles a schema with the names and texts of its references.
    pub fn new(schema: &Schema, references: &[(String, String)]) -> Result<Self> {
        Ok(match schema.schema_type {
            SchemaType::Avro => {
                let texts: Vec<String> = references.iter().map(|(_, text)| text.clone()).collect();
                Compiled::Avro(AvroSchema::parse(&schema.text, &texts)?)
            }
            SchemaType::Protobuf => Compiled::Protobuf(ProtobufSchema::parse(&schema.text, references)?),
            SchemaType::Json => Compiled::Json(JsonSchema::parse(&schema.text, references)?),
        })
    }

    /// Says why a schema can't follow an earlier one at a level.
    pub fn incompatibilities(&self, level: Compatibility, earlier: &Compiled) -> Vec<String> {
        let mut found = Vec::new();
        if level.is_backward() {
            found.extend(self.why_not_reading(earlier));
        }
        if level.is_forward() {
            found.extend(earlier.why_not_reading(self));
        }
        found
    }

    fn why_not_reading(&self, writer: &Compiled) -> Vec<String> {
        match (self, writer) {
            (Compiled::Avro(reader), Compiled::Avro(writer)) => reader.incompatibilities(writer),
            (Compiled::Protobuf(reader), Compiled::Protobuf(writer)) => reader.incompatibilities(writer),
            (Compiled::Json(reader), Compiled::Json(writer)) => reader.incompatibilities(writer),
            _ => vec!["the type of the schema is another".to_owned()],
        }
    }

    /// The text that `format=serialized` asks for.
    pub fn serialized(&self) -> Option<String> {
        if let Compiled::Protobuf(schema) = self { Some(schema.to_base64()) } else { None }
    }
}

/// Whether two schemas are the same, apart from white space.
pub fn is_same(a: &Schema, b: &Schema) -> bool {
    if a.schema_type != b.schema_type || a.references != b.references {
        return false;
    }
    if a.text == b.text {
        return true;
    }
    match a.schema_type {
        SchemaType::Protobuf => false,
        _ => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
            parsed(&a.text).is_some_and(|value| parsed(&b.text) == Some(value))
        }
    }
}

/// Removes white space between the parts of JSON; the registry keeps schemas without.
pub fn minified(schema: &Schema) -> String {
    if schema.schema_type == SchemaType::Protobuf {
        return schema.text.clone();
    }
    let (mut out, mut is_text, mut is_escaped) = (String::with_capacity(schema.text.len()), false, false);
    for c in schema.text.chars() {
        if is_text || !c.is_ascii_whitespace() {
            out.push(c);
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            _ => {}
        }
    }
    out
}
