//! The requests about the producer and the transaction as a whole: InitProducerId and EndTxn. One is in progress at a time.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{end_txn::EndTxnResponse, init_producer_id::InitProducerIdResponse},
    primitive::Reader,
};

use super::{
    EpochUse, Registered, Transactions,
    attempt::{Attempt, may_have_been_sent},
};
use crate::{
    connection::Response,
    contract::part::TransactionRequest,
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        producer_id::ProducerIdentity,
        transaction::{
            error::{Reaction, RequestKind, react},
            state::TransactionState,
        },
    },
    states::See,
};

/// The number of responses in a row without support for InitProducerId after which the producer fails: one response with
/// wrong API versions does not end it.
const UNSUPPORTED_RESPONSES: u32 = 3;

/// The number of responses with UNKNOWN_SERVER_ERROR after which a renewal fails. Coordinators give it to a producer whose
/// epoch is not the last one of a used-up producer ID, however often it asks.
const UNEXPLAINED_RESPONSES: u32 = 5;

/// A request in progress, with its repetitions.
#[derive(Debug)]
pub(super) struct CoordinatorJob {
    kind: JobKind,
    attempt: Attempt,
    /// True if an attempt was lost: the coordinator may have carried it out.
    is_doubtful: bool,
    /// The number of responses in a row of brokers that do not support the request.
    unsupported: u32,
    /// The number of responses with UNKNOWN_SERVER_ERROR.
    unexplained: u32,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    /// Obtain the producer ID.
    Init,
    /// Get a higher epoch. This ends an open transaction.
    Renew,
    /// End the transaction; EndTxn raises the epoch if the second field is true.
    End { commit: bool, raises_epoch: bool },
}

impl CoordinatorJob {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("job of a transaction", 0, &self.kind);
        self.attempt.states(see);
    }

    pub(super) const fn due_at(&self) -> Option<Instant> {
        self.attempt.due_at()
    }

    pub(super) const fn is_renewal(&self) -> bool {
        matches!(self.kind, JobKind::Renew)
    }
}

impl Transactions {
    pub(super) fn start_job(&mut self, kind: JobKind) {
        let attempt = Attempt::new(self.backoff);
        self.job = Some(CoordinatorJob { kind, attempt, is_doubtful: false, unsupported: 0, unexplained: 0 });
    }

    /// Ends the transaction once none of its other requests is in flight.
    pub(super) fn decide_end(&mut self, now: Instant) {
        if self.registering.is_in_flight() || self.has_offsets_in_flight() || self.is_ending_early() {
            return;
        }
        let Some(commit) = self.ending.take() else { return };
        if self.shared.is_implicit() && self.shared.has_sent() {
            // The batch left when the end had begun already.
            self.registered = Registered::Something;
        }
        let is_registered = self.registered != Registered::Nothing;
        let (next, done) = if commit {
            (TransactionState::Committing, TransactionState::CommitNotAcked)
        } else {
            (TransactionState::Aborting, TransactionState::AbortNotAcked)
        };
        if is_registered {
            let raises_epoch = self.shared.is_implicit();
            self.go(now, next);
            self.start_job(JobKind::End { commit, raises_epoch });
        } else if !commit && self.shared.needs_renewal() {
            self.go(now, next);
            self.start_renewal();
        } else {
            self.go(now, done);
            self.finish(Ok(()));
        }
    }

    /// Requests a higher epoch. Until it is known, senders wait.
    pub(super) fn start_renewal(&mut self) {
        self.producer.identity.clear();
        self.start_job(JobKind::Renew);
    }

    pub(super) fn send_job(&mut self, now: Instant) {
        let Some(job) = self.job.as_ref().filter(|job| job.attempt.is_due(now)) else { return };
        let timeout = self.producer.settings.transaction_timeout;
        let request = match (job.kind, self.identity) {
            (JobKind::Init, _) | (JobKind::Renew, None) => self.terms.init(timeout, None),
            (JobKind::Renew, known) => self.terms.init(timeout, known),
            (JobKind::End { commit, raises_epoch }, Some(identity)) => {
                self.terms.end(identity, commit, raises_epoch)
            }
            (JobKind::End { .. }, None) => return,
        };
        let route = self.coordinator();
        let number = self.send(route, request, TransactionRequest::Coordinator);
        if let Some(job) = &mut self.job {
            job.attempt.note_sent(number);
        }
    }

    pub(super) fn handle_coordinator(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
    ) -> bool {
        let Some(job) = self.job.as_ref().filter(|job| job.attempt.is_response(number)) else { return false };
        let kind = job.kind;
        let (reaction, error) = match kind {
            JobKind::Init | JobKind::Renew => match self.read_identity(result) {
                Ok(identity) => {
                    self.handle_identity(now, kind, identity);
                    return false;
                }
                Err(failed) => failed,
            },
            JobKind::End { commit, .. } => match self.read_end(result) {
                Ok(raised) => {
                    self.handle_end(now, commit, raised);
                    return false;
                }
                Err(failed) => failed,
            },
        };
        self.shared.note_refusal(error.clone());
        match (reaction, kind) {
            (Reaction::Retry | Reaction::RetrySoon | Reaction::FindCoordinator, _) => {
                if let Some(job) = &mut self.job {
                    job.attempt.retry(now, reaction, &mut self.rng);
                }
            }
            (_, JobKind::End { commit, .. }) => self.handle_refused_end(now, commit, reaction, error),
            (_, JobKind::Init | JobKind::Renew) => self.give_up(now, reaction, error),
        }
        reaction == Reaction::FindCoordinator
    }

    /// Returns the identity of a response to InitProducerId, or what its error demands.
    fn read_identity(
        &mut self,
        result: Result<Response, Error>,
    ) -> Result<ProducerIdentity, (Reaction, Error)> {
        let response = result.and_then(|response| {
            InitProducerIdResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let response = response.map_err(|error| error.with_api("InitProducerId"));
        match response {
            Ok(response) if response.error_code.is_error() => {
                let code = response.error_code;
                if matches!(code, ErrorCode::INVALID_PRODUCER_ID_MAPPING | ErrorCode::UNKNOWN_PRODUCER_ID) {
                    // The producer ID has expired: the next attempt asks for a new one.
                    self.identity = None;
                }
                let error = Error::broker(code, None).with_api("InitProducerId");
                if code == ErrorCode::UNKNOWN_SERVER_ERROR && self.is_refused_for_good() {
                    let detail = "the coordinator can't renew the epoch, perhaps because another producer has used up those of the \
                                  producer ID; create a new producer";
                    return Err((Reaction::Fatal, error.with_detail(detail)));
                }
                Err((react(RequestKind::Init, code), error))
            }
            Ok(response) if response.producer_id < 0 || response.producer_epoch < 0 => {
                let (id, epoch) = (response.producer_id, response.producer_epoch);
                let detail = format!("it gave the producer ID {id} with epoch {epoch}, which are invalid");
                let error = Error::new(ErrorKind::BadResponse, detail).with_api("InitProducerId");
                Err((Reaction::Retry, error))
            }
            Ok(response) => {
                let identity = ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
                if self.is_outdated(identity) {
                    let detail =
                        format!("it gave the epoch {}, which the producer had before", identity.epoch);
                    let error = Error::new(ErrorKind::BadResponse, detail).with_api("InitProducerId");
                    return Err((Reaction::Retry, error));
                }
                Ok(identity)
            }
            Err(error) if error.kind() == ErrorKind::UnsupportedVersion => {
                let unsupported = self.job.as_mut().map_or(0, |job| {
                    job.unsupported += 1;
                    job.unsupported
                });
                if unsupported < UNSUPPORTED_RESPONSES {
                    return Err((Reaction::Retry, error));
                }
                let detail = "transactions need brokers of version 0.11 or later; a producer that goes on after a failed \
                              transaction needs 2.5";
                Err((Reaction::Fatal, error.with_detail(detail)))
            }
            Err(error) => Err((self.judge_lost(RequestKind::Init, &error), error)),
        }
    }

    /// Notes a response with UNKNOWN_SERVER_ERROR. Returns true if another attempt has no prospect.
    fn is_refused_for_good(&mut self) -> bool {
        let has_identity = self.identity.is_some();
        self.job.as_mut().is_some_and(|job| {
            job.unexplained += 1;
            job.kind == JobKind::Renew && has_identity && job.unexplained >= UNEXPLAINED_RESPONSES
        })
    }

    fn handle_identity(&mut self, now: Instant, kind: JobKind, identity: ProducerIdentity) {
        self.job = None;
        self.adopt(identity);
        match (kind, self.state) {
            (JobKind::Init, TransactionState::WaitProducerId) => {
                self.go(now, TransactionState::ReadyNotAcked);
                self.finish(Ok(()));
            }
            (JobKind::Renew, TransactionState::Aborting) => {
                self.forget_transaction();
                self.go(now, TransactionState::AbortNotAcked);
                self.finish(Ok(()));
            }
            _ => {}
        }
    }

    /// Returns the identity that a successful response to EndTxn carries, or what its error demands.
    fn read_end(
        &mut self,
        result: Result<Response, Error>,
    ) -> Result<Option<ProducerIdentity>, (Reaction, Error)> {
        let response = result.and_then(|response| {
            EndTxnResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        match response.map_err(|error| error.with_api("EndTxn")) {
            Ok(response) if response.error_code.is_error() => {
                let error = Error::broker(response.error_code, None).with_api("EndTxn");
                let is_unsupported = response.error_code == ErrorCode::UNSUPPORTED_VERSION;
                if is_unsupported && self.end_without_raise() {
                    self.check_downgrade(&error);
                    return Err((Reaction::Retry, error));
                }
                Err((react(RequestKind::End, response.error_code), error))
            }
            Ok(response) => {
                let identity = ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
                let is_valid = identity.id >= 0 && identity.epoch >= 0 && !self.is_outdated(identity);
                Ok(is_valid.then_some(identity))
            }
            Err(error) => {
                if may_have_been_sent(&error)
                    && let Some(job) = &mut self.job
                {
                    job.is_doubtful = true;
                }
                let mut reaction = self.judge_lost(RequestKind::End, &error);
                if error.kind() == ErrorKind::UnsupportedVersion && self.end_without_raise() {
                    reaction = Reaction::Retry;
                }
                Err((reaction, error))
            }
        }
    }

    /// The coordinator can't raise the epoch, because the cluster was downgraded: EndTxn is sent in its older form, and
    /// InitProducerId raises the epoch afterwards. Returns false if that is done already.
    fn end_without_raise(&mut self) -> bool {
        let Some(CoordinatorJob { kind: JobKind::End { raises_epoch, .. }, .. }) = &mut self.job else {
            return false;
        };
        self.shared.note_doubt();
        std::mem::take(raises_epoch)
    }

    /// The coordinator has ended the transaction; with the newer protocol the response carries the next epoch.
    fn handle_end(&mut self, now: Instant, commit: bool, raised: Option<ProducerIdentity>) {
        let is_early = self.is_ending_early();
        let job = self.job.take();
        let is_raised =
            matches!(&job, Some(CoordinatorJob { kind: JobKind::End { raises_epoch: true, .. }, .. }));
        let is_doubtful = job.is_some_and(|job| job.is_doubtful);
        self.forget_transaction();
        if !self.shared.is_implicit() {
            self.epoch_use = EpochUse::Used;
        }
        match raised {
            Some(identity) => {
                let before = self.identity;
                self.adopt(identity);
                self.epoch_use = before.map_or(EpochUse::Fresh, EpochUse::Raised);
                self.markers.start(now);
                if identity.epoch == i16::MAX {
                    // The coordinator gives the last epoch after a timeout only, and can't end a transaction of it.
                    self.shared.note_doubt();
                }
            }
            // A lost EndTxn may still arrive, and end the next transaction of the same epoch. Or the coordinator has raised the
            // epoch, and its response names none that could be right.
            None if is_doubtful || is_raised => self.shared.note_doubt(),
            None => {}
        }
        if is_early {
            // The rest of the application's abort needs no request.
            self.shared.forget_sent();
            return;
        }
        let needs_renewal = self.shared.needs_renewal();
        if commit {
            self.go(now, TransactionState::CommitNotAcked);
            self.finish(Ok(()));
            if needs_renewal {
                // The commit is complete. The next transaction may begin; its requests wait for the epoch.
                self.start_renewal();
            }
        } else if needs_renewal {
            self.start_renewal();
        } else {
            self.go(now, TransactionState::AbortNotAcked);
            self.finish(Ok(()));
        }
    }

    /// Returns true while an abort is in progress that the application has not asked for.
    fn is_ending_early(&self) -> bool {
        let is_end = |job: &CoordinatorJob| matches!(job.kind, JobKind::End { .. });
        self.job.as_ref().is_some_and(is_end)
            && !matches!(self.state, TransactionState::Committing | TransactionState::Aborting)
    }

    fn forget_transaction(&mut self) {
        (self.clock, self.registered) = (None, Registered::Nothing);
        self.registering.clear();
    }

    /// The coordinator refused to end the transaction.
    fn handle_refused_end(&mut self, now: Instant, commit: bool, reaction: Reaction, error: Error) {
        if self.is_ending_early() {
            // The application's abort asks again, and decides.
            self.job = None;
            return;
        }
        let is_doubtful = self.job.as_ref().is_some_and(|job| job.is_doubtful);
        let raises_epoch =
            matches!(&self.job, Some(CoordinatorJob { kind: JobKind::End { raises_epoch: true, .. }, .. }));
        let kind = error.kind();
        if commit && raises_epoch && kind == ErrorKind::Broker(ErrorCode::INVALID_TXN_STATE) {
            // A commit that succeeded before would be repeated with success, because the epoch distinguishes
            // transactions.
            let detail = "the coordinator did not commit the transaction; it may have aborted it after transaction.timeout.ms";
            return self.fail(now, error.with_detail(detail));
        }
        if commit {
            if is_doubtful && !matches!(reaction, Reaction::Fatal | Reaction::Fenced) {
                let detail = format!("it is unknown whether the transaction was committed; {error}");
                return self.fail_fatally(now, Error::new(ErrorKind::Inconsistent, detail));
            }
            return self.give_up(now, reaction, error);
        }
        let timed_out = self.clock.is_some_and(|clock| clock.is_over(now));
        let may_renew = match reaction {
            // The coordinator may have aborted the transaction because of its timeout, which raises the epoch.
            Reaction::Fenced => timed_out && kind == ErrorKind::Broker(ErrorCode::INVALID_PRODUCER_EPOCH),
            // The coordinator knows no transaction: the requests whose outcome is unknown have not arrived.
            Reaction::Fatal => {
                let perhaps = self.registered == Registered::Perhaps
                    || self.shared.is_implicit()
                    || is_doubtful
                    || timed_out;
                perhaps && kind == ErrorKind::Broker(ErrorCode::INVALID_TXN_STATE)
            }
            _ => true,
        };
        if may_renew {
            // InitProducerId aborts what is left of the transaction.
            self.start_renewal();
        } else {
            self.give_up(now, reaction, error);
        }
    }
}
