//! Admin calls, and the events that return their results.
//!
//! ```text
//!  call ───── a call in progress: a future of `ottla::Admin` that ends as an event;  options
//!  topics ─── create, delete, more partitions;  offsets ── list offsets;  records ── delete them
//!  cluster ── describe the cluster and its topics;  configs ── describe and change configurations
//!  groups ─── list and describe;  group_offsets ── delete groups, committed offsets;  group_list ── the older list
//!  ottla ──── `rdkafka_ottla.h`: calls that librdkafka does not have
//!  acls ───── access control lists;  users ── SCRAM credentials;  elections ── leaders
//! ```
//!
//! A call copies its arguments before it returns. The objects of an event live as long as the event.

mod acls;
mod call;
mod cluster;
mod configs;
mod elections;
mod group_list;
mod group_offsets;
mod groups;
pub(crate) mod names;
mod offsets;
mod options;
pub(crate) mod ottla;
mod records;
mod results;
mod topics;
mod users;
pub(crate) mod uuid;
