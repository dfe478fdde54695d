//! Fetch (1), versions 4 to 18; 0 to 3, with message sets, where an older release is emulated.
//!
//! The broker responds at once if there are `min_bytes` or an error, else as soon as there are, or after `max_wait_ms`.
//! With sessions (KIP-227, from version 7 on) an incremental response contains only partitions with records or changes.
//! The first batch is sent regardless of its size; after it, whole batches up to the limits of the partition and the
//! request (`partial_batches`: cut off anywhere, as Kafka does). Records are sent from the log without copying. A wrong
//! leader epoch is fenced. From version 12 on, a diverging log is reported (KIP-595); from version 16 on, a new leader
//! with its endpoint (KIP-951). Consumers of version 11 on may read from followers and are directed to one in their
//! rack (`rack_aware_fetch`, KIP-392). Consumers of committed records get records up to the last stable offset, and a list of
//! the aborted transactions among them.
//!
//! # Pitfalls
//!
//! - A Fetch response contains the first batch regardless of the limits, or a consumer would be stuck before a large
//!   batch (`first_batch_is_fetched_regardless_of_size_limits`).

use std::{ops::RangeInclusive, time::Duration};

use bytes::Bytes;
use ottla_protocol::{
    batch::LegacyFormat, error_code::ErrorCode, generated::fetch::FetchRequest, uuid::Uuid,
};
use ottla_sorted::SortedMap;

pub(crate) use super::fetch_sessions::FetchSessions;
use super::fetch_sessions::{FetchSession, RequestedPartition, SessionKey, SessionPartition, TopicName};
use super::fields::{put_i16, put_i32, put_i64, put_length, put_string, put_uvarint};
use crate::{
    batch::read_header,
    cluster::{Cluster, Timer},
    connection::{Pending, Request, Waiter},
    log::PartitionLog,
    message_sets::put_batch,
    options::BrokerId,
    timers::TimerKey,
    topics::{Partition, TopicIndex},
};

/// A Fetch request that waits for records.
#[derive(Debug)]
pub(crate) struct PendingFetch {
    pub request: Request,
    /// The number of bytes available so far.
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

/// The partitions of a Fetch request.
#[derive(Debug)]
enum Scope {
    /// The partitions of the request; the response contains all of them.
    Full { session_id: i32, partitions: Vec<SessionPartition> },
    /// The partitions of a session; the response contains those with changes.
    Incremental { session_id: i32 },
}

/// A partition's part of the response.
#[derive(Debug)]
struct Fetched {
    key: SessionKey,
    error: ErrorCode,
    high_watermark: i64,
    last_stable_offset: i64,
    log_start_offset: i64,
    /// (producer ID, first offset) of aborted transactions.
    aborted: Vec<(i64, i64)>,
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
            self.respond_to_fetch(&request, &body_limits(&body), error, 0, Vec::new());
            return;
        }
        let mut limits = body_limits(&body);
        limits.max_bytes = limits.max_bytes.min(self.fetch_quota_bytes(&request));
        let max_wait = Duration::from_millis(u64::try_from(body.max_wait_ms).unwrap_or(0));
        let min_bytes = usize::try_from(body.min_bytes).unwrap_or(0).min(limits.max_bytes);
        let scope = match self.fetch_scope(&request, body) {
            Ok(scope) => scope,
            Err(error) => {
                self.respond_to_fetch(&request, &limits, error, 0, Vec::new());
                return;
            }
        };
        self.strike_fetch(&mut request, &scope);
        let fetched = self.read_scope(&request, &limits, &scope);
        let bytes = fetched.iter().map(|part| part.bytes).sum::<usize>();
        let urgent = fetched.is_empty() || fetched.iter().any(Fetched::is_urgent);
        let mut pending = PendingFetch { request, bytes, min_bytes, limits, scope, timer: None };
        let is_hasty = self.brokers.get(&pending.request.broker).is_some_and(|broker| broker.is_hasty);
        if urgent || bytes >= min_bytes || max_wait.is_zero() || is_hasty {
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

    /// Responds to a Fetch with the records that are available now.
    pub(crate) fn finish_fetch(&mut self, pending: PendingFetch) {
        if let Some(timer) = pending.timer {
            self.timers.cancel(timer);
        }
        let fetched = self.read_scope(&pending.request, &pending.limits, &pending.scope);
        self.finish_with(pending, fetched);
    }

    /// Responds to a Fetch with the given parts; in a session, with the changed ones.
    fn finish_with(&mut self, pending: PendingFetch, mut fetched: Vec<Fetched>) {
        let PendingFetch { mut request, limits, scope, .. } = pending;
        if self.charge_fetch(&mut request, fetched.iter().map(|part| part.bytes).sum()) {
            self.respond_throttled(&request, &limits, &scope);
            return;
        }
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
        self.respond_to_fetch(&request, &limits, error, session_id, fetched);
    }

    /// Responds without records to a client that has to wait: it asks again afterwards. No session begins.
    fn respond_throttled(&mut self, request: &Request, limits: &FetchLimits, scope: &Scope) {
        let session_id = match scope {
            Scope::Full { session_id, .. } => {
                if let Some(broker) = self.brokers.get_mut(&request.broker) {
                    broker.sessions.remove(*session_id);
                }
                0
            }
            Scope::Incremental { session_id } => *session_id,
        };
        self.respond_to_fetch(request, limits, ErrorCode::NONE, session_id, Vec::new());
    }

    /// Reads all partitions in the order in which they are served.
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

    /// Determines the partitions of the request, and creates or changes the session.
    fn fetch_scope(&mut self, request: &Request, body: FetchRequest) -> Result<Scope, ErrorCode> {
        let by_id = request.version >= 13;
        let name =
            |name: String, id: Uuid| if by_id { TopicName::Id(id.0) } else { TopicName::Name(name.into()) };
        let mut partitions = Vec::new();
        for topic in body.topics {
            let topic_name = name(topic.topic, topic.topic_id);
            for partition in topic.partitions {
                let requested = RequestedPartition {
                    current_leader_epoch: partition.current_leader_epoch,
                    fetch_offset: partition.fetch_offset,
                    last_fetched_epoch: partition.last_fetched_epoch,
                    max_bytes: partition.partition_max_bytes,
                };
                partitions.push(SessionPartition::new(topic_name.clone(), partition.partition, requested));
            }
        }
        let (id, epoch) = if request.version >= 7 { (body.session_id, body.session_epoch) } else { (0, -1) };
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(&request.broker) else {
            return Err(ErrorCode::BROKER_NOT_AVAILABLE);
        };
        if epoch <= 0 {
            broker.sessions.remove(id);
            if epoch < 0 || partitions.is_empty() || broker.is_hasty {
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

    /// Reads one partition: at most `left` bytes, but with `at_least_one` at least its first batch.
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
            last_stable_offset: -1,
            log_start_offset: -1,
            aborted: Vec::new(),
            records: Vec::new(),
            bytes: 0,
            diverging: None,
            leader: None,
            preferred_read_replica: -1,
        };
        let state = match self.state_to_read(request, partition, &mut part) {
            Ok(state) => state,
            Err(error) => {
                part.error = error;
                return part;
            }
        };
        let (log, requested) = (&state.log, partition.requested);
        if let Some(replica) = self.better_replica(request, limits, state) {
            part.preferred_read_replica = replica.0;
            (part.high_watermark, part.log_start_offset) = (log.high_watermark(), log.start_offset());
            part.last_stable_offset = state.last_stable_offset();
            return part;
        }
        (part.log_start_offset, part.high_watermark) = state.watermarks_at(request.broker);
        let (start, watermark) = (part.log_start_offset, part.high_watermark);
        part.last_stable_offset = state.last_stable_offset().min(watermark);
        if requested.last_fetched_epoch >= 0 {
            match log.end_of_epoch(requested.last_fetched_epoch) {
                Some((epoch, end))
                    if epoch < requested.last_fetched_epoch || end < requested.fetch_offset =>
                {
                    part.diverging = Some((epoch, end));
                    return part;
                }
                _ => {}
            }
        }
        if requested.fetch_offset < start || requested.fetch_offset > log.end_offset() {
            part.error = ErrorCode::OFFSET_OUT_OF_RANGE;
            (part.high_watermark, part.log_start_offset, part.last_stable_offset) = (-1, -1, -1);
            return part;
        }
        // A follower whose watermark was set by a test also serves the batch at its watermark, as librdkafka's mock
        // cluster does. Its responses carry the high watermark of the log: a reader is at the end only there.
        let set_watermark = state.set_watermark_at(request.broker);
        if set_watermark.is_some() {
            part.high_watermark = log.high_watermark();
            part.last_stable_offset = state.last_stable_offset();
        }
        if set_watermark
            .is_some_and(|set| requested.fetch_offset > set && requested.fetch_offset < log.end_offset())
        {
            part.error = ErrorCode::OFFSET_NOT_AVAILABLE;
            return part;
        }
        let mut last_served = set_watermark.unwrap_or(watermark - 1);
        if limits.read_committed {
            last_served = last_served.min(part.last_stable_offset - 1);
        }
        let max = usize::try_from(requested.max_bytes).unwrap_or(0).min(left);
        self.push_batches(&mut part, log, requested.fetch_offset..=last_served, max, at_least_one);
        if limits.read_committed && part.bytes > 0 {
            let end = log.batches_from(requested.fetch_offset).nth(part.records.len() - 1);
            let end = end.map_or(requested.fetch_offset, |batch| batch.last_offset + 1);
            part.aborted = state.transactions.aborted_in(requested.fetch_offset..end);
        }
        if request.version < 4 {
            part.make_message_set(request.version);
        }
        part
    }

    /// Returns the state of a partition of which this broker has a replica that the request may read.
    fn state_to_read(
        &self,
        request: &Request,
        partition: &SessionPartition,
        part: &mut Fetched,
    ) -> Result<&Partition, ErrorCode> {
        let found = self.find_topic(&partition.key.topic);
        let name = match &partition.key.topic {
            TopicName::Name(name) => Some(&**name),
            TopicName::Id(_) => {
                found.and_then(|index| self.topics.get(index)).map(|topic| topic.name.as_str())
            }
        };
        if let Some(error) = name.and_then(|name| self.topic_refusal(request, name)) {
            return Err(error);
        }
        let index = found.ok_or(match partition.key.topic {
            TopicName::Name(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            TopicName::Id(_) => ErrorCode::UNKNOWN_TOPIC_ID,
        })?;
        let number = partition.key.partition;
        let state = self.topics.partition(index, number).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        part.leader = state.leader.map(|leader| (leader, state.leader_epoch));
        if let Some(error) = request.struck.partition_error(index, number).or(request.struck.error) {
            return Err(error);
        }
        let epoch = partition.requested.current_leader_epoch;
        if request.version >= 11 {
            state.check_replica(request.broker, epoch)?;
        } else {
            state.check_leader(request.broker, epoch)?;
        }
        Ok(state)
    }

    /// Returns the replica to which the leader directs the consumer: an in-sync one in its rack (KIP-392), or the one that a
    /// test has set.
    fn better_replica(&self, request: &Request, limits: &FetchLimits, state: &Partition) -> Option<BrokerId> {
        if state.leader != Some(request.broker) {
            return None;
        }
        if self.options.rack_aware_fetch {
            let near = |id: &&BrokerId| {
                let rack = self.brokers.get(id).and_then(|broker| broker.rack.as_deref());
                rack.is_some_and(|rack| rack == limits.rack) && self.brokers[id].alive
            };
            let replica = state.in_sync.iter().find(near);
            if replica.is_some() && !near(&&request.broker) {
                return replica.copied();
            }
        }
        state.preferred_replica.filter(|replica| request.version >= 11 && *replica != request.broker)
    }

    /// Adds the batches from the start of `offsets` on with a base offset up to its end: at most `max` bytes, but with
    /// `at_least_one` the first batch in any case.
    fn push_batches(
        &self,
        part: &mut Fetched,
        log: &PartitionLog,
        offsets: RangeInclusive<i64>,
        max: usize,
        at_least_one: bool,
    ) {
        for batch in log.batches_from(*offsets.start()) {
            if batch.base_offset > *offsets.end() {
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
    }

    fn find_topic(&self, topic: &TopicName) -> Option<TopicIndex> {
        match topic {
            TopicName::Name(name) => self.topics.by_name(name),
            TopicName::Id(id) => self.topics.by_id(Uuid(*id)),
        }
    }

    /// Encodes the response without the generated types, so that records are not copied.
    fn respond_to_fetch(
        &mut self,
        request: &Request,
        limits: &FetchLimits,
        error: ErrorCode,
        session_id: i32,
        parts: Vec<Fetched>,
    ) {
        let version = request.version;
        let mut writer = request.start_response();
        let flexible = version >= 12;
        if version >= 1 {
            put_i32(&mut writer.buffer, request.throttle_ms());
        }
        if version >= 7 {
            put_i16(&mut writer.buffer, error.0);
            put_i32(&mut writer.buffer, session_id);
        }
        let mut groups: Vec<(TopicName, Vec<Fetched>)> = Vec::new();
        let mut places: SortedMap<TopicName, usize> = SortedMap::new();
        let mut leaders = SortedMap::new();
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
                    let port = self.port_for(request.connection, id);
                    put_i32(&mut field, id.0);
                    put_string(&mut field, true, Some(&broker.host));
                    put_i32(&mut field, port.unwrap_or(-1));
                    put_string(&mut field, true, broker.rack.as_deref());
                    field.push(0);
                }
                writer.buffer.extend_from_slice(&[1, 0]);
                put_uvarint(&mut writer.buffer, field.len());
                writer.buffer.extend_from_slice(&field);
            }
        }
        self.send_response(request, writer);
    }
}

impl Fetched {
    /// Converts the records to message sets for old clients.
    fn make_message_set(&mut self, version: i16) {
        let format = if version < 2 { LegacyFormat::V0 } else { LegacyFormat::V1 };
        let mut set = Vec::new();
        for batch in &self.records {
            // Older clients would take markers for records.
            if read_header(batch).is_ok_and(|header| header.is_control()) {
                continue;
            }
            if let Err(error) = put_batch(format, batch, &mut set) {
                self.error = error;
            }
        }
        self.bytes = set.len();
        self.records = if set.is_empty() { Vec::new() } else { vec![Bytes::from(set)] };
    }

    /// Returns true if the response must be sent at once.
    fn is_urgent(&self) -> bool {
        self.error != ErrorCode::NONE || self.diverging.is_some() || self.preferred_read_replica >= 0
    }

    fn names_leader(&self) -> bool {
        self.error == ErrorCode::NOT_LEADER_OR_FOLLOWER || self.error == ErrorCode::FENCED_LEADER_EPOCH
    }

    fn write_aborted(&self, out: &mut Vec<u8>, flexible: bool) {
        put_length(out, flexible, self.aborted.len());
        for (producer_id, first_offset) in &self.aborted {
            put_i64(out, *producer_id);
            put_i64(out, *first_offset);
            if flexible {
                out.push(0);
            }
        }
    }

    fn write(&self, writer: &mut crate::frame::FrameWriter, version: i16, read_committed: bool) {
        let flexible = version >= 12;
        let out = &mut writer.buffer;
        put_i32(out, self.key.partition);
        put_i16(out, self.error.0);
        put_i64(out, self.high_watermark);
        if version >= 4 {
            put_i64(out, self.last_stable_offset);
        }
        if version >= 5 {
            put_i64(out, self.log_start_offset);
        }
        match (read_committed, flexible) {
            _ if version < 4 => {}
            (true, _) => self.write_aborted(out, flexible),
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

impl PendingFetch {
    /// Returns true if the consumer reads committed records only.
    pub fn is_read_committed(&self) -> bool {
        self.limits.read_committed
    }
}

impl FetchSession {
    /// Returns true if the partition has changes for the session's client, and marks them as sent.
    fn take_news(&mut self, order: u64, part: &Fetched) -> bool {
        let Some(partition) = self.partition_mut(order) else { return true };
        let changed = partition.high_watermark != part.high_watermark
            || partition.log_start_offset != part.log_start_offset;
        partition.high_watermark = part.high_watermark;
        partition.log_start_offset = part.log_start_offset;
        let failed = part.error != ErrorCode::NONE;
        if failed {
            // The state after an error is always a change.
            partition.high_watermark = -1;
        }
        if part.bytes > 0 {
            self.move_to_end(order);
        }
        changed || failed || part.bytes > 0 || part.diverging.is_some() || part.preferred_read_replica >= 0
    }
}

/// Returns true if the error concerns the whole response; all others concern partitions.
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

/// Adds a waiter unless the connection already waits at the partition.
fn wait_at(waiters: &mut Vec<Waiter>, waiter: Waiter) {
    match waiters.iter_mut().find(|known| known.connection == waiter.connection) {
        Some(known) => *known = waiter,
        None => waiters.push(waiter),
    }
}
