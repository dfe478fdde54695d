//! Collects readings of counters while a test runs, as windows of equal length.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::run::{Bucket, Point, Totals};

/// The most windows of a run. When there are more, two become one, whatever the length of the test.
const MOST_WINDOWS: usize = 400;
/// The windows of the line on the terminal: the last second.
const LIVE_WINDOWS: usize = 4;

/// Latencies in microseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // Two digits: a hundredth is below the width of a line. The histogram grows, so this is never refused.
        Latencies(Histogram::new(2).unwrap_or_else(|_| unreachable!("two digits are allowed")))
    }
}

impl Latencies {
    /// Counts `count` records with this latency.
    pub fn add(&mut self, microseconds: u64, count: u64) {
        // The histogram grows; a latency of centuries is as good as the largest one.
        if self.0.record_n(microseconds, count).is_err() {
            self.0.saturating_record_n(microseconds, count);
        }
    }

    /// Returns the recorded latencies with their counts, the smallest first.
    pub fn buckets(&self) -> Vec<Bucket> {
        let recorded = self.0.iter_recorded();
        recorded
            .map(|it| Bucket { us: it.value_iterated_to(), count: it.count_since_last_iteration() })
            .collect()
    }

    fn from_buckets<'a>(buckets: impl IntoIterator<Item = &'a Bucket>) -> Latencies {
        let mut all = Latencies::default();
        buckets.into_iter().for_each(|bucket| all.add(bucket.us, bucket.count));
        all
    }

    /// Returns the latency in milliseconds that this fraction of the records has at most; `None` without records.
    pub fn quantile(&self, fraction: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(fraction) as f64 / 1000.0)
    }
}

/// Counters since the start of the test, and the latencies since the last reading.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The time since the start.
    pub at: Duration,
    /// The records that were delivered or consumed.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The requests that the client has sent.
    pub requests: u64,
    /// The CPU time of the process, if the system tells it.
    pub cpu: Option<Duration>,
    /// Latencies since the last reading.
    pub latencies: Latencies,
}

#[derive(Clone, Debug, Default)]
struct Window {
    end: Duration,
    records: u64,
    bytes: u64,
    requests: u64,
    cpu: Option<Duration>,
    latencies: Vec<Bucket>,
    /// The number of readings in the window.
    readings: usize,
}

/// The windows of a test.
#[derive(Debug)]
pub struct Recorder {
    first: Reading,
    last: Reading,
    windows: Vec<Window>,
    /// The number of readings per window.
    per_window: usize,
    /// The last readings.
    live: Vec<Window>,
}

impl Recorder {
    /// Starts with a reading before the first record.
    pub fn new(first: Reading) -> Recorder {
        Recorder { last: first.clone(), first, windows: Vec::new(), per_window: 1, live: Vec::new() }
    }

    /// Adds a reading.
    pub fn add(&mut self, reading: Reading) {
        let before = std::mem::replace(&mut self.last, reading);
        let now = &self.last;
        let latencies = now.latencies.buckets();
        let added = Window {
            end: now.at,
            records: now.records.saturating_sub(before.records),
            bytes: now.bytes.saturating_sub(before.bytes),
            requests: now.requests.saturating_sub(before.requests),
            cpu: now.cpu.zip(before.cpu).map(|(now, before)| now.saturating_sub(before)),
            latencies,
            readings: 1,
        };
        if self.live.len() == LIVE_WINDOWS {
            self.live.remove(0);
        }
        self.live.push(added.clone());
        match self.windows.last_mut() {
            Some(window) if window.readings < self.per_window => window.extend(added),
            _ => self.windows.push(added),
        }
        if self.windows.len() > MOST_WINDOWS {
            self.halve();
        }
    }

    /// Makes one window of each two.
    fn halve(&mut self) {
        self.per_window *= 2;
        let mut merged: Vec<Window> = Vec::with_capacity(MOST_WINDOWS);
        for (index, window) in std::mem::take(&mut self.windows).into_iter().enumerate() {
            match merged.last_mut() {
                Some(last) if index % 2 == 1 => last.extend(window),
                _ => merged.push(window),
            }
        }
        self.windows = merged;
    }

    /// Returns the latencies of the last second as a text; empty without records.
    pub fn live(&self) -> String {
        let latencies = Latencies::from_buckets(self.live.iter().flat_map(|window| &window.latencies));
        match latencies.quantile(0.5).zip(latencies.quantile(0.99)) {
            Some((middle, high)) => format!("p50 {middle:.1} ms, p99 {high:.1} ms"),
            None => String::new(),
        }
    }

    /// Returns the records per second of the last second.
    pub fn live_rate(&self) -> f64 {
        let readings = self.live.len();
        let since = self.last.at.saturating_sub(self.live.first().map_or(self.first.at, |window| window.end));
        // The end of the first window is where the others begin.
        let records: u64 = self.live.iter().skip(1.min(readings)).map(|window| window.records).sum();
        if since.is_zero() { 0.0 } else { records as f64 / since.as_secs_f64() }
    }

    /// Returns the windows as points over time, from the start of the test.
    pub fn points(&self) -> Vec<Point> {
        let mut start = self.first.at;
        let point = |window: &Window| {
            let seconds = window.end.saturating_sub(start).as_secs_f64().max(1e-6);
            start = window.end;
            let latencies = Latencies::from_buckets(&window.latencies);
            Point {
                seconds: window.end.saturating_sub(self.first.at).as_secs_f64(),
                records: window.records as f64 / seconds,
                bytes: window.bytes as f64 / seconds,
                p50: latencies.quantile(0.5),
                p99: latencies.quantile(0.99),
                requests: window.requests as f64 / seconds,
                cpu: window.cpu.map(|cpu| cpu.as_secs_f64() / seconds * 100.0),
            }
        };
        self.windows.iter().map(point).collect()
    }

    /// Returns the latencies of all records.
    pub fn histogram(&self) -> Vec<Bucket> {
        self.all().buckets()
    }

    fn all(&self) -> Latencies {
        Latencies::from_buckets(self.windows.iter().flat_map(|window| &window.latencies))
    }

    /// Returns the sums.
    pub fn totals(&self) -> Totals {
        let all = self.all();
        let cpu = self.last.cpu.zip(self.first.cpu).map(|(last, first)| last.saturating_sub(first));
        Totals {
            seconds: self.last.at.saturating_sub(self.first.at).as_secs_f64(),
            records: self.last.records.saturating_sub(self.first.records),
            bytes: self.last.bytes.saturating_sub(self.first.bytes),
            requests: self.last.requests.saturating_sub(self.first.requests),
            cpu_seconds: cpu.map(|cpu| cpu.as_secs_f64()),
            p50: all.quantile(0.5),
            p95: all.quantile(0.95),
            p99: all.quantile(0.99),
            p999: all.quantile(0.999),
            max: all.quantile(1.0),
        }
    }
}

impl Window {
    fn extend(&mut self, other: Window) {
        self.end = other.end;
        self.records += other.records;
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.cpu = self.cpu.zip(other.cpu).map(|(one, other)| one + other);
        let all = Latencies::from_buckets(self.latencies.iter().chain(&other.latencies));
        self.latencies = all.buckets();
        self.readings += other.readings;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(number: u64) -> Reading {
        let mut latencies = Latencies::default();
        latencies.add(1000, 98);
        latencies.add(50_000, 2);
        Reading {
            at: Duration::from_millis(250 * number),
            records: 100 * number,
            bytes: 10_000 * number,
            requests: 3 * number,
            cpu: Some(Duration::from_millis(50 * number)),
            latencies,
        }
    }

    #[test]
    fn windows_have_rates_and_quantiles() {
        let mut recorder = Recorder::new(reading(0));
        (1..=8).for_each(|number| recorder.add(reading(number)));
        let points = recorder.points();
        assert_eq!(points.len(), 8);
        let last = &points[7];
        assert_eq!((last.seconds, last.records, last.bytes, last.requests), (2.0, 400.0, 40_000.0, 12.0));
        assert!((last.cpu.unwrap() - 20.0).abs() < 1e-9);
        assert!((last.p50.unwrap() - 1.0).abs() < 0.02 && (last.p99.unwrap() - 50.0).abs() < 1.0, "{last:?}");
        let totals = recorder.totals();
        assert_eq!((totals.records, totals.requests, totals.seconds), (800, 24, 2.0));
        assert_eq!(recorder.histogram().iter().map(|bucket| bucket.count).sum::<u64>(), 800);
        assert_eq!(recorder.live_rate(), 400.0);
        assert!(recorder.live().starts_with("p50 1.0 ms, p99 50."), "{}", recorder.live());
    }

    #[test]
    fn long_test_has_no_more_windows_than_a_short_one() {
        let mut recorder = Recorder::new(reading(0));
        (1..=10_000).for_each(|number| recorder.add(reading(number)));
        let points = recorder.points();
        assert!(points.len() > MOST_WINDOWS / 2 && points.len() <= MOST_WINDOWS, "{}", points.len());
        assert!(points.iter().all(|point| (point.records - 400.0).abs() < 1e-6));
        assert_eq!(points.last().unwrap().seconds, 2500.0);
        assert_eq!(recorder.histogram().iter().map(|bucket| bucket.count).sum::<u64>(), 1_000_000);
    }

    #[test]
    fn test_without_records_has_no_latency() {
        let recorder = Recorder::new(Reading::default());
        assert_eq!((recorder.live(), recorder.points()), (String::new(), Vec::new()));
        assert_eq!(recorder.live_rate(), 0.0);
        assert_eq!(recorder.totals().p99, None);
    }
}
