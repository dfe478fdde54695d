//! Metrics of the application that a client pushes with its own (KIP-1076).

use std::{fmt, sync::Arc};

use ottla_sorted::{Entry, SortedMap};

use super::registry::{MetricValue, PointKind, Temporality};
use crate::{
    callback::guarded,
    error::{Error, ErrorKind, Result},
    lock::Mutex,
};

/// The names that the clients themselves use.
const RESERVED: &str = "org.apache.kafka.";
const LONGEST_NAME: usize = 255;
const MOST_METRICS: usize = 1_000;

/// Returns the value of a metric.
type Read = Arc<dyn Fn() -> MetricValue + Send + Sync>;

/// Metrics of the application, which clients push to brokers with their own, if the broker's subscription names them. Cheap to
/// clone; all clones and all clients that have one share the metrics.
#[derive(Clone, Default)]
pub struct ApplicationMetrics(Arc<Mutex<SortedMap<String, Metric>>>);

#[derive(Clone)]
struct Metric {
    is_sum: bool,
    read: Read,
}

impl ApplicationMetrics {
    /// Creates it without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a current value. `read` returns it for each push, on an I/O thread: it must not block.
    ///
    /// Error: [`ErrorKind::InvalidArgument`]. The name exists; it is empty, longer than 255 characters, begins with
    /// `org.apache.kafka.`, or has other characters than letters, digits, `.`, `_` and `-`; there are 1,000 metrics.
    pub fn add_gauge(
        &self,
        name: &str,
        read: impl Fn() -> MetricValue + Send + Sync + 'static,
    ) -> Result<()> {
        self.add(name, Metric { is_sum: false, read: Arc::new(read) })
    }

    /// Adds a sum that only grows. See [`ApplicationMetrics::add_gauge`]; `read` returns the total.
    pub fn add_sum(&self, name: &str, read: impl Fn() -> i64 + Send + Sync + 'static) -> Result<()> {
        self.add(name, Metric { is_sum: true, read: Arc::new(move || MetricValue::Int(read())) })
    }

    fn add(&self, name: &str, metric: Metric) -> Result<()> {
        let is_known = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'_' | b'-');
        let invalid = |why: &str| {
            let shown: String = name.chars().take(LONGEST_NAME).collect();
            Err(Error::new(ErrorKind::InvalidArgument, format!("metric \"{shown}\": {why}")))
        };
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_known) {
            return invalid("names have 1 to 255 letters, digits, `.`, `_` and `-`");
        }
        if name.starts_with(RESERVED) {
            return invalid("names of clients begin with `org.apache.kafka.`");
        }
        let mut metrics = self.0.lock();
        if metrics.len() >= MOST_METRICS {
            return invalid("there are 1,000 metrics already");
        }
        match metrics.entry(name.to_owned()) {
            Entry::Occupied(_) => invalid("there is one with this name"),
            Entry::Vacant(place) => {
                place.insert(metric);
                Ok(())
            }
        }
    }

    /// Removes a metric. Returns false if there was none with this name.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.0.lock().remove(name);
        removed.is_some()
    }
}

impl fmt::Debug for ApplicationMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.lock().keys()).finish()
    }
}

/// A metric of the application with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ApplicationPoint {
    pub(super) name: String,
    pub(super) kind: PointKind,
    pub(super) value: MetricValue,
    pub(super) start_unix_nanos: u64,
    pub(super) time_unix_nanos: u64,
}

/// The totals of sums at a point in time.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    unix_nanos: Option<u64>,
    values: SortedMap<String, i64>,
}

/// Reads the metrics of the application for one client.
#[derive(Debug, Default)]
pub(super) struct ApplicationReader {
    began_unix_nanos: Option<u64>,
    /// At the last push that was accepted.
    accepted: Totals,
}

impl ApplicationReader {
    /// Returns the metrics whose names begin with one of the prefixes, the errors of functions that panicked, and the totals for
    /// [`ApplicationReader::confirm`].
    pub(super) fn read(
        &mut self,
        metrics: &ApplicationMetrics,
        prefixes: &[String],
        temporality: Temporality,
        now_unix_nanos: u64,
    ) -> (Vec<ApplicationPoint>, Vec<Error>, Totals) {
        let began = *self.began_unix_nanos.get_or_insert(now_unix_nanos);
        // The functions run without the lock: they may add and remove metrics.
        let all: Vec<(String, Metric)> =
            metrics.0.lock().iter().map(|(name, metric)| (name.clone(), metric.clone())).collect();
        let is_requested =
            |name: &str| prefixes.iter().any(|prefix| prefix == "*" || name.starts_with(prefix.as_str()));
        let (mut points, mut errors) = (Vec::new(), Vec::new());
        let mut totals = Totals { unix_nanos: Some(now_unix_nanos), values: SortedMap::new() };
        for (name, metric) in all.into_iter().filter(|(name, _)| is_requested(name)) {
            let value = match guarded("a metric of the application", || (metric.read)()) {
                Ok(value) => value,
                Err(panicked) => {
                    errors.push(panicked);
                    continue;
                }
            };
            let (kind, value, start) = match (metric.is_sum, value, temporality) {
                (true, MetricValue::Int(total), Temporality::Delta) => {
                    totals.values.insert(name.clone(), total);
                    let before = self.accepted.values.get(&name).copied().unwrap_or(0);
                    let start = self.accepted.unix_nanos.unwrap_or(began);
                    (
                        PointKind::Sum(temporality),
                        MetricValue::Int(total.saturating_sub(before).max(0)),
                        start,
                    )
                }
                (true, value, _) => (PointKind::Sum(temporality), value, began),
                (false, value, _) => (PointKind::Gauge, value, now_unix_nanos),
            };
            points.push(ApplicationPoint {
                name,
                kind,
                value,
                start_unix_nanos: start,
                time_unix_nanos: now_unix_nanos,
            });
        }
        (points, errors, totals)
    }

    /// The next increases count from these totals.
    pub(super) fn confirm(&mut self, totals: Totals) {
        self.accepted = totals;
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn names_are_checked_and_unique() {
        let metrics = ApplicationMetrics::new();
        let add = |name: &str| metrics.add_gauge(name, || MetricValue::Int(1)).map_err(|error| error.kind());
        assert_eq!(add("orders.open"), Ok(()));
        let long = "x".repeat(256);
        for wrong in ["", "orders.open", "org.apache.kafka.producer.x", "a b", "\u{e4}", &long] {
            assert_eq!(add(wrong), Err(ErrorKind::InvalidArgument), "{wrong}");
        }
        assert!(metrics.remove("orders.open") && !metrics.remove("orders.open"));
        (0..MOST_METRICS).for_each(|number| add(&format!("m{number}")).expect("there is room"));
        assert_eq!(add("one.more"), Err(ErrorKind::InvalidArgument));
    }

    #[test]
    fn requested_metrics_have_values_and_increases() {
        let (metrics, total) = (ApplicationMetrics::new(), Arc::new(AtomicI64::new(5)));
        let read = Arc::clone(&total);
        metrics.add_sum("orders.done", move || read.load(Ordering::Relaxed)).expect("it is new");
        metrics.add_gauge("orders.age", || MetricValue::Double(0.5)).expect("it is new");
        metrics.add_gauge("other", || panic!("not read")).expect("it is new");
        let mut reader = ApplicationReader::default();
        let prefixes = ["orders.".to_owned()];
        let (points, errors, totals) = reader.read(&metrics, &prefixes, Temporality::Delta, 10);
        assert!(errors.is_empty());
        let found: Vec<_> = points.iter().map(|point| (&*point.name, point.kind, point.value)).collect();
        let sum = PointKind::Sum(Temporality::Delta);
        let age = ("orders.age", PointKind::Gauge, MetricValue::Double(0.5));
        assert_eq!(found, [age, ("orders.done", sum, MetricValue::Int(5))]);
        total.store(7, Ordering::Relaxed);
        let (points, ..) = reader.read(&metrics, &prefixes, Temporality::Delta, 20);
        assert_eq!(points[1].value, MetricValue::Int(7), "the push was not accepted");
        reader.confirm(totals);
        let (points, ..) = reader.read(&metrics, &prefixes, Temporality::Delta, 30);
        assert_eq!((points[1].value, points[1].start_unix_nanos), (MetricValue::Int(2), 10));
        let (points, ..) = reader.read(&metrics, &prefixes, Temporality::Cumulative, 40);
        assert_eq!((points[1].value, points[1].start_unix_nanos), (MetricValue::Int(7), 10));
        let (points, errors, _) = reader.read(&metrics, &["*".to_owned()], Temporality::Delta, 50);
        assert_eq!((points.len(), errors.len()), (2, 1), "one function panics");
        assert_eq!(errors[0].kind(), ErrorKind::CallbackPanicked);
        assert!(reader.read(&metrics, &[], Temporality::Delta, 60).0.is_empty());
    }
}
