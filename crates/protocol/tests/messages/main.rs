//! Every message in every version, against `schema/`, against the crate `kafka-protocol`, and against malformed bytes.
//!
//! [`frames`] generates bodies from the schema, independent of the generated code. [`oracle`] decodes them with both
//! crates, compares the values, and compares what both encode. [`fuzz`] damages them, and counts the allocations of
//! decoding. [`layouts`] covers versions that only Kafka itself has.

mod allocations;
mod codecs;
mod frames;
mod fuzz;
mod layouts;
mod oracle;
mod patterns;
mod round_trip;
#[path = "../../../../xtask/src/codegen/schema.rs"]
#[allow(dead_code)]
mod schema;
mod tree;
