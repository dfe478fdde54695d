//! The client's metrics for other systems than brokers, such as OpenTelemetry.

use std::fmt;

use ottla_core::{
    lock::Mutex,
    stats::{
        Statistics, Window,
        metrics::{ClientKind, METRICS},
    },
    telemetry::registry::{MetricPoint, PointKind, Registry, Temporality},
};
use ottla_net::clock;

pub use ottla_core::telemetry::registry::MetricValue;

/// The metrics of a client at a point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsSnapshot {
    kind: ClientKind,
    points: Vec<MetricPoint>,
}

/// A metric with its value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The name of the Java client's metric, such as `org.apache.kafka.producer.request.latency.avg` (docs/guide/telemetry.md).
    pub name: String,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// The value.
    pub value: MetricValue,
    /// The broker that the value belongs to, if it belongs to one.
    pub node_id: Option<i64>,
    /// The start of the period, in nanoseconds since 1970: the start of the client for sums, the last call for others.
    pub start_unix_nanos: u64,
    /// The time of the value, in nanoseconds since 1970.
    pub time_unix_nanos: u64,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A current value.
    Gauge,
    /// A total since the start of the client that only grows.
    Sum,
}

impl MetricsSnapshot {
    /// Iterates over the metrics, in the order of docs/guide/telemetry.md. Metrics without values are left out.
    pub fn iter(&self) -> impl Iterator<Item = Metric> + '_ {
        self.points.iter().map(|point| Metric {
            name: format!("{}{}", self.kind.prefix(), point.name),
            kind: match point.kind {
                PointKind::Gauge => MetricKind::Gauge,
                PointKind::Sum(_) => MetricKind::Sum,
            },
            value: point.value,
            node_id: point.node,
            start_unix_nanos: point.start_unix_nanos,
            time_unix_nanos: point.time_unix_nanos,
        })
    }
}

/// A function that receives metrics.
pub(crate) type MetricsCallback = dyn Fn(&MetricsSnapshot) + Send + Sync;

/// Passes the metrics of each snapshot of the statistics to a function.
pub(crate) struct MetricsHook {
    kind: ClientKind,
    all: Vec<usize>,
    registry: Mutex<Registry>,
    callback: Box<MetricsCallback>,
}

impl MetricsHook {
    pub(crate) fn new(kind: ClientKind, callback: Box<MetricsCallback>) -> Self {
        let mut registry = Registry::new(kind);
        registry.begin(clock::now());
        let all = METRICS.iter().enumerate().filter(|(_, metric)| metric.is_of(kind)).map(|(at, _)| at);
        Self { kind, all: all.collect(), registry: Mutex::new(registry), callback }
    }

    pub(crate) fn take(&self, statistics: &Statistics) {
        let clock = |at| clock::unix_nanos(at);
        let (points, _) = self.registry.lock().read(
            clock::now(),
            &clock,
            statistics,
            &self.all,
            Temporality::Cumulative,
            Window::summary,
        );
        (self.callback)(&MetricsSnapshot { kind: self.kind, points });
    }
}

impl fmt::Debug for MetricsHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsHook").field("kind", &self.kind).finish_non_exhaustive()
    }
}
