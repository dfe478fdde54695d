//! Ways to process the records of a group: message by message, in batches, out of order, and partition by partition.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ottla::{
    Consumer, ConsumerEvent, ErrorKind, GroupEvent, Message, Offset, Rebalance, RebalanceKind,
    RebalanceListener, Record, TrackedMessage, TrackedMessages,
};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    processed_messages_and_batches_are_committed,
    message_of_a_revoked_partition_is_not_committed,
    message_of_a_recreated_topic_is_not_committed,
    unfinished_records_are_read_again,
    message_of_an_earlier_assignment_stores_nothing,
    tracked_messages_stop_at_the_limit,
    listener_is_called_by_polls_and_by_close,
    rebalance_waits_for_the_token_that_a_listener_keeps,
    receiver_of_rebalances_commits_during_close,
    revocation_of_close_is_returned_later_without_a_waiter,
    close_waits_a_bounded_time_for_the_application,
    partition_streams_end_with_the_assignment,
    partition_stream_and_polls_share_the_records,
);

ottla_scenarios::run_on_embedded!(missing_polls_are_announced_before_the_interval_is_over);

fn write(backend: &Backend, topic: &str, partition: i32, numbers: Range<u32>) {
    let producer = backend.producer(&[]);
    for number in numbers {
        producer.send(topic, Record::new().partition(partition).value(&number.to_string())).unwrap();
    }
    producer.close(TIMEOUT).unwrap();
}

/// A consumer in the group `group` that stores no offsets by itself.
fn consumer(backend: &Backend, group: &str, properties: &[(&str, &str)]) -> Consumer {
    let mut all = vec![
        ("group.id", group),
        ("auto.offset.reset", "earliest"),
        ("enable.auto.offset.store", "false"),
        ("topic.metadata.refresh.interval.ms", "500"),
    ];
    all.extend(properties);
    Consumer::new(&backend.config(&all)).expect("the configuration is right")
}

fn committed(consumer: &Consumer, topic: &str, partition: i32) -> Option<i64> {
    let committed = consumer.committed(&[(topic, partition)], TIMEOUT).unwrap().remove(0).unwrap();
    committed.map(|committed| committed.offset)
}

fn next(consumer: &Consumer) -> Message {
    consumer.next(TIMEOUT).unwrap().expect("a record comes")
}

fn processed_messages_and_batches_are_committed(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic]).unwrap();
    let first = next(&consumer);
    assert_eq!(committed(&consumer, &topic, 0), None);
    consumer.commit_message(&first, TIMEOUT).unwrap();
    assert_eq!(committed(&consumer, &topic, 0), Some(1));

    write(backend, &topic, 1, 10..13);
    let began = Instant::now();
    while committed(&consumer, &topic, 0) != Some(10) || committed(&consumer, &topic, 1) != Some(3) {
        assert!(began.elapsed() < TIMEOUT, "the batches are committed");
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        for (_, outcome) in consumer.commit_records(&records, TIMEOUT).unwrap() {
            outcome.unwrap();
        }
    }
    assert_eq!(consumer.commit_stored(TIMEOUT), Ok(Vec::new()), "nothing was stored");
}

fn message_of_a_revoked_partition_is_not_committed(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic]).unwrap();
    let message = next(&consumer);
    consumer.unsubscribe(TIMEOUT).unwrap();
    for outcome in [consumer.commit_message(&message, TIMEOUT), consumer.store_message(&message)] {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.context().partition), (ErrorKind::State, Some(0)), "{error}");
    }
    consumer.subscribe(&[&topic]).unwrap();
    assert_eq!(next(&consumer).offset(), message.offset(), "it comes again");
    assert_eq!(consumer.commit_message(&message, TIMEOUT).unwrap_err().kind(), ErrorKind::State);
}

fn message_of_a_recreated_topic_is_not_committed(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[("topic.recreate.policy", "reset")]);
    consumer.assign(&[(&*topic, 0, Offset::Beginning)]).unwrap();
    let message = next(&consumer);
    consumer.seek(&topic, 0, Offset::At(5), TIMEOUT).unwrap();
    consumer.store_message(&message).expect("a seek does not prevent commits");
    backend.recreate(&topic, 1);
    assert!(eventually(|| {
        let records = consumer.poll(Duration::from_millis(50)).unwrap();
        records.events().iter().any(|event| matches!(event, ConsumerEvent::TopicRecreated(_)))
    }));
    let error = consumer.commit_message(&message, TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TopicRecreated, "{error}");
    assert_eq!(consumer.commit_stored(TIMEOUT), Ok(Vec::new()), "what was stored is forgotten");
}

/// Takes this many messages.
fn take(messages: &TrackedMessages, count: usize) -> Vec<TrackedMessage> {
    (0..count).map(|_| messages.next(TIMEOUT).unwrap().expect("a message comes")).collect()
}

fn unfinished_records_are_read_again(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let first = consumer(backend, &topic, &[]);
    first.subscribe(&[&topic]).unwrap();
    let messages = first.track_messages(100).unwrap();
    // The fifth is never finished, and the others in a different order.
    let mut taken = take(&messages, 10);
    let _unfinished = taken.remove(4);
    taken.into_iter().rev().for_each(TrackedMessage::finish);
    assert_eq!(messages.in_progress(), 6);
    let outcomes = first.commit_stored(TIMEOUT).unwrap();
    assert!(outcomes.len() == 1 && outcomes[0].1.is_ok(), "{outcomes:?}");
    assert_eq!(committed(&first, &topic, 0), Some(4));
    first.close(TIMEOUT).unwrap();

    let second = consumer(backend, &topic, &[]);
    second.subscribe(&[&topic]).unwrap();
    let messages = second.track_messages(100).unwrap();
    let taken = take(&messages, 6);
    assert_eq!(taken[0].offset(), 4);
    taken.into_iter().for_each(TrackedMessage::finish);
    second.close(TIMEOUT).unwrap();
    let third = consumer(backend, &topic, &[]);
    assert_eq!(committed(&third, &topic, 0), Some(10), "close commits what is finished");
}

fn message_of_an_earlier_assignment_stores_nothing(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[]);
    consumer.assign(&[(&*topic, 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(5).unwrap();
    let before = take(&messages, 5);
    consumer.seek(&topic, 0, Offset::At(2), TIMEOUT).unwrap();
    before.into_iter().for_each(TrackedMessage::finish);
    assert_eq!(consumer.commit_stored(TIMEOUT), Ok(Vec::new()));
    let again = take(&messages, 1).remove(0);
    assert_eq!(again.offset(), 2, "what was outdated leaves room");
    again.finish();
    assert_eq!(consumer.commit_stored(TIMEOUT).unwrap().len(), 1);
    assert_eq!(committed(&consumer, &topic, 0), Some(3));
}

fn tracked_messages_stop_at_the_limit(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let all_stored = Consumer::new(&backend.config(&[("group.id", &*topic)])).unwrap();
    let error = all_stored.track_messages(1).map(drop).unwrap_err();
    assert!(error.to_string().contains("enable.auto.offset.store"), "{error}");

    let consumer = consumer(backend, &topic, &[]);
    consumer.assign(&[(&*topic, 0, Offset::Beginning)]).unwrap();
    let messages = consumer.track_messages(3).unwrap();
    let mut taken = take(&messages, 3);
    taken.pop().expect("the third").finish();
    assert!(messages.next(Duration::from_millis(50)).unwrap().is_none(), "the third waits for the first");
    // A thread that waits for room continues when there is some.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&messages, 1).remove(0).offset());
        taken.remove(0).finish();
        assert_eq!(waiting.join().unwrap(), 3);
    });
}

/// Notes the calls; commits what was stored in the revocation.
struct Noting {
    consumer: Consumer,
    notes: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Option<Rebalance>>>,
    keeps: bool,
}

impl Noting {
    fn note(&self, what: &str, rebalance: &Rebalance) {
        self.notes.lock().unwrap().push(format!("{what} {}", rebalance.partitions().len()));
    }
}

impl RebalanceListener for Noting {
    fn on_assigned(&mut self, rebalance: Rebalance) {
        self.note("assigned", &rebalance);
        if self.keeps {
            *self.kept.lock().unwrap() = Some(rebalance);
        }
    }

    fn on_revoked(&mut self, rebalance: Rebalance) {
        self.note("revoked", &rebalance);
        assert!(self.consumer.poll(Duration::ZERO).unwrap().is_empty(), "nothing comes meanwhile");
        let outcomes = self.consumer.commit_stored(TIMEOUT).unwrap();
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    }
}

type Notes = (Arc<Mutex<Vec<String>>>, Arc<Mutex<Option<Rebalance>>>);

fn listen(consumer: &Consumer, keeps: bool) -> Notes {
    let (notes, kept) = Notes::default();
    let (noting, place) = (Arc::clone(&notes), Arc::clone(&kept));
    consumer.set_rebalance_listener(Noting { consumer: consumer.clone(), notes: noting, kept: place, keeps });
    (notes, kept)
}

fn listener_is_called_by_polls_and_by_close(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 0, 0..10);
    let first = consumer(backend, &topic, &[("enable.auto.commit", "false")]);
    let (notes, _) = listen(&first, false);
    first.subscribe(&[&topic]).unwrap();
    let message = next(&first);
    assert_eq!(*notes.lock().unwrap(), ["assigned 2"]);
    first.store_message(&message).unwrap();
    first.close(TIMEOUT).unwrap();
    assert_eq!(*notes.lock().unwrap(), ["assigned 2", "revoked 2"]);
    let second = consumer(backend, &topic, &[]);
    assert_eq!(committed(&second, &topic, 0), Some(1), "the listener committed it");
}

fn receiver_of_rebalances_commits_during_close(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let first = consumer(backend, &topic, &[("enable.auto.commit", "false")]);
    let rebalances = first.rebalances();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut kinds = Vec::new();
            while let Some(rebalance) = rebalances.next(TIMEOUT) {
                kinds.push((rebalance.kind(), rebalance.partitions().len()));
                if rebalance.kind() == RebalanceKind::Revoke {
                    let outcomes = first.commit_stored(TIMEOUT).unwrap();
                    assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
                }
            }
            kinds
        });
        first.subscribe(&[&topic]).unwrap();
        first.store_message(&next(&first)).unwrap();
        let began = Instant::now();
        first.close(TIMEOUT).unwrap();
        assert!(began.elapsed() < TIMEOUT / 4, "{:?}", began.elapsed());
        assert_eq!(receiver.join().unwrap(), [(RebalanceKind::Assign, 1), (RebalanceKind::Revoke, 1)]);
    });
    let second = consumer(backend, &topic, &[]);
    assert_eq!(committed(&second, &topic, 0), Some(1), "the receiver committed it");
}

fn revocation_of_close_is_returned_later_without_a_waiter(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[]);
    let rebalances = consumer.rebalances();
    consumer.subscribe(&[&topic]).unwrap();
    rebalances.next(TIMEOUT).expect("an assignment").accept();
    next(&consumer);
    // A call that has ended does not wait.
    assert!(rebalances.next(Duration::ZERO).is_none());
    let began = Instant::now();
    consumer.close(TIMEOUT).unwrap();
    assert!(began.elapsed() < TIMEOUT / 4, "{:?}", began.elapsed());
    let revocation = rebalances.next(Duration::ZERO).expect("the revocation");
    assert_eq!((revocation.kind(), revocation.partitions().len()), (RebalanceKind::Revoke, 1));
    assert_eq!(revocation.time_left(), Duration::ZERO, "the library answered it");
    drop(revocation);
    assert!(rebalances.next(Duration::ZERO).is_none());
}

fn close_waits_a_bounded_time_for_the_application(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let first = consumer(backend, &topic, &[]);
    let rebalances = first.rebalances();
    first.subscribe(&[&topic]).unwrap();
    rebalances.next(TIMEOUT).expect("an assignment").accept();
    first.store_message(&next(&first)).unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| rebalances.next(TIMEOUT).expect("the revocation"));
        assert!(!receiver.is_finished());
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        first.close(Duration::from_secs(4)).unwrap();
        let took = began.elapsed();
        assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&took), "{took:?}");
        // It was kept until now.
        receiver.join().unwrap().accept();
    });
    let second = consumer(backend, &topic, &[]);
    assert_eq!(committed(&second, &topic, 0), Some(1), "the library committed and left in time");
}

fn rebalance_waits_for_the_token_that_a_listener_keeps(backend: &Backend) {
    let topic = backend.topic(1);
    write(backend, &topic, 0, 0..10);
    let consumer = consumer(backend, &topic, &[]);
    let (notes, kept) = listen(&consumer, true);
    consumer.subscribe(&[&topic]).unwrap();
    assert!(eventually(|| {
        assert!(consumer.poll(Duration::from_millis(20)).unwrap().is_empty(), "it is not accepted yet");
        !notes.lock().unwrap().is_empty()
    }));
    assert!(consumer.next(Duration::from_millis(50)).unwrap().is_none());
    let rebalance = kept.lock().unwrap().take().expect("the listener kept it");
    assert!(rebalance.time_left() > Duration::ZERO);
    rebalance.accept();
    assert_eq!(next(&consumer).offset(), 0);
    assert_eq!(*notes.lock().unwrap(), ["assigned 1"]);
}

fn partition_streams_end_with_the_assignment(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 0, 0..10);
    write(backend, &topic, 1, 10..20);
    let consumer = consumer(backend, &topic, &[]);
    consumer.subscribe(&[&topic]).unwrap();
    assert!(eventually(|| {
        // Nothing is taken: the streams get all records.
        consumer.assignment().len() == 2
    }));
    assert_eq!(consumer.partition_stream(&topic, 7).map(drop).unwrap_err().kind(), ErrorKind::State);
    let mut streams: Vec<_> =
        (0..2).map(|number| consumer.partition_stream(&topic, number).unwrap()).collect();
    std::thread::scope(|scope| {
        let readers: Vec<_> = streams
            .iter_mut()
            .map(|stream| {
                scope.spawn(|| {
                    let partition = stream.partition().partition;
                    let mut offsets = Vec::new();
                    loop {
                        match stream.next(TIMEOUT) {
                            Ok(Some(message)) => {
                                assert_eq!(message.partition(), partition);
                                offsets.push(message.offset());
                            }
                            Ok(None) => panic!("the stream neither goes on nor ends"),
                            Err(error) => return (offsets, error.kind()),
                        }
                    }
                })
            })
            .collect();
        assert!(eventually(|| (0..2).all(|number| consumer.position(&topic, number) == Some(10))));
        assert!(consumer.poll(Duration::from_millis(20)).unwrap().is_empty(), "the streams have them all");
        consumer.unsubscribe(TIMEOUT).unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), ((0..10).collect(), ErrorKind::Closed));
        }
    });
}

fn partition_stream_and_polls_share_the_records(backend: &Backend) {
    let topic = backend.topic(2);
    write(backend, &topic, 0, 0..10);
    write(backend, &topic, 1, 10..20);
    let consumer = consumer(backend, &topic, &[]);
    consumer.assign(&[(&*topic, 0, Offset::Beginning), (&*topic, 1, Offset::Beginning)]).unwrap();
    let mut stream = consumer.partition_stream(&topic, 1).unwrap();
    let of_stream: Vec<_> =
        (0..4).map(|_| stream.next(TIMEOUT).unwrap().expect("a record").offset()).collect();
    assert_eq!(of_stream, [0, 1, 2, 3]);
    let polled: Vec<_> = (0..10).map(|_| next(&consumer).partition()).collect();
    assert_eq!(polled, [0; 10], "the stream has the other partition");
    // The common calls return the records that the stream has not read, in order.
    drop(stream);
    let rest: Vec<_> = (0..6).map(|_| next(&consumer)).map(|m| (m.partition(), m.offset())).collect();
    assert_eq!(rest, (4..10).map(|offset| (1, offset)).collect::<Vec<_>>());
    let mut stream = consumer.partition_stream(&topic, 1).unwrap();
    consumer.seek(&topic, 1, Offset::At(8), TIMEOUT).unwrap();
    assert_eq!(stream.next(TIMEOUT).unwrap().expect("a record").offset(), 8, "a seek continues the stream");
    consumer.close(TIMEOUT).unwrap();
    // At most what was taken already still comes.
    let end = (0..2).find_map(|_| stream.next(TIMEOUT).err()).expect("the stream ends");
    assert_eq!(end.kind(), ErrorKind::Closed);
}

fn missing_polls_are_announced_before_the_interval_is_over(backend: &Backend) {
    let topic = backend.topic(1);
    let properties = [("group.protocol", "consumer"), ("max.poll.interval.ms", "2000")];
    let consumer = consumer(backend, &topic, &properties);
    let rebalances = consumer.rebalances();
    consumer.subscribe(&[&topic]).unwrap();
    match rebalances.next_event(TIMEOUT) {
        Some(GroupEvent::Rebalance(rebalance)) => rebalance.accept(),
        other => panic!("{other:?}"),
    }
    let Some(GroupEvent::PollOverdue(overdue)) = rebalances.next_event(TIMEOUT) else {
        panic!("the application does not poll")
    };
    assert_eq!(overdue.limit, Duration::from_secs(2));
    assert!(overdue.since >= Duration::from_secs(1), "{overdue:?}");
    let events = || std::iter::from_fn(|| consumer.poll_event()).collect::<Vec<_>>();
    let is_overdue = |event: &ConsumerEvent| matches!(event, ConsumerEvent::PollOverdue(_));
    assert!(events().iter().any(is_overdue), "it is among the events, too");
}
