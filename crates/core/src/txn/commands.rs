//! The effect of each call of the application in each state.

use super::{
    Registered, Transactions,
    command::{TransactionApi, TransactionCommand},
    ending::JobKind,
    error::{TransactionError, TransactionResult},
    state::TransactionState,
};
use crate::{
    cluster::part::Need,
    completion::Completion,
    error::{Error, ErrorKind},
    machine::Instant,
    message::Broadcast,
    produce::purge::Purge,
};

use TransactionState::{
    AbortNotAcked, AbortableError, Aborting, BeginAbort, BeginCommit, CommitNotAcked, Committing, FatalError,
    InTransaction, Init, Ready, ReadyNotAcked, WaitProducerId,
};

impl Transactions {
    /// Handles a command of the application.
    pub(crate) fn handle_command(&mut self, now: Instant, command: TransactionCommand) {
        self.take_news(now);
        match command {
            TransactionCommand::Init(done) => self.init(now, done),
            TransactionCommand::Begin(done) => {
                let result = self.begin(now);
                done.complete(result);
            }
            TransactionCommand::SendOffsets(offsets, done) => {
                match self.check(TransactionApi::SendOffsets, |state| state == InTransaction) {
                    Ok(()) => self.queue_offsets(now, offsets, done),
                    Err(error) => done.complete(Err(error)),
                }
            }
            TransactionCommand::BeginCommit(done) => {
                let result = self.begin_commit(now);
                done.complete(result);
            }
            TransactionCommand::Commit(done) => self.end(now, true, done),
            TransactionCommand::BeginAbort(done) => {
                let result = self.begin_abort(now);
                done.complete(result);
            }
            TransactionCommand::Abort(done) => self.end(now, false, done),
            TransactionCommand::Acknowledge => {
                if matches!(self.state, ReadyNotAcked | CommitNotAcked | AbortNotAcked) {
                    self.go(now, Ready);
                }
            }
        }
    }

    /// Error: the state does not allow the call.
    fn check(
        &self,
        api: TransactionApi,
        allowed: impl FnOnce(TransactionState) -> bool,
    ) -> TransactionResult {
        if allowed(self.state) {
            return Ok(());
        }
        let name = api.name();
        let next = match self.state {
            AbortableError | FatalError => {
                let closed = TransactionError::closed();
                return Err(self.error.clone().unwrap_or(closed));
            }
            Init => "call init_transactions first",
            WaitProducerId | ReadyNotAcked => "call init_transactions again first",
            Ready if api == TransactionApi::Init => "the producer is ready; call begin_transaction",
            Ready => "call begin_transaction first",
            InTransaction => "a transaction is open; commit or abort it first",
            BeginCommit | Committing | CommitNotAcked => "call commit_transaction again first",
            BeginAbort | Aborting | AbortNotAcked => "call abort_transaction again first",
        };
        Err(TransactionError::state(format!("{name} in state {}: {next}", self.state.name())))
    }

    fn init(&mut self, now: Instant, done: Completion<TransactionResult>) {
        let allowed = |state| matches!(state, Init | WaitProducerId | ReadyNotAcked);
        match (self.check(TransactionApi::Init, allowed), self.state) {
            (Err(error), _) => done.complete(Err(error)),
            (Ok(()), ReadyNotAcked) => done.complete(Ok(())),
            (Ok(()), state) => {
                self.done = Some(done);
                if state == Init {
                    self.go(now, WaitProducerId);
                    self.start_job(JobKind::Init);
                }
            }
        }
    }

    fn begin(&mut self, now: Instant) -> TransactionResult {
        self.check(TransactionApi::Begin, |state| state == Ready)?;
        (self.error, self.clock, self.registered) = (None, None, Registered::Nothing);
        self.aborts_early = false;
        let is_implicit = self.is_implicit_possible();
        self.shared.begin(is_implicit, is_implicit && !self.markers.is_over());
        self.go(now, InTransaction);
        self.producer.begin_transaction();
        if is_implicit && self.is_epoch_used && self.job.is_none() {
            self.start_renewal();
        }
        self.wake_senders();
        Ok(())
    }

    fn begin_commit(&mut self, now: Instant) -> TransactionResult {
        let allowed = |state| matches!(state, InTransaction | BeginCommit | Committing | CommitNotAcked);
        self.check(TransactionApi::Commit, allowed)?;
        if self.state == InTransaction {
            self.go(now, BeginCommit);
        }
        if self.state == BeginCommit {
            // The caller has ended the linger.
            self.needs.push_back(Need::Broadcast(Broadcast::Flush));
        }
        Ok(())
    }

    /// Ends the transaction of a commit as soon as its last message is reported. The call that waits for the reports would do
    /// that, too, but its thread would have to wake up first.
    pub(super) fn continue_commit(&mut self, now: Instant) {
        if self.state == BeginCommit && self.ending.is_none() && self.producer.queued_messages() == 0 {
            self.ending = Some(true);
            self.check_complete(now);
        }
    }

    fn begin_abort(&mut self, now: Instant) -> TransactionResult {
        let allowed =
            |state| matches!(state, InTransaction | AbortableError | BeginAbort | Aborting | AbortNotAcked);
        self.check(TransactionApi::Abort, allowed)?;
        if matches!(self.state, InTransaction | AbortableError) {
            self.go(now, BeginAbort);
            self.registering.drop_waiting();
            let detail = "the transaction is aborted";
            self.fail_offsets(&TransactionError::state(detail));
            self.needs.push_back(Need::Purge(Purge::QUEUE));
        }
        Ok(())
    }

    /// Ends the transaction, after all messages have been reported.
    fn end(&mut self, now: Instant, commit: bool, done: Completion<TransactionResult>) {
        let (api, begun, ended) = if commit {
            (TransactionApi::Commit, [BeginCommit, Committing], CommitNotAcked)
        } else {
            (TransactionApi::Abort, [BeginAbort, Aborting], AbortNotAcked)
        };
        if let Err(error) = self.check(api, |state| begun.contains(&state) || state == ended) {
            return done.complete(Err(error));
        }
        if self.state == ended {
            return done.complete(Ok(()));
        }
        let left = self.producer.queued_messages();
        if self.state == begun[0] && left > 0 {
            let detail = format!("{}: {left} messages have no delivery report yet", api.name());
            return done.complete(Err(TransactionError::Retriable(Error::new(ErrorKind::TimedOut, detail))));
        }
        self.done = Some(done);
        if self.state == begun[0] {
            self.ending = Some(commit);
            if commit {
                self.check_complete(now);
            }
        }
    }

    /// Compares the messages that were reported as persisted with all others. A commit without some of them would lose these.
    fn check_complete(&mut self, now: Instant) {
        let (persisted, failed) = self.shared.counts();
        if failed > 0 {
            let all = persisted + failed;
            let detail =
                format!("{failed} of the transaction's {all} messages were not delivered; see their reports");
            self.fail(now, Error::new(ErrorKind::Inconsistent, detail));
        }
    }
}
