//! The consumer as a member of a group: subscriptions, rebalances, closing, and the group metadata of transactions.
//!
//! | file | content |
//! |---|---|
//! | [`state`] | the client's part of the membership |
//! | [`subscribe`] | `rd_kafka_subscribe` and the functions that read the membership |
//! | [`rebalance`] | notifications of the group: rebalances, commits, errors |
//! | [`assign`] | the assign functions, which respond to a rebalance |
//! | [`close`] | `rd_kafka_consumer_close` and its siblings |
//! | [`metadata`] | `rd_kafka_consumer_group_metadata_t` |
//!
//! `ottla_core::group` defines the behaviour. A rebalance for the application is an entry of the consumer's queue; the
//! assign functions change the assignment at once, and let the group continue.
//!
//! # Pitfalls
//!
//! - The rebalance callback may call any function, even the one that closes the consumer: it runs without a lock, and
//!   no thread waits for it. A callback that closes the consumer thereby responds to the rebalance (`group_member.c`).

pub(crate) mod assign;
pub(crate) mod close;
pub(crate) mod metadata;
pub(crate) mod rebalance;
pub(crate) mod state;
pub(crate) mod subscribe;
