//! The admin client against the embedded broker over TCP.

use std::time::Duration;

use ottla::{
    Admin, Config, ConfigChange, ConfigOperation, ConfigResource, ErrorCode, ErrorKind, NewTopic, OffsetSpec,
    Producer, Record, ResourceKind,
};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(10);

fn start() -> (EmbeddedCluster, Config, Admin) {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).expect("a local port is free");
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    let admin = Admin::new(&config).unwrap();
    (cluster, config, admin)
}

#[test]
fn topics_come_and_go_with_a_result_each() {
    let (_cluster, _, admin) = start();
    let created =
        admin.create_topics(&[NewTopic::new("a", 3, 2), NewTopic::new("b", 1, 9)], SECONDS).unwrap();
    assert_eq!(created[0], ("a".to_owned(), Ok(())));
    let refused = created[1].1.as_ref().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Broker(ErrorCode::INVALID_REPLICATION_FACTOR), "{refused}");
    let again = admin.create_topics(&[NewTopic::new("a", 3, 2)], SECONDS).unwrap();
    assert_eq!(again[0].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::TOPIC_ALREADY_EXISTS));

    assert_eq!(admin.create_partitions(&[("a", 5)], SECONDS).unwrap()[0].1, Ok(()));
    let described = admin.metadata(Some(&["a", "nowhere"]), SECONDS).unwrap();
    assert_eq!(described.brokers.len(), 3);
    assert_eq!(described.topics[0].partitions.len(), 5);
    assert_eq!(described.topics[0].partitions[0].replicas.len(), 2);
    assert_eq!(described.topics[1].error.as_ref().map(|error| error.kind()), Some(ErrorKind::UnknownTopic));
    assert_eq!(admin.list_topics(SECONDS).unwrap(), ["a"], "asking about a topic creates none");

    let deleted = admin.delete_topics(&["a", "nowhere"], SECONDS).unwrap();
    assert_eq!(deleted[0], ("a".to_owned(), Ok(())));
    let unknown = deleted[1].1.as_ref().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{unknown}");
    assert!(admin.list_topics(SECONDS).unwrap().is_empty());
    assert!(admin.describe_cluster(SECONDS).unwrap().cluster_id.is_some());
}

#[test]
fn offsets_are_asked_from_every_leader_and_merged() {
    let (_cluster, config, admin) = start();
    admin.create_topics(&[NewTopic::new("t", 6, 1)], SECONDS).unwrap();
    let producer = Producer::new(&config).unwrap();
    for partition in 0..6 {
        for _ in 0..=partition {
            producer.send("t", Record::new().value("v").partition(partition).timestamp(5000)).unwrap();
        }
    }
    producer.close(SECONDS).unwrap();
    let questions: Vec<(&str, i32, OffsetSpec)> = (0..6)
        .map(|p| ("t", p, OffsetSpec::Latest))
        .chain([
            ("t", 5, OffsetSpec::Earliest),
            ("t", 5, OffsetSpec::Timestamp(6000)),
            ("nowhere", 0, OffsetSpec::Latest),
        ])
        .collect();
    let mut answers = admin.list_offsets(&questions, SECONDS).unwrap();
    let unknown = answers.pop().unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UnknownTopic, "{unknown}");
    let offsets: Vec<i64> = answers.into_iter().map(|answer| answer.unwrap().offset).collect();
    assert_eq!(offsets, [1, 2, 3, 4, 5, 6, 0, -1]);
}

#[test]
fn bad_input_is_an_error_at_once() {
    let (_cluster, _, admin) = start();
    let long = "x".repeat(300);
    for topic in [
        NewTopic::new("", 1, 1),
        NewTopic::new(long, 1, 1),
        NewTopic::new("t", 0, 1),
        NewTopic::new("t", 1, -7),
    ] {
        let error = admin.create_topics(&[topic], SECONDS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert!(admin.create_topics(&[NewTopic::new("t", 1, 1), NewTopic::new("t", 1, 1)], SECONDS).is_err());
    assert!(admin.list_offsets(&[("t", -1, OffsetSpec::Latest)], SECONDS).is_err());
    assert!(admin.create_partitions(&[("t", 0)], SECONDS).is_err());
}

#[test]
fn a_call_to_nobody_ends_in_time_and_says_why() {
    let mut config = Config::new();
    config.set("bootstrap.servers", "127.0.0.1:1").unwrap();
    let admin = Admin::new(&config).unwrap();
    let error = admin.list_topics(Duration::from_millis(500)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::AllBrokersDown | ErrorKind::TimedOut), "{error}");
    let results = admin.create_topics(&[NewTopic::new("t", 1, 1)], Duration::from_millis(500)).unwrap();
    assert!(results[0].1.is_err());
}

#[test]
fn asking_about_a_topic_through_a_producer_does_not_create_it() {
    let (_cluster, config, admin) = start();
    let producer = Producer::new(&config).unwrap();
    producer.send("sent", Record::new().value("v")).unwrap();
    producer.flush(SECONDS).unwrap();
    let through = producer.admin();
    let offsets = through.list_offsets(&[("asked", 0, OffsetSpec::Latest)], SECONDS).unwrap();
    assert_eq!(offsets[0].as_ref().unwrap_err().kind(), ErrorKind::UnknownTopic);
    let left = through.delete_records(&[("asked", 0, 1)], SECONDS).unwrap();
    assert_eq!(left[0].as_ref().unwrap_err().kind(), ErrorKind::UnknownTopic);
    assert_eq!(admin.list_topics(SECONDS).unwrap(), ["sent"]);
}

#[test]
fn configurations_are_described_and_changed_property_by_property() {
    let (_cluster, _, admin) = start();
    admin.create_topics(&[NewTopic::new("t", 1, 1).config("retention.ms", "1000")], SECONDS).unwrap();
    let topic = |name: &str| ConfigResource { kind: ResourceKind::TOPIC, name: name.to_owned() };
    let value = |property: &str| {
        let described = admin.describe_configs(&[topic("t"), topic("nowhere")], SECONDS).unwrap();
        let unknown = described[1].1.as_ref().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{unknown}");
        let entries = described[0].1.as_ref().unwrap();
        let entry = entries.iter().find(|entry| entry.name == property).unwrap();
        (entry.value.clone().unwrap(), entry.is_default)
    };
    assert_eq!(value("retention.ms"), ("1000".to_owned(), false));
    let change = |name: &str, operation, value: Option<&str>| ConfigChange {
        name: name.to_owned(),
        operation,
        value: value.map(str::to_owned),
    };
    let changes = vec![
        change("retention.ms", ConfigOperation::Delete, None),
        change("max.message.bytes", ConfigOperation::Set, Some("2000")),
    ];
    let changed = admin.change_configs(&vec![(topic("t"), changes)], SECONDS).unwrap();
    assert_eq!(changed[0].1, Ok(Vec::new()));
    assert!(value("retention.ms").1);
    assert_eq!(value("max.message.bytes"), ("2000".to_owned(), false));
}
