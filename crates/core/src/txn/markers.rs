//! The markers of the last transaction. After EndTxn the coordinator writes one to each partition, and until it has noted that it
//! is done, it refuses the producer's next transaction with CONCURRENT_TRANSACTIONS.
//!
//! With the older protocol AddPartitionsToTxn is repeated until it succeeds. With the newer one a leader that gets the first
//! batch of the next transaction too early asks the coordinator again after 20 ms (`add.partitions.to.txn.retry.backoff.ms`).
//! So the client asks first, with DescribeTransactions, and sends when the transaction is complete. It asks when the markers are
//! probably written, by the time that those of earlier transactions took: each question costs both sides a request.
//!
//! The question also makes a coordinator that is idle otherwise go on: Apache Kafka 4.3.1 completes a transaction when it handles
//! the next request after the last marker, even if that is a second later.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode, generated::describe_transactions::DescribeTransactionsResponse, primitive::Reader,
};

use super::Transactions;
use crate::{
    connection::Response, contract::part::TransactionRequest, error::Error, machine::Instant, states::See,
};

/// The wait before the first question, as long as nothing else is known.
const FIRST_WAIT_MS: u64 = 1;

/// The waits before the other questions. After the last one, the next transaction is sent in any case.
const WAITS_MS: [u64; 9] = [1, 2, 2, 4, 4, 8, 16, 32, 64];

/// The longest wait before the first question, which also makes a coordinator go on.
const LONGEST_FIRST_WAIT_MS: u64 = 50;

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
#[derive(Debug)]
pub(super) struct MarkerCheck {
    phase: Phase,
    first_wait_ms: u64,
    asked: usize,
    /// When the coordinator ended the transaction.
    began: Instant,
    /// The time from then to the question in progress, and to the last one which found that markers were missing.
    asked_ms: u64,
    missing_ms: Option<u64>,
    /// True if the coordinator does not tell.
    is_useless: bool,
}

impl Default for MarkerCheck {
    fn default() -> Self {
        Self {
            phase: Phase::Over,
            first_wait_ms: FIRST_WAIT_MS,
            asked: 0,
            began: Instant::ZERO,
            asked_ms: 0,
            missing_ms: None,
            is_useless: false,
        }
    }
}

impl MarkerCheck {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("markers of a transaction", 0, &self.phase);
    }

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
        (self.began, self.asked, self.missing_ms) = (now, 0, None);
        self.phase = if self.is_useless { Phase::Over } else { due(now, self.first_wait_ms) };
    }

    fn note_sent(&mut self, now: Instant, number: u64) {
        let since = now.saturating_since(self.began).as_millis();
        self.asked_ms =
            u64::try_from(since).map_or(LONGEST_FIRST_WAIT_MS, |ms| ms.min(LONGEST_FIRST_WAIT_MS));
        self.phase = Phase::InFlight(number);
    }

    /// Markers are missing: asks again, or gives up.
    fn handle_missing(&mut self, now: Instant) {
        self.missing_ms = Some(self.asked_ms);
        match WAITS_MS.get(self.asked) {
            Some(wait) => self.phase = due(now, (*wait).max(self.asked_ms / 4)),
            None => self.handle_written(),
        }
        self.asked += 1;
    }

    /// The markers are written. The first wait of the next transaction approaches the time at which some were missing, slowly
    /// enough for one transaction that took very long not to matter.
    fn handle_written(&mut self) {
        self.phase = Phase::Over;
        let wait = self.first_wait_ms;
        self.first_wait_ms = match self.missing_ms {
            Some(missing) => wait.midpoint(missing + 1).min(2 * wait + 1),
            None => wait * 3 / 4,
        };
    }
}

fn due(now: Instant, wait_ms: u64) -> Phase {
    Phase::Due(now + Duration::from_millis(wait_ms))
}

impl Transactions {
    /// Sends the question about the markers of the last transaction, if it is time.
    pub(super) fn send_marker_check(&mut self, now: Instant) {
        if self.markers.due_at().is_some_and(|at| at <= now) {
            let (route, request) = (self.coordinator(), self.terms.describe());
            let number = self.send(route, request, TransactionRequest::Markers);
            self.markers.note_sent(now, number);
        }
    }

    pub(super) fn handle_markers(&mut self, now: Instant, number: u64, result: Result<Response, Error>) {
        if self.markers.phase != Phase::InFlight(number) {
            return;
        }
        match read_is_ending(result) {
            Ok(true) => self.markers.handle_missing(now),
            Ok(false) => self.markers.handle_written(),
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
