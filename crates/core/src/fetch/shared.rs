//! The state of a consumer that the application's threads and the actors share: settings, partitions, queue.

use std::sync::Arc;

use ottla_protocol::{
    uuid::Uuid,
    vocabulary::{LeaderEpoch, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    FetchCommand, Start,
    assignment::AssignmentVersion,
    deliver::{ConsumerEvent, FetchedRecords, Message, Records},
    partition::{PartitionHandle, StoredOffset},
    position::Offset,
    queue::{FetchQueue, Item},
    settings::ConsumerSettings,
};
use crate::{
    completion::Completion,
    config::OffsetReset,
    error::{Error, ErrorKind},
    machine::Instant,
    offsets::committed::GroupOffset,
    stats::{ConsumerStatistics, Purpose, Statistics, idle::IdleTime},
    sync::{Mutex, atomic::AtomicUsize},
};

/// The consumed partitions.
type Handles = SortedMap<TopicPartition, Arc<PartitionHandle>>;

/// The shared state of a consumer.
#[derive(Debug)]
pub struct ConsumerShared {
    /// The settings.
    pub settings: ConsumerSettings,
    /// The queue to the application.
    pub queue: Arc<FetchQueue>,
    /// The time that the application waits in polls.
    pub idle: IdleTime,
    /// The number of broker actors with partitions to fetch, which share the client's prefetch budget.
    pub(crate) fetchers: AtomicUsize,
    partitions: Mutex<Handles>,
    /// The topics with an `auto.offset.reset` of their own.
    resets: Mutex<SortedMap<Arc<str>, OffsetReset>>,
    /// The IDs of the topics that exist, for offsets in transactions.
    topic_ids: Mutex<Arc<SortedMap<Arc<str>, Uuid>>>,
}

impl ConsumerShared {
    /// Creates the shared state of a consumer without partitions.
    pub fn new(settings: ConsumerSettings) -> Self {
        Self {
            queue: Arc::new(FetchQueue::new(settings.prefetch, settings.damaged_batch, settings.max_memory)),
            idle: IdleTime::new(),
            fetchers: AtomicUsize::new(0),
            partitions: Mutex::default(),
            resets: Mutex::default(),
            topic_ids: Mutex::default(),
            settings,
        }
    }

    /// Sets the IDs of the topics that exist, by name.
    pub(crate) fn set_topic_ids(&self, ids: Arc<SortedMap<Arc<str>, Uuid>>) {
        *self.topic_ids.lock() = ids;
    }

    /// Returns the IDs of the topics that exist, by name, as far as the consumer of a group knows them.
    pub fn topic_ids(&self) -> Arc<SortedMap<Arc<str>, Uuid>> {
        Arc::clone(&self.topic_ids.lock())
    }

    /// Sets the reset position of a topic, for offsets that do not exist (any more).
    pub fn set_auto_offset_reset(&self, topic: &str, reset: OffsetReset) {
        self.resets.lock().insert(Arc::from(topic), reset);
    }

    /// Returns the reset position of a topic, for offsets that do not exist (any more).
    pub(crate) fn auto_offset_reset(&self, topic: &str) -> OffsetReset {
        self.resets.lock().get(topic).copied().unwrap_or(self.settings.auto_offset_reset)
    }

    /// Returns the position of a topic for offsets that do not exist (any more); `None` if `auto.offset.reset` is `error`.
    pub(crate) fn reset_position(&self, now: Instant, topic: &str) -> Option<Offset> {
        match self.auto_offset_reset(topic) {
            OffsetReset::Beginning => Some(Offset::Beginning),
            OffsetReset::End => Some(Offset::End),
            OffsetReset::Since(duration) => {
                let now_ms = self.settings.wall_clock.unix_nanos(now) / 1_000_000;
                let since = u128::from(now_ms).saturating_sub(duration.as_millis());
                Some(Offset::Timestamp(i64::try_from(since).unwrap_or(0)))
            }
            OffsetReset::Error => None,
        }
    }

    /// Adds the statistics of the partitions and the queue to a snapshot; for a push only their sums.
    pub(crate) fn add_statistics(&self, now: Instant, purpose: Purpose, statistics: &mut Statistics) {
        let mut consumer = ConsumerStatistics {
            poll_idle: i64::try_from(self.idle.total(now).as_micros()).unwrap_or(i64::MAX),
            max_lag: -1,
            ..ConsumerStatistics::default()
        };
        for (key, handle) in &*self.partitions.lock() {
            consumer.max_lag = consumer.max_lag.max(handle.application_lag(self.settings.isolation_level));
            if purpose == Purpose::Push {
                handle.add_received(statistics);
                continue;
            }
            let entry = statistics.partition(&key.topic, key.partition);
            handle.add_statistics(entry, self.settings.isolation_level);
        }
        statistics.consumer = Some(consumer);
    }

    /// Replaces the assignment. Partitions that stay restart at the positions of `list`.
    pub fn assign(&self, list: &[(TopicPartition, Offset)]) -> Vec<FetchCommand> {
        let mut partitions = self.partitions.lock();
        let staying: SortedSet<&TopicPartition> = list.iter().map(|(key, _)| key).collect();
        let stopped = partitions.extract(|key, _| !staying.contains(key));
        let stopped = stopped.into_iter().map(|(_, handle)| handle).collect();
        vec![self.stop(stopped), self.start(&mut partitions, list)]
    }

    /// Adds partitions to the assignment.
    pub fn incremental_assign(&self, list: &[(TopicPartition, Offset)]) -> FetchCommand {
        self.start(&mut self.partitions.lock(), list)
    }

    /// Removes partitions from the assignment. Error: the first partition that is not assigned.
    pub fn incremental_unassign(&self, list: &[TopicPartition]) -> Result<FetchCommand, Error> {
        let mut partitions = self.partitions.lock();
        let mut stopped = Vec::with_capacity(list.len());
        for key in list {
            let handle = partitions.get(key);
            stopped.push(Arc::clone(handle.ok_or_else(|| not_assigned(&key.topic, key.partition))?));
        }
        for key in list {
            partitions.remove(key);
        }
        Ok(self.stop(stopped))
    }

    /// Removes the assigned ones of these partitions from the assignment.
    pub(crate) fn unassign(&self, list: &SortedSet<TopicPartition>) -> Option<FetchCommand> {
        let mut partitions = self.partitions.lock();
        let stopped: Vec<_> = list.iter().filter_map(|key| partitions.remove(key)).collect();
        (!stopped.is_empty()).then(|| self.stop(stopped))
    }

    /// Returns the stored offsets of these partitions, where they are not committed yet.
    pub fn offsets_to_commit(&self, list: &SortedSet<TopicPartition>) -> Vec<GroupOffset> {
        let partitions = self.partitions.lock();
        list.iter().filter_map(|key| self.offset_to_commit(partitions.get(key)?)).collect()
    }

    /// Returns the stored offsets of all assigned partitions, where they are not committed yet.
    pub fn all_offsets_to_commit(&self) -> Vec<GroupOffset> {
        self.partitions.lock().values().filter_map(|handle| self.offset_to_commit(handle)).collect()
    }

    fn offset_to_commit(&self, handle: &PartitionHandle) -> Option<GroupOffset> {
        let stored = self.stored_offset(handle)?;
        (handle.committed() != Some(stored.offset)).then(|| GroupOffset {
            topic: Arc::clone(handle.topic()),
            partition: handle.partition(),
            offset: stored.offset,
            leader_epoch: stored.leader_epoch,
            metadata: stored.metadata,
            topic_id: handle.topic_id(),
        })
    }

    /// Adds the IDs of the topics that are consumed to offsets without one, so that newer metadata can't change what they are
    /// about.
    pub fn add_topic_ids(&self, offsets: &mut [GroupOffset]) {
        let partitions = self.partitions.lock();
        for offset in offsets.iter_mut().filter(|offset| offset.topic_id.is_none()) {
            let key = TopicPartition::new(Arc::clone(&offset.topic), offset.partition);
            offset.topic_id = partitions.get(&key).and_then(|handle| handle.topic_id());
        }
    }

    /// Returns what the application stored of a partition or, with `enable.auto.offset.store`, the offset after the last
    /// record that was handed out.
    pub fn stored_offset(&self, handle: &PartitionHandle) -> Option<StoredOffset> {
        let consumed = || {
            let (offset, leader_epoch) = handle.consumed()?;
            Some(StoredOffset { offset, leader_epoch, metadata: String::new() })
        };
        handle.stored().or_else(|| consumed().filter(|_| self.settings.auto_offset_store))
    }

    /// Stores an offset of an assigned partition, to be committed later. Returns the ID of the topic that is consumed, if it
    /// is known. Error: the partition is not assigned, or the offset is about these records, whose topic was recreated since.
    pub fn store_offset(
        &self,
        topic: &str,
        partition: i32,
        stored: StoredOffset,
        of: Option<&FetchedRecords>,
    ) -> Result<Option<Uuid>, Error> {
        // Under the lock: what is stored of a topic that is recreated meanwhile is forgotten.
        let partitions = self.partitions.lock();
        let handle = partitions.get(&TopicPartition::new(topic, partition));
        let handle = handle.ok_or_else(|| not_assigned(topic, partition))?;
        let id = handle.topic_id();
        if let Some(records) = of {
            let of_records = topic_id_of(&records.handle, records.version)?;
            if id.is_some() && of_records.is_some_and(|of_records| id != Some(of_records)) {
                return Err(recreated(handle));
            }
        }
        handle.set_stored(Some(stored));
        Ok(id)
    }

    /// Returns the ID of the topic that records are of, if it is known. Error: the topic was recreated since.
    pub fn topic_id_of(&self, records: &FetchedRecords) -> Result<Option<Uuid>, Error> {
        let _partitions = self.partitions.lock();
        topic_id_of(&records.handle, records.version)
    }

    /// Returns the ID of the topic that an assigned partition is consumed from, if it is known.
    pub fn topic_id(&self, topic: &str, partition: i32) -> Option<Uuid> {
        self.partition(topic, partition).ok()?.topic_id()
    }

    /// Returns the position of an assigned partition, the leader epoch of the record before it, and the ID of the topic
    /// that both are about, as far as they are known.
    pub fn position_of_topic(&self, topic: &str, partition: i32) -> Option<(i64, Option<i32>, Option<Uuid>)> {
        let partitions = self.partitions.lock();
        let handle = partitions.get(&TopicPartition::new(topic, partition))?;
        Some((handle.position()?, handle.position_epoch(), handle.topic_id()))
    }

    /// Stores an offset of an assignment, unless the assignment has ended.
    pub(crate) fn store_finished(
        &self,
        handle: &Arc<PartitionHandle>,
        version: AssignmentVersion,
        stored: StoredOffset,
    ) {
        // Under the lock: an assignment that replaces this one forgets what was stored.
        let partitions = self.partitions.lock();
        let is_assigned = partitions.get(handle.key()).is_some_and(|known| Arc::ptr_eq(known, handle));
        if is_assigned && handle.version().is_same_assignment(version) {
            handle.set_stored(Some(stored));
        }
    }

    /// Ends what was consumed of a topic that was recreated, as far as this version of the assignment is concerned. Returns
    /// the next version; `None` if the application began another one meanwhile. Neither what the application stored nor what
    /// the coordinator reported is about the new topic.
    pub(crate) fn begin_topic(
        &self,
        handle: &PartitionHandle,
        version: AssignmentVersion,
        id: Uuid,
    ) -> Option<AssignmentVersion> {
        // Under the lock: an offset and its topic's ID are read under it.
        let _partitions = self.partitions.lock();
        let next = self.queue.outdate_version(handle, version).map(|(version, _)| version);
        handle.set_topic_id(Some(id).filter(|id| !id.is_zero()));
        forget_topic(handle);
        next
    }

    /// Sets the ID of the topic that is consumed from now on.
    pub(crate) fn set_topic_id(&self, handle: &PartitionHandle, id: Uuid) {
        if id.is_zero() || handle.topic_id() == Some(id) {
            return;
        }
        let _partitions = self.partitions.lock();
        if handle.set_topic_id(Some(id)).is_some() {
            forget_topic(handle);
        }
    }

    /// Returns the offset to commit after a message was processed. Error: the partition was given up since, or the topic
    /// was recreated.
    pub fn offset_after(&self, message: &Message) -> Result<GroupOffset, Error> {
        let (handle, version) = message.assignment();
        let partitions = self.partitions.lock();
        check_assignment(&partitions, handle, version)?;
        let leader_epoch = LeaderEpoch::from_wire(message.leader_epoch());
        let offset = GroupOffset::new(Arc::clone(handle.topic()), handle.partition(), message.offset() + 1);
        Ok(GroupOffset { leader_epoch, topic_id: handle.topic_id(), ..offset })
    }

    /// Returns the offset to commit for each partition after all of these records were processed. Errors: the partition was
    /// given up since, or the topic was recreated.
    pub fn offsets_after(&self, records: &Records) -> Vec<(TopicPartition, Result<GroupOffset, Error>)> {
        let partitions = self.partitions.lock();
        let mut offsets = SortedMap::new();
        for (piece, _) in records.pieces() {
            let (handle, version) = (&piece.handle, piece.version);
            let offset = check_assignment(&partitions, handle, version).map(|()| GroupOffset {
                leader_epoch: LeaderEpoch::from_wire(piece.last_epoch()),
                topic_id: handle.topic_id(),
                ..GroupOffset::new(Arc::clone(handle.topic()), handle.partition(), piece.next_offset())
            });
            offsets.insert(handle.key().clone(), offset);
        }
        offsets.into_iter().collect()
    }

    /// Stores that a message was processed, to be committed later. Errors: as [`ConsumerShared::offset_after`].
    pub fn store_message(&self, message: &Message) -> Result<(), Error> {
        let (handle, version) = message.assignment();
        let leader_epoch = LeaderEpoch::from_wire(message.leader_epoch());
        // Under the lock: what is stored of a topic that is recreated meanwhile is forgotten.
        let partitions = self.partitions.lock();
        check_assignment(&partitions, handle, version)?;
        let (offset, metadata) = (message.offset() + 1, String::new());
        handle.set_stored(Some(StoredOffset { offset, leader_epoch, metadata }));
        Ok(())
    }

    /// Holds all assigned partitions during a rebalance: none of their records is handed out.
    pub(crate) fn hold_all(&self) {
        self.queue.hold(&self.all_handles());
    }

    /// Releases all partitions that [`ConsumerShared::hold_all`] held.
    pub(crate) fn release_all(&self) {
        self.queue.release_held(&self.all_handles());
    }

    /// Returns a number that grows whenever records are handed out, and only then. It shrinks with the assignment.
    pub(crate) fn progress(&self) -> i64 {
        let partitions = self.partitions.lock();
        partitions.values().fold(0, |sum: i64, handle| sum.saturating_add(handle.distance()))
    }

    fn all_handles(&self) -> Vec<Arc<PartitionHandle>> {
        self.partitions.lock().values().cloned().collect()
    }

    /// Returns the assigned partitions.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.partitions.lock().keys().cloned().collect()
    }

    /// Returns an assigned partition.
    pub fn partition(&self, topic: &str, partition: i32) -> Result<Arc<PartitionHandle>, Error> {
        let partitions = self.partitions.lock();
        let handle = partitions.get(&TopicPartition::new(topic, partition));
        handle.cloned().ok_or_else(|| not_assigned(topic, partition))
    }

    /// Moves a partition to another position; its fetched records are dropped. `done` completes with the offset.
    pub fn seek(
        &self,
        topic: &str,
        partition: i32,
        from: Offset,
        done: Option<Completion<Result<i64, Error>>>,
    ) -> Result<FetchCommand, Error> {
        let handle = self.partition(topic, partition)?;
        let version = self.queue.outdate(&handle, from.known());
        Ok(FetchCommand::Start(vec![Start { handle, version, from, epoch: None, done }]))
    }

    /// Moves a partition back to an offset, unless its assignment or its position has changed since `version`.
    pub(crate) fn seek_back(
        &self,
        handle: &Arc<PartitionHandle>,
        version: AssignmentVersion,
        offset: i64,
    ) -> Option<FetchCommand> {
        let from = Offset::At(offset);
        let version = self.queue.outdate_to(handle, version, from.known())?;
        Some(FetchCommand::Start(vec![Start {
            handle: Arc::clone(handle),
            version,
            from,
            epoch: None,
            done: None,
        }]))
    }

    /// Moves a partition back to records that were handed out but did not reach the application, the first of which is at
    /// `offset`. Nothing is left to do (`None`) if the application meanwhile started it from another position.
    pub fn rewind(&self, records: &FetchedRecords, offset: i64) -> Option<FetchCommand> {
        let handle = Arc::clone(&records.handle);
        let version = self.queue.rewind(&handle, records.version, offset)?;
        Some(FetchCommand::Start(vec![Start {
            handle,
            version,
            from: Offset::At(offset),
            epoch: None,
            done: None,
        }]))
    }

    /// Delivers the partition only on this route from now on; 0 is the common route.
    pub fn set_route(&self, topic: &str, partition: i32, route: u64) -> Result<(), Error> {
        self.queue.set_route(&*self.partition(topic, partition)?, route);
        Ok(())
    }

    /// Pauses these partitions: none of their records is handed out. Fetched records are kept while others have room.
    pub fn pause(&self, list: &[TopicPartition]) -> Result<(), Error> {
        self.queue.pause(&self.handles(list)?);
        Ok(())
    }

    /// Resumes these partitions, beginning with the records that were fetched before they were paused.
    pub fn resume(&self, list: &[TopicPartition]) -> Result<(), Error> {
        self.queue.resume(&self.handles(list)?);
        Ok(())
    }

    /// Queues an event that belongs to no partition.
    pub(crate) fn report(&self, error: Error) {
        self.queue.push([Item::Event(ConsumerEvent::Error(error))]);
    }

    /// Queues an event of a partition; it is dropped if it is stale when it is served.
    pub(crate) fn report_for(&self, handle: &Arc<PartitionHandle>, version: AssignmentVersion, error: Error) {
        let event = ConsumerEvent::Error(error.with_partition(&**handle.topic(), handle.partition()));
        self.queue.push([Item::Note { handle: Arc::clone(handle), version, event }]);
    }

    fn start(&self, partitions: &mut Handles, list: &[(TopicPartition, Offset)]) -> FetchCommand {
        let start = |(key, from): &(TopicPartition, Offset)| {
            let handle = partitions
                .entry(key.clone())
                .or_insert_with_key(|key| Arc::new(PartitionHandle::new(key.clone())));
            handle.set_stored(None);
            let version = self.queue.outdate(handle, from.known());
            Start { handle: Arc::clone(handle), version, from: *from, epoch: None, done: None }
        };
        FetchCommand::Start(list.iter().map(start).collect())
    }

    fn stop(&self, handles: Vec<Arc<PartitionHandle>>) -> FetchCommand {
        for handle in &handles {
            self.queue.outdate(handle, None);
        }
        FetchCommand::Stop(handles)
    }

    fn handles(&self, list: &[TopicPartition]) -> Result<Vec<Arc<PartitionHandle>>, Error> {
        list.iter().map(|key| self.partition(&key.topic, key.partition)).collect()
    }
}

impl Offset {
    /// Returns the offset, if it is known without a query.
    const fn known(self) -> Option<i64> {
        match self {
            Self::At(offset) => Some(offset),
            _ => None,
        }
    }
}

/// Checks that records of this assignment may be committed. A seek does not prevent that.
fn check_assignment(
    partitions: &Handles,
    handle: &Arc<PartitionHandle>,
    version: AssignmentVersion,
) -> Result<(), Error> {
    let is_assigned = partitions.get(handle.key()).is_some_and(|known| Arc::ptr_eq(known, handle));
    let error = match (is_assigned, handle.is_of_current_topic(version)) {
        (true, true) => return Ok(()),
        (false, _) => {
            let detail = "the consumer gave the partition up after the record was handed out; the partition's next \
                          consumer gets the record again";
            Error::new(ErrorKind::State, detail)
        }
        (true, false) => return Err(recreated(handle)),
    };
    Err(error.with_partition(&**handle.topic(), handle.partition()))
}

/// Returns the ID of the topic that records of this version of an assignment are of, if it is known. Called under the lock of
/// the partitions. Error: the topic was recreated since.
fn topic_id_of(handle: &PartitionHandle, version: AssignmentVersion) -> Result<Option<Uuid>, Error> {
    if handle.is_of_current_topic(version) { Ok(handle.topic_id()) } else { Err(recreated(handle)) }
}

fn recreated(handle: &PartitionHandle) -> Error {
    let detail = "the topic was recreated after the record was handed out; its offset is not committed";
    Error::new(ErrorKind::TopicRecreated, detail).with_partition(&**handle.topic(), handle.partition())
}

/// Forgets what is known of the topic that a partition was consumed from. Called under the lock of the partitions.
fn forget_topic(handle: &PartitionHandle) {
    handle.begin_topic(handle.version());
    handle.set_stored(None);
    handle.set_committed(-1, None);
}

fn not_assigned(topic: &str, partition: i32) -> Error {
    Error::new(ErrorKind::State, "the partition is not assigned to this consumer")
        .with_partition(topic, partition)
}
