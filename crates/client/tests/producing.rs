//! Producing to the embedded broker over TCP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Producer, Record};
use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, Fault, FaultAction};
use ottla_protocol::api::ApiKey;

const SECONDS: Duration = Duration::from_secs(20);

/// A broker that gets two batches of a partition in one request writes the last one and responds once. The first batch was
/// reported as written and was lost; an idempotent producer got OUT_OF_ORDER_SEQUENCE_NUMBER.
#[test]
fn batches_of_one_partition_go_in_separate_requests() {
    for idempotence in ["true", "false"] {
        let options = ClusterOptions { brokers: 1, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).expect("a local port is free");
        cluster.control(|control| {
            control.create_topic("t", 3, 1).expect("the topic is new");
            // Batches pile up while requests are in flight.
            control.set_latency(BrokerId(1), Duration::from_millis(5));
        });
        let mut config = Config::new();
        config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
        config.set("enable.idempotence", idempotence).unwrap();
        config.set("max.in.flight", "2").unwrap();
        config.set("linger.ms", "0").unwrap();
        config.set("batch.size", "500").unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&written);
        let producer = Producer::builder(&config)
            .on_delivery(move |batch| {
                assert!(batch.error().is_none(), "{:?}", batch.error());
                counted.fetch_add(batch.len(), Ordering::SeqCst);
            })
            .build()
            .unwrap();
        for number in 0..3000 {
            producer.send("t", Record::new().value(&[b'v'; 100]).partition(number % 3)).unwrap();
        }
        producer.flush(SECONDS).unwrap();
        assert_eq!(written.load(Ordering::SeqCst), 3000);
        for partition in 0..3 {
            let state = cluster.control(|control| control.partition("t", partition)).expect("it is there");
            assert_eq!(state.log_end_offset, 1000, "partition {partition}, idempotence {idempotence}");
        }
    }
}

/// A partition whose request was refused used to wait for the responses to its other requests in flight, too. With a busy
/// broker that was most of the latency of a leader change.
#[test]
fn partition_moves_to_its_new_leader_before_the_old_one_responds() {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 2, ..ClusterOptions::default() })
        .expect("a local port is free");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("linger.ms", "0").unwrap();
    let producer = Producer::new(&config).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 2).expect("the topic is new"));
    let topic = producer.topic("t");
    topic.send_tracked(Record::new().value("known to the broker")).unwrap().wait(SECONDS).unwrap();
    let old = cluster.control(|control| control.partition("t", 0)).unwrap().leader.unwrap();
    cluster.control(|control| {
        control.freeze_metadata();
        control.set_latency(old, Duration::from_millis(100));
        control.move_leader("t", 0, Some(BrokerId(3 - old.0)));
        let late = FaultAction::Delay(Duration::from_secs(15));
        control.inject(Fault::new(late).api(ApiKey::Produce).broker(old).skip(1));
    });
    let began = Instant::now();
    let deliveries = ["refused soon", "refused late", "sent to the new leader"].map(|value| {
        let delivery = topic.send_tracked(Record::new().value(value)).unwrap();
        thread::sleep(Duration::from_millis(20));
        delivery
    });
    let offsets = deliveries.map(|delivery| delivery.wait(SECONDS).unwrap().offset);
    assert_eq!(offsets, [Some(1), Some(2), Some(3)]);
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
}

/// A broker fails, and the cluster elects a new leader seconds later. Until then the client requests metadata with a backoff
/// of at most a second, so that records are written within a second after the election.
#[test]
fn records_are_written_soon_after_a_leader_is_elected() {
    let options = ClusterOptions { brokers: 3, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).expect("a local port is free");
    cluster.control(|control| {
        control.create_topic("t", 1, 3).expect("the topic is new");
        assert!(control.move_leader("t", 0, Some(BrokerId(1))));
    });
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    let producer = Producer::new(&config).unwrap();
    producer.send("t", Record::new().value("before").partition(0)).unwrap();
    producer.flush(SECONDS).unwrap();

    cluster.control(|control| {
        control.set_reachable(BrokerId(1), false);
        assert!(control.move_leader("t", 0, None));
    });
    let waiting: Vec<_> = (0..100)
        .map(|_| producer.topic("t").send_tracked(Record::new().value("meanwhile").partition(0)).unwrap())
        .collect();
    // By then the backoff has reached its maximum.
    thread::sleep(Duration::from_secs(5));
    assert!(cluster.control(|control| control.move_leader("t", 0, Some(BrokerId(2)))));
    let elected = Instant::now();
    for delivery in waiting {
        delivery.wait(SECONDS).unwrap();
    }
    let late = elected.elapsed();
    assert!(late < Duration::from_secs(5), "{late:?} after the election");
    println!("written {} ms after the election", late.as_millis());
}
