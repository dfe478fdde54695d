//! The markers of the last transaction. After EndTxn the coordinator writes one to each partition, and until it has noted that it
//! is done, it refuses the producer's next transaction with CONCURRENT_TRANSACTIONS.
//!
//! With the older protocol AddPartitionsToTxn is repeated until it succeeds. With the newer one a leader that gets the first
//! batch of the next transaction too early asks the coordinator again after 20 ms (`add.partitions.to.txn.retry.backoff.ms`).
//! So the client asks first, with DescribeTransactions, and sends when the transaction is complete.
//!
//! The question also makes a coordinator that is idle otherwise go on: Apache Kafka 4.3.1 completes a transaction when it handles
//! the next request after the last marker, even if that is a second later.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode, generated::describe_transactions::DescribeTransactionsResponse, primitive::Reader,
};

use super::Transactions;
use crate::{
    broker::connection::Response, cluster::part::TransactionRequest, error::Error, machine::Instant,
};

/// The waits before each question. After the last one, the next transaction is sent in any case.
const WAITS_MS: [u64; 10] = [1, 1, 2, 2, 4, 4, 8, 16, 32, 64];

/// The client's knowledge of the markers of the last transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// They are written, or nothing is known.
    #[default]
    Over,
    Due(Instant),
    InFlight(u64),
}

/// The questions about the markers of the last transaction.
#[derive(Debug, Default)]
pub(super) struct MarkerCheck {
    phase: Phase,
    asked: usize,
    /// True if the coordinator does not tell.
    is_useless: bool,
}

impl MarkerCheck {
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Due(at) => Some(at),
            Phase::Over | Phase::InFlight(_) => None,
        }
    }

    /// The coordinator has begun to write markers.
    pub(super) fn start(&mut self, now: Instant) {
        self.asked = 0;
        self.wait(now);
    }

    fn wait(&mut self, now: Instant) {
        let wait = WAITS_MS.get(self.asked).filter(|_| !self.is_useless);
        self.phase = wait.map_or(Phase::Over, |wait| Phase::Due(now + Duration::from_millis(*wait)));
        self.asked += 1;
    }
}

impl Transactions {
    /// Checks that the markers of the last transaction are written, if it is time.
    pub(super) fn send_marker_check(&mut self, now: Instant) {
        if self.markers.due_at().is_some_and(|at| at <= now) {
            let (route, request) = (self.coordinator(), self.terms.describe());
            let number = self.send(route, request, TransactionRequest::Markers);
            self.markers.phase = Phase::InFlight(number);
        }
    }

    pub(super) fn handle_markers(&mut self, now: Instant, number: u64, result: Result<Response, Error>) {
        if self.markers.phase != Phase::InFlight(number) {
            return;
        }
        match read_is_ending(result) {
            Ok(true) => self.markers.wait(now),
            Ok(false) => self.markers.phase = Phase::Over,
            Err(is_permanent) => {
                self.markers.phase = Phase::Over;
                self.markers.is_useless |= is_permanent;
            }
        }
        if self.markers.is_over() && self.shared.is_closed() {
            self.shared.open();
            self.wake_senders();
        }
    }
}

/// Returns whether the coordinator still writes markers. Error: it is not known; true if it never will be.
fn read_is_ending(result: Result<Response, Error>) -> Result<bool, bool> {
    use crate::error::ErrorKind;
    let response = result.map_err(|error| error.kind() == ErrorKind::UnsupportedVersion)?;
    let version = response.request.version;
    let response = DescribeTransactionsResponse::decode(&mut Reader::new(response.body()), version);
    let response = response.map_err(|_| false)?;
    let state = response.transaction_states.first().ok_or(false)?;
    match state.error_code {
        ErrorCode::NONE => Ok(matches!(&*state.transaction_state, "PrepareCommit" | "PrepareAbort")),
        code => Err(code == ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    }
}
