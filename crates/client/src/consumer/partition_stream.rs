//! The records of one assigned partition, as a stream of their own.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use ottla_core::{
    error::{Error, ErrorKind, Result},
    fetch::{
        deliver::{ConsumerEvent, Message, Next, RecordCursor, Records},
        partition::PartitionHandle,
    },
};
use ottla_protocol::vocabulary::TopicPartition;

use super::{Consumer, read::Waits};
use crate::wait::wait_for;

/// The records of one assignment of a partition. It ends when the assignment ends. See [`Consumer::partition_stream`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct PartitionStream {
    consumer: Consumer,
    handle: Arc<PartitionHandle>,
    route: u64,
    cursor: RecordCursor,
    waits: Waits,
}

impl Consumer {
    /// Takes the records of an assigned partition out of [`Consumer::poll`], [`Consumer::next`] and [`Consumer::stream`],
    /// and returns them as a stream of their own, which another thread or task can read. Partitions with a slow reader
    /// do not delay the others.
    ///
    /// The stream ends when the assignment of the partition ends: the partition is given up, lost, unassigned, or the
    /// consumer is closed. Records that were fetched but not read are then dropped (when the consumer is closed, at most those
    /// of one fetch still come), and the partition's next consumer gets them. A seek continues the stream at the new position. If the stream is dropped before it ends, what it has not
    /// read comes from [`Consumer::poll`] and its siblings again. A second stream of a partition takes the records from
    /// the first one.
    ///
    /// Reading the stream counts as polling (`max.poll.interval.ms`). Events of the partition other than errors wait for
    /// [`Consumer::poll_event`].
    ///
    /// Error: [`ErrorKind::State`] if the partition is not assigned.
    pub fn partition_stream(&self, topic: &str, partition: i32) -> Result<PartitionStream> {
        let handle = self.inner.shared.partition(topic, partition)?;
        // Before the route is set, so that no poll takes the records of the new route.
        let route = self.inner.last_route.fetch_add(1, Ordering::AcqRel) + 1;
        self.inner.shared.set_route(topic, partition, route)?;
        let cursor = RecordCursor::default();
        Ok(PartitionStream { consumer: self.clone(), handle, route, cursor, waits: Waits::default() })
    }

    /// Returns true if records of some partitions are, or were, delivered by streams of their own.
    pub(super) fn has_partition_streams(&self) -> bool {
        self.inner.last_route.load(Ordering::Acquire) > 0
    }
}

impl PartitionStream {
    /// Returns the partition.
    pub fn partition(&self) -> &TopicPartition {
        self.handle.key()
    }

    /// Returns the next record. `Ok(None)`: there was none before `timeout`. Error [`ErrorKind::Closed`]: the stream
    /// has ended. Other errors are those of the partition; the next call continues.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Message>> {
        let next = std::future::poll_fn(|context| self.poll_message(context));
        match wait_for(next, timeout) {
            Some(Some(result)) => result.map(Some),
            Some(None) => Err(Error::new(ErrorKind::Closed, "the assignment of the partition ended")
                .with_partition(&**self.handle.topic(), self.handle.partition())),
            None => Ok(None),
        }
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        let Self { consumer, handle, route, cursor, waits } = self;
        consumer.counting(waits, context, |consumer, waits, context| {
            let queue = &consumer.inner.shared.queue;
            consumer.note_poll();
            loop {
                while let Some(next) = cursor.next(queue) {
                    match next {
                        Next::Message(message) => {
                            consumer.inner.interceptors.on_consume(&message);
                            return Poll::Ready(Some(Ok(message)));
                        }
                        Next::Event(ConsumerEvent::Error(error)) => return Poll::Ready(Some(Err(error))),
                        Next::Event(event) => consumer.inner.single.lock().keep(event),
                    }
                }
                let mut records = Records::default();
                queue.take_route(*route, 1, &mut records);
                if records.piece_count() > 0 || !records.events().is_empty() {
                    cursor.push(records);
                    continue;
                }
                let is_waiting = queue.register_route(*route, &mut waits.records, context.waker());
                // After the registration: the end of the assignment wakes what is registered.
                if queue.is_closed() || !consumer.has(handle) || handle.route() != *route {
                    return Poll::Ready(None);
                }
                if is_waiting {
                    return Poll::Pending;
                }
            }
        })
    }
}

impl Consumer {
    /// Returns true while this assignment of a partition lasts.
    fn has(&self, handle: &Arc<PartitionHandle>) -> bool {
        let current = self.inner.shared.partition(handle.topic(), handle.partition());
        current.is_ok_and(|current| Arc::ptr_eq(&current, handle))
    }
}

impl Stream for PartitionStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(context)
    }
}

/// The records that the stream has not returned come from [`Consumer::poll`] again.
impl Drop for PartitionStream {
    fn drop(&mut self) {
        if self.handle.route() != self.route || !self.consumer.has(&self.handle) {
            return;
        }
        self.cursor.give_back(&self.consumer.inner.shared.queue);
        let (topic, partition) = (self.handle.topic(), self.handle.partition());
        let _ = self.consumer.inner.shared.set_route(topic, partition, 0);
    }
}

impl fmt::Debug for PartitionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionStream").field("partition", self.partition()).finish_non_exhaustive()
    }
}
