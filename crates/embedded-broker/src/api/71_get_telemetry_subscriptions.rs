//! GetTelemetrySubscriptions (71), version 0: what a client instance is to push, and how. A client that has no id yet gets
//! one.

use ottla_protocol::{
    compress::Compression,
    generated::get_telemetry_subscriptions::{
        GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
    },
    uuid::Uuid,
};

use crate::{cluster::Cluster, connection::Request, telemetry::ClientTelemetry};

/// Kafka's `telemetry.max.bytes`: of a push as it comes and as it is decompressed.
pub(crate) const TELEMETRY_MAX_BYTES: usize = 1 << 20;
/// What librdkafka's mock cluster says instead.
const MOCK_MAX_BYTES: i32 = 10_000;

/// In the order of preference, Kafka's and librdkafka's. Metrics that are not compressed are taken, too.
const ACCEPTED: [Compression; 4] =
    [Compression::Zstd, Compression::Lz4, Compression::Gzip, Compression::Snappy];

impl Cluster {
    pub(crate) fn get_telemetry_subscriptions(
        &mut self,
        request: &mut Request,
        body: GetTelemetrySubscriptionsRequest,
    ) -> GetTelemetrySubscriptionsResponse {
        let mut answer = GetTelemetrySubscriptionsResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: request.injected_error(),
            ..Default::default()
        };
        if request.struck.error.is_some() {
            return answer;
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
            answer.error_code = error;
            return answer;
        }
        instance.last_known_error = answer.error_code;
        let (subscription_id, mut asked) = (instance.subscription_id, instance.asked.clone());
        if is_mock {
            asked.metrics = self.telemetry.requested_metrics().to_vec();
        }
        answer.subscription_id = if is_mock { 0 } else { subscription_id };
        answer.client_instance_id = client_instance_id;
        answer.accepted_compression_types = ACCEPTED.map(|codec| codec.id().cast_signed()).to_vec();
        answer.push_interval_ms = i32::try_from(asked.interval.as_millis()).unwrap_or(i32::MAX);
        answer.telemetry_max_bytes = match is_mock {
            true => MOCK_MAX_BYTES,
            false => i32::try_from(TELEMETRY_MAX_BYTES).unwrap_or(i32::MAX),
        };
        answer.delta_temporality = true;
        answer.requested_metrics = asked.metrics;
        answer
    }
}
