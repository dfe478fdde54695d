//! The events that are delivered between the records.

use std::{fmt, sync::Arc};

use super::super::{assignment::AssignmentVersion, partition::PartitionHandle};
use crate::{
    config::OffsetReset,
    error::Error,
    event::{ClusterChange, CredentialsEvent, PollOverdue, RecreatedTopic},
};

/// An event about a partition or about the client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConsumerEvent {
    /// The position reached the end of the partition (`enable.partition.eof`).
    EndOfPartition {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset that the next record will get.
        offset: i64,
        /// The leader epoch of the last record before the position, or else of the leader, if known.
        leader_epoch: Option<i32>,
        /// The node ID of the broker that reported the end, if known.
        broker_id: Option<i32>,
    },
    /// A new leader truncated the partition's log below the position (KIP-320). The records from `divergence` on no
    /// longer exist; the consumer continues with the records that replaced them.
    LogTruncated {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The position of the application.
        position: i64,
        /// The first offset at which the log differs from the records that were read; `None` if the leader does not
        /// know it: the consumer then applies `auto.offset.reset`.
        divergence: Option<i64>,
    },
    /// The leader does not have the offset, and the consumer applies `auto.offset.reset`: records may be skipped or
    /// delivered again.
    OffsetReset {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset that the consumer tried to fetch.
        offset: i64,
        /// The position at which the consumer continues.
        to: OffsetReset,
    },
    /// A topic was deleted and recreated with the same name; `topic.recreate.policy` determines where the consumer
    /// continues. No record of the old topic is delivered after this event.
    TopicRecreated(RecreatedTopic),
    /// A broker belongs to another cluster than the brokers before it.
    ClusterChanged(ClusterChange),
    /// The application has not polled for most of `max.poll.interval.ms`.
    PollOverdue(PollOverdue),
    /// Files of certificates or keys have changed, or the client's certificate expires soon.
    Credentials(CredentialsEvent),
    /// An error. The consumer continues by itself unless the error demands otherwise.
    Error(Error),
}

/// Formats the event as a sentence.
impl fmt::Display for ConsumerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfPartition { topic, partition, offset, .. } => {
                write!(f, "end of {topic} [{partition}] at offset {offset}")
            }
            Self::LogTruncated { topic, partition, position, divergence } => {
                write!(
                    f,
                    "{topic} [{partition}]: the log was cut off: it was read up to offset {position}, and "
                )?;
                match divergence {
                    Some(offset) => write!(f, "the records from offset {offset} on are gone"),
                    None => write!(f, "the records from an unknown one on are gone"),
                }
            }
            Self::OffsetReset { topic, partition, offset, to } => {
                let to = match to {
                    OffsetReset::Beginning => "the beginning",
                    OffsetReset::End => "the end",
                    OffsetReset::Since(_) => "the time of auto.offset.reset",
                    OffsetReset::Error => "where the application says",
                };
                write!(
                    f,
                    "{topic} [{partition}]: there is no offset {offset}; it goes on at {to} (auto.offset.reset)"
                )
            }
            Self::TopicRecreated(RecreatedTopic { name, .. }) => {
                write!(
                    f,
                    "{name}: the topic was deleted and recreated (topic.recreate.policy selects the reaction)"
                )
            }
            Self::ClusterChanged(change) => change.fmt(f),
            Self::PollOverdue(overdue) => overdue.fmt(f),
            Self::Credentials(news) => news.fmt(f),
            Self::Error(error) => error.fmt(f),
        }
    }
}

/// A partition, and the version of the assignment that the event belongs to.
pub(super) type EventSource = (Arc<PartitionHandle>, AssignmentVersion);
