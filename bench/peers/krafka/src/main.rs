//! krafka: calls `enqueue` for every record and awaits the handles in order, with a bounded number of them pending.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;
use krafka::{Compression, Kafka, Record, consumer::AutoOffsetReset, producer::Acks};
use peer::{Job, Received, report, report_latency};

const VERSION: &str = "0.28.1";
/// The maximum number of pending handles: librdkafka's default queue length.
const OPEN: usize = 100_000;

#[tokio::main]
async fn main() {
    let job = Job::from_args();
    let kafka = Kafka::builder(job.text("bootstrap")).connect().await.expect("the cluster answers");
    match job.kind.as_str() {
        "consume" => consume(&job, &kafka).await,
        kind => produce(&job, &kafka, kind == "latency").await,
    }
}

async fn produce(job: &Job, kafka: &Kafka, one_at_a_time: bool) {
    let codec = match job.text("codec") {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        other => panic!("there is no codec {other}"),
    };
    let acks = if job.text("acks") == "1" { Acks::Leader } else { Acks::All };
    let mut builder = kafka.producer().acks(acks).compression(codec).idempotent(false);
    for (name, value) in &job.properties {
        builder = match name.as_str() {
            "batch_size" => builder.batch_size(value.parse().expect("bytes")),
            "linger_ms" => builder.linger(Duration::from_millis(value.parse().expect("milliseconds"))),
            other => panic!("there is no setting {other}"),
        };
    }
    let producer = builder.build().await.expect("a producer");
    let (messages, partitions, topic) = (job.number("messages"), job.number("partitions"), job.text("topic"));
    let round_robin = job.round_robin();
    let mut payloads = job.payloads();
    if one_at_a_time {
        let mut times = Vec::new();
        for number in 0..messages + messages / 10 {
            let payload = Bytes::copy_from_slice(payloads.next_payload());
            let began = Instant::now();
            let _ = producer.send(Record::new(topic, payload).partition(0)).await.expect("acknowledged");
            if number >= messages / 10 {
                times.push(began.elapsed());
            }
        }
        return report_latency(VERSION, times);
    }
    let mut open = VecDeque::with_capacity(OPEN);
    let (mut delivered, mut errors) = (0, 0);
    let began = Instant::now();
    for number in 0..messages {
        let mut record = Record::new(topic, Bytes::copy_from_slice(payloads.next_payload()));
        if round_robin {
            record = record.partition((number % partitions) as i32);
        }
        open.push_back(producer.enqueue(record).await.expect("room"));
        if open.len() == OPEN {
            let handle = open.pop_front().expect("there is one");
            errors += u64::from(handle.await.is_err());
            delivered += 1;
        }
    }
    producer.flush().await.expect("flushed");
    for handle in open {
        errors += u64::from(handle.await.is_err());
        delivered += 1;
    }
    report(VERSION, began, delivered, errors, 0);
}

async fn consume(job: &Job, kafka: &Kafka) {
    let builder = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.build().await.expect("a consumer");
    let messages = job.number("messages");
    let began = Instant::now();
    consumer
        .assign(job.text("topic"), (0..job.number("partitions") as i32).collect())
        .await
        .expect("assigned");
    let mut received = Received::default();
    while received.messages < messages && began.elapsed() < Duration::from_secs(60) {
        for record in consumer.poll(Duration::from_secs(1)).await.expect("records") {
            received.add(record.value.as_deref().unwrap_or_default());
        }
    }
    report(VERSION, began, received.messages, 0, received.bytes);
}
