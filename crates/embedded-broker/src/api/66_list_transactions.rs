//! ListTransactions (66), versions 0 to 2: the transactional IDs that this broker coordinates, with filters for states,
//! producer IDs, the age of the transaction (from version 1 on) and a pattern of the ID (from version 2 on).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::list_transactions::{ListTransactionsRequest, ListTransactionsResponse, response},
    pattern::Pattern,
};

use crate::{acls::AclOperation, cluster::Cluster, connection::Request};

/// The states that Kafka knows; the last two are never listed.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
];

impl Cluster {
    pub(crate) fn list_transactions(
        &mut self,
        request: &mut Request,
        body: ListTransactionsRequest,
    ) -> ListTransactionsResponse {
        let mut response = ListTransactionsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        };
        let is_unknown = |name: &&String| !STATES.contains(&name.as_str());
        response.unknown_state_filters = body.state_filters.iter().filter(is_unknown).cloned().collect();
        let pattern = body.transactional_id_pattern.as_deref().filter(|pattern| !pattern.is_empty());
        let pattern = match pattern.map(Pattern::whole).transpose() {
            Ok(pattern) => pattern,
            Err(_) => {
                response.error_code = ErrorCode::INVALID_REGULAR_EXPRESSION;
                return response;
            }
        };
        if response.error_code != ErrorCode::NONE {
            return response;
        }
        let now_ms = self.unix_ms();
        for (id, transaction) in self.transactions.iter() {
            if self.coordinator_of(1, id) != Some(request.broker) {
                continue;
            }
            if !self.is_transaction_served(id) {
                response.error_code = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
                response.transaction_states.clear();
                return response;
            }
            let state = transaction.state.name();
            let is_listed = (body.state_filters.is_empty()
                || body.state_filters.iter().any(|name| name == state))
                && (body.producer_id_filters.is_empty()
                    || body.producer_id_filters.contains(&transaction.producer_id))
                && (body.duration_filter < 0 || now_ms - transaction.started_ms > body.duration_filter)
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
                && self.check_transaction_access(request, AclOperation::Describe, id).is_ok();
            if is_listed {
                response.transaction_states.push(response::TransactionState {
                    transactional_id: id.clone(),
                    producer_id: transaction.producer_id,
                    transaction_state: state.to_owned(),
                });
            }
        }
        response
    }
}
