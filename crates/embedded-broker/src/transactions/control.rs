//! Controls for tests: transactions.

use std::time::Duration;

use super::{Participant, TransactionState};
use crate::control::Control;

/// A transactional ID as its coordinator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionDescription {
    /// Kafka's name of the state, for example `Ongoing`.
    pub state: &'static str,
    /// The producer ID.
    pub producer_id: i64,
    /// The producer epoch.
    pub epoch: i16,
    /// The partitions of the transaction.
    pub partitions: Vec<(String, i32)>,
    /// The groups with offsets in the transaction.
    pub groups: Vec<String>,
    /// The number of partitions and groups whose marker is missing.
    pub missing_markers: usize,
}

impl Control<'_> {
    /// Returns the state of a transactional ID, if a producer has used it.
    pub fn transaction(&self, id: &str) -> Option<TransactionDescription> {
        let transaction = self.cluster.transactions.ids.get(id)?;
        let mut description = TransactionDescription {
            state: transaction.state.name(),
            producer_id: transaction.producer_id,
            epoch: transaction.epoch,
            partitions: Vec::new(),
            groups: Vec::new(),
            missing_markers: if transaction.state.is_ending() { transaction.unmarked.len() } else { 0 },
        };
        for participant in &transaction.participants {
            match participant {
                Participant::Partition(topic, partition) => {
                    description.partitions.push((topic.clone(), *partition));
                }
                Participant::Group(group) => description.groups.push(group.clone()),
            }
        }
        Some(description)
    }

    /// Sets the finalized feature `transaction.version`, as an upgrade or downgrade of the cluster does. Clients learn of
    /// it with their next ApiVersions request.
    pub fn set_transaction_version(&mut self, version: i16) {
        if std::mem::replace(&mut self.cluster.options.transaction_version, version) != version {
            self.cluster.features_epoch += 1;
        }
    }

    /// Delays the markers of a partition by this duration in place of `transaction_marker_delay`; `None` ends that.
    /// Markers whose transaction has already ended keep their time.
    pub fn delay_markers(&mut self, topic: &str, partition: i32, delay: Option<Duration>) {
        let delays = &mut self.cluster.transactions.marker_delays;
        match delay {
            Some(delay) => delays.insert((topic.to_owned(), partition), delay),
            None => delays.remove(&(topic.to_owned(), partition)),
        };
    }

    /// Makes the coordinator of a transactional ID respond with COORDINATOR_LOAD_IN_PROGRESS for this duration, as one
    /// does that has just become the coordinator. It writes no markers during that time.
    pub fn load_transactions(&mut self, id: &str, duration: Duration) {
        let until = self.cluster.now + duration;
        self.cluster.transactions.loading.insert(id.to_owned(), until);
    }

    /// Raises the epoch of a transactional ID's producer, to test what happens when epochs are used up. Returns false if
    /// there is an open transaction, no producer, or if the epoch would not rise: no two producers may have the same one.
    pub fn set_producer_epoch(&mut self, id: &str, epoch: i16) -> bool {
        match self.cluster.transactions.ids.get_mut(id) {
            Some(transaction)
                if transaction.state != TransactionState::Ongoing
                    && !transaction.state.is_ending()
                    && transaction.epoch < epoch =>
            {
                transaction.epoch = epoch;
                true
            }
            _ => false,
        }
    }

    /// Returns whether two producers have used one epoch. Like Kafka's coordinator, ours takes EndTxn of a replaced producer as
    /// a repetition if the present one has ended a transaction of the older protocol in the next epoch. That needs a
    /// downgrade which the replaced one has not noticed, and then an upgrade.
    pub fn has_confused_producers(&self) -> bool {
        self.cluster.transactions.ids.values().any(|transaction| transaction.is_confused)
    }

    /// Forgets a transactional ID, as a coordinator does after `transactional.id.expiration.ms` without a transaction.
    /// Returns false if there is an open transaction, or no producer.
    pub fn expire_transactional_id(&mut self, id: &str) -> bool {
        let ids = &mut self.cluster.transactions.ids;
        let is_idle = ids.get(id).is_some_and(|transaction| {
            transaction.state != TransactionState::Ongoing && !transaction.state.is_ending()
        });
        is_idle && ids.remove(id).is_some()
    }

    /// Forgets a transactional ID with its open transaction, whose records then hang in their partitions, as after the loss of
    /// the coordinator's log. Returns false if the ID is unknown.
    pub fn forget_transaction(&mut self, id: &str) -> bool {
        self.cluster.transactions.ids.remove(id).is_some()
    }
}
