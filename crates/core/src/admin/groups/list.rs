//! Lists the groups of the cluster.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::list_groups::{ListGroupsRequest, ListGroupsResponse},
    primitive::Reader,
    vocabulary::NodeId,
};
use ottla_sorted::SortedMap;

use super::{GroupState, GroupType};
use crate::{
    admin::{AdminCall, every_broker::BrokerOperation, undecodable},
    completion::Completion,
    contract::route::EncodeBody,
    error::Error,
};

/// The groups to list. Empty lists select all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFilter {
    /// Only groups in one of these states. Brokers before Kafka 2.6 can't filter, which fails the call.
    pub states: Vec<GroupState>,
    /// Only groups of one of these types. Brokers before Kafka 3.8 can't filter, which fails the call.
    pub types: Vec<GroupType>,
}

/// A listed group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupListing {
    /// The group ID.
    pub group_id: String,
    /// The kind of application: `consumer` for consumers; empty if the group only has committed offsets.
    pub protocol_type: String,
    /// The state; `Unknown` from brokers before Kafka 2.6.
    pub state: GroupState,
    /// The type; `Unknown` from brokers before Kafka 3.8.
    pub group_type: GroupType,
}

impl GroupListing {
    /// Returns true for a group of consumers, and for a group that only has committed offsets.
    pub fn is_of_consumers(&self) -> bool {
        matches!(&*self.protocol_type, "" | "consumer")
    }
}

/// The groups of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupListings {
    /// The groups, by ID.
    pub groups: Vec<GroupListing>,
    /// The brokers that did not list their groups: node ID and error. Their groups are missing.
    pub failed: Vec<(i32, Error)>,
}

/// Lists the groups. A broker that fails is part of the result.
pub fn list_groups(
    filter: GroupFilter,
    timeout: Duration,
    done: Completion<Result<GroupListings, Error>>,
) -> AdminCall {
    AdminCall::every_broker(ListGroups { filter, groups: SortedMap::new(), done }, timeout)
}

/// The first version that filters by state.
const FIRST_WITH_STATES: i16 = 4;
/// The first version that filters by type.
const FIRST_WITH_TYPES: i16 = 5;

struct ListGroups {
    filter: GroupFilter,
    groups: SortedMap<String, GroupListing>,
    done: Completion<Result<GroupListings, Error>>,
}

impl BrokerOperation for ListGroups {
    fn api(&self) -> ApiKey {
        ApiKey::ListGroups
    }

    fn versions(&self) -> RangeInclusive<i16> {
        let all = self.api().versions();
        let first = match &self.filter {
            filter if !filter.types.is_empty() => FIRST_WITH_TYPES,
            filter if !filter.states.is_empty() => FIRST_WITH_STATES,
            _ => *all.start(),
        };
        first..=*all.end()
    }

    fn encode(&self) -> EncodeBody {
        let states: Vec<String> = self.filter.states.iter().map(|state| state.name().to_owned()).collect();
        let types: Vec<String> = self.filter.types.iter().map(|kind| kind.name().to_owned()).collect();
        let request = ListGroupsRequest { states_filter: states, types_filter: types };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, _node: NodeId, body: &[u8], version: i16) -> Result<(), Error> {
        let response =
            ListGroupsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        if response.error_code != ErrorCode::NONE {
            return Err(Error::broker(response.error_code, None));
        }
        for group in response.groups {
            let listing = GroupListing {
                state: GroupState::from_name(&group.group_state),
                group_type: GroupType::from_name(&group.group_type),
                protocol_type: group.protocol_type,
                group_id: group.group_id,
            };
            // A group that moves between two responses is listed by both of its coordinators.
            self.groups.insert(listing.group_id.clone(), listing);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, failed: Vec<(NodeId, Error)>, error: Option<Error>) {
        let failed: Vec<_> = failed.into_iter().map(|(node, error)| (node.get(), error)).collect();
        let listings = GroupListings { groups: self.groups.into_values().collect(), failed };
        self.done.complete(error.map_or(Ok(listings), Err));
    }
}
