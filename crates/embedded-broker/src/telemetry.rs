//! Client telemetry (KIP-714): the requested metrics, and the metrics that clients pushed.
//!
//! Each broker tracks its own clients and applies Kafka's rules to them ([`Clients`]). Subscriptions and pushed metrics
//! belong to the cluster ([`Telemetry`]).
//!
//! # Pitfalls
//!
//! - Metrics that clients push may be compressed a thousandfold. The broker decompresses at most as many bytes as it
//!   would accept uncompressed (`invalid_pushes_are_refused_each_with_its_error`).
//! - Each broker has its own clock for a client's pushes and forgets it with the connection. A push that is refused for
//!   its subscription still counts for the interval, as in Apache Kafka
//!   (`push_of_another_subscription_is_rejected_and_may_be_renewed_at_once`).

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use ottla_protocol::{compress::Compression, error_code::ErrorCode, time::Instant, uuid::Uuid};
use ottla_sorted::{SortedMap, SortedSet};

use crate::{
    api::client_metrics::Subscription,
    connection::ConnectionId,
    options::BrokerId,
    otlp::{self, MetricPoint},
};

/// The handling of client metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientTelemetry {
    /// Brokers don't serve the APIs, like Kafka without a metrics plugin.
    #[default]
    None,
    /// Brokers apply Apache Kafka's rules.
    Kafka,
    /// Brokers accept all pushes, like librdkafka's mock cluster: any subscription, at any time.
    Mock,
}

/// The telemetry of a cluster.
#[derive(Debug)]
pub struct Telemetry {
    /// Of every client.
    requested_metrics: Vec<String>,
    push_interval: Duration,
    /// The subscriptions by name.
    subscriptions: SortedMap<String, Subscription>,
    /// The number of changes of the requested metrics.
    version: u64,
    pushes: VecDeque<TelemetryPush>,
    /// The size of the metrics in `pushes`, in bytes.
    kept_bytes: usize,
    dropped: u64,
}

/// A push that the cluster accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryPush {
    /// The time.
    pub at: Instant,
    /// To which broker.
    pub broker: BrokerId,
    /// The client instance that pushed.
    pub client_instance_id: Uuid,
    /// The client ID of the request header.
    pub client_id: Option<String>,
    /// The client's software name and version from its ApiVersions request.
    pub software: Option<(String, String)>,
    /// Of which subscription.
    pub subscription_id: i32,
    /// The push was the client's last one.
    pub terminating: bool,
    /// The compression of the push; `metrics` is decompressed.
    pub compression: Compression,
    /// OTLP's `MetricsData`; empty if the client has none of the requested metrics.
    pub metrics: Vec<u8>,
}

impl TelemetryPush {
    /// Returns the values of gauges and sums.
    pub fn points(&self) -> Vec<MetricPoint> {
        otlp::points(&self.metrics).unwrap_or_default()
    }

    /// Returns the client's resource attributes, such as `client_rack` and `group_id`.
    pub fn resource_attributes(&self) -> Vec<(String, String)> {
        otlp::resource_attributes(&self.metrics).unwrap_or_default()
    }
}

/// Kafka's default of `interval.ms`.
const DEFAULT_PUSH_INTERVAL: Duration = Duration::from_secs(300);
/// The maximum number of kept pushes, and of their bytes; the oldest are dropped first.
const MOST_PUSHES: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            requested_metrics: Vec::new(),
            push_interval: DEFAULT_PUSH_INTERVAL,
            subscriptions: SortedMap::new(),
            version: 0,
            pushes: VecDeque::new(),
            kept_bytes: 0,
            dropped: 0,
        }
    }
}

impl Telemetry {
    /// Sets the requested metrics: name prefixes, `*` for all, an empty list for none.
    pub fn set_requested_metrics<S: Into<String>>(&mut self, metrics: impl IntoIterator<Item = S>) {
        self.requested_metrics = metrics.into_iter().map(Into::into).collect();
        self.version += 1;
    }

    /// Sets the push interval. Zero is Kafka's default, five minutes.
    pub fn set_push_interval(&mut self, interval: Duration) {
        self.push_interval = if interval.is_zero() { DEFAULT_PUSH_INTERVAL } else { interval };
        self.version += 1;
    }

    /// Returns the requested metrics.
    pub fn requested_metrics(&self) -> &[String] {
        &self.requested_metrics
    }

    /// Returns the push interval.
    pub fn push_interval(&self) -> Duration {
        self.push_interval
    }

    /// Returns the pushes that were not taken, oldest first: at most 1,000 pushes and 16 MiB.
    pub fn pushes(&self) -> impl Iterator<Item = &TelemetryPush> {
        self.pushes.iter()
    }

    /// Takes the pushes since the last call.
    pub fn take_pushes(&mut self) -> Vec<TelemetryPush> {
        self.kept_bytes = 0;
        self.pushes.drain(..).collect()
    }

    /// Returns the number of pushes that were dropped in favour of newer ones.
    pub fn dropped_pushes(&self) -> u64 {
        self.dropped
    }

    /// Keeps a push.
    pub(crate) fn keep(&mut self, push: TelemetryPush) {
        self.kept_bytes += push.metrics.len();
        self.pushes.push_back(push);
        while self.pushes.len() > MOST_PUSHES || self.kept_bytes > MOST_BYTES {
            let Some(oldest) = self.pushes.pop_front() else { return };
            self.kept_bytes -= oldest.metrics.len();
            self.dropped += 1;
        }
    }

    /// Returns a subscription by its name.
    pub(crate) fn subscription(&self, name: &str) -> Option<&Subscription> {
        self.subscriptions.get(name)
    }

    /// Returns the names of all subscriptions.
    pub(crate) fn subscription_names(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.keys().map(String::as_str)
    }

    /// Creates, replaces or removes a subscription.
    pub(crate) fn set_subscription(&mut self, name: &str, subscription: Option<Subscription>) {
        match subscription {
            Some(subscription) => self.subscriptions.insert(name.to_owned(), subscription),
            None => self.subscriptions.remove(name),
        };
        self.version += 1;
    }

    /// Returns the combined request to a client: the union of all matching subscriptions, at the shortest of their
    /// intervals.
    fn asked_of(&self, client: &ClientMetadata) -> Asked {
        let mut metrics: SortedSet<&str> = self.requested_metrics.iter().map(String::as_str).collect();
        let mut interval = self.push_interval;
        for subscription in self.subscriptions.values().filter(|one| one.matches(client)) {
            metrics.extend(subscription.metrics.iter().map(String::as_str));
            interval = interval.min(subscription.interval.unwrap_or(DEFAULT_PUSH_INTERVAL));
        }
        if metrics.contains("*") {
            metrics = SortedSet::from(["*"]);
        }
        Asked { metrics: metrics.into_iter().map(str::to_owned).collect(), interval }
    }
}

/// The metrics and the interval that are requested from a client.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub metrics: Vec<String>,
    pub interval: Duration,
}

impl Asked {
    /// Returns the subscription ID for a client instance; it changes with the requested metrics.
    fn id(&self, client_instance_id: Uuid) -> i32 {
        let interval = self.interval.as_nanos().to_be_bytes();
        let names = self.metrics.iter().flat_map(|name| [name.as_bytes(), b"\n"]);
        let parts = names.chain([&interval[..], &client_instance_id.0]);
        let hash = parts
            .flatten()
            .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        hash.cast_signed()
    }
}

/// The properties of a client that subscriptions match.
#[derive(Clone, Debug)]
pub(crate) struct ClientMetadata {
    pub instance_id: Uuid,
    pub client_id: Option<String>,
    pub software: Option<(String, String)>,
    pub address: Option<SocketAddr>,
}

/// The client instances of a broker.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    instances: SortedMap<Uuid, ClientInstance>,
}

/// The state of a client instance.
#[derive(Clone, Debug)]
pub(crate) struct ClientInstance {
    /// The instance is forgotten when this connection is closed.
    connection: ConnectionId,
    version: u64,
    pub subscription_id: i32,
    pub asked: Asked,
    last_get: Option<Instant>,
    last_push: Option<Instant>,
    pub last_known_error: ErrorCode,
    terminating: bool,
}

/// Kafka's maximum number of client instances per broker.
const MOST_INSTANCES: usize = 16_384;

impl Clients {
    /// Returns the instance with this ID; creates it if it is unknown, the subscriptions have changed, or its
    /// connection is closed.
    pub fn instance(
        &mut self,
        telemetry: &Telemetry,
        client: &ClientMetadata,
        connection: ConnectionId,
        is_open: impl Fn(ConnectionId) -> bool,
    ) -> &mut ClientInstance {
        let id = client.instance_id;
        let fresh = || {
            let asked = telemetry.asked_of(client);
            ClientInstance {
                connection,
                version: telemetry.version,
                subscription_id: asked.id(id),
                asked,
                last_get: None,
                last_push: None,
                last_known_error: ErrorCode::NONE,
                terminating: false,
            }
        };
        if self.instances.len() >= MOST_INSTANCES && !self.instances.contains_key(&id) {
            self.instances.retain(|_, instance| is_open(instance.connection));
            while self.instances.len() >= MOST_INSTANCES {
                self.instances.pop_first();
            }
        }
        let instance = self.instances.entry(id).or_insert_with(fresh);
        if instance.version != telemetry.version || !is_open(instance.connection) {
            *instance = fresh();
        }
        instance
    }
}

impl ClientInstance {
    /// Checks a GetTelemetrySubscriptions request: clients may not send it more often than they push, unless an error
    /// asked them to.
    pub fn check_get(&mut self, now: Instant) -> Result<(), ErrorCode> {
        let last = self.last_get.max(self.last_push);
        if self.is_time(last, now) {
            self.last_get = Some(now);
        } else if !matches!(
            self.last_known_error,
            ErrorCode::UNKNOWN_SUBSCRIPTION_ID | ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
        ) {
            return Err(ErrorCode::THROTTLING_QUOTA_EXCEEDED);
        }
        Ok(())
    }

    /// Checks a PushTelemetry request. The first push after a new subscription may come at any time, because clients
    /// spread them, and so may the last push.
    pub fn check_push(
        &mut self,
        now: Instant,
        subscription_id: i32,
        is_terminating: bool,
    ) -> Result<(), ErrorCode> {
        if std::mem::replace(&mut self.terminating, is_terminating) {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        if self.last_get > self.last_push || self.is_time(self.last_push, now) {
            self.last_push = Some(now);
        } else if !is_terminating {
            return Err(ErrorCode::THROTTLING_QUOTA_EXCEEDED);
        }
        if subscription_id != self.subscription_id {
            return Err(ErrorCode::UNKNOWN_SUBSCRIPTION_ID);
        }
        Ok(())
    }

    fn is_time(&self, last: Option<Instant>, now: Instant) -> bool {
        last.is_none_or(|last| now >= last + self.asked.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(size: usize) -> TelemetryPush {
        TelemetryPush {
            at: Instant::ZERO,
            broker: BrokerId(1),
            client_instance_id: Uuid::ZERO,
            client_id: None,
            software: None,
            subscription_id: 0,
            terminating: false,
            compression: Compression::None,
            metrics: vec![0; size],
        }
    }

    fn client(byte: u8) -> ClientMetadata {
        ClientMetadata { instance_id: Uuid([byte; 16]), client_id: None, software: None, address: None }
    }

    #[test]
    fn oldest_pushes_are_dropped_above_the_count_or_byte_limit() {
        let mut telemetry = Telemetry::default();
        for size in 0..MOST_PUSHES + 5 {
            telemetry.keep(push(size));
        }
        assert_eq!((telemetry.pushes().count(), telemetry.dropped_pushes()), (MOST_PUSHES, 5));
        assert_eq!(telemetry.pushes().next().unwrap().metrics.len(), 5);
        telemetry.keep(push(MOST_BYTES));
        assert_eq!(telemetry.take_pushes().len(), 1);
        telemetry.keep(push(1));
        assert_eq!(telemetry.pushes().count(), 1, "pushes that were taken are not counted");
    }

    #[test]
    fn subscription_id_depends_on_the_metrics_and_on_the_client() {
        let mut telemetry = Telemetry::default();
        let id = |telemetry: &Telemetry, byte| {
            let client = client(byte);
            telemetry.asked_of(&client).id(client.instance_id)
        };
        let mut ids = vec![id(&telemetry, 1), id(&telemetry, 2)];
        for metrics in [&["a"][..], &["a", "b"], &["ab"]] {
            telemetry.set_requested_metrics(metrics.iter().copied());
            ids.push(id(&telemetry, 1));
        }
        telemetry.set_push_interval(Duration::from_secs(1));
        ids.push(id(&telemetry, 1));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 6);
    }

    #[test]
    fn full_broker_evicts_disconnected_clients_first() {
        let telemetry = Telemetry::default();
        let mut clients = Clients::default();
        let id = |i: u32| Uuid((u128::from(i) + 1).to_be_bytes());
        let client = |i: u32| ClientMetadata { instance_id: id(i), ..client(0) };
        let most = u32::try_from(MOST_INSTANCES).unwrap();
        let (open, closed) = (ConnectionId(1), ConnectionId(2));
        for i in 0..most {
            let connection = if (50..100).contains(&i) { closed } else { open };
            clients.instance(&telemetry, &client(i), connection, |_| true);
        }
        let is_open = |connection| connection == open;
        clients.instance(&telemetry, &client(most), open, is_open);
        let known = |clients: &Clients, i| clients.instances.contains_key(&id(i));
        assert_eq!([49, 50, 99, 100].map(|i| known(&clients, i)), [true, false, false, true]);
        for i in most..most + 50 {
            clients.instance(&telemetry, &client(i), open, is_open);
        }
        assert_eq!(clients.instances.len(), MOST_INSTANCES, "all are connected");
    }
}
