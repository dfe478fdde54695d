//! A deterministic simulator: the real client core and the real embedded broker, on virtual time, in one thread, with a
//! network that misbehaves as a seed decides.
//!
//! ```text
//!   seed ──► swarm (every knob) ──► world ─┬─ clients: ClusterCore + BrokerCores, as they are
//!                                          ├─ links: byte streams that are cut, delayed, stalled, reset
//!                                          ├─ the embedded cluster, as it is
//!                                          ├─ workload and faults
//!                                          └─ trace, whose hash is the same for the same seed
//!   checkers: delivery, consume, answers, accounting, wire, busy, liveness, determinism
//! ```
//!
//! A run has two phases: first faults, in which nothing may go wrong; then everything heals, and all work must finish
//! within a bounded virtual time. Read [`swarm`], [`knobs`], [`faults`], [`workload`], [`impatience`], [`curiosity`], [`reader`], [`world`],
//! [`network`], [`client`], [`checkers`].
#![forbid(unsafe_code)]

pub mod checkers;
pub mod client;
pub mod curiosity;
pub mod faults;
pub mod impatience;
pub mod knobs;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod network;
pub mod reader;
pub mod swarm;
pub mod trace;
pub mod workload;
pub mod world;

pub use checkers::Broken;
pub use knobs::Knobs;
pub use swarm::{Outcome, run};
