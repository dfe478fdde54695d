//! A topic of a producer, and the calls that send records to it.

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use ottla_core::{
    error::Result,
    produce::{
        budget::Budget,
        outgoing::PreparedRecord,
        record::{Record, SendError},
        topic::ProducerTopic,
        topic_settings::TopicSettings,
    },
    waiters::Waiter,
};
use ottla_net::clock;

use super::{
    DeliverFuture, Delivery, Inner, RecordMetadata, SendBatchError, TrySendError, max_block::MaxBlock,
};
use crate::wait::{check_may_wait, wait_in_lead};

/// A topic of a producer. A handle saves the lookup of the name for each record. Cheap to clone.
///
/// | call | if the queue is full | returns |
/// |---|---|---|
/// | [`send`](Self::send) | error | when the record is queued |
/// | [`try_send`](Self::try_send) | error, which returns the record | when the record is queued |
/// | [`send_batch`](Self::send_batch) | error, which says how many records were queued | when the records are queued |
/// | [`send_blocking`](Self::send_blocking), [`send_async`](Self::send_async) | wait | when the record is queued |
/// | [`send_tracked`](Self::send_tracked) | error | a future of the delivery |
/// | [`deliver`](Self::deliver), [`deliver_async`](Self::deliver_async) | wait | when the record is delivered |
///
/// A record that is queued keeps its place: records of one thread for one partition are written in the order of the calls.
#[derive(Clone)]
pub struct Topic {
    pub(super) inner: Arc<Inner>,
    pub(super) topic: Arc<ProducerTopic>,
}

impl Topic {
    /// Queues a record, without blocking: copies it into a batch, which is sent when it is full or has lingered.
    ///
    /// The record is lost if this fails; [`Topic::try_send`] returns it.
    #[inline]
    pub fn send(&self, record: Record<'_>) -> Result<(), SendError> {
        self.send_now(&record)
    }

    /// Queues a record as [`Topic::send`] does. The error returns the record: after [`SendError::QueueFull`] the caller can
    /// send it again, or wait for room with [`Topic::send_blocking`] or [`Topic::send_async`].
    ///
    /// ```
    /// # fn retry(topic: &ottla::Topic) -> ottla::Result<()> {
    /// use ottla::{Record, SendError};
    /// if let Err(refused) = topic.try_send(Record::new().key("k").value("v")) {
    ///     match refused.error {
    ///         SendError::QueueFull => topic.send_blocking(refused.record, std::time::Duration::from_secs(10))?,
    ///         error => return Err(error.into()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    #[expect(
        clippy::result_large_err,
        reason = "the error gives the record back, which is what the caller passed"
    )]
    pub fn try_send<'a>(&self, record: Record<'a>) -> Result<(), TrySendError<'a>> {
        match self.send_now(&record) {
            Ok(()) => Ok(()),
            Err(error) => Err(TrySendError { record, error }),
        }
    }

    /// Queues records in their order, without blocking, at a lower cost than one by one. The error has the number of records
    /// that were queued before the one that was refused.
    pub fn send_batch(&self, records: &[Record<'_>]) -> Result<(), SendBatchError> {
        if self.is_intercepted() {
            return self.send_batch_intercepted(records);
        }
        self.send_batch_now(records)
    }

    /// Passes records through the interceptors, and queues those before the first one that is refused.
    fn send_batch_intercepted(&self, records: &[Record<'_>]) -> Result<(), SendBatchError> {
        let outgoing: Vec<_> = records.iter().map(|record| self.intercepted(record.clone())).collect();
        self.send_batch_now(&outgoing.iter().map(PreparedRecord::record).collect::<Vec<_>>())
    }

    fn send_batch_now(&self, records: &[Record<'_>]) -> Result<(), SendBatchError> {
        let (now, wall_ms) = clock::now_and_wall_ms();
        let refused = records.iter().enumerate().find_map(|(number, record)| {
            let error = record.check_timestamp().err()?;
            Some(SendBatchError { taken: number, error })
        });
        let accepted = refused.as_ref().map_or(records.len(), |refused| refused.taken);
        let sent = self.inner.shared.send_batch(&self.topic, now, wall_ms, &records[..accepted]);
        sent.map_err(|(taken, error)| SendBatchError { taken, error })?;
        refused.map_or(Ok(()), Err)
    }

    /// Queues a record. Blocks for at most `timeout` while the queue is full.
    ///
    /// In a delivery callback it fails with [`SendError::WouldDeadlock`] instead of blocking, because the callback's thread
    /// is the one that makes room.
    pub fn send_blocking(&self, record: Record<'_>, timeout: Duration) -> Result<(), SendError> {
        let record = self.intercepted(record);
        match record.with(|record| self.queue(record)) {
            Err(SendError::QueueFull) => {}
            result => return result,
        }
        check_may_wait("send_blocking").map_err(SendError::WouldDeadlock)?;
        wait_in_lead(self.inner.client.leading(), self.send_when_room(record, MaxBlock::none()), timeout)
            .unwrap_or(Err(SendError::QueueFull))
    }

    /// Queues a record as soon as there is room in the queue. Fails with [`SendError::QueueFull`] after `max.block.ms` if that
    /// is set.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, the record was not queued.
    pub async fn send_async(&self, record: Record<'_>) -> Result<(), SendError> {
        self.send_when_room(self.intercepted(record), MaxBlock::new(&self.inner)).await
    }

    /// Queues a record, without blocking, and returns its delivery: a future, or [`Delivery::wait`].
    ///
    /// Records in flight at the same time share batches, so a producer that sends many records awaits their deliveries
    /// later:
    ///
    /// ```
    /// # fn example(topic: &ottla::Topic) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::Record;
    ///
    /// let deliveries: Vec<_> =
    ///     ["a", "b", "c"].iter().map(|value| topic.send_tracked(Record::new().value(value))).collect();
    /// for delivery in deliveries {
    ///     println!("offset {:?}", delivery?.wait(Duration::from_secs(10))?.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_tracked(&self, record: Record<'_>) -> Result<Delivery, SendError> {
        record.check_timestamp()?;
        let _in_caller = self.inner.client.in_caller(false);
        let mut track = None;
        self.intercepted(record).with(|record| {
            let (now, wall_ms) = clock::now_and_wall_ms();
            self.inner.shared.send(&self.topic, now, wall_ms, record, Some(&mut track))
        })?;
        track.map(|track| Delivery::new(self, track)).ok_or(SendError::Closed)
    }

    /// Sends a record and blocks until it is delivered or has failed: for at most `timeout`, the wait for room in the queue
    /// included.
    ///
    /// An error of the kind [`ErrorKind::QueueFull`](crate::ErrorKind::QueueFull) means that there was no room and the
    /// record was not sent. [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut) means that it is sent and may yet be
    /// delivered.
    ///
    /// One record at a time is slow, because each waits for a round trip to the brokers. [`Topic::send_tracked`], or many
    /// [`Topic::deliver_async`] at the same time, fill batches.
    pub fn deliver(&self, record: Record<'_>, timeout: Duration) -> Result<RecordMetadata> {
        check_may_wait("deliver")?;
        self.deliver_async(record).wait(timeout)
    }

    /// Sends a record and resolves when it is delivered or has failed: waits for room in the queue, at most for
    /// `max.block.ms` if that is set, then for the broker's acknowledgement.
    ///
    /// ```
    /// # async fn example(topic: ottla::Topic) -> ottla::Result<()> {
    /// use ottla::Record;
    ///
    /// let written = topic.deliver_async(Record::new().key("k").value("v")).await?;
    /// println!("{} [{}] at offset {:?}", written.topic, written.partition, written.offset);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// The record is queued by the first poll that finds room, as a whole. If the future is dropped before, the record is
    /// not sent. If it is dropped later, the record is delivered nevertheless, and only its result is lost. To cancel with
    /// a timeout or `select!` and to know which it was, keep the future and ask [`DeliverFuture::is_queued`]:
    ///
    /// ```
    /// # async fn timeout<F: Future + Unpin>(_: std::time::Duration, f: F) -> Option<F::Output> { Some(f.await) }
    /// # async fn example(topic: ottla::Topic) -> ottla::Result<()> {
    /// # use ottla::Record;
    /// # let limit = std::time::Duration::from_secs(1);
    /// let mut delivery = topic.deliver_async(Record::new().value("v"));
    /// match timeout(limit, &mut delivery).await {
    ///     Some(result) => println!("{:?}", result?.offset),
    ///     None if delivery.is_queued() => println!("sent, but not acknowledged yet"),
    ///     None => println!("not sent: the queue is full"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn deliver_async<'a>(&self, record: Record<'a>) -> DeliverFuture<'a> {
        DeliverFuture::new(self.clone(), record)
    }

    /// Returns the topic's name.
    pub fn name(&self) -> &str {
        self.topic.name()
    }

    /// Returns the number of partitions; `None` before the first metadata.
    pub fn partition_count(&self) -> Option<i32> {
        self.topic.partition_count()
    }

    /// Returns whether the partition exists and has a leader, by the last metadata.
    pub fn has_leader(&self, partition: i32) -> bool {
        self.topic.has_leader(partition)
    }

    pub(super) fn settings(&self) -> &TopicSettings {
        self.topic.settings()
    }

    pub(super) fn set_linger(&self, linger: Duration) {
        self.inner.shared.set_topic_linger(&self.topic, linger);
    }

    fn is_intercepted(&self) -> bool {
        !self.inner.interceptors.is_empty()
    }

    /// Passes a record through the interceptors.
    pub(super) fn intercepted<'a>(&self, record: Record<'a>) -> PreparedRecord<'a> {
        self.inner.interceptors.on_send(self.name(), record)
    }

    #[inline]
    fn send_now(&self, record: &Record<'_>) -> Result<(), SendError> {
        if self.is_intercepted() {
            return self.send_intercepted(record);
        }
        self.queue(record)
    }

    /// Apart from the path of records without interceptors, whose code stays small.
    #[cold]
    #[inline(never)]
    fn send_intercepted(&self, record: &Record<'_>) -> Result<(), SendError> {
        self.intercepted(record.clone()).with(|record| self.queue(record))
    }

    #[inline]
    fn queue(&self, record: &Record<'_>) -> Result<(), SendError> {
        record.check_timestamp()?;
        let _in_caller = self.inner.client.in_caller(false);
        let (now, wall_ms) = clock::now_and_wall_ms();
        self.inner.shared.send(&self.topic, now, wall_ms, record, None)
    }

    fn send_when_room<'a>(
        &'a self,
        record: PreparedRecord<'a>,
        mut limit: MaxBlock,
    ) -> impl Future<Output = Result<(), SendError>> + 'a {
        let mut waiter = Waiter::default();
        poll_fn(move |context| {
            let (now, wall_ms) = clock::now_and_wall_ms();
            let register = |budget: &Arc<Budget>| budget.register(&mut waiter, context.waker());
            let sent = record.with(|record| {
                if let Err(error) = record.check_timestamp() {
                    return Poll::Ready(Err(error));
                }
                self.inner.shared.poll_send(&self.topic, now, wall_ms, record, None, register)
            });
            limit.apply(&self.inner, context, sent)
        })
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("name", &self.name())
            .field("partitions", &self.partition_count())
            .field("producer", &self.inner.client.name())
            .finish_non_exhaustive()
    }
}
