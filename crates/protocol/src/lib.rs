//! The Kafka wire protocol: bytes to types and back, with no state, no time source and no I/O.
#![forbid(unsafe_code)]

pub mod time;
