//! The producer's part of the cluster actor: the broker actor of each partition, records that no broker actor has, and
//! the idempotent producer's ID.
//!
//! ```text
//!   Unassigned ── a leader is known ──► At(node) ── another node leads ──► Leaving
//!       ▲                                  ▲                                 │ nothing in flight any more
//!       └───────── no known leader ◄───────┴───────── a known leader ◄───────┘
//! ```
//!
//! A partition that the application paused is treated as one without a leader.
//!
//! # Pitfalls
//!
//! - A broadcast to all broker actors misses a partition that is in transit between two of them. A purge is applied to
//!   it when it arrives (`purge_reaches_a_partition_in_transit_between_leaders`).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    vocabulary::{NodeId, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    message::{ProduceMessage, ProduceReport},
    partition::{PartitionProducer, Waiting},
    producer_id::{ProducerId, ProducerIdOutcome, ProducerIdentity},
    shared::{ProducerShared, unknown_topic_error},
    topic::ProducerTopic,
    topic_settings::{expiry_interval, shorter},
};
use crate::{
    config::TopicRecreatePolicy,
    connection::Response,
    contract::{
        broker::Broadcast,
        metadata::Metadata,
        part::{Interest, MetadataChanges, Need, Needs, Part, RequestOwner, SnapshotTime, ToNode, Urgency},
        purge::Purge,
        route::Route,
    },
    error::{Error, ErrorKind},
    event::Event,
    machine::{Instant, earliest},
    rng::Rng,
    states::{See, number_of},
    stats::{EosStatistics, Purpose, Statistics},
};

/// The location of each partition of a producer.
#[derive(Debug)]
pub(crate) struct ProducerPlacement {
    shared: Arc<ProducerShared>,
    topics: SortedMap<Arc<str>, TopicEntry>,
    places: SortedMap<TopicPartition, Placement>,
    /// The paused partitions: they stay unassigned.
    paused: SortedSet<TopicPartition>,
    next_expiry: Instant,
    /// The shortest `message.timeout.ms` of the producer and of its topics.
    shortest_timeout: Option<Duration>,
    /// When unused memory is released next.
    trim_at: Instant,
    /// The producer ID, if the producer is idempotent.
    identity: Option<ProducerId>,
    /// True after a fatal error.
    stopped: bool,
    closing: bool,
    /// The number of queue purges.
    purges: u32,
    /// The timeout of an InitProducerId request.
    request_timeout: Duration,
    rng: Rng,
    needs: VecDeque<Need<ToNode<ProduceMessage>>>,
}

#[derive(Debug)]
struct TopicEntry {
    topic: Arc<ProducerTopic>,
    needed_since: Instant,
    /// The time since which the metadata lacks its partitions.
    missing_since: Option<Instant>,
    /// The reason, if it may be temporary.
    cause: Option<Error>,
    /// The cluster rejects the topic: nothing is sent, and waiting records fail.
    refusal: Option<Error>,
}

#[derive(Debug)]
enum Placement {
    /// No leader is known.
    Unassigned(Box<PartitionProducer>),
    /// The broker actor of this node sends its records.
    At(NodeId),
    /// A broker actor is returning it.
    Leaving,
}

/// The interval at which unused batch memory is released.
const TRIM_EVERY: Duration = Duration::from_secs(30);
/// The detail of the error of records that never had a partition.
const NO_PARTITIONS: &str = "the topic's partitions are not known yet";
const NO_LEADER: &str = "the partition has no leader";
const ON_ITS_WAY: &str = "the partition was in transit between two leaders";
const PAUSED: &str = "the application paused the partition";

impl ProducerPlacement {
    /// Creates a producer without topics.
    pub(crate) fn new(shared: Arc<ProducerShared>, request_timeout: Duration, rng: Rng) -> Self {
        let settings = &shared.settings;
        // A transactional producer gets its identity from the coordinator of its transactions.
        let identity = (settings.idempotence && settings.transactional_id.is_none())
            .then(|| ProducerId::new(settings.retry_backoff, settings.retry_backoff_max));
        Self {
            identity,
            shortest_timeout: settings.topic.message_timeout,
            shared,
            topics: SortedMap::new(),
            places: SortedMap::new(),
            paused: SortedSet::new(),
            next_expiry: Instant::ZERO,
            trim_at: Instant::ZERO,
            stopped: false,
            closing: false,
            purges: 0,
            request_timeout,
            rng,
            needs: VecDeque::new(),
        }
    }

    /// Adds a topic with its first record.
    pub(crate) fn add_topic(&mut self, now: Instant, topic: Arc<ProducerTopic>) {
        let shortest = shorter(self.shortest_timeout, topic.settings().message_timeout);
        if shortest != self.shortest_timeout {
            self.shortest_timeout = shortest;
            self.next_expiry = now;
        }
        self.topics.insert(Arc::clone(topic.name()), TopicEntry::new(topic, now));
    }

    /// Returns true if the broker actor of this node has partitions.
    pub(crate) fn sends_to(&self, node: NodeId) -> bool {
        self.places.values().any(|place| matches!(place, Placement::At(at) if *at == node))
    }

    /// Handles a message from a broker actor.
    pub(crate) fn handle_report(&mut self, now: Instant, report: ProduceReport, metadata: &Metadata) {
        match report {
            ProduceReport::Released(partition) => self.place(partition, metadata),
            ProduceReport::RenewIdentity(used) => self.renew_identity(now, used),
            ProduceReport::Fatal(error) => self.stop(error),
            ProduceReport::EndIdle => self.needs.push_back(Need::Metadata(Urgency::Now)),
            // The other part reads what the sender noted.
            ProduceReport::Transaction => {}
        }
    }

    /// Handles metadata that reports a topic as unusable. Returns true if that may change soon.
    fn handle_topic_error(&mut self, now: Instant, name: &Arc<str>, code: ErrorCode) -> bool {
        let Some(entry) = self.topics.get_mut(name) else { return false };
        entry.topic.end_idle();
        let missing_since = *entry.missing_since.get_or_insert(now);
        let error = match code {
            // The topic may be deleted, or the response is from before its creation.
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                if now - missing_since < self.shared.settings.topic_propagation =>
            {
                return true;
            }
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => unknown_topic_error(),
            ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::INVALID_TOPIC_EXCEPTION => {
                Error::broker(code, None).with_api("Metadata")
            }
            // Other codes may be temporary, such as too few brokers for the replication factor while a cluster starts.
            code => {
                entry.cause = Some(Error::broker(code, None).with_api("Metadata"));
                return true;
            }
        };
        self.refuse(name, error.with_topic(&**name));
        true
    }

    /// Rejects new records of a topic that the cluster rejects, and fails those that wait. Records in flight still get
    /// their response.
    fn refuse(&mut self, name: &Arc<str>, error: Error) {
        let Some(entry) = self.topics.get_mut(name) else { return };
        entry.refusal = Some(error.clone());
        let failed = entry.topic.refuse(error.clone());
        let failed = failed.into_iter().map(|record| (record, error.clone())).collect();
        self.shared.fail_waiting(name, failed);
        self.recall(name);
        let unassigned = self.places.iter_mut().filter(|(partition, _)| partition.topic == *name);
        for (_, placement) in unassigned {
            if let Placement::Unassigned(partition) = placement {
                partition.fail_waiting(&self.shared, Waiting::All, |_| error.clone());
            }
        }
    }

    /// Publishes new metadata to the application's threads, and moves partitions to their leaders. Returns true if some
    /// leader is unknown.
    fn update(&mut self, metadata: &Metadata) -> bool {
        if self.closing {
            // The broker actors are ending: a partition that they get now would never be reported.
            return false;
        }
        let mut incomplete = false;
        let mut failed = Vec::new();
        for (name, entry) in &mut self.topics {
            let Some(known) = metadata.topics.get(name) else {
                incomplete |= entry.topic.partition_count().is_none();
                continue;
            };
            let count = known.partitions.len() as i32;
            if count == 0 || known.error != ErrorCode::NONE {
                incomplete = true;
                continue;
            }
            (entry.missing_since, entry.cause, entry.refusal) = (None, None, None);
            let leaderless = (0..count).filter(|partition| metadata.leader(name, *partition).is_none());
            let leaderless: Vec<i32> = leaderless.collect();
            if !leaderless.is_empty() {
                entry.topic.end_idle();
            }
            entry.topic.set_leaderless(leaderless, count);
            if let Some(rack) = &self.shared.settings.rack {
                entry.topic.set_elsewhere(elsewhere(metadata, name, count, rack));
            }
            if entry.topic.partition_count().is_some_and(|old| old > count) {
                entry.topic.shrink(count);
            }
            if entry.topic.partition_count().is_none_or(|old| old < count) {
                entry.topic.set_partitions(
                    count,
                    |accumulator| {
                        let place = TopicPartition::new(Arc::clone(name), accumulator.partition());
                        // The partition may have existed before, in a topic that was deleted.
                        self.places.entry(place).or_insert_with(|| {
                            let partition = PartitionProducer::new(Arc::clone(accumulator), known.id);
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
        let places: Vec<TopicPartition> = self.places.keys().cloned().collect();
        for place in places {
            incomplete |= !self.move_to_leader(&place, metadata);
        }
        incomplete
    }

    /// Hands a partition to the broker actor of its leader, or requests it back from a former leader. Returns false if
    /// an existing partition has no known leader.
    fn move_to_leader(&mut self, place: &TopicPartition, metadata: &Metadata) -> bool {
        let leader = metadata.leader(&place.topic, place.partition).map(|(node, _)| node);
        let is_paused = self.paused.contains(place) || self.refusal(&place.topic).is_some();
        let target = if is_paused { None } else { leader };
        let Some(placement) = self.places.get_mut(place) else { return leader.is_some() };
        if let Some(count) = vanished(place, metadata) {
            if let Placement::Unassigned(partition) = placement {
                fail_vanished(partition, count, &self.shared);
            }
            return true;
        }
        match (&*placement, target) {
            (Placement::At(current), None) if is_paused => {
                let current = *current;
                *placement = Placement::Leaving;
                self.needs.push_back(message(current, ProduceMessage::Pause(place.clone())));
            }
            (Placement::Unassigned(_), Some(node)) => {
                if let Placement::Unassigned(mut partition) =
                    std::mem::replace(placement, Placement::At(node))
                {
                    partition.purges = self.purges;
                    self.needs.push_back(handover(node, partition, metadata, &self.shared));
                }
            }
            (Placement::At(current), Some(node)) if *current != node => {
                let current = *current;
                *placement = Placement::Leaving;
                self.needs.push_back(message(current, ProduceMessage::Release(place.clone())));
            }
            _ => {}
        }
        leader.is_some()
    }

    /// Pauses or resumes a partition. Its requests in flight complete; waiting records stay, and their timeout runs.
    pub(crate) fn pause(&mut self, place: TopicPartition, is_paused: bool, metadata: &Metadata) {
        if is_paused {
            self.paused.insert(place.clone());
        } else {
            self.paused.remove(&place);
        }
        self.move_to_leader(&place, metadata);
    }

    /// Handles a partition that a broker actor returned: hands it to the current leader.
    fn place(&mut self, partition: Box<PartitionProducer>, metadata: &Metadata) {
        let mut partition = partition;
        let place = partition.topic_partition();
        if let Some(count) = vanished(&place, metadata) {
            fail_vanished(&mut partition, count, &self.shared);
        }
        if partition.purges != self.purges {
            // Its broker actor released it before the purge arrived.
            partition.purges = self.purges;
            let error = |_: &PartitionProducer| Error::new(ErrorKind::PurgedFromQueue, ON_ITS_WAY);
            partition.fail_waiting(&self.shared, Waiting::All, error);
        }
        let refusal = self.refusal(&place.topic);
        if let Some(error) = refusal {
            partition.fail_waiting(&self.shared, Waiting::All, |_| error.clone());
        }
        let leader = metadata.leader(&place.topic, place.partition).map(|(node, _)| node);
        let stays = self.closing || refusal.is_some() || self.paused.contains(&place);
        let target = if stays { None } else { leader };
        let placement = match target {
            Some(node) => {
                self.needs.push_back(handover(node, partition, metadata, &self.shared));
                Placement::At(node)
            }
            None => Placement::Unassigned(partition),
        };
        self.places.insert(place, placement);
    }

    /// Handles the response with a producer ID. After a fatal error the producer accepts no more records.
    pub(crate) fn handle_identity(&mut self, now: Instant, result: Result<Response, Error>) {
        let Some(identity) = &mut self.identity else { return };
        match identity.handle_response(now, result, &self.shared.identity, &mut self.rng) {
            ProducerIdOutcome::Known => self.needs.push_back(Need::Broadcast(Broadcast::Flush)),
            ProducerIdOutcome::Later(error) => {
                self.needs.extend(error.map(|error| Need::Event(Event::Error(error))));
            }
            ProducerIdOutcome::Fatal(error) => {
                self.identity = None;
                self.stop(error);
            }
        }
    }

    /// Stops the producer after a fatal error: it accepts no more records, and waiting ones fail. The application gets
    /// one event.
    pub(crate) fn stop(&mut self, error: Error) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        self.shared.close(Some(error.clone()));
        self.purge(Purge::QUEUE);
        self.needs.push_back(Need::Event(Event::Fatal(error)));
    }

    /// Purges messages from the queue, from flight, or both: those of broker actors, those without a leader, and those
    /// of partitions in transit when they arrive.
    pub(crate) fn purge(&mut self, purge: Purge) {
        self.needs.push_back(Need::Broadcast(Broadcast::Purge(purge)));
        if purge.queue {
            self.purges += 1;
            self.fail_all(ErrorKind::PurgedFromQueue);
        }
    }

    /// Requests a topic's partitions back from their broker actors.
    fn recall(&mut self, name: &Arc<str>) {
        for (partition, placement) in &mut self.places {
            if let (Placement::At(node), true) = (&*placement, partition.topic == *name) {
                self.needs.push_back(message(*node, ProduceMessage::Release(partition.clone())));
                *placement = Placement::Leaving;
            }
        }
    }

    /// Renews the producer ID or epoch, because a partition can no longer use `used`.
    fn renew_identity(&mut self, now: Instant, used: ProducerIdentity) {
        if let Some(identity) = &mut self.identity
            && identity.renew(now, used, &self.shared.identity)
        {
            self.needs.push_back(Need::Broadcast(Broadcast::Flush));
        }
    }

    /// Fails all records that no broker actor has.
    pub(crate) fn fail_all(&mut self, kind: ErrorKind) {
        self.fail_unassigned(|_| Some(Waiting::All), kind, None);
        for (name, entry) in &self.topics {
            self.fail_without_partition(name, entry, Instant::FAR_FUTURE, kind, None);
        }
    }

    /// Fails the records that no broker actor has, after a panic.
    pub(crate) fn abandon(&mut self) {
        self.fail_unassigned(|_| Some(Waiting::AllForGood), ErrorKind::Bug, None);
    }

    /// Fails all remaining records of the closed client, including those of topics without metadata.
    pub(crate) fn end(&mut self) {
        self.fail_all(ErrorKind::Closed);
        self.shared.fail_all_waiting(&Error::new(ErrorKind::Closed, NO_PARTITIONS));
    }

    /// Fails records that waited too long; `unreachable` is the reason if no broker is connected.
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
        let error = Error::new(kind, with_cause(NO_PARTITIONS, unreachable.or(entry.cause.as_ref())));
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
            let why = if self.paused.contains(place) { PAUSED } else { NO_LEADER };
            let which = match self.topics.get(&place.topic) {
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

    /// Returns why the cluster rejects a topic, if it does.
    fn refusal(&self, topic: &str) -> Option<&Error> {
        self.topics.get(topic)?.refusal.as_ref()
    }

    /// Returns the producer ID state, if the producer is idempotent and has something to send.
    fn needed_identity(&self) -> Option<&ProducerId> {
        self.identity.as_ref().filter(|_| !self.topics.is_empty())
    }

    /// Returns true if records wait, or can begin to wait at any time, where no broker actor checks their timeout. An
    /// application thread that appends a record to a topic without partitions does not wake the cluster actor.
    fn has_waiting(&self) -> bool {
        self.topics.values().any(|entry| entry.topic.partition_count().is_none())
            || self.shared.budget.messages() > 0
                && self.places.values().any(|place| matches!(place, Placement::Unassigned(_)))
    }
}

impl TopicEntry {
    const fn new(topic: Arc<ProducerTopic>, now: Instant) -> Self {
        Self { topic, needed_since: now, missing_since: Some(now), cause: None, refusal: None }
    }
}

impl ProducerPlacement {
    /// Returns true if records have no report yet.
    pub(crate) fn has_records(&self) -> bool {
        self.shared.budget.messages() > 0
    }
}

impl Part for ProducerPlacement {
    fn states(&self, see: &mut See<'_>) {
        if let Some(identity) = &self.identity {
            identity.states(see);
        }
        for (partition, place) in self.places.iter() {
            see("partition of a producer", number_of(partition), place);
        }
    }

    fn handle_metadata(&mut self, now: Instant, metadata: &Metadata, changes: &MetadataChanges) -> bool {
        // Partitions of a recreated topic return from their broker actors, and start again.
        changes.recreated.iter().for_each(|topic| self.recall(&topic.name));
        let mut incomplete = false;
        for error in &changes.errors {
            incomplete |= self.handle_topic_error(now, &error.name, error.code);
        }
        incomplete | self.update(metadata)
    }

    fn handle_new_leader(&mut self, partition: &TopicPartition, metadata: &Metadata) {
        self.move_to_leader(partition, metadata);
    }

    fn handle_periodic_refresh(&mut self, now: Instant) {
        let Some(max_idle) = self.shared.settings.metadata_max_idle else { return };
        let limit = now.earlier_by(max_idle);
        let not_sent: SortedSet<&Arc<str>> = self
            .places
            .iter()
            .filter(|(_, placement)| !matches!(placement, Placement::At(_)))
            .map(|(place, _)| &place.topic)
            .collect();
        for (name, entry) in &self.topics {
            let is_known = entry.missing_since.is_none() && entry.topic.partition_count().is_some();
            let is_healthy = is_known && entry.needed_since < limit && !not_sent.contains(name);
            entry.topic.check_idle(limit, is_healthy);
        }
    }

    fn handle_timeout(&mut self, now: Instant, unreachable: Option<&Error>) {
        self.expire(now, unreachable);
        if self.trim_at <= now {
            self.trim_at = now + TRIM_EVERY;
            self.shared.pool.trim();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let expiry = (self.shortest_timeout.is_some() && self.has_waiting()).then_some(self.next_expiry);
        let identity = self.needed_identity().and_then(ProducerId::poll_timeout);
        let trim = (self.shared.pool.idle_bytes() > 0).then_some(self.trim_at);
        earliest(earliest(expiry, identity), trim)
    }

    fn advance(&mut self, now: Instant, _metadata: &Metadata) {
        if self.needed_identity().is_none() {
            return;
        }
        let request = self.identity.as_mut().and_then(|id| id.poll_request(now, self.request_timeout));
        let owner = RequestOwner::ProducerId;
        self.needs.extend(request.map(|request| Need::Request { route: Route::Any, request, owner }));
    }

    fn add_topics(&self, topics: &mut Interest) {
        let in_use = self.topics.iter().filter(|(_, entry)| !entry.topic.is_idle());
        topics.used.extend(in_use.map(|(name, _)| Arc::clone(name)));
    }

    fn add_statistics(&mut self, at: SnapshotTime, statistics: &mut Statistics) {
        let SnapshotTime { now, began, purpose } = at;
        let settings = &self.shared.settings;
        statistics.msg_cnt = self.shared.budget.messages() as i64;
        statistics.msg_size = self.shared.budget.bytes() as i64;
        statistics.msg_max = settings.max_queued_messages as i64;
        statistics.msg_size_max = settings.max_queued_bytes as i64;
        if purpose == Purpose::Push {
            return;
        }
        for (name, entry) in &self.topics {
            let age = now.saturating_since(entry.needed_since).as_millis();
            statistics.topic(name).age = i64::try_from(age).unwrap_or(i64::MAX);
        }
        for (place, placement) in &self.places {
            if let Placement::Unassigned(unassigned) = placement {
                unassigned.add_statistics(statistics.partition(&place.topic, place.partition), None);
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

    /// Stops handing partitions to broker actors.
    fn close(&mut self) {
        self.closing = true;
    }
}

impl Needs for ProducerPlacement {
    type Message = ToNode<ProduceMessage>;

    fn poll_need(&mut self) -> Option<Need<ToNode<ProduceMessage>>> {
        self.needs.pop_front()
    }
}

fn with_cause(what: &str, cause: Option<&Error>) -> String {
    match cause {
        Some(cause) => format!("{what}; {}", cause.as_cause()),
        None => what.to_owned(),
    }
}

/// Returns the topic's number of partitions if this partition is not among them any more: the topic was recreated.
fn vanished(place: &TopicPartition, metadata: &Metadata) -> Option<usize> {
    let count = metadata.topics.get(&place.topic)?.partitions.len();
    (count > 0 && usize::try_from(place.partition).is_ok_and(|partition| partition >= count)).then_some(count)
}

fn fail_vanished(partition: &mut PartitionProducer, count: usize, shared: &ProducerShared) {
    let detail = format!("the new topic has only {count} partitions");
    partition.fail_waiting(shared, Waiting::All, |_| Error::new(ErrorKind::TopicRecreated, detail));
}

/// Hands a partition to the broker actor of its leader.
fn handover(
    node: NodeId,
    mut partition: Box<PartitionProducer>,
    metadata: &Metadata,
    shared: &ProducerShared,
) -> Need<ToNode<ProduceMessage>> {
    if let Some(topic) = metadata.topics.get(partition.topic()) {
        if partition.set_topic_id(topic.id) && shared.settings.topic_recreate == TopicRecreatePolicy::Error {
            let detail = "the message was for the topic that was deleted";
            partition.fail_waiting(shared, Waiting::All, |_| Error::new(ErrorKind::TopicRecreated, detail));
        }
        if let Some(known) = topic.partitions.get(partition.partition() as usize) {
            partition.leader_epoch = known.leader_epoch;
        }
    }
    message(node, ProduceMessage::Adopt(partition))
}

fn message(node: NodeId, message: ProduceMessage) -> Need<ToNode<ProduceMessage>> {
    Need::Tell(ToNode { node, message })
}

/// Returns the partitions whose leaders are in other racks than this one; none if no leader is in this one.
fn elsewhere(metadata: &Metadata, topic: &str, count: i32, rack: &str) -> Vec<i32> {
    let rack_of = |partition: i32| {
        let (leader, _) = metadata.leader(topic, partition)?;
        metadata.nodes.get(&leader)?.rack.as_deref()
    };
    let elsewhere: Vec<i32> = (0..count).filter(|partition| rack_of(*partition) != Some(rack)).collect();
    if elsewhere.len() < count as usize { elsewhere } else { Vec::new() }
}
