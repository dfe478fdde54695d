//! The sending half of the cluster's owner: which broker has which of the producer's partitions, what becomes of records
//! that no broker looks after, and the idempotent producer's identity.
//!
//! ```text
//!   Unassigned ── a leader is known ──► At(broker) ── another leads ──► Leaving
//!       ▲                                  ▲                              │ nothing in flight any more
//!       └──────── nobody leads it ◄────────┴───── somebody leads it ◄─────┘
//! ```
//!
//! A partition that the application paused is one that nobody leads.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::error_code::ErrorCode;

use super::{RoutedRequest, brokers::Brokers, metadata::Metadata};
use crate::{
    broker::connection::Response,
    error::{Error, ErrorKind},
    event::Event,
    machine::{Instant, earliest},
    mail::{BrokerKey, ToBroker},
    mutation::Mutant,
    produce::{
        partition::{PartitionProducer, Waiting},
        producer_id::{ProducerId, ProducerIdAnswer, ProducerIdentity},
        sender::Purge,
        shared::{ProducerShared, unknown_topic_error},
        topic::ProducerTopic,
        topic_settings::{expiry_interval, shorter},
    },
    stats::{EosStatistics, Statistics},
};

/// Where each partition of a producer is.
#[derive(Debug)]
pub(super) struct Placements {
    shared: Arc<ProducerShared>,
    topics: BTreeMap<Arc<str>, TopicEntry>,
    places: BTreeMap<(Arc<str>, i32), Placement>,
    /// What the application paused: it stays unassigned.
    paused: BTreeSet<(Arc<str>, i32)>,
    next_expiry: Instant,
    /// The shortest `message.timeout.ms` of the producer and of its topics.
    shortest_timeout: Option<Duration>,
    /// When memory that nobody needed lately is given back.
    trim_at: Instant,
    /// The idempotent producer's identity, if it is one.
    identity: Option<ProducerId>,
    /// An error ended it.
    stopped: bool,
    closing: bool,
    /// How often the queue was purged.
    purges: u32,
}

#[derive(Debug)]
struct TopicEntry {
    topic: Arc<ProducerTopic>,
    wanted_since: Instant,
}

#[derive(Debug)]
enum Placement {
    /// Nobody leads it, as far as is known.
    Unassigned(Box<PartitionProducer>),
    /// This broker sends its records.
    At(BrokerKey),
    /// This broker is giving it back.
    Leaving,
}

/// How often the batches' memory is looked at.
const TRIM_EVERY: Duration = Duration::from_secs(30);
/// What stands in the error of records that never had a partition.
const NO_PARTITIONS: &str = "the topic's partitions are not known yet";
const NO_LEADER: &str = "the partition has no leader";
const ON_ITS_WAY: &str = "the partition was on its way from one leader to the next";
const PAUSED: &str = "the application paused the partition";

impl Placements {
    /// A producer without topics.
    pub(super) fn new(shared: Arc<ProducerShared>) -> Self {
        let settings = &shared.settings;
        let identity = settings
            .idempotence
            .then(|| ProducerId::new(settings.retry_backoff, settings.retry_backoff_max, settings.mutation));
        Self {
            identity,
            shortest_timeout: settings.message_timeout,
            shared,
            topics: BTreeMap::new(),
            places: BTreeMap::new(),
            paused: BTreeSet::new(),
            next_expiry: Instant::ZERO,
            trim_at: Instant::ZERO,
            stopped: false,
            closing: false,
            purges: 0,
        }
    }

    /// Adds what is known of the producer as a whole, and of partitions that nobody leads, to a snapshot.
    pub(super) fn add_statistics(&self, now: Instant, began: Instant, statistics: &mut Statistics) {
        let settings = &self.shared.settings;
        statistics.msg_cnt = self.shared.budget.messages() as i64;
        statistics.msg_size = self.shared.budget.bytes() as i64;
        statistics.msg_max = settings.max_queued_messages as i64;
        statistics.msg_size_max = settings.max_queued_bytes as i64;
        for (name, entry) in &self.topics {
            let age = now.saturating_since(entry.wanted_since).as_millis();
            statistics.topic(name).age = i64::try_from(age).unwrap_or(i64::MAX);
        }
        for ((topic, partition), place) in &self.places {
            if let Placement::Unassigned(unassigned) = place {
                unassigned.add_statistics(statistics.partition(topic, *partition), None);
            }
        }
        if let Some(state) = &self.identity {
            let identity = self.shared.identity.get();
            let since = state.since().unwrap_or(began);
            statistics.eos = Some(EosStatistics {
                idemp_state: if identity.is_some() { "Assigned" } else { "WaitPID" },
                idemp_stateage: i64::try_from(now.saturating_since(since).as_millis()).unwrap_or(i64::MAX),
                txn_state: "Init",
                txn_stateage: 0,
                txn_may_enq: true,
                producer_id: identity.map_or(-1, |identity| identity.id),
                producer_epoch: identity.map_or(-1, |identity| i64::from(identity.epoch)),
                epoch_cnt: self.shared.identity.renewals() as i64,
            });
        }
    }

    /// The topics whose metadata is wanted.
    pub(super) fn topic_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.keys()
    }

    /// A topic is produced to for the first time.
    pub(super) fn add_topic(&mut self, now: Instant, topic: Arc<ProducerTopic>) {
        let shortest = shorter(self.shortest_timeout, topic.settings().message_timeout);
        if shortest != self.shortest_timeout {
            self.shortest_timeout = shortest;
            self.next_expiry = now;
        }
        self.topics.insert(Arc::clone(topic.name()), TopicEntry { topic, wanted_since: now });
    }

    /// True if this broker was given partitions.
    pub(super) fn sends_to(&self, key: BrokerKey) -> bool {
        self.places.values().any(|place| matches!(place, Placement::At(at) if *at == key))
    }

    /// Fires what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>) {
        self.expire(now, unreachable);
        if self.trim_at <= now {
            self.trim_at = now + TRIM_EVERY;
            self.shared.pool.trim();
        }
    }

    /// When to call [`Placements::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.has_waiting().then_some(self.next_expiry);
        let identity = self.wanted_identity().and_then(ProducerId::poll_timeout);
        let trim = (self.shared.pool.idle_bytes() > 0).then_some(self.trim_at);
        earliest(earliest(expiry, identity), trim)
    }

    /// The metadata says that a topic can't be used; true if that may change soon.
    pub(super) fn handle_topic_error(&mut self, now: Instant, name: &Arc<str>, code: ErrorCode) -> bool {
        let Some(entry) = self.topics.get(name) else { return false };
        if entry.topic.partition_count().is_some() {
            // It was known: it may have been deleted, or the answer is from before its creation.
            return true;
        }
        let patience = self.shared.settings.topic_propagation;
        let error = match code {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION if now - entry.wanted_since >= patience => {
                unknown_topic_error()
            }
            code if code.is_retriable() => return true,
            code => Error::broker(code, None).with_api("Metadata"),
        };
        let error = error.with_topic(&**name);
        let failed = entry.topic.set_error(Some(error.clone()));
        let failed = failed.into_iter().map(|record| (record, error.clone())).collect();
        self.shared.fail_waiting(name, failed);
        true
    }

    /// Makes what is new in the metadata known to the application's threads, and moves partitions to their leaders; true
    /// if some leader is unknown.
    pub(super) fn update(&mut self, metadata: &Metadata, brokers: &mut Brokers) -> bool {
        if self.closing {
            // The brokers' owners are going: what they were given now would never be reported.
            return false;
        }
        let mut incomplete = false;
        let mut failed = Vec::new();
        for (name, entry) in &self.topics {
            let Some(known) = metadata.topics.get(name) else {
                incomplete |= entry.topic.partition_count().is_none();
                continue;
            };
            let count = known.partitions.len() as i32;
            if count == 0 {
                incomplete = true;
                continue;
            }
            let leaderless = (0..count).filter(|partition| metadata.leader(name, *partition).is_none());
            entry.topic.set_leaderless(leaderless.collect(), count);
            if entry.topic.partition_count().is_some_and(|old| old > count) {
                entry.topic.shrink(count);
            }
            if entry.topic.partition_count().is_none_or(|old| old < count) {
                entry.topic.set_partitions(
                    count,
                    |accumulator| {
                        let place = (Arc::clone(name), accumulator.partition());
                        // It may have been there before, in a topic that was deleted.
                        self.places.entry(place).or_insert_with(|| {
                            let partition = PartitionProducer::new(Arc::clone(accumulator), known.id, -1);
                            Placement::Unassigned(Box::new(partition))
                        });
                    },
                    |records| {
                        let unplaced = self.shared.append_waiting(&entry.topic, count, records);
                        failed.push((Arc::clone(name), unplaced));
                    },
                );
            }
        }
        for (name, records) in failed {
            self.shared.fail_waiting(&name, records);
        }
        let places: Vec<(Arc<str>, i32)> = self.places.keys().cloned().collect();
        for place in places {
            incomplete |= !self.move_to_leader(place, metadata, brokers);
        }
        incomplete
    }

    /// Gives a partition to the broker that leads it, or asks for it back from one that does not any more. False if
    /// nobody is known to lead it, although there is such a partition.
    pub(super) fn move_to_leader(
        &mut self,
        place: (Arc<str>, i32),
        metadata: &Metadata,
        brokers: &mut Brokers,
    ) -> bool {
        let leader = metadata.leader(&place.0, place.1).map(|(node, _)| node);
        let is_paused = self.paused.contains(&place);
        let target = if is_paused { None } else { leader.and_then(|node| brokers.of_node(node, metadata)) };
        let Some(placement) = self.places.get_mut(&place) else { return leader.is_some() };
        if let Some(count) = vanished(&place, metadata) {
            if let Placement::Unassigned(partition) = placement {
                fail_vanished(partition, count, &self.shared);
            }
            return true;
        }
        match (&*placement, target) {
            (Placement::At(current), None) if is_paused => {
                let current = *current;
                *placement = Placement::Leaving;
                let (topic, partition) = place;
                brokers.mail(current, ToBroker::PauseProducer { topic, partition });
            }
            (Placement::Unassigned(_), Some(key)) => {
                if let Placement::Unassigned(mut partition) = std::mem::replace(placement, Placement::At(key))
                {
                    partition.purges = self.purges;
                    give(key, partition, metadata, &self.shared, brokers);
                }
            }
            (Placement::At(current), Some(key)) if *current != key => {
                let current = *current;
                *placement = Placement::Leaving;
                let (topic, partition) = place;
                brokers.mail(current, ToBroker::ReleaseProducer { topic, partition });
            }
            _ => {}
        }
        leader.is_some()
    }

    /// The application pauses a partition, or goes on with it. What is in flight is waited for; the rest stays, and its time
    /// runs.
    pub(super) fn pause(
        &mut self,
        place: (Arc<str>, i32),
        is_paused: bool,
        metadata: &Metadata,
        brokers: &mut Brokers,
    ) {
        if is_paused {
            self.paused.insert(place.clone());
        } else {
            self.paused.remove(&place);
        }
        self.move_to_leader(place, metadata, brokers);
    }

    /// A partition came back from a broker: give it to whoever leads it now.
    pub(super) fn place(
        &mut self,
        partition: Box<PartitionProducer>,
        metadata: &Metadata,
        brokers: &mut Brokers,
    ) {
        let mut partition = partition;
        let place = (Arc::clone(partition.topic()), partition.partition());
        if let Some(count) = vanished(&place, metadata) {
            fail_vanished(&mut partition, count, &self.shared);
        }
        let missed = partition.purges != self.purges;
        if missed && !self.shared.settings.mutation.is(Mutant::PurgeNotMoving) {
            // Its broker's owner let go of it before it was told of the purge.
            partition.purges = self.purges;
            let error = |_: &PartitionProducer| Error::new(ErrorKind::PurgedFromQueue, ON_ITS_WAY);
            partition.fail_waiting(&self.shared, Waiting::All, error);
        }
        let leader = metadata.leader(&place.0, place.1).map(|(node, _)| node);
        let stays = self.closing || self.paused.contains(&place);
        let target = if stays { None } else { leader.and_then(|node| brokers.of_node(node, metadata)) };
        let placement = match target {
            Some(key) => {
                give(key, partition, metadata, &self.shared, brokers);
                Placement::At(key)
            }
            None => Placement::Unassigned(partition),
        };
        self.places.insert(place, placement);
    }

    /// The request for an identity, if one is due.
    pub(super) fn poll_identity_request(&mut self, now: Instant, timeout: Duration) -> Option<RoutedRequest> {
        self.wanted_identity()?;
        self.identity.as_mut()?.poll_request(now, timeout)
    }

    /// The cluster's answer with an identity. What the application is to hear of it comes back; after a fatal error the
    /// producer takes no more records.
    pub(super) fn handle_identity(
        &mut self,
        now: Instant,
        result: Result<Response, Error>,
        brokers: &mut Brokers,
    ) -> Option<Event> {
        let answer =
            self.identity.as_mut()?.handle_answer(now, result, &self.shared.identity, &mut brokers.rng);
        match answer {
            ProducerIdAnswer::Known => {
                brokers.mail_all(|| ToBroker::Look);
                None
            }
            ProducerIdAnswer::Later(error) => error.map(Event::Error),
            ProducerIdAnswer::Fatal(error) => {
                self.identity = None;
                self.stop(&error, brokers).then_some(Event::Fatal(error))
            }
        }
    }

    /// The producer can't go on: it takes no more, and what waits fails. False if it was stopped before.
    pub(super) fn stop(&mut self, error: &Error, brokers: &mut Brokers) -> bool {
        if std::mem::replace(&mut self.stopped, true) {
            return false;
        }
        self.shared.close(Some(error.clone()));
        self.purge(Purge::QUEUE, brokers);
        true
    }

    /// Removes messages from the queue, from flight, or both: those that brokers have, those that nobody leads, and those on
    /// their way from one to the other, when they arrive.
    pub(super) fn purge(&mut self, purge: Purge, brokers: &mut Brokers) {
        brokers.mail_all(|| ToBroker::Purge(purge));
        if purge.queue {
            self.purges += 1;
            self.fail_all(ErrorKind::PurgedFromQueue);
        }
    }

    /// A topic was deleted and made anew: its partitions come back from their brokers, and start again.
    pub(super) fn handle_recreated(&mut self, name: &Arc<str>, brokers: &mut Brokers) {
        for ((topic, partition), placement) in &mut self.places {
            if let (Placement::At(key), true) = (&*placement, topic == name) {
                let mail = ToBroker::ReleaseProducer { topic: Arc::clone(topic), partition: *partition };
                brokers.mail(*key, mail);
                *placement = Placement::Leaving;
            }
        }
    }

    /// A partition can't go on with the identity that it used.
    pub(super) fn renew_identity(&mut self, now: Instant, used: ProducerIdentity, brokers: &mut Brokers) {
        if let Some(identity) = &mut self.identity
            && identity.renew(now, used, &self.shared.identity)
        {
            brokers.mail_all(|| ToBroker::Look);
        }
    }

    /// Fails all that no broker has.
    pub(super) fn fail_all(&mut self, kind: ErrorKind) {
        self.fail_unassigned(|_| Some(Waiting::All), kind, None);
        for (name, entry) in &self.topics {
            self.fail_without_partition(name, entry, Instant::FAR_FUTURE, kind, None);
        }
    }

    /// The client closes: partitions are not given to brokers any more.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// The client is broken: fails what no broker has.
    pub(super) fn abandon(&mut self) {
        self.fail_unassigned(|_| Some(Waiting::AllForGood), ErrorKind::Bug, None);
    }

    /// The client is closed: fails what is left, also in topics that it never heard of.
    pub(super) fn end(&mut self) {
        if self.shared.settings.mutation.is(Mutant::CloseUnreported) {
            return;
        }
        self.fail_all(ErrorKind::Closed);
        self.shared.fail_all_waiting(&Error::new(ErrorKind::Closed, NO_PARTITIONS));
    }

    /// Fails what waited for too long; `unreachable` says why no broker is connected, if none is.
    fn expire(&mut self, now: Instant, unreachable: Option<&Error>) {
        let Some(shortest) = self.shortest_timeout else { return };
        if self.next_expiry > now {
            return;
        }
        self.next_expiry = now + expiry_interval(shortest);
        let kind = ErrorKind::MessageTimedOutInQueue;
        for (name, entry) in &self.topics {
            if let Some(limit) = entry.topic.settings().timed_out_before(now) {
                self.fail_without_partition(name, entry, limit, kind, unreachable);
            }
        }
        let which = |topic: &ProducerTopic| topic.settings().timed_out_before(now).map(Waiting::Since);
        self.fail_unassigned(which, kind, unreachable);
    }

    fn fail_without_partition(
        &self,
        name: &Arc<str>,
        entry: &TopicEntry,
        limit: Instant,
        kind: ErrorKind,
        unreachable: Option<&Error>,
    ) {
        let error = Error::new(kind, with_cause(NO_PARTITIONS, unreachable));
        let failed =
            entry.topic.expire_waiting(limit).into_iter().map(|record| (record, error.clone())).collect();
        self.shared.fail_waiting(name, failed);
    }

    fn fail_unassigned(
        &mut self,
        which: impl Fn(&ProducerTopic) -> Option<Waiting>,
        kind: ErrorKind,
        unreachable: Option<&Error>,
    ) {
        for (place, placement) in &mut self.places {
            let (topic, _) = place;
            let why = if self.paused.contains(place) { PAUSED } else { NO_LEADER };
            let which = match self.topics.get(topic) {
                Some(entry) if !self.closing => which(&entry.topic),
                _ => Some(Waiting::AllForGood),
            };
            if let (Placement::Unassigned(partition), Some(which)) = (placement, which) {
                partition.fail_waiting(&self.shared, which, |partition| {
                    Error::new(kind, with_cause(why, partition.refusal().or(unreachable)))
                });
            }
        }
    }

    /// The identity, if it is an idempotent producer with something to send.
    fn wanted_identity(&self) -> Option<&ProducerId> {
        self.identity.as_ref().filter(|_| !self.topics.is_empty())
    }

    /// True if records wait where no broker looks after their time.
    fn has_waiting(&self) -> bool {
        self.shared.budget.messages() > 0
            && (self.topics.values().any(|entry| entry.topic.waiting_since().is_some())
                || self.places.values().any(|p| matches!(p, Placement::Unassigned(_))))
    }
}

fn with_cause(what: &str, cause: Option<&Error>) -> String {
    match cause {
        Some(cause) => format!("{what}; {}", cause.as_cause()),
        None => what.to_owned(),
    }
}

/// The number of partitions that a topic has, if this one is not among them any more: it was made anew.
fn vanished((topic, partition): &(Arc<str>, i32), metadata: &Metadata) -> Option<usize> {
    let count = metadata.topics.get(topic)?.partitions.len();
    (count > 0 && usize::try_from(*partition).is_ok_and(|partition| partition >= count)).then_some(count)
}

fn fail_vanished(partition: &mut PartitionProducer, count: usize, shared: &ProducerShared) {
    let detail = format!("the new topic has only {count} partitions");
    partition.fail_waiting(shared, Waiting::All, |_| Error::new(ErrorKind::TopicRecreated, detail));
}

/// Hands a partition to the broker that leads it.
fn give(
    key: BrokerKey,
    mut partition: Box<PartitionProducer>,
    metadata: &Metadata,
    shared: &ProducerShared,
    brokers: &mut Brokers,
) {
    if let Some(topic) = metadata.topics.get(partition.topic()) {
        if partition.set_topic_id(topic.id) && shared.settings.fail_of_old_topic {
            let detail = "the message was taken for the topic that was deleted";
            partition.fail_waiting(shared, Waiting::All, |_| Error::new(ErrorKind::TopicRecreated, detail));
        }
        if let Some(known) = topic.partitions.get(partition.partition() as usize) {
            partition.leader_epoch = known.leader_epoch;
        }
    }
    brokers.mail(key, ToBroker::AdoptProducer(partition));
}
