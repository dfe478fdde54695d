//! Topics and partitions change while they are read: they are deleted, recreated, moved, truncated.

use std::time::{Duration, Instant};

use ottla::{
    Admin, Consumer, ConsumerEvent, ErrorCode, ErrorKind, NewPartitions, NewTopic, Offset, PersistenceStatus,
    Record, Records,
};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    recreated_topic_is_an_error_if_configured,
    recreated_topic_is_read_from_its_beginning,
    producer_continues_with_a_recreated_topic,
    records_for_the_old_topic_fail_when_it_is_recreated,
    seek_does_not_wait_for_the_fetch_in_flight,
    metadata_does_not_wait_for_the_fetch_in_flight,
    partition_added_later_is_read_as_soon_as_it_exists,
);

ottla_scenarios::run_on_embedded!(
    recreated_topic_is_detected_with_fetch_by_name,
    recreated_topic_is_detected_without_topic_ids,
    truncated_log_is_reported_and_reading_continues,
    truncated_log_is_an_error_without_offset_reset,
    truncation_after_the_position_is_not_reported,
    consumer_follows_new_leaders_while_metadata_is_stale,
    consumer_without_leader_discovery_waits_for_metadata,
    fenced_leader_epoch_is_not_reported,
    a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_while_that_is_gone,
    producer_finds_partitions_added_while_it_sends,
    producer_asks_about_an_idle_topic_again_with_the_next_message,
);

fn recreated_topic_is_an_error_if_configured(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let properties = [("topic.recreate.policy", "error"), ("topic.metadata.refresh.interval.ms", "500")];
    let consumer = consumer(backend, &properties);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20), (0..20).collect::<Vec<_>>());
    backend.recreate(&topic, 3);
    write(backend, &topic, 100..150);
    let (read_before, events) = events_until(
        &consumer,
        |event| matches!(event, ConsumerEvent::Error(error) if error.kind() == ErrorKind::TopicRecreated),
    );
    assert_eq!(read_before, [0u64; 0], "nothing of the new topic is read with an offset of the old one");
    // The topic's event and its partition's error come in either order.
    if !events.iter().any(|event| is_recreated(event, &topic)) {
        let (read_between, _) = events_until(&consumer, |event| is_recreated(event, &topic));
        assert_eq!(read_between, [0u64; 0]);
    }
    assert_eq!(consumer.position(&topic, 0), None);
    let records = consumer.poll(Duration::from_millis(300)).unwrap();
    assert_eq!(records.iter().count(), 0, "it stands still");
    consumer.seek(&topic, 0, Offset::Beginning, TIMEOUT).unwrap();
    assert_eq!(read(&consumer, 50), (100..150).collect::<Vec<_>>());
}

fn recreated_topic_is_read_from_its_beginning(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let properties = [("auto.offset.reset", "earliest"), ("topic.metadata.refresh.interval.ms", "500")];
    let consumer = consumer(backend, &properties);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20), (0..20).collect::<Vec<_>>());
    backend.recreate(&topic, 3);
    write(backend, &topic, 100..150);
    let mut got = Vec::new();
    let mut reported = 0;
    let began = Instant::now();
    while got.len() < 50 {
        assert!(began.elapsed() < TIMEOUT, "{got:?}");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        reported += records.events().iter().filter(|event| is_recreated(event, &topic)).count();
        got.extend(numbers(&records));
    }
    assert_eq!(got, (100..150).collect::<Vec<_>>(), "all of it, once");
    assert_eq!(reported, 1);
}

fn producer_continues_with_a_recreated_topic(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [("topic.metadata.refresh.interval.ms", "300")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    for n in 0..20 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    backend.recreate(&topic, 3);
    for n in 20..40 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(40);
    let new: Vec<String> = (20..40).map(|n| n.to_string()).collect();
    assert_eq!(backend.values(&topic, 0), new);
    let sequence = backend.batches(&topic, 0)[0].header.base_sequence;
    assert_eq!(sequence, 0, "nothing of this producer was in the new topic's log");
}

fn records_for_the_old_topic_fail_when_it_is_recreated(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [
        ("topic.recreate.policy", "error"),
        ("topic.metadata.refresh.interval.ms", "300"),
        ("broker.linger.ms", "100000"),
    ];
    let (producer, reports) = backend.producer_with_reports(&properties);
    let send = |numbers: std::ops::Range<u64>| {
        for n in numbers {
            producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
        }
    };
    send(0..20);
    producer.flush(TIMEOUT).unwrap();
    send(20..40);
    backend.recreate(&topic, 3);
    assert!(eventually(|| reports.len() == 40), "{} of 40 reports came", reports.len());
    send(40..60);
    producer.flush(TIMEOUT).unwrap();
    reports.assert_one_each(60);
    for report in reports.all() {
        let (written_to_old, written_to_new) = (report.opaque < 20, report.opaque >= 40);
        if written_to_old || written_to_new {
            let offset = report.opaque as i64 % 40;
            assert_eq!((report.error, report.offset), (None, Some(offset)), "message {}", report.opaque);
            continue;
        }
        let error = report.error.expect("it was accepted for the old topic");
        assert_eq!(
            (error.kind(), report.status),
            (ErrorKind::TopicRecreated, PersistenceStatus::NotPersisted)
        );
        assert!(error.to_string().contains(&topic), "{error}");
    }
    let new: Vec<String> = (40..60).map(|n| n.to_string()).collect();
    assert_eq!(backend.values(&topic, 0), new);
    assert_eq!(backend.batches(&topic, 0)[0].header.base_sequence, 0);
}

fn recreated_topic_is_detected_with_fetch_by_name(backend: &Backend) {
    // As in Kafka 2.8 to 3.0: Metadata has topic IDs, Fetch has names.
    backend.control(|control| control.set_api_versions(None, ApiKey::Fetch, 4, 12));
    recreated_topic_is_read_from_its_beginning(backend);
    recreated_topic_is_an_error_if_configured(backend);
}

fn recreated_topic_is_detected_without_topic_ids(backend: &Backend) {
    backend.control(|control| {
        control.set_api_versions(None, ApiKey::Fetch, 4, 11);
        control.set_api_versions(None, ApiKey::Metadata, 0, 9);
    });
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let consumer = consumer(backend, &[("topic.metadata.refresh.interval.ms", "100")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20), (0..20).collect::<Vec<_>>());
    backend.control(|control| {
        // Its leader epoch rises, so that the recreated one is lower.
        (1..=3).for_each(|id| assert!(control.move_leader(&topic, 0, Some(BrokerId(id)))));
    });
    write(backend, &topic, 20..30);
    assert_eq!(read(&consumer, 10), (20..30).collect::<Vec<_>>());
    backend.control(|control| control.options().auto_create_topics = false);
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.delete_topics(&[&topic], TIMEOUT).unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    admin.create_topics(&[NewTopic::new(&topic, 1, 3)], TIMEOUT).unwrap();
    let (got, _) = events_until(&consumer, |event| matches!(event, ConsumerEvent::TopicRecreated(_)));
    assert_eq!(got, [0u64; 0]);
}

fn seek_does_not_wait_for_the_fetch_in_flight(backend: &Backend) {
    let topic = backend.topic(3);
    write(backend, &topic, 0..20);
    let consumer = consumer(backend, &[("fetch.wait.max.ms", "20000")]);
    consumer.assign(&[(&topic, 0, Offset::End), (&topic, 1, Offset::End), (&topic, 2, Offset::End)]).unwrap();
    let known = || (0..3).all(|partition| consumer.position(&topic, partition).is_some());
    assert!(eventually(|| {
        consumer.poll(Duration::from_millis(50)).unwrap();
        known()
    }));
    // By now the fetches wait at the brokers.
    std::thread::sleep(Duration::from_millis(200));
    for (from, offset) in [(Offset::Beginning, 0), (Offset::Tail(5), 15), (Offset::Timestamp(0), 0)] {
        let began = Instant::now();
        assert_eq!(consumer.seek(&topic, 0, from, TIMEOUT).unwrap(), offset);
        assert!(began.elapsed() < Duration::from_secs(8), "{from:?} took {:?}", began.elapsed());
        assert_eq!(consumer.watermarks(&topic, 1, TIMEOUT).unwrap(), (0, 0));
        assert!(began.elapsed() < Duration::from_secs(8), "watermarks took {:?}", began.elapsed());
    }
}

fn metadata_does_not_wait_for_the_fetch_in_flight(backend: &Backend) {
    let (topic, other) = (backend.topic(3), backend.topic(3));
    write(backend, &other, 0..20);
    let consumer = consumer(backend, &[("fetch.wait.max.ms", "20000")]);
    let ends: Vec<_> = (0..3).map(|partition| (&*topic, partition, Offset::End)).collect();
    consumer.assign(&ends).unwrap();
    let known = || (0..3).all(|partition| consumer.position(&topic, partition).is_some());
    assert!(eventually(|| {
        consumer.poll(Duration::from_millis(50)).unwrap();
        known()
    }));
    // By now a fetch waits at each broker.
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    let described = consumer.admin().metadata(Some(&[&other]), TIMEOUT).unwrap();
    assert_eq!(described.topics.len(), 1);
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "a question of the application took {:?}",
        began.elapsed()
    );
    let began = Instant::now();
    assert_eq!(consumer.watermarks(&other, 0, TIMEOUT).unwrap(), (0, 20));
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "a topic that is new to the client took {:?}",
        began.elapsed()
    );
}

fn partition_added_later_is_read_as_soon_as_it_exists(backend: &Backend) {
    let topic = backend.topic(1);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning), (&topic, 1, Offset::Beginning)]).unwrap();
    events_until(&consumer, |event| {
        matches!(event, ConsumerEvent::Error(error) if error.kind() == ErrorKind::UnknownPartition
            && error.context().partition == Some(1))
    });
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.create_partitions(&[NewPartitions::new(&*topic, 2)], TIMEOUT).unwrap();
    // A broker that does not know of the topic may serve the first requests.
    let sent = eventually(|| {
        let record = Record::new().partition(1).value("7");
        match backend.producer(&[]).topic(&topic).send_tracked(record) {
            Ok(delivery) => delivery.wait(TIMEOUT).is_ok(),
            Err(_) => false,
        }
    });
    assert!(sent, "a producer finds the new partition");
    assert_eq!(read(&consumer, 1), [7]);
}

fn truncated_log_is_reported_and_reading_continues(backend: &Backend) {
    let (topic, consumer) = with_a_log_cut_off(backend, "latest", 20);
    let truncated = |event: &ConsumerEvent| matches!(event, ConsumerEvent::LogTruncated { .. });
    let (mut got, events) = events_until(&consumer, truncated);
    let reported = events.iter().find_map(|event| match event {
        ConsumerEvent::LogTruncated { topic, partition, position, divergence } => {
            Some((topic.to_string(), *partition, *position, *divergence))
        }
        _ => None,
    });
    assert_eq!(reported, Some((topic.clone(), 0, 20, Some(10))));
    got.extend(read(&consumer, 5 - got.len()));
    assert_eq!(got, (100..105).collect::<Vec<_>>(), "what is there now");
    write(backend, &topic, 105..110);
    assert_eq!(read(&consumer, 5), (105..110).collect::<Vec<_>>());
}

fn truncated_log_is_an_error_without_offset_reset(backend: &Backend) {
    let (topic, consumer) = with_a_log_cut_off(backend, "error", 20);
    let (got, events) = events_until(
        &consumer,
        |event| matches!(event, ConsumerEvent::Error(error) if error.kind() == ErrorKind::LogTruncated),
    );
    assert_eq!(got, [0u64; 0]);
    let sentence = format!("{events:?}");
    assert!(
        sentence.contains("read up to offset 20") && sentence.contains("from offset 10 on"),
        "{sentence}"
    );
    assert!(consumer.poll(Duration::from_millis(200)).unwrap().is_empty());
    consumer.seek(&topic, 0, Offset::At(10), TIMEOUT).unwrap();
    assert_eq!(read(&consumer, 5), (100..105).collect::<Vec<_>>());
}

fn truncation_after_the_position_is_not_reported(backend: &Backend) {
    let (_, consumer) = with_a_log_cut_off(backend, "error", 10);
    let records = consumer.poll(TIMEOUT).unwrap();
    assert_eq!((numbers(&records), records.events()), ((100..105).collect(), &[][..]));
}

/// Writes 20 records, of which a consumer has read the first `read` when those from offset 10 on are lost and five
/// others are written.
fn with_a_log_cut_off(backend: &Backend, reset: &str, count: usize) -> (String, Consumer) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..10);
    let consumer = consumer(backend, &[("auto.offset.reset", reset), ("fetch.wait.max.ms", "50")]);
    consumer.assign(&[(&topic, 0, Offset::At(0))]).unwrap();
    let mut got = read(&consumer, 10);
    if count == 10 {
        consumer.pause(&[(&topic, 0)]).unwrap();
        // The fetch that was in flight returns.
        std::thread::sleep(Duration::from_millis(300));
    }
    write(backend, &topic, 10..20);
    got.extend(read(&consumer, count - 10));
    assert_eq!(got, (0..count as u64).collect::<Vec<_>>());
    backend.control(|control| {
        let leader = control.partition(&topic, 0).unwrap().leader;
        let next = [1, 2, 3].map(BrokerId).into_iter().find(|id| Some(*id) != leader);
        // A replica without the newest records becomes the leader.
        control.move_leader(&topic, 0, next);
        control.truncate_log(&topic, 0, 10);
    });
    write(backend, &topic, 100..105);
    consumer.resume(&[(&topic, 0)]).unwrap();
    (topic, consumer)
}

fn consumer_follows_new_leaders_while_metadata_is_stale(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..5);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), (0..5).collect::<Vec<_>>());
    backend.control(|control| control.freeze_metadata());
    for round in 1..4 {
        backend.control(|control| control.rotate_leaders());
        write(backend, &topic, round * 5..round * 5 + 5);
        assert_eq!(read(&consumer, 5), (round * 5..round * 5 + 5).collect::<Vec<_>>());
    }
    backend.control(|control| control.thaw_metadata());
}

fn consumer_without_leader_discovery_waits_for_metadata(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..5);
    let consumer = consumer(backend, &[("metadata.leader.discovery", "false")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), (0..5).collect::<Vec<_>>());
    backend.control(|control| {
        control.freeze_metadata();
        control.rotate_leaders();
    });
    write(backend, &topic, 5..10);
    backend.control(|control| control.record_requests());
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        assert_eq!(consumer.poll(Duration::from_millis(100)).unwrap().iter().count(), 0);
    }
    let requests = backend.control(|control| control.take_requests());
    let count = |api| requests.iter().filter(|request| request.api == api).count();
    let (fetches, asked) = (count(ApiKey::Fetch), count(ApiKey::Metadata));
    assert!((1..=15).contains(&asked) && fetches <= 30, "{fetches} fetches, {asked} times metadata");
    backend.control(|control| control.thaw_metadata());
    assert_eq!(read(&consumer, 5), (5..10).collect::<Vec<_>>());
}

fn fenced_leader_epoch_is_not_reported(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..5);
    let consumer = consumer(backend, &[("fetch.error.backoff.ms", "20")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 5), (0..5).collect::<Vec<_>>());
    for round in 1..4 {
        backend.control(|control| {
            // The same leader in a new epoch.
            let leader = control.partition(&topic, 0).unwrap().leader;
            control.move_leader(&topic, 0, None);
            control.move_leader(&topic, 0, leader);
            let error = FaultAction::Error(ErrorCode::UNKNOWN_LEADER_EPOCH);
            control.inject(Fault::new(error).api(ApiKey::Fetch).topic(&topic).times(2));
        });
        write(backend, &topic, round * 5..round * 5 + 5);
        let mut got = Vec::new();
        let began = Instant::now();
        while got.len() < 5 {
            assert!(began.elapsed() < TIMEOUT, "{got:?}");
            let records = consumer.poll(Duration::from_millis(500)).unwrap();
            assert_eq!(records.events(), []);
            got.extend(numbers(&records));
        }
        assert_eq!(got, (round * 5..round * 5 + 5).collect::<Vec<_>>());
    }
}

fn a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_while_that_is_gone(_: &Backend) {
    let backend = &Backend::embedded_with(|options| {
        options.racks = ["a", "b", "c"].map(str::to_owned).to_vec();
        options.rack_aware_fetch = true;
    });
    let topic = backend.topic(1);
    let leader = backend.control(|control| control.partition(&topic, 0).unwrap().leader.unwrap());
    let closer = [1, 2, 3].map(BrokerId).into_iter().find(|id| *id != leader).unwrap();
    let rack = ["a", "b", "c"][closer.0 as usize - 1];
    let consumer = consumer(
        backend,
        &[("client.rack", rack), ("fetch.wait.max.ms", "50"), ("fetch.error.backoff.ms", "50")],
    );
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    write(backend, &topic, 0..5);
    assert_eq!(read_from(&consumer, 5), ((0..5).collect(), Some(closer.0)));
    // A follower may lag behind the leader, so its offsets are not authoritative.
    backend.control(|control| {
        let error = FaultAction::Error(ErrorCode::OFFSET_OUT_OF_RANGE);
        control.inject(Fault::new(error).api(ApiKey::Fetch).topic(&topic).broker(closer).times(3));
    });
    write(backend, &topic, 5..10);
    assert_eq!(read_from(&consumer, 5).0, (5..10).collect::<Vec<_>>());
    backend.control(|control| control.kill_broker(closer, ottla_embedded_broker::Tail::Kept));
    write(backend, &topic, 10..15);
    assert_eq!(read_from(&consumer, 5), ((10..15).collect(), Some(leader.0)));
}

fn producer_finds_partitions_added_while_it_sends(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&[("topic.metadata.refresh.interval.ms", "100")]);
    let send = |n: u64| producer.send(&topic, Record::new().key(b"k").value(&n.to_string()).opaque(n));
    (0..50).for_each(|n| send(n).unwrap());
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.create_partitions(&[NewPartitions::new(&*topic, 3)], TIMEOUT).unwrap();
    let mut sent = 50;
    let began = Instant::now();
    while producer.send(&topic, Record::new().partition(2).value("x").opaque(sent)).is_err() {
        assert!(began.elapsed() < TIMEOUT, "the new partition is not known");
        std::thread::sleep(Duration::from_millis(20));
    }
    sent += 1;
    for n in sent..sent + 50 {
        send(n).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(sent + 50);
    // The records of one key keep their order across the change.
    let of_partition = |partition| {
        let values = backend.values(&topic, partition).into_iter();
        values.filter_map(|value| value.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    let all = [of_partition(0), of_partition(1), of_partition(2)];
    assert!(all.iter().all(|numbers| numbers.is_sorted()), "{all:?}");
    assert_eq!(all[0][..50], (0..50).collect::<Vec<_>>());
    let later = (sent..sent + 50).collect::<Vec<_>>();
    assert!(all.iter().any(|numbers| numbers.ends_with(&later)), "{all:?}");
}

fn producer_asks_about_an_idle_topic_again_with_the_next_message(backend: &Backend) {
    let (idle, used) = (backend.topic(1), backend.topic(1));
    let properties = [("metadata.max.idle.ms", "5000"), ("topic.metadata.refresh.interval.ms", "200")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    let (idle_topic, used_topic) = (producer.topic(&idle), producer.topic(&used));
    idle_topic.send(Record::new().value("x").opaque(0)).unwrap();
    let mut sent = 1;
    let mut use_for = |duration: Duration| {
        let began = Instant::now();
        while began.elapsed() < duration {
            used_topic.send(Record::new().value("x").opaque(sent)).unwrap();
            sent += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    use_for(Duration::from_millis(5600));
    let admin = Admin::new(&backend.config(&[])).unwrap();
    for topic in [&idle, &used] {
        admin.create_partitions(&[NewPartitions::new(&**topic, 3)], TIMEOUT).unwrap();
    }
    use_for(Duration::from_millis(1000));
    let counts = (idle_topic.partition_count(), used_topic.partition_count());
    assert_eq!(counts, (Some(1), Some(3)), "only the topic in use is in the refresh");
    idle_topic.send(Record::new().value("x").opaque(sent)).unwrap();
    assert!(eventually(|| idle_topic.partition_count() == Some(3)));
    producer.flush(TIMEOUT).unwrap();
    reports.assert_all_delivered(sent + 1);
}

/// Polls until this number of records has arrived; also returns the broker that sent the last ones.
fn read_from(consumer: &Consumer, count: usize) -> (Vec<u64>, Option<i32>) {
    let (mut got, mut broker) = (Vec::new(), None);
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < TIMEOUT, "of {count} records only {got:?} came");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        assert_eq!(records.events().iter().find(|event| is_reset(event)), None);
        broker = records.iter().last().map_or(broker, |message| message.broker_id());
        got.extend(numbers(&records));
    }
    (got, broker)
}

fn is_reset(event: &ConsumerEvent) -> bool {
    matches!(event, ConsumerEvent::Error(error) if error.kind() == ErrorKind::OffsetReset)
}

/// Deletes a topic of one partition and recreates it.
fn is_recreated(event: &ConsumerEvent, topic: &str) -> bool {
    matches!(event, ConsumerEvent::TopicRecreated(recreated)
        if *recreated.name == *topic && recreated.old_id != recreated.new_id)
}

/// Polls until this event arrives; returns the numbers and events so far.
fn events_until(
    consumer: &Consumer,
    found: impl Fn(&ConsumerEvent) -> bool,
) -> (Vec<u64>, Vec<ConsumerEvent>) {
    let mut got = Vec::new();
    let mut events = Vec::new();
    let began = Instant::now();
    while !events.iter().any(&found) {
        assert!(began.elapsed() < TIMEOUT, "only {events:?} came, and {got:?}");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        got.extend(numbers(&records));
        events.extend(records.events().iter().cloned());
    }
    (got, events)
}

fn consumer(backend: &Backend, properties: &[(&str, &str)]) -> Consumer {
    Consumer::new(&backend.config(properties)).expect("the consumer's configuration is right")
}

/// Writes numbers to partition 0.
fn write(backend: &Backend, topic: &str, numbers: std::ops::Range<u64>) {
    let producer = backend.producer(&[]);
    for n in numbers {
        producer.send(topic, Record::new().partition(0).value(&n.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// Polls until this number of records has arrived.
fn read(consumer: &Consumer, count: usize) -> Vec<u64> {
    let mut got = Vec::new();
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < TIMEOUT, "of {count} records only {got:?} came");
        got.extend(numbers(&consumer.poll(Duration::from_millis(500)).unwrap()));
    }
    got
}

fn numbers(records: &Records) -> Vec<u64> {
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    records.iter().map(|message| number(message.value().unwrap())).collect()
}
