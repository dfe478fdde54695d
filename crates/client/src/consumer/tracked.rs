//! At-least-once processing out of order: only what is finished is committed.

use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use ottla_core::{
    error::{Error, ErrorKind, Result},
    fetch::{
        completions::{CompletionId, Completions},
        deliver::Message,
        partition::StoredOffset,
    },
    lock::Mutex,
    waiters::Waiter,
};

use super::{Consumer, closed, read::Waits};
use crate::wait::wait_for;

/// The messages of a consumer for workers that finish them in any order. See [`Consumer::track_messages`].
#[derive(Clone)]
pub struct TrackedMessages {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    consumer: Consumer,
    completions: Arc<Completions>,
    /// Held while a message is taken and enters its row, so that messages enter in the order of delivery.
    taking: Mutex<()>,
}

/// A message that is being processed. [`TrackedMessage::finish`] lets it be committed.
///
/// # Drop
///
/// A message that is dropped instead, for example because its worker panics, has failed: the consumer goes back to it and
/// delivers it again, with what follows in its partition, and with earlier messages that are not finished. A message
/// that can't be processed comes again and again until it is finished.
#[must_use = "a message that is not finished comes again"]
pub struct TrackedMessage {
    message: Message,
    id: CompletionId,
    inner: Arc<Inner>,
    is_finished: bool,
}

impl Consumer {
    /// Returns the messages for processing in any order, by any number of threads or tasks, at least once. The offset of a
    /// partition is committed only up to the first message that is not [finished](TrackedMessage::finish).
    ///
    /// `limit` is the number of messages that are processed at the same time, including finished ones that wait for an
    /// earlier one. At the limit no message is returned until one is finished or fails. A wait for that does not count as
    /// polling: with workers that finish nothing for `max.poll.interval.ms` the consumer leaves its group. A message that is
    /// [dropped](TrackedMessage#drop) has failed, and is delivered again.
    ///
    /// Offsets are committed at `auto.commit.interval.ms`, when partitions go to other members, and by
    /// [`Consumer::close`]; [`Consumer::commit_stored`] commits at once. Messages of a partition that was given up
    /// meanwhile are not committed; its next consumer gets them again.
    ///
    /// The messages must come from one `TrackedMessages` and its clones: what [`Consumer::next`] and its siblings return is
    /// not tracked.
    ///
    /// Error: [`ErrorKind::InvalidArgument`] unless `enable.auto.offset.store` is `false`, because the consumer would
    /// otherwise commit what was handed out.
    pub fn track_messages(&self, limit: usize) -> Result<TrackedMessages> {
        if self.inner.shared.settings.auto_offset_store {
            let detail = "`enable.auto.offset.store` is true, so that messages are committed before they are finished; set it \
                          to false to track messages";
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        }
        let completions = Arc::new(Completions::new(Arc::clone(&self.inner.shared), limit));
        let inner = Inner { consumer: self.clone(), completions, taking: Mutex::default() };
        Ok(TrackedMessages { inner: Arc::new(inner) })
    }
}

impl TrackedMessages {
    /// Returns the next message, or `None` after `timeout`. The error of a partition is returned once; the next call
    /// continues.
    pub fn next(&self, timeout: Duration) -> Result<Option<TrackedMessage>> {
        wait_for(self.next_async(), timeout).map_or(Ok(None), |result| result.map(Some))
    }

    /// Returns the next message as soon as there is one.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no message was taken.
    pub fn next_async(&self) -> impl Future<Output = Result<TrackedMessage>> + Send + use<> {
        let inner = Arc::clone(&self.inner);
        let mut waits = TrackedWaits::default();
        poll_fn(move |context| inner.poll(context, &mut waits))
    }

    /// Returns the messages one after the other, as a stream that ends when the consumer is closed.
    pub fn stream(&self) -> TrackedStream {
        TrackedStream { inner: Arc::clone(&self.inner), waits: TrackedWaits::default() }
    }

    /// Returns the number of messages that are not finished, or wait for an earlier one of their partition.
    pub fn in_progress(&self) -> usize {
        self.inner.completions.len()
    }
}

/// The registrations of a call or future that waits for a message.
#[derive(Debug, Default)]
pub(super) struct TrackedWaits {
    pub(super) records: Waits,
    room: Waiter<Completions>,
}

impl Inner {
    pub(super) fn poll(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        waits: &mut TrackedWaits,
    ) -> Poll<Result<TrackedMessage>> {
        self.poll_as(context, waits, |message| message)
    }

    /// Polls for a message, and converts it: messages are converted one after the other, in the order of their delivery.
    pub(super) fn poll_as<T>(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        waits: &mut TrackedWaits,
        convert: impl Fn(TrackedMessage) -> T,
    ) -> Poll<Result<T>> {
        let TrackedWaits { records, room } = waits;
        self.consumer.counting(records, context, |consumer, waits, context| {
            loop {
                {
                    let _taking = self.taking.lock();
                    // At the limit it waits for the application, and for partitions that are given up.
                    if !consumer.inner.shared.queue.register_end(&mut waits.records, context.waker()) {
                        return Poll::Ready(Err(closed()));
                    }
                    if !self.completions.has_room(room, context.waker()) {
                        waits.is_for_application = true;
                        return Poll::Pending;
                    }
                    if let Some(taken) = consumer.take_next() {
                        return Poll::Ready(taken.map(|message| {
                            let id = self.completions.begin(&message);
                            convert(TrackedMessage {
                                message,
                                id,
                                inner: Arc::clone(self),
                                is_finished: false,
                            })
                        }));
                    }
                }
                if consumer.sleep_single(waits, context)? {
                    return Poll::Pending;
                }
            }
        })
    }
}

impl TrackedMessage {
    /// The message was processed: it is committed as soon as all earlier messages of its partition are finished, too.
    pub fn finish(mut self) {
        self.is_finished = true;
        self.inner.completions.finish(&self.id);
    }

    /// Returns true if the message is still the consumer's: its partition was neither given up nor moved since.
    pub(super) fn is_current(&self) -> bool {
        self.inner.completions.is_current(&self.id)
    }

    /// Returns the offset that finishing this message would let be committed; `None` if an earlier one is not finished.
    pub(super) fn offset_after(&self) -> Option<StoredOffset> {
        self.inner.completions.offset_after(&self.id)
    }

    /// Returns the consumer of the message.
    pub(super) fn consumer(&self) -> &Consumer {
        &self.inner.consumer
    }

    /// Returns the message.
    pub const fn message(&self) -> &Message {
        &self.message
    }
}

impl Drop for TrackedMessage {
    fn drop(&mut self) {
        if !self.is_finished
            && let Some(command) = self.inner.completions.give_back(&self.id)
        {
            // A closed consumer delivers nothing any more.
            let _ = self.inner.consumer.command(command);
        }
    }
}

impl Deref for TrackedMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl fmt::Debug for TrackedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedMessage").field("message", &self.message).finish_non_exhaustive()
    }
}

impl fmt::Debug for TrackedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedMessages")
            .field("consumer", &self.inner.consumer)
            .field("in_progress", &self.in_progress())
            .finish_non_exhaustive()
    }
}

/// The messages of [`TrackedMessages`], one after the other. An error of a partition is an item; the stream continues after
/// it.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TrackedStream {
    inner: Arc<Inner>,
    waits: TrackedWaits,
}

impl Stream for TrackedStream {
    type Item = Result<TrackedMessage>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        match stream.inner.poll(context, &mut stream.waits) {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Closed => Poll::Ready(None),
            other => other.map(Some),
        }
    }
}

impl fmt::Debug for TrackedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedStream").field("consumer", &self.inner.consumer).finish_non_exhaustive()
    }
}
