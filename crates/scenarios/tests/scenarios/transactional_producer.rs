//! Transactions: what a reader of committed records sees, and the state of a producer whose transaction failed.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use ottla::{
    ApiKey, Consumer, ConsumerEvent, ConsumerGroupMetadata, ErrorCode, ErrorKind, Event, GroupOffset, Offset,
    Producer, Record, SendError, TransactionError, TransactionState,
};
use ottla_embedded_broker::{CoordinatorKey, Fault, FaultAction};
use ottla_scenarios::{Backend, TIMEOUT, eventually};

ottla_scenarios::run_on_all!(
    committed_records_are_visible_and_aborted_ones_are_not,
    dropped_transaction_is_aborted,
    transaction_without_records_ends_without_a_trace,
    offsets_become_visible_with_the_transaction,
    newer_producer_ends_the_transaction_of_the_older_one_and_fences_it,
    producer_continues_after_a_transaction_that_timed_out,
    late_transaction_is_aborted_before_its_application_notices,
    refused_record_aborts_the_transaction_and_not_the_next_one,
    purged_record_is_missed_by_the_commit,
    records_are_refused_outside_of_transactions,
    records_of_many_threads_belong_to_one_transaction_each,
    calls_that_time_out_are_continued,
    calls_beside_others_neither_lose_nor_end_transactions,
    async_calls_commit_and_abort,
    longest_ids_work_and_too_long_timeouts_are_fatal,
    offsets_of_others_are_taken_and_of_unknown_topics_not,
    calls_of_many_threads_run_one_after_the_other,
);

ottla_scenarios::run_on_embedded!(
    lost_requests_are_repeated_and_raise_the_epoch,
    refused_requests_are_repeated_under_the_same_epoch,
    transactions_survive_an_upgrade_and_a_downgrade,
    transactions_survive_moves_of_coordinators_and_leaders,
);

/// Creates a producer of transactions; its ID is the name of a topic.
fn producer(backend: &Backend, id: &str, properties: &[(&str, &str)]) -> Producer {
    let mut all = vec![("transactional.id", id), ("linger.ms", "1")];
    all.extend(properties);
    let producer = backend.producer(&all);
    producer.init_transactions(TIMEOUT).unwrap();
    producer
}

/// Returns the values that a reader of committed records sees in each partition, up to its end.
fn committed(backend: &Backend, topic: &str, partitions: i32) -> Vec<Vec<String>> {
    let properties = [("isolation.level", "read_committed"), ("enable.partition.eof", "true")];
    let consumer = Consumer::new(&backend.config(&properties)).unwrap();
    let all: Vec<_> = (0..partitions).map(|partition| (topic, partition, Offset::Beginning)).collect();
    consumer.assign(&all).unwrap();
    let mut values = vec![Vec::new(); partitions as usize];
    let mut ended = BTreeSet::new();
    while ended.len() < partitions as usize {
        let records = consumer.poll(TIMEOUT).unwrap();
        for message in &records {
            let value = String::from_utf8(message.value().unwrap().to_vec()).unwrap();
            values[message.partition() as usize].push(value);
        }
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { partition, .. } => drop(ended.insert(*partition)),
                other => panic!("{other:?}"),
            }
        }
    }
    values
}

/// Checks what a reader of committed records sees. The coordinator responds to a commit before the markers are written.
fn assert_committed<V: AsRef<[S]>, S: AsRef<str>>(backend: &Backend, topic: &str, expected: &[V]) {
    let texts = |values: &V| values.as_ref().iter().map(|value| value.as_ref().to_owned()).collect();
    let expected: Vec<Vec<String>> = expected.iter().map(texts).collect();
    let mut seen = Vec::new();
    eventually(|| {
        seen = committed(backend, topic, expected.len() as i32);
        seen == expected
    });
    assert_eq!(seen, expected);
}

fn send(producer: &Producer, topic: &str, partition: i32, value: &str) {
    producer.send(topic, Record::new().partition(partition).value(value)).unwrap();
}

fn committed_records_are_visible_and_aborted_ones_are_not(backend: &Backend) {
    let topic = backend.topic(3);
    let producer = producer(backend, &topic, &[]);
    let mut expected = vec![Vec::new(); 3];
    for number in 0..30 {
        let transaction = producer.begin().unwrap();
        for record in 0..10 {
            let (partition, value) = ((number + record) % 3, format!("{number}-{record}"));
            send(&producer, &topic, partition, &value);
            if number % 3 > 0 {
                expected[partition as usize].push(value);
            }
        }
        if number % 3 > 0 {
            transaction.commit(TIMEOUT).unwrap();
        } else {
            if number % 2 > 0 {
                producer.flush(TIMEOUT).unwrap();
            }
            transaction.abort(TIMEOUT).unwrap();
        }
    }
    assert_committed(backend, &topic, &expected);
    for batch in backend.batches(&topic, 0) {
        assert!(batch.header.is_transactional());
    }
}

fn dropped_transaction_is_aborted(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[]);
    {
        let transaction = producer.begin().unwrap();
        transaction.send(&topic, Record::new().partition(0).value("dropped")).unwrap();
        producer.flush(TIMEOUT).unwrap();
    }
    let transaction = producer.begin().unwrap();
    transaction.send(&topic, Record::new().partition(0).value("committed")).unwrap();
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["committed"]]);
}

fn transaction_without_records_ends_without_a_trace(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[]);
    for number in 0..3 {
        producer.begin().unwrap().commit(TIMEOUT).unwrap();
        producer.begin().unwrap().abort(TIMEOUT).unwrap();
        let transaction = producer.begin().unwrap();
        send(&producer, &topic, 0, &number.to_string());
        transaction.commit(TIMEOUT).unwrap();
    }
    assert_committed(backend, &topic, &[["0", "1", "2"]]);
}

fn offsets_become_visible_with_the_transaction(backend: &Backend) {
    let (input, output) = (backend.topic(1), backend.topic(1));
    let plain = backend.producer(&[]);
    (0..10).for_each(|number| send(&plain, &input, 0, &number.to_string()));
    plain.close(TIMEOUT).unwrap();
    let properties =
        [("group.id", &*input), ("auto.offset.reset", "earliest"), ("enable.auto.commit", "false")];
    let consumer = Consumer::new(&backend.config(&properties)).unwrap();
    consumer.subscribe(&[&input]).unwrap();
    let producer = producer(backend, &input, &[]);
    let committed_offset = || {
        let partitions = [(&*input, 0)];
        let offset = consumer.committed(&partitions, TIMEOUT).unwrap().remove(0).unwrap();
        offset.map(|offset| offset.offset)
    };
    let records = eventually_polled(&consumer);
    let end = records.iter().last().unwrap().offset() + 1;

    let transaction = producer.begin().unwrap();
    send(&producer, &output, 0, "aborted");
    transaction.send_records(&consumer, &records, TIMEOUT).unwrap();
    transaction.abort(TIMEOUT).unwrap();
    assert_eq!(committed_offset(), None);

    let transaction = producer.begin().unwrap();
    send(&producer, &output, 0, "committed");
    transaction.send_records(&consumer, &records, TIMEOUT).unwrap();
    transaction.commit(TIMEOUT).unwrap();
    assert_eq!(committed_offset(), Some(end));
    assert_committed(backend, &output, &[["committed"]]);

    // A transaction of offsets alone; those of no record are left out, and an empty list is not a request.
    let transaction = producer.begin().unwrap();
    let offsets = [GroupOffset::new(&*input, 0, 3), GroupOffset::new(&*input, 0, -1001)];
    transaction.send_offsets(&consumer, &offsets, TIMEOUT).unwrap();
    transaction.send_offsets(&consumer, &[], TIMEOUT).unwrap();
    transaction.commit(TIMEOUT).unwrap();
    assert_eq!(committed_offset(), Some(3));

    // A member that the group does not know any more is fenced, and the producer is not.
    let metadata = consumer.group_metadata();
    consumer.close(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    assert!(!metadata.member_id.is_empty());
    let failed = transaction.send_offsets_of(metadata, &offsets, TIMEOUT).unwrap_err();
    assert!(failed.requires_abort(), "{failed}");
    let failed = transaction.commit(TIMEOUT).unwrap_err();
    assert!(failed.requires_abort(), "{failed}");
    let transaction = producer.begin().unwrap();
    send(&producer, &output, 0, "afterwards");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &output, &[["committed", "afterwards"]]);
}

fn eventually_polled(consumer: &Consumer) -> ottla::Records {
    let mut polled = None;
    let found = eventually(|| {
        let records = consumer.poll(Duration::from_millis(100)).unwrap();
        let found = records.iter().next().is_some();
        polled = Some(records);
        found
    });
    assert!(found, "records arrive");
    polled.unwrap()
}

fn newer_producer_ends_the_transaction_of_the_older_one_and_fences_it(backend: &Backend) {
    let topic = backend.topic(1);
    let older = producer(backend, &topic, &[]);
    let transaction = older.begin().unwrap();
    send(&older, &topic, 0, "older");
    older.flush(TIMEOUT).unwrap();
    let newer = producer(backend, &topic, &[]);
    let failed = transaction.commit(TIMEOUT).unwrap_err();
    assert!(failed.is_fatal(), "{failed}");
    assert_eq!(failed.kind(), ErrorKind::Fenced, "{failed}");
    let refused = older.begin().map(|_| ()).unwrap_err();
    assert_eq!((refused.is_fatal(), refused.kind()), (true, ErrorKind::Fenced));
    let refused = older.send(&topic, Record::new().value("x")).unwrap_err();
    assert!(matches!(refused, SendError::Fatal(_)), "{refused}");
    let transaction = newer.begin().unwrap();
    send(&newer, &topic, 0, "newer");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["newer"]]);
}

fn producer_continues_after_a_transaction_that_timed_out(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[("transaction.timeout.ms", "1500")]);
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "late");
    let mut warned = false;
    let refused = eventually(|| {
        warned |= std::iter::from_fn(|| producer.poll_event())
            .any(|event| matches!(event, Event::TransactionOverdue(_)));
        matches!(producer.send(&topic, Record::new().partition(0).value("later")), Err(SendError::State(_)))
    });
    assert!(refused && warned);
    let failed = transaction.commit(TIMEOUT).unwrap_err();
    assert_eq!((failed.requires_abort(), failed.kind()), (true, ErrorKind::TimedOut), "{failed}");
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "next");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["next"]]);
}

fn late_transaction_is_aborted_before_its_application_notices(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[("transaction.timeout.ms", "1500")]);
    let admin = producer.admin();
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "late");
    producer.flush(TIMEOUT).unwrap();
    let aborted = eventually(|| {
        let described = admin.describe_transactions(&[&topic], TIMEOUT).unwrap();
        described[0].1.as_ref().unwrap().state == TransactionState::CompleteAbort
    });
    assert!(aborted);
    transaction.abort(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "next");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["next"]]);
}

fn refused_record_aborts_the_transaction_and_not_the_next_one(backend: &Backend) {
    let topic = backend.topic_with(2, &[("max.message.bytes", "1000")]);
    let producer = producer(backend, &topic, &[]);
    for number in 0..3 {
        let transaction = producer.begin().unwrap();
        send(&producer, &topic, 0, "lost");
        producer.flush(TIMEOUT).unwrap();
        send(&producer, &topic, 1, &"x".repeat(5000));
        let failed = transaction.commit(TIMEOUT).unwrap_err();
        assert!(failed.requires_abort() && failed.to_string().contains("MESSAGE_TOO_LARGE"), "{failed}");
        let transaction = producer.begin().unwrap();
        send(&producer, &topic, 0, &number.to_string());
        send(&producer, &topic, 1, &number.to_string());
        transaction.commit(TIMEOUT).unwrap();
    }
    assert_committed(backend, &topic, &[["0", "1", "2"], ["0", "1", "2"]]);
}

fn purged_record_is_missed_by_the_commit(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[("linger.ms", "50000")]);
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "purged");
    producer.purge(ottla::Purge::ALL);
    let failed = transaction.commit(TIMEOUT).unwrap_err();
    assert_eq!((failed.requires_abort(), failed.kind()), (true, ErrorKind::Inconsistent), "{failed}");
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "kept");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["kept"]]);
}

fn records_are_refused_outside_of_transactions(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("transactional.id", &topic)]);
    let refused = |needle: &str| {
        let error = producer.send(&topic, Record::new().value("x")).unwrap_err();
        assert!(matches!(error, SendError::State(_)) && error.to_string().contains(needle), "{error}");
    };
    refused("the state is Init; call init_transactions");
    let error = producer.begin().map(|_| ()).unwrap_err();
    assert!(matches!(error, TransactionError::Refused(_)), "{error}");
    producer.init_transactions(TIMEOUT).unwrap();
    refused("call begin before");
    producer.begin().unwrap().commit(TIMEOUT).unwrap();
    refused("call begin before");
    let error = producer.init_transactions(TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    let plain = backend.producer(&[]);
    let error = plain.init_transactions(TIMEOUT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConfigured);
}

fn records_of_many_threads_belong_to_one_transaction_each(backend: &Backend) {
    const PARTITIONS: i32 = 4;
    let topic = backend.topic(PARTITIONS);
    let producer = producer(backend, &topic, &[]);
    let (is_over, start) = (AtomicBool::new(false), Barrier::new(4));
    let accepted = std::thread::scope(|threads| {
        let senders: Vec<_> = (0..3)
            .map(|thread| {
                let (producer, topic, is_over, start) = (&producer, &topic, &is_over, &start);
                threads.spawn(move || {
                    start.wait();
                    let mut accepted = Vec::new();
                    let mut number = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let value = format!("{thread}-{number}");
                        number += 1;
                        let record = Record::new().partition(number % PARTITIONS).value(&value);
                        match producer.send(topic, record) {
                            Ok(()) => accepted.push(value),
                            Err(SendError::State(_) | SendError::QueueFull) => std::thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    accepted
                })
            })
            .collect();
        start.wait();
        for _ in 0..40 {
            let transaction = producer.begin().unwrap();
            std::thread::sleep(Duration::from_millis(3));
            transaction.commit(TIMEOUT).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect::<Vec<_>>()
    });
    let mut seen: Vec<String> = Vec::new();
    eventually(|| {
        seen = committed(backend, &topic, PARTITIONS).into_iter().flatten().collect();
        seen.len() >= accepted.len()
    });
    let as_set = |values: &[String]| values.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(seen.len(), accepted.len(), "each accepted record is committed once");
    assert_eq!(as_set(&seen), as_set(&accepted));
}

fn calls_that_time_out_are_continued(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("transactional.id", &topic), ("linger.ms", "1")]);
    let short = Duration::ZERO;
    let late = producer.init_transactions(short).unwrap_err();
    assert_eq!((late.is_retriable(), late.kind()), (true, ErrorKind::TimedOut), "{late}");
    let conflict = producer.begin().map(|_| ()).unwrap_err();
    assert_eq!((conflict.is_retriable(), conflict.kind()), (true, ErrorKind::Conflict), "{conflict}");
    producer.init_transactions(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "one");
    let late = transaction.commit(short).unwrap_err();
    assert!(late.is_retriable(), "{late}");
    let conflict = producer.begin().map(|_| ()).unwrap_err();
    assert!(conflict.to_string().contains("commit timed out"), "{conflict}");
    producer.resume_transaction(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "two");
    let late = transaction.abort(short).unwrap_err();
    assert!(late.is_retriable(), "{late}");
    producer.resume_transaction(TIMEOUT).unwrap();
    producer.resume_transaction(TIMEOUT).unwrap();
    producer.begin().unwrap().commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["one"]]);
}

/// Starts an asynchronous call that is in progress when this returns. Each one may be over at once.
fn in_progress<F: Future>(call: impl Fn() -> F) -> Pin<Box<F>> {
    loop {
        let mut future = Box::pin(call());
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            return future;
        }
    }
}

fn calls_beside_others_neither_lose_nor_end_transactions(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[]);
    let conflict = |result: Result<(), TransactionError>| {
        let error = result.unwrap_err();
        assert_eq!((error.is_retriable(), error.kind()), (true, ErrorKind::Conflict), "{error}");
    };
    for (value, commits) in [("one", true), ("two", false), ("three", true)] {
        let transaction = producer.begin().unwrap();
        send(&producer, &topic, 0, value);
        let other = in_progress(|| producer.init_transactions_async());
        conflict(if commits { transaction.commit(TIMEOUT) } else { transaction.abort(TIMEOUT) });
        conflict(producer.resume_transaction(TIMEOUT));
        drop(other);
        if commits {
            conflict(producer.begin().map(drop));
            producer.resume_transaction(TIMEOUT).unwrap();
        } else {
            // Nobody waits for the outcome of an abort.
            producer.begin().expect("it completes the abort").commit(TIMEOUT).unwrap();
        }
    }
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "four");
    drop(in_progress(|| producer.begin_async()));
    producer.resume_transaction(TIMEOUT).unwrap();
    transaction.commit(TIMEOUT).unwrap();
    drop(in_progress(|| producer.begin_async()));
    let transaction = producer.begin().expect("the call continues");
    send(&producer, &topic, 0, "five");
    transaction.commit(TIMEOUT).unwrap();
    drop(in_progress(|| producer.begin_async()));
    producer.resume_transaction(TIMEOUT).unwrap();
    producer.begin().unwrap().commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["one", "three", "four", "five"]]);
}

fn longest_ids_work_and_too_long_timeouts_are_fatal(backend: &Backend) {
    let topic = backend.topic(1);
    let id = format!("{topic}-{}", "x".repeat(300));
    let first = producer(backend, &id, &[]);
    let transaction = first.begin().unwrap();
    send(&first, &topic, 0, "kept");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[["kept"]]);
    let late = backend.producer(&[("transactional.id", &topic), ("transaction.timeout.ms", "900001")]);
    let refused = late.init_transactions(TIMEOUT).unwrap_err();
    assert!(refused.is_fatal() && refused.to_string().contains("INVALID_TRANSACTION_TIMEOUT"), "{refused}");
    assert!(late.begin().is_err_and(|error| error.is_fatal()));
}

/// The coordinator does not know who processes which partition: it takes any offset of a member that it knows.
fn offsets_of_others_are_taken_and_of_unknown_topics_not(backend: &Backend) {
    let topic = backend.topic(2);
    let producer = producer(backend, &topic, &[]);
    let consumer = Consumer::new(&backend.config(&[("group.id", &topic)])).unwrap();
    let transaction = producer.begin().unwrap();
    let offsets = [GroupOffset::new(&*topic, 1, 4)];
    transaction.send_offsets(&consumer, &offsets, TIMEOUT).unwrap();
    transaction.commit(TIMEOUT).unwrap();
    let committed = consumer.committed(&[(&*topic, 1)], TIMEOUT).unwrap().remove(0).unwrap();
    assert_eq!(committed.map(|found| found.offset), Some(4));

    let transaction = producer.begin().unwrap();
    let unknown = [GroupOffset::new("no-such-topic", 0, 1)];
    let late = transaction.send_offsets(&consumer, &unknown, Duration::from_millis(1500)).unwrap_err();
    assert_eq!((late.is_retriable(), late.kind()), (true, ErrorKind::TimedOut), "{late}");
    let text = late.to_string();
    assert!(text.contains("UNKNOWN_TOPIC_OR_PART") && text.contains("no-such-topic"), "{text}");
    transaction.abort(TIMEOUT).unwrap();
    let transaction = producer.begin().unwrap();
    send(&producer, &topic, 0, "afterwards");
    transaction.commit(TIMEOUT).unwrap();
    assert_committed(backend, &topic, &[vec!["afterwards"], vec![]]);
}

fn calls_of_many_threads_run_one_after_the_other(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = producer(backend, &topic, &[]);
    let check = |result: Result<(), TransactionError>| match result {
        Ok(()) | Err(TransactionError::Refused(_) | TransactionError::Retriable(_)) => {}
        Err(error) => panic!("{error}"),
    };
    let run = |thread: usize| {
        let (mut committed, mut number) = (Vec::new(), 0);
        while number < 8 {
            let transaction = match producer.begin() {
                Ok(transaction) => transaction,
                Err(TransactionError::Refused(_) | TransactionError::Retriable(_)) => {
                    check(producer.init_transactions(Duration::ZERO));
                    check(producer.resume_transaction(Duration::from_millis(1)));
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let value = format!("{thread}-{number}");
            number += 1;
            send(&producer, &topic, 0, &value);
            // Another thread may be between the check of the state and its refusal.
            let end = |call: &dyn Fn() -> Result<(), TransactionError>| {
                let mut result = call();
                while result.as_ref().is_err_and(TransactionError::is_retriable) {
                    result = producer.resume_transaction(TIMEOUT);
                }
                result.unwrap();
            };
            let transaction = std::cell::Cell::new(Some(transaction));
            if number % 4 == 0 {
                end(&|| transaction.take().unwrap().abort(TIMEOUT));
            } else {
                end(&|| transaction.take().unwrap().commit(TIMEOUT));
                committed.push(value);
            }
        }
        committed
    };
    let mut expected: Vec<String> = std::thread::scope(|threads| {
        let running: Vec<_> = (0..4).map(|thread| threads.spawn(move || run(thread))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = Vec::new();
    eventually(|| {
        seen = committed(backend, &topic, 1).remove(0);
        seen.len() >= expected.len()
    });
    seen.sort();
    expected.sort();
    assert_eq!((seen.len(), &seen), (24, &expected));
}

fn async_calls_commit_and_abort(backend: &Backend) {
    let topic = backend.topic(1);
    let producer = backend.producer(&[("transactional.id", &topic), ("linger.ms", "1")]);
    pollster(async {
        producer.init_transactions_async().await.unwrap();
        for (value, commits) in [("a", true), ("b", false), ("c", true)] {
            let transaction = producer.begin_async().await.unwrap();
            transaction.send(&topic, Record::new().partition(0).value(value)).unwrap();
            if commits {
                transaction.commit_async().await.unwrap();
            } else {
                transaction.abort_async().await.unwrap();
            }
        }
    });
    assert_committed(backend, &topic, &[["a", "c"]]);
}

/// Runs a future on this thread.
fn pollster(future: impl Future<Output = ()>) {
    use std::{
        pin::pin,
        sync::Arc,
        task::{Context, Wake},
        thread::Thread,
    };

    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        std::thread::park_timeout(TIMEOUT);
    }
}

/// The requests of a transaction. If one is lost, the client can't know its outcome.
const REQUESTS: [ApiKey; 5] = [
    ApiKey::Produce,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::TxnOffsetCommit,
    ApiKey::EndTxn,
];

/// Commits a transaction with a record in each of two partitions and an offset.
fn commit_two_records_and_an_offset(producer: &Producer, topic: &str, value: &str) {
    try_to_commit(producer, topic, value).unwrap();
}

fn try_to_commit(producer: &Producer, topic: &str, value: &str) -> Result<(), TransactionError> {
    let transaction = producer.begin()?;
    (0..2).for_each(|partition| send(producer, topic, partition, value));
    let group = ConsumerGroupMetadata { group_id: topic.to_owned(), ..Default::default() };
    let offset = GroupOffset::new(topic, 0, value.len() as i64);
    transaction.send_offsets_of(group, &[offset], TIMEOUT)?;
    transaction.commit(TIMEOUT)
}

/// Runs a transaction during a fault and one after it, and returns by how much the epoch rose in the meantime.
fn epochs_during(version: i16, fault: Fault, api: ApiKey) -> i16 {
    let backend = Backend::embedded();
    backend.control(|control| control.set_transaction_version(version));
    let topic = backend.topic(2);
    let properties =
        [("socket.timeout.ms", "600"), ("retry.backoff.ms", "20"), ("transaction.timeout.ms", "20000")];
    let producer = producer(&backend, &topic, &properties);
    let epoch = || backend.control(|control| control.transaction(&topic).map_or(0, |found| found.epoch));
    let before = epoch();
    backend.control(|control| control.inject(fault.api(api).times(1)));
    commit_two_records_and_an_offset(&producer, &topic, "during");
    commit_two_records_and_an_offset(&producer, &topic, "afterwards");
    assert_committed(&backend, &topic, &[["during", "afterwards"], ["during", "afterwards"]]);
    epoch() - before
}

fn lost_requests_are_repeated_and_raise_the_epoch(_: &Backend) {
    let faults = [FaultAction::LoseResponse, FaultAction::CloseConnection, FaultAction::NeverRespond];
    for api in REQUESTS {
        for action in &faults {
            let found = epochs_during(1, Fault::new(action.clone()), api);
            assert_eq!(found, 1, "{} {action:?}, older protocol", api.name());
            // The newer protocol raises the epoch with each of the two transactions.
            if !matches!(api, ApiKey::AddPartitionsToTxn | ApiKey::AddOffsetsToTxn) {
                let found = epochs_during(2, Fault::new(action.clone()), api);
                assert_eq!(found, 2, "{} {action:?}, newer protocol", api.name());
            }
        }
    }
}

fn refused_requests_are_repeated_under_the_same_epoch(_: &Backend) {
    let codes = [
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::CONCURRENT_TRANSACTIONS,
    ];
    let apis = [ApiKey::AddPartitionsToTxn, ApiKey::AddOffsetsToTxn, ApiKey::TxnOffsetCommit, ApiKey::EndTxn];
    for api in apis {
        for code in codes {
            let found = epochs_during(1, Fault::new(FaultAction::Error(code)), api);
            assert_eq!(found, 0, "{} {code}", api.name());
        }
    }
}

fn transactions_survive_an_upgrade_and_a_downgrade(_: &Backend) {
    let backend = Backend::embedded();
    backend.control(|control| control.set_transaction_version(1));
    let topic = backend.topic(2);
    let producer = producer(&backend, &topic, &[]);
    let mut expected = Vec::new();
    // A downgrade from 2 to 0 would refuse the first records of clients that have not learned of it, as in Kafka.
    for (number, version) in [0, 1, 2, 1, 2, 1].into_iter().enumerate() {
        backend.control(|control| {
            control.set_transaction_version(version);
            // Clients learn of the feature when they connect.
            control.close_connections(None);
        });
        for round in 0..3 {
            let value = format!("{number}-{round}");
            // The client may learn of a downgrade from the refusal of a request.
            if let Err(failed) = try_to_commit(&producer, &topic, &value) {
                assert!(failed.requires_abort(), "{failed}");
                commit_two_records_and_an_offset(&producer, &topic, &value);
            }
            expected.push(value);
        }
    }
    assert_committed(&backend, &topic, &[expected.clone(), expected]);
}

fn transactions_survive_moves_of_coordinators_and_leaders(_: &Backend) {
    for version in [1, 2] {
        let backend = Backend::embedded();
        backend.control(|control| control.set_transaction_version(version));
        let topic = backend.topic(2);
        let producer = producer(&backend, &topic, &[("retry.backoff.ms", "10")]);
        let is_over = AtomicBool::new(false);
        let mut expected = Vec::new();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for step in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    backend.control(|control| {
                        let brokers = control.brokers();
                        let broker = brokers[step % brokers.len()];
                        control.set_coordinator(CoordinatorKey::Transaction(&topic), broker);
                        control.rotate_leaders();
                    });
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            for number in 0..40 {
                let value = number.to_string();
                commit_two_records_and_an_offset(&producer, &topic, &value);
                expected.push(value);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_committed(&backend, &topic, &[expected.clone(), expected]);
    }
}
