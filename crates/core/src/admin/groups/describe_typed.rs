//! Describes groups of one type with one request per coordinator: share groups, streams groups.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    primitive::{DecodeError, Reader},
};
use ottla_sorted::SortedMap;

use super::batches::{GroupsOperation, Step, in_order};
use crate::{
    admin::{AdminCall, describe::BrokerDescription, item_results::ItemResults, undecodable},
    completion::Completion,
    contract::route::EncodeBody,
    error::Error,
};

/// What descriptions of groups include on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Included {
    /// The permitted operations.
    pub operations: bool,
    /// The description of the topology's nodes; streams groups only.
    pub topology_description: bool,
}

/// The description of a group of one type, with the API that returns it.
pub(super) trait TypedGroup: Send + Sized + 'static {
    /// The API.
    const API: ApiKey;
    /// Encodes the request of these groups.
    fn encode(group_ids: Vec<String>, included: Included) -> EncodeBody;
    /// Decodes a response: the ID and the description of each group.
    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Vec<DescribedGroup<Self>>, DecodeError>;
    /// Notes the coordinator that described the group.
    fn set_coordinator(&mut self, coordinator: BrokerDescription);
}

/// A group ID with its description, or with the coordinator's error.
pub(super) type DescribedGroup<D> = (String, Result<D, Error>);

/// Returns the error of a group's description, if its code is one.
pub(super) fn check_group(code: ErrorCode, message: Option<&str>) -> Result<(), Error> {
    if code.is_error() { Err(Error::broker(code, message)) } else { Ok(()) }
}

/// Describes groups of one type, which are distinct.
pub(super) fn describe_typed<D: TypedGroup>(
    groups: Vec<Arc<str>>,
    included: Included,
    timeout: Duration,
    done: Completion<ItemResults<String, D>>,
) -> AdminCall {
    let names = groups.clone();
    let operation = DescribeTyped { names, included, found: SortedMap::new(), done };
    AdminCall::of_groups(operation, groups, timeout)
}

struct DescribeTyped<D> {
    names: Vec<Arc<str>>,
    included: Included,
    found: SortedMap<Arc<str>, D>,
    done: Completion<ItemResults<String, D>>,
}

impl<D: TypedGroup> GroupsOperation for DescribeTyped<D> {
    fn apis(&self) -> &'static [ApiKey] {
        const { &[D::API] }
    }

    fn encode(&self, _api: ApiKey, groups: &[Arc<str>]) -> EncodeBody {
        D::encode(groups.iter().map(ToString::to_string).collect(), self.included)
    }

    fn handle_response(
        &mut self,
        _api: ApiKey,
        coordinator: Option<&BrokerDescription>,
        body: &[u8],
        version: i16,
    ) -> Result<Vec<(Arc<str>, Step)>, Error> {
        let groups = D::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let mut steps = Vec::with_capacity(groups.len());
        for (name, result) in groups {
            let name: Arc<str> = name.into();
            let step = match result {
                Ok(mut description) => {
                    coordinator.cloned().into_iter().for_each(|broker| description.set_coordinator(broker));
                    self.found.insert(Arc::clone(&name), description);
                    Step::Done
                }
                Err(error) => Step::Failed(error),
            };
            steps.push((name, step));
        }
        Ok(steps)
    }

    fn finish(self: Box<Self>, failed: SortedMap<Arc<str>, Error>) {
        let results = in_order(&self.names, self.found, failed);
        self.done.complete(results);
    }
}
