//! Every message in every version, against `schema/`, against the crate `kafka-protocol`, and against hostile bytes.
//!
//! [`frames`] makes bodies straight from the schema, knowing nothing of the generated code. [`oracle`] has both crates
//! read them, compares what they saw, and compares what they write. [`fuzz`] damages them, and counts what decoding
//! allocates. [`layouts`] is for versions that only Kafka itself has.

mod allocations;
mod codecs;
mod frames;
mod fuzz;
mod layouts;
mod oracle;
mod round_trip;
#[path = "../../../../xtask/src/codegen/schema.rs"]
#[allow(dead_code)]
mod schema;
mod tree;
