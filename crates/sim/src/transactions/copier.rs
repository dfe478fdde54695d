//! The consuming half of an application that copies: a member of a group whose offsets are part of its transactions.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    error::Error,
    fetch::{deliver::Records, partition::PartitionHandle, position::Offset, shared::ConsumerShared},
    group::{
        GroupCommand,
        rebalance::RebalanceAnswer,
        shared::{Answers, GroupShared, GroupSink, RebalanceEvent, RebalanceKind},
    },
    machine::Instant,
    offsets::committed::{CommitResult, GroupOffset},
    txn::command::{ConsumerGroupMetadata, TransactionOffsets},
};
use ottla_sorted::SortedMap;

/// A member of the group.
#[derive(Debug)]
pub(super) struct Copier {
    pub(super) shared: Arc<ConsumerShared>,
    group: Arc<GroupShared>,
    inbox: Arc<Inbox>,
    instance: Option<String>,
    /// A change of the assignment to which the application has not responded.
    question: Option<RebalanceEvent>,
    /// The records of the open transaction.
    taken: Vec<Records>,
    /// The first record of each partition in the open transaction.
    first: SortedMap<i32, (Arc<PartitionHandle>, i64)>,
}

/// Notifications of the group for the application.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<VecDeque<RebalanceEvent>>);

impl GroupSink for Inbox {
    fn answers(&self) -> Answers {
        Answers::Application
    }

    fn rebalance(&self, event: RebalanceEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
    }

    fn committed(&self, _: &[GroupOffset], _: &CommitResult) {}

    fn error(&self, _: Error) {}

    fn poll_overdue(&self, _: Duration, _: Duration) {}
}

impl Copier {
    pub(super) fn new(
        shared: Arc<ConsumerShared>,
        group: Arc<GroupShared>,
        inbox: Arc<Inbox>,
        instance: Option<String>,
    ) -> Self {
        Self { shared, group, inbox, instance, question: None, taken: Vec::new(), first: SortedMap::new() }
    }

    /// Polls: takes the next change of the assignment, unless one is unanswered.
    pub(super) fn poll(&mut self, now: Instant, commands: &CommandQueue) {
        if self.group.note_poll(now) {
            commands.push(Command::Group(GroupCommand::Polled));
        }
        if self.question.is_none() {
            self.question = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        }
    }

    /// Returns the change of the assignment to which the application has to respond.
    pub(super) fn question(&self) -> Option<RebalanceKind> {
        self.question.as_ref().map(|question| question.kind)
    }

    /// Accepts the change of the assignment.
    pub(super) fn answer(&mut self, commands: &CommandQueue) {
        if let Some(question) = self.question.take() {
            let answer = RebalanceAnswer::Accepted(question.number, Vec::new());
            commands.push(Command::Group(GroupCommand::Answer(answer)));
        }
    }

    /// Takes records for the open transaction, and hands each to `copy`.
    pub(super) fn take(&mut self, bytes: usize, mut copy: impl FnMut(i32, i64)) {
        let mut records = Records::default();
        self.shared.queue.take(bytes, &mut records);
        for message in &records {
            let partition = message.partition();
            if let Ok(handle) = self.shared.partition(message.topic(), partition) {
                self.first.entry(partition).or_insert((handle, message.offset()));
            }
            copy(partition, message.offset());
        }
        if !records.is_empty() {
            self.taken.push(records);
        }
    }

    /// Returns the offsets after the records of the transaction; `None` if a partition was revoked meanwhile.
    pub(super) fn offsets(&self) -> Option<TransactionOffsets> {
        let mut offsets = SortedMap::new();
        for records in &self.taken {
            for (key, offset) in self.shared.offsets_after(records) {
                offsets.insert(key, offset.ok()?);
            }
        }
        let view = self.group.view();
        let (member_id, generation) = view.for_offsets();
        let group = ConsumerGroupMetadata {
            group_id: super::GROUP.to_owned(),
            generation,
            member_id: member_id.to_owned(),
            instance_id: self.instance.clone(),
            topic_ids: self.shared.topic_ids(),
        };
        let offsets = offsets.into_values().collect();
        Some(TransactionOffsets { offsets, group, timeout: Duration::ZERO })
    }

    /// Ends the transaction. If it was not committed, its records are read again.
    pub(super) fn end(&mut self, is_committed: bool, commands: &CommandQueue) {
        self.taken.clear();
        for (partition, (handle, offset)) in std::mem::take(&mut self.first) {
            let known = self.shared.partition(handle.topic(), partition);
            if is_committed || !known.is_ok_and(|known| Arc::ptr_eq(&known, &handle)) {
                continue;
            }
            if let Ok(command) = self.shared.seek(handle.topic(), partition, Offset::At(offset), None) {
                commands.push(Command::Fetch(command));
            }
        }
    }
}
