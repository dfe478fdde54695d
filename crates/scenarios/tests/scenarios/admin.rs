//! Topics come and go, and the cluster tells about itself.

use std::time::{Duration, Instant};

use ottla::{Admin, Culprit, ErrorCode, ErrorKind, NewTopic, OffsetSpec, Record};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, PATIENCE, config, eventually, unused_topic_name};

ottla_scenarios::run_on_all!(
    topics_are_created_listed_described_and_deleted,
    each_topic_has_a_result_of_its_own,
    partitions_are_added_to_a_topic,
    the_cluster_is_described,
    offsets_are_listed_for_many_partitions_at_once,
    topics_are_validated_without_being_created,
    names_that_no_topic_can_have_are_told,
    replicas_may_be_assigned_by_hand,
);

ottla_scenarios::run_on_embedded!(
    an_unreachable_cluster_is_a_timeout_that_says_so,
    the_controller_moves_and_calls_find_it,
    errors_that_pass_are_retried_by_admin_calls,
    calls_end_when_the_client_is_closed,
);

fn topics_are_created_listed_described_and_deleted(backend: &Backend) {
    let admin = admin(backend);
    let (one, two) = (unused_topic_name(), unused_topic_name());
    let topics = [NewTopic::new(&one, 3, 2), NewTopic::new(&two, 1, 1).config("retention.ms", "1000000")];
    let results = admin.create_topics(&topics, PATIENCE).unwrap();
    assert_eq!(results, [(one.clone(), Ok(())), (two.clone(), Ok(()))]);
    let listed = || {
        let names = admin.list_topics(PATIENCE).unwrap();
        names.contains(&one) && names.contains(&two)
    };
    assert!(eventually(listed));
    // The next broker that is asked may not know it yet.
    let mut described = admin.metadata(Some(&[&one]), PATIENCE).unwrap();
    let complete = || {
        described = admin.metadata(Some(&[&one]), PATIENCE).unwrap();
        described.topics.iter().all(|topic| topic.error.is_none()) && described.topics.len() == 1
    };
    assert!(eventually(complete));
    assert_eq!(described.topics[0].name, one);
    assert_eq!(described.topics[0].partitions.len(), 3);
    for partition in &described.topics[0].partitions {
        assert_eq!(partition.replicas.len(), 2);
        assert!(partition.replicas.contains(&partition.leader.unwrap()));
    }
    let results = admin.delete_topics(&[&one, &two], PATIENCE).unwrap();
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    let gone = || {
        let names = admin.list_topics(PATIENCE).unwrap();
        !names.contains(&one) && !names.contains(&two)
    };
    assert!(eventually(gone));
}

fn each_topic_has_a_result_of_its_own(backend: &Backend) {
    let admin = admin(backend);
    let (exists, new, missing) = (backend.topic(1), unused_topic_name(), unused_topic_name());
    let topics = [
        NewTopic::new(&exists, 1, 1),
        NewTopic::new(&new, 1, 1),
        NewTopic::new(unused_topic_name(), 1, 100),
        NewTopic::new(unused_topic_name(), 1, 1).config("no.such.config", "1"),
    ];
    let results = admin.create_topics(&topics, PATIENCE).unwrap();
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
    let error = admin.create_topics(&[NewTopic::new(&new, 0, 1)], PATIENCE).unwrap_err();
    assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
    assert!(error.to_string().contains("0 partitions"), "{error}");
    let results = admin.delete_topics(&[&new, &missing], PATIENCE).unwrap();
    assert_eq!(results[0], (new, Ok(())));
    let error = results[1].1.as_ref().unwrap_err();
    assert!(error.to_string().contains(&missing), "{error}");
}

fn partitions_are_added_to_a_topic(backend: &Backend) {
    let admin = admin(backend);
    let topic = backend.topic(2);
    let results = admin.create_partitions(&[(&topic, 5)], PATIENCE).unwrap();
    assert_eq!(results, [(topic.clone(), Ok(()))]);
    let five = || admin.metadata(Some(&[&topic]), PATIENCE).unwrap().topics[0].partitions.len() == 5;
    assert!(eventually(five));
    let results = admin.create_partitions(&[(&topic, 3)], PATIENCE).unwrap();
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::INVALID_PARTITIONS));
}

fn the_cluster_is_described(backend: &Backend) {
    let cluster = admin(backend).describe_cluster(PATIENCE).unwrap();
    assert!(cluster.cluster_id.is_some_and(|id| !id.is_empty()));
    assert_eq!(cluster.brokers.len(), 3);
    let controller = cluster.controller_id.unwrap();
    assert!(cluster.brokers.iter().any(|broker| broker.id == controller));
    let servers = backend.bootstrap_servers();
    for broker in &cluster.brokers {
        assert!(servers.contains(&format!(":{}", broker.port)), "{broker:?} is one of {servers}");
    }
}

fn offsets_are_listed_for_many_partitions_at_once(backend: &Backend) {
    let topic = backend.topic(6);
    let producer = backend.producer(&[]);
    for n in 0..60 {
        let record = Record::new().value("x").partition(n % 6).timestamp(1_700_000_000_000 + i64::from(n));
        producer.send(&topic, record).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    let mut questions = Vec::new();
    for partition in 0..6 {
        questions.push((topic.as_str(), partition, OffsetSpec::Earliest));
        questions.push((topic.as_str(), partition, OffsetSpec::Latest));
        questions.push((topic.as_str(), partition, OffsetSpec::Timestamp(1_700_000_000_030)));
        questions.push((topic.as_str(), partition, OffsetSpec::MaxTimestamp));
    }
    questions.push((topic.as_str(), 17, OffsetSpec::Latest));
    let answers = admin(backend).list_offsets(&questions, Duration::from_secs(5)).unwrap();
    assert_eq!(answers.len(), questions.len());
    for (partition, answers) in answers[..24].chunks(4).enumerate() {
        let offsets: Vec<i64> = answers.iter().map(|answer| answer.as_ref().unwrap().offset).collect();
        assert_eq!(offsets, [0, 10, 5, 9], "partition {partition}");
        assert_eq!(answers[2].as_ref().unwrap().timestamp, 1_700_000_000_030 + partition as i64);
    }
    let error = answers[24].as_ref().unwrap_err();
    assert!(error.to_string().contains(&format!("{topic} [17]")), "{error}");
}

fn topics_are_validated_without_being_created(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let topics = [NewTopic::new(&name, 1, 1), NewTopic::new(unused_topic_name(), 1, 99)];
    let results = admin.validate_topics(&topics, PATIENCE).unwrap();
    assert!(results[0].1.is_ok() && results[1].1.is_err(), "{results:?}");
    assert!(!admin.list_topics(PATIENCE).unwrap().contains(&name));
}

fn names_that_no_topic_can_have_are_told(backend: &Backend) {
    let admin = admin(backend);
    for name in ["x".repeat(300), "a/b".to_owned(), String::new()] {
        // On the call or as the topic's result: it is told.
        let told = match admin.create_topics(&[NewTopic::new(&name, 1, 1)], PATIENCE) {
            Err(error) => Some(error),
            Ok(results) => results.into_iter().next().and_then(|(_, result)| result.err()),
        };
        let error = told.unwrap_or_else(|| panic!("{name} was created"));
        assert!(error.to_string().to_lowercase().contains("topic"), "{error}");
    }
}

fn replicas_may_be_assigned_by_hand(backend: &Backend) {
    let admin = admin(backend);
    let name = unused_topic_name();
    let topic = NewTopic::new(&name, -1, -1).assign(0, &[3, 1]).assign(1, &[2, 3]);
    assert_eq!(admin.create_topics(&[topic], PATIENCE).unwrap(), [(name.clone(), Ok(()))]);
    let led = || {
        let described = admin.metadata(Some(&[&name]), PATIENCE).unwrap();
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
            .map(|answers| answers[0].clone().unwrap_err())
            .unwrap_or_else(|error| error),
    ];
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    for error in errors {
        assert_eq!(error.culprit(), Culprit::Network, "{error}");
    }
    assert!(eventually(|| admin.poll_event().is_some()), "what can't be reached is told as an event");
}

fn the_controller_moves_and_calls_find_it(backend: &Backend) {
    let admin = admin(backend);
    admin.list_topics(PATIENCE).unwrap();
    for controller in [2, 3, 1, 2] {
        backend.control(|control| control.move_controller(BrokerId(controller)));
        let name = unused_topic_name();
        let results = admin.create_topics(&[NewTopic::new(&name, 1, 1)], PATIENCE).unwrap();
        assert_eq!(results, [(name.clone(), Ok(()))]);
        assert_eq!(admin.delete_topics(&[&name], PATIENCE).unwrap(), [(name, Ok(()))]);
    }
}

fn errors_that_pass_are_retried_by_admin_calls(backend: &Backend) {
    let admin = admin(backend);
    let topic = backend.topic(1);
    for action in [FaultAction::CloseConnection, FaultAction::TruncateAnswer(3)] {
        for api in [ApiKey::Metadata, ApiKey::DescribeCluster, ApiKey::ListOffsets] {
            backend.control(|control| control.inject(Fault::new(action.clone()).api(api).times(1)));
        }
        assert!(admin.list_topics(PATIENCE).unwrap().contains(&topic), "{action:?}");
        assert_eq!(admin.describe_cluster(PATIENCE).unwrap().brokers.len(), 3, "{action:?}");
        let answers = admin.list_offsets(&[(&topic, 0, OffsetSpec::Latest)], PATIENCE).unwrap();
        assert_eq!(answers[0].as_ref().unwrap().offset, 0, "{action:?}");
        backend.control(|control| control.clear_faults());
    }
}

fn calls_end_when_the_client_is_closed(_: &Backend) {
    let admin = Admin::new(&config("127.0.0.1:1", &[])).unwrap();
    let closer = std::thread::spawn({
        let admin = admin.clone();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            admin.close(PATIENCE).unwrap();
        }
    });
    let began = Instant::now();
    assert!(admin.list_topics(PATIENCE).is_err());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    closer.join().unwrap();
    assert!(admin.list_topics(PATIENCE).is_err(), "and so do later ones");
}

fn admin(backend: &Backend) -> Admin {
    Admin::new(&backend.config(&[])).expect("the client's configuration is right")
}
