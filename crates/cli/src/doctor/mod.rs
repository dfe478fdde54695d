//! `ottla doctor`: connects step by step, and says what is wrong and what to change.
//!
//! ```text
//!   config ─► dns ─► tcp ─► tls ─► api ─► sasl ─► metadata ─► each broker ─► topics and groups
//!                            └──── no TLS? no SASL? ────┘
//!                         asks the port what it speaks (listener)
//! ```
//!
//! The clients' machines retry and reconnect; a diagnosis makes each attempt once, on a socket that blocks, and keeps
//! what the peer shows. TLS and SASL are those of the clients.
//!
//! | file | content |
//! |---|---|
//! | [`diagnosis`] | problems, findings, checks |
//! | [`connection`] | a connection that blocks: frames, requests, deadlines |
//! | [`steps`] | from the name of a host to an authenticated connection |
//! | [`tls`], [`sasl`] | the handshakes, and the meaning of their failures |
//! | [`limits`] | how long each wait may last |
//! | [`listener`] | what a port speaks, if not what the client speaks |
//! | [`cluster`], [`access`] | brokers, topics, groups |
//! | [`report`] | lines for a terminal, for a pipe, and JSON |

mod access;
mod cluster;
mod connection;
mod diagnosis;
mod limits;
mod listener;
mod report;
mod sasl;
mod steps;
mod tls;

pub use access::Wanted;
pub use report::{Report, Style};
pub use steps::Doctor;
