//! DescribeTransactions (65), version 0: transactional IDs as their coordinator sees them (KIP-664).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::describe_transactions::{DescribeTransactionsRequest, DescribeTransactionsResponse, response},
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request};

impl Cluster {
    pub(crate) fn describe_transactions(
        &mut self,
        request: &mut Request,
        body: DescribeTransactionsRequest,
    ) -> DescribeTransactionsResponse {
        let mut response =
            DescribeTransactionsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        for transactional_id in body.transactional_ids {
            let described = self.describe_transaction(request, &transactional_id);
            let state = described
                .unwrap_or_else(|error_code| response::TransactionState { error_code, ..Default::default() });
            response.transaction_states.push(response::TransactionState { transactional_id, ..state });
        }
        response
    }

    fn describe_transaction(
        &mut self,
        request: &mut Request,
        id: &str,
    ) -> Result<response::TransactionState, ErrorCode> {
        if let Some(error) = self.injected_error(request, id, -1) {
            return Err(error);
        }
        self.check_transaction_access(request, AclOperation::Describe, id)?;
        self.check_transaction_coordinator(request, id)?;
        let transaction = self.transactions.get(id).ok_or(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND)?;
        let mut state = response::TransactionState {
            transaction_state: transaction.state.name().to_owned(),
            transaction_timeout_ms: transaction.timeout_ms,
            transaction_start_time_ms: transaction.started_ms,
            producer_id: transaction.producer_id,
            producer_epoch: transaction.epoch,
            ..Default::default()
        };
        let participants = transaction.participants.iter().map(|participant| participant.topic_partition());
        for (topic, partition) in participants.collect::<ottla_sorted::SortedSet<_>>() {
            match state.topics.last_mut() {
                Some(last) if last.topic == topic => last.partitions.push(partition),
                _ => state
                    .topics
                    .push(response::Topic { topic: topic.to_owned(), partitions: vec![partition] }),
            }
        }
        Ok(state)
    }
}
