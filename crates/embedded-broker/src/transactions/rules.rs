//! The effects of requests on a transactional ID: the checks and changes of state, as Kafka's coordinator makes them.
//!
//! With transaction version 2 every end of a transaction bumps the epoch (KIP-890), so a repeated EndTxn of the earlier
//! epoch is recognised and gets the same response.

use ottla_protocol::error_code::ErrorCode;

use super::{Participant, Transaction, TransactionState};

/// A producer ID with its epoch, as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerKey {
    pub id: i64,
    pub epoch: i16,
}

/// The result of an accepted EndTxn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The markers have to be written.
    Begins,
    /// The transaction has already ended this way.
    IsDone,
}

/// The result of an accepted InitProducerId.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initialization {
    /// The producer has its ID and epoch.
    Done,
    /// The ongoing transaction aborts first; the producer has to ask again.
    Aborts,
}

/// The first transaction version whose ends bump the epoch.
pub(super) const EPOCH_BUMPS: i16 = 2;
/// The last epoch that producers get: the coordinator needs one more to fence them.
const LAST_EPOCH: i16 = i16::MAX - 1;
const NO_EPOCH: i16 = -1;

impl Transaction {
    /// Creates the state of a transactional ID whose producer has no epoch.
    pub fn new(producer_id: i64, timeout_ms: i32) -> Self {
        Self {
            producer_id,
            previous_producer_id: -1,
            next_producer_id: None,
            epoch: NO_EPOCH,
            last_epoch: NO_EPOCH,
            timeout_ms,
            state: TransactionState::Empty,
            participants: Default::default(),
            version: 0,
            given: None,
            doubled: None,
            is_confused: false,
            started_ms: -1,
            started: ottla_protocol::time::Instant::ZERO,
            coordinator: None,
            coordinator_epoch: 0,
            unmarked: Default::default(),
            round: 0,
        }
    }

    /// Handles InitProducerId. `expected` is the producer that the client believes to be.
    pub fn initialize(
        &mut self,
        timeout_ms: i32,
        expected: Option<ProducerKey>,
        server_version: i16,
        new_producer_id: impl FnOnce() -> i64,
    ) -> Result<Initialization, ErrorCode> {
        self.check_not_ending()?;
        if !expected.is_none_or(|expected| self.may_be(expected)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        if self.state == TransactionState::Ongoing {
            self.fence(server_version);
            return Ok(Initialization::Aborts);
        }
        if self.is_exhausted() && expected.is_none_or(|expected| expected.epoch == self.epoch) {
            self.previous_producer_id = self.producer_id;
            self.last_epoch = expected.map_or(NO_EPOCH, |_| self.epoch);
            (self.producer_id, self.epoch) = (new_producer_id(), 0);
        } else {
            self.bump_for(expected.map(|expected| expected.epoch))?;
            self.previous_producer_id = self.producer_id;
        }
        self.state = TransactionState::Empty;
        self.given = Some(self.epoch);
        self.timeout_ms = timeout_ms;
        self.participants.clear();
        self.started_ms = -1;
        Ok(Initialization::Done)
    }

    /// Adds participants; the first ones begin the transaction. Returns true if it begins.
    pub fn add(
        &mut self,
        producer: ProducerKey,
        participants: &[Participant],
        version: i16,
        (now, now_ms): (ottla_protocol::time::Instant, i64),
    ) -> Result<bool, ErrorCode> {
        self.check_not_ending()?;
        self.check_producer(producer)?;
        let begins = self.state != TransactionState::Ongoing;
        if begins {
            self.participants.clear();
            (self.started, self.started_ms) = (now, now_ms);
        }
        self.participants.extend(participants.iter().cloned());
        self.previous_producer_id = self.producer_id;
        self.state = TransactionState::Ongoing;
        self.version = version;
        Ok(begins)
    }

    /// Checks that a producer's transaction has a participant (KIP-890, part 1).
    pub fn verify(&self, producer: ProducerKey, participant: &Participant) -> Result<(), ErrorCode> {
        self.check_producer(producer)?;
        self.check_not_ending()?;
        let is_in = self.state == TransactionState::Ongoing && self.participants.contains(participant);
        if is_in { Ok(()) } else { Err(ErrorCode::TRANSACTION_ABORTABLE) }
    }

    /// Handles EndTxn of a producer. `version` is the transaction version that the request implies.
    pub fn end(
        &mut self,
        producer: ProducerKey,
        commits: bool,
        version: i16,
        now_ms: i64,
        new_producer_id: impl FnOnce() -> i64,
    ) -> Result<Ending, ErrorCode> {
        if version < EPOCH_BUMPS {
            return self.end_without_bump(producer, commits);
        }
        self.check_not_ending()?;
        let is_bumped = i32::from(self.epoch) == i32::from(producer.epoch) + 1;
        let is_replaced =
            self.previous_producer_id == producer.id && producer.epoch == LAST_EPOCH && self.epoch == 0;
        if self.producer_id != producer.id && !is_replaced {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        let is_current = producer.epoch == self.epoch;
        let is_complete =
            matches!(self.state, TransactionState::CompleteCommit | TransactionState::CompleteAbort);
        if !(is_current || is_complete && (is_bumped || is_replaced)) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        let was_commit = self.state == TransactionState::CompleteCommit;
        match self.state {
            TransactionState::Ongoing => {}
            TransactionState::Empty if commits => return Err(ErrorCode::INVALID_TXN_STATE),
            TransactionState::Empty => self.started_ms = now_ms,
            // A retry of the end that has succeeded.
            _ if is_bumped || is_replaced => {
                return if commits == was_commit {
                    Ok(Ending::IsDone)
                } else {
                    Err(ErrorCode::INVALID_TXN_STATE)
                };
            }
            _ if commits => return Err(ErrorCode::INVALID_TXN_STATE),
            // The leader may have refused the first records of a transaction after it had begun.
            _ => self.started_ms = now_ms,
        }
        self.next_producer_id = self.is_exhausted().then(new_producer_id);
        self.prepare(commits, version);
        Ok(Ending::Begins)
    }

    fn end_without_bump(&mut self, producer: ProducerKey, commits: bool) -> Result<Ending, ErrorCode> {
        self.check_producer(producer)?;
        self.check_not_ending()?;
        match self.state {
            TransactionState::Ongoing => {
                self.prepare(commits, 0);
                Ok(Ending::Begins)
            }
            TransactionState::CompleteCommit if commits => Ok(Ending::IsDone),
            TransactionState::CompleteAbort if !commits => Ok(Ending::IsDone),
            _ => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }

    /// Notes whether a request of the newer protocol is that of a producer which has been replaced, and whose EndTxn is taken
    /// as a repetition, as in Kafka: the present one has ended a transaction of the older protocol in the next epoch.
    pub fn note_doubled(&mut self, producer: ProducerKey, commits: Option<bool>) {
        let was_commit = match self.state {
            TransactionState::CompleteCommit => Some(true),
            TransactionState::CompleteAbort => Some(false),
            _ => None,
        };
        let is_next = producer.id == self.producer_id && self.epoch - 1 == producer.epoch;
        if is_next && self.given == Some(self.epoch) && was_commit.is_some() && commits == was_commit {
            self.doubled = Some(self.epoch);
            // The transaction that it believes to have committed was aborted before.
            self.is_confused |= commits == Some(true);
        }
        self.is_confused |= self.doubled == Some(producer.epoch);
    }

    /// Aborts the ongoing transaction with a higher epoch, so that its producer is fenced.
    pub fn fence(&mut self, server_version: i16) {
        if server_version < EPOCH_BUMPS {
            (self.epoch, self.last_epoch) = (self.epoch.saturating_add(1), NO_EPOCH);
        }
        self.prepare(false, server_version);
    }

    /// All markers are written.
    pub fn complete(&mut self) {
        self.previous_producer_id = self.producer_id;
        if let Some(next) = self.next_producer_id.take() {
            (self.producer_id, self.epoch) = (next, 0);
        }
        self.state = match self.state {
            TransactionState::PrepareCommit => TransactionState::CompleteCommit,
            _ => TransactionState::CompleteAbort,
        };
        self.participants.clear();
        self.unmarked.clear();
    }

    /// Returns the producer that the response to EndTxn names: it may be in effect only once the markers are written.
    pub fn next_producer(&self) -> ProducerKey {
        match self.next_producer_id {
            Some(id) => ProducerKey { id, epoch: 0 },
            None => ProducerKey { id: self.producer_id, epoch: self.epoch },
        }
    }

    fn prepare(&mut self, commits: bool, version: i16) {
        if version >= EPOCH_BUMPS {
            self.last_epoch = self.epoch;
            self.epoch = self.epoch.saturating_add(1);
        }
        self.previous_producer_id = self.producer_id;
        self.version = version;
        self.state = if commits { TransactionState::PrepareCommit } else { TransactionState::PrepareAbort };
    }

    fn check_not_ending(&self) -> Result<(), ErrorCode> {
        if self.state.is_ending() { Err(ErrorCode::CONCURRENT_TRANSACTIONS) } else { Ok(()) }
    }

    /// Checks that a request names the present producer.
    pub fn check_producer(&self, producer: ProducerKey) -> Result<(), ErrorCode> {
        if self.producer_id != producer.id {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if self.epoch == producer.epoch { Ok(()) } else { Err(ErrorCode::PRODUCER_FENCED) }
    }

    /// Returns true if the client can be this producer. Its epoch is checked when it is bumped.
    fn may_be(&self, expected: ProducerKey) -> bool {
        let has_lost_rotation = expected.id == self.previous_producer_id && expected.epoch >= LAST_EPOCH;
        self.epoch == NO_EPOCH || expected.id == self.producer_id || has_lost_rotation
    }

    fn is_exhausted(&self) -> bool {
        self.epoch >= LAST_EPOCH
    }

    fn bump_for(&mut self, expected: Option<i16>) -> Result<(), ErrorCode> {
        if self.is_exhausted() {
            return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        let last_epoch = match expected {
            None => NO_EPOCH,
            Some(expected) if self.epoch == NO_EPOCH || expected == self.epoch => self.epoch,
            // The response to an earlier request was lost.
            Some(expected) if expected == self.last_epoch => return Ok(()),
            Some(_) => return Err(ErrorCode::PRODUCER_FENCED),
        };
        self.last_epoch = last_epoch;
        self.epoch += 1;
        Ok(())
    }
}
