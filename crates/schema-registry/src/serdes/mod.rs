//! Serializers and deserializers: values become records that name their schema, and come back.
//!
//! | format | serializer | deserializer |
//! |---|---|---|
//! | Avro | [`AvroSerializer`] | [`AvroDeserializer`] |
//! | Protobuf | [`ProtobufSerializer`] | [`ProtobufDeserializer`] |
//! | JSON Schema | [`JsonSerializer`] | [`JsonDeserializer`] |
//! | what the registry says | [`DynamicSerializer`] | [`DynamicDeserializer`] |

#[cfg(feature = "avro")]
mod avro;
mod chooser;
mod config;
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
mod dynamic;
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
mod dynamic_serializer;
mod format;
#[cfg(feature = "json")]
mod json;
mod lookup;
#[cfg(feature = "protobuf")]
mod protobuf;

#[cfg(feature = "avro")]
pub use avro::{AvroDeserializer, AvroSerializer};
pub use config::{Framed, Framing, SerializerConfig};
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
pub use dynamic::DynamicDeserializer;
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
pub use dynamic_serializer::DynamicSerializer;
#[cfg(feature = "json")]
pub use json::{JsonDeserializer, JsonSerializer};
#[cfg(feature = "protobuf")]
pub use protobuf::{ProtobufDeserializer, ProtobufSerializer};

#[cfg(all(test, feature = "server"))]
mod tests;
