//! `rdkafka_mock.h`: a cluster inside the process, which is the embedded broker.
//!
//! ```text
//!  cluster ─ the cluster's life; test.mock.num.brokers; what passes, as lines of `debug=mock`
//!  errors ── the errors in the next responses;  requests ── which ones came
//!  topics ── topics, partitions, leaders;  brokers ── down and up, round trips, racks, coordinators, versions
//!  groups, share_groups ── who gets which partitions;  telemetry ── which metrics clients are asked for
//! ```
//!
//! # Pitfalls
//!
//! - A thread may wait for any time between reading two clocks. Read in the wrong order, requests of the mock cluster
//!   were in the future (`request_time_is_past_when_the_thread_waits_between_clocks`).
//! - The thread of the mock cluster logs in the client's name and must hold no lock of the cluster then: the log
//!   callback may ask the cluster something (`logs.c`).

mod brokers;
pub(crate) mod cluster;
mod errors;
mod groups;
mod of_client;
mod requests;
mod share_groups;
mod telemetry;
mod topics;

pub(crate) use errors::ottla_mock_push_errors;
