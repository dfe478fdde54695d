//! The offsets that a consumer has read: first stored in the client, then committed to the group, periodically or by a
//! call.
//!
//! With `enable.auto.offset.store`, the stored offset of a partition is its position, from the first message on that
//! the application got. Automatic commits need no call of the application and no thread: a timer of the cluster actor
//! starts them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::Consumer;
use ottla_core::offsets::committed::{CommitResult, GroupOffset};
use ottla_protocol::{uuid::Uuid, vocabulary::LeaderEpoch};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    client::callbacks::ListCb,
    ffi::{
        boundary::Opaque,
        codes::RespErr,
        list::Listed,
        lock::{Condvar, Mutex},
        types::{OFFSET_INVALID, OFFSET_STORED, rd_kafka_topic_partition_t},
    },
};

/// The offsets that are stored, to be committed later.
#[derive(Debug)]
pub(crate) struct Offsets {
    /// `enable.auto.offset.store`.
    by_position: bool,
    has_group: bool,
    /// True if the group's timer commits, because the consumer subscribes to topics.
    is_grouped: AtomicBool,
    state: Mutex<State>,
    under_way: Arc<UnderWay>,
}

/// The number of commits in flight that no call waits for.
#[derive(Debug, Default)]
struct UnderWay {
    count: Mutex<usize>,
    completed: Condvar,
}

/// A commit in flight, until its response or its end.
pub(super) struct OnItsWay(Arc<UnderWay>);

impl UnderWay {
    fn begin(self: &Arc<Self>) -> OnItsWay {
        *self.count.lock() += 1;
        OnItsWay(Arc::clone(self))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        *self.0.count.lock() -= 1;
        self.0.completed.notify_all();
    }
}

#[derive(Debug)]
struct State {
    partitions: SortedMap<(String, i32), Kept>,
    /// Partitions whose offsets are stored in files, and never committed to the group.
    in_files: SortedSet<(String, i32)>,
    /// The offsets from which the application assigned partitions, with their leader epochs.
    assigned: SortedMap<(String, i32), (i64, i32)>,
    /// Topics of which a partition was assigned at any time.
    known_topics: SortedSet<String>,
    /// Partitions whose messages the application has read since they were assigned or a seek moved them.
    read: SortedSet<(String, i32)>,
    /// The timer of automatic commits.
    timer: Timer,
    /// The timers of the partitions that the older calls read, which depend on their topics.
    of_older: SortedMap<(String, i32), Timer>,
    /// Partitions that the older calls read at any time.
    known_to_older: SortedSet<(String, i32)>,
    /// The time for which a timer notification is pending.
    reminder: Option<Instant>,
}

/// A timer of automatic commits.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// `auto.commit.interval.ms`, if automatic commits are enabled.
    interval: Option<Duration>,
    /// The next commit. Set by the first message, and from then on as long as an offset is stored.
    next: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    /// True if the application got a message, so that the position is the stored offset.
    is_consumed: bool,
    /// What the application stored itself, of which topic, if its ID was known.
    stored: Option<(Position, Option<Uuid>)>,
    /// The last committed offset, and the ID of its topic, if it was known.
    committed: Option<(i64, Option<Uuid>)>,
}

/// Offset, leader epoch and metadata.
type Position = (i64, i32, String);

/// Returns true unless the topic was recreated since it had the ID `of`.
fn is_of(current: Option<Uuid>, of: Option<Uuid>) -> bool {
    of.is_none() || current.is_none() || of == current
}

/// The outcome of a commit, for the application.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) code: RespErr,
    pub(crate) list: Listed,
    pub(crate) callback: Option<ListCb>,
    pub(crate) opaque: Opaque,
    /// The consumer was closed, so nothing was sent.
    pub(crate) is_refused: bool,
}

impl Offsets {
    /// Without a group there are no automatic commits.
    pub(crate) fn new(is_consumer: bool, client: impl Fn(&str) -> Option<String>) -> Self {
        let is_true = |name| client(name).is_some_and(|value| value == "true");
        let millis = client("auto.commit.interval.ms").and_then(|value| value.parse().ok()).unwrap_or(0);
        let has_group = is_consumer && client("group.id").is_some_and(|group| !group.is_empty());
        let commits = has_group && is_true("enable.auto.commit") && millis > 0;
        let interval = commits.then(|| Duration::from_millis(millis));
        Self {
            by_position: is_true("enable.auto.offset.store"),
            has_group,
            is_grouped: AtomicBool::new(false),
            state: Mutex::new(State {
                partitions: SortedMap::new(),
                in_files: SortedSet::new(),
                assigned: SortedMap::new(),
                known_topics: SortedSet::new(),
                read: SortedSet::new(),
                timer: Timer { interval, next: None },
                of_older: SortedMap::new(),
                known_to_older: SortedSet::new(),
                reminder: None,
            }),
            under_way: Arc::default(),
        }
    }

    /// Returns true if this is a consumer with a `group.id`.
    pub(crate) const fn has_group(&self) -> bool {
        self.has_group
    }

    /// Sets whether the consumer subscribes to topics, so that its group commits.
    pub(crate) fn set_grouped(&self, is_grouped: bool) {
        self.is_grouped.store(is_grouped, Ordering::Release);
    }

    /// Returns true if the stored offset of a partition is its position.
    pub(super) const fn stores_by_position(&self) -> bool {
        self.by_position
    }

    /// Counts a commit as in flight until the returned value is dropped.
    pub(super) fn begin_commit(&self) -> OnItsWay {
        self.under_way.begin()
    }

    /// Waits for the responses of the commits in flight.
    pub(super) fn wait_for_commits(&self, until: Instant) {
        let mut count = self.under_way.count.lock();
        while *count > 0 && self.under_way.completed.wait_until(&mut count, until) {}
    }

    /// Adds a partition that the older calls read. Its topic determines the interval of its commits; the client's
    /// configuration applies to group members only.
    pub(crate) fn begin_older(&self, topic: &str, partition: i32, interval: Option<Duration>) {
        let timer = Timer { interval: interval.filter(|_| self.has_group), next: None };
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        state.read.remove(&key);
        state.known_to_older.insert(key.clone());
        state.of_older.insert(key, timer);
    }

    /// Returns true if the older calls read the partition at any time.
    pub(super) fn is_known_to_older(&self, topic: &str, partition: i32) -> bool {
        self.state.lock().known_to_older.contains(&(topic.to_owned(), partition))
    }

    /// Removes a partition that the older calls no longer read.
    pub(crate) fn end_older(&self, topic: &str, partition: i32) {
        self.state.lock().of_older.remove(&(topic.to_owned(), partition));
    }

    /// Records that the application gets messages of a partition.
    pub(super) fn note_consumed(&self, topic: &str, partition: i32) {
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        state.read.insert(key.clone());
        if !self.by_position {
            return;
        }
        self.start_timer(&mut state, &key);
        let kept = state.partitions.entry(key).or_default();
        kept.is_consumed = true;
        kept.stored = None;
    }

    /// Stores an offset for the application. `of` is the ID of the topic that is consumed, if it is known.
    pub(super) fn store(&self, topic: &str, partition: i32, position: Position, of: Option<Uuid>) {
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        self.start_timer(&mut state, &key);
        let kept = state.partitions.entry(key).or_default();
        (kept.is_consumed, kept.stored) = (false, Some((position, of)));
    }

    /// Starts the timer of a partition, unless the group commits it.
    fn start_timer(&self, state: &mut State, key: &(String, i32)) {
        if !self.is_grouped.load(Ordering::Acquire) || state.of_older.contains_key(key) {
            state.start_timer(key);
        }
    }

    /// Returns the stored offset of a partition.
    pub(crate) fn stored(&self, consumer: &Consumer, topic: &str, partition: i32) -> Option<Position> {
        self.stored_of_topic(consumer, topic, partition).map(|(position, _)| position)
    }

    /// Returns the stored offset of a partition, and the ID of its topic, if that is known. An offset of a topic that was
    /// recreated since is not one of the new topic.
    fn stored_of_topic(
        &self,
        consumer: &Consumer,
        topic: &str,
        partition: i32,
    ) -> Option<(Position, Option<Uuid>)> {
        let kept = self.state.lock().partitions.get(&(topic.to_owned(), partition)).cloned()?;
        match kept.stored {
            Some((_, of)) if !is_of(consumer.core().topic_id(topic, partition), of) => None,
            Some(stored) => Some(stored),
            None if kept.is_consumed => {
                let (offset, epoch, of) = consumer.core().position_of_topic(topic, partition)?;
                Some(((offset, epoch.unwrap_or(-1), String::new()), of))
            }
            None => None,
        }
    }

    /// Returns the offset behind the last message that the application read of a partition, and that message's leader
    /// epoch.
    pub(crate) fn position(&self, consumer: &Consumer, topic: &str, partition: i32) -> Option<(i64, i32)> {
        if !self.state.lock().read.contains(&(topic.to_owned(), partition)) {
            return None;
        }
        let leader_epoch = consumer.position_leader_epoch(topic, partition).unwrap_or(-1);
        Some((consumer.position(topic, partition)?, leader_epoch))
    }

    /// Removes the position of a partition that is read from another offset now.
    pub(crate) fn forget_position(&self, topic: &str, partition: i32) {
        self.state.lock().read.remove(&(topic.to_owned(), partition));
    }

    /// Takes back that the application got messages of a partition, because it has none since the partition started: there is no
    /// position, and nothing to commit.
    pub(super) fn forget_start(&self, topic: &str, partition: i32) {
        let (mut state, key) = (self.state.lock(), (topic.to_owned(), partition));
        state.read.remove(&key);
        if let Some(kept) = state.partitions.get_mut(&key) {
            kept.is_consumed = false;
        }
    }

    /// Returns true if a partition of the topic was assigned at any time.
    pub(super) fn knows_topic(&self, topic: &str) -> bool {
        self.state.lock().known_topics.contains(topic)
    }

    /// Adds assigned partitions; with `alone`, they replace those that are assigned already.
    pub(crate) fn begin_assignment(&self, elements: &[rd_kafka_topic_partition_t], alone: bool) {
        let mut state = self.state.lock();
        if alone {
            state.assigned.clear();
        }
        for element in elements {
            let offset = if element.offset == OFFSET_INVALID { OFFSET_STORED } else { element.offset };
            let partition = (element.name().to_owned(), element.partition);
            state.known_topics.insert(partition.0.clone());
            state.read.remove(&partition);
            state.assigned.insert(partition, (offset, element.leader_epoch()));
        }
    }

    /// Returns the offset from which a partition was assigned, and its leader epoch.
    pub(crate) fn assigned(&self, topic: &str, partition: i32) -> (i64, i32) {
        let state = self.state.lock();
        state.assigned.get(&(topic.to_owned(), partition)).copied().unwrap_or((OFFSET_INVALID, -1))
    }

    /// Removes the stored offsets of partitions that are read from another offset, or no longer.
    pub(crate) fn forget(&self, topic: &str, partition: i32) {
        self.state.lock().partitions.remove(&(topic.to_owned(), partition));
    }

    /// Removes the stored offsets of all partitions.
    pub(crate) fn forget_all(&self) {
        self.state.lock().partitions.clear();
    }

    /// Stores the offset of a partition in a file instead of the group.
    pub(crate) fn keep_in_file(&self, topic: &str, partition: i32) {
        self.state.lock().in_files.insert((topic.to_owned(), partition));
    }

    /// Stores the offset of a partition in the group again.
    pub(crate) fn keep_in_group(&self, topic: &str, partition: i32) {
        self.state.lock().in_files.remove(&(topic.to_owned(), partition));
    }

    /// Returns the offsets that are stored and not committed.
    pub(super) fn uncommitted(&self, consumer: &Consumer) -> Vec<GroupOffset> {
        self.uncommitted_of(consumer, |_, _| true)
    }

    /// Returns the stored and uncommitted offsets of the partitions with automatic commits.
    pub(super) fn uncommitted_by_itself(&self, consumer: &Consumer) -> Vec<GroupOffset> {
        let is_grouped = self.is_grouped.load(Ordering::Acquire);
        self.uncommitted_of(consumer, |state, partition| {
            state.timer_of(partition).interval.is_some()
                && (!is_grouped || state.of_older.contains_key(partition))
        })
    }

    fn uncommitted_of(
        &self,
        consumer: &Consumer,
        which: impl Fn(&State, &(String, i32)) -> bool,
    ) -> Vec<GroupOffset> {
        let names: Vec<_> = {
            let state = self.state.lock();
            let is_meant =
                |partition: &&(String, i32)| !state.in_files.contains(*partition) && which(&state, partition);
            state.partitions.keys().filter(is_meant).cloned().collect()
        };
        let mut offsets = Vec::new();
        for (topic, partition) in names {
            let Some((position, topic_id)) = self.stored_of_topic(consumer, &topic, partition) else {
                continue;
            };
            let (offset, leader_epoch, metadata) = position;
            let state = self.state.lock();
            let known = state.partitions.get(&(topic.clone(), partition)).and_then(|kept| kept.committed);
            // A lower offset must not undo a later commit of the same topic.
            if offset >= 0 && known.is_none_or(|(known, of)| offset > known || !is_of(topic_id, of)) {
                let (topic, leader_epoch) = (topic.into(), LeaderEpoch::from_wire(leader_epoch));
                offsets.push(GroupOffset { topic, partition, offset, leader_epoch, metadata, topic_id });
            }
        }
        offsets
    }

    /// Records committed offsets, which need no further commit.
    pub(super) fn note_committed(&self, offsets: &[GroupOffset], result: &CommitResult) {
        let Ok(results) = result else { return };
        let mut state = self.state.lock();
        for (offset, result) in offsets.iter().zip(results) {
            if result.is_ok()
                && let Some(kept) = state.partitions.get_mut(&(offset.topic.to_string(), offset.partition))
            {
                kept.committed = Some((offset.offset, offset.topic_id));
            }
        }
    }

    /// Returns when to schedule the notification for the next commit, unless it is pending already.
    pub(super) fn take_next_reminder(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        let next = state.of_older.values().chain([&state.timer]).filter_map(|timer| timer.next).min()?;
        state.reminder.is_none_or(|known| next < known).then(|| *state.reminder.insert(next))
    }

    /// Returns the offsets that are due for a commit, unless an earlier commit is still in flight.
    pub(super) fn handle_reminder(&self, consumer: &Consumer, at: Instant) -> Vec<GroupOffset> {
        let now = Instant::now();
        let is_due = |timer: &Timer| timer.next.is_some_and(|next| next <= now);
        let is_free = *self.under_way.count.lock() == 0;
        let is_grouped = self.is_grouped.load(Ordering::Acquire);
        let offsets = if is_free {
            self.uncommitted_of(consumer, |state, partition| {
                is_due(state.timer_of(partition)) && (!is_grouped || state.of_older.contains_key(partition))
            })
        } else {
            Vec::new()
        };
        let mut state = self.state.lock();
        state.reminder = state.reminder.filter(|known| *known != at);
        state.restart_timers(now);
        offsets
    }
}

impl State {
    fn timer_of(&self, partition: &(String, i32)) -> &Timer {
        self.of_older.get(partition).unwrap_or(&self.timer)
    }

    /// Starts the timer for a partition with an offset to commit.
    fn start_timer(&mut self, partition: &(String, i32)) {
        let timer = self.of_older.get_mut(partition).unwrap_or(&mut self.timer);
        if let (Some(interval), None) = (timer.interval, timer.next) {
            timer.next = Some(Instant::now() + interval);
        }
    }

    /// Restarts timers that are due, as long as there may be offsets for them to commit.
    fn restart_timers(&mut self, now: Instant) {
        let (partitions, of_older) = (&self.partitions, &self.of_older);
        let has_other = partitions.keys().any(|partition| !of_older.contains_key(partition));
        let restart = |timer: &mut Timer, is_kept: bool| {
            if timer.next.is_some_and(|next| next <= now) {
                timer.next = timer.interval.filter(|_| is_kept).map(|interval| now + interval);
            }
        };
        restart(&mut self.timer, has_other);
        for (partition, timer) in &mut self.of_older {
            restart(timer, self.partitions.contains_key(partition));
        }
    }
}
