//! Share consumers (KIP-932): `rd_kafka_share_t`, a handle of its own over a client that the application does not see.
//!
//! | file | content |
//! |---|---|
//! | [`access`] | one thread at a time, and none from inside the acknowledgement callback |
//! | [`handle`] | the object behind `rd_kafka_share_t` |
//! | [`refusals`], [`create`] | properties that share consumers do not have, and the creation |
//! | [`subscribe`], [`poll`], [`messages`] | topics, and the messages of a poll |
//! | [`acknowledge`], [`commit`] | verdicts on messages, and sending them |
//! | [`outcomes`] | the acknowledgement commit callback, and the offsets that it gets |
//! | [`close`] | leaving the group, and the end of the handle |
//! | [`of_client`] | functions that a client has, too: logs, SASL |
//!
//! The core's share consumer does the work. In implicit mode this module accepts the messages of the last poll in the next
//! call; the core itself only knows verdicts.

mod access;
mod acknowledge;
mod close;
mod commit;
mod create;
mod handle;
mod messages;
mod of_client;
mod outcomes;
mod poll;
mod refusals;
mod subscribe;
