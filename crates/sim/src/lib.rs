//! A deterministic simulator: the real client core and the real embedded broker, on virtual time, in one thread, with a
//! network whose faults a seed decides.
//!
//! ```text
//!   seed ──► swarm (every knob) ──► world ─┬─ clients: ClusterCore + BrokerCores, as they are
//!                                          ├─ links: byte streams that are cut, delayed, stalled, reset
//!                                          ├─ the embedded cluster, as it is
//!                                          ├─ workload and faults
//!                                          └─ trace, whose hash is the same for the same seed
//!   checkers: delivery, consume, queries, accounting, wire, busy, liveness, determinism; atomicity, truth and so on
//! ```
//!
//! A run has two phases. In the first there are faults, and every guarantee must hold. Then everything heals, and all
//! work must finish within a bounded virtual time. Read [`swarm`], [`knobs`], [`faults`], [`workload`], [`deadlines`],
//! [`queries`], [`reader`], [`sasl`], [`telemetry`], [`world`], [`network`], [`client`], [`checkers`]. [`groups`] runs the members of a group in
//! worlds of their own, with seeds, with [schedules](groups::schedules) that have names, and with a
//! [crowd](groups::crowd). [`shares`] does so with members of share groups, [`streams`] with members of streams groups. [`transactions`] has worlds of transactional producers and of copiers.
//!
//! [`coverage`] counts what machines do, and [`guided`] steers worlds to what they seldom do; [`transitions`] is the
//! page of what they never did.
//!
//! A world that breaks a guarantee is shrunk: read [`incidents`], [`dials`], [`plan`], [`mod@shrink`], [`story`], [`report`].
#![forbid(unsafe_code)]

pub mod checkers;
pub mod client;
pub mod client_dials;
pub mod coverage;
pub mod deadlines;
pub mod dials;
pub mod faults;
pub mod groups;
pub mod guided;
pub mod hunt;
pub mod incidents;
pub mod knobs;
pub mod network;
pub mod plan;
pub mod queries;
pub mod reader;
pub mod report;
pub mod sasl;
pub mod shares;
pub mod shrink;
pub mod story;
pub mod streams;
pub mod swarm;
pub mod telemetry;
pub mod trace;
pub mod transactions;
pub mod transitions;
pub mod workers;
pub mod workload;
pub mod world;

pub use checkers::Broken;
pub use knobs::Knobs;
pub use swarm::{Outcome, run};
