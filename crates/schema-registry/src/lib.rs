#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod error;
mod levels;
#[cfg(any(feature = "client", feature = "server"))]
mod percent;
mod schema;
mod subject_name;

#[cfg(feature = "avro")]
pub mod avro;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "json")]
pub mod json_schema;
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
mod local;
#[cfg(feature = "protobuf")]
pub mod protobuf;
#[cfg(all(feature = "client", any(feature = "avro", feature = "protobuf", feature = "json")))]
pub mod serdes;
#[cfg(feature = "server")]
pub mod server;
pub mod wire;

pub use error::{Attempt, Error, Fault, Result};
pub use levels::{Compatibility, Mode};
#[cfg(all(feature = "avro", feature = "protobuf", feature = "json"))]
pub use local::LocalSchema;
pub use schema::{MAX_SCHEMA_BYTES, Reference, Schema, SchemaType};
pub use subject_name::{Part, SubjectNameStrategy};
