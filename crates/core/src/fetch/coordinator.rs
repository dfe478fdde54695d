//! The receiving half of the cluster's owner: turns places into offsets, and gives each partition to the broker that
//! leads it.
//!
//! ```text
//!                                   Checking ◄── a new leader: has it what was read?
//!                                      │ ▲
//!                                      ▼ │
//!  Start ──► Resolving ── offset ──► Known ── leader ──► at a broker ──► NotLeader, Released: Known again
//!                ▲                                          │
//!                └────────────── OutOfRange ◄───────────────┘
//! ```
//!
//! A partition's struct is at one place only: here while it is `Known`, else at the broker. A partition that starts
//! anew while a broker has it is asked back first.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::error_code::ErrorCode;

use super::{
    FetchCommand, FetchMail, FetchReply, Start,
    deliver::ConsumerEvent,
    epochs::{CheckId, EpochAnswer, EpochChecks, EpochQuestion},
    offsets::{LookupId, OffsetLookups, topic_error, unknown_partition},
    partition::{PartitionConsumer, PartitionHandle},
    position::{Offset, Resolution, Step},
    queue::Item,
    shared::ConsumerShared,
    stored::{StoredId, StoredOffset, StoredOffsets},
};
use crate::{
    broker::connection::Response,
    cluster::{
        Route, RoutedRequest,
        metadata::{Metadata, RecreatedTopic, TopicError},
    },
    completion::Completion,
    config::{IsolationLevel, OffsetReset, TopicRecreatePolicy},
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    mutation::Mutant,
    stats::Statistics,
};

/// Where every partition is that is consumed.
#[derive(Debug)]
pub struct FetchCoordinator {
    shared: Arc<ConsumerShared>,
    entries: BTreeMap<(Arc<str>, i32), Entry>,
    lookups: OffsetLookups,
    /// The partition that a lookup is for.
    askers: BTreeMap<LookupId, (Arc<str>, i32)>,
    /// What was committed, if there is a group.
    stored: Option<StoredOffsets>,
    /// The partition that a committed offset is for.
    loading: BTreeMap<StoredId, (Arc<str>, i32)>,
    checks: EpochChecks,
    /// The partition that a check is for.
    checked: BTreeMap<CheckId, (Arc<str>, i32)>,
    /// Partitions to look at: their offset is known, but not who leads them.
    unplaced: BTreeSet<(Arc<str>, i32)>,
    /// Partitions that came back from a broker that does not lead them: perhaps it is known already who does.
    refused: BTreeSet<(Arc<str>, i32)>,
    /// When to look at partitions that have to wait.
    delayed: BTreeSet<(Instant, Arc<str>, i32)>,
    wants_metadata: bool,
    /// A broker's refusal says that the metadata is old.
    wants_metadata_soon: bool,
    /// The nodes that partitions were given to.
    fetched_from: BTreeSet<i32>,
    outputs: VecDeque<FetchCoordinatorOutput>,
}

/// What the coordinator wants from the cluster's owner.
#[derive(Debug)]
pub enum FetchCoordinatorOutput {
    /// Something needs metadata that nobody asked for yet.
    RefreshMetadata,
    /// A broker refused what the metadata led to: newer ones are needed, after a back-off that all share.
    RefreshMetadataSoon,
    /// Mail for the owner of a node's connection.
    ToNode(i32, FetchMail),
    /// A request; its number comes back with the answer.
    Request(u64, Route, RoutedRequest),
}

#[derive(Debug)]
struct Entry {
    handle: Arc<PartitionHandle>,
    version: u64,
    position: Position,
    place: Place,
    /// The node that the leader said is closer, while nothing speaks against it.
    replica: Option<Replica>,
    /// The offset that a closer node did not have.
    missed: Option<i64>,
    done: Option<Completion<Result<i64, Error>>>,
    since: Instant,
    /// Not given to a broker before.
    retry_at: Option<Instant>,
    /// Its offset is what `auto.offset.reset` led to.
    is_reset: bool,
    /// Its offset is out of range, unless newer metadata tell that the topic is another one.
    reset_pending: bool,
    /// The error that was told last, so that it is told once.
    told: Option<ErrorKind>,
    /// Nobody wants it any more: forget it when the broker gave it back.
    stopped: bool,
}

/// A node that is closer than the leader (KIP-392).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replica {
    node: i32,
    /// When the leader named it.
    since: Instant,
}

/// What is known of a partition's offset.
#[derive(Debug)]
enum Position {
    /// The group's coordinator is asked.
    Loading(StoredId),
    /// The leader is asked.
    Resolving(Resolution, LookupId),
    /// Waits for its broker.
    Known(Box<PartitionConsumer>),
    /// A new leader is asked whether it has what was read.
    Checking(Box<PartitionConsumer>, CheckId),
    /// The broker that fetches it knows.
    AtBroker,
    /// There is none, and the application was told.
    Nowhere,
}

/// Which broker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// Here, until there is newer metadata: the leader was not who it was thought to be.
    HereUntilMetadata,
    At(i32),
    /// Asked back from a broker.
    Leaving,
}

/// How long a topic may be unknown before the application is told: it may have been created just now.
const TOPIC_PATIENCE: Duration = Duration::from_secs(1);
/// For how long a leader's word of who is closer counts at least: with the first metadata after it the leader is asked again,
/// because racks and replicas change.
const REPLICA_LEASE: Duration = Duration::from_secs(300);
/// So many leaders that refuse a partition and name another one are followed without waiting; a cluster whose brokers send
/// each other's clients round and round is not.
const FOLLOWED_AT_ONCE: u32 = 2;
/// Who asked is told by a request's number, modulo the number of askers.
const ASKERS: u64 = 3;
const LOOKUPS: u64 = 0;
const CHECKS: u64 = 1;
const STORED: u64 = 2;

impl FetchCoordinator {
    /// A coordinator without partitions.
    pub fn new(shared: Arc<ConsumerShared>) -> Self {
        let settings = &shared.settings;
        let isolation_level = i8::from(settings.isolation_level == IsolationLevel::ReadCommitted);
        let at_once = settings.mutation.is(Mutant::LookupWithoutBackoff);
        let backoff = if at_once { Duration::ZERO } else { settings.retry_backoff };
        Self {
            lookups: OffsetLookups::new(isolation_level, settings.answer_timeout, backoff),
            stored: settings.group_id.clone().map(|group| {
                let stable = settings.isolation_level == IsolationLevel::ReadCommitted;
                StoredOffsets::new(group, stable, settings.answer_timeout, settings.retry_backoff)
            }),
            loading: BTreeMap::new(),
            checks: EpochChecks::new(settings.answer_timeout),
            checked: BTreeMap::new(),
            refused: BTreeSet::new(),
            delayed: BTreeSet::new(),
            wants_metadata: false,
            wants_metadata_soon: false,
            fetched_from: BTreeSet::new(),
            shared,
            entries: BTreeMap::new(),
            askers: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Adds what is known of the partitions to a snapshot.
    pub fn add_statistics(&self, statistics: &mut Statistics) {
        self.shared.add_statistics(statistics);
    }

    /// The application wants something.
    pub fn handle_command(&mut self, now: Instant, command: FetchCommand) {
        match command {
            FetchCommand::Start(starts) => starts.into_iter().for_each(|start| self.start(now, start)),
            FetchCommand::Stop(handles) => handles.iter().for_each(|handle| self.stop(handle)),
            FetchCommand::Group(call) => match &mut self.stored {
                Some(stored) => stored.call(now, call),
                None => call.kind.fail(Error::new(ErrorKind::InvalidArgument, "`group.id` is not set")),
            },
            FetchCommand::ListOffsets(query, completion) => self.lookups.start_query(now, &query, completion),
        }
    }

    /// Mail from a broker's owner.
    pub fn handle_reply(&mut self, now: Instant, reply: FetchReply) {
        match reply {
            FetchReply::Released(_) if self.shared.settings.mutation.is(Mutant::LoseReleased) => {}
            FetchReply::Released(partition) => self.take_back(partition, Place::Here, None),
            FetchReply::NotLeader(partition) => {
                self.refused.insert((Arc::clone(partition.handle.topic()), partition.handle.partition()));
                self.take_back(partition, Place::HereUntilMetadata, None);
            }
            FetchReply::UnknownEpoch(partition) => self.handle_unknown_epoch(now, partition),
            FetchReply::ReadFrom(partition, node) => {
                self.take_back(partition, Place::Here, Some(Replica { node, since: now }));
            }
            FetchReply::OutOfRange(partition) => self.handle_out_of_range(now, partition),
            FetchReply::Diverged(partition, epoch, offset) => {
                let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
                self.take_back(partition, Place::Here, None);
                self.unplaced.remove(&key);
                self.handle_truncation(now, &key, Some((epoch, offset)));
            }
        }
    }

    /// New metadata came; true if some leader is unknown.
    pub fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, errors: &[TopicError]) -> bool {
        let mut incomplete = self.lookups.handle_metadata(now, metadata, errors);
        let mut resets = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.stopped {
                continue;
            }
            entry.replica.take_if(|replica| now - replica.since >= REPLICA_LEASE);
            match (entry.node(key, metadata), entry.place) {
                (Some(_), Place::HereUntilMetadata) => {
                    entry.place = Place::Here;
                    if std::mem::take(&mut entry.reset_pending) {
                        resets.push(key.clone());
                    } else {
                        self.unplaced.insert(key.clone());
                    }
                }
                (Some((wanted, _)), Place::At(node))
                    if wanted != node && !self.shared.settings.mutation.is(Mutant::KeepStaleLeader) =>
                {
                    entry.place = Place::Leaving;
                    let (topic, partition) = key.clone();
                    let mail = FetchMail::Release { topic, partition };
                    self.outputs.push_back(FetchCoordinatorOutput::ToNode(node, mail));
                }
                (Some(_), _) => entry.told = None,
                (None, _) => {
                    incomplete = true;
                    if let Some(error) = entry.why_no_leader(now, key, metadata, errors)
                        && entry.told.replace(error.kind()) != Some(error.kind())
                    {
                        self.shared.tell_of(&entry.handle, entry.version, error);
                    }
                }
            }
        }
        for key in resets {
            self.reset(now, &key);
        }
        incomplete
    }

    /// A newer leader of a partition became known without asking for metadata (KIP-951): go to it at once.
    pub fn handle_new_leader(&mut self, key: &(Arc<str>, i32), metadata: &Metadata) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| !entry.stopped) else { return };
        match (entry.node(key, metadata), entry.place) {
            (Some((wanted, _)), Place::At(node)) if wanted != node => {
                entry.place = Place::Leaving;
                self.ask_back(node, key);
            }
            (Some(_), Place::HereUntilMetadata) => {
                self.refused.insert(key.clone());
            }
            _ => {}
        }
    }

    /// A node can't be reached: what is read there because it is closer is read from its leader again.
    pub fn handle_unreachable(&mut self, node: i32) {
        for (key, entry) in &mut self.entries {
            if entry.replica.take_if(|replica| replica.node == node).is_some()
                && entry.place == Place::At(node)
                && !entry.stopped
            {
                entry.place = Place::Leaving;
                let (topic, partition) = key.clone();
                let mail = FetchMail::Release { topic, partition };
                self.outputs.push_back(FetchCoordinatorOutput::ToNode(node, mail));
            }
        }
    }

    /// True if partitions are or were fetched from this node: what else is asked there waits for a fetch under way.
    pub fn fetches_from(&self, node: i32) -> bool {
        self.fetched_from.contains(&node)
    }

    /// A topic was deleted and made anew: no offset of the old one may be used, and nothing of it goes further.
    pub fn handle_recreated(&mut self, now: Instant, topic: &RecreatedTopic) {
        let keys: Vec<_> = self.entries.keys().filter(|(name, _)| *name == topic.name).cloned().collect();
        for key in keys {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| !entry.stopped) else { continue };
            // If the application meanwhile said where to start, its word is on the way and counts.
            let Some((version, _)) = self.shared.queue.outdate_version(&entry.handle, entry.version) else {
                continue;
            };
            entry.version = version;
            entry.replica = None;
            entry.told = None;
            entry.reset_pending = false;
            let place = entry.place;
            let position = std::mem::replace(&mut entry.position, Position::Nowhere);
            match place {
                Place::At(node) => {
                    entry.place = Place::Leaving;
                    self.ask_back(node, &key);
                }
                Place::HereUntilMetadata => entry.place = Place::Here,
                Place::Here | Place::Leaving => {}
            }
            self.unplaced.remove(&key);
            self.forget_lookup(&position);
            let settings = &self.shared.settings;
            match (settings.topic_recreate, self.shared.auto_offset_reset(&key.0)) {
                (TopicRecreatePolicy::Reset, OffsetReset::Beginning) => {
                    self.resolve(now, &key, Offset::Beginning)
                }
                (TopicRecreatePolicy::Reset, OffsetReset::End) => self.resolve(now, &key, Offset::End),
                _ => {
                    let detail = "its offsets mean nothing any more; assign or seek to go on, or set \
                                  topic.recreate.policy=reset and auto.offset.reset";
                    self.give_up(&key, Error::new(ErrorKind::TopicRecreated, detail));
                }
            }
        }
    }

    /// An answer to a request, or why there is none.
    pub fn handle_answer(&mut self, now: Instant, request: u64, result: Result<Response, Error>) {
        let number = request / ASKERS;
        match (request % ASKERS, &mut self.stored) {
            (LOOKUPS, _) => self.lookups.handle_answer(now, number, result),
            (CHECKS, _) => self.checks.handle_answer(number, result),
            (_, Some(stored)) => stored.handle_answer(now, number, result),
            (_, None) => {}
        }
        self.handle_finished(now);
    }

    /// Places partitions and sends questions, as far as leaders are known.
    pub fn advance(&mut self, now: Instant, metadata: &Metadata) {
        self.lookups.advance(now, metadata);
        self.handle_finished(now);
        let mut wants_metadata =
            self.lookups.take_wants_metadata() | std::mem::take(&mut self.wants_metadata);
        for key in std::mem::take(&mut self.refused) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let (Position::Known(partition), Place::HereUntilMetadata) = (&entry.position, entry.place)
                && !entry.reset_pending
                && partition.refusals <= FOLLOWED_AT_ONCE
                && metadata.leader(&key.0, key.1).is_some_and(|(_, epoch)| epoch > partition.leader_epoch)
            {
                entry.place = Place::Here;
                self.unplaced.insert(key);
            }
        }
        for key in std::mem::take(&mut self.unplaced) {
            wants_metadata |= !self.place(key, metadata);
        }
        // A lookup that was started by an answer above asks at once.
        self.lookups.advance(now, metadata);
        wants_metadata |= self.lookups.take_wants_metadata();
        while let Some((number, leader, request)) = self.lookups.poll_request() {
            let number = number * ASKERS + LOOKUPS;
            self.outputs.push_back(FetchCoordinatorOutput::Request(number, Route::Node(leader), request));
        }
        while let Some((number, route, request)) =
            self.stored.as_mut().and_then(|stored| stored.poll_request(now))
        {
            // A consumer without partitions has not asked yet where the nodes are.
            wants_metadata |= matches!(route, Route::Node(node) if !metadata.nodes.contains_key(&node));
            let number = number * ASKERS + STORED;
            self.outputs.push_back(FetchCoordinatorOutput::Request(number, route, request));
        }
        while let Some((number, leader, request)) = self.checks.poll_request() {
            let output =
                FetchCoordinatorOutput::Request(number * ASKERS + CHECKS, Route::Node(leader), request);
            self.outputs.push_back(output);
        }
        let soon = self.lookups.take_wants_metadata_soon() | std::mem::take(&mut self.wants_metadata_soon);
        if wants_metadata || soon && self.shared.settings.mutation.is(Mutant::LookupWithoutBackoff) {
            self.outputs.push_back(FetchCoordinatorOutput::RefreshMetadata);
        } else if soon {
            self.outputs.push_back(FetchCoordinatorOutput::RefreshMetadataSoon);
        }
    }

    /// What the cluster's owner has to do next.
    pub fn poll_output(&mut self) -> Option<FetchCoordinatorOutput> {
        self.outputs.pop_front()
    }

    /// The nodes that partitions are fetched from.
    pub fn nodes(&self) -> BTreeSet<i32> {
        let place = |entry: &Entry| match entry.place {
            Place::At(node) => Some(node),
            _ => None,
        };
        self.entries.values().filter_map(place).collect()
    }

    /// The topics whose leaders are needed.
    pub fn wanted_topics(&self, names: &mut BTreeSet<Arc<str>>) {
        names.extend(self.entries.keys().map(|(topic, _)| Arc::clone(topic)));
        self.lookups.wanted_topics(names);
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lookups.handle_timeout(now);
        if let Some(stored) = &mut self.stored {
            stored.handle_timeout(now);
        }
        self.handle_finished(now);
        while let Some((at, ..)) = self.delayed.first()
            && *at <= now
            && let Some((at, topic, partition)) = self.delayed.pop_first()
        {
            let key = (topic, partition);
            if let Some(entry) = self.entries.get_mut(&key)
                && entry.retry_at == Some(at)
            {
                entry.retry_at = None;
                self.unplaced.insert(key);
            }
        }
    }

    /// When to call [`FetchCoordinator::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let stored = self.stored.as_ref().and_then(StoredOffsets::poll_timeout);
        let delayed = self.delayed.first().map(|(at, ..)| *at);
        earliest(self.lookups.poll_timeout(), earliest(stored, delayed))
    }

    /// The client closes: whoever waits for an answer gets none.
    pub fn close(&mut self) {
        self.entries.clear();
        self.unplaced.clear();
        self.askers.clear();
        self.checked.clear();
        self.checks.close();
        self.loading.clear();
        if let Some(stored) = &mut self.stored {
            stored.close();
        }
        self.delayed.clear();
        self.refused.clear();
        self.lookups.close();
        self.shared.queue.close();
    }

    fn start(&mut self, now: Instant, start: Start) {
        let Start { handle, version, from, done } = start;
        let key = (Arc::clone(handle.topic()), handle.partition());
        self.unplaced.remove(&key);
        let place = match self.entries.remove(&key) {
            Some(old) => {
                self.forget_lookup(&old.position);
                match old.place {
                    Place::At(node) => {
                        self.ask_back(node, &key);
                        Place::Leaving
                    }
                    Place::HereUntilMetadata => Place::Here,
                    place => place,
                }
            }
            None => Place::Here,
        };
        let told = None;
        let entry = Entry {
            handle,
            version,
            position: Position::Nowhere,
            place,
            replica: None,
            missed: None,
            done,
            since: now,
            retry_at: None,
            is_reset: false,
            reset_pending: false,
            told,
            stopped: false,
        };
        self.entries.insert(key.clone(), entry);
        self.resolve(now, &key, from);
    }

    fn stop(&mut self, handle: &Arc<PartitionHandle>) {
        let key = (Arc::clone(handle.topic()), handle.partition());
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.stopped = true;
        entry.done = None;
        let position = std::mem::replace(&mut entry.position, Position::Nowhere);
        match entry.place {
            Place::At(node) => {
                entry.place = Place::Leaving;
                self.ask_back(node, &key);
            }
            Place::Leaving => {}
            Place::Here | Place::HereUntilMetadata => {
                self.entries.remove(&key);
            }
        }
        self.unplaced.remove(&key);
        self.forget_lookup(&position);
    }

    /// Finds the offset of a place.
    fn resolve(&mut self, now: Instant, key: &(Arc<str>, i32), place: Offset) {
        if place == Offset::Stored {
            return self.load(key);
        }
        self.find(now, key, place);
    }

    /// Finds the offset that was committed.
    fn load(&mut self, key: &(Arc<str>, i32)) {
        let Some(stored) = &mut self.stored else {
            let detail = "there is no committed offset without group.id; set it, or start from another place";
            return self.give_up(key, Error::new(ErrorKind::InvalidArgument, detail));
        };
        if let Some(entry) = self.entries.get_mut(key) {
            let id = stored.start(&key.0, key.1);
            entry.position = Position::Loading(id);
            self.loading.insert(id, key.clone());
            // The coordinator's address is among the brokers'.
            self.wants_metadata = true;
        }
    }

    fn handle_loaded(&mut self, now: Instant, id: StoredId, result: Result<Option<StoredOffset>, Error>) {
        let Some(key) = self.loading.remove(&id) else { return };
        if !self
            .entries
            .get(&key)
            .is_some_and(|entry| matches!(entry.position, Position::Loading(i) if i == id))
        {
            return;
        }
        match result {
            Ok(Some(StoredOffset { offset, leader_epoch })) => {
                let (resolution, step) =
                    Resolution::begin(Offset::At(offset), self.shared.auto_offset_reset(&key.0));
                self.take_step(now, &key, resolution, step, leader_epoch);
            }
            Ok(None) => self.find(now, &key, Offset::Stored),
            Err(error) => self.give_up(&key, error),
        }
    }

    /// Asks the leader for the offset of a place; where nothing is committed, for that of `auto.offset.reset`.
    fn find(&mut self, now: Instant, key: &(Arc<str>, i32), place: Offset) {
        let (resolution, step) = Resolution::begin(place, self.shared.auto_offset_reset(&key.0));
        self.take_step(now, key, resolution, step, -1);
    }

    /// Goes on towards an offset; `epoch` is the leader epoch of what was answered.
    fn take_step(
        &mut self,
        now: Instant,
        key: &(Arc<str>, i32),
        resolution: Resolution,
        step: Step,
        epoch: i32,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match step {
            Step::Known(offset) => {
                let mut partition = PartitionConsumer::new(Arc::clone(&entry.handle), entry.version, offset);
                partition.position_epoch = epoch;
                entry.position = Position::Known(Box::new(partition));
                self.shared.queue.set_position(&entry.handle, entry.version, offset);
                if let Some(done) = entry.done.take() {
                    done.complete(Ok(offset));
                }
                self.unplaced.insert(key.clone());
            }
            Step::Ask(spec) => {
                let id = self.lookups.start(now, &key.0, key.1, spec, None);
                self.askers.insert(id, key.clone());
                entry.position = Position::Resolving(resolution, id);
            }
            Step::Nowhere => {
                let error = Error::new(ErrorKind::OffsetReset, "no offset is stored");
                self.give_up(key, error);
            }
        }
    }

    /// There is no offset to go on from.
    fn give_up(&mut self, key: &(Arc<str>, i32), error: Error) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.position = Position::Nowhere;
        let error = error.with_partition(&*key.0, key.1);
        match entry.done.take() {
            Some(done) => done.complete(Err(error)),
            None => self.shared.tell_of(&entry.handle, entry.version, error),
        }
    }

    /// Takes in the lookups that are over.
    fn handle_finished(&mut self, now: Instant) {
        while let Some((id, result)) = self.lookups.poll_finished() {
            let Some(key) = self.askers.remove(&id) else { continue };
            let Some(entry) = self.entries.get(&key) else { continue };
            let Position::Resolving(mut resolution, expected) = entry.position else { continue };
            if expected != id {
                continue;
            }
            match result {
                Ok(listed) => {
                    let step = resolution.answered(listed.offset);
                    // The epoch is that of the offset in the answer: a tail starts elsewhere.
                    let epoch = if step == Step::Known(listed.offset) { listed.leader_epoch } else { -1 };
                    self.take_step(now, &key, resolution, step, epoch);
                }
                Err(error) => self.give_up(&key, error),
            }
        }
        while let Some((id, result)) = self.stored.as_mut().and_then(StoredOffsets::poll_finished) {
            self.handle_loaded(now, id, result);
        }
        while let Some((id, answer)) = self.checks.poll_finished() {
            self.handle_check(now, id, answer);
        }
    }

    /// A new leader told where the epoch of the last record ended.
    fn handle_check(&mut self, now: Instant, id: CheckId, answer: EpochAnswer) {
        let Some(key) = self.checked.remove(&id) else { return };
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let position = std::mem::replace(&mut entry.position, Position::Nowhere);
        let Position::Checking(mut partition, expected) = position else {
            entry.position = position;
            return;
        };
        if expected != id {
            entry.position = Position::Checking(partition, expected);
            return;
        }
        let offset = partition.offset;
        match &answer {
            EpochAnswer::Later { .. } | EpochAnswer::Unknown => {}
            EpochAnswer::End { offset: end, .. } if *end < offset => {}
            EpochAnswer::End { .. } | EpochAnswer::NoAnswer => {
                partition.checked_epoch = partition.leader_epoch
            }
        }
        entry.position = Position::Known(partition);
        match answer {
            EpochAnswer::End { epoch, offset: end } if end < offset => {
                self.handle_truncation(now, &key, Some((epoch, end)));
            }
            EpochAnswer::Unknown => self.handle_truncation(now, &key, None),
            EpochAnswer::Later { refresh } => {
                if refresh {
                    entry.place = Place::HereUntilMetadata;
                    self.wants_metadata_soon = true;
                }
                let at = now + self.shared.settings.retry_backoff;
                self.delay(key, at);
            }
            EpochAnswer::End { .. } | EpochAnswer::NoAnswer => {
                self.unplaced.insert(key);
            }
        }
    }

    /// The log was cut off behind what was read: `end` is the epoch that it still has, and where that ended.
    fn handle_truncation(&mut self, now: Instant, key: &(Arc<str>, i32), end: Option<(i32, i64)>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Position::Known(partition) = &entry.position else { return };
        let (fetched, leader_epoch) = (partition.offset, partition.leader_epoch);
        // If the application meanwhile said where to start, its word is on the way and counts.
        let Some((version, handed_out)) = self.shared.queue.outdate_version(&entry.handle, entry.version)
        else {
            return;
        };
        entry.version = version;
        let reset = self.shared.auto_offset_reset(&key.0);
        let position = handed_out.unwrap_or(fetched).min(fetched);
        let divergence = end.map(|(_, offset)| offset);
        let is_read = divergence.is_none_or(|divergence| divergence < position);
        if is_read && reset == OffsetReset::Error {
            let place = match divergence {
                Some(offset) => format!("from offset {offset} on the records are others now"),
                None => "the leader knows no record of that time".to_owned(),
            };
            let detail = format!("read up to offset {position}, but {place}; assign or seek to go on");
            return self.give_up(key, Error::new(ErrorKind::LogTruncated, detail));
        }
        if is_read {
            let (topic, partition) = key.clone();
            let event = ConsumerEvent::LogTruncated { topic, partition, position, divergence };
            self.shared.queue.push([Item::Note { handle: Arc::clone(&entry.handle), version, event }]);
        }
        match (end, reset) {
            (Some((epoch, offset)), _) => {
                let offset = offset.min(position);
                let mut partition = PartitionConsumer::new(Arc::clone(&entry.handle), version, offset);
                partition.position_epoch = epoch;
                partition.leader_epoch = leader_epoch;
                partition.checked_epoch = leader_epoch;
                self.shared.queue.set_position(&entry.handle, version, offset);
                entry.position = Position::Known(Box::new(partition));
                self.unplaced.insert(key.clone());
            }
            (None, OffsetReset::End) => self.resolve(now, key, Offset::End),
            (None, _) => self.resolve(now, key, Offset::Beginning),
        }
    }

    /// Looks at a partition again later.
    fn delay(&mut self, key: (Arc<str>, i32), at: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.retry_at = Some(at);
            self.delayed.insert((at, key.0, key.1));
        }
    }

    /// A partition came back from its broker.
    fn take_back(&mut self, partition: Box<PartitionConsumer>, place: Place, replica: Option<Replica>) {
        let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.stopped {
            self.entries.remove(&key);
            return;
        }
        let asked_back = entry.place == Place::Leaving;
        entry.place = if asked_back { Place::Here } else { place };
        entry.replica = replica;
        if matches!(entry.position, Position::AtBroker) {
            entry.position = Position::Known(partition);
        }
        // The broker that is not the leader asked for newer metadata.
        if matches!(entry.position, Position::Known(_)) && entry.place == Place::Here {
            self.unplaced.insert(key);
        }
    }

    /// A broker does not know the leader epoch that it was asked under: it is behind, or the epoch is of a topic that is
    /// no more. Newer metadata tells the epoch; the same broker gets time to learn it.
    fn handle_unknown_epoch(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
        self.take_back(partition, Place::HereUntilMetadata, None);
        if self.entries.get(&key).is_some_and(|entry| entry.place == Place::HereUntilMetadata) {
            let at = now + self.shared.settings.fetch_error_backoff;
            self.delay(key, at);
        }
    }

    /// A broker says that a partition has no such offset.
    fn handle_out_of_range(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
        let Some(entry) = self.entries.get(&key) else { return };
        let fetched = matches!(entry.position, Position::AtBroker);
        // A follower may not have it yet, or not any more: the leader decides.
        let at_follower = entry.replica.is_some();
        let may_be_another_topic = !partition.by_id && !partition.topic_id.is_zero();
        let (answered, offset) = (partition.answered, partition.offset);
        self.take_back(partition, Place::Here, None);
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| !entry.stopped) else { return };
        if at_follower {
            // The leader and the follower may send it to and fro.
            if entry.missed.replace(offset) == Some(offset) {
                self.delay(key, now + self.shared.settings.fetch_error_backoff);
            }
            return;
        }
        if !fetched {
            return;
        }
        self.unplaced.remove(&key);
        // What a reset led to is out of range again: the broker contradicts itself.
        let wait = entry.is_reset && !answered;
        if may_be_another_topic {
            entry.reset_pending = true;
            entry.place = Place::HereUntilMetadata;
            self.wants_metadata |= !wait;
            self.wants_metadata_soon |= wait;
        } else {
            self.reset(now, &key);
        }
        if wait {
            let at = now + self.shared.settings.fetch_error_backoff;
            self.delay(key, at);
        }
    }

    /// Goes on as by `auto.offset.reset`.
    fn reset(&mut self, now: Instant, key: &(Arc<str>, i32)) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Position::Known(partition) = &entry.position else { return };
        let offset = partition.offset;
        entry.is_reset = true;
        let to = self.shared.auto_offset_reset(&key.0);
        if to != OffsetReset::Error {
            let (topic, partition) = key.clone();
            let event = ConsumerEvent::OffsetReset { topic, partition, offset, to };
            let (handle, version) = (Arc::clone(&entry.handle), entry.version);
            self.shared.queue.push([Item::Note { handle, version, event }]);
        }
        match to {
            OffsetReset::Beginning => self.resolve(now, key, Offset::Beginning),
            OffsetReset::End => self.resolve(now, key, Offset::End),
            OffsetReset::Error => {
                let error = Error::new(ErrorKind::OffsetReset, format!("offset {offset} is out of range"));
                self.give_up(key, error);
            }
        }
    }

    /// Gives a partition whose offset is known to its leader; false if that is unknown.
    fn place(&mut self, key: (Arc<str>, i32), metadata: &Metadata) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return true };
        if entry.place != Place::Here
            || entry.retry_at.is_some()
            || !matches!(entry.position, Position::Known(_))
        {
            return true;
        }
        let (Some((node, epoch)), Some((leader, _))) =
            (entry.node(&key, metadata), metadata.leader(&key.0, key.1))
        else {
            entry.place = Place::HereUntilMetadata;
            return false;
        };
        let position = std::mem::replace(&mut entry.position, Position::AtBroker);
        let Position::Known(mut partition) = position else { return true };
        partition.leader_epoch = epoch;
        partition.topic_id = metadata.topics.get(&key.0).map(|topic| topic.id).unwrap_or_default();
        if (0..epoch).contains(&partition.position_epoch) && partition.checked_epoch < epoch {
            let (topic, number) = key.clone();
            let position_epoch = partition.position_epoch;
            let question = EpochQuestion { topic, partition: number, leader_epoch: epoch, position_epoch };
            let id = self.checks.start(leader, question);
            entry.position = Position::Checking(partition, id);
            self.checked.insert(id, key);
            return true;
        }
        partition.checked_epoch = epoch;
        entry.place = Place::At(node);
        self.fetched_from.insert(node);
        self.outputs.push_back(FetchCoordinatorOutput::ToNode(node, FetchMail::Adopt(partition)));
        true
    }

    fn ask_back(&mut self, node: i32, key: &(Arc<str>, i32)) {
        let (topic, partition) = key.clone();
        self.outputs.push_back(FetchCoordinatorOutput::ToNode(node, FetchMail::Release { topic, partition }));
    }

    fn forget_lookup(&mut self, position: &Position) {
        match position {
            Position::Resolving(_, id) => {
                self.lookups.cancel(*id);
                self.askers.remove(id);
            }
            Position::Checking(_, id) => {
                self.checked.remove(id);
            }
            Position::Loading(id) => {
                self.loading.remove(id);
                if let Some(stored) = &mut self.stored {
                    stored.cancel(*id);
                }
            }
            _ => {}
        }
    }
}

impl Entry {
    /// The node to fetch from, and the leader's epoch.
    fn node(&self, key: &(Arc<str>, i32), metadata: &Metadata) -> Option<(i32, i32)> {
        let (leader, epoch) = metadata.leader(&key.0, key.1)?;
        let closer =
            self.replica.map(|replica| replica.node).filter(|node| metadata.nodes.contains_key(node));
        Some((closer.unwrap_or(leader), epoch))
    }

    /// What to tell the application about a partition that nobody leads.
    fn why_no_leader(
        &self,
        now: Instant,
        key: &(Arc<str>, i32),
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> Option<Error> {
        if let Some(error) = errors.iter().find(|error| error.name == key.0) {
            let unknown = error.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            let patient = if unknown { now - self.since < TOPIC_PATIENCE } else { error.code.is_retriable() };
            return (!patient).then(|| topic_error(error));
        }
        let count = metadata.topics.get(&key.0)?.partitions.len();
        let known = usize::try_from(key.1).is_ok_and(|partition| partition < count);
        (count > 0 && !known).then(|| unknown_partition(&key.0, key.1, count))
    }
}

#[cfg(test)]
mod tests {
    use ottla_protocol::uuid::Uuid;

    use super::*;
    use crate::{
        cluster::metadata::{Node, PartitionMetadata, TopicMetadata},
        completion::completion,
        fetch::{deliver::Records, shared::ConsumerSettings},
    };

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn metadata(leader: i32) -> Metadata {
        let node = |host: &str| Node { host: host.into(), port: 9092, rack: None };
        let partition = PartitionMetadata { leader, leader_epoch: 3, ..PartitionMetadata::default() };
        let topic = TopicMetadata { partitions: vec![partition], ..TopicMetadata::default() };
        Metadata {
            nodes: [(1, node("a")), (2, node("b"))].into(),
            topics: [(Arc::from("t"), topic)].into(),
            ..Metadata::default()
        }
    }

    struct Script {
        shared: Arc<ConsumerShared>,
        coordinator: FetchCoordinator,
        metadata: Metadata,
    }

    impl Script {
        fn new(auto_offset_reset: OffsetReset) -> Self {
            let settings = ConsumerSettings { auto_offset_reset, ..ConsumerSettings::default() };
            let shared = Arc::new(ConsumerShared::new(settings));
            Self { coordinator: FetchCoordinator::new(Arc::clone(&shared)), shared, metadata: metadata(1) }
        }

        fn assign(&mut self, partition: i32, from: Offset) {
            for command in self.shared.assign(&[(Arc::from("t"), partition, from)]) {
                self.coordinator.handle_command(NOW, command);
            }
        }

        /// What it wants now, shortened.
        fn wants(&mut self) -> Vec<String> {
            self.coordinator.advance(NOW, &self.metadata);
            let mut wants = Vec::new();
            while let Some(output) = self.coordinator.poll_output() {
                wants.push(match output {
                    FetchCoordinatorOutput::RefreshMetadata => "refresh".to_owned(),
                    FetchCoordinatorOutput::RefreshMetadataSoon => "refresh soon".to_owned(),
                    FetchCoordinatorOutput::Request(_, route, request) => {
                        format!("{} {route:?}", request.api.name())
                    }
                    FetchCoordinatorOutput::ToNode(node, FetchMail::Release { .. }) => {
                        format!("release {node}")
                    }
                    FetchCoordinatorOutput::ToNode(node, FetchMail::Adopt(partition)) => {
                        format!("adopt {node} from {} version {}", partition.offset, partition.version)
                    }
                });
            }
            wants
        }

        fn back(&self, offset: i64) -> Box<PartitionConsumer> {
            let handle = self.shared.partition("t", 0).unwrap();
            let version = handle.version();
            let mut partition = PartitionConsumer::new(handle, version, offset);
            partition.leader_epoch = 3;
            partition.refusals = 1;
            Box::new(partition)
        }

        fn errors(&self) -> Vec<ErrorKind> {
            let mut records = Records::default();
            self.shared.queue.take(usize::MAX, &mut records);
            let kind = |event: &super::super::deliver::ConsumerEvent| match event {
                super::super::deliver::ConsumerEvent::Error(error) => error.kind(),
                other => panic!("{other:?}"),
            };
            records.events().iter().map(kind).collect()
        }
    }

    #[test]
    fn a_known_offset_goes_straight_to_the_leader_and_another_place_is_asked_for() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        assert_eq!(script.wants(), ["adopt 1 from 5 version 1"]);
        script.assign(0, Offset::Beginning);
        assert_eq!(script.wants(), ["release 1", "ListOffsets Node(1)"]);
    }

    #[test]
    fn a_consumer_that_reads_committed_asks_a_broker_without_transactions_for_offsets() {
        let mut script = Script::new(OffsetReset::End);
        assert_eq!(script.shared.settings.isolation_level, IsolationLevel::ReadCommitted);
        script.assign(0, Offset::Beginning);
        script.coordinator.advance(NOW, &script.metadata);
        let Some(FetchCoordinatorOutput::Request(_, _, request)) = script.coordinator.poll_output() else {
            panic!("the leader is asked");
        };
        for version in [0, 1, 2, 11] {
            assert_eq!((request.encode)(version, &mut Vec::new()), Ok(()), "version {version}");
        }
    }

    #[test]
    fn a_partition_moves_with_its_offset_when_the_leader_changes() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        script.metadata = metadata(2);
        let known = script.metadata.clone();
        assert!(!script.coordinator.handle_metadata(NOW, &known, &[]));
        assert_eq!(script.wants(), ["release 1"], "it has one owner at a time");
        let partition = script.back(17);
        script.coordinator.handle_reply(NOW, FetchReply::Released(partition));
        assert_eq!(script.wants(), ["adopt 2 from 17 version 1"]);
    }

    #[test]
    fn a_partition_that_its_leader_refused_waits_for_newer_metadata() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(6);
        script.coordinator.handle_reply(NOW, FetchReply::NotLeader(partition));
        assert!(script.wants().is_empty(), "not back and forth with the same metadata");
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW, &known, &[]);
        assert_eq!(script.wants(), ["adopt 1 from 6 version 1"]);
    }

    #[test]
    fn an_epoch_that_the_leader_does_not_know_is_replaced_by_the_one_in_newer_metadata() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(6);
        script.coordinator.handle_reply(NOW, FetchReply::UnknownEpoch(partition));
        script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = -1;
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW, &known, &[]);
        assert!(script.wants().is_empty(), "the broker gets time to learn of the epoch");
        let later = script.coordinator.poll_timeout().expect("it is tried again");
        assert_eq!(later, NOW + script.shared.settings.fetch_error_backoff);
        script.coordinator.handle_timeout(later);
        script.coordinator.advance(later, &known);
        match script.coordinator.poll_output() {
            Some(FetchCoordinatorOutput::ToNode(1, FetchMail::Adopt(partition))) => {
                assert_eq!((partition.offset, partition.leader_epoch), (6, -1), "the same leader");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_leader_that_is_known_already_is_gone_to_at_once_but_not_for_ever() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let key = (Arc::from("t"), 0);
        for (leader, epoch, refusals, goes) in
            [(2, 4, 1, true), (1, 5, 2, true), (2, 6, 3, false), (2, 6, 3, false)]
        {
            script.metadata = metadata(leader);
            script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = epoch;
            let mut partition = script.back(6);
            partition.leader_epoch = epoch - 1;
            partition.refusals = refusals;
            script.coordinator.handle_reply(NOW, FetchReply::NotLeader(partition));
            script.coordinator.handle_new_leader(&key, &script.metadata);
            assert_eq!(!script.wants().is_empty(), goes, "epoch {epoch}");
        }
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW, &known, &[]);
        assert_eq!(script.wants(), ["adopt 2 from 6 version 1"], "metadata is asked for with a back-off");
    }

    #[test]
    fn a_new_leader_is_asked_whether_it_has_what_was_read() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let mut partition = script.back(17);
        partition.position_epoch = 2;
        partition.checked_epoch = 3;
        script.coordinator.handle_reply(NOW, FetchReply::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 17 version 1"], "the same leader, the same epoch");
        script.metadata = metadata(2);
        script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = 4;
        let mut partition = script.back(17);
        partition.position_epoch = 2;
        partition.checked_epoch = 3;
        script.coordinator.handle_reply(NOW, FetchReply::NotLeader(partition));
        assert_eq!(script.wants(), ["OffsetForLeaderEpoch Node(2)"]);
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        script.coordinator.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["adopt 2 from 0 version 2"], "a seek does not wait for the answer");
    }

    #[test]
    fn a_log_that_was_cut_off_is_told_and_gone_on_with_unless_offsets_are_not_to_be_reset() {
        for (reset, told, wants) in [
            (OffsetReset::Beginning, None, vec!["adopt 1 from 12 version 2"]),
            (OffsetReset::Error, Some(ErrorKind::LogTruncated), vec![]),
        ] {
            let mut script = Script::new(reset);
            script.assign(0, Offset::At(5));
            script.wants();
            let partition = script.back(17);
            script.shared.queue.set_position(&partition.handle, 1, 15);
            script.coordinator.handle_reply(NOW, FetchReply::Diverged(partition, 2, 12));
            assert_eq!(script.wants(), wants);
            let mut records = Records::default();
            script.shared.queue.take(usize::MAX, &mut records);
            match (records.events(), told) {
                (
                    [
                        ConsumerEvent::LogTruncated {
                            position: 15, divergence: Some(12), partition: 0, ..
                        },
                    ],
                    None,
                ) => {}
                ([ConsumerEvent::Error(error)], Some(kind)) => {
                    assert_eq!(error.kind(), kind);
                    assert!(error.to_string().contains("from offset 12 on"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
        // What was fetched in advance and not read is fetched again, without a word.
        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(17);
        script.coordinator.handle_reply(NOW, FetchReply::Diverged(partition, 2, 12));
        assert_eq!(script.wants(), ["adopt 1 from 5 version 2"]);
        assert_eq!(script.errors(), []);
    }

    #[test]
    fn a_broker_that_contradicts_itself_about_offsets_is_not_asked_in_a_loop() {
        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let entry = script.coordinator.entries.values_mut().next().unwrap();
        entry.is_reset = true;
        let mut partition = script.back(5);
        partition.topic_id = Uuid([1; 16]);
        script.coordinator.handle_reply(NOW, FetchReply::OutOfRange(partition));
        assert_eq!(script.wants(), ["refresh soon"], "it may be another topic by now");
        assert!(script.coordinator.poll_timeout().is_some_and(|at| at > NOW));
    }

    #[test]
    fn a_seek_while_a_broker_has_the_partition_starts_again_only_when_it_is_back() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let (done, waiting) = completion();
        let seek = script.shared.seek("t", 0, Offset::At(90), Some(done)).unwrap();
        let stale = Box::new(PartitionConsumer::new(script.shared.partition("t", 0).unwrap(), 1, 7));
        script.coordinator.handle_command(NOW, seek);
        assert_eq!(waiting.try_take(), Some(Ok(90)));
        assert_eq!(script.wants(), ["release 1"]);
        script.coordinator.handle_reply(NOW, FetchReply::Released(stale));
        assert_eq!(script.wants(), ["adopt 1 from 90 version 2"]);
    }

    #[test]
    fn an_offset_out_of_range_is_looked_for_anew_or_told() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.coordinator.handle_reply(NOW, FetchReply::OutOfRange(partition));
        assert_eq!(script.wants(), ["ListOffsets Node(1)"]);

        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.coordinator.handle_reply(NOW, FetchReply::OutOfRange(partition));
        assert!(script.wants().is_empty());
        assert_eq!(script.errors(), [ErrorKind::OffsetReset]);
    }

    #[test]
    fn a_topic_that_was_made_anew_is_not_read_from_the_old_offset() {
        let recreated = RecreatedTopic { name: Arc::from("t"), old_id: Uuid([1; 16]), new_id: Uuid([2; 16]) };
        for (policy, wants, told) in [
            (TopicRecreatePolicy::Error, vec!["release 1"], vec![ErrorKind::TopicRecreated]),
            (TopicRecreatePolicy::Reset, vec!["release 1", "ListOffsets Node(1)"], vec![]),
        ] {
            let mut script = Script::new(OffsetReset::Beginning);
            let settings = ConsumerSettings { topic_recreate: policy, ..script.shared.settings.clone() };
            script.shared = Arc::new(ConsumerShared::new(settings));
            script.coordinator = FetchCoordinator::new(Arc::clone(&script.shared));
            script.assign(0, Offset::At(5));
            script.wants();
            let stale = script.back(9);
            script.coordinator.handle_recreated(NOW, &recreated);
            assert_eq!(script.wants(), wants);
            script.coordinator.handle_reply(NOW, FetchReply::Released(stale));
            assert_eq!(script.wants(), Vec::<String>::new(), "the old offset is forgotten");
            assert_eq!(script.errors(), told);
            let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
            script.coordinator.handle_command(NOW, seek);
            assert_eq!(script.wants(), ["adopt 1 from 0 version 3"]);
        }
    }

    #[test]
    fn where_to_start_as_the_application_said_meanwhile_survives_that_the_topic_is_made_anew() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        let new_id = Uuid([2; 16]);
        let recreated = RecreatedTopic { name: Arc::from("t"), old_id: Uuid([1; 16]), new_id };
        script.coordinator.handle_recreated(NOW, &recreated);
        script.coordinator.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["release 1"]);
        let stale = script.back(9);
        script.coordinator.handle_reply(NOW, FetchReply::Released(stale));
        assert_eq!(script.wants(), ["adopt 1 from 0 version 2"]);
    }

    #[test]
    fn an_unknown_topic_is_told_once_and_goes_on_when_it_appears() {
        let mut script = Script::new(OffsetReset::End);
        script.metadata.topics.clear();
        script.assign(0, Offset::At(0));
        assert_eq!(script.wants(), ["refresh"]);
        let error = TopicError { name: Arc::from("t"), code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        let known = script.metadata.clone();
        for seconds in [0, 2, 4] {
            let now = NOW + Duration::from_secs(seconds);
            assert!(script.coordinator.handle_metadata(now, &known, std::slice::from_ref(&error)));
            assert_eq!(script.wants(), Vec::<String>::new(), "the cluster's owner asks again by itself");
        }
        assert_eq!(script.errors(), [ErrorKind::UnknownTopic]);
        script.metadata = metadata(1);
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW, &known, &[]);
        assert_eq!(script.wants(), ["adopt 1 from 0 version 1"]);
    }

    #[test]
    fn a_closer_replica_is_read_from_until_something_speaks_against_it() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.coordinator.handle_reply(NOW, FetchReply::ReadFrom(partition, 2));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW, &known, &[]);
        assert!(script.wants().is_empty(), "that it does not lead is no reason to leave");
        let almost = NOW + (REPLICA_LEASE - Duration::from_millis(1));
        script.coordinator.handle_metadata(almost, &known, &[]);
        assert!(script.wants().is_empty(), "its time is not over");
        let partition = script.back(9);
        script.coordinator.handle_reply(NOW, FetchReply::OutOfRange(partition));
        assert_eq!(script.wants(), ["adopt 1 from 9 version 1"], "the leader knows better");
    }

    #[test]
    fn a_leader_is_asked_again_after_a_while_whether_another_replica_is_closer() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.coordinator.handle_reply(NOW, FetchReply::ReadFrom(partition, 2));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        let known = script.metadata.clone();
        script.coordinator.handle_metadata(NOW + REPLICA_LEASE, &known, &[]);
        assert_eq!(script.wants(), ["release 2"]);
        let partition = script.back(8);
        script.coordinator.handle_reply(NOW, FetchReply::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 8 version 1"]);
    }

    #[test]
    fn a_leader_and_a_replica_that_send_a_partition_to_and_fro_are_asked_no_faster_than_the_back_off() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        for round in 0..2 {
            let partition = script.back(5);
            script.coordinator.handle_reply(NOW, FetchReply::ReadFrom(partition, 2));
            assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
            let partition = script.back(5);
            script.coordinator.handle_reply(NOW, FetchReply::OutOfRange(partition));
            let wants: &[&str] = if round == 0 { &["adopt 1 from 5 version 1"] } else { &[] };
            assert_eq!(script.wants(), wants, "round {round}");
        }
        let at = script.coordinator.poll_timeout().expect("it is looked at again");
        assert_eq!(at, NOW + script.shared.settings.fetch_error_backoff);
        script.coordinator.handle_timeout(at);
        assert_eq!(script.wants(), ["adopt 1 from 5 version 1"]);
    }

    #[test]
    fn a_closer_replica_that_cannot_be_reached_is_left_for_the_leader() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.coordinator.handle_reply(NOW, FetchReply::ReadFrom(partition, 2));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        script.coordinator.handle_unreachable(1);
        assert!(script.wants().is_empty(), "the leader is not asked for anything");
        script.coordinator.handle_unreachable(2);
        assert_eq!(script.wants(), ["release 2"], "although the metadata still list it");
        let partition = script.back(7);
        script.coordinator.handle_reply(NOW, FetchReply::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 7 version 1"]);
        script.coordinator.handle_unreachable(1);
        assert!(script.wants().is_empty(), "a leader is waited for");
    }

    #[test]
    fn a_partition_that_is_not_wanted_any_more_is_forgotten_when_it_is_back() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(6);
        let stop = script.shared.incremental_unassign(&[(Arc::from("t"), 0)]).unwrap();
        script.coordinator.handle_command(NOW, stop);
        assert_eq!(script.wants(), ["release 1"]);
        script.coordinator.handle_reply(NOW, FetchReply::Released(partition));
        assert!(script.wants().is_empty());
        let mut names = BTreeSet::new();
        script.coordinator.wanted_topics(&mut names);
        assert!(names.is_empty());
    }
}
