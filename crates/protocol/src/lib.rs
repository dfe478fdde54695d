//! The Kafka wire protocol: bytes to types and back, with no state, no time source and no I/O.
//!
//! - [`generated`]: every API's request and response, in all versions, from `schema/`
//! - [`message`]: what they have in common
//! - [`header`]: what stands before them in a frame
//! - [`api`], [`error_code`], [`uuid`]: the small types that they are made of
//! - [`primitive`]: integers, strings and arrays on the wire
//! - [`consumer_protocol`]: what group members tell each other through the broker
#![forbid(unsafe_code)]

pub mod api;
pub mod consumer_protocol;
pub mod error_code;
pub mod generated;
pub mod header;
pub mod message;
pub mod primitive;
pub mod time;
pub mod uuid;

pub mod batch;
pub mod compress;
