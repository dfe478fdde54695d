//! What the actors and their features agree on: a cluster actor, broker actors, and the machines inside of them.
//!
//! ```text
//!   cluster, broker        the actors
//!   produce, fetch, ..     features: parts of the cluster actor, halves of a broker actor
//!   connection, sasl
//!   contract               this module: plain values and two traits, without any of the above
//! ```
//!
//! - `part`: a part of the cluster actor, and the `Need`s that it returns.
//! - [`half`]: what a half of a broker actor returns.
//! - [`route`]: a request, and where it goes.
//! - [`broker`]: what brokers send along with responses, and what all of them are told.
//! - [`purge`]: which messages of a producer to remove.
//! - [`metadata`]: the view of the cluster that all parts read.

pub mod broker;
pub mod half;
pub mod metadata;
pub(crate) mod part;
pub mod purge;
pub mod route;
