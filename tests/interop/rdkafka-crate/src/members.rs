//! Groups of a `BaseConsumer` and a `StreamConsumer`, whose contexts watch the rebalances.

use std::{
    collections::BTreeSet,
    sync::Mutex,
    time::{Duration, Instant},
};

use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance, StreamConsumer},
    message::BorrowedMessage,
    producer::{BaseProducer, BaseRecord, Producer},
};

use crate::Reports;

const PARTITIONS: i32 = 4;
/// The records of each partition of the first round; the second round has as many.
const ROUND: i64 = 100;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The partitions of a member, as reported by the rebalances. The crate asks for events of commits without a callback; librdkafka
/// and Ottla report the results of commits by events only if there is one.
#[derive(Default)]
struct Watch {
    held: Mutex<BTreeSet<i32>>,
}

impl ClientContext for Watch {}

impl ConsumerContext for Watch {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance {
            let mut held = self.held.lock().unwrap();
            list.elements().iter().for_each(|element| assert!(held.remove(&element.partition())));
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                let mut held = self.held.lock().unwrap();
                list.elements().iter().for_each(|element| assert!(held.insert(element.partition())));
            }
            Rebalance::Revoke(_) => {}
            Rebalance::Error(error) => panic!("{error}"),
        }
    }
}

impl Watch {
    fn held(&self) -> BTreeSet<i32> {
        self.held.lock().unwrap().clone()
    }
}

/// The records that the members got.
#[derive(Default)]
struct Seen(BTreeSet<(i32, i64)>);

impl Seen {
    /// Notes a record, which must be new.
    fn add(&mut self, message: &BorrowedMessage<'_>) {
        let expected = format!("{} of {}", message.offset(), message.partition());
        assert_eq!(message.payload(), Some(expected.as_bytes()));
        assert!(self.0.insert((message.partition(), message.offset())), "{expected} came twice");
    }

    fn len(&self) -> i64 {
        self.0.len() as i64
    }
}

fn produce(producer: &BaseProducer<Reports>, topic: &str, offsets: std::ops::Range<i64>) {
    for offset in offsets {
        for partition in 0..PARTITIONS {
            let (key, value) = (String::from("0"), format!("{offset} of {partition}"));
            let record = BaseRecord::with_opaque_to(topic, Box::new(0)).key(&key).payload(&value);
            producer.send(record.partition(partition)).expect("it is accepted");
        }
    }
    producer.flush(TIMEOUT).expect("all is sent");
}

pub(crate) fn run(brokers: &str, topic: &str, producer: &BaseProducer<Reports>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for (name, settings) in [
        ("range", [("partition.assignment.strategy", "range"), ("heartbeat.interval.ms", "300")]),
        (
            "cooperative-sticky",
            [("partition.assignment.strategy", "cooperative-sticky"), ("heartbeat.interval.ms", "300")],
        ),
        ("consumer", [("group.protocol", "consumer"), ("client.id", "rdkafka")]),
    ] {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", brokers)
            .set("group.id", format!("{topic}-{name}"))
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false");
        for (property, value) in settings {
            config.set(property, value);
        }
        let topic = format!("{topic}-{name}");
        produce(producer, &topic, 0..ROUND);
        runtime.block_on(two_members(&config, &topic, producer));
        println!("a BaseConsumer and a StreamConsumer share a topic: {name}");
    }
}

async fn two_members(config: &ClientConfig, topic: &str, producer: &BaseProducer<Reports>) {
    let until = Instant::now() + TIMEOUT;
    let mut seen = Seen::default();
    let first: BaseConsumer<Watch> = config.create_with_context(Watch::default()).expect("a consumer");
    first.subscribe(&[topic]).expect("subscribed");
    while seen.len() < i64::from(PARTITIONS) * ROUND {
        assert!(Instant::now() < until, "{} records", seen.len());
        if let Some(message) = first.poll(Duration::from_millis(50)) {
            seen.add(&message.expect("it is not an error"));
        }
    }
    assert_eq!(first.context().held(), (0..PARTITIONS).collect());
    first.commit_consumer_state(CommitMode::Sync).expect("committed");

    let second: StreamConsumer<Watch> = config.create_with_context(Watch::default()).expect("a consumer");
    second.subscribe(&[topic]).expect("subscribed");
    let half = PARTITIONS as usize / 2;
    let mut produced = false;
    while seen.len() < 2 * i64::from(PARTITIONS) * ROUND {
        assert!(Instant::now() < until, "{:?} {:?}", first.context().held(), second.context().held());
        if let Some(message) = first.poll(Duration::from_millis(20)) {
            seen.add(&message.expect("it is not an error"));
        }
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(20), second.recv()).await {
            let message = message.expect("it is not an error");
            seen.add(&message);
            second.commit_message(&message, CommitMode::Async).expect("sent");
        }
        let (one, other) = (first.context().held(), second.context().held());
        if !produced && one.len() == half && other.len() == half && one.is_disjoint(&other) {
            produced = true;
            produce(producer, topic, ROUND..2 * ROUND);
        }
    }
    first.commit_consumer_state(CommitMode::Sync).expect("committed");
    drop(first);

    while second.context().held().len() < PARTITIONS as usize {
        assert!(Instant::now() < until, "{:?}", second.context().held());
        let more = tokio::time::timeout(Duration::from_millis(50), second.recv()).await;
        assert!(more.is_err(), "everything was committed");
    }
    let mut partitions = TopicPartitionList::new();
    (0..PARTITIONS).for_each(|partition| drop(partitions.add_partition(topic, partition)));
    let committed = second.committed_offsets(partitions, TIMEOUT).expect("offsets");
    assert!(
        committed.elements().iter().all(|element| element.offset() == Offset::Offset(2 * ROUND)),
        "{committed:?}"
    );
}
