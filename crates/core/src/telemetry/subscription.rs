//! The metrics that a broker's operator subscribed to, from GetTelemetrySubscriptions.

use std::time::Duration;

use ottla_protocol::{
    compress::Compression, generated::get_telemetry_subscriptions::GetTelemetrySubscriptionsResponse,
};

use super::registry::Temporality;
use crate::stats::metrics::{ClientKind, METRICS};

/// The push interval if a broker names none that is possible: Kafka's default.
pub(super) const DEFAULT_INTERVAL: Duration = Duration::from_secs(300);
/// Kafka's minimum of `interval.ms`.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Kafka's default of `telemetry.max.bytes`.
const DEFAULT_MAX_BYTES: usize = 1 << 20;
/// The longest name of a metric of the application, and the number of prefixes that are kept for them.
const LONGEST_PREFIX: usize = 255;
const MOST_PREFIXES: usize = 1_000;
/// The name that requests all metrics.
const EVERYTHING: &str = "*";

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    /// The ID; the broker changes it with the requested metrics.
    pub(super) id: i32,
    /// The time between two pushes.
    pub(super) interval: Duration,
    /// The compression of pushes.
    pub(super) codec: Compression,
    /// The maximum size of a push.
    pub(super) max_bytes: usize,
    /// Whether sums are totals or increases.
    pub(super) temporality: Temporality,
    /// False if the broker wants no metrics for now.
    pub(super) is_requested: bool,
    /// The requested metrics that the client has, as indices of [`METRICS`].
    pub(super) metrics: Vec<usize>,
    /// The prefixes that may name metrics of the application: those of a possible length, up to a number.
    pub(super) prefixes: Vec<String>,
}

impl Subscription {
    /// Reads a response. `refused` are codecs that the broker named but did not accept.
    pub(super) fn new(
        response: &GetTelemetrySubscriptionsResponse,
        kind: ClientKind,
        refused: &[Compression],
    ) -> Self {
        let codecs = response.accepted_compression_types.iter();
        let mut known = codecs.filter_map(|id| u8::try_from(*id).ok().and_then(Compression::from_id));
        let interval = u64::try_from(response.push_interval_ms).ok().filter(|millis| *millis > 0);
        let max_bytes = usize::try_from(response.telemetry_max_bytes).ok().filter(|bytes| *bytes > 0);
        Self {
            id: response.subscription_id,
            interval: interval
                .map_or(DEFAULT_INTERVAL, |millis| Duration::from_millis(millis).max(MIN_INTERVAL)),
            codec: known.find(|codec| !refused.contains(codec)).unwrap_or(Compression::None),
            max_bytes: max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            temporality: match response.delta_temporality {
                true => Temporality::Delta,
                false => Temporality::Cumulative,
            },
            is_requested: !response.requested_metrics.is_empty(),
            metrics: select(&response.requested_metrics, kind),
            prefixes: response
                .requested_metrics
                .iter()
                .filter(|prefix| prefix.len() <= LONGEST_PREFIX)
                .take(MOST_PREFIXES)
                .cloned()
                .collect(),
        }
    }
}

/// Returns the client's metrics whose names begin with one of the prefixes.
fn select(prefixes: &[String], kind: ClientKind) -> Vec<usize> {
    let is_requested = |name: &str| {
        let begins = |prefix: &String| match prefix.strip_prefix(kind.prefix()) {
            Some(rest) => name.starts_with(rest),
            None => prefix == EVERYTHING || kind.prefix().starts_with(prefix.as_str()),
        };
        prefixes.iter().any(begins)
    };
    let metrics = METRICS.iter().enumerate();
    metrics.filter(|(_, metric)| metric.is_of(kind) && is_requested(metric.name)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefixes: &[&str], kind: ClientKind) -> Vec<&'static str> {
        let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        select(&prefixes, kind).into_iter().map(|at| METRICS[at].name).collect()
    }

    #[test]
    fn metrics_are_selected_by_prefixes_of_their_full_names() {
        let kind = ClientKind::Producer;
        let all = names(&["*"], kind);
        assert_eq!(all.len(), METRICS.iter().filter(|metric| metric.is_of(kind)).count());
        for prefix in ["", "org.apache.", "org.apache.kafka.producer.", "org.apache.kafka.producer"] {
            assert_eq!(names(&[prefix], kind), all, "{prefix}");
        }
        assert_eq!(
            names(&["x", "org.apache.kafka.producer.request.latency"], kind),
            ["request.latency.avg", "request.latency.max"]
        );
        for nothing in ["org.apache.kafka.consumer.", "producer.", "**", "org.apache.kafka.producer.x"] {
            assert!(names(&[nothing], kind).is_empty(), "{nothing}");
        }
        assert!(names(&["org.apache.kafka.consumer.share"], ClientKind::Consumer).is_empty());
    }

    #[test]
    fn impossible_values_are_replaced_by_defaults() {
        let mut response = GetTelemetrySubscriptionsResponse {
            push_interval_ms: -1,
            telemetry_max_bytes: 0,
            accepted_compression_types: vec![-7, 99, 3, 4],
            ..Default::default()
        };
        let read = Subscription::new(&response, ClientKind::Producer, &[]);
        assert_eq!((read.interval, read.max_bytes), (DEFAULT_INTERVAL, DEFAULT_MAX_BYTES));
        assert_eq!((read.codec, read.is_requested), (Compression::Lz4, false));
        response.push_interval_ms = 1;
        response.requested_metrics = vec!["x".repeat(10_000); 1_000];
        let read = Subscription::new(&response, ClientKind::Producer, &[Compression::Lz4]);
        assert_eq!((read.interval, read.codec), (MIN_INTERVAL, Compression::Zstd));
        assert!(read.is_requested && read.metrics.is_empty());
        response.accepted_compression_types.clear();
        assert_eq!(Subscription::new(&response, ClientKind::Producer, &[]).codec, Compression::None);
    }
}
