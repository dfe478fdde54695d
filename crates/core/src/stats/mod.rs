//! The statistics of a client as one snapshot: for the application, for `statistics.interval.ms`, for Prometheus.
//!
//! ```text
//!  connection, sender, fetcher ── plain counters, each owned by its machine
//!               │
//!             gather ── the cluster actor asks, every broker actor adds its part; the last one completes it
//!               │
//!           snapshot ── [`Statistics`]
//!               │
//!             table ─── one row per field ──► json, prometheus, STATISTICS.md
//!               │
//!            metrics ── one row per metric of the Java client, computed from fields ──► pushes, docs/guide/telemetry.md
//! ```
//!
//! Counters are updated per batch and per request, never per record.

pub mod gather;
pub mod idle;
mod json;
mod markdown;
pub mod metrics;
mod prometheus;
mod purpose;
pub(crate) mod requests;
mod send_reason;
#[cfg(feature = "serde")]
mod serde;
pub mod snapshot;
pub mod table;
pub mod window;

pub use gather::{BrokerEntryKind, Gather, StatisticsSink};
pub use markdown::markdown;
pub use purpose::Purpose;
pub use send_reason::SendReason;
pub use snapshot::{
    BrokerStatistics, CollectorStatistics, ConsumerStatistics, EosStatistics, GroupStatistics,
    PartitionStatistics, Statistics, TopicStatistics,
};
pub use window::{Summary, Window};
