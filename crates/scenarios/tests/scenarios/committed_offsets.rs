//! Offsets that groups have committed: of topics that are recreated, and of single messages.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use ottla::{Consumer, ErrorCode, ErrorKind, GroupOffset, Offset, Record};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::api::ApiKey;
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    recreated_topic_is_not_resumed_at_the_old_offset,
    member_does_not_commit_offsets_of_the_old_topic_for_the_new_one,
    offset_that_was_made_for_the_old_topic_is_refused,
);

ottla_scenarios::run_on_embedded!(
    committed_offset_is_found_although_the_coordinator_learns_of_the_topic_late,
    member_commits_nothing_by_name_while_its_topic_is_deleted,
);

fn write(backend: &Backend, topic: &str, numbers: Range<u32>) {
    let producer = backend.producer(&[]);
    for number in numbers {
        producer.send(topic, Record::new().partition(0).value(&number.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// Polls until this number of records has arrived.
fn read(consumer: &Consumer, count: usize) -> Vec<u32> {
    let mut got = Vec::new();
    let began = Instant::now();
    while got.len() < count {
        assert!(began.elapsed() < TIMEOUT, "of {count} records only {got:?} came");
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
        got.extend(records.iter().map(|message| -> u32 { number(message.value().unwrap()) }));
    }
    got
}

fn consumer(backend: &Backend, group: &str, properties: &[(&str, &str)]) -> Consumer {
    let mut all = vec![("group.id", group), ("auto.offset.reset", "earliest")];
    all.extend(properties);
    Consumer::new(&backend.config(&all)).expect("the configuration is right")
}

fn recreated_topic_is_not_resumed_at_the_old_offset(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let first = consumer(backend, &topic, &[("enable.auto.commit", "false")]);
    first.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&first, 20).len(), 20);
    assert_eq!(first.commit(&[GroupOffset::new(&*topic, 0, 15)], TIMEOUT), Ok(vec![Ok(())]));
    first.close(TIMEOUT).unwrap();
    let second = consumer(backend, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&second, 5), [15, 16, 17, 18, 19], "the offset is resumed while the topic exists");
    second.unsubscribe(TIMEOUT).unwrap();
    second.close(TIMEOUT).unwrap();

    backend.recreate(&topic, 1);
    write(backend, &topic, 100..130);
    let third = consumer(backend, &topic, &[]);
    third.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&third, 30), (100..130).collect::<Vec<_>>());
}

fn member_does_not_commit_offsets_of_the_old_topic_for_the_new_one(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    // The consumer has no newer metadata by itself: it commits before it learns that the topic was recreated.
    let properties = [("topic.metadata.refresh.interval.ms", "100000"), ("fetch.wait.max.ms", "10000")];
    let member = consumer(backend, &topic, &properties);
    member.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&member, 20).len(), 20);
    backend.recreate(&topic, 1);
    write(backend, &topic, 100..130);
    member.close(TIMEOUT).unwrap();
    let next = consumer(backend, &topic, &[]);
    next.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&next, 30), (100..130).collect::<Vec<_>>(), "close committed nothing");
}

fn member_commits_nothing_by_name_while_its_topic_is_deleted(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    // What the consumer knows last is that the topic does not exist.
    let properties = [
        ("topic.metadata.refresh.interval.ms", "100000"),
        ("topic.metadata.refresh.fast.interval.ms", "2000"),
        ("auto.commit.interval.ms", "100000"),
        ("fetch.wait.max.ms", "10"),
    ];
    let member = consumer(backend, &topic, &properties);
    member.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&member, 20).len(), 20);
    backend.control(|control| {
        control.record_requests();
        control.delete_topic(&topic);
    });
    let is_known = || {
        backend.control(|control| control.requests().iter().any(|request| request.api == ApiKey::Metadata))
    };
    assert!(eventually(is_known), "the member learns of the deletion");
    backend.control(|control| control.create_topic(&topic, 1, 1)).unwrap();
    write(backend, &topic, 100..130);
    member.close(TIMEOUT).unwrap();
    let next = consumer(backend, &topic, &[]);
    next.subscribe(&[&topic]).unwrap();
    assert_eq!(read(&next, 30), (100..130).collect::<Vec<_>>(), "close committed nothing");
}

fn offset_that_was_made_for_the_old_topic_is_refused(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let properties = [("topic.metadata.refresh.interval.ms", "100000"), ("fetch.wait.max.ms", "10000")];
    let consumer = consumer(backend, &topic, &properties);
    consumer.assign(&[(&*topic, 0, Offset::Beginning)]).unwrap();
    assert_eq!(read(&consumer, 20).len(), 20);
    // A Fetch in flight would show the consumer the new topic before the commit is made.
    consumer.incremental_unassign(&[(&*topic, 0)]).unwrap();
    backend.recreate(&topic, 1);
    let results = consumer.commit(&[GroupOffset::new(&*topic, 0, 20)], TIMEOUT).unwrap();
    let error = results[0].as_ref().unwrap_err();
    let refused = [ErrorKind::TopicRecreated, ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_ID)];
    assert!(refused.contains(&error.kind()), "{error}");
    let committed = consumer.committed(&[(&*topic, 0)], TIMEOUT).unwrap();
    assert_eq!(committed, [Ok(None)]);
}

fn committed_offset_is_found_although_the_coordinator_learns_of_the_topic_late(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0..20);
    let first = consumer(backend, &topic, &[]);
    first.assign(&[(&*topic, 0, Offset::At(10))]).unwrap();
    assert_eq!(read(&first, 10).len(), 10);
    let late = |api| Fault::new(FaultAction::Error(ErrorCode::UNKNOWN_TOPIC_ID)).api(api).times(1);
    backend.control(|control| {
        control.inject(late(ApiKey::OffsetCommit));
        control.inject(late(ApiKey::OffsetFetch));
    });
    assert_eq!(first.commit(&[GroupOffset::new(&*topic, 0, 15)], TIMEOUT), Ok(vec![Ok(())]));
    first.assign(&[(&*topic, 0, Offset::Committed)]).unwrap();
    assert_eq!(read(&first, 5), [15, 16, 17, 18, 19]);
}
