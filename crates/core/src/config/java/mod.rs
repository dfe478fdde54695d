//! What the Java clients' properties mean here, so that their configurations can be used as they are.
//!
//! | file | content |
//! |---|---|
//! | [`properties`] | the properties of the Java clients: names, types, ranges, defaults |
//! | `reading.rs` | values that Java permits and a row of the table does not |
//! | `classes.rs` | names of Java classes, and what does their work here |
//! | `duration.rs` | ISO 8601 durations, in `auto.offset.reset=by_duration:PT1H` |
//!
//! `rules/java.rs` applies what concerns several properties.
//!
//! # Pitfalls
//!
//! - A number beyond a row's range becomes the nearest one in Rust, with a warning, and stays an error in the C library, whose
//!   ranges are librdkafka's (`numbers_beyond_a_range_become_the_nearest_one_in_rust_only`).

pub(super) mod classes;
pub(super) mod duration;
pub mod properties;
pub(super) mod reading;
