//! Metrics from a snapshot of the statistics.
//!
//! Rates and shares refer to the last snapshot. Sums are totals since the start of the client, or increases since the last
//! push that a broker accepted.

use ottla_sorted::SortedMap;

use crate::{
    machine::Instant,
    stats::{
        Statistics, Summary, Window,
        metrics::{ClientKind, METRICS, Measure, Source},
    },
};

/// What a sum counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporality {
    /// The last push.
    Delta,
    /// The start of the client.
    Cumulative,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// A current value.
    Gauge,
    /// A sum that only grows.
    Sum(Temporality),
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricValue {
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
}

/// A metric with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// The name after [`ClientKind::prefix`].
    pub name: &'static str,
    /// The broker that the value belongs to, if it belongs to one.
    pub node: Option<i64>,
    /// The kind.
    pub kind: PointKind,
    /// The value.
    pub value: MetricValue,
    /// The start of the period, in nanoseconds since 1970.
    pub start_unix_nanos: u64,
    /// The end of the period.
    pub time_unix_nanos: u64,
}

/// The values of sums at a point in time, by the index of their metric.
#[derive(Clone, Debug, Default)]
pub struct Bases {
    at: Option<Instant>,
    values: SortedMap<usize, i64>,
}

/// The metrics of a client.
#[derive(Debug)]
pub struct Registry {
    kind: ClientKind,
    began: Option<Instant>,
    /// The last snapshot.
    last: Bases,
    /// The last push that was accepted.
    accepted: Bases,
}

/// The context of one reading.
struct Reading<'a> {
    elapsed_seconds: f64,
    statistics: &'a Statistics,
    part: fn(&Window) -> Summary,
    last: &'a Bases,
}

impl Registry {
    /// Creates the registry of a client of this kind.
    pub fn new(kind: ClientKind) -> Self {
        Self { kind, began: None, last: Bases::default(), accepted: Bases::default() }
    }

    /// Returns the kind of the client.
    pub const fn kind(&self) -> ClientKind {
        self.kind
    }

    /// Sets the start of the client, once.
    pub fn begin(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    /// Returns the values of `selected` metrics. Gauges without values are left out. `part` chooses the period of windows.
    /// The returned bases are those of the next increases, once [`Registry::confirm`]ed.
    pub fn read(
        &mut self,
        now: Instant,
        unix_nanos: &dyn Fn(Instant) -> u64,
        statistics: &Statistics,
        selected: &[usize],
        temporality: Temporality,
        part: fn(&Window) -> Summary,
    ) -> (Vec<MetricPoint>, Bases) {
        let began = *self.began.get_or_insert(now);
        let last_at = self.last.at.unwrap_or(began);
        let values = METRICS.iter().enumerate().filter(|(_, metric)| metric.is_of(self.kind));
        let values = values.filter_map(|(index, metric)| match metric.measure {
            Measure::Total(source) | Measure::Rate(source) | Measure::Share(source) => {
                source.number(statistics).map(|value| (index, value))
            }
            _ => None,
        });
        let bases = Bases { at: Some(now), values: values.collect() };
        let reading = Reading {
            elapsed_seconds: now.saturating_since(last_at).as_secs_f64(),
            statistics,
            part,
            last: &self.last,
        };
        let time_unix_nanos = unix_nanos(now);
        let mut points = Vec::new();
        for index in selected {
            let Some(metric) = METRICS.get(*index) else { continue };
            let mut put = |node, kind, value, start| {
                let start_unix_nanos = unix_nanos(start);
                let name = metric.name;
                points.push(MetricPoint { name, node, kind, value, start_unix_nanos, time_unix_nanos });
            };
            if metric.is_sum() {
                let Some(value) = bases.values.get(index) else { continue };
                let (value, start) = match temporality {
                    Temporality::Cumulative => (*value, began),
                    Temporality::Delta => (
                        (value - self.accepted.values.get(index).unwrap_or(&0)).max(0),
                        self.accepted.at.unwrap_or(began),
                    ),
                };
                put(None, PointKind::Sum(temporality), MetricValue::Int(value), start);
                continue;
            }
            for (node, value) in reading.gauge(*index, &metric.measure, &bases) {
                put(node, PointKind::Gauge, value, last_at);
            }
        }
        self.last = bases.clone();
        (points, bases)
    }

    /// Makes the next increases refer to these values: a broker accepted the push.
    pub fn confirm(&mut self, bases: Bases) {
        self.accepted = bases;
    }
}

impl Reading<'_> {
    fn gauge(&self, index: usize, measure: &Measure, now: &Bases) -> Vec<(Option<i64>, MetricValue)> {
        let of_client =
            |value: Option<f64>| value.map(|value| (None, MetricValue::Double(value))).into_iter().collect();
        let of_nodes = |source: Source, value: &dyn Fn(Summary) -> Option<f64>| {
            let nodes = source.summary_by_node(self.statistics, self.part).into_iter();
            nodes
                .filter_map(|(node, summary)| Some((Some(node), MetricValue::Double(value(summary)?))))
                .collect()
        };
        match *measure {
            Measure::Total(_) => Vec::new(),
            Measure::Rate(_) => of_client(self.growth(index, now).map(|growth| growth / self.seconds())),
            Measure::Share(_) => {
                let share = |micros: f64| (micros / 1e6 / self.seconds()).min(1.0);
                of_client(self.growth(index, now).map(share))
            }
            Measure::Current(source) => {
                let value = self.number(source).map(|value| (None, MetricValue::Int(value)));
                value.into_iter().collect()
            }
            Measure::Difference(of, by) => {
                let value = self.number(of).zip(self.number(by)).map(|(of, by)| of - by);
                value.map(|value| (None, MetricValue::Int(value))).into_iter().collect()
            }
            Measure::Mean(source, unit) => of_client(self.summary(source).mean().map(|mean| mean / unit)),
            Measure::Max(source, unit) => of_client(max(self.summary(source), unit)),
            Measure::Per(of, by) => {
                let (of, by) = (self.summary(of).sum, self.summary(by).count);
                of_client((by > 0).then(|| of as f64 / by as f64))
            }
            Measure::MaxOr0(of, by) => {
                let (of, by) = (self.summary(of), self.summary(by).count);
                of_client((of.count + by > 0).then_some(of.max as f64))
            }
            Measure::PerSum(of, by) => {
                let (of, by) = (self.summary(of).sum, self.summary(by).sum);
                of_client((by > 0).then(|| of as f64 / by as f64))
            }
            Measure::MeanPerNode(source, unit) => {
                of_nodes(source, &|summary| summary.mean().map(|mean| mean / unit))
            }
            Measure::MaxPerNode(source, unit) => of_nodes(source, &|summary| max(summary, unit)),
        }
    }

    fn growth(&self, index: usize, now: &Bases) -> Option<f64> {
        let value = now.values.get(&index)?;
        Some((value - self.last.values.get(&index).unwrap_or(&0)).max(0) as f64)
    }

    fn seconds(&self) -> f64 {
        self.elapsed_seconds.max(1e-3)
    }

    /// Returns a current value; negative ones stand for "unknown".
    fn number(&self, source: Source) -> Option<i64> {
        source.number(self.statistics).filter(|value| *value >= 0)
    }

    fn summary(&self, source: Source) -> Summary {
        source.summary(self.statistics, self.part)
    }
}

fn max(summary: Summary, unit: f64) -> Option<f64> {
    (summary.count > 0).then(|| summary.max as f64 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{BrokerStatistics, Purpose};

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn snapshot(connects: i64, latencies: &[(i64, &[u64])]) -> Statistics {
        let broker = |(node, micros): &(i64, &[u64])| {
            let mut broker = BrokerStatistics { nodeid: *node, ..BrokerStatistics::default() };
            micros.iter().for_each(|value| broker.data_latency.record(*value));
            broker.data_latency = broker.data_latency.snapshot(Purpose::Push);
            broker
        };
        let mut brokers: Vec<_> = latencies.iter().map(broker).collect();
        brokers.push(BrokerStatistics { nodeid: -1, connects, ..BrokerStatistics::default() });
        Statistics { brokers, ..Statistics::default() }
    }

    struct Reader {
        registry: Registry,
        selected: Vec<usize>,
    }

    impl Reader {
        fn new(names: &[&str]) -> Self {
            let index = |name| METRICS.iter().position(|metric| metric.name == name).unwrap();
            let mut registry = Registry::new(ClientKind::Producer);
            registry.begin(at(10));
            Self { registry, selected: names.iter().map(|name| index(*name)).collect() }
        }

        fn read(
            &mut self,
            now: u64,
            statistics: &Statistics,
            temporality: Temporality,
        ) -> (Vec<MetricPoint>, Bases) {
            let clock = |at: Instant| at.as_nanos() / 1_000_000_000;
            self.registry.read(at(now), &clock, statistics, &self.selected, temporality, Window::since_push)
        }
    }

    #[test]
    fn increases_add_up_to_the_total() {
        let mut reader = Reader::new(&["connection.creation.total"]);
        let mut sum = 0;
        let mut last_end = 10;
        // The total, whether the push is accepted, and the temporality.
        for (now, total, is_accepted, temporality) in [
            (20, 3, true, Temporality::Delta),
            (30, 7, false, Temporality::Delta),
            (40, 9, true, Temporality::Delta),
            (50, 12, true, Temporality::Cumulative),
            (60, 12, true, Temporality::Delta),
            (70, 20, true, Temporality::Delta),
        ] {
            let (points, bases) = reader.read(now, &snapshot(total, &[]), temporality);
            let [point] = &points[..] else { panic!("{points:?}") };
            let MetricValue::Int(value) = point.value else { panic!("{point:?}") };
            assert_eq!((point.kind, point.time_unix_nanos), (PointKind::Sum(temporality), now));
            match temporality {
                Temporality::Cumulative => {
                    assert_eq!((value, point.start_unix_nanos), (total, 10));
                    sum = total;
                    last_end = now;
                }
                Temporality::Delta => {
                    assert_eq!(point.start_unix_nanos, last_end);
                    if is_accepted {
                        sum += value;
                        last_end = now;
                    }
                }
            }
            if is_accepted {
                reader.registry.confirm(bases);
                assert_eq!(sum, total);
            }
        }
    }

    #[test]
    fn gauges_are_computed_from_the_period_and_left_out_without_values() {
        let names = [
            "connection.creation.rate",
            "request.latency.avg",
            "request.latency.max",
            "produce.throttle.time.avg",
            "node.request.latency.avg",
        ];
        let mut reader = Reader::new(&names);
        let (points, _) = reader.read(20, &snapshot(5, &[]), Temporality::Delta);
        let shown: Vec<_> = points.iter().map(|point| (point.name, point.value)).collect();
        assert_eq!(shown, [("connection.creation.rate", MetricValue::Double(0.5))]);

        // Two connections to node 1, one to node 2, and a bootstrap connection, which has no node.
        let latencies: [(i64, &[u64]); 4] =
            [(1, &[1_000, 3_000]), (1, &[2_000]), (2, &[10_000]), (-1, &[4_000])];
        let (points, _) = reader.read(22, &snapshot(6, &latencies), Temporality::Delta);
        let shown: Vec<_> = points.iter().map(|point| (point.name, point.node, point.value)).collect();
        let double = MetricValue::Double;
        assert_eq!(
            shown,
            [
                ("connection.creation.rate", None, double(0.5)),
                ("request.latency.avg", None, double(4.0)),
                ("request.latency.max", None, double(10.0)),
                ("produce.throttle.time.avg", None, double(0.0)),
                ("node.request.latency.avg", Some(1), double(2.0)),
                ("node.request.latency.avg", Some(2), double(10.0)),
            ]
        );
    }
}
