//! ApiVersions (18), versions 0 to 4. The response to any other version has version 0, UNSUPPORTED_VERSION and the
//! range of ApiVersions itself, so that the client can ask again. The response header always has version 0.
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
        if let Some(connection) = self.connection_mut(request.connection) {
            connection.software = Some((body.client_software_name, body.client_software_version));
        }
        let broker = &self.brokers[&request.broker];
        for (api, _, _) in SERVED {
            if let Some((min_version, max_version)) = advertised_versions(broker, *api as i16) {
                response.api_keys.push(response::ApiKey { api_key: *api as i16, min_version, max_version });
            }
        }
        response
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
