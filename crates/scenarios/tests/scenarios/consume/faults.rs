//! Records are read once and in order while brokers, connections and responses fail.

use std::time::{Duration, Instant};

use super::*;

ottla_scenarios::run_on_embedded!(
    leaders_move_while_consuming,
    brokers_die_and_come_back_while_consuming,
    connections_break_while_consuming,
    evicted_fetch_sessions_are_recreated,
    retention_advances_the_log_start,
    transient_errors_of_a_partition_are_retried,
    many_partitions_of_a_broker_share_a_fetch,
    truncated_batches_are_fetched_again,
    garbage_fetch_responses_lose_no_record,
    damaged_batch_stops_its_partition_until_a_seek,
    damaged_batch_is_reported_and_others_are_delivered,
    batch_that_decompresses_to_too_much_is_reported,
    no_damaged_byte_of_a_batch_causes_a_hang,
    slow_leaders_lose_no_record,
    topic_may_be_created_after_its_assignment,
    coordinator_is_looked_up_until_it_responds,
);

fn leaders_move_while_consuming(backend: &Backend) {
    while_consuming(backend, |_| {
        backend.control(|control| control.rotate_leaders());
    });
}

fn brokers_die_and_come_back_while_consuming(backend: &Backend) {
    while_consuming(backend, |step| {
        let broker = BrokerId(1 + step as i32 % 3);
        backend.control(|control| control.kill_broker(broker, Tail::Kept));
        std::thread::sleep(Duration::from_millis(40));
        backend.control(|control| control.restart_broker(broker));
    });
}

fn connections_break_while_consuming(backend: &Backend) {
    while_consuming(backend, |_| backend.control(|control| control.close_connections(None)));
}

fn evicted_fetch_sessions_are_recreated(backend: &Backend) {
    while_consuming(backend, |_| {
        backend.control(|control| (1..=3).for_each(|id| control.evict_fetch_sessions(BrokerId(id))));
    });
}

fn retention_advances_the_log_start(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    for n in 0..100 {
        producer.send(&topic, Record::new().value(&n.to_string())).unwrap();
        producer.flush(TIMEOUT).unwrap();
    }
    backend.control(|control| control.delete_records(&topic, 0, 40));
    let consumer = consumer(backend, &[("auto.offset.reset", "earliest")]);
    consumer.assign(&[(&topic, 0, Offset::At(10))]).unwrap();
    assert_eq!(read(&consumer, 60), in_partitions(1, 40..100));
    assert_eq!(consumer.watermarks(&topic, 0, TIMEOUT).unwrap(), (40, 100));
}

fn transient_errors_of_a_partition_are_retried(backend: &Backend) {
    let topic = backend.topic(2);
    for code in [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
        ErrorCode::OFFSET_NOT_AVAILABLE,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    ] {
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Fetch).topic(&topic).partition(0);
        backend.control(|control| control.inject(fault.skip(1).times(2)));
    }
    let consumer = consumer_at(backend, &[("fetch.error.backoff.ms", "20")], &topic, 2);
    for round in 0..20u64 {
        write(backend, &topic, 2, round * 10..round * 10 + 10);
    }
    assert_eq!(read(&consumer, 200), in_partitions(2, 0..200));
}

fn many_partitions_of_a_broker_share_a_fetch(backend: &Backend) {
    let topic = backend.topic(300);
    write(backend, &topic, 300, 0..600);
    backend.control(|control| control.record_requests());
    let consumer = consumer_at(backend, &[], &topic, 300);
    assert_eq!(read(&consumer, 600), in_partitions(300, 0..600));
    let requests = backend.control(|control| control.take_requests());
    let count = |api| requests.iter().filter(|request| request.api == api).count();
    assert!((3..=30).contains(&count(ApiKey::Fetch)), "{} fetches", count(ApiKey::Fetch));
    assert!(count(ApiKey::ListOffsets) <= 12, "{} ListOffsets", count(ApiKey::ListOffsets));
}

fn truncated_batches_are_fetched_again(backend: &Backend) {
    backend.control(|control| control.options().partial_batches = true);
    let topic = backend.topic(1);
    let producer = backend.producer(&[("batch.num.messages", "5")]);
    for n in 0..500 {
        let value = format!("{n} {}", "x".repeat(n * 7 % 1000));
        producer.send(&topic, Record::new().value(&value)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    let consumer = consumer_at(backend, &[("fetch.message.max.bytes", "7000")], &topic, 1);
    assert_eq!(read(&consumer, 500), in_partitions(1, 0..500));
}

fn garbage_fetch_responses_lose_no_record(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 2, 0..20);
    for garbage in [vec![0xff; 64], vec![0, 0, 0, 5, 1, 2, 3, 4, 5]] {
        let fault = Fault::new(FaultAction::ReplaceResponse(garbage)).api(ApiKey::Fetch).times(2);
        backend.control(|control| control.inject(fault));
        let consumer = consumer_at(backend, &[], &topic, 2);
        assert_eq!(read(&consumer, 20), in_partitions(2, 0..20));
    }
}

fn damaged_batch_stops_its_partition_until_a_seek(backend: &Backend) {
    let topic = backend.topic(2);
    (0..3).for_each(|n| write(backend, &topic, 1, n * 10..n * 10 + 10));
    backend.control(|control| {
        assert!(control.damage_batch(&topic, 0, 15, |bytes| *bytes.last_mut().unwrap() ^= 0x40));
    });
    let consumer = consumer_at(backend, &[("fetch.error.backoff.ms", "20")], &topic, 2);
    assert_eq!(read(&consumer, 10), in_partitions(1, 0..10));
    for _ in 0..5 {
        let ConsumerEvent::Error(error) = next_event(&consumer) else { panic!("an error") };
        assert_eq!(error.kind(), ErrorKind::BadBatch);
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("{topic} [0]")) && sentence.contains("offset 10"), "{sentence}");
    }
    assert_eq!(consumer.position(&topic, 0), Some(10));
    consumer.seek(&topic, 0, Offset::At(20), TIMEOUT).unwrap();
    assert_eq!(read(&consumer, 10), in_partitions(1, 20..30));
}

fn damaged_batch_is_reported_and_others_are_delivered(backend: &Backend) {
    let topic = backend.topic(1);
    (0..3).for_each(|n| write(backend, &topic, 1, n * 10..n * 10 + 10));
    backend.control(|control| {
        assert!(control.damage_batch(&topic, 0, 15, |bytes| *bytes.last_mut().unwrap() ^= 0x40));
    });
    let properties = [("fetch.error.backoff.ms", "20"), ("fetch.damaged.batch.policy", "skip")];
    let consumer = consumer_at(backend, &properties, &topic, 1);
    let mut got = BTreeMap::new();
    let mut errors = Vec::new();
    while got.values().map(Vec::len).sum::<usize>() < 20 {
        let records = consumer.poll(TIMEOUT).unwrap();
        assert!(!records.is_empty(), "{got:?}");
        add(&records, &mut got);
        errors.extend(errors_of(&records));
    }
    assert_eq!(got[&0], (0..10).chain(20..30).collect::<Vec<u64>>());
    assert_eq!((errors[0].kind(), errors[0].culprit()), (ErrorKind::BadBatch, ottla::Culprit::Network));
    let sentence = errors[0].to_string();
    assert!(sentence.contains(&format!("{topic} [0]")) && sentence.contains("offset 10"), "{sentence}");
}

fn batch_that_decompresses_to_too_much_is_reported(backend: &Backend) {
    backend.control(|control| control.options().message_max_bytes = 100 << 20);
    let topic = backend.topic(1);
    let bomb = [("compression.type", "zstd"), ("message.max.bytes", "50000000")];
    let producer = backend.producer(&bomb);
    producer.send(&topic, Record::new().value(&vec![b'0'; 40_000_000])).unwrap();
    producer.flush(TIMEOUT).unwrap();
    assert!(backend.control(|control| control.partition(&topic, 0)).unwrap().bytes < 100_000);
    write(backend, &topic, 1, 1..2);
    let limits = [
        ("receive.message.max.bytes", "3000000"),
        ("fetch.max.bytes", "1000000"),
        ("fetch.error.backoff.ms", "20"),
        ("fetch.damaged.batch.policy", "skip"),
    ];
    let consumer = consumer_at(backend, &limits, &topic, 1);
    let ConsumerEvent::Error(error) = next_event(&consumer) else { panic!("an error") };
    assert_eq!(error.kind(), ErrorKind::BadBatch);
    assert!(error.to_string().contains(&format!("{topic} [0]")), "{error}");
    assert_eq!(read(&consumer, 1), in_partitions(1, 1..2), "what comes after it is read");
}

fn no_damaged_byte_of_a_batch_causes_a_hang(backend: &Backend) {
    const BYTES: i32 = 100;
    let topic = backend.topic(BYTES);
    for round in 0..2u64 {
        write(backend, &topic, BYTES as u64, round * 100..round * 100 + 100);
    }
    backend.control(|control| {
        for place in 0..BYTES {
            control.damage_batch(&topic, place, 0, |bytes| {
                let place = place as usize % bytes.len();
                bytes[place] ^= 0xff;
            });
        }
    });
    for check in ["true", "false"] {
        let properties = [("check.crcs", check), ("fetch.error.backoff.ms", "20")];
        let consumer = consumer_at(backend, &properties, &topic, BYTES);
        let mut reported = [false; BYTES as usize];
        let began = Instant::now();
        while reported.contains(&false) {
            let missing = reported.iter().filter(|reported| !**reported).count();
            assert!(began.elapsed() < TIMEOUT, "nothing of {missing} partitions: {reported:?}");
            let records = consumer.poll(Duration::from_millis(200)).unwrap();
            // The second batch, or an error.
            for message in records.iter().filter(|message| message.offset() >= 1) {
                reported[message.partition() as usize] = true;
            }
            for error in errors_of(&records) {
                if let Some(partition) = error.context().partition {
                    reported[partition as usize] = true;
                }
            }
        }
    }
}

fn slow_leaders_lose_no_record(backend: &Backend) {
    backend.control(|control| {
        (1..=3).for_each(|id| control.set_latency(BrokerId(id), Duration::from_millis(30)));
    });
    let topic = backend.topic(6);
    let consumer = consumer_at(backend, &[], &topic, 6);
    write(backend, &topic, 6, 0..600);
    assert_eq!(read(&consumer, 600), in_partitions(6, 0..600));
}

fn topic_may_be_created_after_its_assignment(backend: &Backend) {
    backend.control(|control| control.options().auto_create_topics = false);
    let properties =
        [("topic.metadata.refresh.interval.ms", "200"), ("topic.metadata.propagation.max.ms", "60000")];
    let consumer = consumer_at(backend, &properties, "later", 1);
    let _ = consumer.poll(Duration::from_millis(100)).unwrap();
    backend.control(|control| control.create_topic("later", 1, 3)).unwrap();
    write(backend, "later", 1, 0..10);
    assert_eq!(read(&consumer, 10), in_partitions(1, 0..10));
}

fn coordinator_is_looked_up_until_it_responds(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..10);
    commit(backend, "g", &topic, &[(0, 4)]);
    backend.control(|control| {
        let fault = |api, code| Fault::new(FaultAction::Error(code)).api(api).times(2);
        control.inject(fault(ApiKey::FindCoordinator, ErrorCode::COORDINATOR_NOT_AVAILABLE));
        control.inject(fault(ApiKey::OffsetFetch, ErrorCode::NOT_COORDINATOR));
        control.inject(fault(ApiKey::OffsetFetch, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    });
    let consumer = consumer(backend, &[("group.id", "g")]);
    consumer.assign(&[(&topic, 0, Offset::Committed)]).unwrap();
    assert_eq!(read(&consumer, 6), in_partitions(1, 4..10));
    backend.control(|control| {
        let error = FaultAction::Error(ErrorCode::GROUP_AUTHORIZATION_FAILED);
        control.inject(Fault::new(error).api(ApiKey::OffsetFetch));
    });
    let error = consumer.seek(&topic, 0, Offset::Committed, TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::GROUP_AUTHORIZATION_FAILED));
}

/// Produces and consumes for a while and calls `disturb` repeatedly; then checks that every record was read once and in
/// order.
fn while_consuming(backend: &Backend, mut disturb: impl FnMut(u64)) {
    let topic = backend.topic(6);
    let properties = [
        ("fetch.error.backoff.ms", "20"),
        ("reconnect.backoff.ms", "10"),
        ("reconnect.backoff.max.ms", "100"),
        ("retry.backoff.ms", "20"),
        ("retry.backoff.max.ms", "100"),
    ];
    let consumer = consumer_at(backend, &properties, &topic, 6);
    let producer = backend.producer(&properties[1..]);
    let mut got = BTreeMap::new();
    let began = Instant::now();
    let (mut sent, mut step) = (0, 0);
    while began.elapsed() < Duration::from_millis(1500) {
        for _ in 0..50 {
            let record = Record::new().partition((sent % 6) as i32);
            producer.send(&topic, record.value(&sent.to_string())).unwrap();
            sent += 1;
        }
        disturb(step);
        step += 1;
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            add(&consumer.poll(Duration::from_millis(10)).unwrap(), &mut got);
        }
    }
    producer.flush(TIMEOUT).unwrap();
    let complete = eventually(|| {
        add(&consumer.poll(Duration::from_millis(100)).unwrap(), &mut got);
        got.values().map(Vec::len).sum::<usize>() as u64 >= sent
    });
    let counts: Vec<usize> = got.values().map(Vec::len).collect();
    assert!(complete, "of {sent} records {counts:?} came");
    assert_eq!(got, in_partitions(6, 0..sent));
    assert!(consumer.poll(Duration::from_millis(50)).unwrap().iter().next().is_none(), "and nothing more");
}
