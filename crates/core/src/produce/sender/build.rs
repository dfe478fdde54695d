//! Building requests: the batches of the partitions that are due become one ProduceRequest.

use ottla_protocol::{api::ApiKey, compress::Compression, vocabulary::TopicPartition};

use super::{Sender, Slot};
use crate::{
    connection::{Connection, inflight::SegmentedFrame},
    contract::half::HalfOutput,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        acks::Acks,
        message::ProduceReport,
        partition::{Compress, Next, Waiting},
        pending_reports::PendingReports,
        producer_id::ProducerIdentity,
        request::{BatchTarget, ProduceBatch, ProduceFrame, RequestHead},
        topic_settings::RequestTerms,
    },
    stats::SendReason,
};

/// The largest number of batches for which room is reserved.
const MOST_EXPECTED: usize = 4096;

/// The batches of a partition that cannot be encoded: topic, partition, pending reports with their error.
type FailedPart = (TopicPartition, Box<(PendingReports, Error)>);

/// A request while batches are added to it.
struct Draft {
    version: i16,
    max_bytes: usize,
    identity: Option<ProducerIdentity>,
    batches: Vec<ProduceBatch>,
    bytes: usize,
    /// The slots of `batches`. A partition is in a request once: of two batches a broker takes only the last one, and
    /// responds to one. Further batches leave with the next request, so their slots return to the collector afterwards.
    taken: Vec<usize>,
    /// The partitions whose batches could not be sealed, with their pending reports.
    failed: Vec<FailedPart>,
    /// The terms of all batches of the request, once there is one.
    terms: Option<RequestTerms>,
}

impl Sender {
    /// Builds and queues one request; returns false if there was nothing to put into it.
    pub(super) fn send_one(&mut self, now: Instant, connection: &mut Connection, reason: SendReason) -> bool {
        let Some(mut version) = self.pick_version(connection) else { return false };
        let mut draft = self.start_draft(version);
        self.open_round();
        while let Some((slot, open_too)) = self.collector.peek_due() {
            if draft.bytes >= draft.max_bytes
                || !self.add_to_draft(now, connection, &mut draft, slot, open_too)
            {
                break;
            }
        }
        let Draft { batches, taken, failed, terms, .. } = draft;
        taken.into_iter().for_each(|slot| self.collect(slot));
        self.collector.take_back(reason);
        for (partition, parts) in failed {
            let (rest, error) = *parts;
            self.shared.report_unsent(&partition.topic, partition.partition, rest, error);
        }
        let Some(terms) = terms else { return false };
        // Topic IDs need the ID of every topic; a broker that knows IDs reports them with the metadata.
        if version >= 13 && batches.iter().any(|batch| batch.topic_id.is_zero()) {
            version = 12;
        }
        self.count_request(reason, &batches);
        self.send_request(now, connection, version, terms, batches);
        true
    }

    /// Returns the version of Produce to use. Without a common version the due records fail, unless the broker's
    /// versions are assumed: then the connection is dropped, and the records wait for the next one.
    fn pick_version(&mut self, connection: &Connection) -> Option<i16> {
        let version = connection.versions().pick(ApiKey::Produce, self.versions());
        if version.is_some() {
            return version;
        }
        if connection.versions().is_guessed() {
            let detail = "the broker did not report its API versions";
            self.outputs.push_back(HalfOutput::Misbehaved(Error::new(ErrorKind::BadResponse, detail)));
            return None;
        }
        let error =
            Error::new(ErrorKind::UnsupportedVersion, "").with_api("Produce").with_peer(connection.name());
        self.note_failed_batch(&error);
        while let Some((slot, _)) = self.collector.peek_due() {
            self.fail_waiting(slot, Waiting::All, &error);
            self.collector.remove(slot);
        }
        None
    }

    fn start_draft(&self, version: i16) -> Draft {
        let settings = &self.shared.settings;
        let expected = self.collector.len().min(MOST_EXPECTED);
        Draft {
            version,
            max_bytes: settings.max_request_bytes,
            identity: self.shared.identity.get(),
            batches: Vec::with_capacity(expected),
            bytes: 0,
            taken: Vec::with_capacity(expected),
            failed: Vec::new(),
            terms: None,
        }
    }

    /// Takes the next batch of a partition that is due; returns false if the request is full.
    #[inline]
    fn add_to_draft(
        &mut self,
        now: Instant,
        connection: &Connection,
        draft: &mut Draft,
        slot: usize,
        open_too: bool,
    ) -> bool {
        let Some(entry) = self.slots.get_mut(slot) else {
            self.collector.remove(slot);
            return true;
        };
        let own = entry.topic.settings();
        if draft.terms.is_some_and(|terms| terms != own.terms()) {
            self.collector.set_aside(slot);
            return true;
        }
        let mut options = own.seal_options();
        self.collector.remove(slot);
        if self.shared.transactions.is_some() {
            options.is_transactional = true;
            if !self.is_admitted(slot, draft.identity) {
                return true;
            }
        }
        let version = draft.version;
        // A message set is compressed when it is encoded; version 7 introduced zstd.
        if version < 3 || version < 7 && options.compression == Compression::Zstd {
            options.compression = Compression::None;
        }
        let compress = self.compress_where(options.compression);
        let Some(entry) = self.slots.get_mut(slot) else { return true };
        let own = entry.topic.settings();
        if let Some(order) = &own.order {
            entry.partition.arrange(order, open_too, &own.batch, &self.shared.pool);
        }
        let idempotent = self.shared.settings.idempotence;
        let is_sealed = compress == Compress::Here || entry.partition.has_sealed();
        match entry.partition.next(open_too, &options, compress, idempotent, draft.identity) {
            Next::Nothing => {}
            Next::Job(job) => {
                self.start_job(slot, job);
                return true;
            }
            Next::Later => {
                self.wait_for_round(slot);
                return true;
            }
            Next::NeedsIdentity(used) => {
                self.wait_for_identity(slot, used);
                return true;
            }
            Next::Failed(parts) => {
                draft.failed.push((entry.partition.topic_partition(), parts));
            }
            Next::Batch(batch)
                if draft.bytes + batch.sealed.len() > draft.max_bytes && !draft.batches.is_empty() =>
            {
                entry.partition.put_back(batch);
                self.collect(slot);
                return false;
            }
            Next::Batch(mut batch) if version < 3 && batch.sealed.has_headers() => {
                self.ready.subtract_bytes(batch.uncount());
                self.refuse_headers(slot, batch, &connection.name());
            }
            Next::Batch(mut batch) => {
                draft.terms = Some(own.terms());
                draft.bytes += batch.sealed.len();
                self.ready.subtract_bytes(batch.uncount());
                entry.partition.note_sent(&batch);
                self.shared.transactions.iter().for_each(|transactions| transactions.note_batch());
                if batch.attempts == 0 {
                    self.counters.collector.count_wait(now.saturating_since(batch.since));
                }
                if !is_sealed {
                    self.round.note_compressed(batch.charged_bytes());
                }
                let topic_id = entry.partition.topic_id;
                draft.batches.push(ProduceBatch { slot, topic_id, batch, reported: false });
                draft.taken.push(slot);
                return true;
            }
        }
        self.collect(slot);
        true
    }

    /// Keeps a partition out of the collector until the producer's identity differs from `used`.
    pub(super) fn wait_for_identity(&mut self, slot: usize, used: Option<ProducerIdentity>) {
        if !self.without_identity.contains(&slot) {
            self.without_identity.push(slot);
        }
        if let Some(used) = used {
            if self.shared.transactions.is_some() {
                let detail = "a sequence number of the transaction is missing";
                return self.note_failed_batch(&Error::new(ErrorKind::Inconsistent, detail));
            }
            self.outputs.push_back(ProduceReport::RenewIdentity(used).into());
        }
    }

    pub(super) fn send_request(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        version: i16,
        terms: RequestTerms,
        mut batches: Vec<ProduceBatch>,
    ) {
        self.group_by_topic(&mut batches);
        let settings = &self.shared.settings;
        let targets: Vec<BatchTarget<'_>> = batches.iter().map(|batch| self.target_of(batch)).collect();
        let head = RequestHead {
            version,
            acks: terms.acks.to_wire(),
            timeout_ms: terms.acks_timeout.as_millis() as i32,
            transactional_id: self.shared.settings.transactional_id.as_deref(),
        };
        let expects_response = terms.acks != Acks::None;
        let built =
            connection.send_produce(now, version, expects_response, settings.response_timeout, |scratch| {
                ProduceFrame::build(scratch, head, &targets, batches)
                    .map(|frame| frame as Box<dyn SegmentedFrame>)
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

    pub(super) fn target_of(&self, batch: &ProduceBatch) -> BatchTarget<'_> {
        let Some(Slot { topic, partition, .. }) = self.slots.get(batch.slot) else {
            return BatchTarget { topic: "", partition: -1, compression: (Compression::None, None) };
        };
        let settings = topic.settings();
        let compression = (settings.compression, settings.compression_level);
        BatchTarget { topic: partition.topic(), partition: partition.partition(), compression }
    }

    /// Groups batches by topic, as a request requires; otherwise they keep their order, oldest first.
    pub(super) fn group_by_topic(&self, batches: &mut Vec<ProduceBatch>) {
        let topic_of = |batch: &ProduceBatch| self.slots.get(batch.slot).map(|entry| entry.partition.topic());
        let first = batches.first().and_then(topic_of);
        if batches.iter().all(|batch| topic_of(batch) == first) {
            return;
        }
        // Batches are large, so their indices are sorted instead.
        let mut order: Vec<usize> = (0..batches.len()).collect();
        order.sort_by_key(|index| topic_of(&batches[*index]));
        let mut old: Vec<Option<ProduceBatch>> = std::mem::take(batches).into_iter().map(Some).collect();
        batches.extend(order.into_iter().filter_map(|index| old[index].take()));
    }
}
