//! Lists the resources that have a configuration (KIP-714, KIP-1142).

use std::time::Duration;

use ottla_protocol::generated::list_config_resources::ListConfigResourcesRequest;

use super::{
    AdminCall, check,
    configs::{ConfigResource, ResourceKind},
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The first version that lists other resources than subscriptions to client metrics.
const FIRST_WITH_KINDS: i16 = 1;

/// Lists the resources of these kinds, or of all kinds that the broker can list. Brokers before Kafka 4.1 list subscriptions to
/// client metrics only.
pub fn list_config_resources(
    kinds: Vec<ResourceKind>,
    timeout: Duration,
    done: Completion<Result<Vec<ConfigResource>, Error>>,
) -> AdminCall {
    let first = if kinds == [ResourceKind::CLIENT_METRICS] { 0 } else { FIRST_WITH_KINDS };
    let request = move |version, _| ListConfigResourcesRequest {
        resource_types: if version < FIRST_WITH_KINDS {
            Vec::new()
        } else {
            kinds.iter().map(|kind| kind.0).collect()
        },
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, None)?;
        let resources = response.config_resources.into_iter();
        let resource = resources
            .map(|one| ConfigResource { kind: ResourceKind(one.resource_type), name: one.resource_name });
        let mut resources: Vec<ConfigResource> = resource.collect();
        resources.sort();
        Ok(resources)
    });
    call.since_version(first).call(timeout, done)
}
