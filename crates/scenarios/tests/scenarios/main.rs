//! Behaviours of the client, one file per subject. See the crate's documentation for how they are run.

mod admin;
mod back_pressure;
mod bad_input;
mod brokers;
mod consume;
mod consumer_groups;
mod delivery;
mod failures;
mod partition_life;
mod produce;
mod statistics;
mod threads;
