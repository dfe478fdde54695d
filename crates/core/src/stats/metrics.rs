//! The metrics of the Java client that this client pushes to brokers (KIP-714), one row per metric. A row is computed from
//! fields of the [statistics](super::table), so that both show the same counters.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    snapshot::Statistics,
    table::{BROKER, COLLECTOR, CONSUMER, Field, GROUP, TOP, Value},
    window::{Summary, Window},
};

/// The kinds of clients, which have different metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// A producer.
    Producer,
    /// A consumer.
    Consumer,
    /// A share consumer.
    ShareConsumer,
    /// A client for administrative calls only.
    Admin,
}

impl ClientKind {
    /// Returns the beginning of the names of the client's metrics.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Producer => "org.apache.kafka.producer.",
            Self::Consumer => "org.apache.kafka.consumer.",
            Self::ShareConsumer => "org.apache.kafka.consumer.share.",
            Self::Admin => "org.apache.kafka.admin.client.",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// The name after [`ClientKind::prefix`].
    pub name: &'static str,
    /// The kinds of clients that have it, as bits.
    clients: u8,
    /// The computation of the value.
    pub measure: Measure,
}

/// The computation of a metric from the statistics.
#[derive(Debug)]
pub enum Measure {
    /// A sum that only grows.
    Total(Source),
    /// The growth of a sum per second since the last push.
    Rate(Source),
    /// A current value.
    Current(Source),
    /// The mean of the values since the last push, divided by the second number.
    Mean(Source, f64),
    /// The highest value since the last push, divided by the second number.
    Max(Source, f64),
    /// The same two per broker.
    MeanPerNode(Source, f64),
    /// See [`Measure::MeanPerNode`].
    MaxPerNode(Source, f64),
    /// The sum of the first values since the last push, divided by the number of the second ones.
    Per(Source, Source),
    /// The sum of the first values since the last push, divided by the sum of the second ones.
    PerSum(Source, Source),
    /// The highest of the first values since the last push; 0 if there were only second ones.
    MaxOr0(Source, Source),
    /// The growth of a number of microseconds per microsecond since the last push.
    Share(Source),
    /// The difference of two current values.
    Difference(Source, Source),
}

/// A field of the statistics.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A field of the client.
    Client(&'static str),
    /// A field of brokers, added up.
    Brokers(&'static str),
    /// A field of the brokers' collectors, added up.
    Collectors(&'static str),
    /// A field of the group.
    Group(&'static str),
    /// A field of the consumer.
    Consumer(&'static str),
    /// The number of requests to these APIs.
    Requests(&'static [&'static str]),
    /// The number of connections that are in use.
    Connections,
}

const P: u8 = ClientKind::Producer.bit();
const C: u8 = ClientKind::Consumer.bit();
const S: u8 = ClientKind::ShareConsumer.bit();
const A: u8 = ClientKind::Admin.bit();
const ALL: u8 = P | C | S | A;

const MILLIS: f64 = 1_000.0;
const PLAIN: f64 = 1.0;

macro_rules! metrics {
    ($($name:literal $clients:expr, $measure:expr;)*) => {
        /// All metrics. Those with a value per broker come last: they are left out first if a push becomes too large.
        pub const METRICS: &[Metric] = &[$(Metric { name: $name, clients: $clients, measure: $measure },)*];
    };
}

use Measure::{
    Current, Difference, Max, MaxOr0, MaxPerNode, Mean, MeanPerNode, Per, PerSum, Rate, Share, Total,
};
use Source::{Brokers, Client, Collectors, Connections, Consumer, Group, Requests};

const FETCHES: Source = Requests(&["Fetch"]);
const SHARE_FETCHES: Source = Requests(&["ShareFetch"]);
const SHARE_HEARTBEATS: Source = Requests(&["ShareGroupHeartbeat"]);
const HEARTBEATS: Source = Requests(&["Heartbeat", "ConsumerGroupHeartbeat"]);
const COMMITS: Source = Requests(&["OffsetCommit"]);

metrics! {
    "connection.creation.total" ALL, Total(Brokers("connects"));
    "connection.creation.rate" ALL, Rate(Brokers("connects"));
    "connection.close.total" ALL, Total(Brokers("disconnects"));
    "connection.close.rate" ALL, Rate(Brokers("disconnects"));
    "connection.count" ALL, Current(Connections);
    "request.total" ALL, Total(Brokers("tx"));
    "request.rate" ALL, Rate(Brokers("tx"));
    "response.total" ALL, Total(Brokers("rx"));
    "response.rate" ALL, Rate(Brokers("rx"));
    "outgoing.byte.total" ALL, Total(Brokers("txbytes"));
    "outgoing.byte.rate" ALL, Rate(Brokers("txbytes"));
    "incoming.byte.total" ALL, Total(Brokers("rxbytes"));
    "incoming.byte.rate" ALL, Rate(Brokers("rxbytes"));

    "request.latency.avg" P, Mean(Brokers("data_latency"), MILLIS);
    "request.latency.max" P, Max(Brokers("data_latency"), MILLIS);
    "produce.throttle.time.avg" P, Per(Brokers("throttle"), Brokers("data_latency"));
    "produce.throttle.time.max" P, MaxOr0(Brokers("throttle"), Brokers("data_latency"));
    "record.queue.time.avg" P, Mean(Brokers("int_latency"), MILLIS);
    "record.queue.time.max" P, Max(Brokers("int_latency"), MILLIS);
    "record.send.total" P, Total(Collectors("messages"));
    "record.send.rate" P, Rate(Collectors("messages"));
    "records.per.request.avg" P, Mean(Collectors("messages_per_request"), PLAIN);
    "batch.size.avg" P, PerSum(Collectors("bytes_per_request"), Collectors("partitions_per_request"));
    "requests.in.flight" P, Current(Brokers("waitresp_cnt"));
    "buffer.total.bytes" P, Current(Client("msg_size_max"));
    "buffer.available.bytes" P, Difference(Client("msg_size_max"), Client("msg_size"));

    "poll.idle.ratio.avg" C | S, Share(Consumer("poll_idle"));
    "coordinator.assigned.partitions" C, Current(Group("assignment_size"));
    "coordinator.rebalance.latency.avg" C, Mean(Group("rebalance_latency"), PLAIN);
    "coordinator.rebalance.latency.max" C, Max(Group("rebalance_latency"), PLAIN);
    "coordinator.rebalance.latency.total" C, Total(Group("rebalance_millis"));
    "coordinator.commit.latency.avg" C, Mean(Consumer("commit_latency"), MILLIS);
    "coordinator.commit.latency.max" C, Max(Consumer("commit_latency"), MILLIS);
    "coordinator.commit.total" C, Total(COMMITS);
    "coordinator.commit.rate" C, Rate(COMMITS);
    "coordinator.heartbeat.total" C, Total(HEARTBEATS);
    "coordinator.heartbeat.rate" C, Rate(HEARTBEATS);
    "fetch.manager.fetch.latency.avg" C | S, Mean(Brokers("data_latency"), MILLIS);
    "fetch.manager.fetch.latency.max" C | S, Max(Brokers("data_latency"), MILLIS);
    "fetch.manager.fetch.size.avg" C | S, Mean(Brokers("fetch_size"), PLAIN);
    "fetch.manager.fetch.size.max" C | S, Max(Brokers("fetch_size"), PLAIN);
    "fetch.manager.fetch.throttle.time.avg" C | S, Per(Brokers("throttle"), Brokers("data_latency"));
    "fetch.manager.fetch.throttle.time.max" C | S, MaxOr0(Brokers("throttle"), Brokers("data_latency"));
    "fetch.manager.fetch.total" C, Total(FETCHES);
    "fetch.manager.fetch.rate" C, Rate(FETCHES);
    "fetch.manager.records.consumed.total" C, Total(Client("rxmsgs"));
    "fetch.manager.records.consumed.rate" C, Rate(Client("rxmsgs"));
    "fetch.manager.bytes.consumed.total" C | S, Total(Client("rxmsg_bytes"));
    "fetch.manager.bytes.consumed.rate" C | S, Rate(Client("rxmsg_bytes"));
    "fetch.manager.records.lag.max" C, Current(Consumer("max_lag"));

    "fetch.manager.fetch.total" S, Total(SHARE_FETCHES);
    "fetch.manager.fetch.rate" S, Rate(SHARE_FETCHES);
    "fetch.manager.acknowledgements.send.total" S, Total(Consumer("acknowledgements"));
    "fetch.manager.acknowledgements.send.rate" S, Rate(Consumer("acknowledgements"));
    "coordinator.heartbeat.total" S, Total(SHARE_HEARTBEATS);
    "coordinator.heartbeat.rate" S, Rate(SHARE_HEARTBEATS);
    "time.between.poll.avg" S, Mean(Consumer("time_between_polls"), PLAIN);
    "time.between.poll.max" S, Max(Consumer("time_between_polls"), PLAIN);

    "node.request.latency.avg" P | C, MeanPerNode(Brokers("data_latency"), MILLIS);
    "node.request.latency.max" P | C, MaxPerNode(Brokers("data_latency"), MILLIS);
}

impl Source {
    /// Returns the number; the sum of a field over several objects. `None` if the client has no such object.
    pub(crate) fn number(self, statistics: &Statistics) -> Option<i64> {
        let mut sum = None;
        self.each(statistics, |value| {
            if let Value::Number(number) = value {
                sum = Some(sum.unwrap_or(0) + number);
            }
        });
        sum
    }

    /// Returns the values of a window since the last push, of all objects together.
    pub(crate) fn summary(self, statistics: &Statistics, of: WindowPart) -> Summary {
        let mut sum = Summary::default();
        self.each(statistics, |value| {
            if let Value::Window(window) = value {
                sum.add(of(window));
            }
        });
        sum
    }

    /// Returns the values of a window of brokers since the last push, by node.
    pub(crate) fn summary_by_node(self, statistics: &Statistics, of: WindowPart) -> BTreeMap<i64, Summary> {
        let mut nodes = BTreeMap::<i64, Summary>::new();
        if let Self::Brokers(name) = self {
            for broker in statistics.brokers.iter().filter(|broker| broker.nodeid >= 0) {
                if let Some(Value::Window(window)) = get(BROKER, name, broker) {
                    nodes.entry(broker.nodeid).or_default().add(of(window));
                }
            }
        }
        nodes
    }

    fn each(self, statistics: &Statistics, mut visit: impl FnMut(Value<'_>)) {
        match self {
            Self::Client(name) => get(TOP, name, statistics).into_iter().for_each(visit),
            Self::Brokers(name) => {
                statistics.brokers.iter().filter_map(|broker| get(BROKER, name, broker)).for_each(visit);
            }
            Self::Collectors(name) => {
                let collectors = statistics.brokers.iter().map(|broker| &broker.collector);
                collectors.filter_map(|collector| get(COLLECTOR, name, collector)).for_each(visit);
            }
            Self::Group(name) => {
                statistics.group.iter().filter_map(|group| get(GROUP, name, group)).for_each(visit);
            }
            Self::Consumer(name) => {
                let consumer = statistics.consumer.iter();
                consumer.filter_map(|consumer| get(CONSUMER, name, consumer)).for_each(visit);
            }
            Self::Requests(apis) => {
                let requests = statistics.brokers.iter().flat_map(|broker| &broker.requests);
                let count = requests.filter(|(api, _)| apis.contains(*api)).map(|(_, count)| count).sum();
                visit(Value::Number(count));
            }
            Self::Connections => {
                let up = statistics.brokers.iter().filter(|broker| broker.state == "UP").count();
                visit(Value::Number(up as i64));
            }
        }
    }

    /// Returns the field as STATISTICS.md lists it.
    fn in_statistics(self) -> String {
        match self {
            Self::Client(name) => format!("`{name}`"),
            Self::Brokers(name) => format!("`brokers.{name}`"),
            Self::Collectors(name) => format!("`brokers.collector.{name}`"),
            Self::Group(name) => format!("`cgrp.{name}`"),
            Self::Consumer(name) => format!("`consumer.{name}`"),
            Self::Requests(apis) => {
                let names: Vec<_> = apis.iter().map(|api| format!("`brokers.req.{api}`")).collect();
                names.join(" and ")
            }
            Self::Connections => "`brokers.state`".to_owned(),
        }
    }
}

/// Chooses the period of a window: since the last push, or since the last periodic event.
pub(crate) type WindowPart = fn(&Window) -> Summary;

fn get<'a, T>(fields: &[Field<T>], name: &str, of: &'a T) -> Option<Value<'a>> {
    fields.iter().find(|field| field.name == name).map(|field| (field.get)(of))
}

impl Metric {
    /// Returns true if this kind of client has the metric.
    pub const fn is_of(&self, kind: ClientKind) -> bool {
        self.clients & kind.bit() != 0
    }

    /// Returns true for a sum.
    pub const fn is_sum(&self) -> bool {
        matches!(self.measure, Measure::Total(_))
    }
}

impl Measure {
    fn sources(&self) -> [Option<Source>; 2] {
        match *self {
            Total(source) | Rate(source) | Current(source) | Share(source) => [Some(source), None],
            Mean(source, _) | Max(source, _) | MeanPerNode(source, _) | MaxPerNode(source, _) => {
                [Some(source), None]
            }
            Per(of, by) | PerSum(of, by) | MaxOr0(of, by) | Difference(of, by) => [Some(of), Some(by)],
        }
    }

    const fn text(&self) -> &'static str {
        match self {
            Total(_) => "sum",
            Rate(_) => "growth per second",
            Current(_) => "current value",
            Mean(..) => "mean",
            Max(..) => "maximum",
            MeanPerNode(..) => "mean, per broker",
            MaxPerNode(..) => "maximum, per broker",
            Per(..) => "sum of the first per value of the second",
            MaxOr0(..) => "maximum of the first; 0 if there were only second ones",
            PerSum(..) => "sum of the first divided by the sum of the second",
            Share(_) => "growth per time",
            Difference(..) => "first minus second",
        }
    }
}

/// Returns the table of metrics, for docs/guide/telemetry.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "| metric | producer | consumer | share consumer | admin | value | from (STATISTICS.md) |\n",
    );
    out.push_str("|---|---|---|---|---|---|---|\n");
    for metric in METRICS {
        let _ = write!(out, "| `{}` ", metric.name);
        for kind in [ClientKind::Producer, ClientKind::Consumer, ClientKind::ShareConsumer, ClientKind::Admin]
        {
            out.push_str(if metric.is_of(kind) { "| x " } else { "| " });
        }
        let sources: Vec<_> =
            metric.measure.sources().into_iter().flatten().map(Source::in_statistics).collect();
        let _ = writeln!(out, "| {} | {} |", metric.measure.text(), sources.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{BrokerStatistics, ConsumerStatistics, GroupStatistics};

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/telemetry.md");
    const MARKS: [&str; 2] =
        ["<!-- metrics: generated by `cargo xtask docs` -->\n", "<!-- end of metrics -->\n"];

    /// `OTTLA_WRITE_DOCS=1 cargo test -p ottla-core telemetry_md` writes the table instead of comparing it.
    #[test]
    fn telemetry_md_has_the_table_of_metrics() {
        let page = std::fs::read_to_string(FILE).unwrap();
        let (head, rest) = page.split_once(MARKS[0]).unwrap();
        let (_, tail) = rest.split_once(MARKS[1]).unwrap();
        let current = format!("{head}{}{}{}{tail}", MARKS[0], markdown(), MARKS[1]);
        if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
            std::fs::write(FILE, &current).unwrap();
        } else {
            assert!(page == current, "docs/guide/telemetry.md is stale: run `cargo xtask docs`");
        }
    }

    #[test]
    fn every_metric_reads_a_field_of_the_statistics() {
        let statistics = Statistics {
            brokers: vec![BrokerStatistics::default()],
            group: Some(GroupStatistics::default()),
            consumer: Some(ConsumerStatistics::default()),
            ..Statistics::default()
        };
        for metric in METRICS {
            for source in metric.measure.sources().into_iter().flatten() {
                let mut values = 0;
                source.each(&statistics, |value| {
                    let is_window = matches!(value, Value::Window(_));
                    let is_number = matches!(value, Value::Number(_));
                    let wants_window = !matches!(
                        metric.measure,
                        Total(_) | Rate(_) | Current(_) | Share(_) | Difference(..)
                    );
                    assert!(if wants_window { is_window } else { is_number }, "{}", metric.name);
                    values += 1;
                });
                assert_eq!(values, 1, "{}: {source:?}", metric.name);
            }
        }
    }

    /// The metrics that KIP-714 requires of every client, and the ones that librdkafka adds for share consumers.
    #[test]
    fn required_metrics_are_there() {
        let both = "connection.creation.rate connection.creation.total node.request.latency.avg node.request.latency.max";
        let producer = "produce.throttle.time.avg produce.throttle.time.max record.queue.time.avg record.queue.time.max \
                        request.latency.avg request.latency.max";
        let consumer = "poll.idle.ratio.avg coordinator.commit.latency.avg coordinator.commit.latency.max \
                        coordinator.assigned.partitions coordinator.rebalance.latency.avg \
                        coordinator.rebalance.latency.max coordinator.rebalance.latency.total \
                        fetch.manager.fetch.latency.avg fetch.manager.fetch.latency.max";
        let share = "poll.idle.ratio.avg time.between.poll.avg time.between.poll.max fetch.manager.fetch.total \
                     fetch.manager.fetch.rate fetch.manager.fetch.latency.avg fetch.manager.fetch.latency.max \
                     fetch.manager.acknowledgements.send.total fetch.manager.acknowledgements.send.rate \
                     fetch.manager.fetch.throttle.time.avg fetch.manager.fetch.throttle.time.max \
                     coordinator.heartbeat.total coordinator.heartbeat.rate fetch.manager.fetch.size.avg \
                     fetch.manager.fetch.size.max fetch.manager.bytes.consumed.total fetch.manager.bytes.consumed.rate";
        for (kind, names) in [
            (ClientKind::Producer, both),
            (ClientKind::Consumer, both),
            (ClientKind::Producer, producer),
            (ClientKind::Consumer, consumer),
            (ClientKind::ShareConsumer, share),
        ] {
            for name in names.split_whitespace() {
                let found = METRICS.iter().filter(|metric| metric.is_of(kind) && metric.name == name).count();
                assert_eq!(found, 1, "{kind:?}: {name}");
            }
        }
    }
}
