//! Describes many groups with one request per coordinator.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse},
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, response as classic},
    },
    primitive::Reader,
};
use ottla_sorted::SortedMap;

use super::{
    GroupState,
    batches::{GroupsOperation, Step, in_order},
    describe::{FIRST_WITH_OPERATIONS, GroupDescription, of_classic_protocol, of_consumer_protocol},
};
use crate::{
    admin::{AdminCall, describe::BrokerDescription, item_results::ItemResults, undecodable},
    completion::Completion,
    contract::route::EncodeBody,
    error::Error,
};

/// Describes groups, which are distinct. With `missing_is_dead`, a group that does not exist is `Dead`, as with brokers before
/// Kafka 4.0.
pub fn describe_groups(
    groups: Vec<Arc<str>>,
    with_operations: bool,
    missing_is_dead: bool,
    timeout: Duration,
    done: Completion<ItemResults<String, GroupDescription>>,
) -> AdminCall {
    let names = groups.clone();
    let operation = DescribeMany { names, with_operations, missing_is_dead, found: SortedMap::new(), done };
    AdminCall::of_groups(operation, groups, timeout)
}

struct DescribeMany {
    names: Vec<Arc<str>>,
    with_operations: bool,
    missing_is_dead: bool,
    found: SortedMap<Arc<str>, GroupDescription>,
    done: Completion<ItemResults<String, GroupDescription>>,
}

impl DescribeMany {
    fn add(
        &mut self,
        coordinator: Option<&BrokerDescription>,
        description: GroupDescription,
    ) -> (Arc<str>, Step) {
        let name: Arc<str> = description.group_id.as_str().into();
        let description = GroupDescription { coordinator: coordinator.cloned(), ..description };
        self.found.insert(Arc::clone(&name), description);
        (name, Step::Done)
    }

    fn add_classic(
        &mut self,
        coordinator: Option<&BrokerDescription>,
        group: classic::Group,
    ) -> (Arc<str>, Step) {
        match group.error_code {
            ErrorCode::NONE => self.add(coordinator, of_classic_protocol(group)),
            ErrorCode::GROUP_ID_NOT_FOUND if self.missing_is_dead => {
                let group = classic::Group { group_state: GroupState::Dead.name().to_owned(), ..group };
                self.add(coordinator, of_classic_protocol(group))
            }
            code => {
                let error = Error::broker(code, group.error_message.as_deref());
                (group.group_id.into(), Step::Failed(error))
            }
        }
    }
}

impl GroupsOperation for DescribeMany {
    fn apis(&self) -> &'static [ApiKey] {
        &[ApiKey::ConsumerGroupDescribe, ApiKey::DescribeGroups]
    }

    fn encode(&self, api: ApiKey, groups: &[Arc<str>]) -> EncodeBody {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let with_operations = self.with_operations;
        if api == ApiKey::ConsumerGroupDescribe {
            let request = ConsumerGroupDescribeRequest {
                group_ids: groups,
                include_authorized_operations: with_operations,
            };
            return Box::new(move |version, out| request.encode(version, out));
        }
        Box::new(move |version, out| {
            let request = DescribeGroupsRequest {
                groups: groups.clone(),
                include_authorized_operations: with_operations && version >= FIRST_WITH_OPERATIONS,
            };
            request.encode(version, out)
        })
    }

    fn handle_response(
        &mut self,
        api: ApiKey,
        coordinator: Option<&BrokerDescription>,
        body: &[u8],
        version: i16,
    ) -> Result<Vec<(Arc<str>, Step)>, Error> {
        let reader = &mut Reader::new(body);
        if api == ApiKey::DescribeGroups {
            let response = DescribeGroupsResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
            let groups = response.groups.into_iter();
            return Ok(groups.map(|group| self.add_classic(coordinator, group)).collect());
        }
        let response = ConsumerGroupDescribeResponse::decode(reader, version).map_err(|e| undecodable(&e))?;
        let groups = response.groups.into_iter().map(|group| {
            let error = Error::broker(group.error_code, group.error_message.as_deref());
            match group.error_code {
                ErrorCode::NONE => self.add(coordinator, of_consumer_protocol(group)),
                // The group has another type, or does not exist.
                ErrorCode::GROUP_ID_NOT_FOUND | ErrorCode::UNSUPPORTED_VERSION => {
                    (group.group_id.into(), Step::NextApi(error))
                }
                _ => (group.group_id.into(), Step::Failed(error)),
            }
        });
        Ok(groups.collect())
    }

    fn finish(self: Box<Self>, failed: SortedMap<Arc<str>, Error>) {
        let results = in_order(&self.names, self.found, failed);
        self.done.complete(results);
    }
}
