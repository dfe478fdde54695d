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
//! - A thread may be suspended for any time between reading two clocks. When they were read in the wrong order, request
//!   times of the mock cluster lay in the future (`request_time_is_past_when_the_thread_waits_between_clocks`).
//! - The thread of the mock cluster logs in the client's name and must not hold a lock of the cluster meanwhile: the
//!   log callback may call functions of the cluster (`logs.c`).

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
