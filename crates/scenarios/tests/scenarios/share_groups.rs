//! Share consumers: records are acquired one by one, and acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::{Duration, Instant},
};

use ottla::{
    AcknowledgeOutcome, AcknowledgeType, Admin, ConfigChange, ConfigResource, ErrorCode, ErrorKind, Record,
    ShareConsumer, ShareRecord,
};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, eventually, not_checked};

ottla_scenarios::run_on_all!(
    accepted_records_are_not_delivered_again,
    released_records_are_delivered_again_and_rejected_ones_are_not,
    dropped_records_are_released,
    closed_consumer_leaves_its_records_to_others,
    members_share_the_records_of_all_leaders,
    renewed_record_still_needs_an_acknowledgement,
    record_comes_back_after_its_delay,
    close_accepts_what_the_application_has,
    poll_keeps_a_strict_limit,
    bad_calls_are_refused,
    group_decides_whether_uncommitted_records_come,
);

ottla_scenarios::run_on_embedded!(
    acknowledgements_of_a_lost_connection_are_reported,
    session_that_the_broker_forgot_is_opened_again,
    commit_takes_at_most_two_round_trips,
    three_leaders_give_2_5_times_the_records_of_one,
);

/// Makes the share group start at the beginning of its topics.
fn start_at_the_beginning(backend: &Backend, group: &str) {
    let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
    let changes = vec![ConfigChange::set("share.auto.offset.reset", "earliest")];
    let changed = admin
        .incremental_alter_configs(&vec![(ConfigResource::group(group), changes)], TIMEOUT)
        .expect("the call succeeds");
    changed.into_iter().for_each(|(_, result)| result.expect("the property is known"));
}

pub(crate) fn consumer(backend: &Backend, group: &str) -> ShareConsumer {
    consumer_with(backend, group, &[])
}

fn consumer_with(backend: &Backend, group: &str, properties: &[(&str, &str)]) -> ShareConsumer {
    let config = backend.config(&[&[("group.id", group), ("client.id", "share")], properties].concat());
    let consumer = ShareConsumer::new(&config).expect("the configuration is right");
    consumer.subscribe(&[group]).expect("it can subscribe");
    consumer
}

/// Creates a topic, writes the numbers `0..count` to it in turn of its partitions, and returns its name, which is also
/// that of the group.
pub(crate) fn topic_with_numbers(backend: &Backend, partitions: i32, count: usize) -> String {
    let topic = backend.topic(partitions);
    write_numbers(backend, &topic, partitions, 0..count);
    start_at_the_beginning(backend, &topic);
    topic
}

/// Writes numbers to a topic in turn of its partitions.
fn write_numbers(backend: &Backend, topic: &str, partitions: i32, numbers: Range<usize>) {
    let producer = backend.producer(&[]);
    for number in numbers {
        let text = number.to_string();
        let record = Record::new().value(&text).partition(number as i32 % partitions);
        producer.send(topic, record).expect("there is room");
    }
    producer.flush(TIMEOUT).expect("all are written");
    producer.close(TIMEOUT).expect("it closes");
}

pub(crate) fn number(record: &ShareRecord) -> usize {
    let text = std::str::from_utf8(record.value().expect("it has a value")).expect("it is text");
    text.parse().expect("it is a number")
}

/// Polls until `count` records have come.
pub(crate) fn poll(consumer: &ShareConsumer, count: usize) -> Vec<ShareRecord> {
    let mut records = Vec::new();
    let polled = eventually(|| {
        records.extend(consumer.poll(Duration::from_millis(200)).expect("the poll succeeds"));
        records.len() >= count
    });
    assert!(polled, "{} of {count} records; event: {:?}", records.len(), consumer.poll_event());
    records
}

pub(crate) fn assert_no_records(consumer: &ShareConsumer) {
    for _ in 0..4 {
        let records = consumer.poll(Duration::from_millis(300)).expect("the poll succeeds");
        let numbers: Vec<_> =
            records.iter().map(|record| (number(record), record.delivery_count())).collect();
        assert!(records.is_empty(), "{numbers:?}");
    }
}

pub(crate) fn commit(consumer: &ShareConsumer) {
    let committed = consumer.commit_sync(TIMEOUT).expect("the commit has an outcome");
    assert!(!committed.partitions.is_empty());
    committed.into_result().expect("the broker accepts all");
}

fn accepted_records_are_not_delivered_again(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 10);
    let first = consumer(backend, &topic);
    let records = poll(&first, 10);
    assert_eq!(records.iter().map(number).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record.delivery_count() == 1));
    assert!(records.iter().all(|record| record.lock_remaining() > Duration::from_secs(5)));
    records.into_iter().for_each(|record| record.accept().expect("it is open"));
    commit(&first);
    assert_no_records(&first);
    first.close(TIMEOUT).expect("it closes");
    let second = consumer(backend, &topic);
    assert_no_records(&second);
    second.close(TIMEOUT).expect("it closes");
}

/// The broker filters the records of transactions: members have no list of aborted ones.
fn group_decides_whether_uncommitted_records_come(backend: &Backend) {
    for (level, expected) in [("read_committed", vec![0, 2]), ("read_uncommitted", vec![0, 1, 2])] {
        let topic = topic_with_numbers(backend, 1, 0);
        let admin = Admin::new(&backend.config(&[])).expect("the configuration is right");
        let changes = vec![ConfigChange::set("share.isolation.level", level)];
        let changed = admin
            .incremental_alter_configs(&vec![(ConfigResource::group(&topic), changes)], TIMEOUT)
            .expect("the call succeeds");
        changed.into_iter().for_each(|(_, result)| result.expect("the property is known"));
        let producer = backend.producer(&[("transactional.id", &topic)]);
        producer.init_transactions(TIMEOUT).expect("it is ready");
        for index in 0..3 {
            let transaction = producer.begin().expect("it begins");
            let text = index.to_string();
            let record = Record::new().value(&text).partition(0);
            producer.send(&topic, record).expect("there is room");
            producer.flush(TIMEOUT).expect("it is written");
            match index {
                1 => transaction.abort(TIMEOUT).expect("it is aborted"),
                _ => transaction.commit(TIMEOUT).expect("it is committed"),
            }
        }
        let consumer = consumer(backend, &topic);
        let mut records = poll(&consumer, expected.len());
        records.extend(consumer.poll(Duration::from_millis(500)).expect("the poll succeeds"));
        assert_eq!(records.iter().map(number).collect::<Vec<_>>(), expected, "{level}");
        records.into_iter().for_each(|record| record.accept().expect("it is open"));
        commit(&consumer);
        consumer.close(TIMEOUT).expect("it closes");
    }
}

fn released_records_are_delivered_again_and_rejected_ones_are_not(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 4);
    let consumer = consumer(backend, &topic);
    let mut records = poll(&consumer, 4).into_iter();
    let mut next = || records.next().expect("there are 4");
    next().accept().expect("it is open");
    next().release().expect("it is open");
    next().reject().expect("it is open");
    next().release().expect("it is open");
    commit(&consumer);
    let again = poll(&consumer, 2);
    let shown: Vec<_> = again.iter().map(|record| (number(record), record.delivery_count())).collect();
    assert_eq!(shown, [(1, 2), (3, 2)]);
    again.into_iter().for_each(|record| record.accept().expect("it is open"));
    commit(&consumer);
    assert_no_records(&consumer);
    consumer.close(TIMEOUT).expect("it closes");
}

fn dropped_records_are_released(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 3);
    let consumer = consumer(backend, &topic);
    drop(poll(&consumer, 3));
    // The next poll sends the acknowledgements.
    let again = poll(&consumer, 3);
    assert!(again.iter().all(|record| record.delivery_count() == 2), "{again:?}");
    again.into_iter().for_each(|record| record.accept().expect("it is open"));
    consumer.commit_async().expect("it is open");
    let mut outcomes = Vec::new();
    let acknowledged = |outcomes: &[AcknowledgeOutcome]| -> i64 {
        outcomes.iter().flat_map(|outcome| &outcome.offsets).map(|(first, last)| last - first + 1).sum()
    };
    assert!(eventually(|| {
        outcomes.extend(consumer.take_outcomes());
        acknowledged(&outcomes) == 6
    }));
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
    consumer.close(TIMEOUT).expect("it closes");
}

fn closed_consumer_leaves_its_records_to_others(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 6);
    let first = consumer(backend, &topic);
    let second = consumer(backend, &topic);
    let mut held = poll(&first, 6).into_iter();
    for _ in 0..2 {
        held.next().expect("there are 6").accept().expect("it is open");
    }
    // The accepted ones are sent with the end of the session, and the rest is released, as long before its locks run out.
    let began = Instant::now();
    first.close(TIMEOUT).expect("it closes");
    let left = poll(&second, 4);
    assert!(began.elapsed() < Duration::from_secs(14), "the locks did not have to run out");
    assert_eq!(left.iter().map(number).collect::<Vec<_>>(), [2, 3, 4, 5]);
    left.into_iter().for_each(|record| record.accept().expect("it is open"));
    second.close(TIMEOUT).expect("it closes");
    drop(held);
}

fn members_share_the_records_of_all_leaders(backend: &Backend) {
    const COUNT: usize = 3_000;
    let topic = topic_with_numbers(backend, 6, COUNT);
    let members = [consumer(backend, &topic), consumer(backend, &topic)];
    let mut accepted = BTreeMap::new();
    let done = eventually(|| {
        for consumer in &members {
            for record in consumer.poll(Duration::from_millis(50)).expect("the poll succeeds") {
                *accepted.entry(number(&record)).or_insert(0) += 1;
                record.accept().expect("it is open");
            }
        }
        accepted.len() == COUNT
    });
    assert!(done, "{} of {COUNT}", accepted.len());
    let twice: BTreeSet<_> = accepted.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    for consumer in members {
        consumer.commit_sync(TIMEOUT).expect("it has an outcome").into_result().expect("all are accepted");
        let failed: Vec<_> =
            consumer.take_outcomes().into_iter().filter(|outcome| outcome.result.is_err()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        consumer.close(TIMEOUT).expect("it closes");
    }
}

fn renewed_record_still_needs_an_acknowledgement(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 1);
    let consumer = consumer(backend, &topic);
    let record = poll(&consumer, 1).pop().expect("there is one");
    record.renew().expect("it is open");
    let renewed = consumer.commit_sync(TIMEOUT).expect("it has an outcome").into_result();
    if let Err(error) = &renewed {
        // The group's configuration may forbid renewals.
        assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::INVALID_RECORD_STATE), "{error}");
        not_checked("acknowledgements after a renewal", "the group's configuration forbids renewals");
        return;
    }
    assert!(record.lock_remaining() > Duration::from_secs(5));
    record.accept().expect("a renewed record is open");
    commit(&consumer);
    assert_no_records(&consumer);
    consumer.close(TIMEOUT).expect("it closes");
}

fn record_comes_back_after_its_delay(backend: &Backend) {
    const DELAY: Duration = Duration::from_secs(1);
    let topic = topic_with_numbers(backend, 1, 2);
    let consumer = consumer(backend, &topic);
    let mut records = poll(&consumer, 2);
    let began = Instant::now();
    records.remove(0).release_after(DELAY).expect("it is open");
    records.remove(0).accept().expect("it is open");
    let again = poll(&consumer, 1).pop().expect("there is one");
    let waited = began.elapsed();
    assert!(waited >= DELAY && waited < DELAY + Duration::from_secs(10), "{waited:?}");
    assert_eq!((number(&again), again.delivery_count()), (0, 2));
    again.accept().expect("it is open");
    commit(&consumer);
    consumer.close(TIMEOUT).expect("it closes");
}

fn close_accepts_what_the_application_has(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 4);
    let first = consumer(backend, &topic);
    let second = consumer(backend, &topic);
    let mut held = poll(&first, 4);
    held.remove(3).release().expect("it is open");
    first.close_with(AcknowledgeType::Accept, TIMEOUT).expect("it closes");
    let left = poll(&second, 1);
    assert_eq!(left.iter().map(number).collect::<Vec<_>>(), [3]);
    left.into_iter().for_each(|record| record.accept().expect("it is open"));
    commit(&second);
    assert_no_records(&second);
    second.close(TIMEOUT).expect("it closes");
}

fn poll_keeps_a_strict_limit(backend: &Backend) {
    const COUNT: usize = 100;
    let topic = topic_with_numbers(backend, 2, COUNT);
    let strict = [("share.acquire.mode", "record_limit"), ("max.poll.records", "7")];
    let consumer = consumer_with(backend, &topic, &strict);
    let mut seen = BTreeSet::new();
    let done = eventually(|| {
        let records = consumer.poll(Duration::from_millis(200)).expect("the poll succeeds");
        assert!(records.len() <= 7, "{}", records.len());
        seen.extend(records.iter().map(number));
        records.accept_all();
        seen.len() == COUNT
    });
    assert!(done, "{}", seen.len());
    consumer.close(TIMEOUT).expect("it closes");
}

fn bad_calls_are_refused(backend: &Backend) {
    let kind = |result: ottla::Result<()>| result.expect_err("it is refused").kind();
    let without = ShareConsumer::new(&backend.config(&[])).map(|_| ());
    assert_eq!(kind(without), ErrorKind::InvalidArgument);
    let consumer =
        ShareConsumer::new(&backend.config(&[("group.id", "g")])).expect("the configuration is right");
    assert_eq!(kind(consumer.poll(Duration::ZERO).map(|_| ())), ErrorKind::State);
    assert_eq!(kind(consumer.subscribe(&[] as &[&str])), ErrorKind::InvalidArgument);
    assert_eq!(kind(consumer.subscribe(&[""])), ErrorKind::InvalidArgument);
    assert_eq!(consumer.commit_sync(TIMEOUT).expect("there is nothing to do").partitions, []);
    consumer.close(TIMEOUT).expect("it closes");
    consumer.close(TIMEOUT).expect("it closes again");
    assert_eq!(kind(consumer.subscribe(&["t"])), ErrorKind::Closed);
    assert_eq!(kind(consumer.commit_async()), ErrorKind::Closed);
}

fn acknowledgements_of_a_lost_connection_are_reported(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 5);
    let consumer = consumer(backend, &topic);
    let records = poll(&consumer, 5);
    backend.control(|control| {
        control.inject(Fault::new(FaultAction::LoseResponse).api(ApiKey::ShareAcknowledge).times(1));
    });
    records.into_iter().for_each(|record| record.accept().expect("it is open"));
    let committed = consumer.commit_sync(TIMEOUT).expect("it has an outcome");
    let error = committed.into_result().expect_err("the connection was lost");
    assert_eq!(error.kind(), ErrorKind::Disconnected, "{error}");
    // The broker has released them with the connection, or has accepted them before it broke.
    let again = consumer.poll(Duration::from_secs(2)).expect("the poll succeeds");
    assert!(again.is_empty() || again.len() == 5, "{again:?}");
    again.accept_all();
    consumer.close(TIMEOUT).expect("it closes");
}

fn session_that_the_broker_forgot_is_opened_again(backend: &Backend) {
    let topic = topic_with_numbers(backend, 1, 5);
    let consumer = consumer(backend, &topic);
    let records = poll(&consumer, 5);
    backend.control(|control| {
        let forgets = FaultAction::Error(ErrorCode::SHARE_SESSION_NOT_FOUND);
        control.inject(Fault::new(forgets).api(ApiKey::ShareAcknowledge).times(1));
    });
    records.into_iter().for_each(|record| record.accept().expect("it is open"));
    let error = consumer.commit_sync(TIMEOUT).expect("it has an outcome").into_result();
    let error = error.expect_err("the session is lost");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::SHARE_SESSION_NOT_FOUND), "{error}");
    // A session that replaces another one does not release its records: Kafka keeps them until their lock ends.
    write_numbers(backend, &topic, 1, 5..10);
    let new = poll(&consumer, 5);
    assert_eq!(new.iter().map(number).collect::<Vec<_>>(), (5..10).collect::<Vec<_>>());
    new.into_iter().for_each(|record| record.accept().expect("it is open"));
    commit(&consumer);
    consumer.close(TIMEOUT).expect("it closes");
}

/// Makes all responses about records of share groups this late.
fn slow_down(backend: &Backend, round_trip: Duration) {
    for api in [ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
        backend.control(|control| control.inject(Fault::new(FaultAction::Delay(round_trip)).api(api)));
    }
}

fn commit_takes_at_most_two_round_trips(backend: &Backend) {
    const ROUND_TRIP: Duration = Duration::from_millis(700);
    let mut times = Vec::new();
    let topic = topic_with_numbers(backend, 1, 60);
    let strict = [("share.acquire.mode", "record_limit"), ("max.poll.records", "10")];
    let consumer = consumer_with(backend, &topic, &strict);
    poll(&consumer, 10).into_iter().for_each(|record| record.accept().expect("it is open"));
    slow_down(backend, ROUND_TRIP);
    for _ in 0..3 {
        let records = consumer.poll(TIMEOUT).expect("the poll succeeds");
        assert_eq!(records.len(), 10);
        records.into_iter().for_each(|record| record.accept().expect("it is open"));
        let began = Instant::now();
        let committed = consumer.commit_sync(TIMEOUT).expect("it has an outcome");
        times.push(began.elapsed());
        committed.into_result().expect("the broker accepts all");
    }
    // A busy machine may delay one of them.
    times.sort();
    assert!(times[1] < ROUND_TRIP * 3, "{times:?}");
    consumer.close(TIMEOUT).expect("it closes");
}

/// Returns the records per second of a member whose brokers take a while for each response.
fn records_per_second(backend: &Backend, partitions: i32, count: usize) -> f64 {
    let topic = topic_with_numbers(backend, partitions, count);
    let strict = [("share.acquire.mode", "record_limit"), ("max.poll.records", "20")];
    let consumer = consumer_with(backend, &topic, &strict);
    // All sessions are open when the time starts.
    let first = poll(&consumer, 20 * partitions as usize);
    let mut left = count - first.len();
    let measured = left as f64;
    first.into_iter().for_each(|record| record.accept().expect("it is open"));
    let began = Instant::now();
    let done = eventually(|| {
        let records = consumer.poll(Duration::from_secs(1)).expect("the poll succeeds");
        left -= records.len();
        records.accept_all();
        left == 0
    });
    assert!(done, "{left} are left");
    let rate = measured / began.elapsed().as_secs_f64();
    consumer.close(TIMEOUT).expect("it closes");
    rate
}

fn three_leaders_give_2_5_times_the_records_of_one(backend: &Backend) {
    slow_down(backend, Duration::from_millis(150));
    // Another program may take the processor during an attempt.
    let mut rates = Vec::new();
    let is_faster = (0..3).any(|_| {
        let (one, three) = (records_per_second(backend, 1, 240), records_per_second(backend, 3, 720));
        rates.push((one, three));
        three >= one * 2.5
    });
    assert!(is_faster, "records per second of one and three: {rates:?}");
}
