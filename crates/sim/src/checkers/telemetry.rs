//! Checks client telemetry (KIP-714) on the wire: no push before the interval, no question without a reason, one client
//! instance ID, one last push, and nothing after an error that ends telemetry.

use std::time::Duration;

use ottla_core::machine::Instant;
use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{get_telemetry_subscriptions, push_telemetry},
    primitive::{DecodeError, Reader},
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::Broken;

/// The shortest time between two questions of a client that knows no interval: its retry, with jitter.
const RETRY: Duration = Duration::from_secs(24);
/// The interval that stands for one that is not positive.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(300);

/// A request.
#[derive(Debug)]
pub enum TelemetryRequest {
    /// A question for the subscription.
    Ask(get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest),
    /// A push.
    Push(push_telemetry::PushTelemetryRequest),
}

/// A response.
#[derive(Debug)]
pub enum TelemetryResponse {
    /// A subscription.
    Subscription(get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse),
    /// The outcome of a push.
    Pushed(push_telemetry::PushTelemetryResponse),
}

impl TelemetryRequest {
    /// Decodes a request of telemetry; `None` for other APIs.
    pub fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Option<Result<Self, DecodeError>> {
        match api {
            ApiKey::GetTelemetrySubscriptions => Some(
                get_telemetry_subscriptions::GetTelemetrySubscriptionsRequest::decode(reader, version)
                    .map(Self::Ask),
            ),
            ApiKey::PushTelemetry => {
                Some(push_telemetry::PushTelemetryRequest::decode(reader, version).map(Self::Push))
            }
            _ => None,
        }
    }

    /// Returns the line for the trace.
    pub fn details(&self) -> String {
        match self {
            Self::Ask(ask) => format!(" as {}", ask.client_instance_id),
            Self::Push(push) => {
                let size = push.metrics.len();
                let last = if push.terminating { ", the last one" } else { "" };
                format!(" of subscription {}, {size} bytes{last}", push.subscription_id)
            }
        }
    }
}

impl TelemetryResponse {
    /// Decodes a response of telemetry; `None` for other APIs.
    pub fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Option<Result<Self, DecodeError>> {
        match api {
            ApiKey::GetTelemetrySubscriptions => Some(
                get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse::decode(reader, version)
                    .map(Self::Subscription),
            ),
            ApiKey::PushTelemetry => {
                Some(push_telemetry::PushTelemetryResponse::decode(reader, version).map(Self::Pushed))
            }
            _ => None,
        }
    }

    /// Returns the error code.
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            Self::Subscription(response) => response.error_code,
            Self::Pushed(response) => response.error_code,
        }
    }
}

/// What the clients of a world did.
#[derive(Debug, Default)]
pub struct TelemetryTraffic {
    clients: SortedMap<usize, Exchange>,
    /// Clients that were closed while they pushed metrics, and had no reason not to push once more.
    owed: SortedSet<usize>,
}

/// The exchange of one client.
#[derive(Debug, Default)]
struct Exchange {
    instance_id: Option<Uuid>,
    interval: Option<Duration>,
    /// The broker requests metrics.
    is_requested: bool,
    asked_at: Option<Instant>,
    pushed_at: Option<Instant>,
    /// The last push failed for its subscription.
    may_ask_at_once: bool,
    /// The subscription was renewed at once since the last accepted push.
    has_renewed: bool,
    is_in_flight: bool,
    is_off: bool,
    last_pushes: u32,
}

impl TelemetryTraffic {
    /// Checks a request.
    pub fn sent(&mut self, now: Instant, client: usize, request: &TelemetryRequest) -> Result<(), Broken> {
        let known = self.clients.entry(client).or_default();
        let broken = |what: String| Err(Broken::new("telemetry", format!("client {client} {what}")));
        if known.is_off {
            return broken("sends metrics after an error that ends it".into());
        }
        if known.last_pushes > 0 {
            return broken("goes on after its last push".into());
        }
        let instance_id = match request {
            TelemetryRequest::Ask(ask) => ask.client_instance_id,
            TelemetryRequest::Push(push) => push.client_instance_id,
        };
        if known.instance_id.is_some_and(|id| id != instance_id) {
            return broken(format!("is {instance_id} and was {:?}", known.instance_id));
        }
        known.is_in_flight = true;
        match request {
            TelemetryRequest::Ask(_) => {
                let pause = known.interval.map_or(RETRY, |interval| interval.min(RETRY));
                let is_early = known.asked_at.is_some_and(|at| now < at + pause);
                if is_early && !known.may_ask_at_once {
                    return broken(format!("asks again, less than {pause:?} after its last question"));
                }
                if known.may_ask_at_once && known.has_renewed && is_early {
                    return broken("renews its subscription at once, twice in a row".into());
                }
                known.has_renewed |= known.may_ask_at_once;
                known.may_ask_at_once = false;
                known.asked_at = Some(now);
            }
            TelemetryRequest::Push(push) if push.terminating => {
                known.last_pushes += 1;
                self.owed.remove(&client);
            }
            TelemetryRequest::Push(_) => {
                let Some(interval) = known.interval.filter(|_| known.is_requested) else {
                    return broken("pushes metrics without a request for them".into());
                };
                if known.pushed_at.is_some_and(|at| now < at + interval) {
                    return broken(format!("pushes more often than every {interval:?}"));
                }
                known.pushed_at = Some(now);
            }
        }
        Ok(())
    }

    /// Checks a response.
    pub fn received(&mut self, client: usize, response: &TelemetryResponse) -> Result<(), Broken> {
        let known = self.clients.entry(client).or_default();
        known.is_in_flight = false;
        let code = response.error_code();
        // The embedded broker does not know that the error of a push was injected, which permits a question at once.
        let is_pushed = matches!(response, TelemetryResponse::Pushed(_));
        if is_pushed && code == ErrorCode::THROTTLING_QUOTA_EXCEEDED {
            let what = format!("client {client} pushes metrics earlier than the broker allows");
            return Err(Broken::new("telemetry", what));
        }
        known.is_off |= matches!(code, ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_RECORD);
        match response {
            TelemetryResponse::Subscription(response) if code == ErrorCode::NONE => {
                let millis = u64::try_from(response.push_interval_ms).ok().filter(|millis| *millis > 0);
                known.interval = Some(millis.map_or(DEFAULT_INTERVAL, Duration::from_millis));
                known.is_requested = !response.requested_metrics.is_empty();
                known.instance_id.get_or_insert(response.client_instance_id);
            }
            TelemetryResponse::Subscription(_) => known.is_requested = false,
            TelemetryResponse::Pushed(_) => match code {
                ErrorCode::NONE => known.has_renewed = false,
                ErrorCode::UNKNOWN_SUBSCRIPTION_ID | ErrorCode::UNSUPPORTED_COMPRESSION_TYPE => {
                    known.may_ask_at_once = true;
                    known.is_requested = false;
                }
                ErrorCode::TELEMETRY_TOO_LARGE => {}
                _ => known.is_requested = false,
            },
        }
        Ok(())
    }

    /// Clients are about to be closed: those that push metrics push once more.
    pub fn close(&mut self, clients: &[usize]) {
        let pushes = |client: &&usize| {
            let known = self.clients.get(client);
            known.is_some_and(|known| known.is_requested && !known.is_off && !known.is_in_flight)
        };
        self.owed = clients.iter().filter(pushes).copied().collect();
    }

    /// Checks that the clients that were closed while they pushed metrics have pushed once more.
    pub fn check_last_pushes(&self) -> Result<(), Broken> {
        match self.owed.first() {
            None => Ok(()),
            Some(client) => {
                let what = format!("client {client} was closed and did not push once more");
                Err(Broken::new("telemetry", what))
            }
        }
    }

    /// Returns the number of clients that made a last push.
    pub fn last_pushes(&self) -> usize {
        self.clients.values().filter(|known| known.last_pushes > 0).count()
    }
}
