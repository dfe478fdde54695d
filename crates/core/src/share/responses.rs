//! Handling of ShareFetch and ShareAcknowledge responses: first the session, then each partition's acknowledgements,
//! then its records.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        share_acknowledge::ShareAcknowledgeResponse,
        share_fetch::{ShareFetchResponseView, response::PartitionView},
    },
    primitive::Reader,
    vocabulary::NodeId,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    acknowledgement::AcknowledgedRange,
    acquired::{AcquiredRecords, Origin},
    decode::decode_share,
    fetcher::{InFlightShare, ShareFetcher, ShareRequestKind, SlotState, partition_id},
    session::PartitionId,
    shared::{Reply, Submission, lock_lost},
};
use crate::{
    connection::Response,
    contract::{broker::BrokerNews, half::HalfOutput, metadata::LeaderHint},
    error::{Error, ErrorKind},
    fetch::{decode::DecodeOptions, deliver::FetchBuffer},
    machine::Instant,
};

/// The outcomes of acknowledgements by partition.
type Outcomes = SortedMap<PartitionId, (ErrorCode, Option<String>)>;
/// Acquired records, with what the client acknowledges by itself.
type Acquired = (Vec<Arc<AcquiredRecords>>, Vec<AcknowledgedRange>);
/// The brokers that a response names: node ID, host, port and rack.
type Endpoints = Vec<(i32, String, i32, Option<String>)>;

impl ShareFetcher {
    /// Handles the response to the request in flight.
    pub fn handle_response(&mut self, now: Instant, response: Response, peer: &str) {
        let Some(InFlightShare { kind, submissions }) = self.in_flight.take() else { return };
        let (api, version) = (response.request.api.name(), response.request.version);
        let (body, len) = (response.body, response.frame.len);
        // Records stay in the frame.
        let buffer = Arc::new(FetchBuffer::new(response.frame.bytes, self.buffers.clone()));
        let reader = &mut Reader::new(&buffer.bytes()[body..len]);
        let handled = match kind {
            ShareRequestKind::Fetch => ShareFetchResponseView::decode(reader, version)
                .map_err(|error| error.to_string())
                .and_then(|decoded| self.handle_fetched(now, &decoded, &buffer, submissions.clone(), peer)),
            ShareRequestKind::Acknowledge | ShareRequestKind::End => {
                ShareAcknowledgeResponse::decode(reader, version)
                    .map_err(|error| error.to_string())
                    .map(|decoded| self.handle_acknowledged(now, decoded, submissions.clone(), peer))
            }
        };
        if let Err(detail) = handled {
            let error = Error::new(ErrorKind::BadResponse, detail).with_api(api).with_peer(peer);
            submissions.into_iter().for_each(|submission| {
                self.shared.settle(submission, Err(error.clone()), None);
            });
            self.end_session(&error);
            self.outputs.push_back(HalfOutput::Misbehaved(error));
        }
        if kind == ShareRequestKind::End {
            self.end_session(&super::shared::session_lost());
            self.ending().into_iter().for_each(|node| self.report_ended(node));
        }
    }

    /// Handles the response to a ShareFetch. Error: what is wrong with it; no acknowledgement has an outcome then.
    fn handle_fetched(
        &mut self,
        now: Instant,
        response: &ShareFetchResponseView<'_>,
        buffer: &Arc<FetchBuffer>,
        submissions: Vec<Submission>,
        peer: &str,
    ) -> Result<(), String> {
        let lock = lock_of(response.acquisition_lock_timeout_ms);
        if response.error_code.is_error() {
            let refusal = (response.error_code, response.error_message.map(str::to_owned));
            self.handle_refused(now, refusal, submissions, "ShareFetch", peer);
            return Ok(());
        }
        let endpoints: Endpoints = response
            .node_endpoints
            .iter()
            .map(|node| (node.node_id, node.host.to_owned(), node.port, node.rack.map(str::to_owned)))
            .collect();
        let mut outcomes = Outcomes::new();
        let mut acquired = Vec::new();
        let mut seen = SortedSet::new();
        for topic in &response.responses {
            for partition in &topic.partitions {
                let id = (topic.topic_id, partition.partition_index);
                if !seen.insert(id) {
                    return Err(format!("partition {} of a topic twice", id.1));
                }
                let message = partition.acknowledge_error_message.map(str::to_owned);
                outcomes.insert(id, (partition.acknowledge_error_code, message));
                let leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
                let code = partition.error_code;
                let message = partition.error_message.map(str::to_owned);
                if code.is_error() {
                    self.handle_partition_error(now, id, (code, message), leader, &endpoints, peer);
                } else {
                    acquired.extend(self.handle_records(id, partition, buffer, (now, lock))?);
                }
            }
        }
        self.backoff.reset();
        self.settle_all(submissions, &outcomes, now + lock, peer);
        for (parts, _) in &acquired {
            self.supersede(parts);
        }
        let mut records = Vec::new();
        for (parts, unusable) in acquired {
            if !unusable.is_empty()
                && let Some(first) = parts.first()
            {
                let (records, reply) = (Arc::clone(first), Reply::Unreported);
                self.pending.push(Submission { records, ranges: unusable, reply });
            }
            records.extend(
                parts.into_iter().filter(|records| !records.is_empty() || !records.damaged().is_empty()),
            );
        }
        // Records that are handed out alone come after all others.
        records.sort_by_key(|records: &Arc<AcquiredRecords>| records.is_single());
        records.iter().filter(|records| !records.is_empty()).for_each(|records| self.upkeep.watch(records));
        if !records.is_empty() {
            self.shared.push(records);
        }
        Ok(())
    }

    /// Ends the locks on earlier deliveries of records that were acquired again. Their delivery count may be the same: a
    /// leader that is elected again counts the lost delivery no longer.
    fn supersede(&mut self, newer: &[Arc<AcquiredRecords>]) {
        if let Some(id) = self.session.id() {
            self.pending.extend(self.shared.take_submissions(id));
        }
        self.upkeep.supersede(newer, &self.pending);
        self.fail_superseded();
    }

    /// Acknowledgements of an earlier delivery fail: the broker would take them for the later one.
    pub(super) fn fail_superseded(&mut self) {
        for mut submission in std::mem::take(&mut self.pending) {
            let removed = submission.records.split_superseded(&mut submission.ranges);
            if submission.ranges.is_empty() {
                self.shared.settle(Submission { ranges: removed, ..submission }, Err(lock_lost()), None);
                continue;
            }
            if !removed.is_empty() {
                self.shared.settle_part(&submission, removed, lock_lost());
            }
            self.pending.push(submission);
        }
    }

    /// Decodes the records of a partition. Returns them with what the client acknowledges by itself.
    fn handle_records(
        &self,
        id: PartitionId,
        partition: &PartitionView<'_>,
        buffer: &Arc<FetchBuffer>,
        locked: (Instant, Duration),
    ) -> Result<Option<Acquired>, String> {
        let (Some(slot), Some(session)) = (self.partitions.get(&id), self.session.id()) else {
            return Ok(None);
        };
        if partition.acquired_records.is_empty() {
            return Ok(None);
        }
        let settings = &self.shared.settings;
        let mut options = DecodeOptions {
            check_crcs: settings.check_crcs,
            suspect: None,
            read_committed: false,
            max_batch_bytes: settings.max_batch_bytes,
            // Records that are not decoded now can't be fetched again.
            decompressed_room: usize::MAX,
            is_limited: false,
            decompressed: 0,
            has_batches: false,
            buffers: self.buffers.clone(),
        };
        let decoded = decode_share(&slot.handle, self.node, buffer, partition, &mut options)?;
        let origin = Origin { session, stay: slot.stay, topic_id: id.0 };
        let fetched = Arc::new(decoded.fetched);
        let records = AcquiredRecords::new(fetched, origin, decoded.runs, decoded.damaged, locked);
        let parts = records.split_singles(settings.delivery_count_limit - 1);
        Ok(Some((parts.into_iter().map(Arc::new).collect(), decoded.unusable)))
    }

    fn handle_acknowledged(
        &mut self,
        now: Instant,
        response: ShareAcknowledgeResponse,
        submissions: Vec<Submission>,
        peer: &str,
    ) {
        let lock = now + lock_of(response.acquisition_lock_timeout_ms);
        if response.error_code.is_error() {
            let refusal = (response.error_code, response.error_message);
            return self.handle_refused(now, refusal, submissions, "ShareAcknowledge", peer);
        }
        let endpoints: Endpoints = response
            .node_endpoints
            .into_iter()
            .map(|node| (node.node_id, node.host, node.port, node.rack))
            .collect();
        let mut outcomes = Outcomes::new();
        for topic in response.responses {
            for partition in topic.partitions {
                let id = (topic.topic_id, partition.partition_index);
                let leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
                if partition.error_code.invalidates_metadata() {
                    let refusal = (partition.error_code, None);
                    self.handle_partition_error(now, id, refusal, leader, &endpoints, peer);
                }
                outcomes.insert(id, (partition.error_code, partition.error_message));
            }
        }
        self.backoff.reset();
        self.settle_all(submissions, &outcomes, lock, peer);
    }

    /// Delivers the outcomes of a request. A partition that the response leaves out was not acknowledged.
    fn settle_all(&self, submissions: Vec<Submission>, outcomes: &Outcomes, lock: Instant, peer: &str) {
        for submission in submissions {
            let (code, message) = match outcomes.get(&partition_id(&submission)) {
                Some((code, message)) => (*code, message.as_deref()),
                None => (ErrorCode::INVALID_RECORD_STATE, Some("the response lacks the partition")),
            };
            let key = submission.records.partition();
            let result = if code.is_error() {
                let error = Error::broker(code, message).with_partition(&*key.topic, key.partition);
                Err(error.with_api("ShareAcknowledge").with_peer(peer))
            } else {
                Ok(())
            };
            self.shared.settle(submission, result, Some(lock));
        }
    }

    /// Handles the refusal of a whole request, with which the session ends.
    fn handle_refused(
        &mut self,
        now: Instant,
        (code, message): (ErrorCode, Option<String>),
        submissions: Vec<Submission>,
        api: &'static str,
        peer: &str,
    ) {
        let error = Error::broker(code, message.as_deref()).with_api(api).with_peer(peer);
        submissions.into_iter().for_each(|submission| {
            self.shared.settle(submission, Err(error.clone()), None);
        });
        self.end_session(&error);
        let is_session =
            matches!(code, ErrorCode::SHARE_SESSION_NOT_FOUND | ErrorCode::INVALID_SHARE_SESSION_EPOCH);
        // A lost session is opened again at once; one that is lost again and again, and any other error, waits.
        if !is_session || self.backoff.failures() > 0 {
            self.back_off(now);
        } else {
            let _ = self.backoff.next(&mut self.rng);
        }
        if code == ErrorCode::UNSUPPORTED_VERSION {
            self.shared.fail(super::fetcher::unsupported().with_api(api).with_peer(peer));
        } else if !is_session && !heals(code) {
            self.report_refusal(now, error);
        }
    }

    fn handle_partition_error(
        &mut self,
        now: Instant,
        id: PartitionId,
        (code, message): (ErrorCode, Option<String>),
        leader: (i32, i32),
        endpoints: &Endpoints,
        peer: &str,
    ) {
        let wait = self.rng.jitter(self.shared.settings.fetch_error_backoff, 20);
        let Some(slot) = self.partitions.get_mut(&id) else { return };
        if slot.state != SlotState::Unassigned {
            slot.state = SlotState::RefusedUntil(now + wait);
        }
        let key = slot.handle.key().clone();
        if code.invalidates_metadata() || code == ErrorCode::UNKNOWN_LEADER_EPOCH {
            self.begin_stay(id);
            if code == ErrorCode::UNKNOWN_TOPIC_ID {
                self.outputs.push_back(BrokerNews::UnknownTopicId(Arc::clone(&key.topic), id.0).into());
            }
            self.outputs.push_back(BrokerNews::StaleMetadata(Arc::clone(&key.topic)).into());
            if NodeId::from_wire(leader.0).is_some() {
                let nodes = endpoints.iter();
                let nodes = nodes.map(|(id, host, port, rack)| (*id, &**host, *port, rack.as_deref()));
                let hint = LeaderHint::new(&key.topic, key.partition, leader, nodes);
                self.outputs.extend(hint.map(|hint| BrokerNews::LeaderHint(hint).into()));
            }
        } else if !heals(code) {
            let error = Error::broker(code, message.as_deref()).with_api("ShareFetch").with_peer(peer);
            self.report_refusal(now, error.with_partition(&*key.topic, key.partition));
        }
    }
}

/// Returns true if fetching again helps, or joining the group again, which the heartbeats do: the application need not know.
fn heals(code: ErrorCode) -> bool {
    let is_membership = matches!(code, ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH);
    code.is_retriable() || code == ErrorCode::UNKNOWN_SERVER_ERROR || is_membership
}

/// Returns how long locks last that were acquired or renewed now.
fn lock_of(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}
