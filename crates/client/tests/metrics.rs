//! The hooks that pass a client's metrics to another system.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ottla::{Config, Consumer, Metric, MetricKind, MetricValue, MetricsSnapshot, Offset, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);

/// Keeps the metrics of the last call.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<Vec<Metric>>>);

impl Last {
    fn keep(&self) -> impl Fn(&MetricsSnapshot) + Send + Sync + 'static {
        let last = self.clone();
        move |snapshot| *last.0.lock().unwrap() = snapshot.iter().collect()
    }

    /// Waits for a metric with this value.
    fn wait_for(&self, name: &str, is_met: impl Fn(f64) -> bool) -> Metric {
        let end = Instant::now() + SECONDS;
        loop {
            let metrics = self.0.lock().unwrap().clone();
            let found = metrics.iter().find(|metric| metric.name == name && is_met(number(metric)));
            if let Some(metric) = found {
                return metric.clone();
            }
            assert!(Instant::now() < end, "no {name}: {metrics:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn number(metric: &Metric) -> f64 {
    match metric.value {
        MetricValue::Int(value) => value as f64,
        MetricValue::Double(value) => value,
    }
}

#[test]
fn hooks_get_the_metrics_of_producer_and_consumer() {
    // The brokers take no metrics: the hook does not depend on them.
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("statistics.interval.ms", "20").unwrap();
    let written = Last::default();
    let producer = Producer::builder(&config).on_metrics(written.keep()).build().unwrap();
    for _ in 0..3 {
        producer.topic("measured").send(Record::new().value("x").partition(0)).unwrap();
    }
    producer.flush(SECONDS).unwrap();
    let sent = written.wait_for("org.apache.kafka.producer.record.send.total", |value| value == 3.0);
    assert_eq!((sent.kind, sent.node_id), (MetricKind::Sum, None));
    assert!(sent.start_unix_nanos < sent.time_unix_nanos);
    let latency = written.wait_for("org.apache.kafka.producer.node.request.latency.max", |value| value > 0.0);
    assert!(latency.kind == MetricKind::Gauge && latency.node_id.is_some(), "{latency:?}");

    config.set("group.id", "measured").unwrap();
    let read = Last::default();
    let consumer = Consumer::builder(&config).on_metrics(read.keep()).build().unwrap();
    consumer.assign(&[("measured", 0, Offset::Beginning)]).unwrap();
    let name = "org.apache.kafka.consumer.fetch.manager.records.consumed.total";
    let end = Instant::now() + SECONDS;
    while Instant::now() < end && !read.0.lock().unwrap().iter().any(|it| it.name == name && number(it) > 0.0)
    {
        let _ = consumer.poll(Duration::from_millis(20));
    }
    read.wait_for(name, |value| value == 3.0);
}
