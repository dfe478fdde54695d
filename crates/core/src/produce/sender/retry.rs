//! Retrying: batches that were rejected, lost or recalled return to their partitions and wait for the backoff.

use std::time::Duration;

use ottla_protocol::error_code::ErrorCode;

use super::Sender;
use crate::{
    connection::{Connection, inflight::InFlight},
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        ack::{Written, counts_as_retry},
        batch::ReadyBatch,
        message::ProduceReport,
        request::{ProduceBatch, ProduceFrame},
    },
};

/// The time of a rejection, and of the next attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) came: Instant,
    pub(super) failures: u32,
    pub(super) retry_at: Instant,
}

impl Sender {
    /// Takes back the written batches without a response, to send them to the partition's new leader: the response may
    /// take long, because it waits for the slowest partition of its request and of those before it. Sequence numbers
    /// make that safe. If the old leader has written a batch after all, the new one knows it.
    pub(super) fn recall(&mut self, slot: usize, connection: &mut Connection) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
        if !self.shared.settings.idempotence {
            return;
        }
        let max_retries = self.shared.settings.max_retries;
        for request in connection.in_flight_mut().written_mut() {
            let Some(frame) = request.payload.frame_mut::<ProduceFrame>() else { continue };
            let is_ours = |batch: &ProduceBatch| {
                batch.slot == slot && !batch.reported && batch.batch.retries < max_retries
            };
            let Some(at) = frame.batches.iter().position(is_ours) else { continue };
            let mut batch = frame.batches.remove(at).batch;
            batch.written = Written::Possibly;
            batch.attempts += 1;
            batch.retries += 1;
            entry.partition.note_landed(&batch);
            self.counters.retries += 1;
            entry.partition.put_back(batch);
            self.shared.transactions.iter().for_each(|transactions| transactions.note_doubt());
        }
    }

    /// Handles a request that was lost with its connection; `sent` if any of its bytes may have been sent.
    pub fn handle_lost(&mut self, now: Instant, mut request: InFlight, sent: bool, error: &Error) {
        self.requests_in_flight -= 1;
        self.collector.pace().disconnected();
        let Some(frame) = request.payload.frame_mut::<ProduceFrame>() else { return };
        for batch in std::mem::take(&mut frame.batches) {
            self.handle_lost_batch(now, batch, sent, error);
        }
    }

    pub(super) fn handle_lost_batch(
        &mut self,
        now: Instant,
        mut batch: ProduceBatch,
        sent: bool,
        error: &Error,
    ) {
        if sent {
            batch.batch.written = Written::Possibly;
            self.note_doubt();
            self.retry(now, batch, error);
        } else if let Some(batch) = self.over_unless_reported(batch) {
            // The batch was never sent, so this does not count as an attempt.
            self.put_back(batch);
        }
    }

    /// Puts back a batch that a broker refused with this code.
    pub(super) fn retry_after(&mut self, now: Instant, batch: ProduceBatch, code: ErrorCode, error: &Error) {
        if counts_as_retry(code) {
            self.retry(now, batch, error);
        } else {
            self.retry_uncounted(now, batch, error);
        }
    }

    /// Puts a batch back for another attempt after the back-off; the batch fails if it has used up its retries.
    pub(super) fn retry(&mut self, now: Instant, mut batch: ProduceBatch, error: &Error) {
        batch.batch.retries = batch.batch.retries.saturating_add(1);
        if batch.batch.retries > self.shared.settings.max_retries {
            self.counters.retries += 1;
            return self.fail(batch, error.clone());
        }
        self.retry_uncounted(now, batch, error);
    }

    /// Puts a batch back for another attempt after the back-off, which does not count against `retries`.
    fn retry_uncounted(&mut self, now: Instant, mut batch: ProduceBatch, error: &Error) {
        batch.batch.attempts = batch.batch.attempts.saturating_add(1);
        self.counters.retries += 1;
        let slot = batch.slot;
        let Some(batch) = self.over_unless_reported(batch) else { return };
        if let Some(entry) = self.slots.get_mut(slot) {
            entry.partition.note_refusal(error);
        }
        if let Some(entry) = self.slots.get_mut(slot)
            && entry.partition.retry_at.is_none()
        {
            let failures = entry.backoff.failures();
            let own = entry.backoff.next(&mut self.rng);
            let own = now + own.min(longest_backoff(error, failures));
            let at = match self.last_refusal {
                Some(last) if (last.came, last.failures) == (now, failures) => last.retry_at,
                _ => own,
            };
            self.last_refusal = Some(Refusal { came: now, failures, retry_at: at });
            entry.partition.retry_at = Some(at);
            self.retries.insert((at, slot));
            self.collector.remove(slot);
        }
        self.put_back(batch);
    }

    /// Handles a broker that expects another sequence number. If an older batch of the partition is still in flight, it
    /// is the cause, and this batch is retried after it. Otherwise the partition starts with a new epoch, without the
    /// batches that may have been written.
    pub(super) fn resequence(&mut self, now: Instant, batch: ProduceBatch, error: &Error) {
        let Some(entry) = self.slots.get_mut(batch.slot) else { return };
        let order = batch.batch.order;
        let behind = entry.partition.oldest_retry().is_some_and(|oldest| oldest < order)
            || entry.partition.has_several_in_flight();
        if !behind {
            entry.partition.note_gap(order);
            // Within a transaction the epoch does not change, so that the batch can't get another number.
            if batch.batch.written > Written::No || self.shared.transactions.is_some() {
                return self.fail(batch, error.clone());
            }
        }
        self.retry(now, batch, error);
    }

    /// Splits a batch that is too large for the broker. With idempotence, a batch that may have been written is not
    /// split: under other sequence numbers its records would be written twice. A transaction has no other numbers.
    pub(super) fn split(&mut self, batch: ProduceBatch, error: &Error) {
        let is_numbered = batch.batch.written > Written::No || self.shared.transactions.is_some();
        if self.shared.settings.idempotence && is_numbered {
            return self.fail(batch, error.clone());
        }
        let slot = batch.slot;
        let Some(batch) = self.over_unless_reported(batch) else { return };
        let Some(entry) = self.slots.get_mut(slot) else { return };
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

    /// Handles a broker that stores message sets, which have no headers. The batch is halved until records with headers
    /// are alone, and those are reported as failed.
    pub(super) fn refuse_headers(&mut self, slot: usize, batch: ReadyBatch, peer: &str) {
        let Some(entry) = self.slots.get_mut(slot) else { return };
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

    pub(super) fn put_back(&mut self, batch: ProduceBatch) {
        let Some(batch) = self.unless_aborted(batch) else { return };
        let slot = batch.slot;
        if let Some(entry) = self.slots.get_mut(slot) {
            entry.partition.put_back(batch.batch);
            if entry.topic.end_idle() {
                self.outputs.push_back(ProduceReport::EndIdle.into());
            }
        }
        self.collect(slot);
        self.let_go(slot);
    }
}

/// Returns the longest wait before the next repetition. With CONCURRENT_TRANSACTIONS the markers of the previous transaction
/// are still being written, which takes a few milliseconds.
fn longest_backoff(error: &Error, failures: u32) -> Duration {
    match error.kind() {
        ErrorKind::Broker(ErrorCode::CONCURRENT_TRANSACTIONS) => Duration::from_millis(2 << failures.min(20)),
        _ => Duration::MAX,
    }
}
