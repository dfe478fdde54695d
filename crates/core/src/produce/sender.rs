//! The sending half of a broker's owner: the partitions that it leads, its collector, and what is in flight.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    compress::Compression,
    error_code::ErrorCode,
    generated::produce::{
        ProduceResponseView,
        response::{PartitionResponseView, ResponseView},
    },
    uuid::Uuid,
};

use super::{
    ack::{Verdict, is_congested, judge, may_have_been_written},
    adaptive::Outcome,
    batch::ReadyBatch,
    collector::{Collector, Linger, SendReason},
    partition::{Next, PartitionProducer, Waiting},
    producer_id::ProducerIdentity,
    ready::{Ready, ReadyList},
    report::{Delivered, PersistenceStatus},
    request::{Place, ProduceBatch, ProduceFrame, RequestHead, decode_answer},
    shared::ProducerShared,
    topic::ProducerTopic,
    topic_settings::{RequestTerms, expiry_interval, shorter},
};
use crate::{
    backoff::Backoff,
    broker::{
        connection::{Connection, Response},
        inflight::{InFlight, Payload, RequestTag},
        throttle::FIRST_PRODUCE,
    },
    cluster::metadata::LeaderHint,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    mutation::Mutant,
    rng::Rng,
    stats::{BrokerStatistics, CollectorStatistics, Statistics, Window},
    wake::WakeHandle,
};

/// For how many batches of a request room is made beforehand.
const MOST_EXPECTED: usize = 4096;

/// The sending half of one broker.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<ProducerShared>,
    /// The broker's id, -1 if it is not known.
    broker_id: i32,
    ready: Arc<ReadyList>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    by_partition: BTreeMap<(Arc<str>, i32), usize>,
    collector: Collector,
    hints: Vec<Ready>,
    retries: BTreeSet<(Instant, usize)>,
    /// What one answer refused is tried again together: a thousand back-offs of their own would be a thousand requests.
    last_refusal: Option<Refusal>,
    /// Slots that wait for the producer's identity.
    without_identity: Vec<usize>,
    /// The identity at the last look.
    identity_seen: Option<ProducerIdentity>,
    requests_in_flight: usize,
    /// Why there is no connection.
    unreachable: Option<Error>,
    next_expiry: Instant,
    /// The shortest `message.timeout.ms` of the producer and of the topics that were here.
    shortest_timeout: Option<Duration>,
    /// The last answer asked to hold back.
    was_throttled: bool,
    counters: Box<SenderCounters>,
    outputs: VecDeque<SenderOutput>,
    rng: Rng,
}

/// When something was refused, and when it is tried again.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    came: Instant,
    failures: u32,
    retry_at: Instant,
}

#[derive(Debug)]
struct Slot {
    topic: Arc<ProducerTopic>,
    partition: PartitionProducer,
    backoff: Backoff,
    /// When to look next whether messages timed out.
    next_expiry: Instant,
}

/// What the sender counts, per request and per batch.
#[derive(Debug, Default)]
struct SenderCounters {
    collector: CollectorStatistics,
    retries: i64,
    /// Bytes and messages of the batches of each topic.
    topics: BTreeMap<Arc<str>, (Window, Window)>,
}

/// What the sender tells its broker's owner.
#[derive(Debug)]
pub enum SenderOutput {
    /// A partition that was to leave has nothing in flight any more.
    Released(Box<PartitionProducer>),
    /// The leader of a partition is not who it was thought to be.
    RefreshMetadata(Arc<str>),
    /// The broker does not know a topic by this id.
    UnknownTopicId(Arc<str>, Uuid),
    /// Another broker leads a partition, as this one says.
    LeaderHint(LeaderHint),
    /// A partition can't go on with this identity of the producer.
    RenewIdentity(ProducerIdentity),
    /// The broker asks to be left alone for so long.
    HoldBack(Duration),
    /// The producer can't go on.
    Fatal(Error),
    /// The broker asks to hold back for so many milliseconds, or no longer does.
    Throttled(u32),
    /// The broker's answer is odd.
    Odd(Error),
    /// The broker's answer can't be understood: drop the connection.
    Misbehaved(Error),
}

/// What to remove in a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// Records that wait in the queue.
    pub queue: bool,
    /// Records in flight, whose fate is unknown then.
    pub in_flight: bool,
}

impl Purge {
    /// Records that wait in the queue.
    pub const QUEUE: Self = Self { queue: true, in_flight: false };
    /// Records in flight.
    pub const IN_FLIGHT: Self = Self { queue: false, in_flight: true };
    /// Everything.
    pub const ALL: Self = Self { queue: true, in_flight: true };
}

/// A connection with more unsent bytes than this gets no further ProduceRequest: what waits in the accumulators grows
/// into larger batches meanwhile.
const ENOUGH_UNSENT_BYTES: usize = 2 << 20;

impl Sender {
    /// A sender without partitions; `wake` makes the broker's owner run.
    pub fn new(shared: Arc<ProducerShared>, broker_id: Option<i32>, wake: WakeHandle, rng: Rng) -> Self {
        let settings = &shared.settings;
        Self {
            ready: Arc::new(ReadyList::new(
                wake,
                Arc::clone(&shared.flushing),
                Arc::clone(&shared.lingers_differ),
                settings.max_partitions,
                settings.max_bytes,
            )),
            collector: Collector::new(settings.linger, settings.max_partitions, settings.max_in_flight),
            shortest_timeout: settings.message_timeout,
            shared,
            broker_id: broker_id.unwrap_or(-1),
            slots: Vec::new(),
            free: Vec::new(),
            by_partition: BTreeMap::new(),
            hints: Vec::new(),
            retries: BTreeSet::new(),
            last_refusal: None,
            without_identity: Vec::new(),
            identity_seen: None,
            requests_in_flight: 0,
            unreachable: None,
            next_expiry: Instant::ZERO,
            was_throttled: false,
            counters: Box::default(),
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// The broker's id is known now.
    pub const fn set_broker_id(&mut self, id: i32) {
        self.broker_id = id;
    }

    /// The broker leads this partition from now on.
    pub fn adopt(&mut self, partition: PartitionProducer) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.by_partition.insert((Arc::clone(partition.topic()), partition.partition()), slot);
        partition.accumulator().set_owner(&self.ready, slot);
        let settings = &self.shared.settings;
        let backoff = Backoff::new(settings.retry_backoff, settings.retry_backoff_max);
        let mut partition = partition;
        partition.mutate(settings.mutation);
        self.retries.extend(partition.retry_at.map(|at| (at, slot)));
        let topic = self.shared.topic(partition.topic()).0;
        let shortest = shorter(self.shortest_timeout, topic.settings().message_timeout);
        if shortest != self.shortest_timeout {
            self.shortest_timeout = shortest;
            self.next_expiry = Instant::ZERO;
        }
        self.slots[slot] = Some(Slot { topic, partition, backoff, next_expiry: Instant::ZERO });
        self.collect(slot);
    }

    /// The broker does not lead this partition any more: it leaves as soon as nothing is in flight.
    pub fn release(&mut self, topic: &Arc<str>, partition: i32, connection: &mut Connection) {
        if let Some(slot) = self.leave(topic, partition) {
            self.recall(slot, connection);
            self.let_go(slot);
        }
    }

    /// The application paused a partition: it is given back as soon as what is in flight is answered.
    pub fn pause(&mut self, topic: &Arc<str>, partition: i32) {
        if let Some(slot) = self.leave(topic, partition) {
            self.let_go(slot);
        }
    }

    /// Takes nothing of a partition any more.
    fn leave(&mut self, topic: &Arc<str>, partition: i32) -> Option<usize> {
        let slot = self.by_partition.remove(&(Arc::clone(topic), partition))?;
        if let Some(entry) = &mut self.slots[slot] {
            entry.partition.accumulator().clear_owner();
            entry.partition.leaving = true;
        }
        self.collector.remove(slot);
        Some(slot)
    }

    /// Takes back the batches whose requests are written and not answered, to be sent to the partition's new leader: an
    /// answer may be long in coming, because it waits for the slowest partition of its request and of those before it.
    /// Sequence numbers make that safe. If the old leader has written a batch after all, the new one knows it.
    fn recall(&mut self, slot: usize, connection: &mut Connection) {
        let Some(entry) = &mut self.slots[slot] else { return };
        if !self.shared.settings.idempotence {
            return;
        }
        let max_retries = self.shared.settings.max_retries;
        for request in connection.in_flight_mut().written_mut() {
            let Payload::Produce(frame) = &mut request.payload else { continue };
            let is_ours = |batch: &ProduceBatch| {
                batch.slot == slot && !batch.reported && batch.batch.attempts < max_retries
            };
            let Some(at) = frame.batches.iter().position(is_ours) else { continue };
            let mut batch = frame.batches.remove(at).batch;
            batch.possibly_persisted = true;
            batch.attempts += 1;
            entry.partition.in_flight -= 1;
            entry.partition.counters.in_flight -= u64::from(batch.sealed.record_count());
            self.counters.retries += 1;
            entry.partition.put_back(batch);
        }
    }

    /// True if there is something to send, so that a connection is wanted.
    pub fn wants_connection(&self) -> bool {
        !self.collector.is_empty() || !self.retries.is_empty() || !self.without_identity.is_empty()
    }

    /// Looks at the hints, then sends what is due and may go.
    pub fn pump(&mut self, now: Instant, connection: &mut Connection) {
        if !self.without_identity.is_empty() && self.shared.identity.get() != self.identity_seen {
            self.identity_seen = self.shared.identity.get();
            for slot in std::mem::take(&mut self.without_identity) {
                self.collect(slot);
            }
        }
        self.take_hints();
        loop {
            self.send_due(now, connection);
            if self.ready.settle(self.collector.len(), !self.collector.is_empty()) {
                return;
            }
            self.take_hints();
        }
    }

    /// An answer to one of this sender's requests.
    pub fn handle_response(&mut self, now: Instant, response: Response, peer: &str) {
        let in_flight = self.requests_in_flight;
        self.requests_in_flight -= 1;
        let (version, queued_at) = (response.request.version, response.request.queued_at);
        let bytes = response.request.payload.len();
        let mut response = response;
        let Payload::Produce(frame) = &mut response.request.payload else { return };
        let batches = std::mem::take(&mut frame.batches);
        let asked = frame.partitions;
        let answer = decode_answer(response.body(), version);
        match answer {
            Ok(answer) => {
                let outcome = if is_congested(&answer) { Outcome::Congested } else { Outcome::Good };
                self.collector.pace().answered(now, in_flight, now - queued_at, bytes, outcome);
                self.handle_answer(now, &answer, version, asked, batches, peer);
            }
            Err(error) => {
                let error = Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Produce");
                for batch in batches {
                    self.handle_lost_batch(now, batch, true, &error);
                }
                self.outputs.push_back(SenderOutput::Misbehaved(error));
            }
        }
    }

    /// A request that expects no answer is written.
    pub fn handle_written(&mut self, request: InFlight) {
        self.requests_in_flight -= 1;
        let Payload::Produce(mut frame) = request.payload else { return };
        let delivered = Delivered { base_offset: None, log_append_time: None };
        for batch in std::mem::take(&mut frame.batches) {
            self.finish(batch, Ok(delivered), PersistenceStatus::PossiblyPersisted);
        }
    }

    /// The connection is ready.
    pub fn handle_up(&mut self) {
        self.unreachable = None;
    }

    /// The connection failed, or could not be made.
    pub fn handle_down(&mut self, error: &Error) {
        self.unreachable = Some(error.clone());
    }

    /// A request was lost with its connection; `sent` if any of its bytes may have left.
    pub fn handle_lost(&mut self, now: Instant, request: InFlight, sent: bool, error: &Error) {
        self.requests_in_flight -= 1;
        self.collector.pace().disconnected();
        let Payload::Produce(mut frame) = request.payload else { return };
        for batch in std::mem::take(&mut frame.batches) {
            self.handle_lost_batch(now, batch, sent, error);
        }
    }

    /// Fires what is due: retries, and messages that waited too long.
    pub fn handle_timeout(&mut self, now: Instant, connection: &mut Connection) {
        while let Some((at, slot)) = self.retries.first().copied()
            && at <= now
        {
            self.retries.remove(&(at, slot));
            if let Some(entry) = &mut self.slots[slot] {
                entry.partition.retry_at = None;
            }
            self.collect(slot);
        }
        if let Some(shortest) = self.shortest_timeout
            && self.next_expiry <= now
        {
            self.next_expiry = now + expiry_interval(shortest);
            if now.earlier_by(shortest) > Instant::ZERO {
                self.expire(now, connection);
            }
        }
    }

    /// When to call [`Sender::handle_timeout`] or [`Sender::pump`].
    pub fn poll_timeout(&self, connection: &Connection) -> Option<Instant> {
        let retry = self.retries.first().map(|(at, _)| *at);
        let may_send = connection.may_send()
            && self.requests_in_flight < self.shared.settings.max_in_flight
            && connection.unsent_bytes() < ENOUGH_UNSENT_BYTES;
        let linger = may_send.then(|| self.collector.deadline(self.requests_in_flight)).flatten();
        let expiry = (self.requests_in_flight > 0 || self.wants_connection())
            .then_some(self.shortest_timeout)
            .flatten()
            .map(|_| self.next_expiry);
        earliest(earliest(retry, linger), expiry)
    }

    /// What the broker's owner has to know.
    pub fn poll_output(&mut self) -> Option<SenderOutput> {
        self.outputs.pop_front()
    }

    /// Removes messages from the queue, from flight, or both; each is reported.
    pub fn purge(&mut self, purge: Purge, connection: &mut Connection) {
        if purge.queue {
            self.fail_all_waiting(Waiting::All, ErrorKind::PurgedFromQueue);
            self.slots.iter_mut().flatten().for_each(|slot| slot.partition.purges += 1);
        }
        if purge.in_flight {
            self.report_in_flight(connection, ErrorKind::PurgedInFlight, |_, _| true);
        }
    }

    /// Fails everything that is left, with `kind`: the client closes.
    pub fn close(&mut self, connection: &mut Connection, kind: ErrorKind) {
        self.report_in_flight(connection, kind, |_, _| true);
        self.fail_all_waiting(Waiting::All, kind);
    }

    /// Fails everything that is left, partition by partition: the client is broken, and this may be, too.
    pub fn abandon(&mut self, connection: &mut Connection, error: &Error) {
        self.report_in_flight(connection, ErrorKind::Bug, |_, _| true);
        for partition in &mut self.take_partitions() {
            partition.fail_waiting(&self.shared, Waiting::AllForGood, |_| error.clone());
        }
    }

    /// All partitions, taken out: the broker is gone for good.
    pub fn take_partitions(&mut self) -> Vec<PartitionProducer> {
        self.by_partition.clear();
        self.slots.iter_mut().filter_map(Option::take).map(|slot| slot.partition).collect()
    }

    #[cfg(test)]
    pub(super) fn partition_mut(&mut self, slot: usize) -> &mut PartitionProducer {
        &mut self.slots[slot].as_mut().expect("a partition").partition
    }

    fn take_hints(&mut self) {
        let mut hints = std::mem::take(&mut self.hints);
        self.ready.drain(&mut hints);
        for hint in hints.drain(..) {
            let Some(Some(Slot { topic, partition, .. })) = self.slots.get(hint.slot) else { continue };
            if !(partition.leaving || partition.retry_at.is_some() || partition.is_draining()) {
                self.collector.add_of_topic(hint.slot, hint.since, hint.full, topic.linger());
            }
        }
        self.hints = hints;
    }

    fn send_due(&mut self, now: Instant, connection: &mut Connection) {
        while connection.may_send()
            && self.requests_in_flight
                < self.shared.settings.max_in_flight
                    + usize::from(self.shared.settings.mutation.is(Mutant::TooManyInFlight))
            && connection.unsent_bytes() < ENOUGH_UNSENT_BYTES
        {
            let enough_bytes = self.ready.has_enough_bytes();
            let in_flight = self.requests_in_flight;
            let reason = self.collector.due(now, self.shared.is_flushing(), enough_bytes, in_flight);
            let Some(reason) = reason else {
                return;
            };
            if !self.send_one(now, connection, reason) {
                return;
            }
        }
    }

    /// Builds and queues one request; false if there was nothing to put into it.
    fn send_one(&mut self, now: Instant, connection: &mut Connection, reason: SendReason) -> bool {
        // The versions before 3 carry message sets, which have no place for a producer's identity.
        let lowest = if self.shared.settings.idempotence { 3 } else { 0 };
        let Some(version) = connection.versions().pick(ApiKey::Produce, lowest..=13) else {
            if connection.versions().is_guessed() {
                // Ask again on another connection; the records wait.
                let detail = "the broker did not tell which versions it speaks";
                self.outputs.push_back(SenderOutput::Misbehaved(Error::new(ErrorKind::BadResponse, detail)));
                return false;
            }
            let error = Error::new(ErrorKind::UnsupportedVersion, "")
                .with_api("Produce")
                .with_peer(connection.name());
            while let Some((slot, _)) = self.collector.peek_due() {
                self.fail_waiting(slot, Waiting::All, &error);
                self.collector.remove(slot);
            }
            return false;
        };
        // Topic ids need every topic's id; a broker that knows them told them with the metadata.
        let settings = &self.shared.settings;
        let oversized = settings.mutation.is(Mutant::OversizedRequest);
        let max_request_bytes = if oversized { usize::MAX } else { settings.max_request_bytes };
        let (idempotent, identity) = (settings.idempotence, self.shared.identity.get());
        let expected = self.collector.len().min(MOST_EXPECTED);
        let mut collected: Vec<ProduceBatch> = Vec::with_capacity(expected);
        let mut bytes = 0;
        let mut failed = Vec::new();
        let mut terms = None;
        // A partition is in a request once: of two batches a broker takes the last one only, and answers one. What more
        // it has goes with the next request, so it comes back into the collector behind this one.
        let mut taken = Vec::with_capacity(expected);
        while let Some((slot, open_too)) = self.collector.peek_due() {
            if bytes >= max_request_bytes {
                break;
            }
            let Some(entry) = &mut self.slots[slot] else {
                self.collector.remove(slot);
                continue;
            };
            let own = entry.topic.settings();
            if terms.is_some_and(|terms| terms != own.terms()) {
                self.collector.set_aside(slot);
                continue;
            }
            self.collector.remove(slot);
            let mut options = own.seal_options();
            // What becomes a message set is compressed there; zstd came with version 7.
            if version < 3 || version < 7 && options.compression == Compression::Zstd {
                options.compression = Compression::None;
            }
            if let Some(order) = &own.order {
                entry.partition.arrange(order, open_too, &own.batch, &self.shared.pool);
            }
            match entry.partition.next(open_too, &options, idempotent, identity) {
                Next::Nothing => {}
                Next::NeedsIdentity(used) => {
                    // It comes back into the collector when the new identity is there.
                    if !self.without_identity.contains(&slot) {
                        self.without_identity.push(slot);
                    }
                    if let Some(used) = used {
                        self.outputs.push_back(SenderOutput::RenewIdentity(used));
                    }
                    continue;
                }
                Next::Failed(parts) => {
                    failed.push((Arc::clone(entry.partition.topic()), entry.partition.partition(), parts));
                }
                Next::Batch(batch)
                    if bytes + batch.sealed.len() > max_request_bytes && !collected.is_empty() =>
                {
                    entry.partition.put_back(batch);
                    self.collect(slot);
                    break;
                }
                Next::Batch(mut batch) if version < 3 && batch.sealed.has_headers() => {
                    self.ready.subtract_bytes(batch.uncount());
                    self.refuse_headers(slot, batch, &connection.name());
                }
                Next::Batch(mut batch) => {
                    terms = Some(own.terms());
                    bytes += batch.sealed.len();
                    self.ready.subtract_bytes(batch.uncount());
                    entry.partition.in_flight += 1;
                    let messages = u64::from(batch.sealed.record_count());
                    let counters = &mut entry.partition.counters;
                    counters.in_flight += messages;
                    if batch.attempts == 0 {
                        counters.messages += messages;
                        counters.bytes += batch.charged_bytes();
                        self.counters.collector.count_wait(now.saturating_since(batch.since));
                    }
                    let topic_id = entry.partition.topic_id;
                    collected.push(ProduceBatch { slot, topic_id, batch, reported: false });
                    if !self.shared.settings.mutation.is(Mutant::TwiceInRequest) {
                        taken.push(slot);
                        continue;
                    }
                }
            }
            self.collect(slot);
        }
        taken.into_iter().for_each(|slot| self.collect(slot));
        self.collector.take_back(reason);
        for (topic, partition, parts) in failed {
            let (rest, error) = *parts;
            self.shared.report_unsent(&topic, partition, rest, error);
        }
        let Some(terms) = terms else { return false };
        let mut version = version;
        if version >= 13 && collected.iter().any(|batch| batch.topic_id.is_zero()) {
            version = 12;
        }
        self.count_request(reason, &collected);
        self.send_request(now, connection, version, terms, collected);
        true
    }

    fn count_request(&mut self, reason: SendReason, batches: &[ProduceBatch]) {
        let (mut messages, mut bytes) = (0, 0);
        let topic_of =
            |batch: &ProduceBatch| self.slots[batch.slot].as_ref().map(|entry| entry.partition.topic());
        let topics = &mut self.counters.topics;
        // Neighbours are mostly of one topic, which is looked up once then.
        for of_topic in batches.chunk_by(|a, b| topic_of(a) == topic_of(b)) {
            let Some(topic) = topic_of(&of_topic[0]) else { continue };
            if !topics.contains_key(topic) {
                topics.insert(Arc::clone(topic), Default::default());
            }
            let Some((sizes, counts)) = topics.get_mut(topic) else { continue };
            for ProduceBatch { batch, .. } in of_topic {
                messages += batch.sealed.record_count() as usize;
                bytes += batch.sealed.len();
                sizes.record(batch.sealed.len() as u64);
                counts.record(u64::from(batch.sealed.record_count()));
            }
        }
        self.counters.collector.count_send(reason, batches.len(), messages, bytes);
    }

    /// Adds what the sender knows to a snapshot; with `reset` its windows start anew.
    pub fn add_statistics(
        &mut self,
        statistics: &mut Statistics,
        broker: &mut BrokerStatistics,
        node: Option<i32>,
        reset: bool,
    ) {
        let counters = &mut *self.counters;
        broker.int_latency = counters.collector.wait.clone();
        broker.collector = counters.collector.snapshot(reset);
        broker.collector.waiting = self.collector.len() as i64;
        if self.shared.settings.linger == Linger::Auto {
            let pace = self.collector.pace();
            broker.collector.window = pace.window() as i64;
            broker.collector.spacing = i64::try_from(pace.distance().as_micros()).unwrap_or(i64::MAX);
        }
        broker.tx_retries = counters.retries;
        for (topic, (sizes, counts)) in &mut counters.topics {
            let entry = statistics.topic(topic);
            entry.batchsize.add(&sizes.snapshot(reset));
            entry.batchcnt.add(&counts.snapshot(reset));
        }
        // In the order of topics, so that each is looked up once.
        let mut partitions = self.by_partition.iter().peekable();
        while let Some(((topic, _), _)) = partitions.peek() {
            let topic = Arc::clone(topic);
            let entry = statistics.topic(&topic);
            while let Some(((_, index), slot)) = partitions.next_if(|((name, _), _)| *name == topic) {
                let Some(slot) = &self.slots[*slot] else { continue };
                slot.partition.add_statistics(entry.partitions.entry(*index).or_default(), node);
                broker.toppars.push((Arc::clone(&topic), *index));
            }
        }
    }

    fn send_request(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        version: i16,
        terms: RequestTerms,
        mut batches: Vec<ProduceBatch>,
    ) {
        self.group_by_topic(&mut batches);
        let settings = &self.shared.settings;
        let mut places: Vec<Place<'_>> = batches.iter().map(|batch| self.place_of(batch)).collect();
        if let (true, [first, .., last]) = (settings.mutation.is(Mutant::SwapBatches), &mut places[..]) {
            std::mem::swap(&mut first.partition, &mut last.partition);
        }
        let head = RequestHead {
            version,
            acks: terms.acks,
            timeout_ms: terms.acks_timeout.as_millis() as i32,
            transactional_id: None,
        };
        let expects_answer = terms.acks != 0;
        let built =
            connection.send_produce(now, version, expects_answer, settings.answer_timeout, |scratch| {
                ProduceFrame::build(scratch, head, &places, batches)
            });
        match built {
            Ok(()) => {
                self.requests_in_flight += 1;
                self.collector.pace().sent(now);
            }
            Err(failed) => {
                let (batches, reason) = *failed;
                let error = Error::new(ErrorKind::Bug, format!("can't encode Produce v{version}: {reason}"));
                for batch in batches {
                    self.fail(batch, error.clone());
                }
            }
        }
    }

    fn place_of(&self, batch: &ProduceBatch) -> Place<'_> {
        let Some(Slot { topic, partition, .. }) = &self.slots[batch.slot] else {
            return Place { topic: "", partition: -1, compression: (Compression::None, None) };
        };
        let settings = topic.settings();
        let compression = (settings.compression, settings.compression_level);
        Place { topic: partition.topic(), partition: partition.partition(), compression }
    }

    /// Puts batches of one topic next to one another, as a request has them; else they stay as they are, oldest first.
    fn group_by_topic(&self, batches: &mut Vec<ProduceBatch>) {
        let topic_of =
            |batch: &ProduceBatch| self.slots[batch.slot].as_ref().map(|entry| entry.partition.topic());
        let first = batches.first().and_then(topic_of);
        if batches.iter().all(|batch| topic_of(batch) == first) {
            return;
        }
        // Batches are large: their numbers are sorted in their place.
        let mut order: Vec<usize> = (0..batches.len()).collect();
        order.sort_by_key(|index| topic_of(&batches[*index]));
        let mut old: Vec<Option<ProduceBatch>> = std::mem::take(batches).into_iter().map(Some).collect();
        batches.extend(order.into_iter().filter_map(|index| old[index].take()));
    }

    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        answer: &ProduceResponseView<'_>,
        version: i16,
        asked: usize,
        batches: Vec<ProduceBatch>,
        peer: &str,
    ) {
        let throttle_millis = u32::try_from(answer.throttle_time_ms).unwrap_or(0);
        if throttle_millis > 0 || self.was_throttled {
            self.was_throttled = throttle_millis > 0;
            self.outputs.push_back(SenderOutput::Throttled(throttle_millis));
        }
        if version >= FIRST_PRODUCE && throttle_millis > 0 {
            self.outputs.push_back(SenderOutput::HoldBack(Duration::from_millis(throttle_millis.into())));
        }
        let results: Vec<(&ResponseView<'_>, &PartitionResponseView<'_>)> = answer
            .responses
            .iter()
            .flat_map(|topic| topic.partition_responses.iter().map(move |partition| (topic, partition)))
            .collect();
        let answered = results.len();
        // Where the broker answers in the order of the request, as the embedded one does, nothing has to be searched for.
        let mut in_order = results.iter().copied().peekable();
        let mut by_place: Option<HashMap<_, _>> = None;
        let mut unanswered = Vec::new();
        for batch in batches {
            let Some(entry) = self.slots[batch.slot].as_ref() else { continue };
            let (name, index) = (entry.partition.topic(), entry.partition.partition());
            let is_ours = |(topic, partition): &(&ResponseView<'_>, &PartitionResponseView<'_>)| {
                partition.index == index
                    && if version >= 13 { topic.topic_id == batch.topic_id } else { *topic.name == **name }
            };
            let found = in_order.next_if(|result| is_ours(result)).or_else(|| {
                let by_place = by_place.get_or_insert_with(|| {
                    // Of two answers for a partition the first one counts.
                    let entries = results.iter().rev().map(|result| (place(result, version), *result));
                    entries.collect()
                });
                let (name, id) = if version >= 13 { ("", batch.topic_id) } else { (&**name, Uuid::ZERO) };
                by_place.get(&(name, id, index)).copied()
            });
            match found {
                Some((_, partition)) => {
                    let delivered = Delivered {
                        base_offset: (partition.base_offset >= 0).then_some(partition.base_offset),
                        log_append_time: (partition.log_append_time_ms >= 0)
                            .then_some(partition.log_append_time_ms),
                    };
                    let code = partition.error_code;
                    if code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::FENCED_LEADER_EPOCH {
                        let leader = &partition.current_leader;
                        let leader = (leader.leader_id, leader.leader_epoch);
                        let endpoints = answer.node_endpoints.iter();
                        let endpoints = endpoints.map(|node| (node.node_id, node.host, node.port, node.rack));
                        let hint = LeaderHint::new(name, index, leader, endpoints);
                        self.outputs.extend(hint.map(SenderOutput::LeaderHint));
                    }
                    self.handle_result(
                        now,
                        batch,
                        partition.error_code,
                        partition.error_message,
                        delivered,
                        peer,
                    );
                }
                None => unanswered.push(batch),
            }
        }
        let surplus = answered.saturating_sub(asked);
        if surplus > 0 {
            let detail =
                format!("it answers for {surplus} partitions that were not in the request, or twice");
            let error = Error::new(ErrorKind::BadResponse, detail).with_peer(peer).with_api("Produce");
            self.outputs.push_back(SenderOutput::Misbehaved(error));
        }
        if !unanswered.is_empty() {
            let detail = format!("{} partitions of the request are not in the answer", unanswered.len());
            let error = Error::new(ErrorKind::BadResponse, detail).with_api("Produce");
            for batch in unanswered {
                self.handle_lost_batch(now, batch, true, &error);
            }
            self.outputs.push_back(SenderOutput::Misbehaved(error));
        }
    }

    fn handle_result(
        &mut self,
        now: Instant,
        mut batch: ProduceBatch,
        code: ErrorCode,
        message: Option<&str>,
        delivered: Delivered,
        peer: &str,
    ) {
        let mut verdict = judge(code, batch.batch.sealed.record_count());
        let mut delivered = delivered;
        if self.shared.settings.mutation.is(Mutant::AcknowledgeRefused) && verdict == Verdict::Retry {
            verdict = Verdict::Delivered;
        }
        if verdict == Verdict::Duplicate && batch.batch.attempts == 0 && !batch.batch.possibly_persisted {
            return self.refuse_duplicate(batch, code, peer);
        }
        if self.shared.settings.mutation.is(Mutant::WrongOffset) {
            delivered.base_offset = delivered.base_offset.map(|offset| offset + 1);
        }
        if matches!(verdict, Verdict::Delivered | Verdict::Duplicate) {
            if let Some(entry) = &mut self.slots[batch.slot] {
                entry.backoff.reset();
                entry.partition.confirm(batch.batch.order);
                entry.partition.counters.acknowledged += u64::from(batch.batch.sealed.record_count());
                let records = batch.batch.sealed.record_count();
                if verdict == Verdict::Delivered
                    && let Some(base) = delivered.base_offset
                    && let Some(end) = entry.partition.note_offset(base, records)
                {
                    let detail = format!(
                        "it wrote at offset {base} where {end} or more was expected: the log was cut off, or the broker \
                         is wrong"
                    );
                    let error = Error::new(ErrorKind::BadResponse, detail)
                        .with_peer(peer)
                        .with_api("Produce")
                        .with_partition(&**entry.partition.topic(), entry.partition.partition());
                    self.outputs.push_back(SenderOutput::Odd(error));
                }
            }
            return self.finish(batch, Ok(delivered), PersistenceStatus::Persisted);
        }
        if verdict == Verdict::Resequence {
            return self.resequence(
                now,
                batch,
                &Error::broker(code, message).with_peer(peer).with_api("Produce"),
            );
        }
        let trusted = code == ErrorCode::NOT_LEADER_OR_FOLLOWER
            && self.shared.settings.mutation.is(Mutant::TrustNotLeader);
        batch.batch.possibly_persisted |= may_have_been_written(code) && !trusted;
        let error = Error::broker(code, message).with_peer(peer).with_api("Produce");
        match verdict {
            Verdict::RetryElsewhere => {
                if let Some(entry) = &self.slots[batch.slot] {
                    let topic = Arc::clone(entry.partition.topic());
                    if code == ErrorCode::UNKNOWN_TOPIC_ID {
                        self.outputs
                            .push_back(SenderOutput::UnknownTopicId(Arc::clone(&topic), batch.topic_id));
                    }
                    self.outputs.push_back(SenderOutput::RefreshMetadata(topic));
                }
                self.retry(now, batch, &error);
            }
            Verdict::Retry => self.retry(now, batch, &error),
            Verdict::Split => self.split(batch, &error),
            Verdict::Delivered | Verdict::Duplicate | Verdict::Resequence | Verdict::Fail => {
                self.fail(batch, error);
            }
        }
    }

    /// The broker has seen the batch before, it says, which can't be: what it has under these numbers is not this batch.
    fn refuse_duplicate(&mut self, mut batch: ProduceBatch, code: ErrorCode, peer: &str) {
        let detail =
            format!("it calls a batch a duplicate ({}) that was sent for the first time", code.name());
        let mut error = Error::new(ErrorKind::BadResponse, detail).with_peer(peer).with_api("Produce");
        if let Some(entry) = &self.slots[batch.slot] {
            error = error.with_partition(&**entry.partition.topic(), entry.partition.partition());
        }
        self.outputs.push_back(SenderOutput::Odd(error.clone()));
        batch.batch.possibly_persisted = true;
        self.fail(batch, error);
    }

    fn handle_lost_batch(&mut self, now: Instant, mut batch: ProduceBatch, sent: bool, error: &Error) {
        if sent && !self.shared.settings.mutation.is(Mutant::CallSentUnsent) {
            batch.batch.possibly_persisted = true;
            self.retry(now, batch, error);
        } else if let Some(batch) = self.over_unless_reported(batch) {
            // It never left: this was no attempt.
            self.put_back(batch);
        }
    }

    fn retry(&mut self, now: Instant, mut batch: ProduceBatch, error: &Error) {
        batch.batch.attempts = batch.batch.attempts.saturating_add(1);
        self.counters.retries += 1;
        if batch.batch.attempts > self.shared.settings.max_retries {
            return self.fail(batch, error.clone());
        }
        let slot = batch.slot;
        let Some(batch) = self.over_unless_reported(batch) else { return };
        if self.shared.settings.mutation.is(Mutant::DropRetry) {
            return;
        }
        if let Some(entry) = &mut self.slots[slot] {
            entry.partition.note_refusal(error);
        }
        if let Some(entry) = &mut self.slots[slot]
            && entry.partition.retry_at.is_none()
        {
            let failures = entry.backoff.failures();
            let own = now + entry.backoff.next(&mut self.rng);
            let mut at = match self.last_refusal {
                Some(last) if (last.came, last.failures) == (now, failures) => last.retry_at,
                _ => own,
            };
            self.last_refusal = Some(Refusal { came: now, failures, retry_at: at });
            if self.shared.settings.mutation.is(Mutant::RetryWithoutBackoff) {
                at = now;
            }
            entry.partition.retry_at = Some(at);
            self.retries.insert((at, slot));
            self.collector.remove(slot);
        }
        self.put_back(batch);
    }

    /// The broker expects another sequence number. If an older batch of the partition is still on its way, that one
    /// explains it, and this one goes again after it; else the broker lost the thread, and the partition starts with a
    /// new epoch, without the batches that may have been written.
    fn resequence(&mut self, now: Instant, batch: ProduceBatch, error: &Error) {
        let Some(entry) = &mut self.slots[batch.slot] else { return };
        let order = batch.batch.order;
        let behind = entry.partition.oldest_retry().is_some_and(|oldest| oldest < order)
            || entry.partition.in_flight > 1;
        if !behind {
            entry.partition.note_gap(order);
            if batch.batch.possibly_persisted {
                return self.fail(batch, error.clone());
            }
        }
        self.retry(now, batch, error);
    }

    /// The broker finds the batch too large: its halves are sent instead. With idempotence not those of a batch that may
    /// have been written: under other numbers they would be written once more.
    fn split(&mut self, batch: ProduceBatch, error: &Error) {
        if self.shared.settings.idempotence && batch.batch.possibly_persisted {
            return self.fail(batch, error.clone());
        }
        let slot = batch.slot;
        let Some(batch) = self.over_unless_reported(batch) else { return };
        let Some(entry) = &mut self.slots[slot] else { return };
        let halves = batch.batch.split(&self.shared.pool, &entry.topic.settings().seal_options());
        match halves {
            Ok((first, second)) => {
                entry.partition.note_unnumbered();
                entry.partition.put_back(second);
                entry.partition.put_back(first);
                self.collect(slot);
            }
            Err(whole) => {
                let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
                let status = whole.failure_status();
                let error = error.clone().with_partition(&**topic, partition);
                self.shared.report(whole.into_report(topic, partition, Err(error), status));
            }
        }
        self.let_go(slot);
    }

    /// The broker keeps message sets, which have no place for headers. Those records of the batch that have some are
    /// reported; the batch is cut in halves until they are alone.
    fn refuse_headers(&mut self, slot: usize, batch: ReadyBatch, peer: &str) {
        let Some(entry) = &mut self.slots[slot] else { return };
        let halves = batch.split(&self.shared.pool, &entry.topic.settings().seal_options());
        match halves {
            Ok((first, second)) => {
                entry.partition.put_back(second);
                entry.partition.put_back(first);
            }
            Err(whole) => {
                let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
                let detail = "the record has headers, which brokers before 0.11 can't keep; send it without";
                let error = Error::new(ErrorKind::UnsupportedVersion, detail)
                    .with_peer(peer)
                    .with_api("Produce")
                    .with_partition(&**topic, partition);
                let status = whole.failure_status();
                self.shared.report(whole.into_report(topic, partition, Err(error), status));
            }
        }
    }

    /// Ends a batch's flight: it can't be written, and its sequence number will be missing.
    fn fail(&mut self, batch: ProduceBatch, error: Error) {
        if let Some(entry) = &mut self.slots[batch.slot] {
            entry.partition.note_gap(batch.batch.order);
        }
        if self.shared.settings.gapless
            && let Some(entry) = &self.slots[batch.slot]
        {
            let detail = format!("the cause: {error}");
            let fatal = Error::new(ErrorKind::Gapless, detail)
                .with_partition(&**entry.partition.topic(), entry.partition.partition());
            // No record is taken behind the gap.
            self.shared.close(Some(fatal.clone()));
            self.outputs.push_back(SenderOutput::Fatal(fatal));
        }
        let status = batch.batch.failure_status();
        self.finish(batch, Err(error), status);
    }

    /// Ends a batch's flight with a report.
    fn finish(&mut self, batch: ProduceBatch, outcome: Result<Delivered, Error>, status: PersistenceStatus) {
        let slot = batch.slot;
        if let Some(batch) = self.over(batch) {
            self.report_batch(batch, outcome, status);
        }
        self.let_go(slot);
    }

    fn report_batch(
        &self,
        batch: ProduceBatch,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) {
        let Some(entry) = &self.slots[batch.slot] else { return };
        let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
        let outcome = outcome.map_err(|error| error.with_partition(&**topic, partition));
        let report = batch.batch.into_report(topic, partition, outcome, status);
        self.shared.report(report.sent_to(self.broker_id));
    }

    /// Counts a batch out of flight; `None` if it was reported before.
    fn over(&mut self, batch: ProduceBatch) -> Option<ProduceBatch> {
        if let Some(entry) = &mut self.slots[batch.slot] {
            entry.partition.in_flight -= 1;
            entry.partition.counters.in_flight -= u64::from(batch.batch.sealed.record_count());
            if entry.partition.in_flight == 0 {
                self.collect(batch.slot);
            }
        }
        if batch.reported {
            self.let_go(batch.slot);
            return None;
        }
        Some(batch)
    }

    /// Counts a batch out of flight that would be sent again; one that was reported before is not, and leaves a gap.
    fn over_unless_reported(&mut self, batch: ProduceBatch) -> Option<ProduceBatch> {
        if batch.reported
            && let Some(entry) = &mut self.slots[batch.slot]
        {
            entry.partition.note_gap(batch.batch.order);
        }
        self.over(batch)
    }

    fn put_back(&mut self, batch: ProduceBatch) {
        let slot = batch.slot;
        if let Some(entry) = &mut self.slots[slot] {
            entry.partition.put_back(batch.batch);
        }
        self.collect(slot);
        self.let_go(slot);
    }

    /// Puts a partition into the collector if it has something to send and may.
    fn collect(&mut self, slot: usize) {
        let Some(Some(entry)) = self.slots.get(slot) else { return };
        if entry.partition.leaving || entry.partition.retry_at.is_some() || entry.partition.is_draining() {
            return;
        }
        if let Some((since, urgent)) = entry.partition.waiting() {
            self.collector.add_of_topic(slot, since, urgent, entry.topic.linger());
        }
    }

    /// Hands a leaving partition out once nothing of it is in flight.
    fn let_go(&mut self, slot: usize) {
        let leaves =
            self.slots[slot].as_ref().is_some_and(|e| e.partition.leaving && e.partition.in_flight == 0);
        if leaves && let Some(mut entry) = self.slots[slot].take() {
            if let Some(at) = entry.partition.retry_at {
                self.retries.remove(&(at, slot));
            }
            self.collector.remove(slot);
            self.free.push(slot);
            entry.partition.leave();
            self.outputs.push_back(SenderOutput::Released(Box::new(entry.partition)));
        }
    }

    /// Reports what its topic gives no more time.
    fn expire(&mut self, now: Instant, connection: &mut Connection) {
        self.take_hints();
        for slot in 0..self.slots.len() {
            let (unreachable, waits) = (self.unreachable.as_ref(), self.without_identity.contains(&slot));
            let Some(entry) = &mut self.slots[slot] else { continue };
            let Some(timeout) = entry.topic.settings().message_timeout else { continue };
            if entry.next_expiry > now {
                continue;
            }
            entry.next_expiry = now + expiry_interval(timeout);
            let Some(limit) = entry.topic.settings().timed_out_before(now) else { continue };
            let error = |partition: &PartitionProducer| {
                let detail = why_not_sent(partition, unreachable, waits, connection);
                Error::new(ErrorKind::MessageTimedOutInQueue, detail)
            };
            let unsent_bytes = entry.partition.fail_waiting(&self.shared, Waiting::Since(limit), error);
            self.forget_waiting(slot, unsent_bytes);
        }
        self.report_in_flight(connection, ErrorKind::MessageTimedOutInFlight, |topic, batch| {
            topic.settings().timed_out_before(now).is_some_and(|limit| batch.since < limit)
        });
    }

    fn fail_all_waiting(&mut self, which: Waiting, kind: ErrorKind) {
        // A hint that is looked at later would tell of records that are gone, and the next ones would be sent in their stead.
        self.take_hints();
        let error = Error::new(kind, "");
        for slot in 0..self.slots.len() {
            self.fail_waiting(slot, which, &error);
        }
    }

    /// Fails what waits in a partition.
    fn fail_waiting(&mut self, slot: usize, which: Waiting, error: &Error) {
        let Some(entry) = &mut self.slots[slot] else { return };
        let unsent_bytes = entry.partition.fail_waiting(&self.shared, which, |_| error.clone());
        self.forget_waiting(slot, unsent_bytes);
    }

    /// So many bytes of a partition, if any, don't wait any more.
    fn forget_waiting(&mut self, slot: usize, unsent_bytes: Option<u64>) {
        if let Some(unsent_bytes) = unsent_bytes {
            self.ready.subtract_bytes(unsent_bytes);
            self.collector.remove(slot);
            self.collect(slot);
        }
    }

    /// Reports batches in flight without waiting for their answer. Their bytes stay with the request until it is over.
    fn report_in_flight(
        &mut self,
        connection: &mut Connection,
        kind: ErrorKind,
        which: impl Fn(&ProducerTopic, &ReadyBatch) -> bool,
    ) {
        let peer = connection.name();
        for request in connection.in_flight_mut().iter_mut() {
            if request.tag != RequestTag::Produce {
                continue;
            }
            let Payload::Produce(frame) = &mut request.payload else { continue };
            for batch in &mut frame.batches {
                let Some(entry) = &mut self.slots[batch.slot] else { continue };
                if batch.reported || !which(&entry.topic, &batch.batch) {
                    continue;
                }
                let mutation = self.shared.settings.mutation;
                batch.reported = !mutation.is(Mutant::ReportTwice);
                let is_purged = kind == ErrorKind::PurgedInFlight;
                if is_purged && mutation.is(Mutant::PurgeReusesSequence) {
                    entry.partition.reuse_sequences(batch.batch.sealed.record_count());
                }
                if is_purged && mutation.is(Mutant::PurgeUnreported) {
                    continue;
                }
                let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
                let refusal =
                    entry.partition.refusal().map(|error| format!("; before, {}", error.as_cause()));
                let detail = format!("{peer} did not answer yet{}", refusal.unwrap_or_default());
                let error = Error::new(kind, detail).with_partition(&**topic, partition);
                let status = if is_purged && mutation.is(Mutant::PurgeTrusted) {
                    PersistenceStatus::NotPersisted
                } else {
                    PersistenceStatus::PossiblyPersisted
                };
                let report = batch.batch.report_early(topic, partition, Err(error), status);
                self.shared.report(report.sent_to(self.broker_id));
            }
        }
    }
}

/// What kept a partition's records from being sent, as far as it is known.
fn why_not_sent(
    partition: &PartitionProducer,
    unreachable: Option<&Error>,
    waits_for_identity: bool,
    connection: &Connection,
) -> String {
    let peer = connection.name();
    match (unreachable, partition.refusal()) {
        (Some(error), _) if !connection.is_ready() => error.as_cause(),
        (_, Some(error)) => error.as_cause(),
        _ if !connection.is_ready() => format!("there is no connection to {peer} yet"),
        _ if waits_for_identity => {
            "the cluster gave no producer id yet, which enable.idempotence needs".to_owned()
        }
        _ if !connection.may_send() => format!("{peer} asked to be left alone for longer"),
        _ => format!("{peer} did not answer what was sent to it before"),
    }
}

/// What tells an answer's partitions apart: names up to version 12, ids from 13 on.
fn place<'a>(
    (topic, partition): &(&ResponseView<'a>, &PartitionResponseView<'_>),
    version: i16,
) -> (&'a str, Uuid, i32) {
    let (name, id) = if version >= 13 { ("", topic.topic_id) } else { (topic.name, Uuid::ZERO) };
    (name, id, partition.index)
}
