//! Lists the transactional IDs of the cluster.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::list_transactions::{ListTransactionsRequest, ListTransactionsResponse},
    primitive::Reader,
    vocabulary::NodeId,
};
use ottla_sorted::SortedMap;

use super::TransactionState;
use crate::{
    admin::{AdminCall, every_broker::BrokerOperation, undecodable},
    completion::Completion,
    contract::route::EncodeBody,
    error::{Error, ErrorKind},
};

/// The transactional IDs to list. Empty lists and `None` select all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionFilter {
    /// Only IDs in one of these states.
    pub states: Vec<TransactionState>,
    /// Only IDs whose producer has one of these producer IDs.
    pub producer_ids: Vec<i64>,
    /// Only transactions that have been running for longer than this. Brokers before Kafka 3.8 can't filter, which fails the
    /// call.
    pub running_longer_than: Option<Duration>,
    /// Only IDs that match this regular expression (RE2). Brokers before Kafka 4.1 can't filter, which fails the call.
    pub id_pattern: Option<String>,
}

/// A listed transactional ID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionListing {
    /// The transactional ID.
    pub transactional_id: String,
    /// The node ID of its coordinator.
    pub coordinator: i32,
    /// The producer ID.
    pub producer_id: i64,
    /// The state.
    pub state: TransactionState,
}

/// The transactional IDs of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionListings {
    /// The transactional IDs, in their order.
    pub transactions: Vec<TransactionListing>,
    /// The brokers that did not list theirs: node ID and error.
    pub failed: Vec<(i32, Error)>,
}

/// Lists the transactional IDs. A broker that fails is part of the result.
pub fn list_transactions(
    filter: TransactionFilter,
    timeout: Duration,
    done: Completion<Result<TransactionListings, Error>>,
) -> AdminCall {
    AdminCall::every_broker(ListTransactions { filter, found: SortedMap::new(), done }, timeout)
}

/// The first version that filters by duration.
const FIRST_WITH_DURATION: i16 = 1;
/// The first version that filters by a regular expression.
const FIRST_WITH_PATTERN: i16 = 2;

struct ListTransactions {
    filter: TransactionFilter,
    found: SortedMap<String, TransactionListing>,
    done: Completion<Result<TransactionListings, Error>>,
}

impl BrokerOperation for ListTransactions {
    fn api(&self) -> ApiKey {
        ApiKey::ListTransactions
    }

    fn versions(&self) -> RangeInclusive<i16> {
        let all = self.api().versions();
        let first = match &self.filter {
            filter if filter.id_pattern.is_some() => FIRST_WITH_PATTERN,
            filter if filter.running_longer_than.is_some() => FIRST_WITH_DURATION,
            _ => *all.start(),
        };
        first..=*all.end()
    }

    fn encode(&self) -> EncodeBody {
        let duration = self.filter.running_longer_than;
        let duration = duration.map_or(-1, |longer| i64::try_from(longer.as_millis()).unwrap_or(i64::MAX));
        let request = ListTransactionsRequest {
            state_filters: self.filter.states.iter().map(|state| state.name().to_owned()).collect(),
            producer_id_filters: self.filter.producer_ids.clone(),
            duration_filter: duration,
            transactional_id_pattern: self.filter.id_pattern.clone(),
        };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, node: NodeId, body: &[u8], version: i16) -> Result<(), Error> {
        let response =
            ListTransactionsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        if response.error_code != ErrorCode::NONE {
            return Err(Error::broker(response.error_code, None));
        }
        if let [state, ..] = &*response.unknown_state_filters {
            let detail = format!("the broker does not know the state {state}");
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        }
        for one in response.transaction_states {
            let listing = TransactionListing {
                coordinator: node.get(),
                producer_id: one.producer_id,
                state: TransactionState::from_name(&one.transaction_state),
                transactional_id: one.transactional_id,
            };
            // An ID that moves between two responses is listed by both of its coordinators.
            self.found.insert(listing.transactional_id.clone(), listing);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, failed: Vec<(NodeId, Error)>, error: Option<Error>) {
        let failed: Vec<_> = failed.into_iter().map(|(node, error)| (node.get(), error)).collect();
        let listings = TransactionListings { transactions: self.found.into_values().collect(), failed };
        self.done.complete(error.map_or(Ok(listings), Err));
    }
}
