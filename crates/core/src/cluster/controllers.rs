//! Clients that connect to controllers instead of brokers (KIP-919).
//!
//! A controller serves no Metadata: DescribeCluster names the controllers and the active one, which gets every request that does
//! not name another node.
//!
//! # Pitfalls
//!
//! - A broker among `bootstrap.controllers` answers for ever that it is not a controller, so the waiting calls fail at once
//!   instead of at their deadlines (`broker_among_the_controllers_fails_the_calls`).

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
        metadata::{MetadataResponse, response::Broker},
    },
    primitive::Reader,
};

use super::ClusterCore;
use crate::{
    connection::Response,
    contract::{
        part::RequestOwner,
        route::{CONTROLLERS, OF_CONTROLLERS, Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    machine::Instant,
};

impl ClusterCore {
    /// Returns the request for the controllers.
    pub(super) fn request_for_controllers(&self) -> RoutedRequest {
        RoutedRequest {
            api: ApiKey::DescribeCluster,
            versions: OF_CONTROLLERS,
            timeout: self.settings.request_timeout,
            encode: Box::new(|version, out| {
                let request = DescribeClusterRequest {
                    endpoint_type: CONTROLLERS,
                    ..DescribeClusterRequest::default()
                };
                request.encode(version, out)
            }),
        }
    }

    /// Returns the route of a request: requests that any node may get go to the active controller.
    pub(super) fn past_standby(&self, route: Route, owner: RequestOwner) -> Route {
        let is_free = self.settings.of_controllers && route == Route::Any && owner != RequestOwner::Metadata;
        if is_free { Route::Controller } else { route }
    }

    /// Fails the waiting calls if the bootstrap servers are not controllers.
    pub(super) fn handle_wrong_endpoint(&mut self, now: Instant, error: &Error) {
        let is_wrong = match error.kind() {
            ErrorKind::Broker(code) => code == ErrorCode::MISMATCHED_ENDPOINT_TYPE,
            kind => kind == ErrorKind::UnsupportedVersion,
        };
        if self.settings.of_controllers && is_wrong {
            let waiting = self.requests.take_waiting();
            waiting.into_iter().for_each(|one| {
                self.dispatch(now, one.owner, Err(error.clone()));
            });
        }
    }
}

/// Returns the controllers as the brokers of a metadata response without topics.
pub(super) fn controllers(response: &Response) -> Result<MetadataResponse, Error> {
    let version = response.request.version;
    let found = DescribeClusterResponse::decode(&mut Reader::new(response.body()), version)
        .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api("DescribeCluster"))?;
    if found.error_code == ErrorCode::NONE && found.endpoint_type != CONTROLLERS {
        let detail = format!("it describes nodes of kind {} instead of controllers", found.endpoint_type);
        return Err(Error::new(ErrorKind::BadResponse, detail).with_api("DescribeCluster"));
    }
    if found.error_code == ErrorCode::MISMATCHED_ENDPOINT_TYPE {
        let detail = "`bootstrap.controllers` names a broker; name controllers, or set `bootstrap.servers`";
        return Err(Error::broker(found.error_code, Some(detail)).with_api("DescribeCluster"));
    }
    let brokers = found.brokers.into_iter().map(|node| Broker {
        node_id: node.broker_id,
        host: node.host,
        port: node.port,
        rack: node.rack,
    });
    Ok(MetadataResponse {
        error_code: found.error_code,
        cluster_id: Some(found.cluster_id),
        controller_id: found.controller_id,
        brokers: brokers.collect(),
        ..MetadataResponse::default()
    })
}
