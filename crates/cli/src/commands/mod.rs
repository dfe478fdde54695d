//! The subcommands, one file each: its options, and what it does.

pub mod broker;
pub mod produce;
pub mod producer_perf_test;
pub mod properties;
