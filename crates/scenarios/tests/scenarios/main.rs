//! Scenarios of the client's behaviour, one file per subject. The crate's documentation says how they run.

mod admin;
mod assignors;
mod back_pressure;
mod bad_input;
mod bad_subscriptions;
mod brokers;
mod committed_offsets;
mod consume;
mod consumer_groups;
mod delivery;
mod failures;
mod groups;
mod oidc;
mod partition_life;
mod processing;
mod produce;
mod sasl;
mod share_groups;
mod statistics;
mod subscribe;
mod telemetry;
mod threads;
mod tls;
mod transactional_producer;
mod transactions;
