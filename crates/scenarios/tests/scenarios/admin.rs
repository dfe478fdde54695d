//! Topics are created and deleted, and the cluster describes itself.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use ottla::{
    Admin, AdminOptions, Culprit, ErrorCode, ErrorKind, NewPartitions, NewTopic, OffsetSpec, Record,
    admin::Uuid,
};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction, Tail};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, config, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    topics_are_created_listed_described_and_deleted,
    each_topic_has_its_own_result,
    partitions_are_added_to_a_topic,
    cluster_is_described,
    topics_are_described_by_name_and_by_id,
    offsets_of_many_partitions_are_listed_at_once,
    topic_without_tiered_storage_has_only_local_offsets,
    topics_are_validated_without_being_created,
    invalid_topic_names_are_reported,
    replicas_can_be_assigned_manually,
    deletion_by_id_leaves_a_recreated_topic_alone,
    leader_epochs_end_at_offsets,
    fenced_producer_cannot_commit,
);

ottla_scenarios::run_on_embedded!(
    an_unreachable_cluster_is_a_timeout_that_says_so,
    admin_calls_follow_a_moved_controller,
    fenced_brokers_are_described_on_request,
    topics_with_many_partitions_are_described,
    admin_calls_retry_transient_errors,
    calls_end_when_the_client_is_closed,
);

fn topics_are_created_listed_described_and_deleted(backend: &Backend) {
    let admin = admin(backend);
    let (one, two) = (unused_topic_name(), unused_topic_name());
    let topics = [NewTopic::new(&one, 3, 2), NewTopic::new(&two, 1, 1).config("retention.ms", "1000000")];
    let results = admin.create_topics(&topics, TIMEOUT).unwrap();
    assert_eq!(results, [(one.clone(), Ok(())), (two.clone(), Ok(()))]);
    let listed = || {
        let names = admin.list_topics(TIMEOUT).unwrap();
        names.contains(&one) && names.contains(&two)
    };
    assert!(eventually(listed));
    // The next broker may not know it at first.
    let mut described = admin.metadata(Some(&[&one]), TIMEOUT).unwrap();
    let complete = || {
        described = admin.metadata(Some(&[&one]), TIMEOUT).unwrap();
        described.topics.iter().all(|topic| topic.error.is_none()) && described.topics.len() == 1
    };
    assert!(eventually(complete));
    assert_eq!(described.topics[0].name, one);
    assert_eq!(described.topics[0].partitions.len(), 3);
    for partition in &described.topics[0].partitions {
        assert_eq!(partition.replicas.len(), 2);
        assert!(partition.replicas.contains(&partition.leader.unwrap()));
    }
    let results = admin.delete_topics(&[&one, &two], TIMEOUT).unwrap();
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    let gone = || {
        let names = admin.list_topics(TIMEOUT).unwrap();
        !names.contains(&one) && !names.contains(&two)
    };
    assert!(eventually(gone));
}

fn each_topic_has_its_own_result(backend: &Backend) {
    let admin = admin(backend);
    let (exists, new, missing) = (backend.topic(1), unused_topic_name(), unused_topic_name());
    let topics = [
        NewTopic::new(&exists, 1, 1),
        NewTopic::new(&new, 1, 1),
        NewTopic::new(unused_topic_name(), 1, 100),
        NewTopic::new(unused_topic_name(), 1, 1).config("no.such.config", "1"),
    ];
    let results = admin.create_topics(&topics, TIMEOUT).unwrap();
    let kinds: Vec<_> =
        results.iter().map(|(_, result)| result.as_ref().err().map(ottla::Error::kind)).collect();
    let broker = |code| Some(ErrorKind::Broker(code));
    assert_eq!(
        kinds,
        [
            broker(ErrorCode::TOPIC_ALREADY_EXISTS),
            None,
            broker(ErrorCode::INVALID_REPLICATION_FACTOR),
            broker(ErrorCode::INVALID_CONFIG),
        ]
    );
    let error = results[0].1.as_ref().unwrap_err();
    assert_eq!(error.culprit(), Culprit::Broker);
    assert!(error.to_string().contains(&exists), "{error}");
    let error = admin.create_topics(&[NewTopic::new(&new, 0, 1)], TIMEOUT).unwrap().remove(0).1.unwrap_err();
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
    assert!(error.to_string().contains("0 partitions"), "{error}");
    let results = admin.delete_topics(&[&new, &missing], TIMEOUT).unwrap();
    assert_eq!(results[0], (new, Ok(())));
    let error = results[1].1.as_ref().unwrap_err();
    assert!(error.to_string().contains(&missing), "{error}");
}

fn partitions_are_added_to_a_topic(backend: &Backend) {
    let admin = admin(backend);
    let topic = backend.topic(2);
    let results = admin.create_partitions(&[NewPartitions::new(&topic, 5)], TIMEOUT).unwrap();
    assert_eq!(results, [(topic.clone(), Ok(()))]);
    let five = || admin.metadata(Some(&[&topic]), TIMEOUT).unwrap().topics[0].partitions.len() == 5;
    assert!(eventually(five));
    let results = admin.create_partitions(&[NewPartitions::new(&topic, 3)], TIMEOUT).unwrap();
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::INVALID_PARTITIONS));
}

fn cluster_is_described(backend: &Backend) {
    let cluster = admin(backend).describe_cluster(TIMEOUT).unwrap();
    assert!(cluster.cluster_id.is_some_and(|id| !id.is_empty()));
    assert_eq!(cluster.brokers.len(), 3);
    let controller = cluster.controller_id.unwrap();
    assert!(cluster.brokers.iter().any(|broker| broker.id == controller));
    let servers = backend.bootstrap_servers();
    for broker in &cluster.brokers {
        assert!(servers.contains(&format!(":{}", broker.port)), "{broker:?} is one of {servers}");
    }
}

fn topics_are_described_by_name_and_by_id(backend: &Backend) {
    let (admin, topic, missing) = (admin(backend), backend.topic(3), unused_topic_name());
    let mut described = admin.describe_topics(&[&topic, &missing], TIMEOUT).unwrap();
    let unknown = described.remove(described.iter().position(|one| one.name == missing).unwrap());
    assert_eq!(unknown.error.unwrap().kind(), ErrorKind::UnknownTopic);
    let mut by_name = described.remove(0);
    assert_eq!(by_name.partitions.iter().map(|partition| partition.id).collect::<Vec<_>>(), [0, 1, 2]);
    // Metadata lacks the replicas that are eligible without being in sync.
    for partition in &mut by_name.partitions {
        partition.eligible_leader_replicas.take().expect("the broker reports them");
        partition.last_known_eligible_leader_replicas = None;
    }
    let in_metadata = admin.metadata(Some(&[&topic]), TIMEOUT).unwrap().topics.remove(0);
    assert_eq!(by_name, in_metadata);
    let id: Uuid = by_name.id.as_deref().unwrap().parse().unwrap();
    let strange = Uuid([9; 16]);
    let described = admin.describe_topics_by_id(&[strange, id], TIMEOUT).unwrap();
    let error = described[0].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_ID), "{error}");
    assert_eq!(described[1], (id, Ok(by_name)));
    let error = admin.describe_topics_by_id(&[], TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let described = admin.describe_topics_by_id(&[id, id, Uuid::ZERO], TIMEOUT).unwrap();
    let kinds: Vec<_> =
        described.iter().map(|(_, result)| result.as_ref().err().map(ottla::Error::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::InvalidArgument), Some(ErrorKind::InvalidArgument)]);
    assert_eq!(admin.describe_topics(&[], TIMEOUT), Ok(Vec::new()));
}

fn fenced_brokers_are_described_on_request(backend: &Backend) {
    let admin = admin(backend);
    backend.control(|control| control.kill_broker(BrokerId(3), Tail::Kept));
    let fenced = |options: AdminOptions| -> Vec<(i32, bool)> {
        let brokers = admin.describe_cluster(options).unwrap().brokers;
        brokers.iter().map(|broker| (broker.id, broker.is_fenced)).collect()
    };
    assert_eq!(fenced(AdminOptions::new(TIMEOUT)), [(1, false), (2, false)]);
    let with_fenced = AdminOptions::new(TIMEOUT).include_fenced_brokers(true);
    assert_eq!(fenced(with_fenced), [(1, false), (2, false), (3, true)]);
}

fn topics_with_many_partitions_are_described(backend: &Backend) {
    let admin = admin(backend);
    // A page has at most 2,000 partitions.
    let topics = [backend.topic(1500), backend.topic(2500)];
    let described = admin.describe_topics(&[&topics[1], &topics[0]], TIMEOUT).unwrap();
    let counts: BTreeMap<&str, usize> =
        described.iter().map(|topic| (&*topic.name, topic.partitions.len())).collect();
    assert_eq!(counts, [(&*topics[0], 1500), (&*topics[1], 2500)].into());
    for topic in &described {
        assert!((0..).zip(&topic.partitions).all(|(number, partition)| partition.id == number));
    }
}

fn offsets_of_many_partitions_are_listed_at_once(backend: &Backend) {
    let topic = backend.topic(6);
    let producer = backend.producer(&[]);
    for n in 0..60 {
        let record = Record::new().value("x").partition(n % 6).timestamp(1_700_000_000_000 + i64::from(n));
        producer.send(&topic, record).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let mut questions = Vec::new();
    for partition in 0..6 {
        questions.push((topic.as_str(), partition, OffsetSpec::Earliest));
        questions.push((topic.as_str(), partition, OffsetSpec::Latest));
        questions.push((topic.as_str(), partition, OffsetSpec::Timestamp(1_700_000_000_030)));
        questions.push((topic.as_str(), partition, OffsetSpec::MaxTimestamp));
    }
    questions.push((topic.as_str(), 17, OffsetSpec::Latest));
    let results = admin(backend).list_offsets(&questions, Duration::from_secs(5)).unwrap();
    assert_eq!(results.len(), questions.len());
    for (partition, results) in results[..24].chunks(4).enumerate() {
        let offsets: Vec<i64> =
            results.iter().map(|result| result.as_ref().unwrap().offset.unwrap()).collect();
        assert_eq!(offsets, [0, 10, 5, 9], "partition {partition}");
        assert_eq!(results[2].as_ref().unwrap().timestamp, Some(1_700_000_000_030 + partition as i64));
    }
    let error = results[24].as_ref().unwrap_err();
    assert!(error.to_string().contains(&format!("{topic} [17]")), "{error}");
}

fn topic_without_tiered_storage_has_only_local_offsets(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    for _ in 0..3 {
        producer.send(&topic, Record::new().value("x")).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let specs = [OffsetSpec::EarliestLocal, OffsetSpec::LatestTiered, OffsetSpec::EarliestPendingUpload];
    let questions = specs.map(|spec| (topic.as_str(), 0, spec));
    let results = admin(backend).list_offsets(&questions, TIMEOUT).unwrap();
    for ((result, spec), offset) in results.into_iter().zip(specs).zip([Some(0), None, None]) {
        match result {
            Ok(listed) => assert_eq!(listed.offset, offset, "{spec:?}"),
            // Apache Kafka before 4.2 does not know all of them.
            Err(error) => assert_eq!(error.kind(), ErrorKind::UnsupportedVersion, "{spec:?}: {error}"),
        }
    }
}

fn topics_are_validated_without_being_created(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let topics = [NewTopic::new(&name, 1, 1), NewTopic::new(unused_topic_name(), 1, 99)];
    let results = admin.create_topics(&topics, AdminOptions::new(TIMEOUT).validate_only(true)).unwrap();
    assert!(results[0].1.is_ok() && results[1].1.is_err(), "{results:?}");
    assert!(!admin.list_topics(TIMEOUT).unwrap().contains(&name));
}

fn invalid_topic_names_are_reported(backend: &Backend) {
    let admin = admin(backend);
    for name in ["x".repeat(300), "a/b".to_owned(), String::new()] {
        // The error is either the call's or the topic's.
        let reported = match admin.create_topics(&[NewTopic::new(&name, 1, 1)], TIMEOUT) {
            Err(error) => Some(error),
            Ok(results) => results.into_iter().next().and_then(|(_, result)| result.err()),
        };
        let error = reported.unwrap_or_else(|| panic!("{name} was created"));
        assert!(error.to_string().to_lowercase().contains("topic"), "{error}");
    }
}

fn replicas_can_be_assigned_manually(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let topic = NewTopic::new(&name, -1, -1).assign(0, &[3, 1]).assign(1, &[2, 3]);
    assert_eq!(admin.create_topics(&[topic], TIMEOUT).unwrap(), [(name.clone(), Ok(()))]);
    let led = || {
        let described = admin.metadata(Some(&[&name]), TIMEOUT).unwrap();
        let leaders: Vec<_> = described.topics[0].partitions.iter().map(|p| (p.id, p.leader)).collect();
        leaders == [(0, Some(3)), (1, Some(2))]
    };
    assert!(eventually(led));
}

fn an_unreachable_cluster_is_a_timeout_that_says_so(_: &Backend) {
    let admin = Admin::new(&config("127.0.0.1:1", &[])).unwrap();
    let began = Instant::now();
    let timeout = Duration::from_millis(500);
    let errors = [
        admin.list_topics(timeout).unwrap_err(),
        admin.describe_cluster(timeout).unwrap_err(),
        admin
            .create_topics(&[NewTopic::new("t", 1, 1)], timeout)
            .map(|results| results[0].1.clone().unwrap_err())
            .unwrap_or_else(|error| error),
        admin
            .list_offsets(&[("t", 0, OffsetSpec::Latest)], timeout)
            .map(|results| results[0].clone().unwrap_err())
            .unwrap_or_else(|error| error),
    ];
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for error in errors {
        assert_eq!(error.culprit(), Culprit::Network, "{error}");
    }
    assert!(eventually(|| admin.poll_event().is_some()), "an unreachable broker is reported as an event");
}

fn admin_calls_follow_a_moved_controller(backend: &Backend) {
    let admin = admin(backend);
    admin.list_topics(TIMEOUT).unwrap();
    for controller in [2, 3, 1, 2] {
        backend.control(|control| control.move_controller(BrokerId(controller)));
        let name = unused_topic_name();
        let results = admin.create_topics(&[NewTopic::new(&name, 1, 1)], TIMEOUT).unwrap();
        assert_eq!(results, [(name.clone(), Ok(()))]);
        assert_eq!(admin.delete_topics(&[&name], TIMEOUT).unwrap(), [(name, Ok(()))]);
    }
}

fn admin_calls_retry_transient_errors(backend: &Backend) {
    let admin = admin(backend);
    let topic = backend.topic(1);
    for action in [FaultAction::CloseConnection, FaultAction::TruncateResponse(3)] {
        for api in [ApiKey::Metadata, ApiKey::DescribeCluster, ApiKey::ListOffsets] {
            backend.control(|control| control.inject(Fault::new(action.clone()).api(api).times(1)));
        }
        assert!(admin.list_topics(TIMEOUT).unwrap().contains(&topic), "{action:?}");
        assert_eq!(admin.describe_cluster(TIMEOUT).unwrap().brokers.len(), 3, "{action:?}");
        let results = admin.list_offsets(&[(&topic, 0, OffsetSpec::Latest)], TIMEOUT).unwrap();
        assert_eq!(results[0].as_ref().unwrap().offset, Some(0), "{action:?}");
        backend.control(|control| control.clear_faults());
    }
}

fn calls_end_when_the_client_is_closed(_: &Backend) {
    let admin = Admin::new(&config("127.0.0.1:1", &[])).unwrap();
    let closer = std::thread::spawn({
        let admin = admin.clone();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            admin.close(TIMEOUT).unwrap();
        }
    });
    let began = Instant::now();
    assert!(admin.list_topics(TIMEOUT).is_err());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    closer.join().unwrap();
    assert!(admin.list_topics(TIMEOUT).is_err(), "and so do later ones");
}

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the client's configuration is right")
}

fn deletion_by_id_leaves_a_recreated_topic_alone(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    // A broker that is behind still describes the topic that was deleted.
    let create = |deleted: Option<Uuid>| {
        let results = admin.create_topics(&[NewTopic::new(&name, 1, 1)], TIMEOUT).unwrap();
        assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
        let mut id = None;
        let found = eventually(|| {
            let described = admin.describe_topics(&[&name], TIMEOUT).unwrap().remove(0).id;
            id = described.map(|id| Uuid::parse(&id).expect("an ID"));
            id.is_some() && id != deleted
        });
        assert!(found);
        id.unwrap()
    };
    let first = create(None);
    let results = admin.delete_topics_by_id(&[first], TIMEOUT).unwrap();
    assert_eq!(results, [(first, Ok(()))]);
    let is_gone = || !admin.list_topics(TIMEOUT).unwrap().contains(&name);
    assert!(eventually(is_gone));
    let second = create(Some(first));
    let results = admin.delete_topics_by_id(&[first, second], TIMEOUT).unwrap();
    let unknown = ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(results[0].1.as_ref().map_err(ottla::Error::kind), Err(unknown));
    assert_eq!(results[1], (second, Ok(())));
    assert!(admin.delete_topics_by_id(&[], TIMEOUT).is_err());
    let twice = admin.delete_topics_by_id(&[first, first], TIMEOUT).unwrap();
    assert_eq!(twice[1].1.as_ref().map_err(ottla::Error::kind), Err(ErrorKind::InvalidArgument));
}

fn leader_epochs_end_at_offsets(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let producer = backend.producer(&[]);
    for _ in 0..3 {
        producer.topic(&topic).send(Record::new().value("x").partition(0)).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
    let epoch = admin.describe_topics(&[&topic], TIMEOUT).unwrap()[0].partitions[0].leader_epoch.unwrap();
    let ends = admin.list_epoch_ends(&[(&topic, 0, epoch), (&topic, 7, epoch)], TIMEOUT).unwrap();
    let end = ends[0].as_ref().unwrap();
    assert_eq!((end.leader_epoch, end.end_offset), (Some(epoch), Some(3)));
    assert!(ends[1].is_err(), "{ends:?}");
}

fn fenced_producer_cannot_commit(backend: &Backend) {
    let (admin, topic) = (admin(backend), backend.topic(1));
    let producer = backend.producer(&[("transactional.id", &topic)]);
    producer.init_transactions(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    transaction.send(&topic, Record::new().value("x").partition(0)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    let results = admin.fence_producers(&[&topic], TIMEOUT).unwrap();
    let fenced = results[0].1.as_ref().unwrap();
    assert!(fenced.producer_epoch > 0, "{fenced:?}");
    let error = transaction.commit(TIMEOUT).expect_err("another producer may have the ID");
    assert!(error.is_fatal() && error.kind() == ErrorKind::Fenced, "{error}");
}
