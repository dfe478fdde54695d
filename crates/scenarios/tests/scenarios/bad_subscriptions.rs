//! Bad input of groups: each is a typed error, and the group of others is unharmed.

use std::time::Duration;

use ottla::{Consumer, ConsumerEvent, Error, ErrorCode, ErrorKind, Record};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::{
    api::ApiKey,
    generated::{
        find_coordinator::FindCoordinatorRequest,
        join_group::{JoinGroupRequest, request::Protocol},
        sync_group::SyncGroupRequest,
    },
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, raw::RawClient, unused_topic_name};

ottla_scenarios::run_on_all!(
    empty_duplicate_and_invalid_entries_are_refused,
    refused_subscription_leaves_the_last_one_in_place,
    missing_topic_is_reported_and_the_others_are_consumed,
    session_timeout_outside_the_brokers_limits_is_reported,
    hostile_subscriptions_leave_the_group_unharmed,
    member_with_another_strategy_is_refused_and_the_group_unharmed,
);

ottla_scenarios::run_on_embedded!(
    garbage_from_the_coordinator_does_not_end_the_membership,
    truncated_responses_of_the_coordinator_are_survived,
    garbage_from_the_coordinator_of_the_consumer_protocol_is_survived,
    topic_that_is_not_authorised_is_reported_and_the_others_are_consumed,
    unreadable_lengths_leave_the_group_unharmed,
);

fn consumer(backend: &Backend, group: &str, properties: &[(&str, &str)]) -> Consumer {
    let mut all = vec![
        ("group.id", group),
        ("auto.offset.reset", "earliest"),
        ("session.timeout.ms", "6000"),
        ("heartbeat.interval.ms", "200"),
        ("retry.backoff.ms", "20"),
        ("reconnect.backoff.ms", "20"),
    ];
    all.extend(properties);
    Consumer::new(&backend.config(&all)).expect("the configuration is right")
}

fn write(backend: &Backend, topic: &str, count: usize) {
    let producer = backend.producer(&[]);
    for number in 0..count {
        producer.send(topic, Record::new().value(&number.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// Polls until this many records have come. Returns the errors that came meanwhile.
fn read(consumer: &Consumer, count: usize) -> Vec<Error> {
    let (mut errors, mut seen) = (Vec::new(), 0);
    let is_read = eventually(|| {
        let records = consumer.poll(Duration::from_millis(20)).expect("the consumer is open");
        seen += records.iter().count();
        errors.extend(records.events().iter().filter_map(|event| match event {
            ConsumerEvent::Error(error) => Some(error.clone()),
            _ => None,
        }));
        seen >= count
    });
    assert!(is_read, "{seen} of {count} records came; {errors:?}");
    errors
}

/// Polls until an error of this kind comes.
fn wait_for_error(consumer: &Consumer, kind: ErrorKind) -> Error {
    let mut found = None;
    assert!(eventually(|| {
        let records = consumer.poll(Duration::from_millis(20)).expect("the consumer is open");
        found = found.take().or_else(|| {
            records.events().iter().find_map(|event| match event {
                ConsumerEvent::Error(error) if error.kind() == kind => Some(error.clone()),
                _ => None,
            })
        });
        found.is_some()
    }));
    found.expect("it came")
}

fn empty_duplicate_and_invalid_entries_are_refused(backend: &Backend) {
    let consumer = consumer(backend, &unused_topic_name(), &[]);
    let long = "n".repeat(300);
    let cases: [(&[&str], &str); 8] = [
        (&[], "call unsubscribe"),
        (&[""], "can't be empty"),
        (&["a", "b", "a"], "listed twice"),
        (&["a", &long], "300 characters"),
        (&["a b"], "only letters"),
        (&[".."], "can't be named"),
        (&["^["], "^["),
        (&["^(?=a)"], "^(?=a)"),
    ];
    for (topics, expected) in cases {
        let error = consumer.subscribe(topics).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{topics:?}");
        assert!(error.to_string().contains(expected), "{topics:?}: {error}");
    }
    assert_eq!(consumer.subscription(), [""; 0]);
    let without_group = Consumer::new(&backend.config(&[])).unwrap();
    assert!(without_group.subscribe(&["a"]).unwrap_err().to_string().contains("group.id"));
}

fn refused_subscription_leaves_the_last_one_in_place(backend: &Backend) {
    let topic = backend.topic(1);
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic]).unwrap();
    consumer.subscribe(&["^["]).unwrap_err();
    assert_eq!(consumer.subscription(), [&*topic]);
    write(backend, &topic, 10);
    assert_eq!(read(&consumer, 10), []);
}

fn missing_topic_is_reported_and_the_others_are_consumed(backend: &Backend) {
    let (topic, missing) = (backend.topic(1), unused_topic_name());
    write(backend, &topic, 10);
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic, &missing]).unwrap();
    let mut errors = read(&consumer, 10);
    if errors.is_empty() {
        errors.push(wait_for_error(&consumer, ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)));
    }
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert_eq!(errors[0].context().topic.as_deref(), Some(&*missing));
}

fn topic_that_is_not_authorised_is_reported_and_the_others_are_consumed(backend: &Backend) {
    let (topic, secret) = (backend.topic(1), backend.topic(1));
    write(backend, &topic, 10);
    backend.control(|control| {
        let refused = FaultAction::Error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        control.inject(Fault::new(refused).api(ApiKey::Metadata).topic(&secret));
    });
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic, &secret]).unwrap();
    let mut errors = read(&consumer, 10);
    if errors.is_empty() {
        errors.push(wait_for_error(&consumer, ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED)));
    }
    assert_eq!(errors[0].kind(), ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED), "{errors:?}");
    assert_eq!(errors[0].context().topic.as_deref(), Some(&*secret));
}

fn session_timeout_outside_the_brokers_limits_is_reported(backend: &Backend) {
    let topic = backend.topic(2);
    let member = consumer(backend, &topic, &[]);
    member.subscribe(&[&topic]).unwrap();
    assert!(eventually(|| {
        drop(member.poll(Duration::from_millis(5)));
        member.assignment().len() == 2
    }));
    // `group.max.session.timeout.ms` is 30 minutes.
    let properties = [("session.timeout.ms", "1900000"), ("max.poll.interval.ms", "2000000")];
    let patient = consumer(backend, &topic, &properties);
    patient.subscribe(&[&topic]).unwrap();
    let error = wait_for_error(&patient, ErrorKind::Broker(ErrorCode::INVALID_SESSION_TIMEOUT));
    assert!(error.to_string().contains("JoinGroup"), "{error}");
    assert_eq!(patient.assignment(), []);
    assert_eq!(member.assignment().len(), 2, "the group of others is unharmed");
}

/// A subscription as bytes: version 0, with these topics and without user data.
fn subscription(topics: &[String]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    bytes
}

/// Joins a group with this subscription. Returns the assignment that its leader sends.
fn join_with(backend: &Backend, group: &str, metadata: Vec<u8>) -> Vec<u8> {
    let keys = vec![group.to_owned()];
    let lookup = FindCoordinatorRequest { coordinator_keys: keys, ..Default::default() };
    let found = RawClient::connect(&backend.bootstrap_servers()).call(4, &lookup).coordinators.remove(0);
    let mut client = RawClient::connect(&format!("{}:{}", found.host, found.port));
    let mut join = JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![Protocol { name: "range".to_owned(), metadata }],
        ..Default::default()
    };
    join.member_id = client.call(5, &join).member_id;
    let joined = client.call(5, &join);
    assert_eq!(joined.error_code, ErrorCode::NONE);
    let sync = SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id,
        ..Default::default()
    };
    let synced = client.call(3, &sync);
    assert_eq!(synced.error_code, ErrorCode::NONE);
    synced.assignment
}

fn hostile_subscriptions_leave_the_group_unharmed(backend: &Backend) {
    let impossible: Vec<String> = (0..10_500).map(|number| format!("no topic {number}")).collect();
    let many: Vec<String> = (0..10_500).map(|number| format!("{}-{number}", unused_topic_name())).collect();
    let cases = [
        (Vec::new(), false),
        (vec![0, 3, 0], false),
        (subscription(&impossible), true),
        (subscription(&many), true),
    ];
    join_hostile_members(backend, cases);
}

/// The coordinator of Apache Kafka 4.3.1 fails to read these, and never completes the rebalance.
fn unreadable_lengths_leave_the_group_unharmed(backend: &Backend) {
    let length = |length: i32, rest: &[u8]| [&[0, 3], &length.to_be_bytes()[..], rest].concat();
    let cases = [
        (vec![0xff; 40], false),
        (length(i32::MAX, &[0, 1, b't']), false),
        (length(i32::MIN, &[]), false),
        (length(1, &[0x7f, 0xff, b't']), false),
    ];
    join_hostile_members(backend, cases);
}

/// Joins a member's group with each of these subscriptions, and checks that the member continues.
fn join_hostile_members(backend: &Backend, cases: impl IntoIterator<Item = (Vec<u8>, bool)>) {
    for (metadata, is_readable) in cases {
        let topic = backend.topic(2);
        let member = consumer(backend, &topic, &[]);
        member.subscribe(&[&topic]).unwrap();
        assert!(eventually(|| {
            drop(member.poll(Duration::from_millis(5)));
            member.assignment().len() == 2
        }));
        let assigned = join_with(backend, &topic, metadata);
        assert_eq!(
            assigned.is_empty(),
            !is_readable,
            "the leader sends nothing to a member that it can't read"
        );
        let error = wait_for_error(&member, ErrorKind::BadResponse);
        assert!(error.to_string().contains("member"), "{error}");
        assert!(eventually(|| {
            drop(member.poll(Duration::from_millis(5)));
            member.assignment().len() == 2
        }));
        write(backend, &topic, 10);
        read(&member, 10);
        member.close(TIMEOUT).unwrap();
    }
}

fn member_with_another_strategy_is_refused_and_the_group_unharmed(backend: &Backend) {
    let topic = backend.topic(2);
    let eager = consumer(backend, &topic, &[("partition.assignment.strategy", "range")]);
    eager.subscribe(&[&topic]).unwrap();
    assert!(eventually(|| {
        drop(eager.poll(Duration::from_millis(5)));
        eager.assignment().len() == 2
    }));
    let cooperative = consumer(backend, &topic, &[("partition.assignment.strategy", "cooperative-sticky")]);
    cooperative.subscribe(&[&topic]).unwrap();
    let error = wait_for_error(&cooperative, ErrorKind::Broker(ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
    assert!(error.to_string().contains("JoinGroup"), "{error}");
    assert_eq!((eager.assignment().len(), cooperative.assignment().len()), (2, 0));
    write(backend, &topic, 10);
    assert_eq!(read(&eager, 10), []);
}

/// Disturbs the coordinator's responses while two members share a topic, and checks that they go on.
fn disturb(backend: &Backend, api: ApiKey, action: FaultAction) {
    let topic = backend.topic(2);
    let first = consumer(backend, &topic, &[]);
    first.subscribe(&[&topic]).unwrap();
    assert!(eventually(|| {
        drop(first.poll(Duration::from_millis(5)));
        first.assignment().len() == 2
    }));
    backend.control(|control| control.inject(Fault::new(action.clone()).api(api).times(2)));
    let second = consumer(backend, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    let shared = eventually(|| {
        drop(first.poll(Duration::from_millis(5)));
        drop(second.poll(Duration::from_millis(5)));
        (first.assignment().len(), second.assignment().len()) == (1, 1)
    });
    assert!(shared, "{api:?} {action:?}: {:?} {:?}", first.assignment(), second.assignment());
    backend.control(|control| control.clear_faults());
}

const OF_MEMBERS: [ApiKey; 4] =
    [ApiKey::FindCoordinator, ApiKey::JoinGroup, ApiKey::SyncGroup, ApiKey::Heartbeat];

fn garbage_from_the_coordinator_does_not_end_the_membership(backend: &Backend) {
    for api in OF_MEMBERS {
        disturb(backend, api, FaultAction::ReplaceResponse(vec![0, 0, 0, 3, 1, 2, 3]));
        disturb(backend, api, FaultAction::ReplaceResponse(vec![0x7f; 64]));
    }
}

fn garbage_from_the_coordinator_of_the_consumer_protocol_is_survived(backend: &Backend) {
    for action in [
        FaultAction::ReplaceResponse(vec![0, 0, 0, 3, 1, 2, 3]),
        FaultAction::ReplaceResponse(vec![0x7f; 64]),
        FaultAction::TruncateResponse(9),
    ] {
        let topic = backend.topic(2);
        backend.control(|control| {
            let fault = Fault::new(action.clone()).api(ApiKey::ConsumerGroupHeartbeat);
            control.inject(fault.times(2));
        });
        let properties = [
            ("group.id", &*topic),
            ("group.protocol", "consumer"),
            ("auto.offset.reset", "earliest"),
            ("retry.backoff.ms", "20"),
            ("reconnect.backoff.ms", "20"),
        ];
        let member = Consumer::new(&backend.config(&properties)).expect("the configuration is right");
        member.subscribe(&[&topic]).unwrap();
        write(backend, &topic, 10);
        read(&member, 10);
        backend.control(|control| control.clear_faults());
    }
}

fn truncated_responses_of_the_coordinator_are_survived(backend: &Backend) {
    for api in OF_MEMBERS {
        disturb(backend, api, FaultAction::TruncateResponse(9));
    }
}
