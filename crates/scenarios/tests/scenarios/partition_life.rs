//! What happens to topics and partitions while somebody reads them: deleted, made anew, moved, cut off.

use std::time::{Duration, Instant};

use ottla::{
    Admin, Consumer, ConsumerEvent, ErrorCode, ErrorKind, NewTopic, Offset, PersistenceStatus, Record,
    Records,
};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, PATIENCE, eventually};

ottla_scenarios::run_on_all!(
    a_topic_that_was_made_anew_is_an_error_and_no_old_offset_is_used,
    a_topic_that_was_made_anew_is_read_from_its_beginning_if_so_configured,
    a_producer_goes_on_with_a_topic_that_was_made_anew,
    what_was_taken_for_a_topic_that_is_made_anew_fails_and_what_comes_later_is_written,
    a_seek_does_not_wait_for_the_fetch_under_way,
    metadata_do_not_wait_for_the_fetch_under_way,
    a_partition_that_is_added_later_is_read_as_soon_as_it_is_there,
);

ottla_scenarios::run_on_embedded!(
    a_topic_that_was_made_anew_is_noticed_by_brokers_that_fetch_by_name,
    a_topic_that_was_made_anew_is_noticed_by_brokers_without_ids,
    a_log_that_was_cut_off_is_told_and_read_on,
    a_log_that_was_cut_off_is_an_error_if_offsets_are_not_to_be_reset,
    a_log_that_was_cut_off_behind_the_position_is_nothing_to_tell,
    a_consumer_follows_new_leaders_while_metadata_are_stale,
    a_consumer_without_leader_discovery_waits_for_metadata,
    a_fenced_leader_epoch_is_nothing_to_tell,
    a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_while_that_is_gone,
    a_producer_finds_partitions_that_are_added_while_it_sends,
);

fn a_topic_that_was_made_anew_is_an_error_and_no_old_offset_is_used(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let consumer = consumer(backend, &[("topic.metadata.refresh.interval.ms", "500")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20), (0..20).collect::<Vec<_>>());
    make_anew(backend, &topic);
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
    consumer.seek(&topic, 0, Offset::Beginning, PATIENCE).unwrap();
    assert_eq!(read(&consumer, 50), (100..150).collect::<Vec<_>>());
}

fn a_topic_that_was_made_anew_is_read_from_its_beginning_if_so_configured(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let properties = [
        ("topic.recreate.policy", "reset"),
        ("auto.offset.reset", "earliest"),
        ("topic.metadata.refresh.interval.ms", "500"),
    ];
    let consumer = consumer(backend, &properties);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20), (0..20).collect::<Vec<_>>());
    make_anew(backend, &topic);
    write(backend, &topic, 100..150);
    let mut got = Vec::new();
    let mut told = 0;
    let began = Instant::now();
    while got.len() < 50 {
        assert!(began.elapsed() < PATIENCE, "{got:?}");
        let records = consumer.poll(Duration::from_millis(500)).unwrap();
        told += records.events().iter().filter(|event| is_recreated(event, &topic)).count();
        got.extend(numbers(&records));
    }
    assert_eq!(got, (100..150).collect::<Vec<_>>(), "all of it, once");
    assert_eq!(told, 1);
}

fn a_producer_goes_on_with_a_topic_that_was_made_anew(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [("topic.metadata.refresh.interval.ms", "300"), ("topic.recreate.policy", "reset")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    for n in 0..20 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    make_anew(backend, &topic);
    for n in 20..40 {
        producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    reports.assert_all_delivered(40);
    let new: Vec<String> = (20..40).map(|n| n.to_string()).collect();
    assert_eq!(backend.values(&topic, 0), new);
    let sequence = backend.batches(&topic, 0)[0].header.base_sequence;
    assert_eq!(sequence, 0, "nothing of this producer was in the new topic's log");
}

fn what_was_taken_for_a_topic_that_is_made_anew_fails_and_what_comes_later_is_written(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [("topic.metadata.refresh.interval.ms", "300"), ("broker.linger.ms", "100000")];
    let (producer, reports) = backend.producer_with_reports(&properties);
    let send = |numbers: std::ops::Range<u64>| {
        for n in numbers {
            producer.send(&topic, Record::new().value(&n.to_string()).opaque(n)).unwrap();
        }
    };
    send(0..20);
    producer.flush(PATIENCE).unwrap();
    send(20..40);
    make_anew(backend, &topic);
    assert!(eventually(|| reports.len() == 40), "{} of 40 reports came", reports.len());
    send(40..60);
    producer.flush(PATIENCE).unwrap();
    reports.assert_one_each(60);
    for report in reports.all() {
        let (written_to_old, written_to_new) = (report.opaque < 20, report.opaque >= 40);
        if written_to_old || written_to_new {
            let offset = report.opaque as i64 % 40;
            assert_eq!((report.error, report.offset), (None, Some(offset)), "message {}", report.opaque);
            continue;
        }
        let error = report.error.expect("it was taken for the old topic");
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

fn a_topic_that_was_made_anew_is_noticed_by_brokers_that_fetch_by_name(backend: &Backend) {
    // As in 2.8 to 3.0: metadata have ids, fetches have names.
    backend.control(|control| control.set_api_versions(None, ApiKey::Fetch, 4, 12));
    a_topic_that_was_made_anew_is_read_from_its_beginning_if_so_configured(backend);
    a_topic_that_was_made_anew_is_an_error_and_no_old_offset_is_used(backend);
}

fn a_topic_that_was_made_anew_is_noticed_by_brokers_without_ids(backend: &Backend) {
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
        // Its epoch rises, so that it can be seen to begin again.
        (1..=3).for_each(|id| assert!(control.move_leader(&topic, 0, Some(BrokerId(id)))));
    });
    write(backend, &topic, 20..30);
    assert_eq!(read(&consumer, 10), (20..30).collect::<Vec<_>>());
    backend.control(|control| control.options().auto_create_topics = false);
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.delete_topics(&[&topic], PATIENCE).unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    admin.create_topics(&[NewTopic::new(&topic, 1, 3)], PATIENCE).unwrap();
    let (got, _) = events_until(&consumer, |event| matches!(event, ConsumerEvent::TopicRecreated(_)));
    assert_eq!(got, [0u64; 0]);
}

fn a_seek_does_not_wait_for_the_fetch_under_way(backend: &Backend) {
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
        assert_eq!(consumer.seek(&topic, 0, from, PATIENCE).unwrap(), Some(offset));
        assert!(began.elapsed() < Duration::from_secs(8), "{from:?} took {:?}", began.elapsed());
        assert_eq!(consumer.watermarks(&topic, 1, PATIENCE).unwrap(), (0, 0));
        assert!(began.elapsed() < Duration::from_secs(8), "watermarks took {:?}", began.elapsed());
    }
}

fn metadata_do_not_wait_for_the_fetch_under_way(backend: &Backend) {
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
    let described = consumer.admin().metadata(Some(&[&other]), PATIENCE).unwrap();
    assert_eq!(described.topics.len(), 1);
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "a question of the application took {:?}",
        began.elapsed()
    );
    let began = Instant::now();
    assert_eq!(consumer.watermarks(&other, 0, PATIENCE).unwrap(), (0, 20));
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "a topic that is new to the client took {:?}",
        began.elapsed()
    );
}

fn a_partition_that_is_added_later_is_read_as_soon_as_it_is_there(backend: &Backend) {
    let topic = backend.topic(1);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning), (&topic, 1, Offset::Beginning)]).unwrap();
    events_until(&consumer, |event| {
        matches!(event, ConsumerEvent::Error(error) if error.kind() == ErrorKind::UnknownPartition
            && error.context().partition == Some(1))
    });
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.create_partitions(&[(&*topic, 2)], PATIENCE).unwrap();
    // A broker that has not heard of it yet may answer the first ones.
    let sent = eventually(|| {
        let record = Record::new().partition(1).value("7");
        match backend.producer(&[]).topic(&topic).send_tracked(record) {
            Ok(delivery) => delivery.wait(PATIENCE).is_ok(),
            Err(_) => false,
        }
    });
    assert!(sent, "a producer finds the new partition");
    assert_eq!(read(&consumer, 1), [7]);
}

fn a_log_that_was_cut_off_is_told_and_read_on(backend: &Backend) {
    let (topic, consumer) = with_a_log_cut_off(backend, "latest", 20);
    let truncated = |event: &ConsumerEvent| matches!(event, ConsumerEvent::LogTruncated { .. });
    let (mut got, events) = events_until(&consumer, truncated);
    let told = events.iter().find_map(|event| match event {
        ConsumerEvent::LogTruncated { topic, partition, position, divergence } => {
            Some((topic.to_string(), *partition, *position, *divergence))
        }
        _ => None,
    });
    assert_eq!(told, Some((topic.clone(), 0, 20, Some(10))));
    got.extend(read(&consumer, 5 - got.len()));
    assert_eq!(got, (100..105).collect::<Vec<_>>(), "what is there now");
    write(backend, &topic, 105..110);
    assert_eq!(read(&consumer, 5), (105..110).collect::<Vec<_>>());
}

fn a_log_that_was_cut_off_is_an_error_if_offsets_are_not_to_be_reset(backend: &Backend) {
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
    consumer.seek(&topic, 0, Offset::At(10), PATIENCE).unwrap();
    assert_eq!(read(&consumer, 5), (100..105).collect::<Vec<_>>());
}

fn a_log_that_was_cut_off_behind_the_position_is_nothing_to_tell(backend: &Backend) {
    let (_, consumer) = with_a_log_cut_off(backend, "error", 10);
    let records = consumer.poll(PATIENCE).unwrap();
    assert_eq!((numbers(&records), records.events()), ((100..105).collect(), &[][..]));
}

/// A topic whose first `read` of 20 records a consumer has read when all from offset 10 on are lost, and five others are
/// written.
fn with_a_log_cut_off(backend: &Backend, reset: &str, count: usize) -> (String, Consumer) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..10);
    let consumer = consumer(backend, &[("auto.offset.reset", reset), ("fetch.wait.max.ms", "50")]);
    consumer.assign(&[(&topic, 0, Offset::At(0))]).unwrap();
    let mut got = read(&consumer, 10);
    if count == 10 {
        consumer.pause(&[(&topic, 0)]).unwrap();
        // The fetch that was under way comes back.
        std::thread::sleep(Duration::from_millis(300));
    }
    write(backend, &topic, 10..20);
    got.extend(read(&consumer, count - 10));
    assert_eq!(got, (0..count as u64).collect::<Vec<_>>());
    backend.control(|control| {
        let leader = control.partition(&topic, 0).unwrap().leader;
        let next = [1, 2, 3].map(BrokerId).into_iter().find(|id| Some(*id) != leader);
        // Somebody who had not got all becomes the leader.
        control.move_leader(&topic, 0, next);
        control.truncate_log(&topic, 0, 10);
    });
    write(backend, &topic, 100..105);
    consumer.resume(&[(&topic, 0)]).unwrap();
    (topic, consumer)
}

fn a_consumer_follows_new_leaders_while_metadata_are_stale(backend: &Backend) {
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

fn a_consumer_without_leader_discovery_waits_for_metadata(backend: &Backend) {
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

fn a_fenced_leader_epoch_is_nothing_to_tell(backend: &Backend) {
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
            assert!(began.elapsed() < PATIENCE, "{got:?}");
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
    // A follower may know less than the leader: its word on offsets is not the last one.
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

fn a_producer_finds_partitions_that_are_added_while_it_sends(backend: &Backend) {
    let topic = backend.topic(1);
    let (producer, reports) = backend.producer_with_reports(&[("topic.metadata.refresh.interval.ms", "100")]);
    let send = |n: u64| producer.send(&topic, Record::new().key(b"k").value(&n.to_string()).opaque(n));
    (0..50).for_each(|n| send(n).unwrap());
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.create_partitions(&[(&*topic, 3)], PATIENCE).unwrap();
    let mut sent = 50;
    let began = Instant::now();
    while producer.send(&topic, Record::new().partition(2).value("x").opaque(sent)).is_err() {
        assert!(began.elapsed() < PATIENCE, "the new partition is not known");
        std::thread::sleep(Duration::from_millis(20));
    }
    sent += 1;
    for n in sent..sent + 50 {
        send(n).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    reports.assert_all_delivered(sent + 50);
    // One key's records lie in the order in which they were sent, before and after.
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

/// Polls until so many records are there; also tells which broker the last ones came from.
fn read_from(consumer: &Consumer, count: usize) -> (Vec<u64>, Option<i32>) {
    let (mut got, mut broker) = (Vec::new(), None);
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < PATIENCE, "of {count} records only {got:?} came");
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

/// Deletes a topic of one partition and creates it again.
fn make_anew(backend: &Backend, topic: &str) {
    let admin = Admin::new(&backend.config(&[])).unwrap();
    admin.delete_topics(&[topic], PATIENCE).unwrap();
    let created = eventually(|| {
        let results = admin.create_topics(&[NewTopic::new(topic, 1, 3)], PATIENCE).unwrap();
        results.iter().all(|(_, result)| result.is_ok())
    });
    assert!(created, "{topic} is there again");
}

fn is_recreated(event: &ConsumerEvent, topic: &str) -> bool {
    matches!(event, ConsumerEvent::TopicRecreated(recreated)
        if *recreated.name == *topic && recreated.old_id != recreated.new_id)
}

/// Polls until such an event comes; answers the numbers and events that came.
fn events_until(
    consumer: &Consumer,
    found: impl Fn(&ConsumerEvent) -> bool,
) -> (Vec<u64>, Vec<ConsumerEvent>) {
    let mut got = Vec::new();
    let mut events = Vec::new();
    let began = Instant::now();
    while !events.iter().any(&found) {
        assert!(began.elapsed() < PATIENCE, "only {events:?} came, and {got:?}");
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
    producer.close(PATIENCE).unwrap();
}

/// Polls until so many records are there.
fn read(consumer: &Consumer, count: usize) -> Vec<u64> {
    let mut got = Vec::new();
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < PATIENCE, "of {count} records only {got:?} came");
        got.extend(numbers(&consumer.poll(Duration::from_millis(500)).unwrap()));
    }
    got
}

fn numbers(records: &Records) -> Vec<u64> {
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    records.iter().map(|message| number(message.value().unwrap())).collect()
}
