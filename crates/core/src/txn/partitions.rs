//! The registration of partitions with the coordinator, before their first batch of a transaction (AddPartitionsToTxn).

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode, generated::add_partitions_to_txn::AddPartitionsToTxnResponse, primitive::Reader,
    vocabulary::TopicPartition,
};
use ottla_sorted::SortedSet;

use super::{Registered, Transactions, attempt::Attempt, requests::added_partitions};
use crate::{
    connection::Response,
    contract::part::TransactionRequest,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::transaction::error::{Reaction, RequestKind, react},
};

/// Partitions that are being registered. One request is in flight, with all partitions that waited.
#[derive(Debug)]
pub(super) struct Registering {
    waiting: SortedSet<TopicPartition>,
    in_flight: SortedSet<TopicPartition>,
    attempt: Attempt,
    backoff: (Duration, Duration),
}

impl Registering {
    pub(super) const fn new(backoff: (Duration, Duration)) -> Self {
        let attempt = Attempt::new(backoff);
        Self { waiting: SortedSet::new(), in_flight: SortedSet::new(), attempt, backoff }
    }

    /// Registers these partitions, unless that is in progress.
    pub(super) fn request(&mut self, partitions: SortedSet<TopicPartition>) {
        let new = partitions.into_iter().filter(|partition| !self.in_flight.contains(partition));
        self.waiting.extend(new);
    }

    pub(super) const fn is_in_flight(&self) -> bool {
        self.attempt.is_in_flight()
    }

    /// Returns when a request is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.attempt.due_at().filter(|_| !self.waiting.is_empty())
    }

    /// Forgets the partitions that are not in flight.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.backoff);
    }
}

impl Transactions {
    /// Returns true if requests of an open transaction may be sent: the epoch is known.
    pub(super) fn may_register(&self) -> bool {
        self.state.may_send() && self.job.is_none() && !self.shared.is_closed()
    }

    pub(super) fn send_partitions(&mut self, now: Instant) {
        let Some(identity) = self.identity.filter(|_| self.may_register()) else { return };
        if self.registering.waiting.is_empty() || !self.registering.attempt.is_due(now) {
            return;
        }
        let partitions = std::mem::take(&mut self.registering.waiting);
        let request = self.terms.add_partitions(identity, &partitions);
        self.registering.in_flight = partitions;
        self.start_clock(now);
        let route = self.coordinator();
        let number = self.send(route, request, TransactionRequest::Partitions);
        self.registering.attempt.note_sent(number);
    }

    pub(super) fn handle_partitions(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
    ) -> bool {
        if !self.registering.attempt.is_response(number) {
            return false;
        }
        let asked = std::mem::take(&mut self.registering.in_flight);
        let response = result.and_then(|response| {
            AddPartitionsToTxnResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let mut worst: Option<(Reaction, Error)> = None;
        let mut registered = false;
        match response.map_err(|error| error.with_api("AddPartitionsToTxn")) {
            Ok(response) => {
                let results = added_partitions(&response);
                for partition in asked {
                    let code = results.get(&(&*partition.topic, partition.partition)).copied();
                    match code.map_or(Reaction::Retry, |code| react(RequestKind::AddPartitions, code)) {
                        Reaction::Success => {
                            registered = true;
                            self.shared.register(partition);
                        }
                        reaction => {
                            let error = refused(&partition, code);
                            if worst.as_ref().is_none_or(|(known, _)| rank(reaction) > rank(*known)) {
                                worst = Some((reaction, error));
                            }
                            self.registering.waiting.insert(partition);
                        }
                    }
                }
            }
            Err(error) => {
                self.note_unknown(&error);
                let reaction = self.judge_lost(RequestKind::AddPartitions, &error);
                self.registering.waiting.extend(asked);
                worst = Some((reaction, error));
            }
        }
        if registered {
            self.registered = Registered::Something;
            self.wake_senders();
        }
        let Some((reaction, error)) = worst else {
            self.registering.attempt = Attempt::new(self.backoff);
            return false;
        };
        self.shared.note_refusal(error.clone());
        self.registering.attempt.retry(now, reaction, &mut self.rng);
        if !self.state.may_send() {
            self.registering.drop_waiting();
        }
        match reaction {
            Reaction::Retry | Reaction::RetrySoon => {}
            Reaction::FindCoordinator => return true,
            reaction => self.give_up(now, reaction, error),
        }
        false
    }
}

/// Orders reactions by severity: a request has the worst of all its partitions. OPERATION_NOT_ATTEMPTED only says that another
/// partition failed.
const fn rank(reaction: Reaction) -> u8 {
    match reaction {
        Reaction::Success => 0,
        Reaction::Retry => 1,
        Reaction::RetrySoon => 2,
        Reaction::FindCoordinator => 3,
        Reaction::Abort => 4,
        Reaction::AbortAndRenew => 5,
        Reaction::Fatal => 6,
        Reaction::Fenced => 7,
    }
}

fn refused(partition: &TopicPartition, code: Option<ErrorCode>) -> Error {
    let error = match code {
        Some(code) => Error::broker(code, None),
        None => Error::new(ErrorKind::BadResponse, "the response omits the partition"),
    };
    error.with_api("AddPartitionsToTxn").with_partition(&*partition.topic, partition.partition)
}
