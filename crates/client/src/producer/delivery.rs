//! The result of sending a record.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_core::{
    error::{Error, ErrorKind, Result},
    produce::{
        budget::Budget,
        outgoing::PreparedRecord,
        record::Record,
        report::{PersistenceStatus, Tracker},
    },
    waiters::Waiter,
};
use ottla_net::{Drivers, clock};

use super::{Topic, max_block::MaxBlock};
use crate::wait::{check_may_wait, wait_in_lead};

/// The partition and offset of a delivered record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordMetadata {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset; `None` with `acks=0`.
    pub offset: Option<i64>,
    /// The broker's timestamp in milliseconds since 1970, if the topic has `message.timestamp.type=LogAppendTime`.
    pub log_append_time: Option<i64>,
    /// Returns whether the record is in the log: [`PersistenceStatus::PossiblyPersisted`] with `acks=0`.
    pub status: PersistenceStatus,
}

/// The delivery of a record that is in the producer's queue: a future, or [`Delivery::wait`].
///
/// Resolves exactly once, within `message.timeout.ms`. Dropping it does not stop the delivery.
#[must_use = "the delivery has the record's offset, or the error that the record was lost with"]
pub struct Delivery {
    pub(super) tracker: Arc<Tracker>,
    index: usize,
    topic: Arc<str>,
    waiter: Waiter<Tracker>,
    drivers: Option<Arc<Drivers>>,
}

impl Delivery {
    pub(super) fn new(topic: &Topic, (tracker, index): (Arc<Tracker>, usize)) -> Self {
        let drivers = topic.inner.client.leading_later();
        Self { tracker, index, topic: Arc::clone(topic.topic.name()), waiter: Waiter::default(), drivers }
    }

    /// Blocks until the record is delivered or has failed. [`ErrorKind::TimedOut`] leaves that open: the record may yet be
    /// delivered.
    pub fn wait(mut self, timeout: Duration) -> Result<RecordMetadata> {
        check_may_wait("Delivery::wait")?;
        let topic = Arc::clone(&self.topic);
        let drivers = self.drivers.take();
        wait_in_lead(drivers.as_deref(), self, timeout).unwrap_or_else(|| Err(not_reported_yet(&topic)))
    }
}

impl Future for Delivery {
    type Output = Result<RecordMetadata>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { tracker, index, topic, waiter, .. } = self.get_mut();
        tracker.poll(*index, waiter, context).map(|fate| {
            fate.outcome.map(|delivered| RecordMetadata {
                topic: Arc::clone(topic),
                partition: fate.partition,
                offset: delivered.base_offset,
                log_append_time: delivered.log_append_time,
                status: fate.status,
            })
        })
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// The future of [`Topic::deliver_async`]: waits for room in the queue, then for the delivery.
///
/// It can be dropped at any time. [`DeliverFuture::is_queued`] returns whether the record was sent before.
#[must_use = "the record is sent when the future is polled"]
pub struct DeliverFuture<'a> {
    topic: Topic,
    state: State<'a>,
    limit: MaxBlock,
    waiter: Waiter<Budget>,
}

enum State<'a> {
    /// The record waits for room in the queue.
    WaitingForRoom(PreparedRecord<'a>),
    /// The record is in the queue or sent.
    Queued(Delivery),
    /// The result was returned.
    Done,
}

impl<'a> DeliverFuture<'a> {
    pub(super) fn new(topic: Topic, record: Record<'a>) -> Self {
        let limit = MaxBlock::new(&topic.inner);
        let record = topic.intercepted(record);
        Self { topic, state: State::WaitingForRoom(record), limit, waiter: Waiter::default() }
    }

    /// Returns whether the producer has accepted the record. From then on it is delivered, or fails within
    /// `message.timeout.ms`, even if this future is dropped.
    pub const fn is_queued(&self) -> bool {
        !matches!(self.state, State::WaitingForRoom(_))
    }

    /// Blocks until the result is there.
    pub(super) fn wait(mut self, timeout: Duration) -> Result<RecordMetadata> {
        self.limit = MaxBlock::none();
        let inner = Arc::clone(&self.topic.inner);
        if let Some(in_caller) = inner.client.in_caller(true) {
            let sent = Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop()));
            drop(in_caller);
            if let Poll::Ready(result) = sent {
                return result;
            }
        }
        if let Some(result) = wait_in_lead(inner.client.leading(), &mut self, timeout) {
            return result;
        }
        if self.is_queued() {
            return Err(not_reported_yet(self.topic.topic.name()));
        }
        let detail = format!("no room for {} ms; the record was not sent", timeout.as_millis());
        Err(Error::new(ErrorKind::QueueFull, detail).with_topic(self.topic.name()))
    }
}

impl Future for DeliverFuture<'_> {
    type Output = Result<RecordMetadata>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::WaitingForRoom(record) => {
                    let (now, wall_ms) = clock::now_and_wall_ms();
                    let shared = &this.topic.inner.shared;
                    let mut track = None;
                    let register = |budget: &Arc<Budget>| budget.register(&mut this.waiter, context.waker());
                    let sent = record.with(|record| {
                        if let Err(error) = record.check_timestamp() {
                            return Poll::Ready(Err(error));
                        }
                        let topic = &this.topic.topic;
                        shared.poll_send(topic, now, wall_ms, record, Some(&mut track), register)
                    });
                    let sent = this.limit.apply(&this.topic.inner, context, sent);
                    this.state = match (sent, track) {
                        (Poll::Pending, _) => return Poll::Pending,
                        (Poll::Ready(Ok(())), Some(track)) => {
                            State::Queued(Delivery::new(&this.topic, track))
                        }
                        (Poll::Ready(Ok(())), None) => {
                            this.state = State::Done;
                            return Poll::Ready(Err(Error::new(ErrorKind::Closed, "")));
                        }
                        (Poll::Ready(Err(error)), _) => {
                            this.state = State::Done;
                            return Poll::Ready(Err(error.into()));
                        }
                    };
                }
                State::Queued(delivery) => {
                    let result = Pin::new(delivery).poll(context);
                    if result.is_ready() {
                        this.state = State::Done;
                    }
                    return result;
                }
                State::Done => {
                    let detail = "the future was polled after it had returned its result";
                    return Poll::Ready(Err(Error::new(ErrorKind::State, detail)));
                }
            }
        }
    }
}

impl fmt::Debug for DeliverFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::WaitingForRoom(_) => "waiting for room",
            State::Queued(_) => "queued",
            State::Done => "done",
        };
        f.debug_struct("DeliverFuture").field("topic", &self.topic.name()).field("state", &state).finish()
    }
}

fn not_reported_yet(topic: &str) -> Error {
    let detail = "the record is queued or in flight and may yet be delivered; message.timeout.ms limits that";
    Error::new(ErrorKind::TimedOut, detail).with_topic(topic)
}
