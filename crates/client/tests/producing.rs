//! Producing to the embedded broker over TCP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla::{Config, Producer, Record};
use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);

/// A broker that is given two batches of a partition in one request takes the last one and answers once: what was in the
/// first one was reported as written, and was not; an idempotent producer was told that its sequence is broken.
#[test]
fn several_batches_of_a_partition_go_in_several_requests() {
    for idempotence in ["true", "false"] {
        let options = ClusterOptions { brokers: 1, ..ClusterOptions::default() };
        let cluster = EmbeddedCluster::start(options).expect("a local port is free");
        cluster.control(|control| {
            control.create_topic("t", 3, 1).expect("the topic is new");
            // Batches pile up while requests are under way.
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
