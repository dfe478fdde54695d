//! A Kafka cluster inside a process, for first runs, tests and mocks.
//!
//! [`Cluster`] is a machine without I/O: bytes, time and commands go in, bytes come out, and the same inputs always give
//! the same outputs. [`EmbeddedCluster`] puts it behind TCP listeners on a thread of its own.
//!
//! A request comes in through `inbox` (bytes to frames), is given to the right file of `api/` by `cluster`, which works
//! on `topics` (who leads), `log` (record batches) and `producer_state` (sequence numbers), and goes out as a `frame`.
//! Groups are in `groups`, share groups in `share_groups` (members) and `share_partitions` (records).
//! `control` and `faults` are what a test does to it. `telemetry` has the clients' metrics (KIP-714), which `otlp` reads.

#![forbid(unsafe_code)]

mod api;
mod appending;
mod batch;
mod cluster;
mod connection;
mod control;
mod faults;
mod frame;
mod groups;
mod inbox;
mod log;
mod message_sets;
mod options;
mod otlp;
mod producer_state;
mod provisioning;
mod random;
mod releases;
mod server;
mod share_groups;
mod share_partitions;
mod telemetry;
mod timers;
mod topics;

pub use cluster::{Cluster, Output, RequestRecord, Traffic};
pub use connection::ConnectionId;
pub use control::{Control, CoordinatorKey, PartitionState, Tail};
pub use faults::{Fault, FaultAction, ScriptScope, ScriptStep};
pub use frame::Frame;
pub use options::{BrokerId, ClusterOptions, IsolationLevel, ShareGroupOptions, ShareOffsetReset};
pub use otlp::{MetricKind, MetricPoint};
/// The protocol's own words, for [`Control`].
pub use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
pub use releases::BrokerRelease;
pub use server::{EmbeddedCluster, Watcher};
pub use telemetry::{ClientTelemetry, Telemetry, TelemetryPush};
