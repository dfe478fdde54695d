//! Brokers before 0.11, whose records are message sets, emulated by the embedded broker over TCP.

use std::time::{Duration, Instant};

use ottla::{ApiKey, Config, Consumer, ErrorKind, GroupOffset, Offset, Producer, Record};
use ottla_embedded_broker::{BrokerRelease, ClusterOptions, EmbeddedCluster, Fault, FaultAction};

/// A codec, and the timestamp, key and value of each consumed record.
type Set = (String, Vec<(i64, Vec<u8>, Vec<u8>)>);

const SECONDS: Duration = Duration::from_secs(20);

/// Sends records to such brokers in each codec, and returns the consumed records.
fn round_trip(release: BrokerRelease, name: &str, codecs: &[&str]) -> Vec<Set> {
    let cluster =
        EmbeddedCluster::start(ClusterOptions::default().emulate(release)).expect("a local port is free");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("broker.version.fallback", name).unwrap();
    codecs
        .iter()
        .map(|&codec| {
            cluster.control(|control| control.create_topic(codec, 1, 1)).expect("the topic is new");
            let mut producing = config.clone();
            producing.set("compression.type", codec).unwrap();
            producing.set("enable.idempotence", "false").unwrap();
            let producer = Producer::new(&producing).unwrap();
            for number in 0..100 {
                let (key, value) = (format!("key {number}"), format!("value {number} ").repeat(20));
                let record = Record::new().key(&key).value(&value).timestamp(1000 + number);
                producer.send(codec, record).unwrap();
            }
            producer.flush(SECONDS).unwrap();
            producer.close(SECONDS).unwrap();
            let consumer = Consumer::new(&config).unwrap();
            consumer.assign(&[(codec, 0, Offset::At(0))]).unwrap();
            let mut seen = Vec::new();
            let deadline = Instant::now() + SECONDS;
            while seen.len() < 100 {
                assert!(Instant::now() < deadline, "{name}, {codec}: {} of 100 records came", seen.len());
                for message in &consumer.poll(Duration::from_millis(200)).unwrap() {
                    assert_eq!(message.offset(), seen.len() as i64);
                    assert_eq!(message.headers().count(), 0, "message sets have none");
                    let owned = |field: Option<&[u8]>| field.unwrap().to_vec();
                    seen.push((message.timestamp(), owned(message.key()), owned(message.value())));
                }
            }
            (codec.to_owned(), seen)
        })
        .collect()
}

#[test]
fn brokers_of_0_10_keep_timestamps() {
    for (codec, records) in
        round_trip(BrokerRelease::V0_10_0, "0.10.0", &["none", "gzip", "snappy", "lz4", "zstd"])
    {
        for (number, (timestamp, key, value)) in (0..).zip(records) {
            assert_eq!(timestamp, 1000 + number, "{codec}");
            assert_eq!(key, format!("key {number}").as_bytes(), "{codec}");
            assert_eq!(value, format!("value {number} ").repeat(20).as_bytes(), "{codec}");
        }
    }
}

#[test]
fn brokers_of_0_9_without_api_versions_are_served_by_the_fallback() {
    check_without_timestamps(round_trip(BrokerRelease::V0_9_0, "0.9.0", &["lz4"]));
}

#[test]
fn brokers_of_0_8_are_served_too() {
    check_without_timestamps(round_trip(BrokerRelease::V0_8_2, "0.8.2", &["none"]));
}

#[test]
fn compressed_sets_of_format_0_count_from_the_right_offset() {
    check_without_timestamps(round_trip(BrokerRelease::V0_8_2, "0.8.2", &["gzip"]));
}

fn check_without_timestamps(sets: Vec<Set>) {
    for (codec, records) in sets {
        for (number, (timestamp, key, value)) in (0..).zip(records) {
            assert_eq!(timestamp, -1, "{codec}: format 0 has none");
            assert_eq!(key, format!("key {number}").as_bytes(), "{codec}");
            assert_eq!(value, format!("value {number} ").repeat(20).as_bytes(), "{codec}");
        }
    }
}

#[test]
fn record_with_headers_fails_alone_when_the_broker_has_no_headers() {
    let options = ClusterOptions::default().emulate(BrokerRelease::V0_10_0);
    let cluster = EmbeddedCluster::start(options).expect("a local port is free");
    cluster.control(|control| control.create_topic("t", 1, 1)).expect("the topic is new");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("broker.version.fallback", "0.10.0").unwrap();
    config.set("enable.idempotence", "false").unwrap();
    config.set("broker.linger.ms", "50").unwrap();
    let producer = Producer::new(&config).unwrap();
    let topic = producer.topic("t");
    let deliveries: Vec<_> = (0..20)
        .map(|number| {
            let value = number.to_string();
            let record = Record::new().value(&value);
            topic.send_tracked(if number % 7 == 3 { record.null_header("h") } else { record }).unwrap()
        })
        .collect();
    let mut offset = 0;
    for (number, delivery) in deliveries.into_iter().enumerate() {
        match delivery.wait(SECONDS) {
            Ok(written) if number % 7 != 3 => {
                assert_eq!(written.offset, Some(offset), "{number}");
                offset += 1;
            }
            Err(error) if number % 7 == 3 => {
                assert_eq!(error.kind(), ErrorKind::UnsupportedVersion, "{number}");
                assert!(error.to_string().contains("headers"), "{error}");
            }
            other => panic!("{number}: {other:?}"),
        }
    }
}

/// Starts a cluster of this release with a topic `t`, and a transactional producer.
fn transactional(release: BrokerRelease) -> (EmbeddedCluster, Config, Producer) {
    let cluster =
        EmbeddedCluster::start(ClusterOptions::default().emulate(release)).expect("a local port is free");
    cluster.control(|control| control.create_topic("t", 1, 1)).expect("the topic is new");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    let mut own = config.clone();
    own.set("transactional.id", "x").unwrap();
    let producer = Producer::new(&own).unwrap();
    producer.init_transactions(SECONDS).unwrap();
    (cluster, config, producer)
}

#[test]
fn transactions_commit_and_abort_on_brokers_since_0_11() {
    for release in [BrokerRelease::V0_11_0, BrokerRelease::V3_9_1, BrokerRelease::V4_3_1] {
        let (_cluster, config, producer) = transactional(release);
        let mut grouped = config.clone();
        grouped.set("group.id", "g").unwrap();
        let member = Consumer::new(&grouped).unwrap();
        for (value, commits) in [("a", true), ("b", false), ("c", true)] {
            let transaction = producer.begin().unwrap();
            transaction.send("t", Record::new().partition(0).value(value)).unwrap();
            transaction.send_offsets(&member, &[GroupOffset::new("t", 0, 7)], SECONDS).unwrap_or_else(
                |error| {
                    panic!("{release:?}: {error}");
                },
            );
            if commits {
                transaction.commit(SECONDS).unwrap();
            } else {
                producer.flush(SECONDS).unwrap();
                transaction.abort(SECONDS).unwrap();
            }
        }
        let consumer = Consumer::new(&config).unwrap();
        consumer.assign(&[("t", 0, Offset::At(0))]).unwrap();
        let (mut seen, deadline) = (Vec::new(), Instant::now() + SECONDS);
        while seen.len() < 2 {
            assert!(Instant::now() < deadline, "{release:?}: {seen:?}");
            for message in &consumer.poll(Duration::from_millis(200)).unwrap() {
                seen.push(message.value().unwrap().to_vec());
            }
        }
        assert_eq!(seen, [b"a", b"c"], "{release:?}");
    }
}

#[test]
fn failed_transaction_ends_the_producer_on_brokers_before_2_5() {
    let (cluster, _, producer) = transactional(BrokerRelease::V0_11_0);
    let transaction = producer.begin().unwrap();
    transaction.send("t", Record::new().partition(0).value("a")).unwrap();
    producer.flush(SECONDS).unwrap();
    // A batch of unknown outcome: only a higher epoch, which these brokers do not give, excludes it from the next transaction.
    let lost = Fault::new(FaultAction::LoseResponse).api(ApiKey::Produce).times(1);
    cluster.control(|control| control.inject(lost));
    transaction.send("t", Record::new().partition(0).value("b")).unwrap();
    producer.flush(SECONDS).unwrap();
    let failed = transaction.abort(SECONDS).unwrap_err();
    assert!(failed.is_fatal() && failed.to_string().contains("needs 2.5"), "{failed}");
}

#[test]
fn brokers_before_0_11_have_no_transactions() {
    let options = ClusterOptions::default().emulate(BrokerRelease::V0_10_0);
    let cluster = EmbeddedCluster::start(options).expect("a local port is free");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    config.set("broker.version.fallback", "0.10.0").unwrap();
    config.set("transactional.id", "x").unwrap();
    let producer = Producer::new(&config).unwrap();
    let failed = producer.init_transactions(SECONDS).unwrap_err();
    let text = failed.to_string();
    assert!(text.contains("0.11"), "{text}");
}
