//! The consumer: thin over `ottla_core::fetch`, which has the behaviour.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_core::Stream;
use ottla_core::{
    cluster::{command::Command, reminders::Reminder},
    completion::{Waiting, completion},
    config::{ConsumerView, OffsetReset},
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    fetch::{
        FetchCommand,
        deliver::{ConsumerEvent, Message, Next, PieceWalk, RecordCursor, Records},
        offsets::{ListedOffset, OffsetQuery, OffsetSpec},
        partition::PrefetchLimits,
        position::Offset,
        shared::{ConsumerSettings, ConsumerShared},
        stored::{CommitAnswer, CommittedAnswer, GroupCall, GroupCallKind, GroupOffset},
    },
    observer::Observer,
    stats::Statistics,
};
use ottla_net::Transport;
use parking_lot::Mutex;

use crate::{
    admin::Admin,
    config::Config,
    producer::{STATISTICS_TIMEOUT, check_topic_name, config_error},
    start,
    wait::wait_for,
};

/// Reads records of the partitions that it is assigned. Cheap to clone; all clones read from the same queue.
///
/// [`Consumer::poll`] hands out many records at once, as views into the bytes that came from the socket; it is the fast
/// way. [`Consumer::next`] hands out one record after the other. What a call can't be blamed for comes as an event, with
/// the records or from [`Consumer::poll_event`].
#[derive(Clone, Debug)]
pub struct Consumer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<ConsumerShared>,
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
    /// What [`Consumer::next`] took from the queue and did not hand out yet.
    single: Mutex<Single>,
    warnings: Vec<String>,
}

#[derive(Debug, Default)]
struct Single {
    cursor: RecordCursor,
    /// Events that came between single records.
    events: std::collections::VecDeque<ConsumerEvent>,
}

impl Single {
    fn keep(&mut self, event: ConsumerEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// A poll takes no further partition's records when it has this many bytes.
const ENOUGH_BYTES: usize = 1 << 20;
/// Events between single records beyond this are dropped, oldest first, when nobody asks for them.
const MAX_EVENTS: usize = 1000;

/// Makes a [`Consumer`].
pub struct ConsumerBuilder<'a> {
    config: &'a Config,
    hooks: start::Hooks,
}

impl ConsumerBuilder<'_> {
    /// Calls `on_statistics` every `statistics.interval.ms`. It runs on an I/O thread: it must not block.
    #[must_use]
    pub fn on_statistics(mut self, on_statistics: impl Fn(Statistics) + Send + Sync + 'static) -> Self {
        self.hooks.statistics = Some(Box::new(on_statistics));
        self
    }

    /// Lets `transport` make and close the sockets and find hosts' addresses, in place of the system.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.hooks.transport = Some(transport);
        self
    }

    /// Shows `observer` what passes on the connections.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.hooks.observer = Some(observer);
        self
    }

    /// Starts the consumer.
    pub fn build(self) -> Result<Consumer> {
        Consumer::start(self.config, self.hooks)
    }
}

impl std::fmt::Debug for ConsumerBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConsumerBuilder")
    }
}

/// A seek that goes on by itself. See [`Consumer::seek_begin`].
#[derive(Debug)]
pub struct Seek {
    waiting: Waiting<Result<i64>>,
    topic: Arc<str>,
    partition: i32,
}

impl Seek {
    /// Waits until the place's offset is known, and answers it.
    pub fn wait(self, timeout: Duration) -> Result<i64> {
        match wait_for(self.waiting, timeout) {
            Some(Some(result)) => result,
            Some(None) => Err(Error::new(ErrorKind::State, "the partition was assigned anew meanwhile")),
            None => Err(Error::new(ErrorKind::TimedOut, "the offset is not known yet; the seek goes on")),
        }
        .map_err(|error| error.with_partition(&*self.topic, self.partition))
    }
}

impl Consumer {
    /// A consumer without partitions.
    pub fn new(config: &Config) -> Result<Self> {
        Self::builder(config).build()
    }

    /// A consumer with callbacks.
    pub fn builder(config: &Config) -> ConsumerBuilder<'_> {
        ConsumerBuilder { config, hooks: start::Hooks::default() }
    }

    fn start(config: &Config, hooks: start::Hooks) -> Result<Self> {
        let view = ConsumerView::new(config.raw()).map_err(config_error)?;
        view.client.require_servers().map_err(config_error)?;
        let shared = Arc::new(ConsumerShared::new(settings(&view)));
        let events = Arc::new(EventQueue::default());
        let seed = start::seeded_rng().next_u64();
        let client =
            start::client(&view.client, None, Some(Arc::clone(&shared)), Arc::clone(&events), hooks, seed)?;
        let client = Arc::new(client);
        let warnings = view.client.warnings;
        Ok(Self { inner: Arc::new(Inner { shared, client, events, single: Mutex::default(), warnings }) })
    }

    /// What was counted so far; see STATISTICS.md. It must not be called from a callback.
    pub fn statistics(&self) -> Result<Statistics> {
        self.inner.client.statistics(STATISTICS_TIMEOUT)
    }

    /// Reads these partitions from here on, and no others. Partitions that it read already start again, too.
    pub fn assign(&self, partitions: &[(impl AsRef<str>, i32, Offset)]) -> Result<()> {
        let list = self.check_places(partitions)?;
        self.inner.shared.assign(&list).into_iter().for_each(|command| self.command(command));
        Ok(())
    }

    /// Reads these partitions, too.
    pub fn incremental_assign(&self, partitions: &[(impl AsRef<str>, i32, Offset)]) -> Result<()> {
        let list = self.check_places(partitions)?;
        self.command(self.inner.shared.incremental_assign(&list));
        Ok(())
    }

    /// Reads these partitions no more.
    pub fn incremental_unassign(&self, partitions: &[(impl AsRef<str>, i32)]) -> Result<()> {
        let list: Vec<(Arc<str>, i32)> =
            partitions.iter().map(|(t, p)| (Arc::from(t.as_ref()), *p)).collect();
        self.command(self.inner.shared.incremental_unassign(&list)?);
        Ok(())
    }

    /// What it reads.
    pub fn assignment(&self) -> Vec<(String, i32)> {
        self.inner
            .shared
            .assignment()
            .into_iter()
            .map(|(topic, partition)| (topic.to_string(), partition))
            .collect()
    }

    /// Records and events, as soon as there is one, or nothing when the time is over. Positions then stand behind the
    /// records.
    pub fn poll(&self, timeout: Duration) -> Result<Records> {
        wait_for(self.poll_async(), timeout).unwrap_or_else(|| Ok(Records::default()))
    }

    /// Records and events, as soon as there is one.
    pub fn poll_async(&self) -> impl Future<Output = Result<Records>> + Send + use<> {
        let consumer = self.clone();
        poll_fn(move |context| consumer.poll_records(context))
    }

    /// The next record, or `None` when the time is over. An error of a partition is the call's error; it goes on with
    /// the next call. Everything else waits at [`Consumer::poll_event`].
    pub fn next(&self, timeout: Duration) -> Result<Option<Message>> {
        // Most records are there already: no waker is needed for them, and no clock.
        if let Some(result) = self.take_next() {
            return result.map(Some);
        }
        match wait_for(self.recv(), timeout) {
            Some(result) => result.map(Some),
            None => Ok(None),
        }
    }

    /// The next record, as soon as there is one. See [`Consumer::next`].
    pub fn recv(&self) -> impl Future<Output = Result<Message>> + Send + use<> {
        let consumer = self.clone();
        poll_fn(move |context| consumer.poll_next(context))
    }

    /// The records one after the other, as [`Consumer::recv`] gives them; it ends when the consumer is closed.
    pub fn stream(&self) -> MessageStream {
        MessageStream { consumer: self.clone() }
    }

    /// The oldest event that neither [`Consumer::poll`] nor [`Consumer::next`] handed out.
    pub fn poll_event(&self) -> Option<ConsumerEvent> {
        let kept = self.inner.single.lock().events.pop_front();
        kept.or_else(|| std::iter::from_fn(|| self.inner.events.pop()).find_map(consumer_event))
    }

    /// The oldest event of the client that none of the calls above handed out: connections that failed and the like.
    pub fn poll_client_event(&self) -> Option<Event> {
        self.inner.events.pop()
    }

    /// Asks to be woken by the client's next event; true if none waits already.
    pub fn register_events(&self, waker: &Waker) -> bool {
        self.inner.events.register(waker)
    }

    /// An admin client on this consumer's connections.
    pub fn admin(&self) -> Admin {
        Admin::of(Arc::clone(&self.inner.client), Arc::clone(&self.inner.events))
    }

    /// Hands what comes of a partition to [`Consumer::take`] with this route from now on, and no longer to others. Route
    /// 0 is everybody's.
    pub fn set_route(&self, topic: &str, partition: i32, route: u64) -> Result<()> {
        self.inner.shared.set_route(topic, partition, route)
    }

    /// Takes, without waiting, what came for a route, until it is `enough` bytes. Positions stay: the caller moves them
    /// with what it hands out ([`PieceWalk`]).
    pub fn take(&self, route: u64, enough: usize) -> Records {
        let mut records = Records::default();
        self.inner.shared.queue.take_route(route, enough, &mut records);
        records
    }

    /// Asks to be woken when something comes for a route; false if there is something, or nothing will come any more.
    pub fn register(&self, route: u64, waker: &Waker) -> bool {
        self.inner.shared.queue.register_route(route, waker)
    }

    /// Gives back what was taken of a partition that was paused meanwhile.
    pub fn set_aside(&self, walk: PieceWalk) {
        if let Some(rest) = walk.rest() {
            self.inner.shared.queue.set_aside(rest);
        }
    }

    /// Goes on from another place: nothing that was fetched before comes any more. Waits until the place's offset is
    /// known and answers it; with a timeout of zero it does not wait, and answers an offset only where it was given.
    pub fn seek(&self, topic: &str, partition: i32, from: Offset, timeout: Duration) -> Result<Option<i64>> {
        self.check_place(topic, partition, from)?;
        if timeout.is_zero() {
            self.command(self.inner.shared.seek(topic, partition, from, None)?);
            return Ok(if let Offset::At(offset) = from { Some(offset) } else { None });
        }
        self.seek_begin(topic, partition, from)?.wait(timeout).map(Some)
    }

    /// The same without waiting: many partitions can be sought at once, and waited for after that.
    pub fn seek_begin(&self, topic: &str, partition: i32, from: Offset) -> Result<Seek> {
        self.check_place(topic, partition, from)?;
        let (done, waiting) = completion();
        self.command(self.inner.shared.seek(topic, partition, from, Some(done))?);
        Ok(Seek { waiting, topic: topic.into(), partition })
    }

    /// Gives a topic an `auto.offset.reset` of its own, as from a topic's configuration.
    pub fn set_auto_offset_reset(&self, topic: &str, reset: OffsetReset) {
        self.inner.shared.set_auto_offset_reset(topic, reset);
    }

    /// Nothing of these partitions is handed out from now on. What is fetched of them already is kept.
    pub fn pause(&self, partitions: &[(&str, i32)]) -> Result<()> {
        self.inner.shared.pause(partitions)
    }

    /// Hands these partitions out again, beginning with what was fetched before.
    pub fn resume(&self, partitions: &[(&str, i32)]) -> Result<()> {
        self.inner.shared.resume(partitions)
    }

    /// More servers to start from. See [`Producer::add_bootstrap_servers`](crate::Producer::add_bootstrap_servers).
    pub fn add_bootstrap_servers(&self, servers: &str) -> Result<()> {
        self.inner.client.add_servers(servers)
    }

    /// The offset behind the last record that was handed out, or where the first one will be looked for; `None` while
    /// that is not known.
    pub fn position(&self, topic: &str, partition: i32) -> Option<i64> {
        self.inner.shared.partition(topic, partition).ok()?.position()
    }

    /// The lowest and the highest offset of a partition, asked from its leader. It need not be assigned.
    pub fn watermarks(&self, topic: &str, partition: i32, timeout: Duration) -> Result<(i64, i64)> {
        let questions = [(topic, partition, OffsetSpec::Earliest), (topic, partition, OffsetSpec::Latest)];
        let mut answers = self.list_offsets(&questions, timeout)?.into_iter();
        let mut next =
            || answers.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Bug, "an answer is missing")));
        Ok((next()?.offset, next()?.offset))
    }

    /// The lowest and the highest offset as the last fetch told them, without asking anybody.
    pub fn cached_watermarks(&self, topic: &str, partition: i32) -> Option<(i64, i64)> {
        self.inner.shared.partition(topic, partition).ok()?.watermarks()
    }

    /// Asks the leaders for offsets; the answers come in the order of the questions.
    pub fn list_offsets(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> Result<Vec<Result<ListedOffset>>> {
        let asked = self.list_offsets_async(questions, timeout)?;
        // The client itself gives up after `timeout`; the answer then needs a moment to come here.
        wait_for(asked, timeout + Duration::from_secs(1))
            .unwrap_or_else(|| Err(Error::new(ErrorKind::TimedOut, "no answer from the I/O threads")))
    }

    /// Asks the leaders for offsets. Bad input is an error at once.
    pub fn list_offsets_async(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<Vec<Result<ListedOffset>>>> + Send + use<>> {
        let query = offset_query(questions, timeout)?;
        let (done, waiting) = completion();
        self.command(FetchCommand::ListOffsets(query, done));
        Ok(async move { waiting.await.ok_or_else(closed) })
    }

    /// Commits offsets for the group of `group.id`, as no member of it: the group must have no members.
    pub fn commit(&self, offsets: &[GroupOffset], timeout: Duration) -> CommitAnswer {
        // The client itself gives up after `timeout`; the answer then needs a moment to come here.
        wait_for(self.commit_async(offsets, timeout), timeout + Duration::from_secs(1))
            .unwrap_or_else(|| Err(Error::new(ErrorKind::TimedOut, "no answer from the I/O threads")))
    }

    /// Commits offsets; it is on its way when this returns, whether the answer is waited for or not.
    pub fn commit_async(
        &self,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> impl Future<Output = CommitAnswer> + Send + use<> {
        let (done, waiting) = completion();
        let kind = GroupCallKind::Commit(offsets.to_vec(), done);
        self.command(FetchCommand::Group(GroupCall { timeout, kind }));
        async move { waiting.await.unwrap_or_else(|| Err(closed())) }
    }

    /// Resolves after so long, on an I/O thread; to `false`, and sooner, if the consumer ends before.
    pub fn after(&self, time: Duration) -> impl Future<Output = bool> + Send + use<> {
        let (done, waiting) = completion();
        self.inner.client.command(Command::Remind(Reminder { after: time, done }));
        async move { waiting.await.is_some() }
    }

    /// What is committed for the group of `group.id`.
    pub fn committed(&self, partitions: &[(&str, i32)], timeout: Duration) -> CommittedAnswer {
        let (done, waiting) = completion();
        let partitions = partitions.iter().map(|(topic, partition)| (Arc::from(*topic), *partition));
        let kind = GroupCallKind::Committed(partitions.collect(), done);
        self.command(FetchCommand::Group(GroupCall { timeout, kind }));
        match wait_for(waiting, timeout + Duration::from_secs(1)) {
            Some(answer) => answer.unwrap_or_else(|| Err(closed())),
            None => Err(Error::new(ErrorKind::TimedOut, "no answer from the I/O threads")),
        }
    }

    /// True once it is closed: nothing will come any more.
    pub fn is_closed(&self) -> bool {
        self.inner.shared.queue.is_closed()
    }

    /// Closes: connections go, and whoever waits gets an error.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.inner.shared.queue.close();
        self.inner.client.end(timeout)
    }

    /// The I/O threads are not waited for any more.
    #[doc(hidden)]
    pub fn give_up(&self) {
        self.inner.client.give_up();
    }

    /// What the configuration is odd about, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// How many I/O threads the process's clients share.
    pub fn io_threads(&self) -> usize {
        self.inner.client.threads()
    }

    fn command(&self, command: FetchCommand) {
        self.inner.client.command(Command::Fetch(command));
    }

    fn poll_records(&self, context: &mut Context<'_>) -> Poll<Result<Records>> {
        let queue = &self.inner.shared.queue;
        loop {
            let mut records = Records::default();
            {
                let mut single = self.inner.single.lock();
                single.cursor.take(&mut records, queue);
                single.events.drain(..).for_each(|event| records.push_event(event));
            }
            queue.take(ENOUGH_BYTES, &mut records);
            while let Some(event) = self.inner.events.pop() {
                if let Some(event) = consumer_event(event) {
                    records.push_event(event);
                }
            }
            if !records.is_empty() {
                return Poll::Ready(Ok(records));
            }
            if self.sleep(context)? {
                return Poll::Pending;
            }
        }
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Result<Message>> {
        loop {
            if let Some(result) = self.take_next() {
                return Poll::Ready(result);
            }
            if self.sleep_single(context)? {
                return Poll::Pending;
            }
        }
    }

    /// The next record, if it is there.
    #[inline]
    fn take_next(&self) -> Option<Result<Message>> {
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
            let mut records = Records::default();
            queue.take_without_position(1, &mut records);
            if records.piece_count() == 0 && records.events().is_empty() {
                return None;
            }
            single.cursor.push(records);
        }
    }

    fn check_places(
        &self,
        partitions: &[(impl AsRef<str>, i32, Offset)],
    ) -> Result<Vec<(Arc<str>, i32, Offset)>> {
        let checked = partitions.iter().map(|(topic, partition, from)| {
            self.check_place(topic.as_ref(), *partition, *from)
                .map(|()| (Arc::from(topic.as_ref()), *partition, *from))
        });
        checked.collect()
    }

    fn check_place(&self, topic: &str, partition: i32, from: Offset) -> Result<()> {
        check_partition(topic, partition)?;
        let reason = match from.invalid() {
            None if from == Offset::Stored && self.inner.shared.settings.group_id.is_none() => {
                "no offset is committed without a group; set group.id"
            }
            None => return Ok(()),
            Some(reason) => reason,
        };
        let error = Error::new(ErrorKind::InvalidArgument, format!("{reason}: {from:?}"));
        Err(error.with_partition(topic, partition))
    }

    /// Registers to be woken; false if there is something to look at already.
    fn sleep(&self, context: &Context<'_>) -> Result<bool> {
        self.inner.events.register(context.waker());
        if self.inner.shared.queue.register(context.waker()) {
            // An event may have come before the registration.
            return Ok(self.inner.events.is_empty());
        }
        if self.inner.shared.queue.is_closed() { Err(closed()) } else { Ok(false) }
    }

    fn sleep_single(&self, context: &Context<'_>) -> Result<bool> {
        if self.inner.shared.queue.register(context.waker()) {
            return Ok(true);
        }
        if self.inner.shared.queue.is_closed() { Err(closed()) } else { Ok(false) }
    }
}

/// The records of a [`Consumer`], one after the other. An error of a partition is an item; the stream goes on after it.
#[derive(Clone, Debug)]
pub struct MessageStream {
    consumer: Consumer,
}

impl Stream for MessageStream {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        match self.consumer.poll_next(context) {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Closed => Poll::Ready(None),
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn settings(view: &ConsumerView) -> ConsumerSettings {
    ConsumerSettings {
        fetch_wait_max: view.fetch_wait_max,
        fetch_min_bytes: view.fetch_min_bytes,
        fetch_max_bytes: view.fetch_max_bytes,
        partition_fetch_max_bytes: view.partition_fetch_max_bytes,
        fetch_error_backoff: view.fetch_error_backoff,
        prefetch: PrefetchLimits { messages: view.queued_min_messages, bytes: view.queued_max_bytes },
        auto_offset_reset: view.auto_offset_reset,
        group_id: view.group_id.clone(),
        topic_recreate: view.topic_recreate,
        partition_eof: view.partition_eof,
        check_crcs: view.check_crcs,
        isolation_level: view.isolation_level,
        rack: view.client.client_rack.clone().unwrap_or_default(),
        answer_timeout: view.client.socket_timeout,
        retry_backoff: view.client.retry_backoff,
        max_batch_bytes: view.client.receive_message_max_bytes,
        mutation: ottla_core::mutation::Mutation::NONE,
    }
}

/// What an event is for who reads records; a throttle concerns the client alone.
fn consumer_event(event: Event) -> Option<ConsumerEvent> {
    Some(match event {
        Event::Throttled(_) => return None,
        Event::Error(error) | Event::AllBrokersDown(error) => ConsumerEvent::Error(error),
        Event::TopicRecreated(topic) => ConsumerEvent::TopicRecreated(topic),
        other => ConsumerEvent::Error(Error::new(
            ErrorKind::Bug,
            format!("an event without a name here: {other:?}"),
        )),
    })
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "")
}

/// A query whose names and numbers make sense.
pub(crate) fn offset_query(questions: &[(&str, i32, OffsetSpec)], timeout: Duration) -> Result<OffsetQuery> {
    let questions = questions.iter().map(|(topic, partition, spec)| {
        check_partition(topic, *partition)?;
        if matches!(spec, OffsetSpec::Timestamp(ms) if *ms < 0) {
            let error = Error::new(ErrorKind::InvalidArgument, "a timestamp is at least 0 ms");
            return Err(error.with_partition(*topic, *partition));
        }
        Ok((Arc::from(*topic), *partition, *spec))
    });
    Ok(OffsetQuery { questions: questions.collect::<Result<_>>()?, timeout, read_committed: false })
}

fn check_partition(topic: &str, partition: i32) -> Result<()> {
    check_topic_name(topic)?;
    if partition < 0 {
        let error = Error::new(ErrorKind::InvalidArgument, "a partition's number is at least 0");
        return Err(error.with_partition(topic, partition));
    }
    Ok(())
}
