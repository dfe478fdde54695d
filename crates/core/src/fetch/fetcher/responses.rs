//! Handling of Fetch responses: first the session, then each partition's records or error.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::fetch::{FetchResponseView, response::PartitionView},
    primitive::Reader,
    vocabulary::{LeaderEpoch, NodeId},
};

use super::{
    super::{
        decode::{DecodeOptions, decode},
        deliver::{ConsumerEvent, FetchBuffer, FetchedRecords},
        message::FetchReport,
        partition::PartitionConsumer,
        queue::Item,
        request::{FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS},
        session::SessionVerdict,
        settings::ConsumerSettings,
    },
    Fetcher,
    slots::Slot,
};
use crate::{
    config::IsolationLevel,
    connection::Response,
    contract::{broker::BrokerNews, half::HalfOutput, metadata::LeaderHint},
    error::{Error, ErrorKind},
    machine::Instant,
};

/// The first version in which the client waits for the end of a throttle; before, the broker delays its response
/// (KIP-219).
const FIRST_THROTTLED_BY_CLIENT: i16 = 8;

/// How long a fetcher waits whose response made room for others.
const YIELD: Duration = Duration::from_millis(5);

/// The context that all partitions of a response share.
struct Exchange<'a> {
    now: Instant,
    /// The generation of the session in which the request was sent.
    generation: u64,
    buffer: &'a Arc<FetchBuffer>,
    options: DecodeOptions,
    peer: &'a str,
    /// Records and events for the application.
    items: Vec<Item>,
}

impl Fetcher {
    /// Handles the response to a Fetch.
    pub fn handle_response(&mut self, now: Instant, response: Response, peer: &str) {
        let reserved =
            self.shared.queue.extend_reserved(std::mem::take(&mut self.reserved), response.frame.len);
        let (items, taken) = self.decode_response(now, response, peer, reserved);
        let reserved = self.shared.queue.extend_reserved(reserved, taken);
        if self.shared.queue.settle(items, reserved) {
            // The fetchers that waited for room come first: a long poll would take it again at once.
            self.back_off(now + YIELD);
        }
    }

    /// Returns the items for the application, and the memory of the response with what was decompressed of it.
    fn decode_response(
        &mut self,
        now: Instant,
        response: Response,
        peer: &str,
        reserved: usize,
    ) -> (Vec<Item>, usize) {
        let took = self.in_flight.take().map_or(Duration::ZERO, |sent| now - sent);
        self.adapt(response.frame.len, took);
        let version = response.request.version;
        let (body, len) = (response.body, response.frame.len);
        let buffer = Arc::new(FetchBuffer::new(response.frame.bytes, self.buffers.clone()));
        let mut decoded =
            match FetchResponseView::decode(&mut Reader::new(&buffer.bytes()[body..len]), version) {
                Ok(decoded) => decoded,
                Err(error) => {
                    self.session.restart();
                    let error = Error::new(ErrorKind::BadResponse, error.to_string())
                        .with_api("Fetch")
                        .with_peer(peer);
                    self.outputs.push_back(HalfOutput::Misbehaved(error));
                    return (Vec::new(), len);
                }
            };
        self.handle_throttle(now, version, decoded.throttle_time_ms);
        // The session may have been given up meanwhile; the response is still used for the partitions of the request.
        let generation = self.session.asked();
        if version >= FIRST_WITH_SESSIONS
            && !self.handle_session(now, decoded.error_code, decoded.session_id, peer)
        {
            return (Vec::new(), len);
        }
        let items = Vec::with_capacity(decoded.responses.len());
        let options = self.decode_options(reserved.saturating_sub(len));
        if options.is_limited {
            self.take_turns(&mut decoded);
        }
        let mut exchange = Exchange { now, generation, buffer: &buffer, options, peer, items };
        let mut has_news = false;
        for topic in &decoded.responses {
            let name = if version >= FIRST_WITH_TOPIC_IDS {
                self.ids.get(&topic.topic_id).cloned()
            } else {
                self.topics.get_key_value(topic.topic).map(|(name, _)| Arc::clone(name))
            };
            let Some(name) = name else { continue };
            for partition in &topic.partitions {
                has_news |= self.handle_partition(&mut exchange, &name, partition);
                self.handle_named_leader(&name, partition, &decoded);
            }
        }
        self.report_kept_ends(&mut exchange);
        self.pace(now, has_news, took);
        (exchange.items, len + exchange.options.decompressed)
    }

    /// Rotates the partitions of a response. If there is not enough memory for all, the batches of the first ones are decompressed;
    /// the broker does not know that the others went without.
    fn take_turns(&mut self, response: &mut FetchResponseView<'_>) {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        let topics = response.responses.len();
        if topics > 0 {
            response.responses.rotate_left(turn % topics);
        }
        for topic in response.responses.iter_mut().filter(|topic| !topic.partitions.is_empty()) {
            let first = turn / topics % topic.partitions.len();
            topic.partitions.rotate_left(first);
        }
    }

    fn handle_throttle(&mut self, now: Instant, version: i16, throttle_time_ms: i32) {
        let millis = throttle_time_ms.unsigned_abs();
        if millis > 0 || self.was_throttled {
            self.was_throttled = millis > 0;
            self.outputs.push_back(BrokerNews::Throttled(millis).into());
        }
        if version >= FIRST_THROTTLED_BY_CLIENT && throttle_time_ms > 0 {
            self.back_off(now + Duration::from_millis(millis.into()));
        }
    }

    /// Applies a response to the fetch session. Returns false if it contains no partitions to handle.
    fn handle_session(&mut self, now: Instant, code: ErrorCode, session_id: i32, peer: &str) -> bool {
        match self.session.handle_response(code, session_id) {
            SessionVerdict::Good => true,
            SessionVerdict::Restart => false,
            SessionVerdict::Refused(code) => {
                self.report_refusal(now, Error::broker(code, None).with_api("Fetch").with_peer(peer));
                self.back_off(now + self.shared.settings.fetch_error_backoff);
                false
            }
        }
    }

    /// Returns the options to decode a response; `rest` is what it leaves of the memory that was reserved.
    fn decode_options(&self, rest: usize) -> DecodeOptions {
        let settings = &self.shared.settings;
        let is_limited = settings.max_memory.is_some();
        DecodeOptions {
            check_crcs: settings.check_crcs,
            suspect: None,
            read_committed: settings.isolation_level == IsolationLevel::ReadCommitted,
            max_batch_bytes: settings.max_batch_bytes,
            decompressed_room: if is_limited { rest } else { settings.prefetch.bytes },
            is_limited,
            decompressed: 0,
            has_batches: false,
            buffers: self.buffers.clone(),
        }
    }

    /// Reports the new leader that a broker named because it does not lead the partition itself (KIP-951).
    fn handle_named_leader(
        &mut self,
        topic: &Arc<str>,
        partition: &PartitionView<'_>,
        response: &FetchResponseView<'_>,
    ) {
        let code = partition.error_code;
        if code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::FENCED_LEADER_EPOCH {
            let leader = &partition.current_leader;
            let leader = (leader.leader_id, leader.leader_epoch);
            let endpoints = response.node_endpoints.iter();
            let endpoints = endpoints.map(|node| (node.node_id, node.host, node.port, node.rack));
            let hint = LeaderHint::new(topic, partition.partition_index, leader, endpoints);
            self.outputs.extend(hint.map(|hint| BrokerNews::LeaderHint(hint).into()));
        }
    }

    /// Handles one partition of a response. Returns true if the broker had a reason to respond at once: records, an
    /// error or another replica to read from.
    fn handle_partition(
        &mut self,
        exchange: &mut Exchange<'_>,
        topic: &Arc<str>,
        response: &PartitionView<'_>,
    ) -> bool {
        let number = response.partition_index;
        let has_records = response.records.is_some_and(|records| !records.is_empty());
        let mut slot = self.topics.get_mut(topic).and_then(|slots| slots.partitions.get_mut(&number));
        if response.error_code == ErrorCode::NONE {
            // The broker reports an end once in a fetch session, also if the partition starts again elsewhere meanwhile.
            let end = end_for(exchange.options.read_committed, response);
            let generation = self.session.generation();
            match &mut slot {
                Some(slot) if slot.known.is_some_and(|(known, _)| known == generation) => {
                    slot.end = Some(end)
                }
                _ => self.session.note_end(topic, number, end),
            }
        }
        let Some(slot) = slot else { return has_records };
        // The response may belong to a request from before the partition started from another offset.
        let offset = slot.partition.offset;
        if !slot.is_current(exchange.generation) {
            return has_records;
        }
        if response.error_code != ErrorCode::NONE {
            self.handle_partition_error(exchange.now, topic, number, response.error_code, exchange.peer);
            return true;
        }
        slot.partition.refusals = 0;
        slot.partition.was_fetched = true;
        let diverging = &response.diverging_epoch;
        if (0..offset).contains(&diverging.end_offset)
            && let Some(epoch) = LeaderEpoch::from_wire(diverging.epoch)
        {
            let end_offset = diverging.end_offset;
            self.give_back(topic, number, |partition| FetchReport::Diverged(partition, epoch, end_offset));
            return true;
        }
        if !has_records && let Some(closer) = NodeId::from_wire(response.preferred_read_replica) {
            self.give_back(topic, number, |partition| FetchReport::ReadFrom(partition, closer));
            return true;
        }
        slot.reported = None;
        slot.handle_records(exchange, response, &self.shared.settings, self.broker_id)
    }

    /// Reports the ends of partitions that started again there, and that the response leaves out.
    fn report_kept_ends(&mut self, exchange: &mut Exchange<'_>) {
        let settings = &self.shared.settings;
        for key in std::mem::take(&mut self.kept_at_end) {
            let slots = self.topics.get_mut(&key.topic);
            let slot = slots.and_then(|slots| slots.partitions.get_mut(&key.partition));
            if let Some(slot) =
                slot.filter(|slot| slot.retry_at.is_none() && slot.is_current(exchange.generation))
            {
                exchange.items.extend(slot.end_of_partition(settings, self.broker_id));
            }
        }
    }

    /// Returns a partition to the cluster actor.
    fn give_back(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        report: impl FnOnce(Box<PartitionConsumer>) -> FetchReport,
    ) {
        if let Some(slot) = self.remove(topic, partition) {
            self.report(report(slot.partition));
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
            return self.give_back(topic, number, FetchReport::OutOfRange);
        }
        if code.invalidates_metadata() {
            if let Some(mut slot) = self.remove(topic, number) {
                slot.partition.refusals += 1;
                if code == ErrorCode::UNKNOWN_TOPIC_ID {
                    let id = slot.partition.topic_id;
                    self.outputs.push_back(BrokerNews::UnknownTopicId(Arc::clone(topic), id).into());
                }
                self.outputs.push_back(BrokerNews::StaleMetadata(Arc::clone(topic)).into());
                self.report(FetchReport::NotLeader(slot.partition));
            }
            return;
        }
        if code == ErrorCode::UNKNOWN_LEADER_EPOCH {
            // Either the broker is behind, or it has a recreated topic of the same name whose epochs restarted. The
            // leader may be the same, so only newer metadata shows which epoch to fetch with.
            if let Some(slot) = self.remove(topic, number) {
                self.outputs.push_back(BrokerNews::StaleMetadata(Arc::clone(topic)).into());
                self.report(FetchReport::UnknownEpoch(slot.partition));
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
        // Retriable errors resolve without the application; a damaged log does not.
        if (!code.is_retriable() || code == ErrorCode::CORRUPT_MESSAGE)
            && slot.reported.replace(kind) != Some(kind)
        {
            let error = Error::broker(code, None).with_api("Fetch").with_peer(peer);
            self.shared.report_for(&slot.partition.handle, slot.partition.version, error);
        }
    }
}

/// Returns the end of the partition for a consumer.
const fn end_for(read_committed: bool, response: &PartitionView<'_>) -> i64 {
    let stable = response.last_stable_offset;
    if read_committed && stable >= 0 { stable } else { response.high_watermark }
}

impl Slot {
    /// Returns true if the last request of this generation named the partition's present offset.
    fn is_current(&self, generation: u64) -> bool {
        let offset = self.partition.offset;
        let is_known = self.known.is_some_and(|(known, asked)| known == generation && asked.offset == offset);
        is_known && !self.partition.is_stale()
    }

    /// Handles the records of a response. Returns true if the position moves or if the next request has more room.
    fn handle_records(
        &mut self,
        exchange: &mut Exchange<'_>,
        response: &PartitionView<'_>,
        settings: &ConsumerSettings,
        broker_id: Option<NodeId>,
    ) -> bool {
        let offset = self.partition.offset;
        let room_before = self.max_bytes;
        let stable = response.last_stable_offset;
        self.partition.handle.set_watermarks(response.log_start_offset, response.high_watermark, stable);
        let end = end_for(exchange.options.read_committed, response);
        let aborted = response.aborted_transactions.as_deref();
        let (buffer, options) = (exchange.buffer, &mut exchange.options);
        options.suspect = self.partition.suspect;
        let mut decoded = decode(buffer, response.records, offset, response.high_watermark, aborted, options);
        let damage = decoded.damage.take();
        let next_offset = decoded.next_offset;
        self.partition.offset = next_offset;
        let version = self.partition.version;
        let mut error = None;
        if next_offset > offset {
            self.damaged = 0;
            self.max_bytes = settings.partition_fetch_max_bytes;
            self.partition.position_epoch = decoded.last_epoch;
            self.partition.suspect.take_if(|suspect| *suspect < next_offset);
            let records =
                FetchedRecords::new(Arc::clone(&self.partition.handle), version, broker_id, decoded);
            exchange.items.push(Item::Records(records));
        } else if decoded.cut_off && damage.is_none() {
            error = self.handle_cut_off(exchange.now, decoded.cut_off_size, settings);
        }
        if let Some(damage) = damage {
            error = self.handle_damage(exchange.now, damage, settings);
        }
        if let Some(error) = error {
            let handle = Arc::clone(&self.partition.handle);
            let error = error.with_partition(&**handle.topic(), handle.partition()).with_peer(exchange.peer);
            exchange.items.push(Item::Note { handle, version, event: ConsumerEvent::Error(error) });
        }
        let reached = self.partition.offset;
        if reached >= end {
            exchange.items.extend(self.end_of_partition(settings, broker_id));
        }
        reached > offset || self.max_bytes > room_before
    }

    /// Returns the event for the end of the partition, once per offset.
    fn end_of_partition(&mut self, settings: &ConsumerSettings, broker_id: Option<NodeId>) -> Option<Item> {
        let reached = self.partition.offset;
        if self.partition.reported_end.replace(reached) == Some(reached) || !settings.partition_eof {
            return None;
        }
        let handle = Arc::clone(&self.partition.handle);
        let (topic, partition) = (Arc::clone(handle.topic()), handle.partition());
        let epoch = self.partition.position_epoch.or(self.partition.leader_epoch);
        let event = ConsumerEvent::EndOfPartition {
            topic,
            partition,
            offset: reached,
            leader_epoch: epoch.map(LeaderEpoch::get),
            broker_id: broker_id.map(NodeId::get),
        };
        Some(Item::Note { handle, version: self.partition.version, event })
    }
}
