//! The behaviour of the Ottla Kafka client, as machines without sockets, threads, clocks or randomness of their own.
//!
//! Read [`machine`] first: it is the contract that everything here keeps. Then follow a record:
//!
//! ```text
//!  app thread ──► produce::shared ──► produce::accumulator ══ready══► produce::sender ──► broker::connection ──► socket
//!  app ◄── produce::report ◄── produce::ack ◄─────────────────────────────────────────────────────────────── socket
//!  app ◄── fetch::deliver ◄── fetch::queue ◄── fetch::fetcher ◄─────────────── broker::connection ◄────────── socket
//! ```
//!
//! There are two kinds of owner, [`cluster::ClusterCore`] and [`broker::BrokerCore`]; they talk by [`mail`] and are
//! driven by `ottla-net` or by a simulator.
#![forbid(unsafe_code)]

pub mod admin;
pub mod backoff;
pub mod broker;
pub mod cluster;
pub mod completion;
pub mod config;
pub mod error;
pub mod event;
pub mod fetch;
pub mod machine;
pub mod mail;
pub mod mutation;
pub mod observer;
pub mod produce;
pub mod rng;
pub mod stats;
pub mod sync;
pub mod wake;

#[cfg(all(test, ottla_loom))]
mod models;
