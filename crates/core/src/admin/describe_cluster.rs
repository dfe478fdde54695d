//! The cluster's description by DescribeCluster (KIP-700), which also lists brokers that are fenced (KIP-1073).

use std::ops::RangeInclusive;

use ottla_protocol::{
    api::ApiKey,
    generated::describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
    primitive::Reader,
};

use super::{
    check,
    describe::{AuthorizedOperations, BrokerDescription, ClusterDescription},
    undecodable,
};
use crate::{
    contract::route::{CONTROLLERS, EncodeBody},
    error::Error,
};

/// The first version that can list fenced brokers.
const FIRST_WITH_FENCED: i16 = 2;

/// Returns the versions that can be used.
pub(super) fn versions(with_fenced: bool) -> RangeInclusive<i16> {
    let all = ApiKey::DescribeCluster.versions();
    if with_fenced { FIRST_WITH_FENCED..=*all.end() } else { all }
}

/// Encodes the request.
pub(super) fn encode(with_operations: bool, with_fenced: bool) -> EncodeBody {
    let request = DescribeClusterRequest {
        include_cluster_authorized_operations: with_operations,
        include_fenced_brokers: with_fenced,
        ..DescribeClusterRequest::default()
    };
    Box::new(move |version, out| request.encode(version, out))
}

/// Encodes the request for the controllers, which has no fenced brokers.
pub(super) fn encode_for_controllers(with_operations: bool) -> EncodeBody {
    let request = DescribeClusterRequest {
        include_cluster_authorized_operations: with_operations,
        endpoint_type: CONTROLLERS,
        ..DescribeClusterRequest::default()
    };
    Box::new(move |version, out| request.encode(version, out))
}

/// Reads the response.
pub(super) fn description(body: &[u8], version: i16) -> Result<ClusterDescription, Error> {
    let response =
        DescribeClusterResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
    check(response.error_code, response.error_message.as_deref())?;
    let mut brokers: Vec<BrokerDescription> = response
        .brokers
        .into_iter()
        .map(|one| BrokerDescription {
            id: one.broker_id,
            host: one.host,
            port: one.port,
            rack: one.rack,
            is_fenced: one.is_fenced,
        })
        .collect();
    brokers.sort_unstable_by_key(|broker| broker.id);
    Ok(ClusterDescription {
        cluster_id: Some(response.cluster_id),
        controller_id: Some(response.controller_id).filter(|id| *id >= 0),
        brokers,
        topics: Vec::new(),
        authorized_operations: AuthorizedOperations::new(response.cluster_authorized_operations),
    })
}
