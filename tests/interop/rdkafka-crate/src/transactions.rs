//! Transactions of the crate: committed with the offsets of a group, aborted, and fenced by a newer producer.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, Producer},
};

const LONG: Duration = Duration::from_secs(30);

fn producer(brokers: &str, id: &str) -> BaseProducer {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("transactional.id", id)
        .create()
        .expect("a producer");
    producer.init_transactions(LONG).expect("a producer ID");
    producer
}

fn send(producer: &BaseProducer, topic: &str, value: &str) {
    producer.begin_transaction().expect("it begins");
    producer.send(BaseRecord::<(), str>::to(topic).payload(value).partition(0)).expect("it is taken");
}

/// Runs all transactions, and reads the committed records.
pub fn run(brokers: &str, topic: &str) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", format!("{topic}-transactions"))
        .create()
        .expect("a consumer");
    let (_, end) = consumer.fetch_watermarks(topic, 0, LONG).expect("watermarks");
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(topic, 0, Offset::Offset(7)).expect("an offset");

    let older = producer(brokers, topic);
    send(&older, topic, "committed");
    let group = consumer.group_metadata().expect("a group");
    older.send_offsets_to_transaction(&offsets, &group, LONG).expect("offsets");
    older.commit_transaction(LONG).expect("a commit");
    send(&older, topic, "aborted");
    older.flush(LONG).expect("it is sent");
    older.abort_transaction(LONG).expect("an abort");
    let newer = producer(brokers, topic);
    send(&older, topic, "late");
    let mut outcome = older.commit_transaction(LONG);
    if matches!(&outcome, Err(KafkaError::Transaction(error)) if error.txn_requires_abort()) {
        // The partition's leader does not know whether a timeout or a newer producer has raised the epoch.
        outcome = older.abort_transaction(LONG);
    }
    match outcome {
        Err(KafkaError::Transaction(error)) => {
            assert!(error.is_fatal() && error.code() == RDKafkaErrorCode::Fenced, "{error}");
        }
        other => panic!("two producers have one transactional.id: {other:?}"),
    }
    send(&newer, topic, "of the newer");
    newer.commit_transaction(LONG).expect("a commit");

    let mut partitions = TopicPartitionList::new();
    partitions.add_partition_offset(topic, 0, Offset::Offset(end)).expect("an offset");
    consumer.assign(&partitions).expect("assigned");
    let (mut values, began) = (Vec::new(), Instant::now());
    while values.len() < 2 {
        assert!(began.elapsed() < LONG, "{values:?}");
        if let Some(message) = consumer.poll(Duration::from_secs(1)) {
            let message = message.expect("it is not an error");
            values.push(String::from_utf8_lossy(message.payload().expect("a value")).into_owned());
        }
    }
    assert_eq!(values, ["committed", "of the newer"]);
    let committed = consumer.committed_offsets(offsets, LONG).expect("offsets");
    assert_eq!(committed.elements()[0].offset(), Offset::Offset(7));
    println!("the crate rdkafka: transactions");
}
