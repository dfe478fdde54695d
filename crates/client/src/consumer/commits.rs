//! Commits of messages and of batches of records, and offsets that are stored to be committed later.

use std::{future::Future, time::Duration};

use ottla_core::{
    error::{Error, ErrorKind, Result},
    fetch::deliver::{Message, Records},
    offsets::committed::{CommitResult, GroupOffset},
};
use ottla_protocol::vocabulary::TopicPartition;

use super::{Consumer, offsets::blocking};

/// The outcome of each partition of a commit.
pub type PartitionCommits = Vec<(TopicPartition, Result<()>)>;

impl Consumer {
    /// Commits that a message was processed: the next consumer of the partition starts after it. Blocks until the
    /// coordinator responds.
    ///
    /// The commit is about the assignment that the message came from. Errors: [`ErrorKind::State`] if the consumer gave the
    /// partition up since, [`ErrorKind::TopicRecreated`] if the topic was recreated since; otherwise as
    /// [`Consumer::commit`].
    pub fn commit_message(&self, message: &Message, timeout: Duration) -> Result<()> {
        blocking("commit_message", self.commit_message_async(message, timeout), timeout)
    }

    /// Commits that a message was processed, without blocking. See [`Consumer::commit_message`]. The request is sent even
    /// if the future is dropped.
    pub fn commit_message_async(
        &self,
        message: &Message,
        timeout: Duration,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let offset = self.inner.shared.offset_after(message);
        let commit = offset.map(|offset| self.commit_async(&[offset], timeout));
        async move { commit?.await?.into_iter().next().unwrap_or_else(|| Err(no_outcome())) }
    }

    /// Commits that all of these records were processed: for each partition the offset after its last record. Blocks until
    /// the coordinator responds. Returns the outcome of each partition; a partition that the consumer gave up since
    /// ([`ErrorKind::State`]) does not prevent the commits of the others.
    ///
    /// Error: nothing was committed.
    pub fn commit_records(&self, records: &Records, timeout: Duration) -> Result<PartitionCommits> {
        blocking("commit_records", self.commit_records_async(records, timeout), timeout)
    }

    /// Commits that records were processed, without blocking. See [`Consumer::commit_records`].
    pub fn commit_records_async(
        &self,
        records: &Records,
        timeout: Duration,
    ) -> impl Future<Output = Result<PartitionCommits>> + Send + use<> {
        self.commit_each(self.inner.shared.offsets_after(records), timeout)
    }

    /// Stores that a message was processed. Its offset is committed at `auto.commit.interval.ms`, when the partition goes to
    /// another member, by [`Consumer::close`], and by [`Consumer::commit_stored`]. Set `enable.auto.offset.store=false`,
    /// or the offset of every record that is handed out is stored at once.
    ///
    /// Errors: as those of [`Consumer::commit_message`] that need no coordinator.
    pub fn store_message(&self, message: &Message) -> Result<()> {
        self.inner.shared.store_message(message)
    }

    /// Commits the stored offsets of all assigned partitions that are not committed yet. Blocks until the coordinator
    /// responds. Returns the outcome of each partition; nothing, if there is nothing to commit.
    pub fn commit_stored(&self, timeout: Duration) -> Result<PartitionCommits> {
        blocking("commit_stored", self.commit_stored_async(timeout), timeout)
    }

    /// Commits stored offsets, without blocking. See [`Consumer::commit_stored`].
    pub fn commit_stored_async(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<PartitionCommits>> + Send + use<> {
        let stored = self.inner.shared.all_offsets_to_commit().into_iter();
        let each = stored.map(|offset| {
            let key = TopicPartition::new(std::sync::Arc::clone(&offset.topic), offset.partition);
            (key, Ok(offset))
        });
        self.commit_each(each.collect(), timeout)
    }

    /// Commits the offsets of partitions that have one.
    fn commit_each(
        &self,
        offsets: Vec<(TopicPartition, Result<GroupOffset>)>,
        timeout: Duration,
    ) -> impl Future<Output = Result<PartitionCommits>> + Send + use<> {
        let sent: Vec<GroupOffset> =
            offsets.iter().filter_map(|(_, offset)| offset.as_ref().ok().cloned()).collect();
        let commit = (!sent.is_empty()).then(|| self.commit_async(&sent, timeout));
        async move {
            let outcomes: CommitResult = match commit {
                Some(commit) => commit.await,
                None => Ok(Vec::new()),
            };
            let mut outcomes = outcomes?.into_iter();
            let each = offsets.into_iter().map(|(key, offset)| {
                let outcome = offset.and_then(|_| outcomes.next().unwrap_or_else(|| Err(no_outcome())));
                (key, outcome)
            });
            Ok(each.collect())
        }
    }
}

fn no_outcome() -> Error {
    Error::new(ErrorKind::Bug, "the commit has no outcome")
}
