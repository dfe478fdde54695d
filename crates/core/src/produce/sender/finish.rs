//! Finishing: reports a batch in flight as delivered or failed.

use ottla_protocol::generated::produce::response::RecordErrorView;

use super::Sender;
use crate::{
    error::{Error, ErrorKind},
    produce::message::ProduceReport,
    produce::{
        report::{Delivered, InvalidRecords, PersistenceStatus},
        request::ProduceBatch,
    },
};

impl Sender {
    /// Fails a batch in flight, whose sequence number will be missing.
    pub(super) fn fail(&mut self, batch: ProduceBatch, error: Error) {
        self.fail_records(batch, error, &[]);
    }

    /// Like [`Self::fail`], for a batch whose rejected records the broker may have named. The others are not retried:
    /// the application decides that, as in other clients (KIP-467).
    pub(super) fn fail_records(
        &mut self,
        batch: ProduceBatch,
        error: Error,
        record_errors: &[RecordErrorView<'_>],
    ) {
        if let Some(entry) = self.slots.get_mut(batch.slot) {
            entry.partition.note_gap(batch.batch.order);
            let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
            let error = error.clone().with_partition(&**topic, partition);
            // The transaction of a batch that was reported before knows that, and may have ended.
            if !batch.reported {
                self.note_failed_batch(&error);
            }
        }
        if self.shared.settings.gapless
            && let Some(entry) = self.slots.get(batch.slot)
        {
            let detail = format!("the cause: {error}");
            let fatal = Error::new(ErrorKind::Gapless, detail)
                .with_partition(&**entry.partition.topic(), entry.partition.partition());
            // No record is accepted after the gap.
            self.shared.close(Some(fatal.clone()));
            self.outputs.push_back(ProduceReport::Fatal(fatal).into());
        }
        let status = batch.batch.failure_status();
        if record_errors.is_empty() {
            return self.finish(batch, Err(error), status);
        }
        let slot = batch.slot;
        let Some(batch) = self.over(batch) else { return };
        if let Some(entry) = self.slots.get(slot) {
            let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
            let error = error.with_partition(&**topic, partition);
            let len = batch.batch.sealed.record_count() as usize;
            let errors = record_errors.iter().map(|e| (e.batch_index, e.batch_index_error_message));
            let report = match InvalidRecords::new(&error, len, errors) {
                Some(invalid) => batch.batch.into_invalid_report(topic, partition, error, invalid, status),
                None => batch.batch.into_report(topic, partition, Err(error), status),
            };
            self.shared.report(report.sent_to(self.broker_id));
        }
        self.let_go(slot);
    }

    /// Removes a batch from flight that the broker has written. [`Self::report_written`] reports it.
    pub(super) fn finish_written(
        &mut self,
        batch: ProduceBatch,
        delivered: Delivered,
        status: PersistenceStatus,
    ) {
        let slot = batch.slot;
        if self.land(&batch) {
            self.written.push((batch.batch, delivered, status));
        }
        self.let_go(slot);
    }

    /// Reports the batches that the broker has written, in one step.
    pub(super) fn report_written(&mut self) {
        if self.written.is_empty() {
            return;
        }
        let broker_id = self.broker_id;
        // If a callback panics, the rest of the batches is dropped, which keeps their pending reports.
        let reports = self.written.drain(..).filter_map(|(batch, delivered, status)| {
            Some(batch.into_written_report(delivered, status)?.sent_to(broker_id))
        });
        self.shared.report_all(reports);
    }

    /// Reports a batch in flight.
    pub(super) fn finish(
        &mut self,
        batch: ProduceBatch,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) {
        let slot = batch.slot;
        if let Some(batch) = self.over(batch) {
            self.report_batch(batch, outcome, status);
        }
        self.let_go(slot);
    }

    pub(super) fn report_batch(
        &self,
        batch: ProduceBatch,
        outcome: Result<Delivered, Error>,
        status: PersistenceStatus,
    ) {
        let Some(entry) = self.slots.get(batch.slot) else { return };
        let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
        let outcome = outcome.map_err(|error| error.with_partition(&**topic, partition));
        let report = batch.batch.into_report(topic, partition, outcome, status);
        self.shared.report(report.sent_to(self.broker_id));
    }

    /// Removes a batch from flight; `None` if it was reported before.
    pub(super) fn over(&mut self, batch: ProduceBatch) -> Option<ProduceBatch> {
        self.land(&batch).then_some(batch)
    }

    /// Counts a batch out of flight. Returns false if it was reported before.
    fn land(&mut self, batch: &ProduceBatch) -> bool {
        if let Some(entry) = self.slots.get_mut(batch.slot) {
            entry.partition.note_landed(&batch.batch);
            if !entry.partition.is_in_flight() {
                self.collect(batch.slot);
            }
        }
        if batch.reported {
            self.let_go(batch.slot);
        }
        !batch.reported
    }

    /// Removes a batch from flight that would be retried. One that was reported before is not retried, and leaves a
    /// gap.
    pub(super) fn over_unless_reported(&mut self, batch: ProduceBatch) -> Option<ProduceBatch> {
        if batch.reported
            && let Some(entry) = self.slots.get_mut(batch.slot)
        {
            entry.partition.note_gap(batch.batch.order);
            self.note_doubt();
        }
        self.over(batch)
    }

    /// Returns a leaving partition to the cluster actor once nothing of it is in flight.
    pub(super) fn let_go(&mut self, slot: usize) {
        if let Some(mut entry) = self.slots.remove_idle(slot) {
            if let Some(at) = entry.partition.retry_at {
                self.retries.remove(&(at, slot));
            }
            self.collector.remove(slot);
            entry.partition.leave();
            self.outputs.push_back(ProduceReport::Released(Box::new(entry.partition)).into());
        }
    }
}
