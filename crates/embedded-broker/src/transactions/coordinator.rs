//! The coordinator at the APIs: which broker it is, which requests reach a transactional ID, and when its transaction
//! times out.

use std::time::Duration;

use ottla_protocol::{error_code::ErrorCode, time::Instant};

use super::{EPOCH_BUMPS, Ending, Initialization, Participant, ProducerKey, Transaction, TransactionState};
use crate::{
    acls::{AclOperation, ResourceType},
    cluster::{Cluster, Timer},
    connection::Request,
};

impl Cluster {
    /// Checks that the client may do something with a transactional ID.
    pub(crate) fn check_transaction_access(
        &self,
        request: &Request,
        operation: AclOperation,
        id: &str,
    ) -> Result<(), ErrorCode> {
        match self.permits(request.connection, operation, ResourceType::TransactionalId, id) {
            true => Ok(()),
            false => Err(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        }
    }

    /// Checks that this broker coordinates a transactional ID and has loaded it.
    pub(crate) fn check_transaction_coordinator(&self, request: &Request, id: &str) -> Result<(), ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if self.coordinator_of(1, id) != Some(request.broker) {
            return Err(ErrorCode::NOT_COORDINATOR);
        }
        if self.is_transaction_loading(id) {
            return Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        }
        Ok(())
    }

    /// Handles InitProducerId with a transactional ID.
    pub(crate) fn initialize_transactions(
        &mut self,
        id: &str,
        timeout_ms: i32,
        expected: Option<ProducerKey>,
    ) -> Result<ProducerKey, ErrorCode> {
        if !self.transactions.ids.contains_key(id) {
            let mut transaction = Transaction::new(self.take_producer_id(), timeout_ms);
            transaction.coordinator = self.coordinator_of(1, id);
            self.transactions.ids.insert(id.to_owned(), transaction);
        }
        let unknown = ErrorCode::UNKNOWN_SERVER_ERROR;
        let (version, next) = (self.options.transaction_version, &mut self.next_producer_id);
        let transaction = self.transactions.ids.get_mut(id).ok_or(unknown)?;
        let initialized = transaction.initialize(timeout_ms, expected, version, || {
            *next += 1;
            *next - 1
        })?;
        let producer = ProducerKey { id: transaction.producer_id, epoch: transaction.epoch };
        match initialized {
            Initialization::Done => Ok(producer),
            Initialization::Aborts => {
                self.begin_markers(id);
                Err(ErrorCode::CONCURRENT_TRANSACTIONS)
            }
        }
    }

    /// Adds participants to the transaction of a producer.
    pub(crate) fn add_to_transaction(
        &mut self,
        id: &str,
        producer: ProducerKey,
        participants: &[Participant],
        version: i16,
    ) -> Result<(), ErrorCode> {
        let (now, is_stored) = ((self.now, self.unix_ms()), self.stores(version));
        let transaction = self.transactions.ids.get_mut(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        if version >= EPOCH_BUMPS {
            transaction.note_doubled(producer, None);
        }
        if !is_stored {
            transaction.check_producer(producer)?;
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        if transaction.add(producer, participants, version, now)? {
            let timeout = Duration::from_millis(u64::try_from(transaction.timeout_ms).unwrap_or(0));
            self.time_transaction_out(id, now.0 + timeout);
        }
        Ok(())
    }

    /// Adds the participant that a request of transaction version 2 implies, or checks that an older client has added it.
    pub(crate) fn admit_to_transaction(
        &mut self,
        id: &str,
        producer: ProducerKey,
        participant: Participant,
        is_added: bool,
    ) -> Result<(), ErrorCode> {
        if self.is_transaction_loading(id) {
            return Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        }
        if is_added {
            return self.add_to_transaction(id, producer, &[participant], 2);
        }
        let transaction = self.transactions.ids.get(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        transaction.verify(producer, &participant)
    }

    /// Ends the transaction of a producer. Returns the producer ID and epoch of the next one.
    pub(crate) fn end_transaction(
        &mut self,
        id: &str,
        producer: ProducerKey,
        commits: bool,
        version: i16,
    ) -> Result<ProducerKey, ErrorCode> {
        let is_stored = self.stores(version);
        let (now_ms, next) = (self.unix_ms(), &mut self.next_producer_id);
        let transaction = self.transactions.ids.get_mut(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        if version >= EPOCH_BUMPS {
            transaction.note_doubled(producer, Some(commits));
        }
        if !is_stored {
            // Nothing is stored for a retry of an end that has succeeded.
            return match transaction.clone().end(producer, commits, version, now_ms, || -1)? {
                Ending::IsDone => Ok(transaction.next_producer()),
                Ending::Begins => Err(ErrorCode::UNSUPPORTED_VERSION),
            };
        }
        let ending = transaction.end(producer, commits, version, now_ms, || {
            *next += 1;
            *next - 1
        })?;
        let producer = transaction.next_producer();
        if ending == Ending::Begins {
            self.begin_markers(id);
        }
        Ok(producer)
    }

    /// Returns true if the coordinator can store what requests of this transaction version change: those of version 2 only
    /// while the feature is on. Level 1 is enough for it.
    const fn stores(&self, version: i16) -> bool {
        version < 2 || self.options.transaction_version > 0
    }

    /// Handles the timer of a transaction: aborts it if it is still open.
    pub(crate) fn transaction_timeout(&mut self, id: &str) {
        let now = self.now;
        let is_served = self.is_transaction_served(id);
        let version = self.options.transaction_version;
        let Some(transaction) = self.transactions.ids.get_mut(id) else { return };
        let timeout = Duration::from_millis(u64::try_from(transaction.timeout_ms).unwrap_or(0));
        if transaction.state != TransactionState::Ongoing || transaction.started + timeout > now {
            return;
        }
        if !is_served {
            self.time_transaction_out(id, now + Duration::from_millis(1));
            return;
        }
        transaction.fence(version);
        self.begin_markers(id);
    }

    /// Sets the timer of a transaction to the first check after `due`.
    fn time_transaction_out(&mut self, id: &str, due: Instant) {
        let interval = self.options.transaction_timeout_interval.as_nanos().max(1);
        let checks = u128::from(due.as_nanos()).div_ceil(interval);
        let at = u64::try_from(checks * interval).unwrap_or(u64::MAX);
        self.timers.set(Instant::from_nanos(at), Timer::TransactionTimeout(id.to_owned()));
    }

    /// Notes which broker coordinates each transactional ID. A new coordinator writes unfinished ends again.
    pub(crate) fn move_transaction_coordinators(&mut self) {
        let ids: Vec<String> = self.transactions.ids.keys().cloned().collect();
        for id in ids {
            let coordinator = self.coordinator_of(1, &id);
            let Some(transaction) = self.transactions.ids.get_mut(&id) else { continue };
            if transaction.coordinator == coordinator {
                continue;
            }
            transaction.coordinator = coordinator;
            transaction.coordinator_epoch += 1;
            if transaction.state.is_ending() {
                self.begin_markers(&id);
            }
        }
    }

    /// Returns true if the coordinator of a transactional ID is up and has loaded it.
    pub(crate) fn is_transaction_served(&self, id: &str) -> bool {
        let coordinator = self.coordinator_of(1, id);
        let is_up = coordinator.is_some_and(|id| self.brokers.get(&id).is_some_and(|broker| broker.alive));
        is_up && !self.is_transaction_loading(id)
    }

    /// Returns a producer ID that no producer has had.
    pub(crate) fn take_producer_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    /// Returns true while the markers of a transaction are being written.
    pub(crate) fn is_transaction_ending(&self, id: &str) -> bool {
        self.transactions.ids.get(id).is_some_and(|transaction| transaction.state.is_ending())
    }

    fn is_transaction_loading(&self, id: &str) -> bool {
        self.transactions.loading.get(id).is_some_and(|until| *until > self.now)
    }
}
