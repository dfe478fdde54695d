//! Access for the C library, which uses the core itself.

use std::sync::Arc;

use ottla_core::{
    cluster::command::Command,
    error::Result,
    event::EventQueue,
    fetch::{FetchCommand, KnownEpochs, position::Offset, shared::ConsumerShared},
    group::{GroupCommand, SubscribedTopics, shared::GroupShared},
};
use ottla_net::ClientHandle;

use crate::{sasl::Sasl, topic_name::check_partition};

use super::{Consumer, subscription::BlockedPoll};

impl Consumer {
    /// Returns the credentials of SASL, if it is in use.
    #[doc(hidden)]
    pub fn sasl(&self) -> Option<&Sasl> {
        self.inner.client.sasl()
    }

    /// Returns the part that the consumer shares with its I/O threads.
    #[doc(hidden)]
    #[inline]
    pub fn core(&self) -> &Arc<ConsumerShared> {
        &self.inner.shared
    }

    /// Returns the handle to the client's actors.
    #[doc(hidden)]
    pub fn handle(&self) -> &ClientHandle {
        &self.inner.client
    }

    /// Returns the events of the client.
    #[doc(hidden)]
    pub fn events(&self) -> &Arc<EventQueue> {
        &self.inner.events
    }

    /// Requests the metadata of a topic, which may create it (`allow.auto.create.topics`).
    #[doc(hidden)]
    pub fn request_topic(&self, topic: &str) {
        let _ = self.command(FetchCommand::Topic(topic.into()));
    }

    /// Returns the state that the consumer shares with its group.
    #[doc(hidden)]
    pub fn group(&self) -> &Arc<GroupShared> {
        self.inner.subscription.group()
    }

    /// Notes for `max.poll.interval.ms` that the application polls.
    #[doc(hidden)]
    pub fn note_group_poll(&self) {
        self.note_poll();
    }

    /// Counts the application as polling until the returned value is dropped.
    #[doc(hidden)]
    pub fn begin_group_poll(&self) -> BlockedPoll {
        BlockedPoll::begin(self)
    }

    /// Subscribes to topics whose names were checked, and to patterns. Error: a pattern is invalid.
    #[doc(hidden)]
    pub fn subscribe_in_group(&self, topics: &[String]) -> Result<()> {
        if let Some(refusal) = self.inner.subscription.refusal() {
            return Err(refusal.clone());
        }
        let topics = SubscribedTopics::parse(topics.iter().map(String::as_str))?;
        self.inner.client.command(Command::Group(GroupCommand::Subscribe(topics)))
    }

    /// Replaces the assignment, as [`Consumer::assign`] does, with what the application knows of the epochs of the positions.
    #[doc(hidden)]
    pub fn assign_with_epochs(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
        epochs: &KnownEpochs,
    ) -> Result<()> {
        self.replace_assignment(partitions, epochs)
    }

    /// Adds to the assignment, as [`Consumer::incremental_assign`] does, with what the application knows of the epochs of the
    /// positions.
    #[doc(hidden)]
    pub fn incremental_assign_with_epochs(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
        epochs: &KnownEpochs,
    ) -> Result<()> {
        self.extend_assignment(partitions, epochs)
    }

    /// Starts a seek, and forgets it. Brokers give negative timestamps a meaning.
    #[doc(hidden)]
    pub fn seek_and_forget(
        &self,
        topic: &str,
        partition: i32,
        to: Offset,
        epochs: &KnownEpochs,
    ) -> Result<()> {
        match to {
            Offset::Timestamp(_) => check_partition(topic, partition)?,
            _ => self.check_offset(topic, partition, to)?,
        }
        self.command(self.inner.shared.seek(topic, partition, to, None)?.with_epochs(epochs))
    }
}
