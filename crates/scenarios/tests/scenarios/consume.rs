//! Records are read as they were written, once and in order, from the requested position.

mod faults;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

use ottla::{Consumer, ConsumerEvent, ErrorCode, ErrorKind, Offset, Record, Records};
use ottla_embedded_broker::{BrokerId, Fault, FaultAction, Tail};
use ottla_protocol::{
    api::ApiKey,
    compress::Compression,
    generated::{
        find_coordinator::FindCoordinatorRequest,
        offset_commit::{OffsetCommitRequest, request as offset_commit},
    },
};
use ottla_scenarios::{Backend, TIMEOUT, eventually, raw::RawClient};

ottla_scenarios::run_on_all!(
    consumer_reads_from_the_beginning_and_then_new_records,
    consumer_starts_at_the_requested_offset,
    timestamp_finds_the_first_record_at_or_after_it,
    every_codec_is_read,
    keys_nulls_and_headers_are_consumed_unchanged,
    seek_delivers_no_earlier_records_afterwards,
    paused_partition_delivers_no_record_and_loses_none,
    partition_end_is_reported_once_until_new_records_arrive,
    single_and_batch_polls_return_the_same_records,
    positions_and_watermarks_are_reported,
    unassigned_partition_delivers_no_record,
    partitions_are_assigned_and_unassigned_one_by_one,
    offset_out_of_range_is_reset_as_configured,
    reset_by_duration_continues_at_records_of_that_time,
    large_record_is_read_with_small_limits,
    many_partitions_are_read_by_one_consumer,
    two_consumers_read_the_same,
    consumer_without_partitions_delivers_no_record,
    polled_records_outlive_the_consumer,
    closed_consumer_returns_an_error,
    consumer_starts_at_the_committed_offset,
);

fn consumer_reads_from_the_beginning_and_then_new_records(backend: &Backend) {
    let topic = backend.topic(3);
    write(backend, &topic, 3, 0..300);
    let consumer = consumer(backend, &[]);
    consumer.assign(&all(&topic, 3, Offset::Beginning)).unwrap();
    assert_eq!(read(&consumer, 300), in_partitions(3, 0..300));
    write(backend, &topic, 3, 300..450);
    assert_eq!(read(&consumer, 150), in_partitions(3, 300..450));
    assert!(consumer.poll(Duration::from_millis(100)).unwrap().is_empty());
}

fn consumer_starts_at_the_requested_offset(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..100);
    for (from, first) in [
        (Offset::Beginning, 0),
        (Offset::At(0), 0),
        (Offset::At(37), 37),
        (Offset::Tail(10), 90),
        (Offset::Tail(1000), 0),
        (Offset::At(99), 99),
    ] {
        let consumer = consumer(backend, &[]);
        consumer.assign(&[(&topic, 0, from)]).unwrap();
        assert_eq!(read(&consumer, 100 - first as usize), in_partitions(1, first..100), "{from:?}");
    }
    for from in [Offset::End, Offset::Tail(0), Offset::At(100), Offset::Timestamp(i64::MAX / 2)] {
        let consumer = consumer(backend, &[("enable.partition.eof", "true")]);
        consumer.assign(&[(&topic, 0, from)]).unwrap();
        let end = next_event(&consumer);
        assert!(matches!(end, ConsumerEvent::EndOfPartition { offset: 100, .. }), "{from:?}: {end:?}");
    }
}

fn timestamp_finds_the_first_record_at_or_after_it(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("batch.num.messages", "3")]);
    let base = 1_700_000_000_000;
    for n in 0..20 {
        producer.send(&topic, Record::new().value(&n.to_string()).timestamp(base + n * 1000)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    for (time, first) in [(base - 1, 0), (base, 0), (base + 1, 1), (base + 7000, 7), (base + 18_500, 19)] {
        let consumer = consumer(backend, &[]);
        consumer.assign(&[(&topic, 0, Offset::Timestamp(time))]).unwrap();
        assert_eq!(read(&consumer, 20 - first as usize), in_partitions(1, first..20), "{}", time - base);
    }
}

fn every_codec_is_read(backend: &Backend) {
    for codec in Compression::ALL {
        let topic = backend.topic(1);
        let producer = backend.producer(&[("compression.type", &format!("{codec:?}").to_lowercase())]);
        for n in 0..500 {
            let value = format!("{n} {}", "compressible ".repeat(n % 50));
            producer.send(&topic, Record::new().value(&value)).unwrap();
        }
        producer.flush(TIMEOUT).unwrap();
        let consumer = consumer(backend, &[]);
        consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
        assert_eq!(read(&consumer, 500), in_partitions(1, 0..500), "{codec:?}");
    }
}

fn keys_nulls_and_headers_are_consumed_unchanged(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    producer.send(&topic, Record::new().timestamp(1_700_000_000_123)).unwrap();
    let record = Record::new().key(b"").value(b"v").header("a", "1").null_header("a").header("", "");
    producer.send(&topic, record).unwrap();
    producer.flush(TIMEOUT).unwrap();
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    let first = consumer.next(TIMEOUT).unwrap().unwrap();
    let second = consumer.next(TIMEOUT).unwrap().unwrap();
    assert_eq!((first.topic(), first.partition(), first.offset()), (&*topic, 0, 0));
    assert_eq!((first.key(), first.value(), first.timestamp()), (None, None, 1_700_000_000_123));
    assert_eq!(first.headers().count(), 0);
    assert_eq!((second.key(), second.value(), second.offset()), (Some(&b""[..]), Some(&b"v"[..]), 1));
    let headers: Vec<_> = second.headers().map(|header| (header.key, header.value)).collect();
    assert_eq!(headers, [(&b"a"[..], Some(&b"1"[..])), (b"a", None), (b"", Some(b""))]);
}

fn seek_delivers_no_earlier_records_afterwards(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..500);
    let consumer = consumer(backend, &[]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    for round in 0..20 {
        let to = (round * 97) % 500;
        assert_eq!(consumer.seek(&topic, 0, Offset::At(to), TIMEOUT).unwrap(), to);
        let message = consumer.next(TIMEOUT).unwrap().unwrap();
        assert_eq!(message.offset(), to);
        assert_eq!(consumer.position(&topic, 0), Some(to + 1));
    }
    assert_eq!(consumer.seek(&topic, 0, Offset::Tail(5), TIMEOUT).unwrap(), 495);
    assert_eq!(read(&consumer, 5), in_partitions(1, 495..500));
    assert_eq!(consumer.seek(&topic, 0, Offset::Beginning, TIMEOUT).unwrap(), 0);
    assert_eq!(read(&consumer, 500), in_partitions(1, 0..500));
    let error = consumer.seek("another", 0, Offset::At(1), TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("another"), "{error}");
}

fn paused_partition_delivers_no_record_and_loses_none(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 2, 0..400);
    let consumer = consumer(backend, &[]);
    consumer.assign(&all(&topic, 2, Offset::Beginning)).unwrap();
    let mut first = Vec::new();
    while first.len() < 50 {
        first.extend(
            consumer.next(TIMEOUT).unwrap().map(|message| (message.partition(), number(message.value()))),
        );
    }
    consumer.pause(&[(&topic, 0)]).unwrap();
    let mut got: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    first.into_iter().for_each(|(partition, n)| got.entry(partition).or_default().push(n));
    let paused_at = got.get(&0).map_or(0, Vec::len);
    while got.get(&1).map_or(0, Vec::len) < 200 {
        let records = consumer.poll(TIMEOUT).unwrap();
        assert!(!records.is_empty());
        add(&records, &mut got);
    }
    assert_eq!(got.get(&0).map_or(0, Vec::len), paused_at, "nothing of a paused partition comes");
    assert!(consumer.poll(Duration::from_millis(100)).unwrap().is_empty());
    consumer.resume(&[(&topic, 0)]).unwrap();
    while got.values().map(Vec::len).sum::<usize>() < 400 {
        let records = consumer.poll(TIMEOUT).unwrap();
        assert!(!records.is_empty());
        add(&records, &mut got);
    }
    assert_eq!(got, in_partitions(2, 0..400));
}

fn partition_end_is_reported_once_until_new_records_arrive(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..10);
    let consumer = consumer(backend, &[("enable.partition.eof", "true")]);
    consumer.assign(&[(&topic, 0, Offset::Beginning)]).unwrap();
    for end in [10, 15] {
        let mut records = 0;
        let found = loop {
            let batch = consumer.poll(TIMEOUT).unwrap();
            assert!(!batch.is_empty(), "the end of {topic} is reported");
            records += batch.len();
            if let Some(event) = batch.events().first() {
                break event.clone();
            }
        };
        assert_eq!(records, if end == 10 { 10 } else { 5 });
        let expected = |event: &ConsumerEvent| matches!(event, ConsumerEvent::EndOfPartition { topic: t, partition: 0, offset, .. } if **t == *topic && *offset == end);
        assert!(expected(&found), "{found:?}");
        assert!(consumer.poll(Duration::from_millis(200)).unwrap().is_empty(), "it is reported once");
        write(backend, &topic, 1, 10..15);
    }
    let silent = consumer_at(backend, &[], &topic, 1);
    read(&silent, 20);
    assert!(silent.poll(Duration::from_millis(100)).unwrap().is_empty(), "nobody asked for it");
}

fn single_and_batch_polls_return_the_same_records(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 2, 0..200);
    let consumer = consumer_at(backend, &[], &topic, 2);
    let mut got = BTreeMap::new();
    while got.values().map(Vec::len).sum::<usize>() < 200 {
        for _ in 0..7 {
            if let Some(message) = consumer.next(Duration::ZERO).unwrap() {
                got.entry(message.partition()).or_insert_with(Vec::new).push(number(message.value()));
            }
        }
        if got.len() == 1 {
            add(&consumer.poll(Duration::from_millis(10)).unwrap(), &mut got);
        }
    }
    assert_eq!(got, in_partitions(2, 0..200));
}

fn positions_and_watermarks_are_reported(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 1, 0..25);
    let consumer = consumer(backend, &[]);
    assert_eq!(consumer.watermarks(&topic, 0, TIMEOUT).unwrap(), (0, 25));
    assert_eq!(consumer.watermarks(&topic, 1, TIMEOUT).unwrap(), (0, 0));
    assert_eq!(consumer.position(&topic, 0), None);
    consumer.assign(&[(&topic, 0, Offset::At(5))]).unwrap();
    assert_eq!(consumer.assignment(), [(&topic, 0).into()]);
    read(&consumer, 20);
    assert_eq!(consumer.position(&topic, 0), Some(25));
    assert_eq!(consumer.cached_watermarks(&topic, 0), Some((0, 25)));
    let error = consumer.watermarks(&topic, 7, TIMEOUT).unwrap_err();
    assert!(error.to_string().contains(&format!("{topic} [7]")), "{error}");
}

fn unassigned_partition_delivers_no_record(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 2, 0..100);
    let consumer = consumer_at(backend, &[], &topic, 2);
    consumer.next(TIMEOUT).unwrap().unwrap();
    consumer.assign(&[(&topic, 1, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 50)[&1].len(), 50);
    assert!(consumer.poll(Duration::from_millis(100)).unwrap().is_empty());
    consumer.assign(&all(&topic, 0, Offset::Beginning)).unwrap();
    write(backend, &topic, 2, 100..120);
    assert!(consumer.poll(Duration::from_millis(200)).unwrap().is_empty());
    assert_eq!(consumer.assignment(), []);
}

fn partitions_are_assigned_and_unassigned_one_by_one(backend: &Backend) {
    let topic = backend.topic(3);
    write(backend, &topic, 3, 0..300);
    let consumer = consumer(backend, &[]);
    let mut got = BTreeMap::new();
    for partition in 0..3 {
        consumer.incremental_assign(&[(&topic, partition, Offset::Beginning)]).unwrap();
        while got.get(&partition).map_or(0, Vec::len) < 100 {
            let records = consumer.poll(TIMEOUT).unwrap();
            assert!(!records.is_empty());
            add(&records, &mut got);
        }
    }
    assert_eq!(got, in_partitions(3, 0..300));
    consumer.incremental_unassign(&[(&topic, 1)]).unwrap();
    assert!(consumer.incremental_unassign(&[(&topic, 1)]).is_err());
    write(backend, &topic, 3, 300..330);
    let more = read(&consumer, 20);
    assert!(more.contains_key(&0) && more.contains_key(&2) && !more.contains_key(&1), "{more:?}");
}

fn offset_out_of_range_is_reset_as_configured(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..30);
    let earliest = consumer(backend, &[("auto.offset.reset", "earliest")]);
    earliest.assign(&[(&topic, 0, Offset::At(1000))]).unwrap();
    assert_eq!(read(&earliest, 30), in_partitions(1, 0..30));
    let latest = consumer(backend, &[("auto.offset.reset", "latest"), ("enable.partition.eof", "true")]);
    latest.assign(&[(&topic, 0, Offset::At(1000))]).unwrap();
    let reported = next_event(&latest).to_string();
    let expected = format!("{topic} [0]: there is no offset 1000; it goes on at the end (auto.offset.reset)");
    assert_eq!(reported, expected);
    assert!(matches!(next_event(&latest), ConsumerEvent::EndOfPartition { offset: 30, .. }));
    let error = consumer(backend, &[("auto.offset.reset", "error")]);
    error.assign(&[(&topic, 0, Offset::At(1000))]).unwrap();
    let ConsumerEvent::Error(reported) = next_event(&error) else { panic!("an error") };
    assert_eq!(reported.kind(), ErrorKind::OffsetReset);
    assert!(reported.to_string().contains(&format!("{topic} [0]")), "{reported}");
    // The application may continue anywhere.
    error.seek(&topic, 0, Offset::At(20), TIMEOUT).unwrap();
    assert_eq!(read(&error, 10), in_partitions(1, 20..30));
}

fn reset_by_duration_continues_at_records_of_that_time(backend: &Backend) {
    let topic = backend.topic(1);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let producer = backend.producer(&[("batch.num.messages", "3")]);
    for n in 0..20 {
        let age = Duration::from_secs(if n < 12 { 2 * 3600 } else { 60 });
        let timestamp = (now - age).as_millis() as i64;
        producer.send(&topic, Record::new().value(&n.to_string()).timestamp(timestamp)).unwrap();
    }
    producer.flush(TIMEOUT).unwrap();
    for (reset, first) in [("by_duration:PT1H", 12), ("by_duration:P1D", 0)] {
        let consumer = consumer(backend, &[("auto.offset.reset", reset)]);
        consumer.assign(&[(&topic, 0, Offset::At(1000))]).unwrap();
        assert_eq!(read(&consumer, 20 - first as usize), in_partitions(1, first..20), "{reset}");
    }
}

fn large_record_is_read_with_small_limits(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[]);
    let value = vec![b'x'; 700_000];
    for n in 0..3u8 {
        producer.send(&topic, Record::new().key(&[n]).value(&value)).unwrap();
        producer.flush(TIMEOUT).unwrap();
    }
    let limits = [
        ("fetch.message.max.bytes", "1000"),
        ("fetch.max.bytes", "1000000"),
        ("queued.max.messages.kbytes", "10"),
    ];
    let consumer = consumer_at(backend, &limits, &topic, 1);
    for n in 0..3u8 {
        let message = consumer.next(TIMEOUT).unwrap().unwrap();
        assert_eq!((message.key(), message.value().map(<[u8]>::len)), (Some(&[n][..]), Some(700_000)));
    }
}

fn many_partitions_are_read_by_one_consumer(backend: &Backend) {
    let topic = backend.topic(60);
    write(backend, &topic, 60, 0..3000);
    let consumer = consumer_at(backend, &[], &topic, 60);
    assert_eq!(read(&consumer, 3000), in_partitions(60, 0..3000));
}

fn two_consumers_read_the_same(backend: &Backend) {
    let topic = backend.topic(2);
    let consumers = [consumer_at(backend, &[], &topic, 2), consumer_at(backend, &[], &topic, 2)];
    write(backend, &topic, 2, 0..200);
    for consumer in &consumers {
        assert_eq!(read(consumer, 200), in_partitions(2, 0..200));
    }
}

fn consumer_without_partitions_delivers_no_record(backend: &Backend) {
    let consumer = consumer(backend, &[]);
    let began = Instant::now();
    assert!(consumer.poll(Duration::from_millis(100)).unwrap().is_empty());
    assert!(consumer.next(Duration::from_millis(100)).unwrap().is_none());
    assert!(began.elapsed() >= Duration::from_millis(200));
}

fn polled_records_outlive_the_consumer(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 1, 0..50);
    let consumer = consumer_at(backend, &[], &topic, 1);
    let message = consumer.next(TIMEOUT).unwrap().unwrap();
    let records = consumer.poll(TIMEOUT).unwrap();
    consumer.close(TIMEOUT).unwrap();
    drop(consumer);
    assert_eq!(message.value(), Some(&b"0"[..]));
    assert_eq!(records.iter().next().unwrap().value(), Some(&b"1"[..]));
}

fn closed_consumer_returns_an_error(backend: &Backend) {
    let topic = backend.topic(1);
    let consumer = consumer_at(backend, &[], &topic, 1);
    let waiting = consumer.clone();
    let poll = std::thread::spawn(move || waiting.poll(TIMEOUT));
    std::thread::sleep(Duration::from_millis(100));
    consumer.close(TIMEOUT).unwrap();
    let began = Instant::now();
    assert_eq!(
        poll.join().unwrap().unwrap_err().kind(),
        ErrorKind::Closed,
        "the waiting poll ends with an error"
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(consumer.poll(TIMEOUT).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(consumer.next(TIMEOUT).unwrap_err().kind(), ErrorKind::Closed);
}

fn consumer_starts_at_the_committed_offset(backend: &Backend) {
    let topic = backend.topic(3);
    write(backend, &topic, 3, 0..90);
    let group = format!("group-of-{topic}");
    commit(backend, &group, &topic, &[(0, 10), (2, 30)]);
    let consumer = consumer(backend, &[("group.id", &group), ("auto.offset.reset", "earliest")]);
    consumer.assign(&all(&topic, 3, Offset::Committed)).unwrap();
    let got = read(&consumer, 20 + 30);
    let expected = |partition: u64, from: u64| (from..30).map(|n| n * 3 + partition).collect::<Vec<_>>();
    assert_eq!((&got[&0], &got[&1], got.get(&2)), (&expected(0, 10), &expected(1, 0), None));
    assert_eq!(consumer.seek(&topic, 2, Offset::Committed, TIMEOUT).unwrap(), 30);
    let without_reset = self::consumer(backend, &[("group.id", &group), ("auto.offset.reset", "error")]);
    without_reset.assign(&[(&topic, 1, Offset::Committed)]).unwrap();
    let ConsumerEvent::Error(error) = next_event(&without_reset) else { panic!("an error") };
    assert_eq!(error.kind(), ErrorKind::OffsetReset, "{error}");
}

/// Commits offsets for a group without members.
fn commit(backend: &Backend, group: &str, topic: &str, offsets: &[(i32, i64)]) {
    let find = FindCoordinatorRequest {
        coordinator_keys: vec![group.to_owned()],
        ..FindCoordinatorRequest::default()
    };
    let partitions = offsets.iter().map(|(partition_index, committed_offset)| offset_commit::Partition {
        partition_index: *partition_index,
        committed_offset: *committed_offset,
        ..offset_commit::Partition::default()
    });
    let request = OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![offset_commit::Topic {
            name: topic.to_owned(),
            partitions: partitions.collect(),
            ..offset_commit::Topic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let committed = eventually(|| {
        let found = RawClient::connect(&backend.bootstrap_servers()).call(4, &find);
        let coordinator = &found.coordinators[0];
        if coordinator.error_code != ErrorCode::NONE {
            return false;
        }
        let address = format!("{}:{}", coordinator.host, coordinator.port);
        let response = RawClient::connect(&address).call(8, &request);
        response.topics[0].partitions.iter().all(|partition| partition.error_code == ErrorCode::NONE)
    });
    assert!(committed);
}

fn consumer(backend: &Backend, properties: &[(&str, &str)]) -> Consumer {
    Consumer::new(&backend.config(properties)).expect("the consumer's configuration is right")
}

/// Creates a consumer of all partitions of a topic from the beginning.
fn consumer_at(backend: &Backend, properties: &[(&str, &str)], topic: &str, partitions: i32) -> Consumer {
    let consumer = consumer(backend, properties);
    consumer.assign(&all(topic, partitions, Offset::Beginning)).unwrap();
    consumer
}

fn all(topic: &str, partitions: i32, from: Offset) -> Vec<(&str, i32, Offset)> {
    (0..partitions).map(|partition| (topic, partition, from)).collect()
}

/// Writes numbers, each to the partition of its remainder.
fn write(backend: &Backend, topic: &str, partitions: u64, numbers: std::ops::Range<u64>) {
    let producer = backend.producer(&[]);
    for n in numbers {
        let record = Record::new().partition((n % partitions) as i32);
        producer.send(topic, record.value(&n.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// Returns the numbers as [`write`] wrote them.
fn in_partitions(partitions: u64, numbers: std::ops::Range<u64>) -> BTreeMap<i32, Vec<u64>> {
    let mut all = BTreeMap::new();
    for n in numbers {
        all.entry((n % partitions) as i32).or_insert_with(Vec::new).push(n);
    }
    all
}

/// Polls until this number of records has arrived.
fn read(consumer: &Consumer, count: usize) -> BTreeMap<i32, Vec<u64>> {
    let mut got = BTreeMap::new();
    let began = Instant::now();
    while got.values().map(Vec::len).sum::<usize>() < count {
        assert!(began.elapsed() < TIMEOUT, "of {count} records only {got:?} came");
        add(&consumer.poll(Duration::from_millis(500)).unwrap(), &mut got);
    }
    got
}

fn add(records: &Records, to: &mut BTreeMap<i32, Vec<u64>>) {
    for message in records {
        to.entry(message.partition()).or_default().push(number(message.value()));
    }
}

fn number(value: Option<&[u8]>) -> u64 {
    let text = std::str::from_utf8(value.expect("a value")).expect("text");
    text.split(' ').next().unwrap_or("").parse().expect("a number")
}

fn errors_of(records: &Records) -> Vec<ottla::Error> {
    let errors = records.events().iter().filter_map(|event| match event {
        ConsumerEvent::Error(error) => Some(error.clone()),
        _ => None,
    });
    errors.collect()
}

/// Returns the next event; skips records before it.
fn next_event(consumer: &Consumer) -> ConsumerEvent {
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        if let Some(event) = consumer.poll(Duration::from_millis(500)).unwrap().events().first() {
            return event.clone();
        }
    }
    panic!("no event came");
}
