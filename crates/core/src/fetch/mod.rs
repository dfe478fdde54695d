//! The receive path: from an offset to records in the application's hands. The files, in the order of the path:
//!
//! ```text
//!  position ── where to start: an offset, or a question that the leader answers ([`offsets`])
//!  stored ──── what was committed for the group
//!  partition ─ one partition being fetched, owned by exactly one broker's owner; and its handle for the application
//!  epochs ──── whether a new leader has what was read (KIP-320)
//!  session ─── what the broker remembers of the last requests (KIP-227)
//!  request ─── one FetchRequest for all partitions of a broker
//!  decode ──── batches in the response's buffer: checked, decompressed, not copied
//!  isolation ─ batches of aborted transactions are left out
//!  queue ───── the way to the application: stale and paused records go no further
//!  deliver ─── records as views into the response's buffer
//! ```
//!
//! Two owners work here: [`fetcher::Fetcher`] is the receiving half of a [`BrokerCore`](crate::broker::BrokerCore),
//! [`coordinator::FetchCoordinator`] that of a [`ClusterCore`](crate::cluster::ClusterCore). The application's threads
//! meet them in [`shared::ConsumerShared`].

pub mod coordinator;
pub mod decode;
pub mod deliver;
mod epochs;
pub mod fetcher;
pub mod isolation;
pub mod offsets;
pub mod partition;
pub mod position;
pub mod queue;
pub mod request;
pub mod session;
pub mod shared;
pub mod stored;

#[cfg(test)]
mod scripted;

use std::sync::Arc;

use self::{
    offsets::{OffsetAnswers, OffsetQuery},
    partition::{PartitionConsumer, PartitionHandle},
    position::Offset,
    stored::GroupCall,
};
use crate::{completion::Completion, error::Error};

/// From the application to the cluster's owner.
#[derive(Debug)]
pub enum FetchCommand {
    /// Fetch these partitions from here on, wherever they were before.
    Start(Vec<Start>),
    /// Fetch these partitions no more.
    Stop(Vec<Arc<PartitionHandle>>),
    /// Ask the leaders for offsets.
    ListOffsets(OffsetQuery, Completion<OffsetAnswers>),
    /// Ask the group's coordinator.
    Group(GroupCall),
}

/// Where to start with a partition.
#[derive(Debug)]
pub struct Start {
    /// The partition.
    pub handle: Arc<PartitionHandle>,
    /// The handle's version since this was wished.
    pub version: u64,
    /// Where to start.
    pub from: Offset,
    /// Told the offset when it is known, or why there is none.
    pub done: Option<Completion<Result<i64, Error>>>,
}

/// From the cluster's owner to a broker's.
#[derive(Debug)]
pub enum FetchMail {
    /// You lead this partition: fetch it.
    Adopt(Box<PartitionConsumer>),
    /// Give this partition back at once; what is in flight of it is forgotten.
    Release {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
    },
}

/// From a broker's owner to the cluster's.
#[derive(Debug)]
pub enum FetchReply {
    /// The partition that was to be given back.
    Released(Box<PartitionConsumer>),
    /// The broker says that it does not lead this partition.
    NotLeader(Box<PartitionConsumer>),
    /// The broker does not know the leader epoch under which it was asked for this partition.
    UnknownEpoch(Box<PartitionConsumer>),
    /// The partition has no such offset.
    OutOfRange(Box<PartitionConsumer>),
    /// The partition's log is another one than what was read of it: this epoch ended at this offset.
    Diverged(Box<PartitionConsumer>, i32, i64),
    /// This node is closer and has the partition too (KIP-392).
    ReadFrom(Box<PartitionConsumer>, i32),
}
