//! What a client counted, as one snapshot: for the application, for `statistics.interval.ms`, for Prometheus.
//!
//! ```text
//!  connection, sender, fetcher ── plain counters, each owned by its machine
//!               │
//!             gather ── the cluster's owner asks, every broker's owner adds its part; the last one completes it
//!               │
//!           snapshot ── [`Statistics`]
//!               │
//!             table ─── one row per field ──► json, prometheus, STATISTICS.md
//! ```
//!
//! Nothing is counted for a record that would not be counted anyway: only batches and requests are.

pub mod gather;
mod json;
mod markdown;
mod prometheus;
pub mod snapshot;
pub mod table;
pub mod window;

pub use gather::{Gather, StatisticsSink};
pub use markdown::markdown;
pub use snapshot::{
    BrokerStatistics, CollectorStatistics, EosStatistics, GroupStatistics, PartitionStatistics, Statistics,
    TopicStatistics,
};
pub use window::Window;
