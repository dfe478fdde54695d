//! The receiving half of the cluster's owner: turns places into offsets, and gives each partition to the broker that
//! leads it.
//!
//! ```text
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
    offsets::{LookupId, OffsetLookups, topic_error, unknown_partition},
    partition::{PartitionConsumer, PartitionHandle},
    position::{Offset, Resolution, Step},
    shared::ConsumerShared,
};
use crate::{
    broker::connection::Response,
    cluster::{
        Route, RoutedRequest,
        metadata::{Metadata, TopicError},
    },
    completion::Completion,
    config::{IsolationLevel, OffsetReset},
    error::{Error, ErrorKind},
    machine::Instant,
};

/// Where every partition is that is consumed.
#[derive(Debug)]
pub struct FetchCoordinator {
    shared: Arc<ConsumerShared>,
    entries: BTreeMap<(Arc<str>, i32), Entry>,
    lookups: OffsetLookups,
    /// The partition that a lookup is for.
    askers: BTreeMap<LookupId, (Arc<str>, i32)>,
    /// Partitions to look at: their offset is known, but not who leads them.
    unplaced: BTreeSet<(Arc<str>, i32)>,
    outputs: VecDeque<FetchCoordinatorOutput>,
}

/// What the coordinator wants from the cluster's owner.
#[derive(Debug)]
pub enum FetchCoordinatorOutput {
    /// Something needs newer metadata.
    RefreshMetadata,
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
    done: Option<Completion<Result<i64, Error>>>,
    since: Instant,
    /// The error that was told last, so that it is told once.
    told: Option<ErrorKind>,
    /// Nobody wants it any more: forget it when the broker gave it back.
    stopped: bool,
}

/// What is known of a partition's offset.
#[derive(Debug)]
enum Position {
    /// Somebody is asked.
    Resolving(Resolution, LookupId),
    /// Waits for its broker.
    Known(Box<PartitionConsumer>),
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

impl FetchCoordinator {
    /// A coordinator without partitions.
    pub fn new(shared: Arc<ConsumerShared>) -> Self {
        let settings = &shared.settings;
        let isolation_level = i8::from(settings.isolation_level == IsolationLevel::ReadCommitted);
        Self {
            lookups: OffsetLookups::new(isolation_level, settings.answer_timeout, settings.retry_backoff),
            shared,
            entries: BTreeMap::new(),
            askers: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The application wants something.
    pub fn handle_command(&mut self, now: Instant, command: FetchCommand) {
        match command {
            FetchCommand::Start(starts) => starts.into_iter().for_each(|start| self.start(now, start)),
            FetchCommand::Stop(handles) => handles.iter().for_each(|handle| self.stop(handle)),
            FetchCommand::ListOffsets(query, completion) => self.lookups.start_query(now, &query, completion),
        }
    }

    /// Mail from a broker's owner.
    pub fn handle_reply(&mut self, now: Instant, reply: FetchReply) {
        match reply {
            FetchReply::Released(partition) => self.take_back(now, partition, Place::Here),
            FetchReply::NotLeader(partition) => self.take_back(now, partition, Place::HereUntilMetadata),
            FetchReply::OutOfRange(partition) => self.reset(now, partition),
        }
    }

    /// New metadata came; true if some leader is unknown.
    pub fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, errors: &[TopicError]) -> bool {
        let mut incomplete = self.lookups.handle_metadata(now, metadata, errors);
        for (key, entry) in &mut self.entries {
            if entry.stopped {
                continue;
            }
            match (metadata.leader(&key.0, key.1), entry.place) {
                (Some(_), Place::HereUntilMetadata) => {
                    entry.place = Place::Here;
                    self.unplaced.insert(key.clone());
                }
                (Some((leader, _)), Place::At(node)) if leader != node => {
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
        incomplete
    }

    /// An answer to a request, or why there is none.
    pub fn handle_answer(&mut self, now: Instant, request: u64, result: Result<Response, Error>) {
        self.lookups.handle_answer(now, request, result);
        self.handle_finished(now);
    }

    /// Places partitions and sends questions, as far as leaders are known.
    pub fn advance(&mut self, now: Instant, metadata: &Metadata) {
        self.lookups.advance(now, metadata);
        self.handle_finished(now);
        let mut wants_metadata = self.lookups.take_wants_metadata();
        for key in std::mem::take(&mut self.unplaced) {
            wants_metadata |= !self.place(key, metadata);
        }
        // A lookup that was started by an answer above asks at once.
        self.lookups.advance(now, metadata);
        wants_metadata |= self.lookups.take_wants_metadata();
        while let Some((number, leader, request)) = self.lookups.poll_request() {
            self.outputs.push_back(FetchCoordinatorOutput::Request(number, Route::Node(leader), request));
        }
        if wants_metadata {
            self.outputs.push_back(FetchCoordinatorOutput::RefreshMetadata);
        }
    }

    /// What the cluster's owner has to do next.
    pub fn poll_output(&mut self) -> Option<FetchCoordinatorOutput> {
        self.outputs.pop_front()
    }

    /// The topics whose leaders are needed.
    pub fn wanted_topics(&self, names: &mut BTreeSet<Arc<str>>) {
        names.extend(self.entries.keys().map(|(topic, _)| Arc::clone(topic)));
        self.lookups.wanted_topics(names);
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.lookups.handle_timeout(now);
        self.handle_finished(now);
    }

    /// When to call [`FetchCoordinator::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.lookups.poll_timeout()
    }

    /// The client closes: whoever waits for an answer gets none.
    pub fn close(&mut self) {
        self.entries.clear();
        self.unplaced.clear();
        self.askers.clear();
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
            done,
            since: now,
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
        let (resolution, step) = Resolution::begin(place, self.shared.settings.auto_offset_reset);
        self.take_step(now, key, resolution, step);
    }

    fn take_step(&mut self, now: Instant, key: &(Arc<str>, i32), resolution: Resolution, step: Step) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match step {
            Step::Known(offset) => {
                let partition = PartitionConsumer::new(Arc::clone(&entry.handle), entry.version, offset);
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
                    self.take_step(now, &key, resolution, step);
                }
                Err(error) => self.give_up(&key, error),
            }
        }
    }

    /// A partition came back from its broker.
    fn take_back(&mut self, _now: Instant, partition: Box<PartitionConsumer>, place: Place) {
        let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.stopped {
            self.entries.remove(&key);
            return;
        }
        let asked_back = entry.place == Place::Leaving;
        entry.place = if asked_back { Place::Here } else { place };
        if matches!(entry.position, Position::AtBroker) {
            entry.position = Position::Known(partition);
        }
        // The broker that is not the leader asked for newer metadata.
        if matches!(entry.position, Position::Known(_)) && entry.place == Place::Here {
            self.unplaced.insert(key);
        }
    }

    /// A broker says that a partition has no such offset.
    fn reset(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = (Arc::clone(partition.handle.topic()), partition.handle.partition());
        let offset = partition.offset;
        let fetched =
            self.entries.get(&key).is_some_and(|entry| matches!(entry.position, Position::AtBroker));
        self.take_back(now, partition, Place::Here);
        if !fetched || self.entries.get(&key).is_none_or(|entry| entry.stopped) {
            return;
        }
        self.unplaced.remove(&key);
        match self.shared.settings.auto_offset_reset {
            OffsetReset::Beginning => self.resolve(now, &key, Offset::Beginning),
            OffsetReset::End => self.resolve(now, &key, Offset::End),
            OffsetReset::Error => {
                let error = Error::new(ErrorKind::OffsetReset, format!("offset {offset} is out of range"));
                self.give_up(&key, error);
            }
        }
    }

    /// Gives a partition whose offset is known to its leader; false if that is unknown.
    fn place(&mut self, key: (Arc<str>, i32), metadata: &Metadata) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return true };
        if entry.place != Place::Here || !matches!(entry.position, Position::Known(_)) {
            return true;
        }
        let Some((leader, epoch)) = metadata.leader(&key.0, key.1) else {
            entry.place = Place::HereUntilMetadata;
            return false;
        };
        let position = std::mem::replace(&mut entry.position, Position::AtBroker);
        if let Position::Known(mut partition) = position {
            partition.leader_epoch = epoch;
            partition.topic_id = metadata.topics.get(&key.0).map(|topic| topic.id).unwrap_or_default();
            entry.place = Place::At(leader);
            self.outputs.push_back(FetchCoordinatorOutput::ToNode(leader, FetchMail::Adopt(partition)));
        }
        true
    }

    fn ask_back(&mut self, node: i32, key: &(Arc<str>, i32)) {
        let (topic, partition) = key.clone();
        self.outputs.push_back(FetchCoordinatorOutput::ToNode(node, FetchMail::Release { topic, partition }));
    }

    fn forget_lookup(&mut self, position: &Position) {
        if let Position::Resolving(_, id) = position {
            self.lookups.cancel(*id);
            self.askers.remove(id);
        }
    }
}

impl Entry {
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
