//! The send path, in the order in which a record takes it.
//!
//! ```text
//!  app thread           any app thread                 broker's owner
//!  shared::send ──► partitioner ──► accumulator ══ready══► collector ──► request ──► connection ──► socket
//!    budget          which           encode into            linger        N partitions                 │
//!                    partition       the open batch         oldest first  1 request                    ▼
//!  callback / future ◄── report ◄── ack ◄────────────────────────────────────────────────────────── answer
//! ```
//!
//! Read [`record`], [`shared`], [`topic_settings`], [`partitioner`], [`accumulator`], [`ready`], [`batch`], [`partition`],
//! [`producer_id`], [`collector`] (its order is in `due_queue`), [`request`], [`sender`], [`ack`], [`report`]. What a
//! batch's records are owed however it ends is in [`owed`], and [`order`] is for topics that don't send what came first first.

pub mod accumulator;
pub mod ack;
pub mod adaptive;
pub mod batch;
pub mod budget;
pub mod collector;
mod due_queue;
pub mod order;
pub mod owed;
pub mod partition;
pub mod partitioner;
pub mod producer_id;
pub mod ready;
pub mod record;
pub mod report;
pub mod request;
#[cfg(test)]
mod scripted;
pub mod sender;
pub mod shared;
#[cfg(not(ottla_loom))]
mod short_lock;
/// In models any lock: one that spins out of loom's sight would never see the other thread go on.
#[cfg(ottla_loom)]
mod short_lock {
    pub(super) use loom::sync::MutexGuard as ShortGuard;

    pub(super) use crate::sync::Mutex as ShortLock;
}
pub mod topic;
pub mod topic_settings;
