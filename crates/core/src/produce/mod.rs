//! The send path, in the order in which a record takes it.
//!
//! ```text
//!  app thread           any app thread                 broker's owner
//!  send         ──► partitioner ──► accumulator ══ready══► collector ──► request ──► connection ──► socket
//!    budget          which           encode into            linger        N partitions                 │
//!                    partition       the open batch         oldest first  1 request                    ▼
//!  callback / future ◄── report ◄── ack ◄──────────────────────────────────────────────────────── response
//! ```
//!
//! Read [`record`], [`send`], [`shared`], [`settings`], [`topic_settings`], [`partitioner`], [`accumulator`], [`ready`], [`batch`], [`partition`],
//! [`compression`], [`producer_id`], [`collector`] (its order is in `due_queue`), [`request`], [`sender`], [`ack`], [`report`]. The
//! reports that a batch's records still need, however it ends, are in [`pending_reports`]. [`order`] is for topics that send
//! records in another order than that of the calls.

pub mod accumulator;
pub mod ack;
pub mod acks;
pub mod adaptive;
pub mod batch;
pub mod budget;
pub mod collector;
pub mod compression;
mod due_queue;
pub mod message;
pub mod order;
pub mod outgoing;
pub mod partition;
pub mod partitioner;
pub mod pending_reports;
pub(crate) mod placement;
pub mod producer_id;
pub mod ready;
pub mod record;
pub mod report;
pub mod request;
#[cfg(test)]
mod scripted;
pub mod send;
pub mod sender;
mod sequence;
pub mod settings;
pub mod shared;
#[cfg(not(ottla_loom))]
mod short_lock;
/// In loom models this is an ordinary lock: loom does not see the other threads' progress while one spins.
#[cfg(ottla_loom)]
mod short_lock {
    pub(super) use loom::sync::MutexGuard as ShortGuard;

    pub(super) use crate::sync::Mutex as ShortLock;

    impl<T> ShortLock<T> {
        pub(super) fn lock_to_send(&self) -> ShortGuard<'_, T> {
            self.lock()
        }
    }
}
pub mod topic;
pub mod topic_settings;
pub mod transaction;
