//! Messages whose processing fails: retried in the order of their keys, and written as dead letters at last.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ottla::{
    Config, Consumer, ErrorKind, Message, Offset, OutgoingRecord, Producer, ProducerInterceptor, Record,
    RetryPolicy, RetryingMessage, RetryingMessages,
};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(60);
const FOREVER: Duration = Duration::from_secs(1_000_000);
const DEAD: &str = "t-dead";

struct World {
    cluster: EmbeddedCluster,
    consumer: Consumer,
}

impl World {
    /// A consumer in a group, of a partition with these keys and values.
    fn new(records: &[(&str, &str)]) -> Self {
        let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
        cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
        cluster.control(|control| control.create_topic(DEAD, 1, 1)).unwrap();
        let producer = Producer::new(&config(&cluster, &[])).unwrap();
        for (key, value) in records {
            let record = Record::new().key(key).value(value).header("trace", "7").timestamp(1234);
            producer.deliver("t", record, SOON).unwrap();
        }
        producer.close(SOON).unwrap();
        let properties =
            [("group.id", "g"), ("enable.auto.offset.store", "false"), ("enable.auto.commit", "false")];
        let consumer = Consumer::new(&config(&cluster, &properties)).unwrap();
        consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
        Self { cluster, consumer }
    }

    fn retrying(&self, attempts: u32, properties: &[(&str, &str)]) -> RetryingMessages {
        let producer = Producer::new(&config(&self.cluster, properties)).unwrap();
        self.retrying_with(&producer, attempts, properties)
    }

    fn retrying_with(
        &self,
        producer: &Producer,
        attempts: u32,
        properties: &[(&str, &str)],
    ) -> RetryingMessages {
        if properties.iter().any(|(name, _)| *name == "transactional.id") {
            producer.init_transactions(SOON).unwrap();
        }
        let policy = RetryPolicy::new().attempts(attempts).backoff(Duration::from_millis(1), SOON);
        self.consumer.track_messages(1000).unwrap().with_retries(policy, producer, DEAD)
    }

    /// Returns the first dead letter that is committed.
    fn dead_letter(&self) -> Message {
        let properties = [("isolation.level", "read_committed")];
        let consumer = Consumer::new(&config(&self.cluster, &properties)).unwrap();
        consumer.assign(&[(DEAD, 0, Offset::Beginning)]).unwrap();
        let letter = consumer.next(SOON).unwrap().expect("a dead letter");
        consumer.close(SOON).unwrap();
        letter
    }

    fn committed(&self) -> Option<i64> {
        let committed = self.consumer.committed(&[("t", 0)], SOON).unwrap();
        committed.into_iter().next().and_then(Result::unwrap).map(|offset| offset.offset)
    }
}

fn config(cluster: &EmbeddedCluster, properties: &[(&str, &str)]) -> Config {
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    for (name, value) in properties {
        config.set(name, value).unwrap();
    }
    config
}

fn next(messages: &RetryingMessages) -> RetryingMessage {
    messages.next(FOREVER).unwrap().expect("a message")
}

fn value(message: &Message) -> String {
    String::from_utf8_lossy(message.value().unwrap_or_default()).into_owned()
}

#[test]
fn failed_message_is_retried_while_other_keys_go_on() {
    let world = World::new(&[("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")]);
    let messages = world.retrying(3, &[]);
    let (first, other) = (next(&messages), next(&messages));
    assert_eq!((value(&first), value(&other)), ("a1".into(), "b1".into()));
    assert!(messages.next(Duration::ZERO).unwrap().is_none(), "both keys are busy");
    // A thread that waits already notices the attempt.
    let (sender, taken) = mpsc::channel();
    let theirs = messages.clone();
    let waiting = thread::spawn(move || sender.send(next(&theirs)).is_ok());
    assert_eq!(first.fail(&"no luck"), Some(Duration::from_millis(1)));
    let again = taken.recv_timeout(SOON).expect("the second attempt");
    assert!(waiting.join().unwrap());
    assert_eq!((value(&again), again.attempt(), again.last_error()), ("a1".into(), 2, Some("no luck")));
    other.finish();
    let second = next(&messages);
    assert_eq!((value(&second), second.attempt()), ("b2".into(), 1));
    again.finish();
    second.finish();
    let last = next(&messages);
    assert_eq!(value(&last), "a2");
    last.finish();
    assert_eq!(messages.in_progress(), 0);
    world.consumer.commit_stored(SOON).unwrap();
    assert_eq!(world.committed(), Some(4));
}

/// Fails the first message until it is a dead letter, and finishes the second, which is behind it.
fn fail_first(world: &World, messages: &RetryingMessages) {
    for attempt in 1..=2 {
        let message = next(messages);
        assert_eq!((message.offset(), message.attempt()), (0, attempt));
        assert_eq!(message.fail(&format_args!("failure {attempt}")).is_none(), attempt == 2);
    }
    let behind = next(messages);
    assert_eq!(value(&behind), "a2");
    let letter = world.dead_letter();
    assert_eq!((letter.key(), letter.value()), (Some(&b"a"[..]), Some(&b"a1"[..])));
    let headers: Vec<(String, String)> = letter
        .headers()
        .map(|header| {
            let value = String::from_utf8_lossy(header.value.unwrap_or_default()).into_owned();
            (header.key_str().into_owned(), value)
        })
        .collect();
    let expected = [
        ("trace", "7"),
        ("dead.letter.topic", "t"),
        ("dead.letter.partition", "0"),
        ("dead.letter.offset", "0"),
        ("dead.letter.timestamp", "1234"),
        ("dead.letter.attempts", "2"),
        ("dead.letter.error", "failure 2"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers, expected);
    behind.finish();
}

#[test]
fn message_becomes_a_dead_letter_with_its_origin() {
    let world = World::new(&[("a", "a1"), ("a", "a2")]);
    let messages = world.retrying(2, &[]);
    fail_first(&world, &messages);
    world.consumer.commit_stored(SOON).unwrap();
    assert_eq!(world.committed(), Some(2));
}

#[test]
fn transactional_dead_letter_commits_the_offset_after_its_message() {
    let world = World::new(&[("a", "a1"), ("a", "a2")]);
    let messages = world.retrying(2, &[("transactional.id", "dead-letters")]);
    fail_first(&world, &messages);
    // The consumer has committed nothing.
    assert_eq!(world.committed(), Some(1));
}

#[test]
fn dead_letter_that_is_refused_is_reported_and_keeps_its_message() {
    let long = "x".repeat(5000);
    let world = World::new(&[("a", &long), ("b", "b1")]);
    let messages = world.retrying(1, &[("message.max.bytes", "1000")]);
    next(&messages).fail(&"bad");
    let (mut errors, mut others) = (0, 0);
    // Again and again, while the other key goes on.
    while errors < 3 || others < 1 {
        match messages.next(FOREVER) {
            Ok(message) => {
                others += 1;
                message.expect("the other key").finish();
            }
            Err(error) => {
                errors += 1;
                assert_eq!(error.kind(), ErrorKind::MessageTooLarge, "{error}");
            }
        }
    }
    assert_eq!((others, messages.in_progress()), (1, 2));
    world.consumer.commit_stored(SOON).unwrap();
    assert_eq!(world.committed(), None, "nothing is committed past it");
}

/// Finishes a message when another one's dead letter is sent.
#[derive(Clone, Default)]
struct Finishing(Arc<Mutex<Option<RetryingMessage>>>);

impl ProducerInterceptor for Finishing {
    fn on_send(&self, _: &mut OutgoingRecord<'_, '_>) {
        let message = self.0.lock().unwrap().take();
        message.into_iter().for_each(RetryingMessage::finish);
    }
}

#[test]
fn interceptor_of_dead_letters_may_finish_other_messages() {
    let world = World::new(&[("a", "a1"), ("b", "b1")]);
    let finishing = Finishing::default();
    let producer =
        Producer::builder(&config(&world.cluster, &[])).interceptor(finishing.clone()).build().unwrap();
    let messages = world.retrying_with(&producer, 1, &[]);
    let (first, other) = (next(&messages), next(&messages));
    *finishing.0.lock().unwrap() = Some(other);
    assert_eq!(first.fail(&"bad"), None);
    // The dead letter is written by the calls that wait for a message.
    let ready = (0..60_000).any(|_| {
        assert!(messages.next(Duration::from_millis(1)).unwrap().is_none());
        messages.in_progress() == 0
    });
    assert!(ready, "{messages:?}");
    assert_eq!(world.dead_letter().value(), Some(&b"a1"[..]));
}

#[test]
fn panic_of_a_worker_is_a_failed_attempt() {
    let world = World::new(&[("a", "a1")]);
    let messages = world.retrying(2, &[]);
    let message = next(&messages);
    let worker = thread::spawn(move || {
        let _message = message;
        panic!("on purpose");
    });
    assert!(worker.join().is_err());
    let again = next(&messages);
    assert_eq!(
        (again.attempt(), again.last_error()),
        (2, Some("the thread that processed the message panicked"))
    );
    drop(again);
    assert!(messages.next(Duration::ZERO).is_ok());
    let letter = world.dead_letter();
    assert_eq!(
        letter.headers().last().unwrap().value,
        Some(&b"the message was dropped before it was finished"[..])
    );
}

#[test]
fn workers_process_each_key_in_order() {
    let keys = ["a", "b", "c", "d", "e"];
    let values: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let records: Vec<(&str, &str)> =
        values.iter().enumerate().map(|(number, value)| (keys[number % 5], &**value)).collect();
    let world = World::new(&records);
    let messages = world.retrying(10, &[]);
    let (done, seen) = (AtomicUsize::new(0), Mutex::new(HashMap::<Vec<u8>, Vec<i64>>::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while done.load(Ordering::SeqCst) < 100 {
                    let Some(message) = messages.next(Duration::from_millis(50)).unwrap() else { continue };
                    // Every third message fails twice.
                    if message.offset() % 3 == 0 && message.attempt() < 3 {
                        message.fail(&"not yet");
                        continue;
                    }
                    let key = message.key().unwrap().to_vec();
                    seen.lock().unwrap().entry(key).or_default().push(message.offset());
                    message.finish();
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    assert!(
        seen.len() == 5 && seen.values().all(|offsets| offsets.len() == 20 && offsets.is_sorted()),
        "{seen:?}"
    );
    assert_eq!(messages.in_progress(), 0);
}

#[test]
fn messages_of_a_partition_that_was_given_up_are_not_retried() {
    let world = World::new(&[("a", "a1"), ("a", "a2")]);
    let messages = world.retrying(5, &[]);
    next(&messages).fail(&"bad");
    world.consumer.assign(&[("t", 0, Offset::At(1))]).unwrap();
    let only = next(&messages);
    assert_eq!((value(&only), only.attempt()), ("a2".into(), 1));
    only.finish();
    world.consumer.close(SOON).unwrap();
    assert_eq!(messages.next(FOREVER).unwrap_err().kind(), ErrorKind::Closed);
}
