//! Transactions: a partition's batches wait until the transaction admits them, and failures end it.

use std::ops::RangeInclusive;

use super::Sender;
use crate::{
    error::{Error, ErrorKind},
    produce::{
        message::ProduceReport,
        partition::Waiting,
        producer_id::ProducerIdentity,
        request::ProduceBatch,
        transaction::error::{TransactionError, fenced, is_fenced},
    },
};

/// The error of a batch that is purged by an abort.
fn aborted() -> Error {
    Error::new(ErrorKind::PurgedFromQueue, "the transaction is aborted")
}

/// The versions of Produce in transactions whose partitions are registered before.
const REGISTERED: RangeInclusive<i16> = 3..=11;
/// The versions of Produce that register their partitions (KIP-890).
const REGISTERING: RangeInclusive<i16> = 12..=13;

impl Sender {
    /// Returns true if the producer is transactional.
    pub fn is_transactional(&self) -> bool {
        self.shared.transactions.is_some()
    }

    /// Returns the versions of Produce that the producer may use.
    pub(super) fn versions(&self) -> RangeInclusive<i16> {
        match &self.shared.transactions {
            Some(transactions) if transactions.is_implicit() => REGISTERING,
            Some(_) => REGISTERED,
            // Versions before 3 carry message sets, which have no fields for a producer ID.
            None if self.shared.settings.idempotence => 3..=13,
            None => 0..=13,
        }
    }

    /// Returns whether a partition's batches may be sent. If not, the partition stays out of the collector until the
    /// transaction may admit it.
    pub(super) fn is_admitted(&mut self, slot: usize, identity: Option<ProducerIdentity>) -> bool {
        let Some(transactions) = &self.shared.transactions else { return true };
        let Some(entry) = self.slots.get_mut(slot) else { return false };
        if identity.is_none() {
            self.wait_for_identity(slot, None);
            return false;
        }
        let mut last = entry.partition.transaction;
        let admitted = transactions.admits(&mut last, || entry.partition.topic_partition());
        entry.partition.transaction = last;
        if !admitted && transactions.is_aborting() {
            // A batch that came back after the queue was purged.
            self.note_doubt();
            self.fail_waiting(slot, Waiting::All, &aborted());
        } else if !admitted {
            self.not_admitted.insert(slot);
        }
        admitted
    }

    /// Reports a batch that would be sent again as purged if its transaction is aborted. Returns it otherwise.
    pub(super) fn unless_aborted(&mut self, batch: ProduceBatch) -> Option<ProduceBatch> {
        if !self.shared.transactions.as_ref().is_some_and(|transactions| transactions.is_aborting()) {
            return Some(batch);
        }
        self.note_doubt();
        if let Some(entry) = self.slots.get_mut(batch.slot) {
            entry.partition.note_gap(batch.batch.order);
        }
        let (slot, status) = (batch.slot, batch.batch.failure_status());
        self.report_batch(batch, Err(aborted()), status);
        self.let_go(slot);
        None
    }

    /// Collects the partitions that the transaction may admit now.
    pub(super) fn check_permissions(&mut self) {
        let Some(transactions) = &self.shared.transactions else { return };
        let version = transactions.version();
        if version != self.permissions_seen {
            self.permissions_seen = version;
            for slot in std::mem::take(&mut self.not_admitted) {
                self.collect(slot);
            }
        }
    }

    /// Notifies the cluster actor of what was noted in the shared state.
    pub(super) fn report_transaction(&mut self) {
        if self.shared.transactions.as_ref().is_some_and(|transactions| transactions.take_news()) {
            self.outputs.push_back(ProduceReport::Transaction.into());
        }
    }

    /// The outcome of a batch is unknown: the next transaction needs another epoch.
    pub(super) fn note_doubt(&self) {
        self.shared.transactions.iter().for_each(|transactions| transactions.note_doubt());
    }

    /// A batch failed: the transaction can't be committed. Its sequence number is missing, so the next transaction needs
    /// another epoch.
    pub(super) fn note_failed_batch(&self, error: &Error) {
        let Some(transactions) = &self.shared.transactions else { return };
        transactions.note_doubt();
        transactions.note_failure(match error.kind() {
            ErrorKind::Broker(code) if is_fenced(code) => TransactionError::Fatal(fenced(error.clone())),
            _ => TransactionError::Abort(error.clone()),
        });
    }
}
