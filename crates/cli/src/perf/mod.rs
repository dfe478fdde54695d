//! What the two performance tools are made of: payloads, the pace, latencies, the check afterwards, dates.

pub mod date;
pub mod latency;
pub mod metrics;
pub mod pace;
pub mod payload;
pub mod verify;
