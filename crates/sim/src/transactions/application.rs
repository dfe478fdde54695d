//! A transactional producer and its application, which runs one step after the other: it begins a transaction, sends,
//! adds the offsets of the records that it has copied, and commits or aborts. Its calls may time out, and it repeats
//! them.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_core::{
    machine::Instant,
    produce::{
        shared::ProducerShared,
        transaction::{
            api::TransactionApi,
            error::{TransactionError, TransactionResult},
        },
    },
    rng::Rng,
    txn::{call::TransactionCalls, command::TransactionOffsets},
};

use super::copier::Copier;
use crate::workload::Reports;

/// An instance of an application: a process with a producer, and a consumer if it copies.
#[derive(Debug)]
pub(super) struct Application {
    /// Its `transactional.id`.
    pub(super) slot: usize,
    /// The client's index in the world.
    pub(super) client: usize,
    pub(super) producer: Arc<ProducerShared>,
    pub(super) reports: Arc<Reports>,
    pub(super) calls: TransactionCalls,
    pub(super) copier: Option<Copier>,
    pub(super) manners: Manners,
    pub(super) state: State,
    /// The call in progress.
    pub(super) running: Option<Running>,
    /// The open transaction's index.
    pub(super) transaction: Option<usize>,
    /// The number of accepted records.
    pub(super) sent: u64,
    /// The times at which it began to obtain its producer ID, and at which it had it.
    pub(super) started: Instant,
    pub(super) ready: Option<Instant>,
    /// Its first producer ID and epoch. Those of a later instance are higher.
    pub(super) identity: Option<(i64, i16)>,
    /// The time at which it failed permanently, or its process died.
    pub(super) ended: Option<Instant>,
    /// Its host sleeps until then.
    pub(super) frozen_until: Instant,
    /// Transactions that it has committed since the faults ended.
    pub(super) calm_commits: u64,
}

/// The next step of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting,
    /// It begins the next transaction at this time.
    Resting(Instant),
    Beginning,
    /// It sends this number of records, and ends the transaction at this time.
    Working(u64, Instant),
    SendingOffsets,
    Committing,
    Aborting,
    /// It failed for good.
    Failed,
    /// Its process has ended.
    Gone,
}

/// How the applications of a world behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// The largest number of records of a transaction.
    pub(super) records: u64,
    /// The longest time for which a transaction stays open before it is ended.
    pub(super) thinks: Duration,
    /// The longest pause between transactions.
    pub(super) rests: Duration,
    /// The percentage of transactions that the application aborts for its own reasons.
    pub(super) abort_percent: u64,
    /// The timeout of its calls.
    pub(super) timeout: Duration,
}

impl Manners {
    pub(super) fn draw(rng: &mut Rng, transaction_timeout: Duration) -> Self {
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let late = 3 * transaction_timeout.as_millis() as u64 / 2;
        Self {
            records: pick(&[1, 3, 10, 30]),
            thinks: Duration::from_millis(pick(&[0, 0, 20, 300, late])),
            rests: Duration::from_millis(pick(&[0, 0, 100, 1_000])),
            abort_percent: pick(&[0, 10, 50]),
            timeout: Duration::from_millis(pick(&[50, 500, 5_000, 30_000])),
        }
    }

    /// Never late.
    pub(super) fn prompt(self) -> Self {
        let thinks = self.thinks.min(Duration::from_millis(20));
        Self { thinks, rests: Duration::from_millis(50), timeout: Duration::from_secs(30), ..self }
    }
}

/// A call in progress.
pub(super) struct Running {
    api: TransactionApi,
    future: Pin<Box<dyn Future<Output = TransactionResult> + Send>>,
    timeout: Duration,
    deadline: Instant,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("api", &self.api).finish_non_exhaustive()
    }
}

impl Application {
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Failed | State::Gone)
    }

    pub(super) const fn is_calling(&self) -> bool {
        self.running.is_some()
    }

    /// Starts a call.
    pub(super) fn call(&mut self, now: Instant, api: TransactionApi, offsets: Option<TransactionOffsets>) {
        let calls = self.calls.clone();
        let timeout = self.manners.timeout;
        // A call without requests waits for a thread only.
        let timeout =
            if api == TransactionApi::Begin { timeout.max(Duration::from_secs(10)) } else { timeout };
        let future: Pin<Box<dyn Future<Output = TransactionResult> + Send>> = match (api, offsets) {
            (TransactionApi::Init, _) => Box::pin(async move { calls.init().await }),
            (TransactionApi::Begin, _) => Box::pin(async move { calls.begin().await }),
            (TransactionApi::Commit, _) => Box::pin(async move { calls.commit().await }),
            (TransactionApi::Abort, _) => Box::pin(async move { calls.abort().await }),
            (TransactionApi::SendOffsets, offsets) => {
                let offsets = offsets.map(|offsets| TransactionOffsets { timeout, ..offsets });
                Box::pin(async move {
                    match offsets {
                        Some(offsets) => calls.send_offsets(offsets).await,
                        None => Ok(()),
                    }
                })
            }
        };
        self.running = Some(Running { api, future, timeout, deadline: now + timeout });
    }

    /// Returns the result of the call in progress if it has one, or if its timeout has passed.
    pub(super) fn result(&mut self, now: Instant) -> Option<(TransactionApi, TransactionResult)> {
        let running = self.running.as_mut()?;
        let api = running.api;
        let polled = running.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let result = match polled {
            Poll::Ready(result) => result,
            // The cluster actor ends this call itself.
            Poll::Pending if running.deadline <= now && api != TransactionApi::SendOffsets => {
                self.running = None;
                Err(self.calls.timed_out(api))
            }
            Poll::Pending => return None,
        };
        self.running = None;
        Some((api, result))
    }

    /// Returns the call in progress if it should have ended by itself.
    pub(super) fn overdue(&self, now: Instant) -> Option<TransactionApi> {
        const LATE: Duration = Duration::from_millis(50);
        let running = self.running.as_ref()?;
        // The client counts from the moment at which it takes the call, which a suspended process does later. The application
        // ends the other calls.
        let due = running.deadline.max(self.frozen_until + running.timeout);
        (running.api == TransactionApi::SendOffsets && due + LATE < now).then_some(running.api)
    }

    /// Drops the call in progress: the process has ended.
    pub(super) fn drop_call(&mut self) {
        self.running = None;
    }
}

/// Returns the variant's name and the error, for messages.
pub(super) fn describe(error: &TransactionError) -> String {
    let kind = match error {
        TransactionError::Retriable(_) => "retriable",
        TransactionError::Abort(_) => "requires an abort",
        TransactionError::Fatal(_) => "fatal",
        TransactionError::Refused(_) => "refused",
    };
    format!("{kind}: {error}")
}
