//! Transactions: records and offsets that become visible together, or not at all. `ottla_core::txn` has the behaviour.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Inner, Producer, Topic, max_block::MaxBlock};
use crate::{
    consumer::Consumer,
    wait::{check_may_wait, wait_for},
};
use ottla_core::{
    error::{Error, ErrorKind, NextCall},
    fetch::deliver::Records,
    offsets::committed::GroupOffset,
    produce::{
        record::{Record, SendError},
        transaction::{
            api::TransactionApi,
            error::{TransactionError, TransactionResult},
        },
    },
    txn::{
        call::{Call, TransactionCalls},
        command::{ConsumerGroupMetadata, TransactionOffsets},
    },
};

impl Producer {
    /// Obtains the producer ID of `transactional.id`, fences an earlier producer with the same ID, and ends its transaction.
    /// Call it once, before the first [`Producer::begin`].
    ///
    /// Errors: [`TransactionError::Retriable`] if it is not done after `timeout`; a further call continues.
    /// [`TransactionError::Refused`] with [`ErrorKind::NotConfigured`] without `transactional.id`.
    pub fn init_transactions(&self, timeout: Duration) -> TransactionResult {
        check_may_wait("init_transactions").map_err(TransactionError::Refused)?;
        finish(self.transaction_calls()?.start(TransactionApi::Init)?, timeout)
    }

    /// Does what [`Producer::init_transactions`] does, without blocking; the timeout is `max.block.ms` if that is set. A further
    /// call continues if the future is dropped.
    pub async fn init_transactions_async(&self) -> TransactionResult {
        finish_async(self.transaction_calls()?.start(TransactionApi::Init)?, &self.inner).await
    }

    /// Begins a transaction. It sends no request, and waits for an I/O thread only, and for at most ten seconds for the abort of
    /// a transaction that was dropped. A producer has one transaction at a time.
    ///
    /// Errors: [`TransactionError::Refused`] in the wrong state. [`TransactionError::Retriable`] with
    /// [`ErrorKind::Conflict`] if the end of the last transaction timed out, and with [`ErrorKind::TimedOut`] if the abort
    /// of a transaction that was dropped takes longer: [`TransactionError::next_call`] is
    /// [`NextCall::ResumeTransaction`], for [`Producer::resume_transaction`]. It is [`NextCall::Again`] if no I/O thread has
    /// responded: a further call continues.
    pub fn begin(&self) -> TransactionResult<Transaction<'_>> {
        check_may_wait("begin").map_err(TransactionError::Refused)?;
        let calls = self.transaction_calls()?;
        if let Some(abort) = calls.resume_dropped()? {
            finish(abort, BEGIN_TIMEOUT)?;
        }
        wait_for(calls.begin(), BEGIN_TIMEOUT)
            .unwrap_or_else(|| Err(calls.timed_out(TransactionApi::Begin)))?;
        Ok(Transaction { producer: self, calls, is_over: false })
    }

    /// Does what [`Producer::begin`] does, without blocking.
    pub async fn begin_async(&self) -> TransactionResult<Transaction<'_>> {
        let calls = self.transaction_calls()?;
        if let Some(abort) = calls.resume_dropped()? {
            finish_async(abort, &self.inner).await?;
        }
        calls.begin().await?;
        Ok(Transaction { producer: self, calls, is_over: false })
    }

    /// Continues a commit or an abort that returned [`TransactionError::Retriable`]: it timed out, or another call was in
    /// progress. Does nothing otherwise. The outcome of a commit is open until this succeeds or returns another error.
    ///
    /// After a [`Producer::begin`] that timed out, this aborts the transaction that may have begun.
    ///
    /// Errors: as those of the call that timed out. [`TransactionError::Retriable`] with [`ErrorKind::PreviousInProgress`] while
    /// another thread continues it. After [`TransactionError::Abort`] the transaction was aborted; until the next one begins,
    /// further calls return this error, too.
    pub fn resume_transaction(&self, timeout: Duration) -> TransactionResult {
        check_may_wait("resume_transaction").map_err(TransactionError::Refused)?;
        match self.transaction_calls()?.resume()? {
            Some(call) => finish(call, timeout),
            None => Ok(()),
        }
    }

    /// Does what [`Producer::resume_transaction`] does, without blocking; the timeout is `max.block.ms` if that is set.
    pub async fn resume_transaction_async(&self) -> TransactionResult {
        match self.transaction_calls()?.resume()? {
            Some(call) => finish_async(call, &self.inner).await,
            None => Ok(()),
        }
    }

    fn transaction_calls(&self) -> TransactionResult<TransactionCalls> {
        if !self.inner.client.is_of_this_process() {
            return Err(TransactionError::Refused(Error::new(ErrorKind::Closed, "")));
        }
        TransactionCalls::new(&self.inner.shared, Arc::clone(self.inner.client.commands()) as _)
    }
}

/// Runs a call until its timeout. A commit that is impossible becomes an abort.
fn finish(mut call: Call<'_>, timeout: Duration) -> TransactionResult {
    let start = Instant::now();
    let mut result = wait_for(call.run(), timeout);
    if result.as_ref().is_some_and(|result| call.abort_instead(result)) {
        let left = timeout.saturating_sub(start.elapsed()).max(LEAST_ABORT_TIMEOUT);
        result = wait_for(call.run(), left);
    }
    match result {
        Some(result) => ended(call, result),
        None => Err(timed_out(call)),
    }
}

/// Ends a call. What helps after it: its transaction is consumed, and was aborted if it can't be committed.
fn ended(call: Call<'_>, result: TransactionResult) -> TransactionResult {
    let is_end = call.api() != TransactionApi::Init;
    call.end(result).map_err(|error| match &error {
        TransactionError::Retriable(_) if is_end => error.with_next_call(NextCall::ResumeTransaction),
        TransactionError::Abort(_) => error.with_next_call(NextCall::BeginTransaction),
        _ => error,
    })
}

fn timed_out(call: Call<'_>) -> TransactionError {
    let is_end = call.api() != TransactionApi::Init;
    let error = call.time_out();
    if is_end { error.with_next_call(NextCall::ResumeTransaction) } else { error }
}

/// Does what [`finish`] does, without blocking, until `max.block.ms` if that is set.
async fn finish_async(mut call: Call<'_>, inner: &Inner) -> TransactionResult {
    let mut limit = MaxBlock::new(inner);
    let mut result = limit.run(inner, call.run()).await;
    if result.as_ref().is_some_and(|result| call.abort_instead(result)) {
        result = limit.run(inner, call.run()).await;
    }
    match result {
        Some(result) => ended(call, result),
        None => Err(timed_out(call)),
    }
}

/// `begin` only waits for an I/O thread, which another client's callback may block.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for an abort after a failed commit, at least.
const LEAST_ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// An open transaction: records that are sent, and offsets, become visible to consumers with `isolation.level=read_committed`
/// when it is committed; they never do if it is aborted. [`Producer::begin`] creates it.
///
/// While it is open, [`Producer::send`] and the calls of [`Topic`] send within it, too. A record that fails makes the
/// transaction abortable: [`Transaction::commit`] then aborts it and returns the reason.
///
/// # Drop
///
/// Dropping an open transaction starts its abort and does not wait for it: the next [`Producer::begin`] does, and so does
/// [`Producer::resume_transaction`]. Call [`Transaction::abort`] or [`Transaction::abort_async`] for its outcome. A transaction
/// that is leaked (`mem::forget`) stays open: `begin` refuses, `resume_transaction` has nothing to continue, and it can be
/// aborted no more before the coordinator does so after `transaction.timeout.ms`.
#[must_use = "dropping a transaction aborts it"]
pub struct Transaction<'a> {
    producer: &'a Producer,
    calls: TransactionCalls,
    is_over: bool,
}

impl<'a> Transaction<'a> {
    /// Queues a record for a topic, without blocking. See [`Topic::send`], which does not look the name up each time.
    ///
    /// Error: [`SendError::State`] if the transaction has failed.
    pub fn send(&self, topic: &str, record: Record<'_>) -> Result<(), SendError> {
        self.producer.send(topic, record)
    }

    /// Returns a handle to a topic, for all calls that send.
    pub fn topic(&self, name: &str) -> Topic {
        self.producer.topic(name)
    }

    /// Adds offsets to the transaction: its commit is a commit of the consumer's group, too. An offset is that of the next
    /// record to read. The consumer must not commit by itself (`enable.auto.commit=false`).
    ///
    /// The coordinator refuses the offsets if the group has rebalanced and the consumer does not know it yet
    /// ([`TransactionError::Abort`]). [`Transaction::send_records`] also notices partitions that the consumer gave up since it
    /// returned the records.
    pub fn send_offsets(
        &self,
        consumer: &Consumer,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> TransactionResult {
        self.send_offsets_of(consumer.group_metadata(), &consumer.with_topic_ids(offsets), timeout)
    }

    /// Does what [`Transaction::send_offsets`] does, without blocking.
    pub async fn send_offsets_async(
        &self,
        consumer: &Consumer,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> TransactionResult {
        self.send_for(consumer.group_metadata(), consumer.with_topic_ids(offsets), timeout).await
    }

    /// Does what [`Transaction::send_offsets`] does, for metadata that were taken before.
    pub fn send_offsets_of(
        &self,
        group: ConsumerGroupMetadata,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> TransactionResult {
        check_may_wait("send_offsets").map_err(TransactionError::Refused)?;
        // The cluster actor ends the call after the timeout, with the last reason.
        wait_for(self.send_for(group, offsets.to_vec(), timeout), timeout.saturating_add(GRACE))
            .unwrap_or_else(|| Err(self.calls.timed_out(TransactionApi::SendOffsets)))
    }

    /// Adds the offsets after records that were processed. If the consumer has given up one of their partitions since, another
    /// consumer processes the records again: the transaction must be aborted.
    pub fn send_records(
        &self,
        consumer: &Consumer,
        records: &Records,
        timeout: Duration,
    ) -> TransactionResult {
        let offsets = self.offsets_after(consumer, records)?;
        self.send_offsets(consumer, &offsets, timeout)
    }

    /// Does what [`Transaction::send_records`] does, without blocking.
    pub async fn send_records_async(
        &self,
        consumer: &Consumer,
        records: &Records,
        timeout: Duration,
    ) -> TransactionResult {
        let offsets = self.offsets_after(consumer, records)?;
        self.send_offsets_async(consumer, &offsets, timeout).await
    }

    /// Waits until all records are delivered, then commits.
    ///
    /// Errors: [`TransactionError::Abort`] if the transaction can't be committed: it was aborted, and its input can be
    /// processed again. [`TransactionError::Retriable`] if it is not done after `timeout`: its outcome is open, and
    /// [`Producer::resume_transaction`] continues.
    pub fn commit(self, timeout: Duration) -> TransactionResult {
        self.end(TransactionApi::Commit, timeout)
    }

    /// Does what [`Transaction::commit`] does, without blocking; the timeout is `max.block.ms` if that is set. If the future is
    /// dropped, [`Producer::resume_transaction`] continues.
    pub async fn commit_async(mut self) -> TransactionResult {
        self.is_over = true;
        finish_async(self.calls.give_up(TransactionApi::Commit)?, &self.producer.inner).await
    }

    /// Removes the records of the transaction from the queue, waits for those in flight, and aborts.
    ///
    /// Error: [`TransactionError::Retriable`] if it is not done after `timeout`; [`Producer::resume_transaction`] continues.
    pub fn abort(self, timeout: Duration) -> TransactionResult {
        self.end(TransactionApi::Abort, timeout)
    }

    /// Does what [`Transaction::abort`] does, without blocking; the timeout is `max.block.ms` if that is set. If the future is
    /// dropped, [`Producer::resume_transaction`] continues.
    pub async fn abort_async(mut self) -> TransactionResult {
        self.is_over = true;
        finish_async(self.calls.give_up(TransactionApi::Abort)?, &self.producer.inner).await
    }

    /// Ends the transaction. If that can't start now, or not in a callback, it stays requested.
    fn end(mut self, end: TransactionApi, timeout: Duration) -> TransactionResult {
        self.is_over = true;
        let call = self.calls.give_up(end)?;
        check_may_wait(self.calls.name_of(end)).map_err(TransactionError::Refused)?;
        finish(call, timeout)
    }

    async fn send_for(
        &self,
        group: ConsumerGroupMetadata,
        offsets: Vec<GroupOffset>,
        timeout: Duration,
    ) -> TransactionResult {
        if group.group_id.is_empty() {
            let detail = "send_offsets: the consumer has no group.id";
            return Err(TransactionError::Refused(Error::new(ErrorKind::InvalidArgument, detail)));
        }
        self.calls.send_offsets(TransactionOffsets { offsets, group, timeout }).await
    }

    fn offsets_after(&self, consumer: &Consumer, records: &Records) -> TransactionResult<Vec<GroupOffset>> {
        consumer.offsets_after(records).map_err(|error| {
            self.calls.fail(error.clone());
            TransactionError::Abort(error)
        })
    }
}

/// The blocking call waits this much longer than the client itself, whose error says more.
const GRACE: Duration = Duration::from_secs(1);

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let inner = &self.producer.inner;
        if !inner.client.is_of_this_process() {
            return;
        }
        // Without time, the abort begins all the same: no more records are accepted.
        if let Ok(call) = self.calls.give_up(TransactionApi::Abort) {
            let _ = finish(call, Duration::ZERO);
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("state", &self.calls.state()).finish_non_exhaustive()
    }
}
