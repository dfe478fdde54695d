//! The receive path: from an offset to records in the application's hands. The files, in the order of the path:
//!
//! ```text
//!  position ── where to start: an offset, or a query to the leader ([`offsets`])
//!  committed ─ the group's committed offsets
//!  assignment  the version of an assignment, which everything that belongs to it carries
//!  partition ─ one partition being fetched, which exactly one actor has; and its handle for the application
//!  epochs ──── whether a new leader has the records that were read (KIP-320)
//!  session ─── the fetch session: the broker remembers the last requests (KIP-227)
//!  request ─── one FetchRequest for all partitions of a broker
//!  decode ──── batches in the response's buffer: checked, decompressed, not copied
//!  isolation ─ batches of aborted transactions are left out
//!  queue ───── the way to the application: stale and paused records go no further
//!  deliver ─── records as views into the response's buffer
//! ```
//!
//! Two actors work here: [`fetcher::Fetcher`] is the receiving half of a [`BrokerCore`](crate::broker::BrokerCore),
//! [`manager::FetchManager`] the consumer's part of a [`ClusterCore`](crate::cluster::ClusterCore). The application's
//! threads meet them in [`shared::ConsumerShared`].

pub mod assignment;
mod ceiling;
pub mod completions;
pub mod decode;
pub mod deliver;
pub(crate) mod epochs;
mod evict;
pub mod fetcher;
pub mod isolation;
pub mod manager;
mod memory;
pub mod message;
pub mod partition;
pub mod position;
pub mod queue;
pub mod request;
pub mod retries;
pub mod session;
pub mod settings;
pub mod shared;

#[cfg(test)]
mod scripted;

use std::sync::Arc;

use ottla_protocol::vocabulary::{LeaderEpoch, TopicPartition};
use ottla_sorted::SortedMap;

use self::{assignment::AssignmentVersion, partition::PartitionHandle, position::Offset};
use crate::{
    completion::Completion,
    error::Error,
    offsets::{
        committed::{Committer, GroupCall},
        list_offsets::{OffsetQuery, OffsetResults},
    },
};

/// A command of the application for the cluster actor.
#[derive(Debug)]
pub enum FetchCommand {
    /// Fetch these partitions from the given positions, whatever their current positions are.
    Start(Vec<Start>),
    /// Stop fetching these partitions.
    Stop(Vec<Arc<PartitionHandle>>),
    /// Request the metadata of a topic that the application will use, which may create the topic.
    Topic(Arc<str>),
    /// Query the leaders for offsets.
    ListOffsets(OffsetQuery, Completion<OffsetResults>),
    /// Send a request to the group's coordinator.
    Group(GroupCall),
    /// Commit as this member from now on, or as none.
    CommitAs(Committer),
}

/// The position from which to start a partition.
#[derive(Debug)]
pub struct Start {
    /// The partition.
    pub handle: Arc<PartitionHandle>,
    /// The version of this assignment.
    pub version: AssignmentVersion,
    /// The position to start from.
    pub from: Offset,
    /// The leader epoch in which the record before `from` was written, if the application knows it. The leader is asked
    /// whether it still has that record.
    pub epoch: Option<LeaderEpoch>,
    /// Completes with the offset, or with the error of the search for it.
    pub done: Option<Completion<Result<i64, Error>>>,
}

/// The leader epochs in which the records before start positions were written, as far as the application knows them.
pub type KnownEpochs = SortedMap<TopicPartition, LeaderEpoch>;

impl FetchCommand {
    /// Adds what the application knows of the epochs of start positions.
    #[must_use]
    pub fn with_epochs(mut self, epochs: &KnownEpochs) -> Self {
        if let Self::Start(starts) = &mut self {
            for start in starts {
                start.epoch = epochs.get(start.handle.key()).copied();
            }
        }
        self
    }
}
