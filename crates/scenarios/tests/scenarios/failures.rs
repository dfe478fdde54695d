//! Brokers fail, leaders move, responses are lost: records are neither lost nor duplicated, and keep their order.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use ottla::{ErrorCode, ErrorKind, PersistenceStatus, Producer, Record};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction, Tail};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, Reports, TIMEOUT, eventually};

ottla_scenarios::run_on_embedded!(
    leaders_move_while_producing,
    broker_is_killed_and_restarted_while_producing,
    lost_responses_cause_no_duplicates,
    missing_responses_cause_retries,
    connections_break_at_any_time,
    brokers_are_slow_and_connections_break,
    transient_errors_are_retried,
    permanent_errors_affect_only_their_partition,
    too_few_in_sync_replicas_are_retried,
    records_wait_for_a_partition_without_leader,
    records_without_a_key_avoid_leaderless_partitions,
    stale_metadata_loses_no_record,
    batch_that_is_too_large_for_the_broker_is_split,
    record_that_is_too_large_for_the_broker_fails,
    throttled_producer_pauses,
    partitions_are_added_while_producing,
    unknown_producer_id_causes_a_new_epoch,
    retries_keep_the_order_with_one_request_in_flight,
    producer_survives_an_outage_of_all_brokers,
    deleted_topic_is_reported_without_affecting_others,
);

const FAST: [(&str, &str); 5] = [
    ("broker.linger.ms", "1"),
    ("retry.backoff.ms", "20"),
    ("retry.backoff.max.ms", "100"),
    ("reconnect.backoff.ms", "10"),
    ("reconnect.backoff.max.ms", "100"),
];

fn leaders_move_while_producing(backend: &Backend) {
    while_producing(backend, 6, &[], |step| {
        backend.control(|control| control.rotate_leaders());
        thread::sleep(Duration::from_millis(20 + 10 * (step % 5)));
    });
}

fn broker_is_killed_and_restarted_while_producing(backend: &Backend) {
    while_producing(backend, 6, &[], |step| {
        let broker = BrokerId(1 + step as i32 % 3);
        backend.control(|control| control.kill_broker(broker, Tail::Kept));
        thread::sleep(Duration::from_millis(60));
        backend.control(|control| control.restart_broker(broker));
        thread::sleep(Duration::from_millis(20));
    });
}

fn lost_responses_cause_no_duplicates(backend: &Backend) {
    while_producing(backend, 3, &[], |step| {
        let fault = Fault::new(FaultAction::LoseResponse).api(ApiKey::Produce).skip(step as u32 % 3).times(1);
        backend.control(|control| control.inject(fault));
        thread::sleep(Duration::from_millis(30));
    });
}

fn missing_responses_cause_retries(backend: &Backend) {
    // A broker that never responds is abandoned after request.timeout.ms and a little more.
    while_producing(backend, 3, &[("request.timeout.ms", "200"), ("socket.timeout.ms", "400")], |step| {
        if step % 5 == 0 {
            let fault = Fault::new(FaultAction::NeverRespond).api(ApiKey::Produce).times(1);
            backend.control(|control| control.inject(fault));
        }
        thread::sleep(Duration::from_millis(60));
    });
}

fn connections_break_at_any_time(backend: &Backend) {
    while_producing(backend, 6, &[], |step| {
        backend.control(|control| control.close_connections(Some(BrokerId(1 + step as i32 % 3))));
        thread::sleep(Duration::from_millis(7 + step % 11));
    });
}

fn brokers_are_slow_and_connections_break(backend: &Backend) {
    backend.control(|control| {
        (1..=3).for_each(|id| control.set_latency(BrokerId(id), Duration::from_millis(15)));
    });
    while_producing(backend, 4, &[], |_| {
        backend.control(|control| control.close_connections(None));
        thread::sleep(Duration::from_millis(50));
    });
}

fn transient_errors_are_retried(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&FAST);
    let passing = [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::LEADER_NOT_AVAILABLE,
        ErrorCode::NOT_ENOUGH_REPLICAS,
        ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode::REQUEST_TIMED_OUT,
        ErrorCode::NETWORK_EXCEPTION,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
    ];
    for (n, code) in (0u64..).zip(passing) {
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).times(2);
        backend.control(|control| control.inject(fault));
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
        producer.flush(TIMEOUT).unwrap();
        let report = reports.all().pop().unwrap();
        assert_eq!(report.error, None, "{}", code.name());
    }
    reports.assert_all_delivered(passing.len() as u64);
    backend.assert_complete_and_in_order(&topic, 1, passing.len());
}

fn permanent_errors_affect_only_their_partition(backend: &Backend) {
    for (code, idempotence) in [
        (ErrorCode::TOPIC_AUTHORIZATION_FAILED, "true"),
        (ErrorCode::INVALID_RECORD, "true"),
        (ErrorCode::INVALID_TIMESTAMP, "false"),
        (ErrorCode::INVALID_REQUIRED_ACKS, "false"),
        (ErrorCode::UNKNOWN_SERVER_ERROR, "false"),
        (ErrorCode(9999), "false"),
    ] {
        let topic = backend.topic(2);
        let (producer, reports) = backend.producer_with_reports(&[("enable.idempotence", idempotence)]);
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).partition(1);
        backend.control(|control| control.inject(fault.times(1)));
        for n in 0..10 {
            let record = Record::new().opaque(n).partition((n % 2) as i32);
            producer.send(&topic, record.value(&n.to_string())).unwrap();
        }
        producer.flush(TIMEOUT).unwrap();
        reports.assert_one_each(10);
        for report in reports.all() {
            if report.partition == 0 {
                assert_eq!((report.error, report.status), (None, PersistenceStatus::Persisted));
                continue;
            }
            let error = report.error.expect("the broker refused it");
            assert_eq!(error.kind(), ErrorKind::Broker(code));
            assert_eq!(error.culprit(), ottla::Culprit::Broker);
            assert!(error.to_string().contains(&format!("{topic} [1]")), "{error}");
        }
        // Later requests pass.
        producer.send(&topic, Record::new().value("after").partition(1)).unwrap();
        producer.flush(TIMEOUT).unwrap();
        assert_eq!(backend.values(&topic, 1), ["after"], "{}", code.name());
    }
}

fn too_few_in_sync_replicas_are_retried(backend: &Backend) {
    let topic = backend.topic_with(1, &[("min.insync.replicas", "3")]);
    let (producer, reports) = backend.producer_with_reports(&FAST);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    let follower = backend.control(|control| {
        let state = control.partition(&topic, 0).unwrap();
        *state.replicas.iter().find(|id| Some(**id) != state.leader).unwrap()
    });
    backend.control(|control| control.kill_broker(follower, Tail::Kept));
    for n in 0..20 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    assert!(producer.flush(Duration::from_millis(300)).is_err());
    assert!(reports.is_empty(), "nothing is given up: {:?}", reports.all());
    backend.control(|control| control.restart_broker(follower));
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(20);
    backend.assert_complete_and_in_order(&topic, 1, 20);
}

fn records_wait_for_a_partition_without_leader(backend: &Backend) {
    let topic = backend.topic(2);
    backend.control(|control| assert!(control.move_leader(&topic, 0, None)));
    let (producer, reports) = backend.producer_with_reports(&FAST);
    for n in 0..20 {
        producer
            .send(&topic, Record::new().value(&n.to_string()).opaque(n).partition((n % 2) as i32))
            .unwrap();
    }
    // The other partition doesn't wait.
    assert!(eventually(|| reports.len() == 10));
    assert!(reports.all().iter().all(|report| report.partition == 1));
    thread::sleep(Duration::from_millis(150));
    assert_eq!(reports.len(), 10);
    backend.control(|control| assert!(control.move_leader(&topic, 0, Some(BrokerId(2)))));
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(20);
    backend.assert_complete_and_in_order(&topic, 2, 20);
}

fn records_without_a_key_avoid_leaderless_partitions(backend: &Backend) {
    let topic = backend.topic(4);
    for partition in [0, 2] {
        assert!(backend.control(|control| control.move_leader(&topic, partition, None)));
    }
    for partitioner in ["consistent_random", "murmur2_random", "random", "sticky"] {
        let properties: Vec<_> = FAST
            .into_iter()
            .chain([("partitioner", partitioner), ("sticky.partitioning.linger.ms", "0")])
            .collect();
        let (producer, reports) = backend.producer_with_reports(&properties);
        producer.partition_count(&topic, TIMEOUT).unwrap();
        for n in 0..100 {
            producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
        }
        producer.flush(TIMEOUT).unwrap();
        reports.assert_all_delivered(100);
        let hit = |partition| reports.all().iter().filter(|report| report.partition == partition).count();
        assert_eq!((hit(0), hit(2)), (0, 0), "{partitioner}");
        assert!(hit(1) > 0 && hit(3) > 0, "{partitioner}: {} and {}", hit(1), hit(3));
    }
}

fn stale_metadata_loses_no_record(backend: &Backend) {
    while_producing(backend, 3, &[], |_| {
        backend.control(|control| {
            control.freeze_metadata();
            control.rotate_leaders();
        });
        thread::sleep(Duration::from_millis(80));
        backend.control(|control| control.thaw_metadata());
        thread::sleep(Duration::from_millis(40));
    });
}

fn batch_that_is_too_large_for_the_broker_is_split(backend: &Backend) {
    let topic = backend.topic_with(1, &[("max.message.bytes", "20000")]);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "100")]);
    let padding = "x".repeat(1000);
    for n in 0..200 {
        producer.send(&topic, Record::new().value(&format!("{n} {padding}")).opaque(n)).unwrap();
    }
    let tracked = producer.topic(&topic).send_tracked(Record::new().value("200").opaque(200)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(201);
    reports.assert_all_delivered(201);
    backend.assert_complete_and_in_order(&topic, 1, 201);
    assert_eq!(tracked.wait(TIMEOUT).unwrap().offset, Some(200));
    let batches = backend.batches(&topic, 0);
    assert!(batches.len() >= 11 && batches.iter().all(|batch| batch.header.size <= 20_000));
}

fn record_that_is_too_large_for_the_broker_fails(backend: &Backend) {
    let topic = backend.topic_with(1, &[("max.message.bytes", "5000")]);
    let (producer, reports) = backend.producer_with_reports(&[("broker.linger.ms", "100")]);
    let padding = "x".repeat(6000);
    for n in 0..10u64 {
        let value = if n == 4 { format!("{n} {padding}") } else { n.to_string() };
        producer.send(&topic, Record::new().value(&value).opaque(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(10);
    for report in reports.all() {
        if report.opaque == 4 {
            let error = report.error.expect("too large");
            assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::MESSAGE_TOO_LARGE));
            assert!(error.to_string().contains(&topic), "{error}");
            assert_eq!(report.status, PersistenceStatus::NotPersisted);
        } else {
            assert_eq!(report.error, None);
        }
    }
    assert_eq!(backend.values(&topic, 0), ["0", "1", "2", "3", "5", "6", "7", "8", "9"]);
}

fn throttled_producer_pauses(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("broker.linger.ms", "0")]);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    const PAUSE: Duration = Duration::from_secs(4);
    let pause = Fault::new(FaultAction::Throttle(PAUSE)).api(ApiKey::Produce).times(1);
    backend.control(|control| control.inject(pause));
    let send =
        || producer.topic(&topic).send_tracked(Record::new().value("x")).unwrap().wait(TIMEOUT).unwrap();
    let began = Instant::now();
    send();
    assert!(began.elapsed() < PAUSE, "the response itself is not late");
    send();
    assert!(began.elapsed() >= PAUSE, "only {:?}", began.elapsed());
    send();
    assert_eq!(backend.records(&topic, 0).len(), 3);
}

fn partitions_are_added_while_producing(backend: &Backend) {
    let topic = backend.topic(2);
    let properties = [("topic.metadata.refresh.interval.ms", "100"), ("sticky.partitioning.linger.ms", "0")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    assert_eq!(producer.partition_count(&topic, TIMEOUT).unwrap(), 2);
    let mut sent = 0;
    let mut send = || {
        producer.send(&topic, Record::new().value(&sent.to_string()).opaque(sent)).unwrap();
        sent += 1;
    };
    (0..100).for_each(|_| send());
    backend.control(|control| control.create_partitions(&topic, 5)).unwrap();
    assert!(eventually(|| {
        send();
        producer.partition_count(&topic, TIMEOUT).unwrap() == 5
    }));
    (0..200).for_each(|_| send());
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(sent);
    backend.assert_complete_and_in_order(&topic, 5, sent as usize);
    assert!((2..5).all(|partition| !backend.records(&topic, partition).is_empty()));
}

fn unknown_producer_id_causes_a_new_epoch(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&FAST);
    for n in 0..30 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
        producer.flush(TIMEOUT).unwrap();
        if n == 10 {
            let id = backend.batches(&topic, 0)[0].header.producer_id;
            backend.control(|control| control.forget_producer(&topic, 0, id));
        }
    }
    reports.assert_all_delivered(30);
    backend.assert_complete_and_in_order(&topic, 1, 30);
}

fn retries_keep_the_order_with_one_request_in_flight(backend: &Backend) {
    let properties = [
        ("enable.idempotence", "false"),
        ("max.in.flight.requests.per.connection", "1"),
        ("batch.num.messages", "10"),
    ];
    let topic = backend.topic(2);
    let properties: Vec<_> = FAST.into_iter().chain(properties).collect();
    let (producer, reports) = backend.producer_with_reports(&properties);
    let code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    for n in 0..600 {
        if n % 40 == 0 {
            let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).times(1);
            backend.control(|control| control.inject(fault));
        }
        let record = Record::new().opaque(n).partition((n % 2) as i32);
        producer.send(&topic, record.value(&n.to_string())).unwrap();
        if n % 10 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(600);
    backend.assert_complete_and_in_order(&topic, 2, 600);
}

fn producer_survives_an_outage_of_all_brokers(backend: &Backend) {
    let topic = backend.topic(3);
    let (producer, reports) = backend.producer_with_reports(&FAST);
    producer.partition_count(&topic, TIMEOUT).unwrap();
    backend.control(|control| (1..=3).for_each(|id| control.kill_broker(BrokerId(id), Tail::Kept)));
    for n in 0..100 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    assert!(producer.flush(Duration::from_millis(300)).is_err());
    assert!(reports.is_empty());
    let is_reported = || {
        std::iter::from_fn(|| producer.poll_event())
            .any(|event| matches!(event, ottla::Event::AllBrokersDown(_)))
    };
    assert!(eventually(is_reported));
    backend.control(|control| (1..=3).for_each(|id| control.restart_broker(BrokerId(id))));
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(100);
    backend.assert_complete_and_in_order(&topic, 3, 100);
}

fn deleted_topic_is_reported_without_affecting_others(backend: &Backend) {
    backend.control(|control| control.options().auto_create_topics = false);
    let (gone, stays) = (backend.topic(2), backend.topic(1));
    let properties: Vec<_> = FAST
        .into_iter()
        .chain([("topic.metadata.propagation.max.ms", "300"), ("message.timeout.ms", "5000")])
        .collect();
    let (producer, reports) = backend.producer_with_reports(&properties);
    producer.send(&gone, Record::new().value("0").opaque(0)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    backend.control(|control| assert!(control.delete_topic(&gone)));
    producer.send(&gone, Record::new().value("1").opaque(1)).unwrap();
    producer.send(&stays, Record::new().value("2").opaque(2)).unwrap();
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(3);
    let report = reports.all().into_iter().find(|report| report.opaque == 1).unwrap();
    let error = report.error.expect("the topic is gone");
    assert!(error.to_string().contains(&gone), "{error}");
    assert_eq!(backend.values(&stays, 0), ["2"]);
}

/// Sends numbers for a while and calls `disturb` repeatedly; then checks that no number is missing, duplicated or out
/// of order, and that all are reported as delivered.
fn while_producing(
    backend: &Backend,
    partitions: i32,
    properties: &[(&str, &str)],
    mut disturb: impl FnMut(u64),
) {
    let topic = backend.topic(partitions);
    let properties: Vec<_> = FAST.into_iter().chain(properties.iter().copied()).collect();
    let (producer, reports) = backend.producer_with_reports(&properties);
    let over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let sender = scope.spawn(|| send_until(&producer, &topic, partitions, &over));
        let began = Instant::now();
        let mut step = 0;
        while began.elapsed() < Duration::from_millis(1500) {
            thread::sleep(Duration::from_millis(5));
            disturb(step);
            step += 1;
        }
        over.store(true, Ordering::SeqCst);
        sender.join().expect("the sender")
    });
    backend.control(|control| control.clear_faults());
    if producer.flush(TIMEOUT).is_err() {
        panic!("{} of {sent} are stuck; {}", producer.in_queue(), last_words(&producer, &reports));
    }
    reports.assert_all_delivered(sent);
    backend.assert_complete_and_in_order(&topic, partitions, sent as usize);
}

fn send_until(producer: &Producer, topic: &str, partitions: i32, over: &AtomicBool) -> u64 {
    let topic = producer.topic(topic);
    let mut n = 0;
    while !over.load(Ordering::SeqCst) {
        let record = Record::new().opaque(n).partition((n % partitions as u64) as i32);
        topic.send(record.value(&n.to_string())).unwrap();
        n += 1;
        if n.is_multiple_of(5) {
            thread::sleep(Duration::from_micros(500));
        }
    }
    n
}

fn last_words(producer: &Producer, reports: &Reports) -> String {
    let events: Vec<_> = std::iter::from_fn(|| producer.poll_event()).collect();
    let last = &events[events.len().saturating_sub(5)..];
    format!("{} were reported; the last events: {last:#?}", reports.len())
}
