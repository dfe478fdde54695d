//! Calls about transactions.

use ottla_core::{
    admin::transactions::{
        abort::{HangingTransaction, abort_transaction},
        describe::{TransactionDescription, describe_transaction},
        fence::{FencedProducer, fence_producer},
        list::{TransactionFilter, TransactionListings, list_transactions},
        producers::{ActiveProducers, describe_producers},
    },
    error::Result,
};

use super::{Admin, AdminFuture, AdminOptions, elements::checked_partitions};
use crate::topic_name::check_partition;

const ID: &str = "transactional ID";

/// The transactional IDs of a call, each with its result, in the order of the call.
pub type TransactionResults<T> = Vec<(String, Result<T>)>;

impl Admin {
    /// Lists the transactional IDs of all brokers. A broker that fails is in [`TransactionListings::failed`]. Needs brokers of
    /// Kafka 3.0 or later, like the other calls about transactions (KIP-664).
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::{TransactionFilter, TransactionState};
    ///
    /// let filter = TransactionFilter { states: vec![TransactionState::Ongoing], ..TransactionFilter::default() };
    /// for transaction in admin.list_transactions(&filter, Duration::from_secs(10))?.transactions {
    ///     println!("{}: producer {}", transaction.transactional_id, transaction.producer_id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_transactions(
        &self,
        filter: &TransactionFilter,
        options: impl Into<AdminOptions>,
    ) -> Result<TransactionListings> {
        self.list_transactions_async(filter, options).wait()
    }

    /// Lists transactional IDs, without blocking. See [`Admin::list_transactions`].
    pub fn list_transactions_async(
        &self,
        filter: &TransactionFilter,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TransactionListings> {
        let (filter, options) = (filter.clone(), options.into());
        let call = move |done| list_transactions(filter, options.timeout, done).done(options.how());
        self.start("list_transactions", options.timeout, Ok(call)).and_then(|listings| listings)
    }

    /// Describes transactional IDs: state, producer and partitions.
    pub fn describe_transactions(
        &self,
        transactional_ids: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<TransactionResults<TransactionDescription>> {
        self.describe_transactions_async(transactional_ids, options).wait()
    }

    /// Describes transactional IDs, without blocking. See [`Admin::describe_transactions`].
    pub fn describe_transactions_async(
        &self,
        transactional_ids: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TransactionResults<TransactionDescription>> {
        let options = options.into();
        self.for_each_named(ID, "describe_transactions", transactional_ids, options, move |id, done| {
            describe_transaction(id, options.timeout, done)
        })
    }

    /// Describes the idempotent and transactional producers that have written to partitions lately, with one request to each of
    /// their leaders. Each partition has a result, in the order of the arguments.
    pub fn describe_producers(
        &self,
        partitions: &[(&str, i32)],
        options: impl Into<AdminOptions>,
    ) -> Result<ActiveProducers> {
        self.describe_producers_async(partitions, options).wait()
    }

    /// Describes producers, without blocking. See [`Admin::describe_producers`].
    pub fn describe_producers_async(
        &self,
        partitions: &[(&str, i32)],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<ActiveProducers> {
        let options = options.into();
        const NAME: &str = "describe_producers";
        checked_partitions(partitions, |_, error| Err(error)).ask(NAME, |partitions| {
            let call = move |done| describe_producers(partitions, options.timeout, done).done(options.how());
            self.start(NAME, options.timeout, Ok(call))
        })
    }

    /// Fences the producers of transactional IDs: their epochs rise, their open transactions are aborted, and their next calls
    /// fail with [`ErrorKind::Fenced`](crate::ErrorKind::Fenced). This is also how to end a transaction whose producer is gone.
    pub fn fence_producers(
        &self,
        transactional_ids: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<TransactionResults<FencedProducer>> {
        self.fence_producers_async(transactional_ids, options).wait()
    }

    /// Fences producers, without blocking. See [`Admin::fence_producers`].
    pub fn fence_producers_async(
        &self,
        transactional_ids: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TransactionResults<FencedProducer>> {
        let options = options.into();
        self.for_each_named(ID, "fence_producers", transactional_ids, options, move |id, done| {
            fence_producer(id, options.timeout, done)
        })
    }

    /// Ends a hanging transaction in one partition: writes its abort marker there. Its coordinator does not learn of it, so
    /// this is only for transactions that the coordinator has forgotten.
    pub fn abort_transaction(
        &self,
        transaction: &HangingTransaction,
        options: impl Into<AdminOptions>,
    ) -> Result<()> {
        self.abort_transaction_async(transaction, options).wait()
    }

    /// Ends a hanging transaction, without blocking. See [`Admin::abort_transaction`].
    pub fn abort_transaction_async(
        &self,
        transaction: &HangingTransaction,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<()> {
        let options = options.into();
        let checked = check_partition(&transaction.topic, transaction.partition);
        let transaction = transaction.clone();
        let call = checked
            .map(|()| move |done| abort_transaction(transaction, options.timeout, done).done(options.how()));
        self.start("abort_transaction", options.timeout, call).and_then(|result| result)
    }
}
