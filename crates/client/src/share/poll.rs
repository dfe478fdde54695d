//! Polls of a share consumer.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    error::{Error, ErrorKind, Result},
    share::{ShareCommand, acquired::AcquiredRecords, shared::ShareShared},
    waiters::Waiter,
};
use ottla_net::clock;

use super::{Inner, ShareConsumer, record::ShareRecords};
use crate::wait::wait_for;

impl ShareConsumer {
    /// Returns records as soon as there are any, or none after `timeout`. Sends the acknowledgements so far.
    ///
    /// Up to `max.poll.records` are returned, or more: brokers deliver whole batches. All brokers with partitions are asked
    /// at the same time; records that arrive after this poll has returned wait for the next one, and their locks run.
    ///
    /// Error: there is no subscription, the consumer is closed, or it can't continue, for example because the brokers have no
    /// share groups. Other errors are events of [`ShareConsumer::poll_event`].
    pub fn poll(&self, timeout: Duration) -> Result<ShareRecords> {
        wait_for(self.poll_async(), timeout).unwrap_or_else(|| Ok(ShareRecords::default()))
    }

    /// Returns records as soon as there are any. See [`ShareConsumer::poll`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no record was taken.
    pub fn poll_async(&self) -> impl Future<Output = Result<ShareRecords>> + Send + use<> {
        let consumer = self.clone();
        let mut waits = Waits::default();
        let mut is_first = true;
        poll_fn(move |context| {
            if std::mem::take(&mut is_first) {
                consumer.begin_poll();
            }
            let taken = consumer.take_acquired(context, false, &mut waits);
            taken.map_ok(|acquired| ShareRecords::new(&consumer.inner.shared, &acquired))
        })
    }

    /// Submits the acknowledgements so far, and asks all brokers for records. [`ShareConsumer::take_acquired`] follows, which
    /// notifies the brokers' actors.
    pub(super) fn begin_poll(&self) {
        self.inner.held.commit_with_poll(&self.inner.shared);
        if self.inner.shared.note_poll(clock::now()) {
            let _ = self.inner.client.command(Command::Share(ShareCommand::Polled));
        }
    }

    /// Takes acquired records. With `or_news` it also returns, without records, when there are outcomes or events. Until the
    /// next call the poll counts as `blocked` if there is nothing to return.
    pub(super) fn take_acquired(
        &self,
        context: &mut Context<'_>,
        or_news: bool,
        waits: &mut Waits,
    ) -> Poll<Result<Vec<Arc<AcquiredRecords>>>> {
        // The actors that `take` wakes would fetch again for a poll that still waits, and the acknowledgements of these records
        // would come after that fetch.
        waits.blocked = None;
        let taken = self.take_acquired_now(context, or_news, &mut waits.records);
        if taken.is_pending() {
            waits.blocked = Some(BlockedPoll::begin(&self.inner));
        }
        taken
    }

    fn take_acquired_now(
        &self,
        context: &mut Context<'_>,
        or_news: bool,
        waiter: &mut Waiter<ShareShared>,
    ) -> Poll<Result<Vec<Arc<AcquiredRecords>>>> {
        let Inner { shared, held, .. } = &*self.inner;
        let mut acquired = Vec::new();
        shared.register(waiter, context.waker());
        let is_subscribed = !self.inner.topics.lock().is_empty();
        // After the subscription, which a close ends.
        let checked = self.check_open().and_then(|()| match is_subscribed {
            true => Ok(()),
            false => {
                let detail = "the share consumer has no subscription; call subscribe first";
                Err(Error::new(ErrorKind::State, detail))
            }
        });
        // Without records, it still notifies the broker actors.
        let enough = match &checked {
            Ok(()) => usize::try_from(shared.settings.max_poll_records).unwrap_or(1),
            Err(_) => 0,
        };
        shared.take(clock::now(), enough, &mut acquired);
        checked?;
        if !acquired.is_empty() {
            held.add(&acquired);
            return Poll::Ready(Ok(acquired));
        }
        if or_news && shared.has_news() { Poll::Ready(Ok(acquired)) } else { Poll::Pending }
    }
}

/// The registrations of a call or future that waits for records.
#[derive(Debug, Default)]
pub(super) struct Waits {
    blocked: Option<BlockedPoll>,
    records: Waiter<ShareShared>,
}

/// A poll that waits for records. The application counts as polling until this is dropped.
#[derive(Debug)]
pub(super) struct BlockedPoll {
    consumer: ShareConsumer,
}

impl BlockedPoll {
    pub(super) fn begin(inner: &Arc<Inner>) -> Self {
        inner.shared.begin_blocking(clock::now());
        Self { consumer: ShareConsumer { inner: Arc::clone(inner) } }
    }
}

impl Drop for BlockedPoll {
    fn drop(&mut self) {
        self.consumer.inner.shared.end_blocking(clock::now());
    }
}
