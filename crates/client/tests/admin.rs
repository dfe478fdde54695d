//! The admin client against the embedded broker over TCP.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ottla::{
    Admin, AdminOptions, Config, ConfigChange, ConfigResource, ErrorCode, ErrorKind, NewPartitions, NewTopic,
    OffsetSpec, Producer, Record, RecordsToDelete, ResourceKind,
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
fn topics_have_a_result_each_when_created_or_deleted() {
    let (_cluster, _, admin) = start();
    let created =
        admin.create_topics(&[NewTopic::new("a", 3, 2), NewTopic::new("b", 1, 9)], SECONDS).unwrap();
    assert_eq!(created[0], ("a".to_owned(), Ok(())));
    let refused = created[1].1.as_ref().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Broker(ErrorCode::INVALID_REPLICATION_FACTOR), "{refused}");
    let again = admin.create_topics(&[NewTopic::new("a", 3, 2)], SECONDS).unwrap();
    assert_eq!(again[0].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::TOPIC_ALREADY_EXISTS));

    assert_eq!(admin.create_partitions(&[NewPartitions::new("a", 5)], SECONDS).unwrap()[0].1, Ok(()));
    let described = admin.metadata(Some(&["a", "nowhere"]), SECONDS).unwrap();
    assert_eq!(described.brokers.len(), 3);
    assert_eq!(described.topics[0].partitions.len(), 5);
    assert_eq!(described.topics[0].partitions[0].replicas.len(), 2);
    assert_eq!(described.topics[1].error.as_ref().map(|error| error.kind()), Some(ErrorKind::UnknownTopic));
    assert_eq!(admin.list_topics(SECONDS).unwrap(), ["a"], "describing a topic creates none");

    let deleted = admin.delete_topics(&["a", "nowhere"], SECONDS).unwrap();
    assert_eq!(deleted[0], ("a".to_owned(), Ok(())));
    let unknown = deleted[1].1.as_ref().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{unknown}");
    assert!(admin.list_topics(SECONDS).unwrap().is_empty());
    assert!(admin.describe_cluster(SECONDS).unwrap().cluster_id.is_some());
}

#[test]
fn list_offsets_queries_every_leader_and_merges() {
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
    let mut results = admin.list_offsets(&questions, SECONDS).unwrap();
    let unknown = results.pop().unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UnknownTopic, "{unknown}");
    let offsets: Vec<_> = results.into_iter().map(|result| result.unwrap().offset).collect();
    assert_eq!(offsets[..7], [1, 2, 3, 4, 5, 6, 0].map(Some));
    assert_eq!(offsets[7..], [None], "no record is that late");
}

#[test]
fn invalid_topics_are_refused_without_a_request() {
    let (_cluster, _, admin) = start();
    let long = "x".repeat(300);
    for topic in [
        NewTopic::new("", 1, 1),
        NewTopic::new(long, 1, 1),
        NewTopic::new("t", 0, 1),
        NewTopic::new("t", 1, -7),
    ] {
        let error = admin.create_topics(&[topic], SECONDS).unwrap().remove(0).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn calls_end_in_time_when_no_broker_is_reachable() {
    let mut config = Config::new();
    config.set("bootstrap.servers", "127.0.0.1:1").unwrap();
    let admin = Admin::new(&config).unwrap();
    let error = admin.list_topics(Duration::from_millis(500)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::AllBrokersDown | ErrorKind::TimedOut), "{error}");
    let results = admin.create_topics(&[NewTopic::new("t", 1, 1)], Duration::from_millis(500)).unwrap();
    assert!(results[0].1.is_err());
}

#[test]
fn describing_a_topic_through_a_producer_creates_none() {
    let (_cluster, config, admin) = start();
    let producer = Producer::new(&config).unwrap();
    producer.send("sent", Record::new().value("v")).unwrap();
    producer.flush(SECONDS).unwrap();
    let through = producer.admin();
    let offsets = through.list_offsets(&[("asked", 0, OffsetSpec::Latest)], SECONDS).unwrap();
    assert_eq!(offsets[0].as_ref().unwrap_err().kind(), ErrorKind::UnknownTopic);
    let left = through.delete_records(&[("asked", 0, RecordsToDelete::Before(1))], SECONDS).unwrap();
    assert_eq!(left[0].as_ref().unwrap_err().kind(), ErrorKind::UnknownTopic);
    assert_eq!(admin.list_topics(SECONDS).unwrap(), ["sent"]);
}

#[test]
fn configs_are_described_and_altered_incrementally() {
    let (_cluster, _, admin) = start();
    admin.create_topics(&[NewTopic::new("t", 1, 1).config("retention.ms", "1000")], SECONDS).unwrap();
    let value = |property: &str| {
        let described = admin
            .describe_configs(&[ConfigResource::topic("t"), ConfigResource::topic("nowhere")], SECONDS)
            .unwrap();
        let unknown = described[1].1.as_ref().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{unknown}");
        let entries = described[0].1.as_ref().unwrap();
        let entry = entries.iter().find(|entry| entry.name == property).unwrap();
        (entry.value.clone().unwrap(), entry.is_default)
    };
    assert_eq!(value("retention.ms"), ("1000".to_owned(), false));
    let changes = vec![ConfigChange::delete("retention.ms"), ConfigChange::set("max.message.bytes", "2000")];
    let changes = vec![(ConfigResource::topic("t"), changes)];
    let validated =
        admin.incremental_alter_configs(&changes, AdminOptions::new(SECONDS).validate_only(true)).unwrap();
    assert_eq!(validated, [(ConfigResource::topic("t"), Ok(()))]);
    assert_eq!(value("retention.ms"), ("1000".to_owned(), false));
    let changed = admin.incremental_alter_configs(&changes, SECONDS).unwrap();
    assert_eq!(changed, [(ConfigResource::topic("t"), Ok(()))]);
    assert!(value("retention.ms").1);
    assert_eq!(value("max.message.bytes"), ("2000".to_owned(), false));
}

#[test]
fn resources_with_a_configuration_are_listed_by_kind() {
    let (_cluster, _, admin) = start();
    admin.create_topics(&[NewTopic::new("t", 1, 1)], SECONDS).unwrap();
    let of_nobody = [ConfigResource::group("absent"), ConfigResource::client_metrics("none")];
    let names = ["share.session.timeout.ms", "interval.ms"];
    let set = |(resource, name): (ConfigResource, &str)| (resource, vec![ConfigChange::set(name, "50000")]);
    let changes: Vec<_> = of_nobody.clone().into_iter().zip(names).map(set).collect();
    let changed = admin.incremental_alter_configs(&changes, SECONDS).unwrap();
    assert!(changed.iter().all(|(_, result)| result.is_ok()), "{changed:?}");
    let list = |kinds: &[ResourceKind]| admin.list_config_resources(kinds, SECONDS).unwrap();
    assert_eq!(list(&[ResourceKind::TOPIC]), [ConfigResource::topic("t")]);
    assert_eq!(list(&[ResourceKind::GROUP]), [of_nobody[0].clone()], "a group without members is listed");
    assert_eq!(list(&[ResourceKind::CLIENT_METRICS]), [of_nobody[1].clone()]);
    assert_eq!(list(&[]).len(), 6, "these, and three brokers");
    let unknown = admin.list_config_resources(&[ResourceKind(99)], SECONDS).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Broker(ErrorCode::UNSUPPORTED_VERSION), "{unknown}");
}

/// Runs on the test's thread what an application would run on its executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn async_calls_resolve_to_one_result_each() {
    let (_cluster, _, admin) = start();
    let result: ottla::Result<()> = block_on(async {
        let created = admin.create_topics_async(&[NewTopic::new("t", 2, 1)], SECONDS).await?;
        assert_eq!(created, [("t".to_owned(), Ok(()))]);
        assert_eq!(admin.list_topics_async(SECONDS).await?, ["t"]);
        assert_eq!(admin.describe_topics_async(&["t"], SECONDS).await?[0].partitions.len(), 2);
        assert_eq!(admin.describe_cluster_async(SECONDS).await?.brokers.len(), 3);
        assert_eq!(admin.metadata_async(None, SECONDS).await?.topics.len(), 1);
        let found = admin.list_offsets_async(&[("t", 0, OffsetSpec::Latest)], SECONDS).await?;
        assert_eq!(found[0].as_ref().map(|found| found.offset), Ok(Some(0)));
        let lowest = admin.delete_records_async(&[("t", 0, RecordsToDelete::All)], SECONDS).await?;
        assert_eq!(lowest, [Ok(0)]);
        assert_eq!(admin.delete_topics_async(&["t"], SECONDS).await?, [("t".to_owned(), Ok(()))]);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn async_call_is_carried_out_when_its_future_is_dropped() {
    let (_cluster, _, admin) = start();
    drop(admin.create_topics_async(&[NewTopic::new("t", 1, 1)], SECONDS));
    let deadline = std::time::Instant::now() + SECONDS;
    while admin.list_topics(SECONDS).unwrap() != ["t"] {
        assert!(std::time::Instant::now() < deadline, "the topic was not created");
    }
}
