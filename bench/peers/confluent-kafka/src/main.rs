//! confluent-kafka, the Java client translated to Rust: `send` with a callback, over byte slices.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use confluent_kafka::{
    common::{
        TopicPartition,
        serialization::{ByteArrayDeserializer, ByteArraySerializer},
    },
    consumer::{Consumer, ConsumerConfig, KafkaConsumer},
    producer::{Callback, KafkaProducer, Producer, ProducerConfig, ProducerRecord, callback},
};
use peer::{Job, Received, report, report_latency};

const VERSION: &str = "1.0.0";

#[tokio::main]
async fn main() {
    let job = Job::from_args();
    match job.kind.as_str() {
        "consume" => consume(&job).await,
        kind => produce(&job, kind == "latency").await,
    }
}

fn properties(job: &Job, own: &[(&str, &str)]) -> HashMap<String, String> {
    let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    own.chain(job.properties.iter().cloned()).collect()
}

async fn produce(job: &Job, one_at_a_time: bool) {
    let own = [
        ("bootstrap.servers", job.text("bootstrap")),
        ("compression.type", job.text("codec")),
        ("acks", job.text("acks")),
        ("enable.idempotence", "false"),
    ];
    let config = ProducerConfig::new(&properties(job, &own)).expect("a configuration");
    let producer = KafkaProducer::<Vec<u8>, Vec<u8>>::new(
        config,
        ByteArraySerializer::default(),
        ByteArraySerializer::default(),
    )
    .expect("a producer");
    let (messages, partitions, topic) = (job.number("messages"), job.number("partitions"), job.text("topic"));
    let round_robin = job.round_robin();
    let mut payloads = job.payloads();
    if one_at_a_time {
        let mut times = Vec::new();
        for number in 0..messages + messages / 10 {
            let began = Instant::now();
            let record = ProducerRecord::new(topic.to_owned(), Some(payloads.next_payload()));
            producer.send(record, None).await.expect("sent").get().await.expect("acknowledged");
            if number >= messages / 10 {
                times.push(began.elapsed());
            }
        }
        return report_latency(VERSION, times);
    }
    let (delivered, errors) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    for number in 0..messages {
        let payload = payloads.next_payload();
        let record = if round_robin {
            let partition = (number % partitions) as i32;
            ProducerRecord::with_partition_key(topic.to_owned(), Some(partition), None, Some(payload))
                .expect("a record")
        } else {
            ProducerRecord::new(topic.to_owned(), Some(payload))
        };
        let (delivered, errors) = (delivered.clone(), errors.clone());
        let done: Box<dyn Callback> = Box::new(callback::new(move |_, error| {
            delivered.fetch_add(1, Relaxed);
            errors.fetch_add(u64::from(error.is_some()), Relaxed);
        }));
        producer.send(record, Some(done)).await.expect("sent");
    }
    producer.flush().await.expect("flushed");
    report(VERSION, began, delivered.load(Relaxed), errors.load(Relaxed), 0);
}

async fn consume(job: &Job) {
    let own = [
        ("bootstrap.servers", job.text("bootstrap")),
        ("group.id", "bench"),
        ("group.protocol", "consumer"),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "earliest"),
    ];
    let config = ConsumerConfig::new(&properties(job, &own)).expect("a configuration");
    let mut consumer = KafkaConsumer::<Vec<u8>, Vec<u8>>::new(
        config,
        ByteArrayDeserializer::default(),
        ByteArrayDeserializer::default(),
    )
    .expect("a consumer");
    let partitions: Vec<_> = (0..job.number("partitions") as i32)
        .map(|it| TopicPartition::new(job.text("topic").to_owned(), it))
        .collect();
    let messages = job.number("messages");
    let began = Instant::now();
    consumer.assign(partitions.clone()).await.expect("assigned");
    // The positions are given, so that the figure includes no coordinator.
    consumer.seek_to_beginning(&partitions).await.expect("positioned");
    let mut received = Received::default();
    while received.messages < messages && began.elapsed() < Duration::from_secs(60) {
        let records = consumer.poll(Duration::from_secs(1)).await.expect("records");
        for record in &records {
            received.add(record.value().map(Vec::as_slice).unwrap_or_default());
        }
    }
    report(VERSION, began, received.messages, 0, received.bytes);
    std::process::exit(0);
}
