//! GetTelemetrySubscriptions (71), version 0: which metrics a client instance pushes, and how. A client without an
//! instance ID receives one.

use ottla_protocol::{
    compress::Compression,
    generated::get_telemetry_subscriptions::{
        GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
    },
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request, telemetry::ClientTelemetry};

/// Kafka's `telemetry.max.bytes`: the limit for the compressed and for the decompressed metrics of a push.
pub(crate) const TELEMETRY_MAX_BYTES: usize = 1 << 20;
/// The limit that librdkafka's mock cluster reports.
const MOCK_MAX_BYTES: i32 = 10_000;

/// The accepted compression types in order of preference, Kafka's and librdkafka's. Uncompressed metrics are accepted,
/// too.
const ACCEPTED: [Compression; 4] =
    [Compression::Zstd, Compression::Lz4, Compression::Gzip, Compression::Snappy];

impl Cluster {
    pub(crate) fn get_telemetry_subscriptions(
        &mut self,
        request: &mut Request,
        body: GetTelemetrySubscriptionsRequest,
    ) -> GetTelemetrySubscriptionsResponse {
        let mut response = GetTelemetrySubscriptionsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        };
        if request.struck.error.is_some() {
            return response;
        }
        let client_instance_id = match body.client_instance_id {
            Uuid::ZERO => Uuid(self.random.uuid_bytes()),
            known => known,
        };
        let is_mock = self.options.client_telemetry == ClientTelemetry::Mock;
        let now = self.now;
        let instance = self.client_instance(request, client_instance_id);
        if !is_mock && let Err(error) = instance.check_get(now) {
            instance.last_known_error = error;
            response.error_code = error;
            return response;
        }
        instance.last_known_error = response.error_code;
        let (subscription_id, mut asked) = (instance.subscription_id, instance.asked.clone());
        if is_mock {
            asked.metrics = self.telemetry.requested_metrics().to_vec();
        }
        response.subscription_id = if is_mock { 0 } else { subscription_id };
        response.client_instance_id = client_instance_id;
        response.accepted_compression_types = ACCEPTED.map(|codec| codec.id().cast_signed()).to_vec();
        response.push_interval_ms = i32::try_from(asked.interval.as_millis()).unwrap_or(i32::MAX);
        response.telemetry_max_bytes = match is_mock {
            true => MOCK_MAX_BYTES,
            false => i32::try_from(TELEMETRY_MAX_BYTES).unwrap_or(i32::MAX),
        };
        response.delta_temporality = true;
        response.requested_metrics = asked.metrics;
        response
    }
}
