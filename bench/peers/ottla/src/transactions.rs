//! Producing in transactions, or idempotently with a flush as often.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ottla::{ApiKey, DeliveryBatch, Exchange, Observer, Peer, Producer, Record};
use peer::{Job, Parts, aborts, report_parts};

use crate::{A_WHILE, VERSION, config};

/// Adds up the round trips of the requests that a commit waits for, one after the other.
#[derive(Debug, Default)]
struct RoundTrips(Mutex<Duration>);

impl Observer for RoundTrips {
    fn response_received(&self, _: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        let awaited = [ApiKey::Produce, ApiKey::AddPartitionsToTxn, ApiKey::EndTxn];
        if awaited.contains(&response.api) {
            *self.0.lock().expect("nobody panicked") += round_trip;
        }
    }
}

pub fn produce(job: &Job) {
    let (messages, partitions, parts) = (job.number("messages"), job.number("partitions"), Parts::of(job));
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
    let id = format!("bench-{}", std::process::id());
    let mut own = vec![("compression.codec", job.text("codec")), ("acks", job.text("acks"))];
    match parts {
        Parts::Transactions(_) => own.push(("transactional.id", &id)),
        _ => own.push(("enable.idempotence", "true")),
    }
    let config = config(job, &own);
    let mut builder = Producer::builder(&config).on_delivery(on_delivery);
    // `--round-trips yes`: compares each commit with its requests, of one partition, whose round trips follow each other.
    let round_trips = job.optional("round-trips").map(|_| Arc::new(RoundTrips::default()));
    if let Some(round_trips) = &round_trips {
        builder = builder.observer(Arc::clone(round_trips) as _);
    }
    let producer = builder.build().expect("a producer");
    let topic = producer.topic(job.text("topic"));
    let is_transactional = matches!(parts, Parts::Transactions(_));
    let (aborts, round_robin) = (aborts(job), job.round_robin());
    if is_transactional {
        producer.init_transactions(A_WHILE).expect("ready");
    }
    let (mut open, mut ends, mut shares, mut aborted) = (None, Vec::new(), Vec::new(), 0);
    let began = Instant::now();
    let mut end = |open: Option<ottla::Transaction<'_>>, abort: bool| {
        let started = Instant::now();
        if let Some(round_trips) = &round_trips {
            *round_trips.0.lock().expect("nobody panicked") = Duration::ZERO;
        }
        match open {
            Some(transaction) if abort => transaction.abort(A_WHILE).expect("aborted"),
            Some(transaction) => transaction.commit(A_WHILE).expect("committed"),
            None => producer.flush(A_WHILE).expect("flushed"),
        }
        let took = started.elapsed();
        ends.push(took);
        if let Some(round_trips) = &round_trips {
            let sum = *round_trips.0.lock().expect("nobody panicked");
            shares.push((took, sum));
        }
    };
    for number in 0..if aborts { messages * 2 } else { messages } {
        if parts.begin_at(number) {
            if number > 0 {
                end(open.take(), aborts && aborted % 2 == 0);
                aborted += 1;
            }
            open = is_transactional.then(|| producer.begin().expect("begun"));
        }
        let mut record = Record::new().value(payloads.next_payload());
        if round_robin {
            record = record.partition((number % partitions) as i32);
        }
        topic.send_blocking(record, A_WHILE).unwrap_or_else(|error| panic!("{error}"));
        if aborts && aborted % 2 == 0 && parts.begin_at(number + 1) {
            // The records of aborted transactions are to be in the log.
            producer.flush(A_WHILE).expect("flushed");
        }
    }
    end(open.take(), false);
    if !shares.is_empty() {
        print_shares(&shares);
    }
    let (done, errors) = (delivered.0.load(Relaxed), delivered.1.load(Relaxed));
    report_parts(VERSION, began, done.min(messages), errors, ends);
}

/// Prints percentiles of the commits, of the sums of their requests' round trips, and of their ratio.
fn print_shares(shares: &[(Duration, Duration)]) {
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    for (took, sum) in shares.iter().skip(shares.len() / 10) {
        let (took, sum) = (took.as_nanos() as f64 / 1000.0, sum.as_nanos() as f64 / 1000.0);
        for (column, value) in columns.iter_mut().zip([took, sum, took / sum]) {
            column.push(value);
        }
    }
    for (column, name) in columns.iter_mut().zip(["commit_us", "round_trips_us", "ratio"]) {
        column.sort_by(f64::total_cmp);
        let at = |share: f64| column[((column.len() - 1) as f64 * share) as usize];
        eprintln!("{name}: p50 {:.2}, p99 {:.2}", at(0.5), at(0.99));
    }
}
