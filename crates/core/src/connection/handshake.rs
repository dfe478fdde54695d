//! The ApiVersions handshake: asks a broker for its API versions, or assumes those of a release.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    primitive::Reader,
};

use super::{Connection, ConnectionOutput, Response, State};
use crate::{
    connection::{
        inflight::RequestTag,
        throttle::FIRST_API_VERSIONS,
        versions::{self, Versions},
    },
    contract::broker::TransactionFeatures,
    error::{Error, ErrorKind},
    machine::Instant,
};

impl Connection {
    pub(super) fn ask_versions(&mut self, now: Instant, version: i16) {
        // A broker refuses the connection if it is another node, or of another cluster (KIP-1242).
        let expected = self.cluster_id.as_deref().zip(self.node_id);
        let request = ApiVersionsRequest {
            client_software_name: self.settings.software_name.clone(),
            client_software_version: self.settings.software_version.clone(),
            cluster_id: expected.map(|(cluster, _)| cluster.to_owned()),
            node_id: expected.map_or(-1, |(_, node)| node.get()),
        };
        let timeout = self.settings.ask_versions_timeout;
        if let Err(error) =
            self.send(now, ApiKey::ApiVersions, version, RequestTag::Versions, timeout, |out| {
                request.encode(version, out)
            })
        {
            self.fail(now, error);
        }
    }

    /// Requests the API versions again on a ready connection, because the last response lacked an API that other
    /// brokers have. A single response may be wrong. Does nothing if the versions are guessed or already requested.
    pub fn ask_versions_again(&mut self, now: Instant) {
        let is_asking = self.in_flight.iter().any(|request| request.tag == RequestTag::Versions);
        let is_authenticating = self.authentication.is_running();
        if self.is_ready() && !self.versions.is_guessed() && !is_asking && !is_authenticating {
            let version = self.versions.pick_any(ApiKey::ApiVersions).unwrap_or(0);
            self.ask_versions(now, version);
        }
    }

    pub(super) fn handle_versions(&mut self, now: Instant, response: &Response) {
        let mut reader = Reader::new(response.body());
        let asked = response.request.version;
        // A broker that does not know the request's version responds in version 0.
        let code = response.body().first_chunk::<2>().map(|bytes| ErrorCode(i16::from_be_bytes(*bytes)));
        let is_unsupported = code == Some(ErrorCode::UNSUPPORTED_VERSION);
        let version = if is_unsupported { 0 } else { asked };
        let response = ApiVersionsResponse::decode(&mut reader, version);
        if is_unsupported && asked > 0 {
            // The error code is enough: some brokers send another body after it, or none. Every broker supports version
            // 0.
            self.has_response = true;
            let rows = response.map_or_else(|_| Vec::new(), |response| response.api_keys);
            let offered = rows.iter().find(|row| row.api_key == ApiKey::ApiVersions as i16);
            let version = offered.map_or(0, |row| row.max_version.clamp(0, asked - 1));
            return self.ask_versions(now, version);
        }
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                let kind = if self.has_versions { ErrorKind::BadResponse } else { ErrorKind::NotKafka };
                let detail = format!("the response to ApiVersions can't be decoded: {error}");
                return self.fail(now, Error::new(kind, detail).with_api("ApiVersions"));
            }
        };
        self.has_response = true;
        if response.error_code != ErrorCode::NONE {
            let detail = self.misrouted(response.error_code);
            return self
                .fail(now, Error::broker(response.error_code, detail.as_deref()).with_api("ApiVersions"));
        }
        let rows = response.api_keys.iter().map(|row| (row.api_key, row.min_version, row.max_version));
        if let Err(detail) = versions::check(rows.clone()) {
            return self.fail(now, Error::new(ErrorKind::BadResponse, detail).with_api("ApiVersions"));
        }
        self.has_versions = true;
        self.transaction_version = transaction_version(&response);
        self.closed_while_asking = 0;
        self.versions = Versions::new(rows);
        if self.is_ready() {
            // This was a repeated request on a connection in use.
            self.cap_versions();
        } else if self.settings.sasl.is_none() {
            self.become_ready(now);
        } else {
            self.throttled_until = None;
            self.state = State::Authenticating;
        }
        if let Ok(millis) = u64::try_from(response.throttle_time_ms)
            && version >= FIRST_API_VERSIONS
            && millis > 0
        {
            self.throttle(now, Duration::from_millis(millis));
        }
        if self.state == State::Authenticating && self.throttled_until.is_none() {
            self.authenticate(now);
        }
    }

    /// Returns the explanation of an error if the broker is not the one that the client has asked for.
    fn misrouted(&self, code: ErrorCode) -> Option<String> {
        let (cluster, node) = self.cluster_id.as_deref().zip(self.node_id)?;
        (code == ErrorCode::REBOOTSTRAP_REQUIRED).then(|| {
            format!(
                "the address does not lead to node {} of cluster \"{cluster}\"; check the advertised listeners and the \
                 load balancer",
                node.get()
            )
        })
    }

    /// Returns what the broker supports of transactions.
    pub(crate) fn transaction_features(&self) -> TransactionFeatures {
        let (transaction_version, epoch) = self.transaction_version;
        let has = |api, version| self.versions.pick(api, version..=version).is_some();
        let has_versions =
            has(ApiKey::Produce, 12) && has(ApiKey::TxnOffsetCommit, 5) && has(ApiKey::EndTxn, 5);
        TransactionFeatures { transaction_version, epoch, has_versions }
    }

    pub(super) fn become_ready(&mut self, now: Instant) {
        self.cap_versions();
        self.state = State::Ready;
        self.throttled_until = None;
        self.ready_at = now;
        self.failed_setups = 0;
        self.outputs.push_back(ConnectionOutput::Up);
    }

    pub(super) fn cap_versions(&mut self) {
        for (api, highest) in &self.settings.version_caps {
            self.versions.cap(*api, *highest);
        }
    }
}

/// Returns the cluster's level of the feature `transaction.version`, and the epoch of the features.
fn transaction_version(response: &ApiVersionsResponse) -> (i16, i64) {
    let feature = response.finalized_features.iter().find(|feature| feature.name == "transaction.version");
    (feature.map_or(0, |feature| feature.max_version_level), response.finalized_features_epoch)
}
