//! The messages of the consuming half, between the cluster actor and the broker actors.

use ottla_protocol::vocabulary::{LeaderEpoch, NodeId, TopicPartition};

use super::partition::PartitionConsumer;
use crate::contract::half::HalfOutput;

/// From the cluster actor to a broker actor.
#[derive(Debug)]
pub enum FetchMessage {
    /// Fetch this partition, which the broker leads or has a replica of.
    Adopt(Box<PartitionConsumer>),
    /// Give this partition back at once, and drop responses for it that are in flight.
    Release(TopicPartition),
}

/// From a broker actor to the cluster actor.
#[derive(Debug)]
pub enum FetchReport {
    /// The partition is given back as the manager asked.
    Released(Box<PartitionConsumer>),
    /// The broker responded that it does not lead this partition.
    NotLeader(Box<PartitionConsumer>),
    /// The broker does not know the leader epoch under which this partition was fetched.
    UnknownEpoch(Box<PartitionConsumer>),
    /// The partition has no such offset.
    OutOfRange(Box<PartitionConsumer>),
    /// The partition's log differs from the records that were read: this epoch ended at this offset.
    Diverged(Box<PartitionConsumer>, LeaderEpoch, i64),
    /// This node is closer and has the partition too (KIP-392).
    ReadFrom(Box<PartitionConsumer>, NodeId),
}

impl From<FetchReport> for HalfOutput<FetchReport> {
    fn from(report: FetchReport) -> Self {
        Self::Report(report)
    }
}
