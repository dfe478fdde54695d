//! The calls of the application: one at a time, each of which may time out and be called again.
//!
//! ```text
//!   TransactionCalls::start(api) ──► Call ── run: accept no more, await all reports, ask the coordinator ──► end
//! ```
//!
//! A call is a command to the cluster actor and a future of its result. The deadline is the caller's: it drops the
//! future and returns [`TransactionCalls::timed_out`]. The cluster actor continues meanwhile, and the same call
//! continues at the same step. Until then other calls are refused, because they could contradict a step whose outcome
//! is open. `current` has the rules.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use ottla_protocol::error_code::ErrorCode;

use super::command::{TransactionCommand, TransactionOffsets};
use crate::{
    completion::{Completion, completion},
    error::{Error, ErrorKind},
    produce::{
        record::SendError,
        shared::ProducerShared,
        transaction::{
            api::TransactionApi,
            error::{TransactionError, TransactionResult},
            shared::TransactionShared,
            state::TransactionState,
        },
    },
    waiters::Waiter,
    wake::WakeHandle,
};

/// The way of transactional commands to the cluster actor.
pub trait TransactionCommands: fmt::Debug + Send + Sync {
    /// Appends a command, and wakes the actor.
    fn push(&self, command: TransactionCommand);

    /// Appends a command that the actor needs to see only before the next one.
    fn push_quietly(&self, command: TransactionCommand);

    /// Lets the actor look for a failure that was noted.
    fn announce_failure(&self);

    /// Returns the handle that wakes the actor.
    fn wake_handle(&self) -> &WakeHandle;
}

/// The transactional functions of a producer.
#[derive(Clone, Debug)]
pub struct TransactionCalls {
    producer: Arc<ProducerShared>,
    shared: Arc<TransactionShared>,
    commands: Arc<dyn TransactionCommands>,
}

impl TransactionCalls {
    /// Returns the functions of a producer. Error: it has no `transactional.id`.
    ///
    /// The texts of errors have librdkafka's names, unless [`TransactionShared::set_names`] chose others.
    pub fn new(
        producer: &Arc<ProducerShared>,
        commands: Arc<dyn TransactionCommands>,
    ) -> TransactionResult<Self> {
        let Some(shared) = producer.transactions.clone() else {
            let detail = "set transactional.id to use transactions";
            return Err(TransactionError::Refused(Error::new(ErrorKind::NotConfigured, detail)));
        };
        Ok(Self { producer: Arc::clone(producer), shared, commands })
    }

    /// Returns the state.
    pub fn state(&self) -> TransactionState {
        self.shared.state()
    }

    /// Returns the name of a function in the texts of errors.
    pub fn name_of(&self, api: TransactionApi) -> &'static str {
        api.name_in(self.shared.names())
    }

    /// Returns `transaction.timeout.ms`.
    pub fn transaction_timeout(&self) -> Duration {
        self.producer.settings.transaction_timeout
    }

    /// Makes the open transaction abortable, because the application found a reason.
    pub fn fail(&self, error: Error) {
        self.shared.note_failure(TransactionError::Abort(error));
        // The cluster actor reads the failure when it runs.
        self.commands.announce_failure();
    }

    /// Starts a call. Error: another one runs, or must be continued first.
    pub fn start(&self, api: TransactionApi) -> TransactionResult<Call<'_>> {
        self.check_not_closed()?;
        let mut current = self.shared.call.lock();
        let is_new = current.is_free();
        current.start(api)?;
        Ok(self.started(api, is_new, false))
    }

    /// Commits or aborts the open transaction for an owner who does not call again. Error: as those of
    /// [`TransactionCalls::start`]; the end stays requested, and [`TransactionCalls::resume`] starts it.
    pub fn give_up(&self, end: TransactionApi) -> TransactionResult<Call<'_>> {
        self.check_not_closed()?;
        let mut current = self.shared.call.lock();
        let is_new = current.is_free();
        current.give_up(end)?;
        Ok(self.started(end, is_new, false))
    }

    /// Starts the call that timed out, or the end that is requested. Returns `None` if there is none. Error: as those of
    /// [`TransactionCalls::start`], or the reason for which a resumed commit failed, until the next transaction begins.
    pub fn resume(&self) -> TransactionResult<Option<Call<'_>>> {
        self.check_not_closed()?;
        let mut current = self.shared.call.lock();
        let is_new = current.is_free();
        let resumed = current.resume()?;
        Ok(resumed.map(|api| self.started(api, is_new, true)))
    }

    /// Starts the abort that is requested for a transaction that was dropped. Returns `None` if there is none; the end of a
    /// transaction whose commit was called is not continued here, because its outcome belongs to that call.
    pub fn resume_dropped(&self) -> TransactionResult<Option<Call<'_>>> {
        self.check_not_closed()?;
        let mut current = self.shared.call.lock();
        if !current.is_dropped() {
            return Ok(None);
        }
        let is_new = current.is_free();
        current.start(TransactionApi::Abort)?;
        Ok(Some(self.started(TransactionApi::Abort, is_new, true)))
    }

    fn check_not_closed(&self) -> TransactionResult {
        self.producer.check_not_closed().map_err(|error| match error {
            SendError::Fatal(error) => TransactionError::Fatal(error),
            _ => TransactionError::closed(),
        })
    }

    /// Returns the call that has started, while the lock of the current call is held.
    fn started(&self, api: TransactionApi, is_new: bool, is_resumed: bool) -> Call<'_> {
        if is_new {
            self.shared.forget_refusals();
        }
        self.shared.set_wake(self.commands.wake_handle());
        // Before the state changes, so that all messages leave at once then. An abort purges them instead.
        let flushing = (api == TransactionApi::Commit).then(|| Flushing::start(&self.producer));
        Call { calls: self, api, is_over: false, is_resumed, flushing }
    }

    /// Obtains the producer ID, and ends what an earlier producer of this `transactional.id` left. Resumable.
    pub async fn init(&self) -> TransactionResult {
        let call = self.start(TransactionApi::Init)?;
        let result = call.ask(TransactionCommand::Init).await;
        call.end(result)
    }

    /// Begins a transaction. Sends no request. Resumable.
    pub async fn begin(&self) -> TransactionResult {
        let call = self.start(TransactionApi::Begin)?;
        // Nobody changes that while this call runs.
        let is_again = self.shared.call.lock().is_unseen();
        let command = if is_again { TransactionCommand::ContinueBegin } else { TransactionCommand::Begin };
        let result = call.ask(command).await;
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
        let name = api.name_in(self.shared.names());
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
    /// True if the application waits for the result of an earlier call.
    is_resumed: bool,
    flushing: Option<Flushing>,
}

impl Call<'_> {
    /// Returns the function.
    pub const fn api(&self) -> TransactionApi {
        self.api
    }

    /// Commits, aborts or initialises. An application whose reports are served by its own thread must serve them meanwhile, and
    /// poll the future again after each.
    pub async fn run(&self) -> TransactionResult {
        let mut ended = pin!(self.ask(match self.api {
            TransactionApi::Init => TransactionCommand::Init,
            TransactionApi::Abort => TransactionCommand::Abort,
            _ => TransactionCommand::Commit,
        }));
        let mut waiter = Waiter::default();
        std::future::poll_fn(|context| {
            let result = ended.as_mut().poll(context);
            if result.is_pending() && self.calls.producer.keeps_charge() {
                // The cluster actor does not notice that the application has taken the last report.
                let budget = &self.calls.producer.budget;
                budget.register(&mut waiter, context.waker());
                if budget.messages() == 0 {
                    self.calls.shared.continue_end();
                }
            }
            result
        })
        .await
    }

    /// Makes an abort of a commit with this result, if that requires one. The abort returns the commit's error when it
    /// succeeds. Returns false otherwise.
    pub fn abort_instead(&mut self, result: &TransactionResult) -> bool {
        let Err(failure @ TransactionError::Abort(_)) = result else { return false };
        if self.api != TransactionApi::Commit {
            return false;
        }
        self.calls.shared.call.lock().abort_instead(failure.clone());
        self.calls.shared.forget_refusals();
        (self.api, self.flushing) = (TransactionApi::Abort, None);
        true
    }

    /// Ends the call because its timeout has passed, and returns the error. It must be called again.
    pub fn time_out(self) -> TransactionError {
        self.calls.timed_out(self.api)
    }

    /// Ends the call with its result, and returns that. After a retriable error it must be called again, unless it left nothing
    /// behind.
    pub fn end(mut self, result: TransactionResult) -> TransactionResult {
        self.is_over = true;
        if result.is_ok() {
            // The next call needs that, or the next statistics. It may start as soon as this one has ended.
            self.calls.commands.push_quietly(TransactionCommand::Acknowledge);
        }
        self.calls.shared.call.lock().end(result, self.is_resumed)
    }

    fn ask<C>(&self, command: C) -> impl Future<Output = TransactionResult> + Send + use<C>
    where
        C: FnOnce(Completion<TransactionResult>) -> TransactionCommand,
    {
        let (done, waiting) = completion();
        self.calls.commands.push(command(done));
        async move { waiting.await.unwrap_or_else(|| Err(TransactionError::closed())) }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.calls.shared.call.lock().abandon();
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

    use TransactionApi::{Abort, Begin, Commit, Init, SendOffsets};

    use super::*;
    use crate::{
        cluster::command::{Command, CommandQueue, CommandReader},
        error::NextCall,
        produce::{report::NoReports, settings::ProducerSettings},
        rng::Rng,
        wake::WakeHandle,
    };

    /// The functions, and the reading end of their commands.
    struct Calls {
        calls: TransactionCalls,
        reader: CommandReader,
    }

    impl std::ops::Deref for Calls {
        type Target = TransactionCalls;

        fn deref(&self) -> &TransactionCalls {
            &self.calls
        }
    }

    fn calls() -> Calls {
        let settings = ProducerSettings { transactional_id: Some("x".into()), ..ProducerSettings::default() };
        let producer = Arc::new(ProducerShared::new(settings, Arc::new(NoReports), Rng::from_seed(1)));
        let (commands, reader) = CommandQueue::new(WakeHandle::noop());
        Calls { calls: TransactionCalls::new(&producer, commands).expect("it is transactional"), reader }
    }

    /// Takes the next command, which must be one of a transaction.
    fn command(calls: &Calls) -> TransactionCommand {
        let Some(Command::Transaction(command)) = calls.reader.pop() else { panic!("a command") };
        command
    }

    fn refusal(calls: &Calls, api: TransactionApi) -> (ErrorKind, bool) {
        let error = calls.start(api).map(drop).expect_err("another call is in progress");
        (error.kind(), error.is_retriable())
    }

    #[test]
    fn fatal_end_leaves_nothing_to_end_and_is_the_result_of_others() {
        let calls = calls();
        let begin = calls.start(Begin).expect("nothing else runs");
        begin.end(Ok(())).expect("it began");
        let fatal = TransactionError::Fatal(Error::new(ErrorKind::Fenced, ""));
        let commit = calls.give_up(Commit).expect("nothing else runs");
        assert_eq!(commit.end(Err(fatal.clone())), Err(fatal.clone()));
        assert_eq!(calls.resume().map(|_| ()), Err(fatal));
        assert!(calls.start(Begin).is_ok(), "the cluster actor returns the error");
    }

    #[test]
    fn one_call_runs_at_a_time_and_one_that_timed_out_must_be_continued() {
        let calls = calls();
        let commit = calls.start(Commit).expect("nothing else runs");
        assert_eq!(refusal(&calls, Commit), (ErrorKind::PreviousInProgress, true));
        assert_eq!(refusal(&calls, Abort), (ErrorKind::Conflict, true));
        assert_eq!(resumed(&calls), None, "it still runs");
        drop(commit);
        assert_eq!(resumed(&calls), Some(Commit));
        assert_eq!(refusal(&calls, Abort), (ErrorKind::Conflict, true));
        let commit = calls.start(Commit).expect("it continues");
        assert_eq!(commit.end(Ok(())), Ok(()));
        assert!(matches!(command(&calls), TransactionCommand::Acknowledge));
        drop(calls.start(SendOffsets).expect("nothing is left over"));
        assert!(calls.resume().unwrap().is_none(), "its attempts continue, not the call");
        let commit = calls.start(Commit).expect("nothing is left over");
        assert_eq!(commit.end(Err(failed())), Err(failed()));
        assert!(calls.start(Abort).is_ok());
    }

    fn failed() -> TransactionError {
        TransactionError::Abort(Error::new(ErrorKind::Inconsistent, ""))
    }

    /// Starts a call and ends it with a result. Returns the result for the application.
    fn made(calls: &Calls, api: TransactionApi, result: TransactionResult) -> TransactionResult {
        calls.start(api).expect("nothing else runs").end(result)
    }

    /// Returns the call that is resumed, without running it.
    fn resumed(calls: &Calls) -> Option<TransactionApi> {
        calls.resume().expect("nothing else runs").map(|call| call.api())
    }

    fn refused_end(calls: &Calls, end: TransactionApi) -> ErrorKind {
        calls.give_up(end).map(drop).expect_err("another call is in progress").kind()
    }

    fn state_error() -> TransactionError {
        TransactionError::state("")
    }

    #[test]
    fn end_that_could_not_start_is_requested_until_it_is_done() {
        for between in [Init, Begin] {
            let calls = calls();
            assert_eq!(made(&calls, Begin, Ok(())), Ok(()));
            assert_eq!(resumed(&calls), None, "the transaction has an owner");
            let other = calls.start(between).expect("nothing else runs");
            assert_eq!(refused_end(&calls, Commit), ErrorKind::Conflict);
            let refused = calls.resume().map(drop).expect_err("another call is in progress");
            assert_eq!(
                refused.kind(),
                ErrorKind::Conflict,
                "resuming does not report an end that has not begun"
            );
            drop(other);
            for api in [Begin, Abort, SendOffsets] {
                assert_eq!(refusal(&calls, api), (ErrorKind::Conflict, true), "{api:?} after {between:?}");
            }
            assert_eq!(resumed(&calls), Some(Commit), "after {between:?}");
            let commit = calls.resume().unwrap().expect("it timed out");
            let refused = calls.resume().map(drop).expect_err("it runs in another thread");
            assert_eq!((refused.kind(), refused.is_retriable()), (ErrorKind::PreviousInProgress, true));
            assert_eq!(commit.end(Ok(())), Ok(()));
            assert_eq!(resumed(&calls), None);
        }
    }

    #[test]
    fn call_after_a_transaction_was_given_up_names_what_continues_it() {
        let calls = calls();
        assert_eq!(made(&calls, Begin, Ok(())), Ok(()));
        let next_call = |api| calls.start(api).map(drop).expect_err("an abort is in progress").next_call();
        let abort = calls.give_up(Abort).expect("nothing else runs");
        assert_eq!(next_call(Begin), Some(NextCall::ResumeTransaction), "it runs");
        drop(abort);
        for api in [Begin, SendOffsets, Init] {
            assert_eq!(next_call(api), Some(NextCall::ResumeTransaction), "{api:?}");
        }
        assert_eq!(made(&calls, Abort, Ok(())), Ok(()));
        assert_eq!(made(&calls, Begin, Ok(())), Ok(()), "nothing is left over");
    }

    #[test]
    fn begin_that_timed_out_is_continued_or_aborted() {
        let calls = calls();
        drop(calls.start(Begin).expect("nothing else runs"));
        assert_eq!(resumed(&calls), Some(Abort), "a transaction may be open, and has no owner");
        assert_eq!(made(&calls, Abort, Ok(())), Ok(()));
        assert_eq!(resumed(&calls), None);
        drop(calls.start(Begin).expect("nothing else runs"));
        let mut begin = pin!(calls.begin());
        assert!(begin.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        while let Some(Command::Transaction(command)) = calls.reader.pop() {
            if let TransactionCommand::ContinueBegin(done) = command {
                done.complete(Ok(()));
            }
        }
        assert!(begin.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(resumed(&calls), None, "the transaction has an owner");
        let call = calls.give_up(Abort).expect("nothing else runs");
        assert_eq!(call.end(Ok(())), Ok(()));
        drop(calls.start(Begin).expect("nothing else runs"));
        assert_eq!(made(&calls, Abort, Err(state_error())), Err(state_error()));
        assert_eq!(resumed(&calls), None, "the begin was refused");
    }

    #[test]
    fn begin_beside_an_open_transaction_does_not_endanger_it() {
        let calls = calls();
        assert_eq!(made(&calls, Begin, Ok(())), Ok(()));
        drop(calls.start(Begin).expect("nothing else runs"));
        assert_eq!(resumed(&calls), None, "it is refused, and the other thread's transaction is not aborted");
        drop(calls.start(Init).expect("nothing else runs"));
        assert!(calls.start(SendOffsets).is_ok(), "an open transaction has been initialised");
    }

    #[test]
    fn abort_after_a_failed_commit_returns_the_failure() {
        let calls = calls();
        assert_eq!(made(&calls, Begin, Ok(())), Ok(()));
        let mut commit = calls.give_up(Commit).expect("nothing else runs");
        assert!(!commit.abort_instead(&Ok(())));
        assert!(commit.abort_instead(&Err(failed())));
        assert_eq!(refusal(&calls, Begin), (ErrorKind::Conflict, true), "no other call comes in between");
        drop(commit);
        let abort = calls.resume().unwrap().expect("it timed out");
        assert_eq!(abort.api(), Abort);
        assert_eq!(abort.end(Ok(())), Err(failed()), "the commit did not succeed");
        let again = calls.resume().map(drop).expect_err("another thread waits for the commit");
        assert_eq!(again, failed());
        assert_eq!(made(&calls, Begin, Ok(())), Ok(()));
        assert_eq!(resumed(&calls), None);
        let mut commit = calls.give_up(Commit).expect("nothing else runs");
        assert!(commit.abort_instead(&Err(failed())));
        assert_eq!(commit.end(Ok(())), Err(failed()));
        assert_eq!(resumed(&calls), None, "the owner knows it");
    }

    #[test]
    fn next_call_is_handled_after_the_acknowledgement_of_the_last() {
        let calls = calls();
        assert_eq!(made(&calls, Commit, Ok(())), Ok(()));
        let begin = calls.start(Begin).expect("nothing else runs");
        drop(begin.ask(TransactionCommand::Begin));
        assert!(matches!(command(&calls), TransactionCommand::Acknowledge));
        assert!(matches!(command(&calls), TransactionCommand::Begin(_)));
    }

    #[test]
    fn failed_producer_reports_its_error_to_all_who_resume() {
        let calls = calls();
        calls.producer.close(Some(Error::new(ErrorKind::Fenced, "")));
        for _ in 0..2 {
            assert!(calls.resume().map(drop).expect_err("it failed").is_fatal());
        }
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
        assert!(calls.reader.pop().is_none());
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
