//! Topics that send records in another order than that of the calls.

use std::time::Duration;

use ottla::{Config, Producer, QueueOrder, Record, Topic};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);

fn cluster() -> EmbeddedCluster {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 1, ..ClusterOptions::default() })
        .expect("a local port is free");
    cluster.control(|control| control.create_topic("t", 1, 1).expect("the topic is new"));
    cluster
}

fn producer(cluster: &EmbeddedCluster, properties: &[(&str, &str)]) -> Producer {
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("batch.num.messages", "4").unwrap();
    for (property, value) in properties {
        config.set(property, value).unwrap();
    }
    Producer::new(&config).unwrap()
}

/// Returns the offsets of the records `0..values`, in the order of the calls. The partition is paused while they are sent,
/// after a first record.
fn offsets(producer: &Producer, topic: &Topic, values: usize) -> Vec<Option<i64>> {
    topic.send_tracked(Record::new().value("0").partition(0)).unwrap().wait(SECONDS).unwrap();
    producer.pause(&[("t", 0)]);
    // The broker actor responds to this after it has paused the partition.
    producer.statistics().unwrap();
    let send = |number: usize| {
        let value = (number * 7 % values).to_string();
        topic.send_tracked(Record::new().value(&value).partition(0)).unwrap()
    };
    let sent: Vec<_> = (0..values).map(send).collect();
    producer.resume(&[("t", 0)]);
    sent.into_iter().map(|delivery| delivery.wait(SECONDS).unwrap().offset).collect()
}

#[test]
fn reports_have_the_right_offsets_in_the_applications_order() {
    // Records are ordered before they get sequence numbers, so that idempotence works.
    for idempotence in ["true", "false"] {
        let cluster = cluster();
        let producer = producer(&cluster, &[("enable.idempotence", idempotence)]);
        let number = |value: Option<&[u8]>| -> Option<u32> { std::str::from_utf8(value?).ok()?.parse().ok() };
        let order = QueueOrder::By(Box::new(move |one, other| number(one.value).cmp(&number(other.value))));
        let topic = producer.topic_builder("t").order(order).build().unwrap();
        let expected: Vec<_> = (0..30).map(|sent| Some(1 + sent * 7 % 30)).collect();
        assert_eq!(offsets(&producer, &topic, 30), expected);
    }
}

#[test]
fn lifo_writes_the_last_record_first() {
    let cluster = cluster();
    let producer = producer(&cluster, &[("queuing.strategy", "lifo"), ("enable.idempotence", "false")]);
    let expected: Vec<_> = (0..30).map(|sent| Some(30 - sent)).collect();
    assert_eq!(offsets(&producer, &producer.topic("t"), 30), expected);
}

#[test]
fn panicking_queue_order_ends_its_producer_alone() {
    let cluster = cluster();
    let (broken, other) = (producer(&cluster, &[]), producer(&cluster, &[]));
    let order = QueueOrder::By(Box::new(|_, _| panic!("on purpose")));
    let topic = broken.topic_builder("t").order(order).build().unwrap();
    broken.pause(&[("t", 0)]);
    let send = |_| topic.send_tracked(Record::new().value("v").partition(0)).unwrap();
    let sent: Vec<_> = (0..10).map(send).collect();
    broken.resume(&[("t", 0)]);
    for delivery in sent {
        delivery.wait(SECONDS).expect_err("it was not sent");
    }
    assert!(broken.send("t", Record::new().value("v")).is_err(), "it has ended");
    other.topic("t").send_tracked(Record::new().value("v").partition(0)).unwrap().wait(SECONDS).unwrap();
}
