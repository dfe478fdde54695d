//! The calls of the application: one at a time, each of which may time out and be called again.
//!
//! ```text
//!   TransactionCalls::start(api) ──► Call ── run: accept no more, await all reports, ask the coordinator ──► end
//! ```
//!
//! A call is a command to the cluster actor and a future of its result. The deadline is the caller's: it drops the
//! future and returns [`TransactionCalls::timed_out`]. The cluster actor continues meanwhile, and the same call
//! continues at the same step. Until then other calls are refused, because they could contradict a step whose outcome
//! is open.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use ottla_protocol::error_code::ErrorCode;

use super::{
    command::{CurrentCall, TransactionApi, TransactionCommand, TransactionOffsets},
    error::{TransactionError, TransactionResult},
    shared::TransactionShared,
    state::TransactionState,
};
use crate::{
    cluster::command::{Command, CommandQueue},
    completion::{Completion, completion},
    error::{Error, ErrorKind},
    produce::{record::SendError, shared::ProducerShared},
};

/// The transactional functions of a producer.
#[derive(Clone, Debug)]
pub struct TransactionCalls {
    producer: Arc<ProducerShared>,
    shared: Arc<TransactionShared>,
    commands: Arc<CommandQueue>,
}

impl TransactionCalls {
    /// Returns the functions of a producer. Error: it has no `transactional.id`.
    pub fn new(producer: &Arc<ProducerShared>, commands: &Arc<CommandQueue>) -> TransactionResult<Self> {
        let Some(shared) = producer.transactions.clone() else {
            let detail = "set transactional.id to use transactions";
            return Err(TransactionError::Refused(Error::new(ErrorKind::NotConfigured, detail)));
        };
        Ok(Self { producer: Arc::clone(producer), shared, commands: Arc::clone(commands) })
    }

    /// Returns the state.
    pub fn state(&self) -> TransactionState {
        self.shared.state()
    }

    /// Returns `transaction.timeout.ms`.
    pub fn transaction_timeout(&self) -> Duration {
        self.producer.settings.transaction_timeout
    }

    /// Returns the call that timed out and must be called again, or the requested end of a transaction that has not started.
    pub fn unfinished(&self) -> Option<TransactionApi> {
        let current = self.shared.call.lock();
        current.requested_end.or(current.api.filter(|_| !current.is_running))
    }

    /// The owner of the open transaction commits or aborts it, and does not call again if another call is in progress:
    /// [`TransactionCalls::unfinished`] returns the end until it has started.
    pub fn request_end(&self, end: TransactionApi) {
        self.shared.call.lock().requested_end = Some(end);
    }

    /// Makes the open transaction abortable, because the application found a reason.
    pub fn fail(&self, error: Error) {
        self.shared.note_failure(TransactionError::Abort(error));
        // The cluster actor reads the failure when it runs.
        self.commands.push(Command::Flush);
    }

    /// Starts a call. Error: another one runs, or must be continued first.
    pub fn start(&self, api: TransactionApi) -> TransactionResult<Call<'_>> {
        if let Err(error) = self.producer.check_not_closed() {
            return Err(match error {
                SendError::Fatal(error) => TransactionError::Fatal(error),
                _ => TransactionError::closed(),
            });
        }
        let mut current = self.shared.call.lock();
        let refuse = |kind, detail| Err(TransactionError::Retriable(Error::new(kind, detail)));
        let is_requested = current.requested_end == Some(api);
        match current.api {
            // The brokers have answered it, because a transaction is open.
            Some(TransactionApi::Init) if is_requested && !current.is_running => {}
            Some(running) if running != api => {
                let detail = if current.is_running {
                    format!("{} is in progress; call {} after it", running.name(), api.name())
                } else {
                    format!("{0} timed out and is not finished; call {0} again first", running.name())
                };
                return refuse(ErrorKind::Conflict, detail);
            }
            Some(_) if current.is_running => {
                let detail = format!("{} is in progress in another thread", api.name());
                return refuse(ErrorKind::PreviousInProgress, detail);
            }
            Some(_) => {}
            None => self.shared.forget_refusals(),
        }
        let requested_end = current.requested_end.filter(|_| !is_requested);
        *current = CurrentCall { api: Some(api), is_running: true, requested_end };
        self.shared.set_wake(self.commands.wake_handle());
        // Before the state changes, so that all messages leave at once then. An abort purges them instead.
        let flushing = (api == TransactionApi::Commit).then(|| Flushing::start(&self.producer));
        Ok(Call { calls: self, api, is_over: false, _flushing: flushing })
    }

    /// Obtains the producer ID, and ends what an earlier producer of this `transactional.id` left. Resumable.
    pub async fn init(&self) -> TransactionResult {
        let call = self.start(TransactionApi::Init)?;
        let result = call.ask(TransactionCommand::Init).await;
        call.end(result)
    }

    /// Begins a transaction. Sends no request.
    pub async fn begin(&self) -> TransactionResult {
        let call = self.start(TransactionApi::Begin)?;
        let result = call.ask(TransactionCommand::Begin).await;
        call.end(result)
    }

    /// Adds offsets to the transaction. Offsets below 0 are left out; without any other there is nothing to do.
    pub async fn send_offsets(&self, mut offsets: TransactionOffsets) -> TransactionResult {
        offsets.offsets.retain(|offset| offset.offset >= 0);
        offsets.timeout = offsets.timeout.min(self.transaction_timeout());
        let call = self.start(TransactionApi::SendOffsets)?;
        let result = call.ask(|done| TransactionCommand::SendOffsets(offsets, done)).await;
        call.end(result)
    }

    /// Delivers all messages of the transaction, then commits it. Resumable.
    pub async fn commit(&self) -> TransactionResult {
        self.end_transaction(TransactionApi::Commit).await
    }

    /// Purges the messages of the transaction, waits for those in flight, then aborts it. Resumable.
    pub async fn abort(&self) -> TransactionResult {
        self.end_transaction(TransactionApi::Abort).await
    }

    async fn end_transaction(&self, api: TransactionApi) -> TransactionResult {
        let call = self.start(api)?;
        let result = call.run().await;
        call.end(result)
    }

    /// Returns the error of a call whose timeout has passed, with the last reason why it did not succeed.
    pub fn timed_out(&self, api: TransactionApi) -> TransactionError {
        let name = api.name();
        let left = self.producer.queued_messages();
        let (count, last) = self.shared.refusals();
        let mut detail = if left > 0 && matches!(api, TransactionApi::Commit | TransactionApi::Abort) {
            format!("{name}: {left} messages have no delivery report yet")
        } else {
            format!("{name}: the brokers have not completed it yet")
        };
        if let Some(last) = last {
            detail += &format!("; {count} attempts failed, last cause: {last}");
            if last.kind() == ErrorKind::Broker(ErrorCode::COORDINATOR_NOT_AVAILABLE) {
                detail += "; if this lasts, the cluster may have fewer brokers than \
                           transaction.state.log.replication.factor";
            }
        }
        TransactionError::Retriable(Error::new(ErrorKind::TimedOut, detail))
    }
}

/// A call that runs. Dropping it without [`Call::end`] means that it timed out.
pub struct Call<'a> {
    calls: &'a TransactionCalls,
    api: TransactionApi,
    is_over: bool,
    _flushing: Option<Flushing>,
}

impl Call<'_> {
    /// Commits or aborts. An application whose reports are served by its own thread must serve them meanwhile, and poll the
    /// future again after each.
    pub async fn run(&self) -> TransactionResult {
        let mut ended = pin!(self.ask(match self.api {
            TransactionApi::Abort => TransactionCommand::Abort,
            _ => TransactionCommand::Commit,
        }));
        std::future::poll_fn(|context| {
            let result = ended.as_mut().poll(context);
            if result.is_pending() && self.calls.producer.keeps_charge() {
                // The cluster actor does not notice that the application has taken the last report.
                let budget = &self.calls.producer.budget;
                budget.register(context.waker());
                if budget.messages() == 0 {
                    self.calls.shared.continue_end();
                }
            }
            result
        })
        .await
    }

    /// Ends the call with its result. After a retriable error it must be called again, unless it left nothing behind.
    pub fn end(mut self, result: TransactionResult) -> TransactionResult {
        self.is_over = true;
        let may_continue = matches!(&result, Err(error) if error.is_retriable()) && self.api.is_resumable();
        self.release(may_continue);
        if self.api == TransactionApi::Begin && result.is_ok() {
            self.calls.shared.call.lock().requested_end = None;
        }
        if result.is_ok() {
            // The next call needs that, or the next statistics.
            self.calls.commands.push_quietly(Command::Transaction(TransactionCommand::Acknowledge));
        }
        result
    }

    fn ask<C>(&self, command: C) -> impl Future<Output = TransactionResult> + Send + use<C>
    where
        C: FnOnce(Completion<TransactionResult>) -> TransactionCommand,
    {
        let (done, waiting) = completion();
        self.calls.commands.push(Command::Transaction(command(done)));
        async move { waiting.await.unwrap_or_else(|| Err(TransactionError::closed())) }
    }

    fn release(&self, may_continue: bool) {
        let mut current = self.calls.shared.call.lock();
        current.is_running = false;
        if !may_continue {
            current.api = None;
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            if self.api == TransactionApi::Begin {
                // It may still begin, and nobody would end it.
                self.calls.request_end(TransactionApi::Abort);
            }
            self.release(self.api.is_resumable());
        }
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("api", &self.api).finish_non_exhaustive()
    }
}

/// Disables the linger for as long as it lives.
struct Flushing(Arc<ProducerShared>);

impl Flushing {
    fn start(producer: &Arc<ProducerShared>) -> Self {
        producer.start_flush();
        Self(Arc::clone(producer))
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        self.0.end_flush();
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::{
        produce::{report::NoReports, settings::ProducerSettings},
        rng::Rng,
        wake::WakeHandle,
    };

    fn calls() -> TransactionCalls {
        let settings = ProducerSettings { transactional_id: Some("x".into()), ..ProducerSettings::default() };
        let producer = Arc::new(ProducerShared::new(settings, Arc::new(NoReports), Rng::from_seed(1)));
        let commands = Arc::new(CommandQueue::new(WakeHandle::noop()));
        TransactionCalls::new(&producer, &commands).expect("it is transactional")
    }

    /// Takes the next command, which must be one of a transaction.
    fn command(calls: &TransactionCalls) -> TransactionCommand {
        let Some(Command::Transaction(command)) = calls.commands.pop() else { panic!("a command") };
        command
    }

    fn refusal(calls: &TransactionCalls, api: TransactionApi) -> (ErrorKind, bool) {
        let error = calls.start(api).map(drop).expect_err("another call is in progress");
        (error.kind(), error.is_retriable())
    }

    #[test]
    fn one_call_runs_at_a_time_and_one_that_timed_out_must_be_continued() {
        use TransactionApi::{Abort, Commit, SendOffsets};
        let calls = calls();
        let commit = calls.start(Commit).expect("nothing else runs");
        assert_eq!(refusal(&calls, Commit), (ErrorKind::PreviousInProgress, true));
        assert_eq!(refusal(&calls, Abort), (ErrorKind::Conflict, true));
        assert_eq!(calls.unfinished(), None, "it still runs");
        drop(commit);
        assert_eq!(calls.unfinished(), Some(Commit));
        assert_eq!(refusal(&calls, Abort), (ErrorKind::Conflict, true));
        let commit = calls.start(Commit).expect("it continues");
        assert_eq!(commit.end(Ok(())), Ok(()));
        assert!(matches!(command(&calls), TransactionCommand::Acknowledge));
        drop(calls.start(SendOffsets).expect("nothing is left over"));
        assert_eq!(calls.unfinished(), None, "its attempts continue, not the call");
        let failed = TransactionError::Abort(Error::new(ErrorKind::Inconsistent, ""));
        let commit = calls.start(Commit).expect("nothing is left over");
        assert_eq!(commit.end(Err(failed.clone())), Err(failed));
        assert!(calls.start(Abort).is_ok());
    }

    #[test]
    fn end_that_could_not_start_is_requested_until_it_has_started() {
        use TransactionApi::{Abort, Begin, Commit, Init};
        let calls = calls();
        drop(calls.start(Begin).expect("nothing else runs"));
        assert_eq!(calls.unfinished(), Some(Abort), "the transaction may begin, and has no owner");
        assert_eq!(calls.start(Begin).expect("nothing else runs").end(Ok(())), Ok(()));
        assert_eq!(calls.unfinished(), None, "the transaction has an owner");

        let init = calls.start(Init).expect("nothing else runs");
        calls.request_end(Commit);
        assert_eq!(refusal(&calls, Commit), (ErrorKind::Conflict, true));
        assert_eq!(calls.unfinished(), Some(Commit));
        drop(init);
        assert_eq!(refusal(&calls, Abort), (ErrorKind::Conflict, true));
        let commit = calls.start(Commit).expect("an open transaction has been initialised");
        assert_eq!(calls.unfinished(), None, "it runs");
        drop(commit);
        assert_eq!(calls.unfinished(), Some(Commit));
    }

    #[test]
    fn result_that_came_too_late_is_not_acknowledged() {
        let calls = calls();
        {
            let mut init = pin!(calls.init());
            assert!(init.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let TransactionCommand::Init(done) = command(&calls) else { panic!("init") };
            done.complete(Ok(()));
        }
        assert!(calls.commands.pop().is_none());
        let late = calls.timed_out(TransactionApi::Init);
        assert!(late.is_retriable() && late.kind() == ErrorKind::TimedOut, "{late}");
    }

    #[test]
    fn time_out_names_the_last_refusal_and_a_likely_cause() {
        let calls = calls();
        for _ in 0..3 {
            calls.shared.note_refusal(Error::broker(ErrorCode::COORDINATOR_NOT_AVAILABLE, None));
        }
        let late = calls.timed_out(TransactionApi::Init).to_string();
        assert!(late.contains("3 attempts failed, last cause: broker returned COORDINATOR_NOT"), "{late}");
        assert!(late.contains("transaction.state.log.replication.factor"), "{late}");
        assert!(late.ends_with("call the same function again"), "{late}");
    }

    #[test]
    fn closed_producer_refuses_calls_and_a_failed_one_names_its_error() {
        let calls = calls();
        calls.producer.close(None);
        let refused = calls.start(TransactionApi::Begin).map(drop).expect_err("it is closed");
        assert_eq!(refused.kind(), ErrorKind::Closed);
        calls.producer.close(Some(Error::new(ErrorKind::Fenced, "")));
        let refused = calls.start(TransactionApi::Begin).map(drop).expect_err("it failed");
        assert_eq!((refused.kind(), refused.is_fatal()), (ErrorKind::Fenced, true));
    }
}
