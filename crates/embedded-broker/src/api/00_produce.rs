//! Produce (0), versions 3 to 13. Like Kafka 4, brokers advertise versions 0 to 2 but do not serve them. An emulated
//! older release serves them and converts their message sets to record batches.
//!
//! If a request contains a partition twice, the last records win and there is one response, as in Kafka. Each partition
//! takes exactly one record batch of magic 2. The broker checks the batch's header and checksum, and its records only where the
//! topic's configuration asks for it (`validation.rs`), writes base offset and leader epoch into it, and appends it as it is. Idempotent batches must come in sequence; a
//! batch that is already in the log is acknowledged with its old offset. With `acks=all` the response waits for the
//! followers (`replication_lag`). With `acks=0` there is no response, but an error closes the connection. From version
//! 10 on, the response names a partition's new leader (KIP-951).
//!
//! Before the first records of a transaction, the leader checks that the producer has added the partition to it, or adds
//! the partition itself (from version 12 on, KIP-890). While the coordinator writes the markers of the last transaction, the
//! leader tries again every 20 ms, as Kafka's (`transaction_retry_max`).

use std::{ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};
use ottla_protocol::{
    batch::reader::BatchHeader,
    error_code::ErrorCode,
    generated::produce::{
        ProduceRequestView, ProduceResponse,
        response::{CurrentLeader, NodeEndpoint, PartitionResponse, Response},
    },
    primitive::{DecodeError, Reader},
    time::Instant,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    acls::AclOperation,
    batch,
    cluster::{Cluster, Timer},
    connection::{ConnectionId, Pending, Request},
    inbox::FrameBytes,
    message_sets::to_batch,
    options::BrokerId,
    producer_state::SequenceCheck,
    timers::TimerKey,
    topics::TopicIndex,
    transactions::{Participant, ProducerKey},
    validation::Refused,
};

/// A Produce request that waits for followers.
#[derive(Debug)]
pub(crate) struct PendingProduce {
    pub request: Request,
    /// The partitions that it waits for.
    pub parts: Vec<AwaitedPart>,
    response: ProduceResponse,
    /// The size of the request.
    bytes: usize,
    timer: Option<TimerKey>,
}

/// A partition's part of a Produce request that waits for followers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedPart {
    topic: TopicIndex,
    partition: i32,
    leader_epoch: i32,
    /// The followers must have all records before this offset.
    end_offset: i64,
    /// The indexes of the topic and of the partition in the response.
    place: (usize, usize),
}

/// The content of a request.
struct ProduceBody {
    transactional_id: Option<String>,
    acks: i16,
    timeout_ms: i32,
    topics: Vec<TopicPart>,
}

/// A topic of the request, with the ranges of its partitions' records in the frame.
struct TopicPart {
    name: String,
    id: Uuid,
    index: Result<TopicIndex, ErrorCode>,
    partitions: Vec<(i32, Option<Range<usize>>)>,
}

/// A Produce request that waits for the markers of its producer's last transaction.
#[derive(Debug)]
pub(crate) struct PendingAdmission {
    pub request: Request,
    pub frame: Vec<u8>,
    pub body_at: usize,
    until: Instant,
}

impl Cluster {
    pub(crate) fn produce(
        &mut self,
        request: Request,
        frame: FrameBytes<'_>,
        at: usize,
    ) -> Result<Option<BytesMut>, DecodeError> {
        let until = self.now + self.options.transaction_retry_max;
        self.produce_until(request, frame, at, until)
    }

    /// Tries again to append the records of a request.
    pub(crate) fn produce_again(&mut self, pending: PendingAdmission) {
        let PendingAdmission { request, mut frame, body_at, until } = pending;
        // It was decoded before.
        let _ = self.produce_until(request, FrameBytes::Borrowed(&mut frame), body_at, until);
    }

    /// Returns true if a batch of the request begins a transaction, and the markers of the last one are still being written.
    fn must_wait_for_markers(&self, body: &ProduceBody, frame: &[u8]) -> bool {
        let Some(id) = body.transactional_id.as_deref() else { return false };
        if !self.is_transaction_ending(id) {
            return false;
        }
        let parts = body.topics.iter().flat_map(|topic| {
            let index = topic.index.ok();
            topic.partitions.iter().map(move |(partition, range)| (index, *partition, range))
        });
        parts.into_iter().any(|(topic, partition, range)| {
            let (Some(topic), Some(range)) = (topic, range) else { return false };
            let Ok(header) = batch::read_header(&frame[range.clone()]) else { return false };
            let state = self.topics.partition(topic, partition);
            header.is_transactional()
                && state.is_some_and(|state| {
                    !state.has_open_transaction(header.producer_id, header.producer_epoch)
                })
        })
    }

    fn produce_until(
        &mut self,
        request: Request,
        frame: FrameBytes<'_>,
        at: usize,
        until: Instant,
    ) -> Result<Option<BytesMut>, DecodeError> {
        let body = self.read_produce(&request, frame.as_slice(), at)?;
        let bytes = frame.as_slice().len();
        if self.now < until && self.must_wait_for_markers(&body, frame.as_slice()) {
            let due = self.now + self.options.transaction_retry_interval;
            self.timers.set(due, Timer::Expire(request.waiter()));
            let frame = frame.as_slice().to_vec();
            self.wait(Pending::Admission(PendingAdmission { request, frame, body_at: at, until }));
            return Ok(None);
        }
        let ProduceBody { transactional_id, acks, timeout_ms, mut topics } = body;
        let refused =
            self.refuse_transaction(&request, transactional_id.as_deref(), &topics, frame.as_slice());
        keep_the_last(&mut topics);
        let mut request = request;
        let mut records = Carver { frame, consumed: 0 };
        let mut response = ProduceResponse::default();
        let mut awaited = Vec::new();
        let mut failed = false;
        for (i, topic) in topics.into_iter().enumerate() {
            let mut responses = Vec::with_capacity(topic.partitions.len());
            for (j, (partition, range)) in topic.partitions.into_iter().enumerate() {
                let transactional_id = transactional_id.as_deref();
                let part =
                    Part { transactional_id, topic: refused.map_or(topic.index, Err), partition, acks };
                let response = match self.produce_part(&mut request, part, range, &mut records) {
                    Ok(produced) => {
                        if let (Ok(topic), Some(end_offset)) = (topic.index, produced.wait_for) {
                            let leader_epoch = produced.leader_epoch;
                            awaited.push(AwaitedPart {
                                topic,
                                partition,
                                leader_epoch,
                                end_offset,
                                place: (i, j),
                            });
                        }
                        produced.response
                    }
                    Err(refusal) => {
                        failed = true;
                        PartitionResponse {
                            index: partition,
                            error_code: refusal.error,
                            base_offset: -1,
                            error_message: refusal.message,
                            record_errors: refusal.records,
                            ..Default::default()
                        }
                    }
                };
                responses.push(response);
            }
            response.responses.push(Response {
                name: topic.name,
                topic_id: topic.id,
                partition_responses: responses,
            });
        }
        let unused = records.into_unused();
        if acks == 0 {
            self.finish_unacknowledged(request, bytes, failed);
            return Ok(unused);
        }
        let mut pending = PendingProduce { request, parts: awaited, response, bytes, timer: None };
        if pending.parts.iter().all(|part| self.produce_part_is_done(part)) {
            self.finish_produce(pending);
            return Ok(unused);
        }
        let waiter = pending.request.waiter();
        for part in &pending.parts {
            if let Some(state) = self.topics.partition_mut(part.topic, part.partition) {
                state.produce_waiters.push(waiter);
            }
        }
        let wait = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        pending.timer = Some(self.timers.set(self.now + wait, Timer::Expire(waiter)));
        self.wait(Pending::Produce(pending));
        Ok(unused)
    }

    /// Ends a Produce request that gets no response.
    fn finish_unacknowledged(&mut self, mut request: Request, bytes: usize, failed: bool) {
        self.charge_produce(&mut request, bytes);
        self.throttle(&request);
        if request.struck.lose_response {
            self.close(request.connection, "an injected fault dropped the response");
        } else if failed {
            self.close(request.connection, "an unacknowledged Produce failed");
        }
    }

    /// Returns true if followers have the part's records, or can no longer get them.
    pub(crate) fn produce_part_is_done(&self, part: &AwaitedPart) -> bool {
        self.topics.partition(part.topic, part.partition).is_none_or(|state| {
            state.leader_epoch != part.leader_epoch || state.log.high_watermark() >= part.end_offset
        })
    }

    /// Sends the response to a Produce request that need not wait any longer.
    pub(crate) fn finish_produce(&mut self, mut pending: PendingProduce) {
        if let Some(timer) = pending.timer {
            self.timers.cancel(timer);
        }
        let mut request = pending.request;
        self.charge_produce(&mut request, pending.bytes);
        pending.response.throttle_time_ms = request.throttle_ms();
        for part in &pending.parts {
            let error = match self.topics.partition(part.topic, part.partition) {
                None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Some(state) if state.leader_epoch != part.leader_epoch => ErrorCode::NOT_LEADER_OR_FOLLOWER,
                Some(state) if state.log.high_watermark() < part.end_offset => ErrorCode::REQUEST_TIMED_OUT,
                Some(state) if state.in_sync.len() < self.min_insync_replicas(part.topic) => {
                    ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
                }
                Some(_) => continue,
            };
            let response = &mut pending.response.responses[part.place.0].partition_responses[part.place.1];
            (response.error_code, response.base_offset) = (error, -1);
        }
        if request.version >= 10 {
            self.name_new_leaders(request.connection, &mut pending.response);
        }
        let mut writer = request.start_response();
        if pending.response.encode(request.version, &mut writer.buffer).is_ok() {
            self.send_response(&request, writer);
        } else {
            self.close(request.connection, "the response can't be encoded");
        }
    }

    fn min_insync_replicas(&self, topic: TopicIndex) -> usize {
        self.topics.get(topic).map_or(0, |topic| topic.limits.min_insync_replicas)
    }

    fn read_produce(&self, request: &Request, bytes: &[u8], at: usize) -> Result<ProduceBody, DecodeError> {
        let body = &bytes[at..];
        let view = ProduceRequestView::decode(&mut Reader::new(body), request.version)?;
        let base = bytes.as_ptr() as usize;
        let topics = view.topic_data.iter().map(|topic| {
            let index = if request.version >= 13 {
                self.topics.by_id(topic.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
            } else {
                self.topics.by_name(topic.name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            };
            let name = match index {
                Ok(index) => self.topics.get(index).map(|topic| topic.name.as_str()),
                Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => Some(topic.name),
                Err(_) => None,
            };
            let index = name.and_then(|name| self.topic_refusal(request, name)).map_or(index, Err);
            let partitions = topic.partition_data.iter().map(|partition| {
                let range = partition.records.map(|records| {
                    let start = records.as_ptr() as usize - base;
                    start..start + records.len()
                });
                (partition.index, range)
            });
            TopicPart {
                name: topic.name.to_owned(),
                id: topic.topic_id,
                index,
                partitions: partitions.collect(),
            }
        });
        Ok(ProduceBody {
            transactional_id: view.transactional_id.map(str::to_owned),
            acks: view.acks,
            timeout_ms: view.timeout_ms,
            topics: topics.collect(),
        })
    }

    /// Returns the error for all partitions of a request with transactional records whose client may not use the
    /// transactional ID, or names none.
    fn refuse_transaction(
        &self,
        request: &Request,
        transactional_id: Option<&str>,
        topics: &[TopicPart],
        frame: &[u8],
    ) -> Option<ErrorCode> {
        let mut ranges =
            topics.iter().flat_map(|topic| &topic.partitions).filter_map(|(_, range)| range.clone());
        if !ranges.any(|range| batch::is_transactional(&frame[range])) {
            return None;
        }
        let Some(id) = transactional_id else {
            return Some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        };
        self.check_transaction_access(request, AclOperation::Write, id).err()
    }

    /// Checks that the transaction of a batch has the partition, or adds it to the transaction.
    fn admit_batch(
        &mut self,
        request: &Request,
        part: Part<'_>,
        topic: TopicIndex,
        header: &BatchHeader,
    ) -> Result<(), ErrorCode> {
        let adds = request.version >= 12;
        let (Some(id), true) = (part.transactional_id, header.is_transactional()) else { return Ok(()) };
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let state = self.topics.partition(topic, part.partition).ok_or(unknown)?;
        let (producer_id, epoch) = (header.producer_id, header.producer_epoch);
        let is_open = state.has_open_transaction(producer_id, epoch);
        if is_open || !adds && !self.options.transaction_verification {
            return Ok(());
        }
        let known_epoch = state.producers.epoch(producer_id);
        if known_epoch.is_some_and(|known| known > epoch) {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        let name = self.topics.get(topic).ok_or(unknown)?.name.clone();
        let participant = Participant::Partition(name, part.partition);
        let producer = ProducerKey { id: producer_id, epoch };
        let admitted = self.admit_to_transaction(id, producer, participant, adds);
        admitted.map_err(|error| match error {
            ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
            ErrorCode::TRANSACTION_ABORTABLE if request.version < 11 => ErrorCode::INVALID_TXN_STATE,
            // Errors of the coordinator that producers before version 12 don't know: they try again.
            ErrorCode::CONCURRENT_TRANSACTIONS if !adds => ErrorCode::NOT_ENOUGH_REPLICAS,
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => ErrorCode::NOT_ENOUGH_REPLICAS,
            error => error,
        })?;
        match known_epoch {
            None if adds && header.base_sequence != 0 => Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER),
            _ => Ok(()),
        }
    }

    fn produce_part(
        &mut self,
        request: &mut Request,
        part: Part<'_>,
        range: Option<Range<usize>>,
        records: &mut Carver<'_>,
    ) -> Result<Produced, Refused> {
        if let Some(error) = request.struck.error {
            return Err(error.into());
        }
        if !matches!(part.acks, -1..=1) {
            return Err(ErrorCode::INVALID_REQUIRED_ACKS.into());
        }
        let topic_index = part.topic?;
        let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        let topic = self.topics.get(topic_index).ok_or(unknown)?;
        if !self.faults.is_empty() {
            let (name, before) = (topic.name.as_str(), request.struck.error.take());
            self.faults.strike_partition(
                request.api,
                request.broker,
                name,
                part.partition,
                &mut request.struck,
            );
            if let Some(error) = std::mem::replace(&mut request.struck.error, before) {
                return Err(error.into());
            }
        }
        let limits = topic.limits;
        let state = self.topics.partition(topic_index, part.partition).ok_or(unknown)?;
        state.check_leader(request.broker, -1)?;
        let leader_epoch = state.leader_epoch;
        let base_offset = state.log.end_offset();
        let Some(range) = range else {
            return Err(Refused::invalid("Produce requests must have at least one record batch"));
        };
        if self.options.discard {
            let header = batch::read_header(&records.frame.as_slice()[range])?;
            batch::check_content(&header).map_err(Refused::invalid)?;
            self.admit_batch(request, part, topic_index, &header)?;
            if let Some(state) = self.topics.partition_mut(topic_index, part.partition) {
                state.log.skip(i64::from(header.record_count));
            }
            return Ok(Produced::at(part.partition, base_offset, base_offset, -1));
        }
        let mut carved = records.carve(range);
        if request.version < 3 {
            carved = Carved::Owned(BytesMut::from(&to_batch(carved.as_mut())?[..]));
        }
        let mut header = check(carved.as_mut(), request.version, limits.max_message_bytes)?;
        let name = &self.topics.get(topic_index).ok_or(unknown)?.name;
        let place = (name.as_str(), part.partition);
        if let Some(anew) = limits.demands.apply(&header, carved.as_mut(), self.unix_ms(), place)? {
            carved = Carved::Owned(BytesMut::from(&anew[..]));
            header = check(carved.as_mut(), request.version.max(7), limits.max_message_bytes)?;
        }
        let state = self.topics.partition_mut(topic_index, part.partition).ok_or(unknown)?;
        if part.acks == -1 && state.in_sync.len() < limits.min_insync_replicas {
            return Err(ErrorCode::NOT_ENOUGH_REPLICAS.into());
        }
        let log_start_offset = state.log.start_offset();
        if batch::has_producer_id(&header) {
            self.admit_batch(request, part, topic_index, &header)?;
            let state = self.topics.partition(topic_index, part.partition).ok_or(unknown)?;
            match state.check_sequence(&header) {
                SequenceCheck::Append => {}
                SequenceCheck::Refuse(error) => return Err(error.into()),
                SequenceCheck::Duplicate(offset) => {
                    let mut produced = Produced::at(part.partition, offset, log_start_offset, -1);
                    produced.leader_epoch = leader_epoch;
                    produced.wait_for = (part.acks == -1).then_some(offset + i64::from(header.record_count));
                    return Ok(produced);
                }
            }
        }
        batch::assign(carved.as_mut(), base_offset, leader_epoch);
        let append_time = limits.log_append_time.then(|| self.unix_ms());
        if let Some(now) = append_time {
            batch::assign_append_time(header, carved.as_mut(), now);
        }
        let max_timestamp = append_time.unwrap_or(header.max_timestamp);
        self.append(topic_index, part.partition, &header, max_timestamp, carved.into_bytes());
        let mut produced =
            Produced::at(part.partition, base_offset, log_start_offset, append_time.unwrap_or(-1));
        produced.leader_epoch = leader_epoch;
        produced.wait_for = (part.acks == -1).then_some(base_offset + i64::from(header.record_count));
        Ok(produced)
    }

    /// Names the current leader and its endpoint (KIP-951).
    fn name_new_leaders(&self, connection: ConnectionId, response: &mut ProduceResponse) {
        let mut named = SortedMap::new();
        for topic in &mut response.responses {
            let index = self.topics.by_id(topic.topic_id).or_else(|| self.topics.by_name(&topic.name));
            for partition in &mut topic.partition_responses {
                if partition.error_code != ErrorCode::NOT_LEADER_OR_FOLLOWER
                    && partition.error_code != ErrorCode::FENCED_LEADER_EPOCH
                {
                    continue;
                }
                let Some(state) = index.and_then(|index| self.topics.partition(index, partition.index))
                else {
                    continue;
                };
                let Some(leader) = state.leader else { continue };
                partition.current_leader =
                    CurrentLeader { leader_id: leader.0, leader_epoch: state.leader_epoch };
                named.insert(leader, ());
            }
        }
        response.node_endpoints = named.into_keys().filter_map(|id| self.endpoint(connection, id)).collect();
    }

    fn endpoint(&self, connection: ConnectionId, id: BrokerId) -> Option<NodeEndpoint> {
        let broker = self.brokers.get(&id)?;
        Some(NodeEndpoint {
            node_id: id.0,
            host: broker.host.clone(),
            port: self.port_for(connection, id)?,
            rack: broker.rack.clone(),
        })
    }
}

/// Drops parts that a later part for the same partition overwrites.
fn keep_the_last(topics: &mut [TopicPart]) {
    let mut seen = SortedSet::new();
    for topic in topics.iter_mut().rev() {
        let mut kept: Vec<_> = std::mem::take(&mut topic.partitions);
        kept.reverse();
        kept.retain(|(partition, _)| seen.insert((topic.name.clone(), topic.id.0, *partition)));
        kept.reverse();
        topic.partitions = kept;
    }
}

/// The log and limits that apply to one partition's records.
#[derive(Clone, Copy)]
struct Part<'a> {
    transactional_id: Option<&'a str>,
    topic: Result<TopicIndex, ErrorCode>,
    partition: i32,
    acks: i16,
}

struct Produced {
    response: PartitionResponse,
    leader_epoch: i32,
    wait_for: Option<i64>,
}

impl Refused {
    fn invalid(message: &str) -> Self {
        Self { error: ErrorCode::INVALID_RECORD, message: Some(message.to_owned()), records: Vec::new() }
    }
}

impl Produced {
    fn at(index: i32, base_offset: i64, log_start_offset: i64, log_append_time_ms: i64) -> Self {
        let response = PartitionResponse {
            index,
            base_offset,
            log_start_offset,
            log_append_time_ms,
            ..Default::default()
        };
        Self { response, leader_epoch: 0, wait_for: None }
    }
}

/// Performs the checks that Kafka makes before it accesses the log.
fn check(records: &[u8], version: i16, max_message_bytes: usize) -> Result<BatchHeader, Refused> {
    if records.is_empty() {
        return Err(Refused::invalid("Produce requests must have at least one record batch"));
    }
    let header = batch::read_header(records)?;
    if header.size != records.len() {
        return Err(Refused::invalid("Produce requests must have exactly one record batch per partition"));
    }
    if batch::is_zstd(&header) && version < 7 {
        return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE.into());
    }
    if header.size > max_message_bytes {
        return Err(ErrorCode::MESSAGE_TOO_LARGE.into());
    }
    if !batch::checksum_fits(header, records) {
        return Err(ErrorCode::CORRUPT_MESSAGE.into());
    }
    batch::check_content(&header).map_err(Refused::invalid)?;
    Ok(header)
}

/// Splits records off a frame, from its start to its end.
struct Carver<'a> {
    frame: FrameBytes<'a>,
    consumed: usize,
}

/// One partition's records.
enum Carved<'a> {
    Borrowed(&'a mut [u8]),
    Owned(BytesMut),
}

/// Records below this size are copied out of a large frame, because they would otherwise keep all of it in memory.
const KEEP_FROM: usize = 4096;

impl Carver<'_> {
    /// Returns the bytes of `range`, which must begin after every earlier range.
    fn carve(&mut self, range: Range<usize>) -> Carved<'_> {
        match &mut self.frame {
            FrameBytes::Borrowed(bytes) => Carved::Borrowed(&mut bytes[range]),
            FrameBytes::Owned(bytes, _) => {
                let range = range.start - self.consumed..range.end - self.consumed;
                if range.len() < KEEP_FROM {
                    return Carved::Borrowed(&mut bytes[range]);
                }
                self.consumed += range.end;
                let length = range.len();
                let mut head = bytes.split_to(range.end);
                Carved::Owned(head.split_off(head.len() - length))
            }
        }
    }

    fn into_unused(self) -> Option<BytesMut> {
        if self.consumed == 0 { self.frame.into_unused() } else { None }
    }
}

impl Carved<'_> {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Self::Owned(bytes) => bytes.freeze(),
        }
    }
}
