//! Ottla through its Rust API: `send` with a delivery callback per batch, whose reports are counted one by one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ottla::{Config, Consumer, DeliveryBatch, Offset, Producer, Record};
use peer::{Job, Received, report, report_latency};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const A_WHILE: Duration = Duration::from_secs(60);

fn main() {
    let job = Job::from_args();
    match job.kind.as_str() {
        "produce" => produce(&job),
        "latency" => latency(&job),
        "consume" => consume(&job),
        other => panic!("there is no job {other}"),
    }
}

fn config(job: &Job, own: &[(&str, &str)]) -> Config {
    let mut config = Config::new();
    let given = job.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in
        own.iter().copied().chain([("bootstrap.servers", job.text("bootstrap"))]).chain(given)
    {
        config.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    config
}

fn producer_config(job: &Job) -> Config {
    let own = [
        ("compression.codec", job.text("codec")),
        ("acks", job.text("acks")),
        ("enable.idempotence", "false"),
    ];
    config(job, &own)
}

fn produce(job: &Job) {
    let (messages, partitions) = (job.number("messages"), job.number("partitions"));
    let mut payloads = job.payloads();
    let delivered = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let counted = delivered.clone();
    let on_delivery = move |batch: &DeliveryBatch| {
        let count = batch.iter().count() as u64;
        counted.0.fetch_add(count, Relaxed);
        if batch.error().is_some() {
            counted.1.fetch_add(count, Relaxed);
        }
    };
    let producer =
        Producer::builder(&producer_config(job)).on_delivery(on_delivery).build().expect("a producer");
    let topic = producer.topic(job.text("topic"));
    let round_robin = job.round_robin();
    let began = Instant::now();
    for number in 0..messages {
        let mut record = Record::new().value(payloads.next_payload());
        if round_robin {
            record = record.partition((number % partitions) as i32);
        }
        topic.send_blocking(record, A_WHILE).unwrap_or_else(|error| panic!("{error}"));
    }
    producer.flush(A_WHILE).expect("flushed");
    report(VERSION, began, delivered.0.load(Relaxed), delivered.1.load(Relaxed), 0);
}

fn latency(job: &Job) {
    let messages = job.number("messages");
    let mut payloads = job.payloads();
    let producer = Producer::new(&producer_config(job)).expect("a producer");
    let topic = producer.topic(job.text("topic"));
    let mut times = Vec::new();
    for number in 0..messages + messages / 10 {
        let began = Instant::now();
        let delivery =
            topic.send_tracked(Record::new().value(payloads.next_payload()).partition(0)).expect("taken");
        delivery.wait(A_WHILE).expect("acknowledged");
        if number >= messages / 10 {
            times.push(began.elapsed());
        }
    }
    report_latency(VERSION, times);
}

fn consume(job: &Job) {
    let config = config(job, &[("auto.offset.reset", "earliest")]);
    let messages = job.number("messages");
    let consumer = Consumer::new(&config).expect("a consumer");
    let topic = job.text("topic");
    let partitions: Vec<_> =
        (0..job.number("partitions") as i32).map(|partition| (topic, partition, Offset::Beginning)).collect();
    let began = Instant::now();
    consumer.assign(&partitions).expect("assigned");
    let mut received = Received::default();
    while received.messages < messages && began.elapsed() < A_WHILE {
        let records = consumer.poll(Duration::from_secs(1)).expect("records");
        for message in &records {
            received.add(message.value().unwrap_or_default());
        }
    }
    report(VERSION, began, received.messages, 0, received.bytes);
}
