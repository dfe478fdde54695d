//! The commands of the application's calls.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{uuid::Uuid, vocabulary::Generation};
use ottla_sorted::SortedMap;

use crate::{
    completion::Completion, offsets::committed::GroupOffset, produce::transaction::error::TransactionResult,
};

/// A command of the application to the part of the cluster actor.
#[derive(Debug)]
pub enum TransactionCommand {
    /// Obtain the producer ID.
    Init(Completion<TransactionResult>),
    /// Begin a transaction.
    Begin(Completion<TransactionResult>),
    /// Begin a transaction, unless the begin that timed out has done that.
    ContinueBegin(Completion<TransactionResult>),
    /// Add offsets to the transaction.
    SendOffsets(TransactionOffsets, Completion<TransactionResult>),
    /// Accept no more messages, and commit when all have been reported.
    Commit(Completion<TransactionResult>),
    /// Accept no more messages, purge the queue, and abort when all messages have been reported.
    Abort(Completion<TransactionResult>),
    /// The application has seen the result of the last call.
    Acknowledge,
}

/// Offsets that become visible to the group when the transaction is committed.
#[derive(Clone, Debug)]
pub struct TransactionOffsets {
    /// The offset of the next record to read of each partition.
    pub offsets: Vec<GroupOffset>,
    /// The group, and the identity of its member.
    pub group: ConsumerGroupMetadata,
    /// The maximum duration of the call.
    pub timeout: Duration,
}

impl TransactionOffsets {
    /// Returns the IDs of the topics, by name, as far as they are known: those of the offsets, or else those that the
    /// consumer knew when its metadata were taken.
    pub(super) fn topic_ids(&self) -> SortedMap<Arc<str>, Uuid> {
        let id_of = |offset: &GroupOffset| {
            let id = offset.topic_id.or_else(|| self.group.topic_ids.get(&offset.topic).copied())?;
            Some((Arc::clone(&offset.topic), id))
        };
        self.offsets.iter().filter_map(id_of).collect()
    }
}

/// The identity of a group's member. The coordinator refuses the offsets of a member that was replaced since (KIP-447).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroupMetadata {
    /// `group.id`.
    pub group_id: String,
    /// The generation or member epoch. Without one, no member is fenced.
    pub generation: Option<Generation>,
    /// The member ID; empty without one.
    pub member_id: String,
    /// `group.instance.id`.
    pub instance_id: Option<String>,
    /// The IDs of the topics that the consumer knows, by name. If they include all topics of the offsets, a coordinator since
    /// Kafka 4.4 gets IDs instead of names, and refuses the offsets of a topic that was recreated (KIP-1319).
    pub topic_ids: Arc<SortedMap<Arc<str>, Uuid>>,
}
