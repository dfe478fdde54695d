//! Acknowledging: evaluates the response to a ProduceRequest for each of its batches.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ottla_protocol::{
    error_code::ErrorCode,
    generated::produce::{
        ProduceResponseView,
        response::{PartitionResponseView, ResponseView},
    },
    uuid::Uuid,
};

use super::Sender;
use crate::{
    connection::{Response, inflight::InFlight, throttle::FIRST_PRODUCE},
    contract::{broker::BrokerNews, half::HalfOutput, metadata::LeaderHint},
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        ack::{Verdict, Written, is_congested, judge, written_after},
        adaptive::Outcome,
        report::{Delivered, PersistenceStatus},
        request::{ProduceBatch, ProduceFrame, decode_response},
    },
};

impl Sender {
    /// Handles a response to one of this sender's requests.
    pub fn handle_response(&mut self, now: Instant, response: Response, peer: &str) {
        let in_flight = self.requests_in_flight;
        self.requests_in_flight -= 1;
        let (version, queued_at) = (response.request.version, response.request.queued_at);
        let bytes = response.request.payload.len();
        let mut response = response;
        let Some(frame) = response.request.payload.frame_mut::<ProduceFrame>() else { return };
        let batches = std::mem::take(&mut frame.batches);
        let asked = frame.partitions;
        let response = decode_response(response.body(), version);
        match response {
            Ok(response) => {
                let outcome = if is_congested(&response) { Outcome::Congested } else { Outcome::Good };
                self.collector.pace().record_response(now, in_flight, now - queued_at, bytes, outcome);
                self.handle_decoded(now, &response, version, asked, batches, peer);
            }
            Err(error) => {
                let error = Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Produce");
                for batch in batches {
                    self.handle_unknown_outcome(now, batch, &error);
                }
                self.outputs.push_back(HalfOutput::Misbehaved(error));
            }
        }
    }

    /// Handles a written request that expects no response.
    pub fn handle_written(&mut self, mut request: InFlight) {
        self.requests_in_flight -= 1;
        let Some(frame) = request.payload.frame_mut::<ProduceFrame>() else { return };
        let delivered = Delivered { base_offset: None, log_append_time: None };
        for batch in std::mem::take(&mut frame.batches) {
            self.finish_written(batch, delivered, PersistenceStatus::PossiblyPersisted);
        }
        self.report_written();
    }

    pub(in crate::produce) fn handle_decoded(
        &mut self,
        now: Instant,
        response: &ProduceResponseView<'_>,
        version: i16,
        asked: usize,
        batches: Vec<ProduceBatch>,
        peer: &str,
    ) {
        self.report_throttle(response, version);
        let results: Vec<(&ResponseView<'_>, &PartitionResponseView<'_>)> = response
            .responses
            .iter()
            .flat_map(|topic| topic.partition_responses.iter().map(move |partition| (topic, partition)))
            .collect();
        let returned = results.len();
        // No search is needed if the broker responds in the order of the request, as the embedded one does.
        let mut in_order = results.iter().copied().peekable();
        let mut by_partition: Option<HashMap<_, _>> = None;
        let mut without_response = Vec::new();
        for batch in batches {
            let Some(entry) = self.slots.get(batch.slot) else { continue };
            let (name, index) = (entry.partition.topic(), entry.partition.partition());
            let is_ours = |(topic, partition): &(&ResponseView<'_>, &PartitionResponseView<'_>)| {
                partition.index == index
                    && if version >= 13 { topic.topic_id == batch.topic_id } else { *topic.name == **name }
            };
            let found = in_order.next_if(|result| is_ours(result)).or_else(|| {
                let by_partition = by_partition.get_or_insert_with(|| {
                    // The first of two results for a partition is used.
                    let entries =
                        results.iter().rev().map(|result| (partition_key(result, version), *result));
                    entries.collect()
                });
                let (name, id) = if version >= 13 { ("", batch.topic_id) } else { (&**name, Uuid::ZERO) };
                by_partition.get(&(name, id, index)).copied()
            });
            match found {
                Some((_, partition)) => {
                    let hint = new_leader(response, partition, name);
                    self.outputs.extend(hint.map(|hint| BrokerNews::LeaderHint(hint).into()));
                    self.handle_result(now, batch, partition, peer);
                }
                None => without_response.push(batch),
            }
        }
        self.report_written();
        let surplus = returned.saturating_sub(asked);
        if surplus > 0 {
            let detail =
                format!("it responds for {surplus} partitions that were not in the request, or twice");
            let error = Error::new(ErrorKind::BadResponse, detail).with_peer(peer).with_api("Produce");
            self.outputs.push_back(HalfOutput::Misbehaved(error));
        }
        if !without_response.is_empty() {
            let detail =
                format!("{} partitions of the request are not in the response", without_response.len());
            let error = Error::new(ErrorKind::BadResponse, detail).with_api("Produce");
            for batch in without_response {
                self.handle_unknown_outcome(now, batch, &error);
            }
            self.outputs.push_back(HalfOutput::Misbehaved(error));
        }
    }

    /// Handles a batch that the broker has processed, with an outcome that its response does not contain. Sequence numbers make
    /// a repetition safe. Without them it would write the records again each time, and the next response may be no better.
    fn handle_unknown_outcome(&mut self, now: Instant, mut batch: ProduceBatch, error: &Error) {
        if self.shared.settings.idempotence {
            return self.handle_lost_batch(now, batch, true, error);
        }
        batch.batch.written = Written::Possibly;
        self.fail(batch, error.clone());
    }

    /// Reports the throttle time of the broker (KIP-219), and once that throttling has ended.
    fn report_throttle(&mut self, response: &ProduceResponseView<'_>, version: i16) {
        let throttle_millis = u32::try_from(response.throttle_time_ms).unwrap_or(0);
        if throttle_millis > 0 || self.was_throttled {
            self.was_throttled = throttle_millis > 0;
            self.outputs.push_back(BrokerNews::Throttled(throttle_millis).into());
        }
        if version >= FIRST_PRODUCE && throttle_millis > 0 {
            self.outputs.push_back(HalfOutput::Throttle(Duration::from_millis(throttle_millis.into())));
        }
    }

    pub(super) fn handle_result(
        &mut self,
        now: Instant,
        mut batch: ProduceBatch,
        result: &PartitionResponseView<'_>,
        peer: &str,
    ) {
        let (code, message) = (result.error_code, result.error_message);
        let mut verdict = judge(code, batch.batch.sealed.record_count());
        let delivered = Delivered {
            base_offset: (result.base_offset >= 0).then_some(result.base_offset),
            log_append_time: (result.log_append_time_ms >= 0).then_some(result.log_append_time_ms),
        };
        // A batch without sequence numbers can't be a duplicate, and other numbers would not help.
        if !self.shared.settings.idempotence && matches!(verdict, Verdict::Duplicate | Verdict::Resequence) {
            verdict = Verdict::Fail;
        }
        // The epoch has ended: the coordinator ended the transaction, or another producer took over.
        if self.shared.transactions.is_some() && code == ErrorCode::INVALID_PRODUCER_EPOCH {
            verdict = Verdict::Fail;
        }
        if verdict == Verdict::Duplicate && batch.batch.attempts == 0 && batch.batch.written == Written::No {
            return self.refuse_duplicate(batch, code, peer);
        }
        if matches!(verdict, Verdict::Delivered | Verdict::Duplicate) {
            self.note_written(&batch, verdict, delivered, peer);
            return self.finish_written(batch, delivered, PersistenceStatus::Persisted);
        }
        if verdict == Verdict::Resequence {
            return self.resequence(
                now,
                batch,
                &Error::broker(code, message).with_peer(peer).with_api("Produce"),
            );
        }
        batch.batch.written = batch.batch.written.max(written_after(code));
        let error = Error::broker(code, message).with_peer(peer).with_api("Produce");
        match verdict {
            Verdict::RetryElsewhere => {
                if let Some(entry) = self.slots.get(batch.slot) {
                    let topic = Arc::clone(entry.partition.topic());
                    if code == ErrorCode::UNKNOWN_TOPIC_ID {
                        self.outputs
                            .push_back(BrokerNews::UnknownTopicId(Arc::clone(&topic), batch.topic_id).into());
                    }
                    self.outputs.push_back(BrokerNews::StaleMetadata(topic).into());
                }
                self.retry_after(now, batch, code, &error);
            }
            Verdict::Retry => self.retry_after(now, batch, code, &error),
            Verdict::Split => self.split(batch, &error),
            Verdict::Delivered | Verdict::Duplicate | Verdict::Resequence | Verdict::Fail => {
                self.fail_records(batch, error, &result.record_errors);
            }
        }
    }

    /// Handles a batch that the broker has written. Warns if its offset is below the end of the previous records, unless the
    /// batch may have been written before: then the broker repeats the offset of that time.
    fn note_written(&mut self, batch: &ProduceBatch, verdict: Verdict, delivered: Delivered, peer: &str) {
        if let Some(entry) = self.slots.get_mut(batch.slot) {
            entry.backoff.reset();
            entry.partition.confirm(&batch.batch);
            let records = batch.batch.sealed.record_count();
            if verdict == Verdict::Delivered
                && let Some(base) = delivered.base_offset
                && let Some(end) = entry.partition.note_offset(base, records)
                && batch.batch.written == Written::No
            {
                let detail = format!(
                    "it wrote at offset {base} where {end} or more was expected: the log was cut off, or the broker \
                     is wrong"
                );
                let error = Error::new(ErrorKind::BadResponse, detail)
                    .with_peer(peer)
                    .with_api("Produce")
                    .with_partition(&**entry.partition.topic(), entry.partition.partition());
                self.outputs.push_back(BrokerNews::Warning(error).into());
            }
        }
    }

    /// Fails a batch that the broker reports as a duplicate although it was never sent before: the broker has another
    /// batch under these numbers.
    pub(super) fn refuse_duplicate(&mut self, mut batch: ProduceBatch, code: ErrorCode, peer: &str) {
        let detail =
            format!("it calls a batch a duplicate ({}) that was sent for the first time", code.name());
        let mut error = Error::new(ErrorKind::BadResponse, detail).with_peer(peer).with_api("Produce");
        if let Some(entry) = self.slots.get(batch.slot) {
            error = error.with_partition(&**entry.partition.topic(), entry.partition.partition());
        }
        self.outputs.push_back(BrokerNews::Warning(error.clone()).into());
        batch.batch.written = Written::Possibly;
        self.fail(batch, error);
    }
}

/// Returns the key of a partition in a response: names up to version 12, topic IDs from 13 on.
fn partition_key<'a>(
    (topic, partition): &(&ResponseView<'a>, &PartitionResponseView<'_>),
    version: i16,
) -> (&'a str, Uuid, i32) {
    let (name, id) = if version >= 13 { ("", topic.topic_id) } else { (topic.name, Uuid::ZERO) };
    (name, id, partition.index)
}

/// Returns the new leader that the response to a batch names, if the broker refused it for not being the leader (KIP-951).
fn new_leader(
    response: &ProduceResponseView<'_>,
    partition: &PartitionResponseView<'_>,
    topic: &Arc<str>,
) -> Option<LeaderHint> {
    let code = partition.error_code;
    if code != ErrorCode::NOT_LEADER_OR_FOLLOWER && code != ErrorCode::FENCED_LEADER_EPOCH {
        return None;
    }
    let leader = &partition.current_leader;
    let endpoints = response.node_endpoints.iter();
    let endpoints = endpoints.map(|node| (node.node_id, node.host, node.port, node.rack));
    LeaderHint::new(topic, partition.index, (leader.leader_id, leader.leader_epoch), endpoints)
}
