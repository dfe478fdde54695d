//! A client can be dropped at any moment of its start: its threads end.

use std::{sync::mpsc, thread, time::Duration};

use ottla::{Config, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

#[test]
fn a_producer_may_be_dropped_at_any_moment_of_its_start() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let servers = cluster.bootstrap_servers();
    let (done, dropped) = mpsc::channel();
    thread::spawn(move || {
        let mut config = Config::new();
        config.set("bootstrap.servers", &servers).unwrap();
        for round in 0..300u64 {
            let producer = Producer::new(&config).unwrap();
            producer.send(&format!("topic-{}", round % 10), Record::new().value("v")).unwrap();
            thread::sleep(Duration::from_micros(round * 37 % 3000));
            drop(producer);
            done.send(round).unwrap();
        }
    });
    for round in 0..300 {
        assert_eq!(
            dropped.recv_timeout(Duration::from_secs(20)),
            Ok(round),
            "the producer of round {round} hangs"
        );
    }
}
