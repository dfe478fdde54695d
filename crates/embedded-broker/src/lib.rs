//! An embedded Kafka cluster for first runs, tests and mocks.
//!
//! [`Cluster`] is a machine without I/O: bytes, time and commands go in, bytes come out, and the same inputs always give
//! the same outputs. [`EmbeddedCluster`] puts it behind TCP listeners on a thread of its own.
//!
//! `inbox` splits the received bytes into frames. `cluster` dispatches each request to its file in `api/`, which uses
//! `topics` (leaders), `log` (record batches) and `producer_state` (sequence numbers), and responds with a `frame`.
//! Groups are in `groups`, transactions in `transactions`, share groups in `share_groups` (members) and `share_partitions` (records). Tests use
//! `control` and `faults`. `tls` encrypts the connections of a listener, with certificates of `self_signed` in tests; `sasl` authenticates their clients, and `acls` with `access` decides what they may do. `telemetry` has the clients' metrics (KIP-714), which `otlp` decodes.
//! `validation` checks produced records, `retention` and `compaction` clean logs up, `quotas` makes clients wait, and `changes` lists what
//! clients change.

#![forbid(unsafe_code)]

mod access;
mod acls;
mod administration;
mod api;
mod appending;
mod batch;
mod changes;
mod cluster;
mod compaction;
mod connection;
mod control;
mod controllers;
mod event_loop;
mod faults;
mod frame;
mod groups;
mod identity;
mod inbox;
mod listeners;
mod log;
mod message_sets;
mod options;
mod otlp;
mod outages;
mod principal;
mod principal_mapping;
mod producer_state;
mod provisioning;
mod quotas;
mod random;
mod releases;
mod retention;
mod rewriting;
mod sasl;
mod scram_users;
mod self_signed;
mod server;
mod share_groups;
mod share_partitions;
mod share_progress;
mod socket;
mod streams_progress;
mod telemetry;
mod timers;
mod tls;
mod topics;
mod transactions;
mod validation;

pub use acls::{Acl, AclOperation, Authorizer, PatternType, Permission, ResourceType};
pub use changes::{Change, ChangedRecord, ConfiguredResource};
pub use cluster::{Cluster, Output, RequestRecord, Traffic};
pub use connection::ConnectionId;
pub use control::{Control, CoordinatorKey, PartitionState, Tail};
pub use faults::{Fault, FaultAction, ScriptScope, ScriptStep};
pub use frame::Frame;
pub use groups::Assignor;
pub use listeners::{Listener, ListenerId};
pub use options::{BrokerId, ClusterOptions, IsolationLevel, ShareGroupOptions, ShareOffsetReset};
pub use otlp::{MetricKind, MetricPoint};
/// Types of the protocol that [`Control`] uses.
pub use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
pub use principal_mapping::PrincipalMapping;
pub use releases::BrokerRelease;
pub use sasl::{SaslListener, SaslMechanism, ScramHash};
pub use self_signed::{TestAuthority, TestCertificate};
pub use server::{EmbeddedCluster, Watcher};
pub use share_progress::ShareProgress;
pub use streams_progress::{StreamsDescriptionProgress, StreamsMemberProgress, StreamsProgress};
pub use telemetry::{ClientTelemetry, Telemetry, TelemetryPush};
pub use tls::{ClientAuthentication, TlsListener};
pub use transactions::TransactionDescription;

/// The README's examples are compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
