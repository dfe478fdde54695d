//! The APIs that each broker serves, with their versions.

use std::{ops::RangeInclusive, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    primitive::Reader,
    vocabulary::NodeId,
};

use super::{
    AdminCall, check,
    every_broker::{BrokerOperation, BrokerResults, OfBrokers},
    undecodable,
};
use crate::{completion::Completion, contract::route::EncodeBody, error::Error};

/// An API of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerApi {
    /// The API key.
    pub key: i16,
    /// The name; `None` if this client does not know the API.
    pub name: Option<&'static str>,
    /// The versions that the broker serves.
    pub versions: RangeInclusive<i16>,
    /// The highest version that this client speaks with the broker; `None` if they have none in common.
    pub usable: Option<i16>,
}

impl BrokerApi {
    fn new(key: i16, versions: RangeInclusive<i16>) -> Self {
        let api = ApiKey::from_i16(key);
        let usable = api.map(ApiKey::versions).and_then(|ours| {
            let highest = *ours.end().min(versions.end());
            (highest >= *ours.start().max(versions.start())).then_some(highest)
        });
        Self { key, name: api.map(ApiKey::name), versions, usable }
    }
}

/// The APIs of each broker by key, or the error of a broker that failed.
pub type BrokerApis = BrokerResults<Vec<BrokerApi>>;

/// Describes the APIs of all brokers. A broker that fails is part of the result.
pub fn describe_broker_apis(timeout: Duration, done: Completion<Result<BrokerApis, Error>>) -> AdminCall {
    AdminCall::every_broker(OfAllBrokers(OfBrokers::new(done)), timeout)
}

/// The request for the APIs and the features of a broker.
pub(super) fn api_versions_request() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "ottla".to_owned(),
        client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ApiVersionsRequest::default()
    }
}

struct OfAllBrokers(OfBrokers<Vec<BrokerApi>>);

impl BrokerOperation for OfAllBrokers {
    fn api(&self) -> ApiKey {
        ApiKey::ApiVersions
    }

    fn encode(&self) -> EncodeBody {
        let request = api_versions_request();
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, node: NodeId, body: &[u8], version: i16) -> Result<(), Error> {
        let response =
            ApiVersionsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        check(response.error_code, None)?;
        let apis = response.api_keys.into_iter();
        let mut apis: Vec<_> =
            apis.map(|api| BrokerApi::new(api.api_key, api.min_version..=api.max_version)).collect();
        apis.sort_by_key(|api| api.key);
        self.0.add(node, apis);
        Ok(())
    }

    fn finish(self: Box<Self>, failed: Vec<(NodeId, Error)>, error: Option<Error>) {
        self.0.finish(failed, error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_version_is_the_highest_of_both() {
        let metadata = *ApiKey::Metadata.versions().end();
        let usable = |key, versions| BrokerApi::new(key, versions).usable;
        assert_eq!(usable(3, 0..=metadata + 5), Some(metadata));
        assert_eq!(usable(3, 0..=metadata - 1), Some(metadata - 1));
        assert_eq!(usable(3, metadata + 1..=metadata + 5), None, "the broker is too new");
        let unknown = BrokerApi::new(9_999, 0..=1);
        assert_eq!((unknown.name, unknown.usable), (None, None));
    }
}
