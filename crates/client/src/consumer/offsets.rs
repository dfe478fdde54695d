//! The positions of a consumer, the offsets that its group has committed, and offsets of partitions.

use std::{future::Future, sync::Arc, time::Duration};

use ottla_core::{
    completion::{Waiting, completion},
    error::{Error, ErrorKind, Result},
    fetch::{FetchCommand, position::Offset},
    offsets::{
        committed::{CommitResult, CommittedResult, GroupCall, GroupCallKind, GroupOffset},
        list_offsets::{ListedOffset, OffsetSpec},
    },
};
use ottla_protocol::vocabulary::TopicPartition;

use super::{Consumer, closed};
use crate::{
    admin::offset_query,
    background::spawn,
    topic_name::check_partition,
    wait::{check_may_wait, wait_for},
};

/// Blocking calls wait this much longer than the client itself, whose error says more.
const GRACE: Duration = Duration::from_secs(1);

impl Consumer {
    /// Moves the position of an assigned partition: records that were fetched before are dropped. Blocks until the offset
    /// is known, and returns it.
    ///
    /// Error: [`ErrorKind::TimedOut`], if the offset is not known after `timeout`. The seek continues.
    pub fn seek(&self, topic: &str, partition: i32, to: Offset, timeout: Duration) -> Result<i64> {
        check_may_wait("seek")?;
        wait_for(self.seek_async(topic, partition, to), timeout).unwrap_or_else(|| {
            let detail = "seek: the offset is not known yet; the seek continues";
            Err(Error::new(ErrorKind::TimedOut, detail).with_partition(topic, partition))
        })
    }

    /// Moves the position of an assigned partition, and resolves to the offset. See [`Consumer::seek`].
    ///
    /// The seek has started when this returns, so that many partitions can seek at the same time. Dropping the future does
    /// not stop it.
    pub fn seek_async(
        &self,
        topic: &str,
        partition: i32,
        to: Offset,
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.log("seek", [(topic, partition, Some(to))]);
        let (done, waiting) = completion();
        let started = self
            .check_open()
            .and_then(|()| self.check_offset(topic, partition, to))
            .and_then(|()| self.inner.shared.seek(topic, partition, to, Some(done)))
            .and_then(|command| self.command(command));
        let (shared, topic): (_, Arc<str>) = (Arc::clone(&self.inner.shared), topic.into());
        async move {
            started?;
            let result = waiting.await.unwrap_or_else(|| match shared.queue.is_closed() {
                true => Err(closed()),
                false => {
                    Err(Error::new(ErrorKind::State, "seek: the partition was assigned again meanwhile"))
                }
            });
            result.map_err(|error| error.with_partition(&*topic, partition))
        }
    }

    /// Returns the position: the offset after the last record that was returned, or the offset at which the partition
    /// starts. `None` while that is not known.
    pub fn position(&self, topic: &str, partition: i32) -> Option<i64> {
        self.inner.shared.partition(topic, partition).ok()?.position()
    }

    /// Returns the leader epoch of the last record that was returned. `None` before the first one, and if the log has no
    /// epochs.
    pub fn position_leader_epoch(&self, topic: &str, partition: i32) -> Option<i32> {
        self.inner.shared.partition(topic, partition).ok()?.position_epoch()
    }

    /// Looks up the lowest and the highest offset of a partition at its leader. The partition need not be assigned.
    pub fn watermarks(&self, topic: &str, partition: i32, timeout: Duration) -> Result<(i64, i64)> {
        let questions = [(topic, partition, OffsetSpec::Earliest), (topic, partition, OffsetSpec::Latest)];
        let mut results = self.list_offsets(&questions, timeout)?.into_iter();
        let mut next = || {
            let listed =
                results.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Bug, "an offset is missing")))?;
            listed.offset.ok_or_else(|| Error::new(ErrorKind::BadResponse, "the leader returned no offset"))
        };
        Ok((next()?, next()?))
    }

    /// Returns the lowest and the highest offset from the last fetch, without a request.
    pub fn cached_watermarks(&self, topic: &str, partition: i32) -> Option<(i64, i64)> {
        self.inner.shared.partition(topic, partition).ok()?.watermarks()
    }

    /// Looks offsets up at the leaders of partitions. The results have the order of the arguments.
    pub fn list_offsets(
        &self,
        partitions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> Result<Vec<Result<ListedOffset>>> {
        blocking("list_offsets", self.list_offsets_async(partitions, timeout), timeout)
    }

    /// Looks offsets up, without blocking. See [`Consumer::list_offsets`].
    pub fn list_offsets_async(
        &self,
        partitions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> impl Future<Output = Result<Vec<Result<ListedOffset>>>> + Send + use<> {
        let (done, waiting) = completion();
        let started = offset_query(partitions, timeout)
            .and_then(|query| self.command(FetchCommand::ListOffsets(query, done)));
        async move {
            started?;
            waiting.await.ok_or_else(closed)
        }
    }

    /// Commits offsets for the group of `group.id`: as its member, if the consumer subscribes to topics; otherwise as no
    /// member, and then the group must have no members.
    ///
    /// Error: [`ErrorKind::State`], if the consumer subscribes to topics and is not a member at the moment, or if the group
    /// rebalanced before the request was sent.
    pub fn commit(&self, offsets: &[GroupOffset], timeout: Duration) -> CommitResult {
        blocking("commit", self.commit_async(offsets, timeout), timeout)
    }

    /// Commits offsets, without blocking. See [`Consumer::commit`]. The request is sent even if the future is dropped.
    pub fn commit_async(
        &self,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> impl Future<Output = CommitResult> + Send + use<> {
        let (done, waiting) = completion();
        let is_valid = check_offsets(offsets);
        let kind = GroupCallKind::Commit(self.with_topic_ids(offsets), done);
        let started = is_valid.and_then(|()| self.command(FetchCommand::Group(GroupCall { timeout, kind })));
        let waiting = self.showing(offsets, waiting);
        async move {
            started?;
            waiting.await.unwrap_or_else(|| Err(closed()))
        }
    }

    /// Returns offsets that are about the topics which the consumer reads now, where they name none.
    pub(crate) fn with_topic_ids(&self, offsets: &[GroupOffset]) -> Vec<GroupOffset> {
        let mut offsets = offsets.to_vec();
        self.inner.shared.add_topic_ids(&mut offsets);
        offsets
    }

    /// Shows the outcome of a commit to the interceptors, even if nothing waits for it.
    fn showing(&self, offsets: &[GroupOffset], waiting: Waiting<CommitResult>) -> Waiting<CommitResult> {
        if self.inner.interceptors.is_empty() {
            return waiting;
        }
        let (done, shown) = completion();
        let (interceptors, offsets) = (Arc::clone(&self.inner.interceptors), offsets.to_vec());
        spawn(async move {
            if let Some(outcome) = waiting.await {
                interceptors.on_commit(&offsets, &outcome);
                done.complete(outcome);
            }
        });
        shown
    }

    /// Returns the offsets that the group of `group.id` has committed.
    pub fn committed(
        &self,
        partitions: &[impl Into<TopicPartition> + Clone],
        timeout: Duration,
    ) -> CommittedResult {
        blocking("committed", self.committed_async(partitions, timeout), timeout)
    }

    /// Returns committed offsets, without blocking. See [`Consumer::committed`].
    pub fn committed_async<P: Into<TopicPartition> + Clone>(
        &self,
        partitions: &[P],
        timeout: Duration,
    ) -> impl Future<Output = CommittedResult> + Send + use<P> {
        let (done, waiting) = completion();
        let partitions = partitions.iter().cloned().map(Into::into);
        let kind = GroupCallKind::Committed(partitions.collect(), done);
        let started = self.command(FetchCommand::Group(GroupCall { timeout, kind }));
        async move {
            started?;
            waiting.await.unwrap_or_else(|| Err(closed()))
        }
    }

    pub(super) fn check_offset(&self, topic: &str, partition: i32, offset: Offset) -> Result<()> {
        check_partition(topic, partition)?;
        let reason = match offset.invalid() {
            None if offset == Offset::Committed && self.inner.shared.settings.group_id.is_none() => {
                "committed offsets belong to a group; set group.id"
            }
            None => return Ok(()),
            Some(reason) => reason,
        };
        let error = Error::new(ErrorKind::InvalidArgument, format!("{reason}: {offset:?}"));
        Err(error.with_partition(topic, partition))
    }
}

/// Error: one of the offsets is negative. Coordinators store any number.
fn check_offsets(offsets: &[GroupOffset]) -> Result<()> {
    let Some(bad) = offsets.iter().find(|offset| offset.offset < 0) else { return Ok(()) };
    let detail = format!("the offset {} can't be committed; it must be at least 0", bad.offset);
    Err(Error::new(ErrorKind::InvalidArgument, detail).with_partition(&*bad.topic, bad.partition))
}

/// Blocks until a call that has its own timeout has ended.
pub(super) fn blocking<T>(
    call: &str,
    future: impl Future<Output = Result<T>>,
    timeout: Duration,
) -> Result<T> {
    check_may_wait(call)?;
    wait_for(future, timeout.saturating_add(GRACE)).unwrap_or_else(|| {
        let detail = format!("{call}: no response from the client's I/O threads; a callback may block them");
        Err(Error::new(ErrorKind::TimedOut, detail))
    })
}
