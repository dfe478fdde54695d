//! The subcommands, one file each: its options, and what it does.

pub mod acls;
mod admin_command;
pub mod broker;
pub mod check;
pub mod configs;
pub mod consume;
pub mod consumer_perf_test;
pub mod copy;
pub mod delegation_tokens;
mod delete_records;
pub mod doctor;
pub mod elect_leaders;
pub mod features;
pub mod groups;
pub mod help;
mod listeners;
pub mod log_dirs;
pub mod metadata;
pub mod offsets;
pub mod produce;
pub mod producer_perf_test;
pub mod profile;
pub mod properties;
pub mod quorum;
pub mod quotas;
pub mod rdkafka_performance;
pub mod reassign;
pub mod report;
mod sasl;
#[cfg(feature = "schemas")]
pub mod schema;
#[cfg(feature = "schemas")]
mod schema_registry;
mod self_signed;
pub mod share_groups;
pub mod streams_groups;
pub mod table;
pub mod top;
pub mod topics;
pub mod transactions;
mod typed_groups;
pub mod users;

#[cfg(feature = "schemas")]
pub use admin_command::pair;
