//! The consumer as a member of a group: subscriptions, rebalances, closing, and the group metadata of transactions.
//!
//! | file | content |
//! |---|---|
//! | [`state`] | what the client keeps of the membership |
//! | [`subscribe`] | `rd_kafka_subscribe` and the functions that read the membership |
//! | [`rebalance`] | what the group reports: rebalances, commits, errors |
//! | [`assign`] | the assign functions, which answer a rebalance |
//! | [`close`] | `rd_kafka_consumer_close` and its siblings |
//! | [`metadata`] | `rd_kafka_consumer_group_metadata_t` |
//!
//! `ottla_core::group` has the behaviour. A rebalance that the application answers is an entry of the consumer's queue; the
//! assign functions change the assignment at once, and tell the group that it may go on.
//!
//! # Pitfalls
//!
//! - The rebalance callback may call any function, the one that closes the consumer included: it runs without a lock, and
//!   the group does not wait for it in any thread. A callback that closes the consumer answers with that
//!   (`group_member.c`).

pub(crate) mod assign;
pub(crate) mod close;
pub(crate) mod metadata;
pub(crate) mod rebalance;
pub(crate) mod state;
pub(crate) mod subscribe;
