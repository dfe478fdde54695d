//! Client metrics (KIP-714) that embedded brokers request.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use ottla::{Admin, ApplicationMetrics, Consumer, ErrorKind, Event, MetricValue, Producer, Record};
use ottla_embedded_broker::{ApiKey, ClientTelemetry, Fault, FaultAction, MetricKind, Tail, TelemetryPush};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_embedded!(
    producer_pushes_its_metrics_and_once_more_when_it_is_closed,
    dropped_producer_pushes_once_more,
    consumer_of_a_group_pushes_its_metrics_with_its_labels,
    share_consumer_pushes_its_metrics,
    admin_client_pushes_its_metrics,
    clients_send_no_metrics_if_they_are_off_or_nobody_asks,
    closing_ends_in_time_if_the_broker_does_not_respond,
    instance_id_stays_when_brokers_die,
    metrics_of_the_application_are_pushed_as_subscribed,
);

const INTERVAL: Duration = Duration::from_millis(150);

/// Brokers that request these metrics.
fn asking(metrics: &[&str]) -> Backend {
    let backend = Backend::embedded_with(|options| options.client_telemetry = ClientTelemetry::Kafka);
    backend.control(|control| {
        control.telemetry().set_requested_metrics(metrics.iter().copied());
        control.telemetry().set_push_interval(INTERVAL);
    });
    backend
}

/// Takes pushes until `is_enough`.
fn pushes(backend: &Backend, is_enough: impl Fn(&[TelemetryPush]) -> bool) -> Vec<TelemetryPush> {
    let mut pushes = Vec::new();
    let done = eventually(|| {
        pushes.append(&mut backend.control(|control| control.telemetry().take_pushes()));
        is_enough(&pushes)
    });
    assert!(done, "{pushes:#?}");
    pushes
}

fn has_last(pushes: &[TelemetryPush]) -> bool {
    pushes.last().is_some_and(|push| push.terminating)
}

/// The sum of all pushed increases of a metric.
fn sum(pushes: &[TelemetryPush], name: &str) -> f64 {
    let points = pushes.iter().flat_map(TelemetryPush::points).filter(|point| point.name == name);
    points.inspect(|point| assert_eq!(point.kind, MetricKind::DeltaSum)).map(|point| point.value).sum()
}

fn names(pushes: &[TelemetryPush]) -> BTreeSet<String> {
    pushes.iter().flat_map(TelemetryPush::points).map(|point| point.name).collect()
}

fn send(producer: &Producer, topic: &str, count: usize) {
    for number in 0..count {
        producer.topic(topic).send(Record::new().value(&number.to_string())).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
}

fn producer_pushes_its_metrics_and_once_more_when_it_is_closed(_: &Backend) {
    let backend = asking(&["org.apache.kafka.producer."]);
    let topic = backend.topic(3);
    let producer = backend.producer(&[("client.id", "measured")]);
    let id = producer.client_instance_id(TIMEOUT).unwrap();
    assert_eq!(producer.client_instance_id(TIMEOUT).unwrap(), id);
    send(&producer, &topic, 100);
    let mut all =
        pushes(&backend, |pushes| sum(pushes, "org.apache.kafka.producer.record.send.total") >= 100.0);
    send(&producer, &topic, 50);
    producer.close(TIMEOUT).unwrap();
    all.extend(pushes(&backend, has_last));
    assert_eq!(sum(&all, "org.apache.kafka.producer.record.send.total"), 150.0);
    assert_eq!(all.iter().filter(|push| push.terminating).count(), 1);
    for push in &all {
        assert_eq!(
            (push.client_instance_id.to_string(), push.client_id.as_deref()),
            (id.to_string(), Some("measured"))
        );
    }
    for name in [
        "connection.creation.total",
        "request.latency.max",
        "record.queue.time.avg",
        "produce.throttle.time.max",
    ] {
        assert!(names(&all).contains(&format!("org.apache.kafka.producer.{name}")), "{name}");
    }
    let nodes: BTreeSet<_> =
        all.iter().flat_map(TelemetryPush::points).flat_map(|point| point.attributes).collect();
    assert!(nodes.iter().all(|(name, node)| name == "node_id" && node.starts_with("node-")), "{nodes:?}");
    assert!(!nodes.is_empty());
    let requested = names(&all).into_iter().all(|name| name.starts_with("org.apache.kafka.producer."));
    assert!(requested, "nothing else");
}

fn dropped_producer_pushes_once_more(_: &Backend) {
    let backend = asking(&["*"]);
    let producer = backend.producer(&[]);
    producer.client_instance_id(TIMEOUT).unwrap();
    drop(producer);
    pushes(&backend, has_last);
}

fn consumer_of_a_group_pushes_its_metrics_with_its_labels(_: &Backend) {
    let backend = asking(&["org.apache.kafka.consumer."]);
    let topic = backend.topic(2);
    send(&backend.producer(&[("enable.metrics.push", "false")]), &topic, 10);
    let properties = [
        ("group.id", "measured-group"),
        ("group.instance.id", "first"),
        ("client.rack", "r1"),
        ("auto.offset.reset", "earliest"),
    ];
    let consumer = Consumer::new(&backend.config(&properties)).unwrap();
    consumer.subscribe(&[&topic]).unwrap();
    let mut received = 0;
    while received < 10 {
        received += consumer.poll(TIMEOUT).unwrap().into_iter().count();
    }
    consumer.client_instance_id(TIMEOUT).unwrap();
    let mut all = Vec::new();
    let is_counted = || {
        let _ = consumer.poll(INTERVAL).unwrap();
        all.append(&mut backend.control(|control| control.telemetry().take_pushes()));
        sum(&all, "org.apache.kafka.consumer.fetch.manager.records.consumed.total") == 10.0
            && names(&all).contains("org.apache.kafka.consumer.fetch.manager.records.lag.max")
    };
    assert!(eventually(is_counted));
    consumer.close(TIMEOUT).unwrap();
    all.append(&mut pushes(&backend, has_last));
    assert_eq!(sum(&all, "org.apache.kafka.consumer.fetch.manager.records.consumed.total"), 10.0);
    let prefix = "org.apache.kafka.consumer.";
    for name in [
        "poll.idle.ratio.avg",
        "coordinator.assigned.partitions",
        "coordinator.rebalance.latency.max",
        "coordinator.commit.latency.avg",
        "fetch.manager.fetch.latency.avg",
        "fetch.manager.records.lag.max",
    ] {
        assert!(names(&all).contains(&format!("{prefix}{name}")), "{name}: {:?}", names(&all));
    }
    let ratios =
        all.iter().flat_map(TelemetryPush::points).filter(|point| point.name.ends_with("idle.ratio.avg"));
    let ratios: Vec<f64> = ratios.map(|point| point.value).collect();
    assert!(
        ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio)) && ratios.iter().any(|ratio| *ratio > 0.3)
    );
    let labels: BTreeSet<_> = all.iter().flat_map(TelemetryPush::resource_attributes).collect();
    for (name, value) in
        [("group_id", "measured-group"), ("group_instance_id", "first"), ("client_rack", "r1")]
    {
        assert!(labels.contains(&(name.to_owned(), value.to_owned())), "{labels:?}");
    }
    assert!(labels.iter().any(|(name, value)| name == "group_member_id" && !value.is_empty()), "{labels:?}");
}

fn share_consumer_pushes_its_metrics(_: &Backend) {
    let backend = asking(&["org.apache.kafka.consumer.share."]);
    let topic = backend.topic(1);
    let properties = [("group.id", "measured-share-group")];
    let consumer = ottla::ShareConsumer::new(&backend.config(&properties)).unwrap();
    consumer.subscribe(&[&topic]).unwrap();
    consumer.client_instance_id(TIMEOUT).unwrap();
    let _ = consumer.poll(2 * INTERVAL).unwrap();
    consumer.close(TIMEOUT).unwrap();
    let all = pushes(&backend, has_last);
    assert!(sum(&all, "org.apache.kafka.consumer.share.coordinator.heartbeat.total") >= 1.0, "{all:?}");
    assert!(names(&all).contains("org.apache.kafka.consumer.share.poll.idle.ratio.avg"));
}

fn admin_client_pushes_its_metrics(_: &Backend) {
    let backend = asking(&["*"]);
    let admin = Admin::new(&backend.config(&[])).unwrap();
    let id = admin.client_instance_id(TIMEOUT).unwrap();
    let pushes = pushes(&backend, |pushes| !pushes.is_empty());
    assert_eq!(pushes[0].client_instance_id.to_string(), id.to_string());
    admin.close(TIMEOUT).unwrap();
    assert!(admin.client_instance_id(TIMEOUT).is_err());
}

fn clients_send_no_metrics_if_they_are_off_or_nobody_asks(_: &Backend) {
    let brokers = [(asking(&["*"]), "false"), (Backend::embedded(), "true")];
    for (backend, push) in brokers {
        let topic = backend.topic(1);
        let producer = backend.producer(&[("enable.metrics.push", push)]);
        send(&producer, &topic, 10);
        let error = producer.client_instance_id(2 * INTERVAL).unwrap_err();
        let expected = if push == "true" { ErrorKind::TimedOut } else { ErrorKind::NotConfigured };
        assert_eq!(error.kind(), expected, "{error}");
        let statistics = producer.statistics().unwrap();
        producer.close(TIMEOUT).unwrap();
        let requests = |api: &str| statistics.brokers.iter().map(|broker| broker.requests[api]).sum::<i64>();
        assert_eq!((requests("GetTelemetrySubscriptions"), requests("PushTelemetry")), (0, 0));
        assert_eq!(backend.control(|control| control.telemetry().take_pushes()).len(), 0);
    }
}

fn closing_ends_in_time_if_the_broker_does_not_respond(_: &Backend) {
    let backend = asking(&["*"]);
    let producer = backend.producer(&[]);
    producer.client_instance_id(TIMEOUT).unwrap();
    backend
        .control(|control| control.inject(Fault::new(FaultAction::NeverRespond).api(ApiKey::PushTelemetry)));
    std::thread::sleep(2 * INTERVAL);
    let began = Instant::now();
    producer.close(TIMEOUT).unwrap();
    let took = began.elapsed();
    assert!((Duration::from_millis(900)..TIMEOUT / 2).contains(&took), "{took:?}");

    // A busy machine may delay some of them, but does not make each wait for a second.
    let times = (0..10).map(|_| {
        let producer = backend.producer(&[]);
        producer.client_instance_id(TIMEOUT).unwrap();
        let began = Instant::now();
        producer.close(Duration::ZERO).unwrap();
        began.elapsed()
    });
    assert!(times.min() < Some(Duration::from_millis(900)), "without a timeout it waits");
}

fn instance_id_stays_when_brokers_die(_: &Backend) {
    let backend = asking(&["*"]);
    let topic = backend.topic(3);
    let producer = backend.producer(&[("reconnect.backoff.max.ms", "100")]);
    let id = producer.client_instance_id(TIMEOUT).unwrap();
    send(&producer, &topic, 10);
    let first = pushes(&backend, |pushes| !pushes.is_empty());
    backend.control(|control| control.kill_broker(first[0].broker, Tail::Kept));
    let moved = pushes(&backend, |pushes| pushes.iter().any(|push| push.broker != first[0].broker));
    assert!(moved.iter().all(|push| push.client_instance_id == first[0].client_instance_id));
    assert_eq!(first[0].client_instance_id.to_string(), id.to_string());
}

fn metrics_of_the_application_are_pushed_as_subscribed(_: &Backend) {
    let backend = asking(&["orders.", "org.apache.kafka.producer.record.send.total"]);
    let (topic, metrics) = (backend.topic(1), ApplicationMetrics::new());
    metrics.add_sum("orders.done", || 12).unwrap();
    metrics.add_gauge("orders.age", || MetricValue::Double(0.5)).unwrap();
    metrics.add_gauge("orders.broken", || panic!("the application's own")).unwrap();
    metrics.add_gauge("carts.open", || MetricValue::Int(1)).unwrap();
    let config = backend.config(&[]);
    let producer = Producer::builder(&config).application_metrics(&metrics).build().unwrap();
    send(&producer, &topic, 10);
    let age = |pushes: &[TelemetryPush]| {
        let mut points = pushes.iter().flat_map(TelemetryPush::points);
        points.find(|point| point.name == "orders.age").map(|point| (point.kind, point.value))
    };
    let before = pushes(&backend, |pushes| age(pushes).is_some() && sum(pushes, "orders.done") > 0.0);
    assert_eq!(age(&before), Some((MetricKind::Gauge, 0.5)));
    let names = names(&before);
    assert!(!names.contains("carts.open") && !names.contains("orders.broken"), "{names:?}");
    assert!(metrics.remove("orders.age"));
    producer.close(TIMEOUT).unwrap();
    let after = pushes(&backend, has_last);
    assert_eq!(sum(&before, "orders.done") + sum(&after, "orders.done"), 12.0, "increases add up");
    assert_eq!(age(&after[after.len() - 1..]), None);
    let panics = std::iter::from_fn(|| producer.poll_event())
        .filter(|event| matches!(event, Event::Error(error) if error.kind() == ErrorKind::CallbackPanicked));
    assert!(panics.count() > 0);
}
