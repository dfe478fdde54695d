//! What happens to topics and partitions while somebody reads them: deleted, made anew, moved, cut off.

use std::time::{Duration, Instant};

use ottla::{Admin, Consumer, ConsumerEvent, ErrorKind, NewTopic, Offset, Record, Records};
use ottla_scenarios::{Backend, PATIENCE, eventually};

ottla_scenarios::run_on_all!(
    a_topic_that_was_made_anew_is_an_error_and_no_old_offset_is_used,
    a_topic_that_was_made_anew_is_read_from_its_beginning_if_so_configured,
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
    assert!(events.iter().any(|event| is_recreated(event, &topic)), "{events:?}");
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
