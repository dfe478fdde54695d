//! PushTelemetry (72), version 0: a client instance's metrics. The decompressed size is limited, as in Kafka since
//! CVE-2026-111073.

use ottla_protocol::{
    compress::{self, Compression},
    error_code::ErrorCode,
    generated::push_telemetry::{PushTelemetryRequest, PushTelemetryResponse},
    uuid::Uuid,
};

use super::get_telemetry_subscriptions::TELEMETRY_MAX_BYTES;
use crate::{
    cluster::Cluster,
    connection::Request,
    otlp,
    telemetry::{ClientInstance, ClientMetadata, ClientTelemetry, TelemetryPush},
};

/// Reserved IDs of Kafka, which no client has.
const ONE: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

impl Cluster {
    pub(crate) fn push_telemetry(
        &mut self,
        request: &mut Request,
        body: PushTelemetryRequest,
    ) -> PushTelemetryResponse {
        let taken = match request.struck.error {
            Some(error) => Err(error),
            None => self.take_push(request, body),
        };
        PushTelemetryResponse {
            throttle_time_ms: request.throttle_ms(),
            error_code: taken.err().unwrap_or(ErrorCode::NONE),
        }
    }

    fn take_push(&mut self, request: &Request, body: PushTelemetryRequest) -> Result<(), ErrorCode> {
        let is_mock = self.options.client_telemetry == ClientTelemetry::Mock;
        let id = body.client_instance_id;
        if !is_mock && matches!(id, Uuid::ZERO | ONE) {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        let now = self.now;
        let instance = self.client_instance(request, id);
        let taken = (if is_mock { Ok(()) } else { check(instance, now, &body) })
            .and_then(|()| unpack(body.compression_type, &body.metrics));
        instance.last_known_error = taken.as_ref().err().copied().unwrap_or(ErrorCode::NONE);
        let (compression, metrics) = taken?;
        let software = self.connection_mut(request.connection).and_then(|state| state.software.clone());
        self.telemetry.keep(TelemetryPush {
            at: now,
            broker: request.broker,
            client_instance_id: id,
            client_id: request.client_id.clone(),
            software,
            subscription_id: body.subscription_id,
            terminating: body.terminating,
            compression,
            metrics,
        });
        Ok(())
    }

    /// Returns the client instance as known to the broker that received the request.
    pub(crate) fn client_instance(&mut self, request: &Request, id: Uuid) -> &mut ClientInstance {
        let open = self.connections_of(Some(request.broker));
        let state = self.connection_mut(request.connection);
        let (software, address) = state.map_or((None, None), |state| (state.software.clone(), state.peer));
        let client =
            ClientMetadata { instance_id: id, client_id: request.client_id.clone(), software, address };
        let clients = self.telemetry_clients.entry(request.broker).or_default();
        clients
            .instance(&self.telemetry, &client, request.connection, |connection| open.contains(&connection))
    }
}

fn check(
    instance: &mut ClientInstance,
    now: ottla_protocol::time::Instant,
    body: &PushTelemetryRequest,
) -> Result<(), ErrorCode> {
    instance.check_push(now, body.subscription_id, body.terminating)?;
    if codec(body.compression_type).is_none() {
        return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    if body.metrics.len() > TELEMETRY_MAX_BYTES {
        return Err(ErrorCode::TELEMETRY_TOO_LARGE);
    }
    Ok(())
}

/// Decompresses the metrics. Metrics that can't be decompressed, or that exceed the size limit, give INVALID_RECORD:
/// Kafka returns this error whenever its plugin fails.
fn unpack(compression_type: i8, metrics: &[u8]) -> Result<(Compression, Vec<u8>), ErrorCode> {
    let codec = codec(compression_type).ok_or(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE)?;
    let mut unpacked = Vec::new();
    if !metrics.is_empty() {
        compress::decompress(codec, metrics, TELEMETRY_MAX_BYTES, &mut unpacked)
            .map_err(|_| ErrorCode::INVALID_RECORD)?;
        otlp::check(&unpacked).map_err(|_| ErrorCode::INVALID_RECORD)?;
    }
    Ok((codec, unpacked))
}

fn codec(compression_type: i8) -> Option<Compression> {
    u8::try_from(compression_type).ok().and_then(Compression::from_id)
}
