//! What the application's threads and the owners share of a consumer: the settings, the partitions, the queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    FetchCommand, Start,
    deliver::ConsumerEvent,
    partition::{PartitionHandle, PrefetchLimits},
    position::Offset,
    queue::{FetchQueue, Item},
};
use crate::{
    completion::Completion,
    config::{IsolationLevel, OffsetReset, TopicRecreatePolicy},
    error::{Error, ErrorKind},
    mutation::Mutation,
    stats::Statistics,
    sync::{Mutex, atomic::AtomicUsize},
};

/// What a consumer needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct ConsumerSettings {
    /// `fetch.wait.max.ms`.
    pub fetch_wait_max: Duration,
    /// `fetch.min.bytes`.
    pub fetch_min_bytes: i32,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: i32,
    /// `max.partition.fetch.bytes`.
    pub partition_fetch_max_bytes: i32,
    /// `fetch.error.backoff.ms`.
    pub fetch_error_backoff: Duration,
    /// `queued.min.messages` per partition; `queued.max.messages.kbytes`, in bytes, for all of them together.
    pub prefetch: PrefetchLimits,
    /// `auto.offset.reset`.
    pub auto_offset_reset: OffsetReset,
    /// `group.id`.
    pub group_id: Option<String>,
    /// `topic.recreate.policy`.
    pub topic_recreate: TopicRecreatePolicy,
    /// `enable.partition.eof`.
    pub partition_eof: bool,
    /// `check.crcs`.
    pub check_crcs: bool,
    /// `isolation.level`.
    pub isolation_level: IsolationLevel,
    /// `client.rack`.
    pub rack: String,
    /// `socket.timeout.ms`: how long a broker may take to answer, on top of what it is told to wait.
    pub answer_timeout: Duration,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `receive.message.max.bytes`: a batch that decompresses to more is refused.
    pub max_batch_bytes: usize,
    /// A deliberate mistake, for the simulator's tests.
    pub mutation: Mutation,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        Self {
            fetch_wait_max: Duration::from_millis(500),
            fetch_min_bytes: 1,
            fetch_max_bytes: 52_428_800,
            partition_fetch_max_bytes: 1_048_576,
            fetch_error_backoff: Duration::from_millis(500),
            prefetch: PrefetchLimits { messages: 100_000, bytes: 65_536 * 1024 },
            auto_offset_reset: OffsetReset::End,
            group_id: None,
            topic_recreate: TopicRecreatePolicy::Error,
            partition_eof: false,
            check_crcs: true,
            isolation_level: IsolationLevel::ReadCommitted,
            rack: String::new(),
            answer_timeout: Duration::from_secs(60),
            retry_backoff: Duration::from_millis(100),
            max_batch_bytes: 100_000_000,
            mutation: Mutation::NONE,
        }
    }
}

/// The partitions that are consumed.
type Handles = BTreeMap<(Arc<str>, i32), Arc<PartitionHandle>>;

/// What the threads of a consumer share.
#[derive(Debug)]
pub struct ConsumerShared {
    /// The settings.
    pub settings: ConsumerSettings,
    /// The way to the application.
    pub queue: Arc<FetchQueue>,
    /// How many brokers have partitions to fetch: they share the client's bytes.
    pub(crate) fetchers: AtomicUsize,
    partitions: Mutex<Handles>,
    /// Topics with an `auto.offset.reset` of their own.
    resets: Mutex<BTreeMap<Arc<str>, OffsetReset>>,
}

impl ConsumerShared {
    /// A consumer's shared half.
    pub fn new(settings: ConsumerSettings) -> Self {
        Self {
            queue: Arc::new(FetchQueue::new(settings.prefetch).mutated(settings.mutation)),
            fetchers: AtomicUsize::new(0),
            partitions: Mutex::default(),
            resets: Mutex::default(),
            settings,
        }
    }

    /// From now on a topic goes on there when its offset isn't there (any more).
    pub fn set_auto_offset_reset(&self, topic: &str, reset: OffsetReset) {
        self.resets.lock().insert(Arc::from(topic), reset);
    }

    /// Where a topic goes on when its offset isn't there (any more).
    pub(crate) fn auto_offset_reset(&self, topic: &str) -> OffsetReset {
        self.resets.lock().get(topic).copied().unwrap_or(self.settings.auto_offset_reset)
    }

    /// Adds what the application's threads see to a snapshot.
    pub(crate) fn add_statistics(&self, statistics: &mut Statistics) {
        for ((topic, partition), handle) in &*self.partitions.lock() {
            handle.add_statistics(statistics.partition(topic, *partition));
        }
    }

    /// Replaces what is fetched. Partitions that stay start again where `list` says.
    pub fn assign(&self, list: &[(Arc<str>, i32, Offset)]) -> Vec<FetchCommand> {
        let mut partitions = self.partitions.lock();
        let staying: BTreeSet<(&str, i32)> =
            list.iter().map(|(topic, partition, _)| (&**topic, *partition)).collect();
        let stopped = partitions
            .extract_if(.., |(topic, partition), _| !staying.contains(&(&**topic, *partition)))
            .map(|(_, handle)| handle)
            .collect();
        vec![self.stop(stopped), self.start(&mut partitions, list)]
    }

    /// Adds to what is fetched.
    pub fn incremental_assign(&self, list: &[(Arc<str>, i32, Offset)]) -> FetchCommand {
        self.start(&mut self.partitions.lock(), list)
    }

    /// Takes away from what is fetched; an error names a partition that was not.
    pub fn incremental_unassign(&self, list: &[(Arc<str>, i32)]) -> Result<FetchCommand, Error> {
        let mut partitions = self.partitions.lock();
        let mut stopped = Vec::with_capacity(list.len());
        for (topic, partition) in list {
            let handle = partitions.get(&(Arc::clone(topic), *partition));
            stopped.push(Arc::clone(handle.ok_or_else(|| not_assigned(topic, *partition))?));
        }
        for (topic, partition) in list {
            partitions.remove(&(Arc::clone(topic), *partition));
        }
        Ok(self.stop(stopped))
    }

    /// What is fetched.
    pub fn assignment(&self) -> Vec<(Arc<str>, i32)> {
        self.partitions.lock().keys().cloned().collect()
    }

    /// A partition that is fetched.
    pub fn partition(&self, topic: &str, partition: i32) -> Result<Arc<PartitionHandle>, Error> {
        let partitions = self.partitions.lock();
        let handle = partitions.get(&(Arc::from(topic), partition));
        handle.cloned().ok_or_else(|| not_assigned(topic, partition))
    }

    /// Goes on from another place; what was fetched of the partition vanishes. `done` is told the offset.
    pub fn seek(
        &self,
        topic: &str,
        partition: i32,
        from: Offset,
        done: Option<Completion<Result<i64, Error>>>,
    ) -> Result<FetchCommand, Error> {
        let handle = self.partition(topic, partition)?;
        let version = self.queue.outdate(&handle, from.known());
        Ok(FetchCommand::Start(vec![Start { handle, version, from, done }]))
    }

    /// Only who asks for this route is handed the partition from now on; 0 is everybody.
    pub fn set_route(&self, topic: &str, partition: i32, route: u64) -> Result<(), Error> {
        self.queue.set_route(&*self.partition(topic, partition)?, route);
        Ok(())
    }

    /// Nothing of these partitions is handed out from now on; what is fetched of them is kept.
    pub fn pause(&self, list: &[(&str, i32)]) -> Result<(), Error> {
        self.queue.pause(&self.handles(list)?);
        Ok(())
    }

    /// Hands these partitions out again, beginning with what was fetched before they were paused.
    pub fn resume(&self, list: &[(&str, i32)]) -> Result<(), Error> {
        self.queue.resume(&self.handles(list)?);
        Ok(())
    }

    /// Tells the application something that belongs to no partition.
    pub(crate) fn tell(&self, error: Error) {
        self.queue.push([Item::Event(ConsumerEvent::Error(error))]);
    }

    /// Tells the application something about a partition, unless it is out of date when its turn comes.
    pub(crate) fn tell_of(&self, handle: &Arc<PartitionHandle>, version: u64, error: Error) {
        let event = ConsumerEvent::Error(error.with_partition(&**handle.topic(), handle.partition()));
        self.queue.push([Item::Note { handle: Arc::clone(handle), version, event }]);
    }

    fn start(&self, partitions: &mut Handles, list: &[(Arc<str>, i32, Offset)]) -> FetchCommand {
        let start = |(topic, partition, from): &(Arc<str>, i32, Offset)| {
            let handle = partitions
                .entry((Arc::clone(topic), *partition))
                .or_insert_with(|| Arc::new(PartitionHandle::new(Arc::clone(topic), *partition)));
            let version = self.queue.outdate(handle, from.known());
            Start { handle: Arc::clone(handle), version, from: *from, done: None }
        };
        FetchCommand::Start(list.iter().map(start).collect())
    }

    fn stop(&self, handles: Vec<Arc<PartitionHandle>>) -> FetchCommand {
        for handle in &handles {
            self.queue.outdate(handle, -1);
        }
        FetchCommand::Stop(handles)
    }

    fn handles(&self, list: &[(&str, i32)]) -> Result<Vec<Arc<PartitionHandle>>, Error> {
        list.iter().map(|(topic, partition)| self.partition(topic, *partition)).collect()
    }
}

impl Offset {
    /// The offset where it is known without asking, else -1.
    const fn known(self) -> i64 {
        match self {
            Self::At(offset) => offset,
            _ => -1,
        }
    }
}

fn not_assigned(topic: &str, partition: i32) -> Error {
    Error::new(ErrorKind::State, "the partition is not assigned to this consumer")
        .with_partition(topic, partition)
}
