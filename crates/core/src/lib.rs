//! The behaviour of the Ottla Kafka client, as state machines without sockets, threads, clocks or operating system
//! randomness.
//!
//! Read [`machine`] first: it describes the contract that every machine here follows. Then follow a record:
//!
//! ```text
//!  app thread ──► produce::send ───► produce::accumulator ══ready══► produce::sender ──► connection ──► socket
//!  app ◄── produce::report ◄── produce::ack ◄─────────────────────────────────────────────────────── socket
//!  app ◄── fetch::deliver ◄── fetch::queue ◄── fetch::fetcher ◄─────────────── connection ◄────────── socket
//! ```
//!
//! There are two kinds of actor, [`cluster::ClusterCore`] and [`broker::BrokerCore`]; they exchange [`message`]s and are
//! driven by `ottla-net` or by a simulator. The folders stand on floors: each imports only those below it, and [`contract`] is what
//! the features agree on.
#![forbid(unsafe_code)]

pub mod admin;
pub mod advice;
pub mod backoff;
pub mod base64;
pub mod broker;
pub mod callback;
pub mod cluster;
pub mod completion;
pub mod config;
pub mod connection;
pub mod contract;
pub mod error;
pub mod event;
pub mod fetch;
pub mod group;
pub mod hash;
pub mod lock;
pub mod machine;
pub mod message;
pub mod observer;
pub mod offsets;
pub mod produce;
mod repeats;
pub mod rng;
pub mod sasl;
pub mod secret;
pub mod share;
pub mod shown;
pub mod states;
pub mod stats;
pub mod streams;
pub mod sync;
pub mod telemetry;
#[cfg(test)]
mod turns;
pub mod txn;
pub mod waiters;
pub mod wake;
pub mod wall_clock;

#[cfg(all(test, ottla_loom))]
mod models;
