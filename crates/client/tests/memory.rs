//! The ceiling of a client's memory, with the embedded broker over TCP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ottla::{Config, Consumer, Offset, Producer, Record, SendError};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);
const PARTITIONS: i32 = 6;
const RECORDS: usize = 600;
const SIZE: usize = 1000;

fn config(servers: &str, ceiling: &str) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", servers).unwrap();
    config.set("client.memory.max.bytes", ceiling).unwrap();
    config
}

#[test]
fn ceiling_refuses_sends_as_a_full_queue_does() {
    // The RFC reserves this name: nothing is ever sent.
    for (codec, most) in [("none", 70), ("lz4", 35)] {
        let mut config = config("broker.invalid:9092", "100000");
        config.set("compression.type", codec).unwrap();
        config.set("drop.timeout.ms", "0").unwrap();
        let producer = Producer::new(&config).unwrap();
        let value = [b'v'; SIZE];
        let sent = (0..200).take_while(|_| producer.send("t", Record::new().value(&value)).is_ok()).count();
        assert!((most - 20..=most).contains(&sent), "{codec}: {sent}");
        let refused = producer.topic("t").try_send(Record::new().value(&value)).unwrap_err();
        assert_eq!(refused.error, SendError::QueueFull);
    }
}

#[test]
fn everything_is_delivered_and_read_below_a_ceiling() {
    let options = ClusterOptions { brokers: 3, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options).expect("a local port is free");
    cluster.control(|control| control.create_topic("t", PARTITIONS, 3)).expect("the topic is new");
    let servers = cluster.bootstrap_servers();
    for codec in ["none", "lz4"] {
        let mut config = config(&servers, "20000");
        config.set("compression.type", codec).unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&written);
        let producer = Producer::builder(&config)
            .on_delivery(move |batch| {
                assert!(batch.error().is_none(), "{:?}", batch.error());
                counted.fetch_add(batch.len(), Ordering::SeqCst);
            })
            .build()
            .unwrap();
        let topic = producer.topic("t");
        for number in 0..RECORDS {
            let partition = (number as i32) % PARTITIONS;
            topic.send_blocking(Record::new().value(&[b'v'; SIZE]).partition(partition), SECONDS).unwrap();
        }
        producer.flush(SECONDS).unwrap();
        assert_eq!(written.load(Ordering::SeqCst), RECORDS);
    }
    // A byte: each batch is above the ceiling, and comes alone.
    for ceiling in ["20000", "1"] {
        let consumer = Consumer::new(&config(&servers, ceiling)).unwrap();
        let all: Vec<_> = (0..PARTITIONS).map(|partition| ("t", partition, Offset::Beginning)).collect();
        consumer.assign(&all).unwrap();
        let mut next = [0; PARTITIONS as usize];
        while next.iter().sum::<i64>() < 2 * RECORDS as i64 {
            let records = consumer.poll(SECONDS).unwrap();
            assert!(!records.is_empty(), "{next:?} of a ceiling of {ceiling} bytes");
            for message in &records {
                let next = &mut next[message.partition() as usize];
                assert_eq!(message.offset(), *next);
                *next += 1;
            }
        }
    }
}
