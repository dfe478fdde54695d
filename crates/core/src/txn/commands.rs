//! The effect of each call of the application in each state.

use super::{EpochUse, Registered, Transactions, command::TransactionCommand, ending::JobKind};
use crate::{
    completion::Completion,
    contract::{broker::Broadcast, part::Need, purge::Purge},
    error::{Error, ErrorKind},
    machine::Instant,
    produce::transaction::{
        api::{FunctionNames, TransactionApi},
        error::{TransactionError, TransactionResult},
        state::TransactionState,
    },
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
            TransactionCommand::ContinueBegin(done) => {
                // Nobody else can have begun it: the calls know of no owner.
                let result = if self.state == InTransaction { Ok(()) } else { self.begin(now) };
                done.complete(result);
            }
            TransactionCommand::SendOffsets(offsets, done) => {
                match self.check(TransactionApi::SendOffsets, |state| state == InTransaction) {
                    Ok(()) => self.queue_offsets(now, offsets, done),
                    Err(error) => done.complete(Err(error)),
                }
            }
            TransactionCommand::Commit(done) => {
                let begun = self.begin_commit(now);
                self.await_end(begun, done);
            }
            TransactionCommand::Abort(done) => {
                let begun = self.begin_abort(now);
                self.await_end(begun, done);
            }
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
        let names = self.shared.names();
        let (name, begin) = (api.name_in(names), TransactionApi::Begin.name_in(names));
        let again = |api: TransactionApi| match (names, names.continue_with(api)) {
            (FunctionNames::Rust, next) => format!("call {next} first"),
            (FunctionNames::Librdkafka, next) => format!("call {next} again first"),
        };
        let next = match self.state {
            AbortableError | FatalError => {
                let closed = TransactionError::closed();
                return Err(self.error.clone().unwrap_or(closed));
            }
            Init => "call init_transactions first".to_owned(),
            WaitProducerId | ReadyNotAcked => "call init_transactions again first".to_owned(),
            Ready if api == TransactionApi::Init => format!("the producer is ready; call {begin}"),
            Ready => format!("call {begin} first"),
            InTransaction => "a transaction is open; commit or abort it first".to_owned(),
            BeginCommit | Committing | CommitNotAcked => again(TransactionApi::Commit),
            BeginAbort | Aborting | AbortNotAcked => again(TransactionApi::Abort),
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
        if self.epoch_use.needs_renewal(is_implicit) && self.job.is_none() {
            if let EpochUse::Raised(before) = self.epoch_use {
                // The coordinator repeats the epoch that EndTxn has raised, and refuses a producer that was replaced.
                self.identity = Some(before);
            }
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

    /// Reports the end of a transaction whose end has begun.
    fn await_end(&mut self, begun: TransactionResult, done: Completion<TransactionResult>) {
        match begun {
            Err(error) => done.complete(Err(error)),
            Ok(()) if matches!(self.state, CommitNotAcked | AbortNotAcked) => done.complete(Ok(())),
            Ok(()) => self.done = Some(done),
        }
    }

    /// Ends the transaction of a commit or an abort as soon as its last message is reported. No thread of the application has
    /// to wake up for that.
    pub(super) fn continue_end(&mut self, now: Instant) {
        let commit = match self.state {
            BeginCommit => true,
            BeginAbort => false,
            _ => return,
        };
        if self.ending.is_none() && self.producer.queued_messages() == 0 {
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
