//! The subcommands, one file each: its options, and what it does.

pub mod broker;
pub mod consume;
mod consume_group;
pub mod consumer_perf_test;
pub mod doctor;
pub mod groups;
mod listeners;
pub mod metadata;
pub mod offsets;
pub mod produce;
pub mod producer_perf_test;
pub mod properties;
pub mod rdkafka_performance;
mod sasl;
mod self_signed;
mod table;
pub mod topics;
pub mod transactions;
