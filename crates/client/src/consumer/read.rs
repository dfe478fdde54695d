//! The ways of fetched records from the queue to the application: many at once, or one after the other.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use ottla_core::{
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    fetch::{
        deliver::{ConsumerEvent, Message, Next, RecordCursor, Records},
        queue::FetchQueue,
    },
    waiters::Waiter,
};

use super::{Consumer, closed, rebalances::Questions, subscription::BlockedPoll};
use crate::wait::wait_in_lead;

/// A poll takes no further partition's records when it has this many bytes.
const ENOUGH_BYTES: usize = 1 << 20;
/// The route of the partitions without streams of their own.
const COMMON_ROUTE: u64 = 0;
/// The number of events between single records that are kept. Beyond it the oldest are dropped.
const MAX_EVENTS: usize = 1000;

/// Records that [`Consumer::next`] took from the queue and has not returned yet.
#[derive(Debug, Default)]
pub(super) struct Single {
    cursor: RecordCursor,
    /// Events that came between single records.
    events: VecDeque<ConsumerEvent>,
}

impl Single {
    pub(super) fn keep(&mut self, event: ConsumerEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// The registrations of a call or future that waits for records.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The application counts as polling.
    pub(super) blocked: Option<BlockedPoll>,
    /// The wait is for the application itself, which does not count as polling.
    pub(super) is_for_application: bool,
    pub(super) records: Waiter<FetchQueue>,
    events: Waiter<EventQueue>,
    rebalances: Waiter<Questions>,
}

impl Consumer {
    /// Returns records and events as soon as there are any, or nothing after `timeout`. Advances the positions of the
    /// partitions past the records.
    ///
    /// The records are views into the buffers that came from the socket: cheap while they are borrowed.
    /// [`MessageRef::to_message`](crate::MessageRef::to_message) returns one that can be kept.
    pub fn poll(&self, timeout: Duration) -> Result<Records> {
        wait_in_lead(self.inner.client.leading(), self.poll_async(), timeout)
            .unwrap_or_else(|| Ok(Records::default()))
    }

    /// Returns records and events as soon as there are any. See [`Consumer::poll`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no record was taken.
    pub fn poll_async(&self) -> impl Future<Output = Result<Records>> + Send + use<> {
        let consumer = self.clone();
        let mut waits = Waits::default();
        poll_fn(move |context| consumer.counting(&mut waits, context, Self::poll_records))
    }

    /// Returns the next record, or `None` after `timeout`. The error of a partition is returned once; the next call
    /// continues. Other events wait for [`Consumer::poll_event`].
    pub fn next(&self, timeout: Duration) -> Result<Option<Message>> {
        // Most records are in the queue already: they need neither a waker nor the clock.
        if let Some(result) = self.take_next() {
            return result.map(Some);
        }
        match wait_in_lead(self.inner.client.leading(), self.next_async(), timeout) {
            Some(result) => result.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the next record as soon as there is one. See [`Consumer::next`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no record was taken.
    pub fn next_async(&self) -> impl Future<Output = Result<Message>> + Send + use<> {
        let consumer = self.clone();
        let mut waits = Waits::default();
        poll_fn(move |context| consumer.counting(&mut waits, context, Self::poll_next))
    }

    /// Returns the records one after the other, as a stream that ends when the consumer is closed.
    pub fn stream(&self) -> MessageStream {
        MessageStream { consumer: self.clone(), waits: Waits::default() }
    }

    /// Returns the oldest event that neither [`Consumer::poll`] nor [`Consumer::next`] has returned.
    pub fn poll_event(&self) -> Option<ConsumerEvent> {
        let kept = self.inner.single.lock().events.pop_front();
        kept.or_else(|| std::iter::from_fn(|| self.inner.events.pop()).find_map(consumer_event))
    }

    /// Polls once, after the listener was called for rebalances. The application counts as polling while the result is pending.
    pub(super) fn counting<T>(
        &self,
        waits: &mut Waits,
        context: &mut Context<'_>,
        poll: impl FnOnce(&Self, &mut Waits, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.serve_listener(&mut waits.rebalances, context);
        waits.is_for_application = false;
        let result = poll(self, waits, context);
        match &result {
            Poll::Pending if !waits.is_for_application => {
                waits.blocked.get_or_insert_with(|| BlockedPoll::begin(self));
            }
            _ => waits.blocked = None,
        }
        result
    }

    fn poll_records(&self, waits: &mut Waits, context: &mut Context<'_>) -> Poll<Result<Records>> {
        let queue = &self.inner.shared.queue;
        self.note_poll();
        loop {
            let mut records = Records::default();
            {
                let mut single = self.inner.single.lock();
                single.cursor.take(&mut records, queue);
                single.events.drain(..).for_each(|event| records.push_event(event));
            }
            self.take_records(ENOUGH_BYTES, &mut records);
            while let Some(event) = self.inner.events.pop() {
                if let Some(event) = consumer_event(event) {
                    records.push_event(event);
                }
            }
            if !records.is_empty() {
                self.inner.interceptors.on_consume_all(&records);
                return Poll::Ready(Ok(records));
            }
            if self.sleep(waits, context)? {
                return Poll::Pending;
            }
        }
    }

    fn poll_next(&self, waits: &mut Waits, context: &mut Context<'_>) -> Poll<Result<Message>> {
        loop {
            if let Some(result) = self.take_next() {
                return Poll::Ready(result);
            }
            if self.sleep_single(waits, context)? {
                return Poll::Pending;
            }
        }
    }

    /// Returns the next record if it is in the queue.
    #[inline]
    pub(super) fn take_next(&self) -> Option<Result<Message>> {
        let next = self.take_next_unseen();
        if let Some(Ok(message)) = &next
            && !self.inner.interceptors.is_empty()
        {
            self.inner.interceptors.on_consume(message);
        }
        next
    }

    #[inline]
    fn take_next_unseen(&self) -> Option<Result<Message>> {
        let queue = &self.inner.shared.queue;
        let mut single = self.inner.single.lock();
        let single = &mut *single;
        loop {
            while let Some(next) = single.cursor.next(queue) {
                match next {
                    Next::Message(message) => return Some(Ok(message)),
                    Next::Event(ConsumerEvent::Error(error)) => return Some(Err(error)),
                    Next::Event(event) => single.keep(event),
                }
            }
            self.note_poll();
            let mut records = Records::default();
            if self.has_partition_streams() {
                queue.take_route(COMMON_ROUTE, 1, &mut records);
            } else {
                queue.take_without_position(1, &mut records);
            }
            if records.piece_count() == 0 && records.events().is_empty() {
                return None;
            }
            single.cursor.push(records);
        }
    }

    /// Takes records of all partitions but those that have streams of their own.
    fn take_records(&self, enough: usize, records: &mut Records) {
        let queue = &self.inner.shared.queue;
        if !self.has_partition_streams() {
            return queue.take(enough, records);
        }
        queue.take_route(COMMON_ROUTE, enough, records);
        for (piece, _) in records.pieces() {
            piece.set_position(piece.next_offset(), piece.last_epoch());
        }
    }

    /// Registers the waker for records; false if there are some already.
    fn register(&self, waits: &mut Waits, context: &Context<'_>) -> bool {
        let (queue, waker) = (&self.inner.shared.queue, context.waker());
        if self.has_partition_streams() {
            queue.register_route(COMMON_ROUTE, &mut waits.records, waker)
        } else {
            queue.register(&mut waits.records, waker)
        }
    }

    /// Registers the waker; false if there are records or events already.
    fn sleep(&self, waits: &mut Waits, context: &Context<'_>) -> Result<bool> {
        self.inner.events.register(&mut waits.events, context.waker());
        if self.register(waits, context) {
            // An event may have come before the registration.
            return Ok(self.inner.events.is_empty());
        }
        if self.inner.shared.queue.is_closed() { Err(closed()) } else { Ok(false) }
    }

    pub(super) fn sleep_single(&self, waits: &mut Waits, context: &Context<'_>) -> Result<bool> {
        if self.register(waits, context) {
            return Ok(true);
        }
        if self.inner.shared.queue.is_closed() { Err(closed()) } else { Ok(false) }
    }
}

/// The records of a [`Consumer`], one after the other. An error of a partition is an item; the stream continues after it.
#[must_use = "a stream does nothing unless it is polled"]
pub struct MessageStream {
    consumer: Consumer,
    waits: Waits,
}

impl Clone for MessageStream {
    fn clone(&self) -> Self {
        self.consumer.stream()
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageStream").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}

impl Stream for MessageStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        let stream = self.get_mut();
        match stream.consumer.counting(&mut stream.waits, context, Consumer::poll_next) {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Closed => Poll::Ready(None),
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Converts an event of the client; `None` for throttling, which does not concern the records.
fn consumer_event(event: Event) -> Option<ConsumerEvent> {
    Some(match event {
        Event::Throttled(_) | Event::Telemetry(_) => return None,
        Event::Error(error) | Event::AllBrokersDown(error) | Event::Fatal(error) => {
            ConsumerEvent::Error(error)
        }
        Event::TopicRecreated(topic) => ConsumerEvent::TopicRecreated(topic),
        Event::ClusterChanged(change) => ConsumerEvent::ClusterChanged(change),
        Event::PollOverdue(overdue) => ConsumerEvent::PollOverdue(overdue),
        Event::Credentials(news) => ConsumerEvent::Credentials(news),
        other => {
            let detail = format!("a consumer has no event for {other:?}");
            ConsumerEvent::Error(Error::new(ErrorKind::Bug, detail))
        }
    })
}
