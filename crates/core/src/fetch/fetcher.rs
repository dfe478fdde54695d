//! The receiving half of a broker's owner: the partitions that the broker leads, its fetch session, and the one fetch
//! in flight.
//!
//! The next fetch is sent as soon as the answer to the last one is queued, while the application still reads: unless a
//! partition has enough in the queue already. Then nothing is fetched at all until half of that is consumed, which the
//! application's thread tells; a long poll without the full partition would only keep it waiting.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::fetch::{FetchResponseView, response::PartitionView},
    primitive::Reader,
    uuid::Uuid,
};

use super::{
    FetchMail, FetchReply,
    decode::{Damage, DecodeOptions, decode},
    deliver::{ConsumerEvent, FetchBuffer, FetchedRecords},
    partition::PartitionConsumer,
    queue::Item,
    request::{Asked, FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS, FetchRequestBuilder},
    session::{FetchSession, ForgottenPartition, SessionVerdict},
    shared::ConsumerShared,
};
use crate::{
    broker::{
        buffer::BufferPool,
        connection::{Connection, Response},
        inflight::RequestTag,
    },
    cluster::metadata::LeaderHint,
    config::IsolationLevel,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    mutation::Mutant,
    rng::Rng,
    stats::{BrokerStatistics, Statistics},
    wake::WakeHandle,
};

/// The receiving half of one broker.
pub struct Fetcher {
    shared: Arc<ConsumerShared>,
    /// The broker's id, -1 if it is not known.
    broker_id: i32,
    buffers: BufferPool,
    wake: WakeHandle,
    topics: BTreeMap<Arc<str>, TopicSlots>,
    ids: BTreeMap<Uuid, Arc<str>>,
    partitions: usize,
    session: FetchSession,
    /// The last answer asked to hold back.
    was_throttled: bool,
    /// When the fetch in flight was sent.
    in_flight: Option<Instant>,
    /// How many bytes an answer should have.
    answer_bytes: usize,
    /// Turns the order of partitions from request to request, so that none is always last.
    turn: usize,
    /// Nothing is fetched before, because the broker said so or refused a request.
    resting_until: Option<Instant>,
    /// How many answers in a row came at once and with nothing.
    empty_answers: u32,
    unsupported_told: bool,
    outputs: VecDeque<FetcherOutput>,
    rng: Rng,
}

/// What the fetcher tells its broker's owner.
#[derive(Debug)]
pub enum FetcherOutput {
    /// Mail for the cluster's owner.
    ToCluster(FetchReply),
    /// Another broker leads a partition, as this one says.
    LeaderHint(LeaderHint),
    /// The leader of a partition is not who it was thought to be.
    RefreshMetadata(Arc<str>),
    /// The broker does not know a topic by this id.
    UnknownTopicId(Arc<str>, Uuid),
    /// The broker asks to hold back for so many milliseconds, or no longer does.
    Throttled(u32),
    /// The broker's answer can't be understood: drop the connection.
    Misbehaved(Error),
}

#[derive(Debug, Default)]
struct TopicSlots {
    id: Uuid,
    partitions: BTreeMap<i32, Slot>,
}

#[derive(Debug)]
struct Slot {
    partition: Box<PartitionConsumer>,
    /// What the broker was asked last, and in which generation of the session.
    known: Option<(u64, Asked)>,
    retry_at: Option<Instant>,
    /// Larger than `max.partition.fetch.bytes` where an old broker needs that to send a whole batch.
    max_bytes: i32,
    /// How often the batch at the current offset was damaged.
    damaged: u32,
    /// The error that was told last, so that it is told once.
    told: Option<ErrorKind>,
}

/// What an answer should have at least: so much stays in a core's cache until it is checked and read.
const ANSWER_BYTES: usize = 1 << 20;
/// A full answer that takes longer is too small for the way that it goes.
const SLOW_ANSWER: Duration = Duration::from_millis(20);
/// A full answer that takes no longer can be smaller.
const QUICK_ANSWER: Duration = Duration::from_millis(5);
/// So often a damaged batch is fetched before it is given up: bytes may have been damaged on their way.
const ATTEMPTS_AT_DAMAGED_BATCH: u32 = 3;
/// From this version on a throttled client has to wait by itself (KIP-219).
const FIRST_THROTTLED_BY_CLIENT: i16 = 8;
/// So many answers in a row may come at once and with nothing.
const EMPTY_ANSWERS: u32 = 10;

impl Fetcher {
    /// A fetcher without partitions; `wake` makes the broker's owner run.
    pub fn new(
        shared: Arc<ConsumerShared>,
        broker_id: Option<i32>,
        buffers: BufferPool,
        wake: WakeHandle,
        rng: Rng,
    ) -> Self {
        Self {
            shared,
            broker_id: broker_id.unwrap_or(-1),
            buffers,
            wake,
            topics: BTreeMap::new(),
            ids: BTreeMap::new(),
            partitions: 0,
            session: FetchSession::default(),
            was_throttled: false,
            in_flight: None,
            answer_bytes: ANSWER_BYTES,
            turn: 0,
            resting_until: None,
            empty_answers: 0,
            unsupported_told: false,
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// The broker's id is known now.
    pub const fn set_broker_id(&mut self, id: i32) {
        self.broker_id = id;
    }

    /// Mail from the cluster's owner.
    pub fn handle_mail(&mut self, _now: Instant, mail: FetchMail) {
        match mail {
            FetchMail::Adopt(partition) => self.adopt(partition),
            FetchMail::Release { topic, partition } => {
                if let Some(slot) = self.remove(&topic, partition) {
                    self.reply(FetchReply::Released(slot.partition));
                }
            }
        }
    }

    /// Adds what the fetcher knows to a snapshot.
    pub fn add_statistics(
        &self,
        statistics: &mut Statistics,
        broker: &mut BrokerStatistics,
        node: Option<i32>,
    ) {
        for (topic, slots) in &self.topics {
            for (index, slot) in &slots.partitions {
                let entry = statistics.partition(topic, *index);
                entry.broker = node.map_or(-1, i64::from);
                entry.leader_epoch = i64::from(slot.partition.leader_epoch);
                entry.next_offset = slot.partition.offset;
                if slot.partition.end_told >= 0 {
                    entry.eof_offset = slot.partition.end_told;
                }
                if entry.fetch_state == "none" {
                    entry.fetch_state = "active";
                }
                broker.toppars.push((Arc::clone(topic), *index));
            }
        }
    }

    /// There is a new connection, and no session on it yet.
    pub fn handle_connected(&mut self, _now: Instant) {
        self.session.restart();
    }

    /// An answer to a fetch.
    pub fn handle_response(&mut self, now: Instant, response: Response, peer: &str) {
        let took = self.in_flight.take().map_or(Duration::ZERO, |sent| now - sent);
        self.adapt(response.frame.len, took);
        let version = response.request.version;
        let (body, len) = (response.body, response.frame.len);
        let buffer = Arc::new(FetchBuffer::new(response.frame.bytes, self.buffers.clone()));
        let answer = match FetchResponseView::decode(&mut Reader::new(&buffer.bytes()[body..len]), version) {
            Ok(answer) => answer,
            Err(error) => {
                self.session.restart();
                let error =
                    Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Fetch").with_peer(peer);
                self.outputs.push_back(FetcherOutput::Misbehaved(error));
                return;
            }
        };
        let throttle_millis = answer.throttle_time_ms.unsigned_abs();
        if throttle_millis > 0 || self.was_throttled {
            self.was_throttled = throttle_millis > 0;
            self.outputs.push_back(FetcherOutput::Throttled(throttle_millis));
        }
        // Older versions are answered when the time is over already (KIP-219).
        if version >= FIRST_THROTTLED_BY_CLIENT && answer.throttle_time_ms > 0 {
            self.rest(now + Duration::from_millis(answer.throttle_time_ms.unsigned_abs().into()));
        }
        // A session may have been given up meanwhile; what was asked for is answered nevertheless.
        let generation = self.session.asked();
        if version >= FIRST_WITH_SESSIONS {
            match self.session.handle_answer(answer.error_code, answer.session_id) {
                SessionVerdict::Good => {}
                SessionVerdict::Restart => {
                    if self.shared.settings.mutation.is(Mutant::KeepSession) {
                        self.session.go_on();
                    }
                    return;
                }
                SessionVerdict::Refused(code) => {
                    let error = Error::broker(code, None).with_api("Fetch").with_peer(peer);
                    self.shared.tell(error);
                    self.rest(now + self.shared.settings.fetch_error_backoff);
                    return;
                }
            }
        }
        let settings = &self.shared.settings;
        let mut options = DecodeOptions {
            check_crcs: settings.check_crcs,
            read_committed: settings.isolation_level == IsolationLevel::ReadCommitted,
            max_batch_bytes: settings.max_batch_bytes,
            keep_earlier: settings.mutation.is(Mutant::KeepEarlier),
            decompressed_room: settings.prefetch.bytes,
            buffers: self.buffers.clone(),
        };
        let mut items = Vec::with_capacity(answer.responses.len());
        let is_empty = answer.responses.is_empty();
        for topic in &answer.responses {
            let name = if version >= FIRST_WITH_TOPIC_IDS {
                self.ids.get(&topic.topic_id).cloned()
            } else {
                self.topics.get_key_value(topic.topic).map(|(name, _)| Arc::clone(name))
            };
            let Some(name) = name else { continue };
            for partition in &topic.partitions {
                self.handle_partition(
                    now,
                    &name,
                    partition,
                    generation,
                    &buffer,
                    &mut options,
                    peer,
                    &mut items,
                );
                let error = partition.error_code;
                if error == ErrorCode::NOT_LEADER_OR_FOLLOWER || error == ErrorCode::FENCED_LEADER_EPOCH {
                    let leader = &partition.current_leader;
                    let leader = (leader.leader_id, leader.leader_epoch);
                    let endpoints = answer.node_endpoints.iter();
                    let endpoints = endpoints.map(|node| (node.node_id, node.host, node.port, node.rack));
                    let hint = LeaderHint::new(&name, partition.partition_index, leader, endpoints);
                    self.outputs.extend(hint.map(FetcherOutput::LeaderHint));
                }
            }
        }
        self.count_empty_answer(now, is_empty, took);
        if !items.is_empty() {
            self.shared.queue.push(items);
        }
    }

    /// The fetch in flight was lost with its connection.
    pub fn handle_lost(&mut self, _now: Instant, _error: &Error) {
        self.in_flight = None;
        self.session.restart();
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.resting_until.is_some_and(|until| until <= now) {
            self.resting_until = None;
        }
        for slot in self.slots_mut() {
            if slot.retry_at.is_some_and(|at| at <= now) {
                slot.retry_at = None;
            }
        }
    }

    /// When to call [`Fetcher::handle_timeout`].
    pub fn poll_timeout(&self, connection: &Connection) -> Option<Instant> {
        if self.in_flight.is_some() || !connection.is_ready() {
            return None;
        }
        let retry = self.slots().filter_map(|slot| slot.retry_at).min();
        earliest(self.resting_until, retry)
    }

    /// True if there is something to fetch, so that a connection is wanted.
    pub fn wants_connection(&self) -> bool {
        self.in_flight.is_some()
            || self.slots().any(|slot| !slot.partition.handle.is_paused() && !slot.partition.is_stale())
    }

    /// Sends the next fetch, unless one is in flight or there is enough in the queue.
    pub fn pump(&mut self, now: Instant, connection: &mut Connection) {
        // While a fetch is in flight nobody is woken for what becomes due meanwhile.
        self.handle_timeout(now);
        if self.in_flight.is_some()
            || self.partitions == 0
            || self.resting_until.is_some()
            || !connection.is_ready()
        {
            return;
        }
        let Some(wanted) = self.choose() else { return };
        let Some(newest) = connection.versions().pick_any(ApiKey::Fetch) else {
            if !std::mem::replace(&mut self.unsupported_told, true) {
                let error = Error::new(ErrorKind::UnsupportedVersion, "").with_api("Fetch");
                self.shared.tell(error.with_peer(connection.name()));
            }
            return;
        };
        let room = self.shared.queue.room(&self.wake);
        if room == 0 {
            return;
        }
        // A request names all topics by id, or none.
        let by_id = newest >= FIRST_WITH_TOPIC_IDS && self.topics.values().all(|topic| !topic.id.is_zero());
        let version = if by_id { newest } else { newest.min(FIRST_WITH_TOPIC_IDS - 1) };
        self.session.use_topic_ids(by_id);
        if version < FIRST_WITH_SESSIONS {
            self.session.restart();
        }
        let settings = &self.shared.settings;
        let share = room / self.shared.fetchers.load(Ordering::Relaxed).max(1);
        let wanted_bytes = i32::try_from(share.min(self.answer_bytes)).unwrap_or(i32::MAX);
        let max_bytes = settings.fetch_max_bytes.min(wanted_bytes).max(1);
        let timeout = settings.answer_timeout + settings.fetch_wait_max;
        let head = if version < FIRST_WITH_SESSIONS { (0, -1) } else { self.session.head() };
        let mut builder = FetchRequestBuilder::new(settings, head, max_bytes);
        self.fill(&mut builder, &wanted, by_id);
        let request = builder.finish();
        let sent = connection.send(now, ApiKey::Fetch, version, RequestTag::Fetch, timeout, |out| {
            request.encode(version, out)
        });
        match sent {
            Ok(()) => {
                self.session.note_asked();
                self.in_flight = Some(now);
            }
            Err(error) => {
                self.session.restart();
                self.rest(now + self.shared.settings.fetch_error_backoff);
                self.shared.tell(error);
            }
        }
    }

    /// What the broker's owner has to know.
    pub fn poll_output(&mut self) -> Option<FetcherOutput> {
        self.outputs.pop_front()
    }

    fn adopt(&mut self, partition: Box<PartitionConsumer>) {
        let topic = Arc::clone(partition.handle.topic());
        let number = partition.handle.partition();
        self.remove(&topic, number);
        partition.handle.set_fetcher(Some(self.wake.clone()));
        if self.partitions == 0 {
            self.shared.fetchers.fetch_add(1, Ordering::Relaxed);
        }
        self.partitions += 1;
        let slots = self.topics.entry(Arc::clone(&topic)).or_default();
        if slots.id != partition.topic_id {
            // The topic was made anew, or its id became known only now.
            self.ids.remove(&slots.id);
            slots.id = partition.topic_id;
            self.session.restart();
        }
        if !slots.id.is_zero() {
            self.ids.insert(slots.id, topic);
        }
        let max_bytes = self.shared.settings.partition_fetch_max_bytes;
        let slot = Slot { partition, known: None, retry_at: None, max_bytes, damaged: 0, told: None };
        slots.partitions.insert(number, slot);
    }

    fn remove(&mut self, topic: &str, partition: i32) -> Option<Slot> {
        let slots = self.topics.get_mut(topic)?;
        let slot = slots.partitions.remove(&partition)?;
        if slot.known.is_some_and(|(generation, _)| generation == self.session.generation()) {
            let topic = Arc::clone(slot.partition.handle.topic());
            self.session.forget(ForgottenPartition { topic, topic_id: slots.id, partition });
        }
        if slots.partitions.is_empty() {
            self.ids.remove(&slots.id);
            self.topics.remove(topic);
        }
        self.partitions -= 1;
        if self.partitions == 0 {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
        slot.partition.handle.set_fetcher(None);
        Some(slot)
    }

    /// The partitions to fetch, or `None` if there is none or one of them has enough in the queue.
    fn choose(&self) -> Option<Vec<(Arc<str>, i32)>> {
        let limits = self.shared.queue.limits();
        let mut wanted = Vec::with_capacity(self.partitions);
        for (topic, slots) in &self.topics {
            for (partition, slot) in &slots.partitions {
                let handle = &slot.partition.handle;
                if slot.retry_at.is_some() || handle.is_paused() || slot.partition.is_stale() {
                    continue;
                }
                if !handle.has_room(limits) {
                    return None;
                }
                wanted.push((Arc::clone(topic), *partition));
            }
        }
        (!wanted.is_empty()).then_some(wanted)
    }

    /// Names in a request what changed since the last one; everything if the session is new.
    fn fill(&mut self, builder: &mut FetchRequestBuilder, wanted: &[(Arc<str>, i32)], by_id: bool) {
        let generation = self.session.generation();
        let mut forgotten = self.session.take_forgotten();
        let mut next_wanted = wanted.iter().peekable();
        let mut asked_for = Vec::new();
        for (topic, slots) in &mut self.topics {
            for (number, slot) in &mut slots.partitions {
                let known = slot.known.filter(|(known, _)| *known == generation).map(|(_, asked)| asked);
                if next_wanted.next_if(|next| (&next.0, next.1) == (topic, *number)).is_some() {
                    let asked = Asked {
                        offset: slot.partition.offset,
                        leader_epoch: slot.partition.leader_epoch,
                        max_bytes: slot.max_bytes,
                    };
                    slot.known = Some((generation, asked));
                    slot.partition.by_id = by_id;
                    if known != Some(asked) {
                        asked_for.push((topic, slots.id, *number, asked));
                        forgotten.retain(|gone| (&gone.topic, gone.partition) != (topic, *number));
                    }
                } else if known.is_some() {
                    slot.known = None;
                    let (topic, topic_id) = (Arc::clone(topic), slots.id);
                    forgotten.push(ForgottenPartition { topic, topic_id, partition: *number });
                }
            }
        }
        if !asked_for.is_empty() {
            // Begin with another topic each time; the partitions of a topic stay together.
            self.turn = self.turn.wrapping_add(1);
            let start = self.turn % asked_for.len();
            let boundary =
                (start..asked_for.len()).find(|i| *i == 0 || asked_for[*i].0 != asked_for[*i - 1].0);
            asked_for.rotate_left(boundary.unwrap_or(0));
        }
        for (topic, topic_id, number, asked) in asked_for {
            builder.add(topic, topic_id, number, asked);
        }
        if !self.session.is_full() {
            builder.forget(forgotten);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what one answer's partitions have in common")]
    fn handle_partition(
        &mut self,
        now: Instant,
        topic: &Arc<str>,
        answer: &PartitionView<'_>,
        generation: u64,
        buffer: &Arc<FetchBuffer>,
        options: &mut DecodeOptions,
        peer: &str,
        items: &mut Vec<Item>,
    ) {
        let number = answer.partition_index;
        let Some(slot) = self.topics.get_mut(topic).and_then(|slots| slots.partitions.get_mut(&number))
        else {
            return;
        };
        // An answer to what was asked before the partition started anew says nothing.
        let offset = slot.partition.offset;
        let answers_it =
            slot.known.is_some_and(|(known, asked)| known == generation && asked.offset == offset);
        let taken_anyway = self.shared.settings.mutation.is(Mutant::IgnoreAsked);
        if !(answers_it || taken_anyway) || slot.partition.is_stale() {
            return;
        }
        if answer.error_code != ErrorCode::NONE {
            return self.handle_partition_error(now, topic, number, answer.error_code, peer);
        }
        slot.partition.refusals = 0;
        slot.partition.answered = true;
        let diverging = &answer.diverging_epoch;
        if (0..offset).contains(&diverging.end_offset) && diverging.epoch >= 0 {
            let (epoch, end_offset) = (diverging.epoch, diverging.end_offset);
            if let Some(slot) = self.remove(topic, number) {
                self.reply(FetchReply::Diverged(slot.partition, epoch, end_offset));
            }
            return;
        }
        let closer = answer.preferred_read_replica;
        if closer >= 0 && answer.records.is_none_or(<[u8]>::is_empty) {
            if let Some(slot) = self.remove(topic, number) {
                self.reply(FetchReply::ReadFrom(slot.partition, closer));
            }
            return;
        }
        slot.told = None;
        let handle = &slot.partition.handle;
        handle.set_watermarks(answer.log_start_offset, answer.high_watermark, answer.last_stable_offset);
        let end = if options.read_committed && answer.last_stable_offset >= 0 {
            answer.last_stable_offset
        } else {
            answer.high_watermark
        };
        let mut decoded = decode(
            buffer,
            answer.records,
            offset,
            answer.high_watermark,
            answer.aborted_transactions.as_deref(),
            options,
        );
        if decoded.next_offset > offset {
            slot.damaged = 0;
            slot.max_bytes = self.shared.settings.partition_fetch_max_bytes;
        }
        let damage = decoded.damage.take();
        slot.partition.offset = decoded.next_offset;
        if decoded.next_offset > offset && self.shared.settings.mutation.is(Mutant::SkipOffset) {
            slot.partition.offset += 1;
        }
        if decoded.next_offset > offset + 1 && self.shared.settings.mutation.is(Mutant::RepeatOffset) {
            slot.partition.offset -= 1;
        }
        if decoded.next_offset > offset {
            slot.partition.position_epoch = decoded.last_epoch;
        }
        let version = slot.partition.version;
        let mut error = None;
        if decoded.next_offset > offset {
            items.push(Item::Records(FetchedRecords::new(
                Arc::clone(handle),
                version,
                self.broker_id,
                decoded,
            )));
        } else if decoded.cut_off && damage.is_none() {
            error = slot.handle_cut_off(now, decoded.cut_off_size, &self.shared.settings);
        }
        if let Some(damage) = damage {
            error = slot.handle_damage(now, damage, &self.shared.settings);
        }
        if let Some(error) = error {
            let error = error.with_partition(&**topic, number).with_peer(peer);
            let event = ConsumerEvent::Error(error);
            items.push(Item::Note { handle: Arc::clone(&slot.partition.handle), version, event });
        }
        let reached = slot.partition.offset;
        if self.shared.settings.partition_eof && reached >= end && slot.partition.end_told != reached {
            slot.partition.end_told = reached;
            let event = ConsumerEvent::EndOfPartition {
                topic: Arc::clone(topic),
                partition: number,
                offset: reached + i64::from(self.shared.settings.mutation.is(Mutant::EndTooFar)),
            };
            items.push(Item::Note { handle: Arc::clone(&slot.partition.handle), version, event });
        }
    }

    fn handle_partition_error(
        &mut self,
        now: Instant,
        topic: &Arc<str>,
        number: i32,
        code: ErrorCode,
        peer: &str,
    ) {
        if code == ErrorCode::OFFSET_OUT_OF_RANGE {
            if let Some(slot) = self.remove(topic, number) {
                self.reply(FetchReply::OutOfRange(slot.partition));
            }
            return;
        }
        if code.invalidates_metadata() && !self.shared.settings.mutation.is(Mutant::KeepStaleLeader) {
            if let Some(mut slot) = self.remove(topic, number) {
                slot.partition.refusals += 1;
                if code == ErrorCode::UNKNOWN_TOPIC_ID {
                    let id = slot.partition.topic_id;
                    self.outputs.push_back(FetcherOutput::UnknownTopicId(Arc::clone(topic), id));
                }
                self.outputs.push_back(FetcherOutput::RefreshMetadata(Arc::clone(topic)));
                self.reply(FetchReply::NotLeader(slot.partition));
            }
            return;
        }
        if code == ErrorCode::UNKNOWN_LEADER_EPOCH
            && !self.shared.settings.mutation.is(Mutant::KeepStaleLeader)
        {
            // Either the broker is behind, or it is another topic of the same name whose epochs began again. The leader may
            // be the same, so that only who knows the newest metadata can tell under which epoch to ask.
            if let Some(slot) = self.remove(topic, number) {
                self.outputs.push_back(FetcherOutput::RefreshMetadata(Arc::clone(topic)));
                self.reply(FetchReply::UnknownEpoch(slot.partition));
            }
            return;
        }
        let wait = self.rng.jitter(self.shared.settings.fetch_error_backoff, 20);
        let Some(slot) = self.topics.get_mut(topic).and_then(|slots| slots.partitions.get_mut(&number))
        else {
            return;
        };
        slot.retry_at = Some(now + wait);
        let kind = ErrorKind::Broker(code);
        // What passes by itself is not worth a word; that the broker's log is damaged does not.
        if (!code.is_retriable() || code == ErrorCode::CORRUPT_MESSAGE)
            && slot.told.replace(kind) != Some(kind)
        {
            let error = Error::broker(code, None).with_api("Fetch").with_peer(peer);
            self.shared.tell_of(&slot.partition.handle, slot.partition.version, error);
        }
    }

    /// A full answer that took long makes the next ones larger: one fetch is in flight at a time, so the time that it
    /// takes bounds the throughput. Quick ones stay small.
    fn adapt(&mut self, bytes: usize, took: Duration) {
        if bytes < self.answer_bytes / 4 * 3 {
            return;
        }
        if took > SLOW_ANSWER {
            let most = usize::try_from(self.shared.settings.fetch_max_bytes).unwrap_or(0).max(ANSWER_BYTES);
            self.answer_bytes = (self.answer_bytes * 2).min(most);
        } else if took < QUICK_ANSWER {
            self.answer_bytes = (self.answer_bytes / 2).max(ANSWER_BYTES);
        }
    }

    /// A broker that does not wait for records, as it was told to, is not asked as fast as it answers.
    fn count_empty_answer(&mut self, now: Instant, is_empty: bool, took: Duration) {
        let wait = self.shared.settings.fetch_wait_max;
        let at_once = is_empty && took < wait / 2;
        self.empty_answers = if at_once { self.empty_answers.saturating_add(1) } else { 0 };
        if self.empty_answers > EMPTY_ANSWERS {
            self.rest(now + wait.min(self.shared.settings.fetch_error_backoff));
        }
    }

    fn rest(&mut self, until: Instant) {
        self.resting_until = Some(self.resting_until.map_or(until, |known| known.max(until)));
    }

    fn reply(&mut self, reply: FetchReply) {
        self.outputs.push_back(FetcherOutput::ToCluster(reply));
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.topics.values().flat_map(|topic| topic.partitions.values())
    }

    fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.topics.values_mut().flat_map(|topic| topic.partitions.values_mut())
    }
}

impl Slot {
    /// The first batch is not whole. A broker before 0.10.1 cuts a batch that is larger than what it was asked for; a
    /// batch that was given room enough lies about its size. Whether anything can be read behind it can't be told: it
    /// is asked for again and again, at leisure.
    fn handle_cut_off(
        &mut self,
        now: Instant,
        size: usize,
        settings: &super::shared::ConsumerSettings,
    ) -> Option<Error> {
        let asked = usize::try_from(self.max_bytes).unwrap_or(0);
        self.max_bytes = self.max_bytes.saturating_mul(2);
        if size > asked && size <= settings.max_batch_bytes {
            return None;
        }
        let wait = settings.fetch_error_backoff;
        self.retry_at = Some(now + wait);
        let first = self.damaged == 0;
        self.damaged = self.damaged.max(1);
        let offset = self.partition.offset;
        let detail = format!(
            "at offset {offset}: the batch claims {size} bytes and is not whole; seek behind it to go on, or raise \
             receive.message.max.bytes if it is that large"
        );
        first.then(|| Error::new(ErrorKind::BadBatch, detail).with_next_attempt(wait))
    }

    /// A batch is damaged: fetch it again after a while, and leave it out when that does not help. Where its end can't be
    /// told it is asked for further, with room for more, until something behind it shows where to go on.
    fn handle_damage(
        &mut self,
        now: Instant,
        damage: Damage,
        settings: &super::shared::ConsumerSettings,
    ) -> Option<Error> {
        self.damaged = self.damaged.saturating_add(1);
        let Damage { offset, next_offset, reason } = damage;
        let factor = 1 << self.damaged.saturating_sub(ATTEMPTS_AT_DAMAGED_BATCH).min(4);
        let wait = settings.fetch_error_backoff.saturating_mul(factor);
        self.retry_at = Some(now + wait);
        let error = |detail| Error::new(ErrorKind::BadBatch, detail);
        match (self.damaged, next_offset.filter(|next| *next > self.partition.offset)) {
            (1, _) => Some(error(format!("at offset {offset}: {reason}")).with_next_attempt(wait)),
            (..ATTEMPTS_AT_DAMAGED_BATCH, _) => None,
            (_, Some(next_offset)) => {
                self.damaged = 0;
                self.retry_at = None;
                self.max_bytes = settings.partition_fetch_max_bytes;
                self.partition.offset = next_offset;
                Some(error(format!(
                    "at offset {offset}: {reason}; fetched {ATTEMPTS_AT_DAMAGED_BATCH} times, offsets {offset} to {} \
                     are left out, going on at offset {next_offset}",
                    next_offset - 1
                )))
            }
            (attempts, None) => {
                let most = settings.fetch_max_bytes.max(settings.partition_fetch_max_bytes);
                self.max_bytes = self.max_bytes.saturating_mul(2).min(most);
                (attempts == ATTEMPTS_AT_DAMAGED_BATCH).then(|| {
                    let detail = format!(
                        "at offset {offset}: {reason}; where it ends can't be told yet: standing still at offset {}, \
                         seek behind it to go on",
                        self.partition.offset
                    );
                    error(detail).with_next_attempt(wait)
                })
            }
        }
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        if self.partitions > 0 {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("partitions", &self.partitions)
            .field("session", &self.session)
            .field("in_flight", &self.in_flight.is_some())
            .finish_non_exhaustive()
    }
}
