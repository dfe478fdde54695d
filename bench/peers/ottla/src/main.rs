//! Ottla through its Rust API: `send` with a delivery callback per batch, whose reports are counted one by one.

mod connections;
mod transactions;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ottla::{Admin, Config, Consumer, DeliveryBatch, Offset, Producer, Record};
use peer::{Job, Pace, Parts, Received, report, report_latency, report_steady};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Records of a call of `send_batch`.
const ARRAY: usize = 100;
const A_WHILE: Duration = Duration::from_secs(60);

fn main() {
    let job = Job::from_args();
    match job.kind.as_str() {
        "produce" if Parts::of(&job) != Parts::Whole => transactions::produce(&job),
        "produce" => produce(&job),
        "latency" => latency(&job),
        "consume" => consume(&job),
        "steady" => steady(&job),
        "create" => connections::create(&job),
        "connections" => connections::hold(&job),
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
    if job.optional("mode") == Some("batch") {
        for first in (0..messages).step_by(ARRAY) {
            let numbers = first..messages.min(first + ARRAY as u64);
            let starts: Vec<_> = numbers.map(|number| (number, payloads.next_start())).collect();
            let record = |&(number, start): &(u64, usize)| {
                let record = Record::new().value(payloads.at(start));
                if round_robin { record.partition((number % partitions) as i32) } else { record }
            };
            let records: Vec<_> = starts.iter().map(record).collect();
            let mut left = &records[..];
            while let Err(error) = topic.send_batch(left) {
                // Waits for queue room with one record.
                left = &left[error.taken..];
                topic.send_blocking(left[0].clone(), A_WHILE).unwrap_or_else(|error| panic!("{error}"));
                left = &left[1..];
            }
        }
        producer.flush(A_WHILE).expect("flushed");
        return report(VERSION, began, delivered.0.load(Relaxed), delivered.1.load(Relaxed), 0);
    }
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

fn steady(job: &Job) {
    let (pace, partitions) = (Pace::of(job), job.number("partitions"));
    let mut payloads = job.payloads();
    let began = Instant::now();
    let times = Arc::new(Mutex::new(Vec::with_capacity(pace.messages as usize)));
    // `--slow-broker ID`: the latencies of records of other brokers' partitions are also recorded separately.
    let elsewhere = job.optional("slow-broker").map(|slow| led_elsewhere(job, slow.parse().expect("an id")));
    let quick = Arc::new(Mutex::new(Vec::new()));
    let noted_quick = quick.clone();
    let errors = Arc::new(AtomicU64::new(0));
    let (noted, failed) = (times.clone(), errors.clone());
    let on_delivery = move |batch: &DeliveryBatch| {
        let now = began.elapsed().as_nanos() as u64;
        if batch.error().is_some() {
            failed.fetch_add(batch.len() as u64, Relaxed);
        }
        let took = || {
            let sent = batch.iter().map(|report| report.opaque).filter(|sent| *sent > 0);
            sent.map(|sent| now - sent)
        };
        if elsewhere.as_ref().is_some_and(|partitions| partitions.contains(&batch.partition())) {
            noted_quick.lock().expect("nobody panicked").extend(took());
        }
        noted.lock().expect("nobody panicked").extend(took());
    };
    let own = [("compression.codec", job.text("codec")), ("acks", job.text("acks"))];
    let producer =
        Producer::builder(&config(job, &own)).on_delivery(on_delivery).build().expect("a producer");
    let topic = producer.topic(job.text("topic"));
    for number in 0..pace.messages {
        let wait = pace.wait(began, number);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let sent = if number < pace.warm { 0 } else { began.elapsed().as_nanos() as u64 };
        let record = Record::new().value(payloads.next_payload()).opaque(sent);
        topic
            .send_blocking(record.partition(pace.partition(number, partitions)), A_WHILE)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    producer.flush(A_WHILE).expect("flushed");
    let times = std::mem::take(&mut *times.lock().expect("nobody panicked"));
    let collector = producer.statistics().expect("statistics").collector();
    let quick = std::mem::take(&mut *quick.lock().expect("nobody panicked"));
    report_steady(VERSION, times, quick, errors.load(Relaxed), collector.sends, collector.longest_wait);
}

/// Returns the topic's partitions that this broker does not lead.
fn led_elsewhere(job: &Job, broker: i32) -> HashSet<i32> {
    let admin = Admin::new(&config(job, &[])).expect("a client");
    let topic = job.text("topic");
    let cluster = admin.metadata(Some(&[topic]), A_WHILE).expect("metadata");
    let partitions = cluster.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.filter(|it| it.leader != Some(broker)).map(|it| it.id).collect()
}

fn consume(job: &Job) {
    let topic = job.text("topic");
    let is_member = job.optional("mode") == Some("member");
    // The members of earlier runs are still in their groups.
    let group = format!("bench-{}", std::process::id());
    let isolation = job.optional("isolation").unwrap_or("read_committed");
    let mut own = vec![("auto.offset.reset", "earliest"), ("isolation.level", isolation)];
    if is_member {
        own.extend([("group.id", &*group), ("enable.auto.commit", "false")]);
    }
    let config = config(job, &own);
    let messages = job.number("messages");
    let consumer = Consumer::new(&config).expect("a consumer");
    let partitions: Vec<_> =
        (0..job.number("partitions") as i32).map(|partition| (topic, partition, Offset::Beginning)).collect();
    let began = Instant::now();
    if is_member {
        consumer.subscribe(&[topic]).expect("subscribed");
    } else {
        consumer.assign(&partitions).expect("assigned");
    }
    let mut received = Received::default();
    while received.messages < messages && began.elapsed() < A_WHILE {
        let records = consumer.poll(Duration::from_secs(1)).expect("records");
        for message in &records {
            received.add(message.value().unwrap_or_default());
        }
    }
    report(VERSION, began, received.messages, 0, received.bytes);
}
