//! The parts of the two performance tools: payloads, the pace, latencies, verification, dates.

pub mod date;
pub mod latency;
pub mod metrics;
pub mod pace;
pub mod payload;
pub mod verify;
