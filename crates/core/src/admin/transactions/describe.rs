//! Describes a transactional ID.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::describe_transactions::{DescribeTransactionsRequest, DescribeTransactionsResponse},
    primitive::Reader,
    vocabulary::{NodeId, TopicPartition},
};

use super::TransactionState;
use crate::{
    admin::{AdminCall, Operation, Verdict, undecodable},
    completion::Completion,
    contract::route::{Coordinator, CoordinatorKey, EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// A transactional ID, as its coordinator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionDescription {
    /// The transactional ID.
    pub transactional_id: String,
    /// The node ID of the coordinator.
    pub coordinator: i32,
    /// The state.
    pub state: TransactionState,
    /// The producer ID.
    pub producer_id: i64,
    /// The producer epoch.
    pub producer_epoch: i16,
    /// `transaction.timeout.ms` of the producer.
    pub timeout: Duration,
    /// When the transaction began, in milliseconds since 1970; `None` outside of a transaction.
    pub start: Option<i64>,
    /// The partitions of the transaction.
    pub partitions: Vec<TopicPartition>,
}

/// Describes a transactional ID.
pub fn describe_transaction(
    transactional_id: impl Into<Arc<str>>,
    timeout: Duration,
    done: Completion<Result<TransactionDescription, Error>>,
) -> AdminCall {
    let operation =
        DescribeTransaction { id: transactional_id.into(), coordinator: None, description: None, done };
    AdminCall::operation(operation, timeout)
}

struct DescribeTransaction {
    id: Arc<str>,
    coordinator: Option<NodeId>,
    description: Option<TransactionDescription>,
    done: Completion<Result<TransactionDescription, Error>>,
}

impl Operation for DescribeTransaction {
    fn api(&self) -> ApiKey {
        ApiKey::DescribeTransactions
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::transaction(Arc::clone(&self.id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let request = DescribeTransactionsRequest { transactional_ids: vec![self.id.to_string()] };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_coordinator(&mut self, coordinator: &Coordinator) {
        self.coordinator = Some(coordinator.node);
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response = DescribeTransactionsResponse::decode(&mut Reader::new(body), version)
            .map_err(|e| undecodable(&e))?;
        let found = response.transaction_states.into_iter().find(|one| *one.transactional_id == *self.id);
        let Some(found) = found else {
            return Err(Error::new(ErrorKind::BadResponse, "the response leaves the transactional ID out"));
        };
        match found.error_code {
            ErrorCode::NONE => {}
            ErrorCode::TRANSACTIONAL_ID_NOT_FOUND => {
                let detail = "no producer has used this transactional ID, or it has expired";
                return Err(Error::broker(found.error_code, Some(detail)));
            }
            code if code.is_retriable() => return Ok(Verdict::Again(Error::broker(code, None))),
            code => return Err(Error::broker(code, None)),
        }
        let partitions = found.topics.iter().flat_map(|topic| {
            let name: Arc<str> = topic.topic.as_str().into();
            topic.partitions.iter().map(move |index| TopicPartition::new(Arc::clone(&name), *index))
        });
        self.description = Some(TransactionDescription {
            coordinator: self.coordinator.map_or(-1, NodeId::get),
            state: TransactionState::from_name(&found.transaction_state),
            producer_id: found.producer_id,
            producer_epoch: found.producer_epoch,
            timeout: Duration::from_millis(u64::try_from(found.transaction_timeout_ms).unwrap_or(0)),
            start: (found.transaction_start_time_ms >= 0).then_some(found.transaction_start_time_ms),
            partitions: partitions.collect(),
            transactional_id: found.transactional_id,
        });
        Ok(Verdict::Done)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let none = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.description.ok_or_else(none));
    }
}
