//! ApiVersions (18), versions 0 to 5. The response to any other version has version 0, UNSUPPORTED_VERSION and the
//! range of ApiVersions itself, so that the client can ask again. The response header always has version 0. From version 5 on a
//! request may state the cluster and the node that it is for (KIP-1242).
//!
//! # Pitfalls
//!
//! - An ApiVersions request in an unknown version gets a response in version 0, and the response header is always
//!   version 0 (`unknown_version_of_api_versions_gets_a_response_in_version_0`).

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse, response},
};

use super::{SERVED, advertised_versions};
use crate::{cluster::Cluster, connection::Request};

/// The feature that selects the protocol of transactions (KIP-890).
pub(crate) const TRANSACTION_VERSION: &str = "transaction.version";
/// The first version of EndTxn that exists only with this feature.
const EPOCH_BUMPS: i16 = 5;

impl Cluster {
    pub(crate) fn api_versions(
        &mut self,
        request: &mut Request,
        body: ApiVersionsRequest,
    ) -> ApiVersionsResponse {
        let mut response = ApiVersionsResponse {
            error_code: request.injected_error(),
            throttle_time_ms: request.throttle_ms(),
            ..Default::default()
        };
        if request.version >= 3
            && !(is_software_name(&body.client_software_name)
                && is_software_name(&body.client_software_version))
        {
            response.error_code = ErrorCode::INVALID_REQUEST;
            return response;
        }
        let cluster_id = self.cluster_id(request.connection);
        let is_here = body.cluster_id.is_none_or(|id| id == cluster_id && body.node_id == request.broker.0);
        if !is_here {
            response.error_code = ErrorCode::REBOOTSTRAP_REQUIRED;
            return response;
        }
        if let Some(connection) = self.connection_mut(request.connection) {
            connection.software = Some((body.client_software_name, body.client_software_version));
        }
        let broker = &self.brokers[&request.broker];
        for (api, _, _) in SERVED {
            if let Some((min_version, max_version)) = advertised_versions(broker, *api as i16) {
                response.api_keys.push(response::ApiKey { api_key: *api as i16, min_version, max_version });
            }
        }
        if advertised_versions(broker, ApiKey::EndTxn as i16).is_some_and(|(_, max)| max >= EPOCH_BUMPS) {
            self.describe_features(&mut response);
        }
        response
    }

    /// Adds the features of the cluster. A feature of level 0 is supported, but not finalized.
    fn describe_features(&self, response: &mut ApiVersionsResponse) {
        let (name, level) = (TRANSACTION_VERSION.to_owned(), self.options.transaction_version);
        let max_version = 2;
        response.supported_features =
            vec![response::SupportedFeature { name: name.clone(), min_version: 0, max_version }];
        response.finalized_features_epoch = self.features_epoch;
        if level > 0 {
            response.finalized_features =
                vec![response::FinalizedFeature { name, max_version_level: level, min_version_level: level }];
        }
    }

    /// Returns the response to a version of ApiVersions that isn't served.
    pub(crate) fn unsupported_api_versions(&mut self, request: &Request) {
        let broker = &self.brokers[&request.broker];
        let mut response =
            ApiVersionsResponse { error_code: ErrorCode::UNSUPPORTED_VERSION, ..Default::default() };
        if let Some((min_version, max_version)) = advertised_versions(broker, ApiKey::ApiVersions as i16) {
            response.api_keys.push(response::ApiKey {
                api_key: ApiKey::ApiVersions as i16,
                min_version,
                max_version,
            });
        }
        let mut request = request.clone();
        request.version = 0;
        self.respond_with(&request, &response);
    }
}

/// Returns true if Kafka accepts the name (KIP-511): letters and digits, and `-` and `.` between them.
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}
