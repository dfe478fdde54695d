//! The messages of the producing half, between the cluster actor and the broker actors.

use ottla_protocol::vocabulary::TopicPartition;

use super::{partition::PartitionProducer, producer_id::ProducerIdentity};
use crate::{
    contract::{half::HalfOutput, purge::Purge},
    error::Error,
};

/// A message from the cluster actor to a broker actor.
#[derive(Debug)]
pub enum ProduceMessage {
    /// You lead this partition: send its records.
    Adopt(Box<PartitionProducer>),
    /// You no longer lead this partition: return it when nothing of it is in flight.
    Release(TopicPartition),
    /// The application paused this partition: send no more of it, and return it when nothing of it is in flight.
    Pause(TopicPartition),
    /// Check which records are due: an application flushes, or the producer ID became known.
    Flush,
    /// Purge messages.
    Purge(Purge),
}

/// A message from a broker actor to the cluster actor.
#[derive(Debug)]
pub enum ProduceReport {
    /// A released partition, with its unsent records.
    Released(Box<PartitionProducer>),
    /// A partition can no longer use this producer ID and epoch.
    RenewIdentity(ProducerIdentity),
    /// The producer can't continue.
    Fatal(Error),
    /// The metadata refresh left a topic out, which has a message again.
    EndIdle,
    /// There is news for the transactional producer, in the state that it shares with senders.
    Transaction,
}

impl From<ProduceReport> for HalfOutput<ProduceReport> {
    fn from(report: ProduceReport) -> Self {
        Self::Report(report)
    }
}
