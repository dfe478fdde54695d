//! The call that runs, and the owner of the open transaction, who must end it.
//!
//! ```text
//!   Nobody ── begin ──► Application ── gives it up ──► Producer(end) ── the end is done ──► Nobody
//!     └── begin times out ──► Unseen ── begin again ──► Application
//! ```
//!
//! The states of [`super::state`] are those of the brokers' transaction. This is the application's knowledge of it, which
//! several threads share.
//!
//! # Pitfalls
//!
//! - A thread that finds nothing to resume takes the transaction as committed. An end that runs in another thread is unfinished,
//!   and so is one that could not start beside another call (`end_that_could_not_start_is_requested_until_it_is_done`).
//! - A commit that fails is followed by an abort. If that times out, its success is the commit's failure
//!   (`abort_after_a_failed_commit_returns_the_failure`).
//! - An end must not hit the transaction of another thread that began meanwhile. What is unfinished is found and started under one
//!   lock, and a commit becomes an abort without a gap (`calls_beside_others_neither_lose_nor_end_transactions`).

use super::{
    api::{FunctionNames, TransactionApi},
    error::{TransactionError, TransactionResult},
};
use crate::error::{Error, ErrorKind, NextCall};

/// The call that runs, or that timed out and must be called again, and the owner of the open transaction.
#[derive(Debug, Default)]
pub(crate) struct CurrentCall {
    api: Option<TransactionApi>,
    is_running: bool,
    owner: Owner,
    /// The names in the texts of errors.
    pub(crate) names: FunctionNames,
    /// The failure of the last transaction's commit, if a resumed call found it. Other threads may wait for it, too.
    failure: Option<TransactionError>,
}

/// The one who must end the open transaction.
#[derive(Debug, Default)]
enum Owner {
    /// No transaction is open.
    #[default]
    Nobody,
    /// `begin` timed out: a transaction may be open of which the application does not know.
    Unseen,
    /// The application commits or aborts it.
    Application,
    /// The application has given the transaction up, and does not call again: this end is requested. The failure is that of the
    /// commit which led to an abort.
    Producer { end: TransactionApi, failure: Option<TransactionError> },
}

impl CurrentCall {
    /// Returns true if no call runs or must be continued.
    pub(crate) const fn is_free(&self) -> bool {
        self.api.is_none()
    }

    /// Returns true if a transaction may be open of which the application does not know.
    pub(crate) const fn is_unseen(&self) -> bool {
        matches!(self.owner, Owner::Unseen)
    }

    /// Starts a call. Error: another one runs, or must be continued first.
    pub(crate) fn start(&mut self, api: TransactionApi) -> TransactionResult {
        // Whoever has given a transaction up does not call its commit or abort again.
        let is_given_up = matches!(self.owner, Owner::Producer { .. } | Owner::Unseen);
        let refuse = |kind, detail| {
            let error = Error::new(kind, detail);
            let error = if is_given_up { error.with_next_call(NextCall::ResumeTransaction) } else { error };
            Err(TransactionError::Retriable(error))
        };
        let names = self.names;
        match self.api {
            Some(running) if running != api => {
                let detail = if self.is_running {
                    format!("{} is in progress; call {} after it", running.name_in(names), api.name_in(names))
                } else {
                    let (name, next) = (running.name_in(names), names.continue_with(running));
                    match name == next {
                        true => format!("{name} timed out and is not finished; call {name} again first"),
                        false => format!("{name} timed out and is not finished; call {next} first"),
                    }
                };
                return refuse(ErrorKind::Conflict, detail);
            }
            Some(_) if self.is_running => {
                let detail = format!("{} is in progress in another thread", api.name_in(names));
                return refuse(ErrorKind::PreviousInProgress, detail);
            }
            _ => {}
        }
        if let Owner::Producer { end, .. } = &self.owner
            && *end != api
        {
            let detail =
                format!("{} has not started, because another call was in progress", end.name_in(names));
            return refuse(ErrorKind::Conflict, format!("{detail}; resume it first"));
        }
        (self.api, self.is_running) = (Some(api), true);
        Ok(())
    }

    /// The application gives the open transaction up, and its end starts. Error: it can't start now, and stays requested.
    pub(crate) fn give_up(&mut self, end: TransactionApi) -> TransactionResult {
        self.owner = Owner::Producer { end, failure: None };
        self.start(end)
    }

    /// Returns the call that must be continued, or the end that is requested.
    pub(crate) fn unfinished(&self) -> Option<TransactionApi> {
        let late = self.api.filter(|_| !self.is_running);
        late.or(match self.owner {
            Owner::Producer { end, .. } => Some(end),
            Owner::Unseen => Some(TransactionApi::Abort),
            Owner::Nobody | Owner::Application => None,
        })
    }

    /// Returns true if the transaction was dropped, and nothing completes its abort at the moment.
    pub(crate) fn is_dropped(&self) -> bool {
        let is_requested =
            matches!(&self.owner, Owner::Producer { end: TransactionApi::Abort, failure: None });
        is_requested && self.unfinished() == Some(TransactionApi::Abort)
    }

    /// Starts what is unfinished. Returns `None` if nothing is. Error: as those of [`CurrentCall::start`], or the failure of the last
    /// transaction's commit.
    pub(crate) fn resume(&mut self) -> TransactionResult<Option<TransactionApi>> {
        match (self.unfinished(), &self.failure) {
            (Some(api), _) => self.start(api).map(|()| Some(api)),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Ok(None),
        }
    }

    /// The commit that runs has failed, and becomes an abort.
    pub(crate) fn abort_instead(&mut self, failure: TransactionError) {
        self.api = Some(TransactionApi::Abort);
        self.owner = Owner::Producer { end: TransactionApi::Abort, failure: Some(failure) };
    }

    /// Ends the call that runs, and returns its result for the application.
    pub(crate) fn end(&mut self, result: TransactionResult, is_resumed: bool) -> TransactionResult {
        let Some(api) = self.api else { return result };
        self.release(api.is_resumable() && matches!(&result, Err(error) if error.is_retriable()));
        match (api, &result) {
            (TransactionApi::Begin, Ok(())) => (self.owner, self.failure) = (Owner::Application, None),
            (TransactionApi::Commit, Ok(())) => self.owner = Owner::Nobody,
            (TransactionApi::Abort, Ok(())) => {
                if let Owner::Producer { failure: Some(failure), .. } = std::mem::take(&mut self.owner) {
                    self.failure = is_resumed.then(|| failure.clone());
                    return Err(failure);
                }
            }
            // No end helps any more. The producer is closed a moment later, with the same error.
            (_, Err(fatal @ TransactionError::Fatal(_))) => {
                (self.owner, self.failure) = (Owner::Nobody, Some(fatal.clone()));
            }
            // Nothing is open: the begin that timed out was refused, too.
            (TransactionApi::Abort, Err(TransactionError::Refused(error)))
                if self.is_unseen() && error.kind() == ErrorKind::State =>
            {
                self.owner = Owner::Nobody;
            }
            _ => {}
        }
        result
    }

    /// The application does not wait any more for the call that runs.
    pub(crate) fn abandon(&mut self) {
        let Some(api) = self.api else { return };
        let is_open = matches!(self.owner, Owner::Application | Owner::Producer { .. });
        if api == TransactionApi::Begin && !is_open {
            self.owner = Owner::Unseen;
        }
        // With an open transaction, the answer to `init_transactions` is known.
        let is_known = api == TransactionApi::Init && is_open;
        self.release(api.is_resumable() && !is_known);
    }

    fn release(&mut self, may_continue: bool) {
        self.is_running = false;
        if !may_continue {
            self.api = None;
        }
    }
}
