//! Formats Prometheus text from the table: `ottla_broker_tx_total{client="..",broker=".."} 7`.

use std::fmt::Write;

use super::{
    snapshot::Statistics,
    table::{BROKER, COLLECTOR, CONSUMER, EOS, Field, GROUP, Kind, PARTITION, TOP, TOPIC, Value},
    window::Window,
};

/// Formats a snapshot as text.
pub(super) fn prometheus(statistics: &Statistics) -> String {
    let mut out = String::with_capacity(4096);
    let client = format!("client=\"{}\"", escaped(&statistics.name));
    family(&mut out, "", TOP, &[(client.clone(), statistics)]);
    let brokers: Vec<_> = statistics
        .brokers
        .iter()
        .map(|broker| (format!("{client},broker=\"{}\"", escaped(&broker.name)), broker))
        .collect();
    family(&mut out, "broker_", BROKER, &brokers);
    let collectors: Vec<_> =
        brokers.iter().map(|(labels, broker)| (labels.clone(), &broker.collector)).collect();
    family(&mut out, "collector_", COLLECTOR, &collectors);
    let topics: Vec<_> = statistics
        .topics
        .iter()
        .map(|(name, topic)| (format!("{client},topic=\"{}\"", escaped(name)), topic))
        .collect();
    family(&mut out, "topic_", TOPIC, &topics);
    let partitions: Vec<_> = topics
        .iter()
        .flat_map(|(labels, topic)| {
            topic.partitions.iter().map(move |(n, p)| (format!("{labels},partition=\"{n}\""), p))
        })
        .collect();
    family(&mut out, "partition_", PARTITION, &partitions);
    let of_client = |_| client.clone();
    let groups: Vec<_> = statistics.group.iter().map(|group| (of_client(()), group)).collect();
    family(&mut out, "group_", GROUP, &groups);
    let eos: Vec<_> = statistics.eos.iter().map(|eos| (of_client(()), eos)).collect();
    family(&mut out, "eos_", EOS, &eos);
    let consumers: Vec<_> = statistics.consumer.iter().map(|consumer| (of_client(()), consumer)).collect();
    family(&mut out, "consumer_", CONSUMER, &consumers);
    out
}

fn family<T>(out: &mut String, prefix: &str, fields: &[Field<T>], list: &[(String, &T)]) {
    for field in fields {
        let suffix = if field.kind == Kind::Counter { "_total" } else { "" };
        let name = format!("ottla_{prefix}{}{suffix}", field.name);
        let mut has_header = false;
        for (labels, item) in list {
            let kind = match (field.get)(item) {
                Value::Window(_) => "summary",
                _ if field.kind == Kind::Counter => "counter",
                _ => "gauge",
            };
            let mut head = |out: &mut String| {
                if !std::mem::replace(&mut has_header, true) {
                    let _ = write!(out, "# HELP {name} {}\n# TYPE {name} {kind}\n", field.doc);
                }
            };
            match (field.get)(item) {
                Value::Number(number) => {
                    head(out);
                    let _ = writeln!(out, "{name}{{{labels}}} {number}");
                }
                Value::Boolean(is) => {
                    head(out);
                    let _ = writeln!(out, "{name}{{{labels}}} {}", u8::from(is));
                }
                Value::Window(window) => {
                    head(out);
                    put_window(out, &name, labels, window);
                }
                _ => {}
            }
        }
    }
}

fn put_window(out: &mut String, name: &str, labels: &str, window: &Window) {
    for percent in [50.0, 90.0, 99.0, 99.99] {
        let value = window.percentile(percent);
        let _ = writeln!(out, "{name}{{{labels},quantile=\"{}\"}} {value}", percent / 100.0);
    }
    let _ = writeln!(out, "{name}_sum{{{labels}}} {}", window.sum());
    let _ = writeln!(out, "{name}_count{{{labels}}} {}", window.count());
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::stats::snapshot::{BrokerStatistics, ConsumerStatistics, EosStatistics, GroupStatistics};

    /// The dashboard and the alerts, which name metrics.
    const FILES: [&str; 2] = ["docs/guide/grafana.json", "docs/guide/alerts.yml"];

    /// Returns the names of metrics in a text.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        let is_part = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
        text.match_indices("ottla_").map(move |(at, _)| {
            let name = &text[at..];
            &name[..name.find(|it: char| !is_part(it)).unwrap_or(name.len())]
        })
    }

    #[test]
    fn dashboard_and_alerts_name_metrics_that_are_exported() {
        let mut statistics = Statistics {
            group: Some(GroupStatistics::default()),
            eos: Some(EosStatistics::default()),
            consumer: Some(ConsumerStatistics::default()),
            ..Statistics::default()
        };
        statistics.brokers.push(BrokerStatistics::default());
        statistics.partition(&Arc::from("t"), 0);
        let exported = prometheus(&statistics);
        let exported: Vec<&str> = names(&exported).collect();
        for file in FILES {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(names(&text).count() > 5, "{file}");
            for name in names(&text) {
                assert!(exported.contains(&name), "{file}: there is no {name}");
            }
        }
    }

    #[test]
    fn clocks_are_gauges() {
        let text = prometheus(&Statistics::default());
        for clock in ["ts", "time", "age"] {
            assert!(text.contains(&format!("# TYPE ottla_{clock} gauge\n")), "{clock}: {text}");
        }
    }

    #[test]
    fn each_metric_has_one_head_and_a_line_per_thing_that_it_is_about() {
        let mut statistics = Statistics { name: "a\"b".to_owned(), ..Statistics::default() };
        for name in ["h:1/1", "h:2/2"] {
            let mut broker = BrokerStatistics { name: name.to_owned(), tx: 4, ..BrokerStatistics::default() };
            broker.rtt.record(1000);
            statistics.brokers.push(broker);
        }
        statistics.partition(&Arc::from("t"), 3).msgq_cnt = 5;
        let text = prometheus(&statistics);
        assert_eq!(text.matches("# TYPE ottla_broker_tx_total counter").count(), 1);
        assert!(text.contains("ottla_broker_tx_total{client=\"a\\\"b\",broker=\"h:2/2\"} 4\n"), "{text}");
        assert!(
            text.contains("ottla_broker_rtt{client=\"a\\\"b\",broker=\"h:1/1\",quantile=\"0.99\"} 1000\n")
        );
        assert!(text.contains("ottla_partition_msgq_cnt{client=\"a\\\"b\",topic=\"t\",partition=\"3\"} 5\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().unwrap_or_default();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
