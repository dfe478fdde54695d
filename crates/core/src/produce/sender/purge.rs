//! Purging and closing: reports records as failed before a broker responds, or without sending them.

use super::Sender;
use crate::{
    connection::{Connection, inflight::RequestTag},
    contract::purge::Purge,
    error::{Error, ErrorKind},
    produce::{
        batch::ReadyBatch, partition::Waiting, report::PersistenceStatus, request::ProduceFrame,
        topic::ProducerTopic,
    },
};

impl Sender {
    /// Purges messages from the queue, from flight, or both; each is reported.
    pub fn purge(&mut self, purge: Purge, connection: &mut Connection) {
        if purge.queue {
            self.fail_all_waiting(Waiting::All, ErrorKind::PurgedFromQueue);
            self.slots.iter_mut().for_each(|slot| slot.partition.purges += 1);
        }
        if purge.in_flight {
            self.report_in_flight(connection, ErrorKind::PurgedInFlight, |_, _| true);
        }
    }

    /// Fails all remaining messages with `kind`, because the client closes.
    pub fn close(&mut self, connection: &mut Connection, kind: ErrorKind) {
        self.report_in_flight(connection, kind, |_, _| true);
        self.fail_all_waiting(Waiting::All, kind);
    }

    /// Fails all remaining messages, partition by partition, after a panic that may have damaged this sender, too.
    pub fn abandon(&mut self, connection: &mut Connection, error: &Error) {
        self.report_written();
        self.report_in_flight(connection, ErrorKind::Bug, |_, _| true);
        for partition in &mut self.take_partitions() {
            partition.fail_waiting(&self.shared, Waiting::AllForGood, |_| error.clone());
        }
    }

    pub(super) fn fail_all_waiting(&mut self, which: Waiting, kind: ErrorKind) {
        // A later notification would refer to records that are gone, and the next ones would be sent early.
        self.take_notifications();
        let error = Error::new(kind, "");
        for slot in 0..self.slots.len() {
            self.fail_waiting(slot, which, &error);
        }
    }

    /// Reports batches in flight without waiting for their response. Their bytes stay with the request until it is
    /// complete.
    pub(super) fn report_in_flight(
        &mut self,
        connection: &mut Connection,
        kind: ErrorKind,
        which: impl Fn(&ProducerTopic, &ReadyBatch) -> bool,
    ) {
        let peer = connection.name();
        for request in connection.in_flight_mut().iter_mut() {
            if request.tag != RequestTag::Produce {
                continue;
            }
            let Some(frame) = request.payload.frame_mut::<ProduceFrame>() else { continue };
            for batch in &mut frame.batches {
                let Some(entry) = self.slots.get_mut(batch.slot) else { continue };
                if batch.reported || !which(&entry.topic, &batch.batch) {
                    continue;
                }
                batch.reported = true;
                self.shared.transactions.iter().for_each(|transactions| transactions.note_doubt());
                let (topic, partition) = (entry.partition.topic(), entry.partition.partition());
                let refusal =
                    entry.partition.refusal().map(|error| format!("; before, {}", error.as_cause()));
                let detail = format!("{peer} did not respond yet{}", refusal.unwrap_or_default());
                let error = Error::new(kind, detail).with_partition(&**topic, partition);
                let status = PersistenceStatus::PossiblyPersisted;
                let report = batch.batch.report_early(topic, partition, Err(error), status);
                self.shared.report(report.sent_to(self.broker_id));
            }
        }
    }
}
