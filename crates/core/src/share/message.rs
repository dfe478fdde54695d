//! The messages about share partitions between the cluster actor and the broker actors.

use std::sync::Arc;

use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{NodeId, TopicPartition},
};

use crate::{contract::half::HalfOutput, fetch::partition::PartitionHandle};

/// From the cluster actor to a broker actor.
#[derive(Debug)]
pub enum ShareMessage {
    /// Fetch from this partition, which the broker leads.
    Adopt {
        /// The node, as reports name it.
        node: NodeId,
        /// The member ID.
        member: Arc<str>,
        /// The partition.
        handle: Arc<PartitionHandle>,
        /// The topic's ID.
        topic_id: Uuid,
    },
    /// Stop fetching from the partition, because it is no longer assigned. Its acquired records stay acquired.
    Forget(TopicPartition),
    /// Stop fetching from the partition, because another broker leads it. Its acquired records are lost.
    LeaderMoved(TopicPartition),
    /// Send the acknowledgements so far, end the session, and report [`ShareReport::Ended`].
    End(NodeId),
}

/// From a broker actor to the cluster actor.
#[derive(Debug, PartialEq, Eq)]
pub enum ShareReport {
    /// The session ended as the cluster actor asked.
    Ended(NodeId),
    /// The broker actor has ended, or does so: it has none of the partitions any more.
    Gone(NodeId),
}

impl From<ShareReport> for HalfOutput<ShareReport> {
    fn from(report: ShareReport) -> Self {
        Self::Report(report)
    }
}
