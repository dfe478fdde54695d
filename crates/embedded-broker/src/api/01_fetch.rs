//! Fetch (1), versions 4 to 18; 0 to 3, with message sets, where an older release is emulated.
//!
//! Answers at once if there are `min_bytes` or an error, else when there are, or after `max_wait_ms`. Sessions (KIP-227)
//! from version 7 on: only partitions with records or news are in an incremental answer. The first batch found is sent
//! whatever its size; after it, whole batches up to the partition's and the request's limits (`partial_batches`: cut off
//! anywhere, as Kafka does). Records are sent out of the log without being copied. A wrong leader epoch is fenced, a
//! diverging log is told from version 12 on (KIP-595), a new leader and its endpoint from version 16 on
//! (KIP-951), and consumers of version 11 on may read from followers and are sent to one in their rack
//! (`rack_aware_fetch`, KIP-392). There are no transactions: the last stable offset is the high watermark.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use ottla_protocol::{
    batch::LegacyFormat, error_code::ErrorCode, generated::fetch::FetchRequest, uuid::Uuid,
};

pub(crate) use super::fetch_sessions::FetchSessions;
use super::fetch_sessions::{FetchSession, SessionKey, SessionPartition, TopicName, WantedPartition};
use crate::{
    cluster::{Cluster, Timer},
    connection::{Pending, Request, Waiter},
    message_sets::put_batch,
    options::BrokerId,
    timers::TimerKey,
    topics::TopicIndex,
};

/// A Fetch that waits for records.
#[derive(Debug)]
pub(crate) struct PendingFetch {
    pub request: Request,
    /// What there is already.
    pub bytes: usize,
    pub min_bytes: usize,
    limits: FetchLimits,
    scope: Scope,
    timer: Option<TimerKey>,
}

#[derive(Clone, Debug)]
struct FetchLimits {
    max_bytes: usize,
    read_committed: bool,
    rack: String,
}

/// Which partitions a Fetch is about.
#[derive(Debug)]
enum Scope {
    /// Those of the request, all of which are answered.
    Full { session_id: i32, partitions: Vec<SessionPartition> },
    /// Those of a session, of which those with news are answered.
    Incremental { session_id: i32 },
}

/// A partition's part of the answer.
#[derive(Debug)]
struct Fetched {
    key: SessionKey,
    error: ErrorCode,
    high_watermark: i64,
    log_start_offset: i64,
    records: Vec<Bytes>,
    bytes: usize,
    diverging: Option<(i32, i64)>,
    leader: Option<(BrokerId, i32)>,
    preferred_read_replica: i32,
}

impl Cluster {
    pub(crate) fn fetch(&mut self, mut request: Request, body: FetchRequest) {
        if let Some(error) = request.struck.error
            && request.version >= 7
            && (!request.struck.is_scripted || is_about_session(error))
        {
            self.answer_fetch(&request, &body_limits(&body), error, 0, Vec::new());
            return;
        }
        let limits = body_limits(&body);
        let max_wait = Duration::from_millis(u64::try_from(body.max_wait_ms).unwrap_or(0));
        let min_bytes = usize::try_from(body.min_bytes).unwrap_or(0).min(limits.max_bytes);
        let scope = match self.fetch_scope(&request, body) {
            Ok(scope) => scope,
            Err(error) => {
                self.answer_fetch(&request, &limits, error, 0, Vec::new());
                return;
            }
        };
        self.strike_fetch(&mut request, &scope);
        let fetched = self.read_scope(&request, &limits, &scope);
        let bytes = fetched.iter().map(|part| part.bytes).sum::<usize>();
        let urgent = fetched.is_empty() || fetched.iter().any(Fetched::is_urgent);
        let mut pending = PendingFetch { request, bytes, min_bytes, limits, scope, timer: None };
        if urgent || bytes >= min_bytes || max_wait.is_zero() {
            self.finish_with(pending, fetched);
            return;
        }
        let waiter = pending.request.waiter();
        for part in fetched {
            let index = self.find_topic(&part.key.topic);
            if let Some(state) = index.and_then(|index| self.topics.partition_mut(index, part.key.partition))
            {
                wait_at(&mut state.fetch_waiters, waiter);
            }
        }
        pending.timer = Some(self.timers.set(self.now + max_wait, Timer::Expire(waiter)));
        self.wait(Pending::Fetch(pending));
    }

    /// Answers a Fetch with what there is now.
    pub(crate) fn finish_fetch(&mut self, pending: PendingFetch) {
        if let Some(timer) = pending.timer {
            self.timers.cancel(timer);
        }
        let fetched = self.read_scope(&pending.request, &pending.limits, &pending.scope);
        self.finish_with(pending, fetched);
    }

    /// Answers a Fetch with what was read; of a session, with what is news.
    fn finish_with(&mut self, pending: PendingFetch, mut fetched: Vec<Fetched>) {
        let PendingFetch { request, limits, scope, .. } = pending;
        let (session_id, is_full) = match scope {
            Scope::Full { session_id, .. } => (session_id, true),
            Scope::Incremental { session_id } => (session_id, false),
        };
        let mut error = ErrorCode::NONE;
        if session_id != 0 {
            match self.session_mut(request.broker, session_id) {
                Some(session) => {
                    let orders: Vec<u64> = session.partitions().map(|(order, _)| order).collect();
                    let mut orders = orders.into_iter();
                    fetched.retain(|part| {
                        orders.next().is_some_and(|order| session.take_news(order, part)) || is_full
                    });
                }
                None if is_full => {}
                None => error = ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
            }
        }
        let session_id = if error == ErrorCode::NONE { session_id } else { 0 };
        self.answer_fetch(&request, &limits, error, session_id, fetched);
    }

    /// Reads all partitions, in the order in which they are to be served.
    fn read_scope(&self, request: &Request, limits: &FetchLimits, scope: &Scope) -> Vec<Fetched> {
        match scope {
            Scope::Full { partitions, .. } => self.read_partitions(request, limits, partitions.iter()),
            Scope::Incremental { session_id } => {
                let session =
                    self.brokers.get(&request.broker).and_then(|broker| broker.sessions.get(*session_id));
                let partitions = session.into_iter().flat_map(|session| session.partitions());
                self.read_partitions(request, limits, partitions.map(|(_, partition)| partition))
            }
        }
    }

    /// Finds out which partitions are meant, and creates or changes the session.
    fn fetch_scope(&mut self, request: &Request, body: FetchRequest) -> Result<Scope, ErrorCode> {
        let by_id = request.version >= 13;
        let name =
            |name: String, id: Uuid| if by_id { TopicName::Id(id.0) } else { TopicName::Name(name.into()) };
        let mut partitions = Vec::new();
        for topic in body.topics {
            let topic_name = name(topic.topic, topic.topic_id);
            for partition in topic.partitions {
                let wanted = WantedPartition {
                    current_leader_epoch: partition.current_leader_epoch,
                    fetch_offset: partition.fetch_offset,
                    last_fetched_epoch: partition.last_fetched_epoch,
                    max_bytes: partition.partition_max_bytes,
                };
                partitions.push(SessionPartition::new(topic_name.clone(), partition.partition, wanted));
            }
        }
        let (id, epoch) = if request.version >= 7 { (body.session_id, body.session_epoch) } else { (0, -1) };
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(&request.broker) else {
            return Err(ErrorCode::BROKER_NOT_AVAILABLE);
        };
        if epoch <= 0 {
            broker.sessions.remove(id);
            if epoch < 0 || partitions.is_empty() {
                return Ok(Scope::Full { session_id: 0, partitions });
            }
            let created = broker.sessions.create(now, &mut self.random, by_id, partitions.clone());
            return Ok(Scope::Full { session_id: created.unwrap_or(0), partitions });
        }
        let session = broker.sessions.resume(id, epoch, by_id)?;
        for topic in body.forgotten_topics_data {
            let topic_name = name(topic.topic, topic.topic_id);
            for partition in topic.partitions {
                session.forget(&SessionKey { topic: topic_name.clone(), partition });
            }
        }
        for partition in partitions {
            session.put(partition);
        }
        session.used(now);
        if session.is_empty() {
            broker.sessions.remove(id);
            return Ok(Scope::Full { session_id: 0, partitions: Vec::new() });
        }
        Ok(Scope::Incremental { session_id: id })
    }

    fn session_mut(&mut self, broker: BrokerId, id: i32) -> Option<&mut FetchSession> {
        self.brokers.get_mut(&broker)?.sessions.get_mut(id)
    }

    fn strike_fetch(&mut self, request: &mut Request, scope: &Scope) {
        if self.faults.is_empty() {
            return;
        }
        let keys: Vec<SessionKey> = match scope {
            Scope::Full { partitions, .. } => {
                partitions.iter().map(|partition| partition.key.clone()).collect()
            }
            Scope::Incremental { session_id } => {
                let session = self.session_mut(request.broker, *session_id);
                session.map_or_else(Vec::new, |s| s.partitions().map(|(_, p)| p.key.clone()).collect())
            }
        };
        for key in keys {
            let Some(index) = self.find_topic(&key.topic) else { continue };
            let Some(name) = self.topics.get(index).map(|topic| topic.name.clone()) else { continue };
            let before = request.struck.error.take();
            self.faults.strike_partition(
                request.api,
                request.broker,
                &name,
                key.partition,
                &mut request.struck,
            );
            if let Some(error) = std::mem::replace(&mut request.struck.error, before) {
                request.struck.partition_errors.push((index, key.partition, error));
            }
        }
    }

    fn read_partitions<'p>(
        &self,
        request: &Request,
        limits: &FetchLimits,
        partitions: impl Iterator<Item = &'p SessionPartition>,
    ) -> Vec<Fetched> {
        let mut left = limits.max_bytes.min(self.options.fetch_max_bytes);
        let mut at_least_one = true;
        let mut fetched = Vec::new();
        for partition in partitions {
            let part = self.read_partition(request, limits, partition, left, at_least_one);
            left = left.saturating_sub(part.bytes);
            at_least_one &= part.bytes == 0;
            fetched.push(part);
        }
        fetched
    }

    /// Reads one partition: at most `left` bytes, but with `at_least_one` its first batch in any case.
    fn read_partition(
        &self,
        request: &Request,
        limits: &FetchLimits,
        partition: &SessionPartition,
        left: usize,
        at_least_one: bool,
    ) -> Fetched {
        let mut part = Fetched {
            key: partition.key.clone(),
            error: ErrorCode::NONE,
            high_watermark: -1,
            log_start_offset: -1,
            records: Vec::new(),
            bytes: 0,
            diverging: None,
            leader: None,
            preferred_read_replica: -1,
        };
        let unknown = match partition.key.topic {
            TopicName::Name(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            TopicName::Id(_) => ErrorCode::UNKNOWN_TOPIC_ID,
        };
        let Some(index) = self.find_topic(&partition.key.topic) else {
            part.error = unknown;
            return part;
        };
        let Some(state) = self.topics.partition(index, partition.key.partition) else {
            part.error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            return part;
        };
        part.leader = state.leader.map(|leader| (leader, state.leader_epoch));
        let injected =
            request.struck.partition_error(index, partition.key.partition).or(request.struck.error);
        if let Some(error) = injected {
            part.error = error;
            return part;
        }
        let wanted = partition.wanted;
        let allowed = if request.version >= 11 {
            state.check_replica(request.broker, wanted.current_leader_epoch)
        } else {
            state.check_leader(request.broker, wanted.current_leader_epoch)
        };
        if let Err(error) = allowed {
            part.error = error;
            return part;
        }
        let log = &state.log;
        if self.options.rack_aware_fetch && state.leader == Some(request.broker) {
            let near = |id: &&BrokerId| {
                let rack = self.brokers.get(id).and_then(|broker| broker.rack.as_deref());
                rack.is_some_and(|rack| rack == limits.rack) && self.brokers[id].alive
            };
            let leader_is_near = near(&&request.broker);
            if let Some(replica) = state.in_sync.iter().find(near)
                && !leader_is_near
            {
                part.preferred_read_replica = replica.0;
                (part.high_watermark, part.log_start_offset) = (log.high_watermark(), log.start_offset());
                return part;
            }
        }
        (part.high_watermark, part.log_start_offset) = (log.high_watermark(), log.start_offset());
        if let Some(replica) = state.preferred_replica
            && request.version >= 11
            && state.leader == Some(request.broker)
            && replica != request.broker
        {
            part.preferred_read_replica = replica.0;
            return part;
        }
        (part.log_start_offset, part.high_watermark) = state.watermarks_at(request.broker);
        let (start, watermark) = (part.log_start_offset, part.high_watermark);
        if wanted.last_fetched_epoch >= 0 {
            match log.end_of_epoch(wanted.last_fetched_epoch) {
                Some((epoch, end)) if epoch < wanted.last_fetched_epoch || end < wanted.fetch_offset => {
                    part.diverging = Some((epoch, end));
                    return part;
                }
                _ => {}
            }
        }
        let end = if watermark == log.high_watermark() { log.end_offset() } else { watermark };
        if wanted.fetch_offset < start || wanted.fetch_offset > end {
            part.error = ErrorCode::OFFSET_OUT_OF_RANGE;
            (part.high_watermark, part.log_start_offset) = (-1, -1);
            return part;
        }
        let max = usize::try_from(wanted.max_bytes).unwrap_or(0).min(left);
        for batch in log.batches_from(wanted.fetch_offset) {
            if batch.base_offset >= watermark {
                break;
            }
            let first = part.records.is_empty() && at_least_one;
            if !first && part.bytes + batch.bytes.len() > max {
                if self.options.partial_batches && !part.records.is_empty() && max > part.bytes {
                    part.records.push(batch.bytes.slice(..max - part.bytes));
                    part.bytes = max;
                }
                break;
            }
            part.bytes += batch.bytes.len();
            part.records.push(batch.bytes.clone());
        }
        if request.version < 4 {
            part.make_message_set(request.version);
        }
        part
    }

    fn find_topic(&self, topic: &TopicName) -> Option<TopicIndex> {
        match topic {
            TopicName::Name(name) => self.topics.by_name(name),
            TopicName::Id(id) => self.topics.by_id(Uuid(*id)),
        }
    }

    /// Writes the answer by hand, because records are not to be copied.
    fn answer_fetch(
        &mut self,
        request: &Request,
        limits: &FetchLimits,
        error: ErrorCode,
        session_id: i32,
        parts: Vec<Fetched>,
    ) {
        let version = request.version;
        let mut writer = request.answer();
        let flexible = version >= 12;
        if version >= 1 {
            put_i32(&mut writer.buffer, request.throttle_ms());
        }
        if version >= 7 {
            put_i16(&mut writer.buffer, error.0);
            put_i32(&mut writer.buffer, session_id);
        }
        let mut groups: Vec<(TopicName, Vec<Fetched>)> = Vec::new();
        let mut places: BTreeMap<TopicName, usize> = BTreeMap::new();
        let mut leaders = BTreeMap::new();
        for part in parts {
            if part.names_leader()
                && let Some((leader, _)) = part.leader
            {
                leaders.insert(leader, ());
            }
            let place = *places.entry(part.key.topic.clone()).or_insert_with(|| {
                groups.push((part.key.topic.clone(), Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(part);
        }
        put_length(&mut writer.buffer, flexible, groups.len());
        for (topic, parts) in groups {
            match &topic {
                TopicName::Name(name) => put_string(&mut writer.buffer, flexible, Some(name)),
                TopicName::Id(id) => writer.buffer.extend_from_slice(id),
            }
            put_length(&mut writer.buffer, flexible, parts.len());
            for part in parts {
                part.write(&mut writer, version, limits.read_committed);
            }
            if flexible {
                writer.buffer.push(0);
            }
        }
        if flexible {
            let endpoints: Vec<BrokerId> =
                if version >= 16 { leaders.into_keys().collect() } else { Vec::new() };
            if endpoints.is_empty() {
                writer.buffer.push(0);
            } else {
                let mut field = Vec::new();
                put_length(&mut field, true, endpoints.len());
                for id in endpoints {
                    let broker = &self.brokers[&id];
                    put_i32(&mut field, id.0);
                    put_string(&mut field, true, Some(&broker.host));
                    put_i32(&mut field, i32::from(broker.port));
                    put_string(&mut field, true, broker.rack.as_deref());
                    field.push(0);
                }
                writer.buffer.extend_from_slice(&[1, 0]);
                put_uvarint(&mut writer.buffer, field.len());
                writer.buffer.extend_from_slice(&field);
            }
        }
        self.answer(request, writer);
    }
}

impl Fetched {
    /// Puts the records into the form that old clients know.
    fn make_message_set(&mut self, version: i16) {
        let format = if version < 2 { LegacyFormat::V0 } else { LegacyFormat::V1 };
        let mut set = Vec::new();
        for batch in &self.records {
            if let Err(error) = put_batch(format, batch, &mut set) {
                self.error = error;
            }
        }
        self.bytes = set.len();
        self.records = if set.is_empty() { Vec::new() } else { vec![Bytes::from(set)] };
    }

    /// It has to be said at once.
    fn is_urgent(&self) -> bool {
        self.error != ErrorCode::NONE || self.diverging.is_some() || self.preferred_read_replica >= 0
    }

    fn names_leader(&self) -> bool {
        self.error == ErrorCode::NOT_LEADER_OR_FOLLOWER || self.error == ErrorCode::FENCED_LEADER_EPOCH
    }

    fn write(&self, writer: &mut crate::frame::FrameWriter, version: i16, read_committed: bool) {
        let flexible = version >= 12;
        let out = &mut writer.buffer;
        put_i32(out, self.key.partition);
        put_i16(out, self.error.0);
        put_i64(out, self.high_watermark);
        if version >= 4 {
            put_i64(out, self.high_watermark);
        }
        if version >= 5 {
            put_i64(out, self.log_start_offset);
        }
        match (read_committed, flexible) {
            _ if version < 4 => {}
            (true, true) => out.push(1),
            (true, false) => put_i32(out, 0),
            (false, true) => out.push(0),
            (false, false) => put_i32(out, -1),
        }
        if version >= 11 {
            put_i32(out, self.preferred_read_replica);
        }
        put_length(out, flexible, self.bytes);
        for records in &self.records {
            writer.append(records);
        }
        if flexible {
            let out = &mut writer.buffer;
            let leader = self.leader.filter(|_| version >= 16 && self.names_leader());
            out.push(u8::from(self.diverging.is_some()) + u8::from(leader.is_some()));
            if let Some((epoch, end_offset)) = self.diverging {
                out.extend_from_slice(&[0, 13]);
                put_i32(out, epoch);
                put_i64(out, end_offset);
                out.push(0);
            }
            if let Some((leader, epoch)) = leader {
                out.extend_from_slice(&[1, 9]);
                put_i32(out, leader.0);
                put_i32(out, epoch);
                out.push(0);
            }
        }
    }
}

impl FetchSession {
    /// True if there is something to say of a partition, which is then said.
    fn take_news(&mut self, order: u64, part: &Fetched) -> bool {
        let Some(partition) = self.partition_mut(order) else { return true };
        let changed = partition.high_watermark != part.high_watermark
            || partition.log_start_offset != part.log_start_offset;
        partition.high_watermark = part.high_watermark;
        partition.log_start_offset = part.log_start_offset;
        let failed = part.error != ErrorCode::NONE;
        if failed {
            // Whatever comes after an error is news.
            partition.high_watermark = -1;
        }
        if part.bytes > 0 {
            self.move_to_end(order);
        }
        changed || failed || part.bytes > 0 || part.diverging.is_some() || part.preferred_read_replica >= 0
    }
}

/// Such an error belongs to the answer as a whole; every other one to its partitions.
fn is_about_session(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND
            | ErrorCode::INVALID_FETCH_SESSION_EPOCH
            | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR
    )
}

fn body_limits(body: &FetchRequest) -> FetchLimits {
    FetchLimits {
        max_bytes: usize::try_from(body.max_bytes).unwrap_or(0),
        read_committed: body.isolation_level == 1,
        rack: body.rack_id.clone(),
    }
}

/// A connection waits at a partition at most once.
fn wait_at(waiters: &mut Vec<Waiter>, waiter: Waiter) {
    match waiters.iter_mut().find(|known| known.connection == waiter.connection) {
        Some(known) => *known = waiter,
        None => waiters.push(waiter),
    }
}

fn put_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_uvarint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The length of an array or of records.
fn put_length(out: &mut Vec<u8>, flexible: bool, length: usize) {
    if flexible {
        put_uvarint(out, length + 1);
    } else {
        put_i32(out, i32::try_from(length).unwrap_or(i32::MAX));
    }
}

fn put_string(out: &mut Vec<u8>, flexible: bool, value: Option<&str>) {
    match (value, flexible) {
        (Some(value), true) => put_uvarint(out, value.len() + 1),
        (Some(value), false) => put_i16(out, i16::try_from(value.len()).unwrap_or(i16::MAX)),
        (None, true) => out.push(0),
        (None, false) => put_i16(out, -1),
    }
    out.extend_from_slice(value.unwrap_or_default().as_bytes());
}
