//! Transactions: records and offsets that become visible together, or not at all. `ottla_core::txn` has the behaviour.

use std::{
    fmt,
    time::{Duration, Instant},
};

use ottla_core::{
    error::{Error, ErrorKind},
    fetch::{committed::GroupOffset, deliver::Records},
    produce::record::{Record, SendError},
    txn::{
        call::TransactionCalls,
        command::{ConsumerGroupMetadata, TransactionApi, TransactionOffsets},
        error::{TransactionError, TransactionResult},
    },
};
use ottla_net::is_io_thread;

use super::{Producer, Topic};
use crate::{
    consumer::Consumer,
    wait::{check_may_wait, wait_for},
};

impl Producer {
    /// Obtains the producer ID of `transactional.id`, fences an earlier producer with the same ID, and ends its transaction.
    /// Call it once, before the first [`Producer::begin`].
    ///
    /// Errors: [`TransactionError::Retriable`] if it is not done after `timeout`; a further call continues.
    /// [`TransactionError::Refused`] with [`ErrorKind::NotConfigured`] without `transactional.id`.
    pub fn init_transactions(&self, timeout: Duration) -> TransactionResult {
        self.run(TransactionApi::Init, timeout)
    }

    /// Does what [`Producer::init_transactions`] does, without blocking. A further call continues if the future is dropped.
    pub async fn init_transactions_async(&self) -> TransactionResult {
        self.transaction_calls()?.init().await
    }

    /// Begins a transaction. It sends no request, and waits for an I/O thread only. A producer has one transaction at a time.
    ///
    /// Errors: [`TransactionError::Refused`] in the wrong state. [`TransactionError::Retriable`] with
    /// [`ErrorKind::Conflict`] if the end of the last transaction timed out: see [`Producer::resume_transaction`].
    pub fn begin(&self) -> TransactionResult<Transaction<'_>> {
        check_may_wait("begin").map_err(TransactionError::Refused)?;
        let calls = self.transaction_calls()?;
        wait_for(calls.begin(), BEGIN_TIMEOUT)
            .unwrap_or_else(|| Err(calls.timed_out(TransactionApi::Begin)))?;
        Ok(Transaction { producer: self, calls, is_over: false })
    }

    /// Does what [`Producer::begin`] does, without blocking.
    pub async fn begin_async(&self) -> TransactionResult<Transaction<'_>> {
        let calls = self.transaction_calls()?;
        calls.begin().await?;
        Ok(Transaction { producer: self, calls, is_over: false })
    }

    /// Continues a commit or an abort that returned [`TransactionError::Retriable`]: it timed out, or another call was in
    /// progress. Does nothing otherwise. The outcome of a commit whose request was sent is open until this succeeds.
    ///
    /// After a [`Producer::begin`] that timed out, this aborts the transaction that may have begun.
    ///
    /// Errors: as those of the call that timed out. After [`TransactionError::Abort`] the transaction was aborted.
    pub fn resume_transaction(&self, timeout: Duration) -> TransactionResult {
        let calls = self.transaction_calls()?;
        match calls.unfinished() {
            Some(TransactionApi::Commit) => self.commit_or_abort(timeout),
            Some(api) => self.run(api, timeout),
            None => Ok(()),
        }
    }

    fn transaction_calls(&self) -> TransactionResult<TransactionCalls> {
        TransactionCalls::new(&self.inner.shared, self.inner.client.commands())
    }

    /// Commits; if that is impossible, aborts.
    fn commit_or_abort(&self, timeout: Duration) -> TransactionResult {
        let start = Instant::now();
        let result = self.run(TransactionApi::Commit, timeout);
        if matches!(result, Err(TransactionError::Abort(_))) {
            let left = timeout.saturating_sub(start.elapsed()).max(LEAST_ABORT_TIMEOUT);
            self.run(TransactionApi::Abort, left)?;
        }
        result
    }

    /// Runs a call that may time out and be called again.
    fn run(&self, api: TransactionApi, timeout: Duration) -> TransactionResult {
        check_may_wait(api.name()).map_err(TransactionError::Refused)?;
        let calls = self.transaction_calls()?;
        let late = || Err(calls.timed_out(api));
        if api == TransactionApi::Init {
            return wait_for(calls.init(), timeout).unwrap_or_else(late);
        }
        let call = calls.start(api)?;
        match wait_for(call.run(), timeout) {
            Some(result) => call.end(result),
            None => late(),
        }
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
/// Dropping an open transaction aborts it, which blocks for at most `drop.timeout.ms`; what is left then, the next
/// [`Producer::resume_transaction`] completes. The drop does not block in a callback, or while its thread panics: then the coordinator
/// aborts the transaction after `transaction.timeout.ms`, unless the application calls [`Producer::resume_transaction`]. In async code,
/// call [`Transaction::abort_async`] instead.
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
        self.send_offsets_of(consumer.group_metadata(), offsets, timeout)
    }

    /// Does what [`Transaction::send_offsets`] does, without blocking.
    pub async fn send_offsets_async(
        &self,
        consumer: &Consumer,
        offsets: &[GroupOffset],
        timeout: Duration,
    ) -> TransactionResult {
        self.send_for(consumer.group_metadata(), offsets.to_vec(), timeout).await
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
    pub fn commit(mut self, timeout: Duration) -> TransactionResult {
        self.give_up(TransactionApi::Commit);
        self.producer.commit_or_abort(timeout)
    }

    /// Does what [`Transaction::commit`] does, without blocking. If the future is dropped, [`Producer::resume_transaction`] continues.
    pub async fn commit_async(mut self) -> TransactionResult {
        self.give_up(TransactionApi::Commit);
        let result = self.calls.commit().await;
        if matches!(result, Err(TransactionError::Abort(_))) {
            self.calls.abort().await?;
        }
        result
    }

    /// Removes the records of the transaction from the queue, waits for those in flight, and aborts.
    ///
    /// Error: [`TransactionError::Retriable`] if it is not done after `timeout`; [`Producer::resume_transaction`] continues.
    pub fn abort(mut self, timeout: Duration) -> TransactionResult {
        self.give_up(TransactionApi::Abort);
        self.producer.run(TransactionApi::Abort, timeout)
    }

    /// Does what [`Transaction::abort`] does, without blocking. If the future is dropped, [`Producer::resume_transaction`] continues.
    pub async fn abort_async(mut self) -> TransactionResult {
        self.give_up(TransactionApi::Abort);
        self.calls.abort().await
    }

    /// The producer ends the transaction, even if that can't start now.
    fn give_up(&mut self, end: TransactionApi) {
        self.is_over = true;
        self.calls.request_end(end);
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
        let may_wait = !std::thread::panicking() && !is_io_thread() && inner.client.is_of_this_process();
        let timeout = if may_wait { inner.drop_timeout } else { Duration::ZERO };
        // Without time, the abort begins all the same: no more records are accepted.
        self.calls.request_end(TransactionApi::Abort);
        let _ = self.producer.run(TransactionApi::Abort, timeout);
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("state", &self.calls.state()).finish_non_exhaustive()
    }
}
