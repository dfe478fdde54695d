//! The dials of worlds of producers and consumers.

use std::time::Duration;

use crate::{
    dials::{Dial, keep_partitions, keep_topics, most_partitions},
    knobs::Knobs,
};

/// The dials, those that save most time first.
pub const DIALS: [Dial<Knobs>; 33] = [
    Dial::new(
        "faults-ms",
        0,
        |knobs| knobs.faults_for.as_millis() as u64,
        |knobs, value| knobs.faults_for = Duration::from_millis(value),
    ),
    Dial::new("records", 1, |knobs| knobs.records, |knobs, value| knobs.records = value),
    Dial::new("producers", 0, |knobs| knobs.producers as u64, |knobs, value| knobs.producers = value as u32),
    Dial::new("consumers", 0, |knobs| knobs.consumers as u64, |knobs, value| knobs.consumers = value as u32),
    Dial::new("brokers", 1, |knobs| knobs.brokers as u64, |knobs, value| knobs.brokers = value as i32),
    Dial::new(
        "topics",
        1,
        |knobs| knobs.topics.len() as u64,
        |knobs, value| keep_topics(&mut knobs.topics, value),
    ),
    Dial::new(
        "partitions",
        1,
        |knobs| most_partitions(&knobs.topics),
        |knobs, value| keep_partitions(&mut knobs.topics, value),
    ),
    Dial::new(
        "step-us",
        10000,
        |knobs| knobs.step().as_micros() as u64,
        |knobs, value| knobs.step = Some(Duration::from_micros(value)),
    ),
    Dial::new("doubts", 0, |knobs| u64::from(knobs.doubts), |knobs, value| knobs.doubts = value != 0),
    Dial::new("steady", 0, |knobs| u64::from(knobs.steady), |knobs, value| knobs.steady = value != 0),
    Dial::new(
        "min-in-sync",
        1,
        |knobs| knobs.min_in_sync as u64,
        |knobs, value| knobs.min_in_sync = value as i32,
    ),
    Dial::new("lossy", 0, |knobs| u64::from(knobs.lossy), |knobs, value| knobs.lossy = value != 0),
    Dial::new(
        "no-identity-ms",
        0,
        |knobs| knobs.no_identity_for.as_millis() as u64,
        |knobs, value| knobs.no_identity_for = Duration::from_millis(value),
    ),
    Dial::new(
        "hasty-ms",
        0,
        |knobs| knobs.hasty_for.as_millis() as u64,
        |knobs, value| knobs.hasty_for = Duration::from_millis(value),
    ),
    Dial::new("workers", 0, |knobs| u64::from(knobs.workers), |knobs, value| knobs.workers = value != 0),
    Dial::new(
        "replication-lag-us",
        0,
        |knobs| knobs.replication_lag.as_micros() as u64,
        |knobs, value| knobs.replication_lag = Duration::from_micros(value),
    ),
    Dial::new("purges", 0, |knobs| knobs.deadlines.purges, |knobs, value| knobs.deadlines.purges = value),
    Dial::new(
        "purges-moves",
        0,
        |knobs| knobs.deadlines.purges_moves,
        |knobs, value| knobs.deadlines.purges_moves = value,
    ),
    Dial::new("flushes", 0, |knobs| knobs.deadlines.flushes, |knobs, value| knobs.deadlines.flushes = value),
    Dial::new("closes", 0, |knobs| knobs.deadlines.closes, |knobs, value| knobs.deadlines.closes = value),
    Dial::new(
        "slow-threads",
        1,
        |knobs| knobs.deadlines.slow_threads,
        |knobs, value| knobs.deadlines.slow_threads = value,
    ),
    Dial::new("queries", 0, |knobs| knobs.queries.every, |knobs, value| knobs.queries.every = value),
    Dial::new("divided", 0, |knobs| u64::from(knobs.divided), |knobs, value| knobs.divided = value != 0),
    Dial::new(
        "sleeps",
        0,
        |knobs| u64::from(knobs.habits.sleeps),
        |knobs, value| knobs.habits.sleeps = value != 0,
    ),
    Dial::new(
        "restless",
        u64::MAX,
        |knobs| knobs.habits.restless,
        |knobs, value| knobs.habits.restless = value,
    ),
    Dial::new(
        "partition-eof",
        0,
        |knobs| u64::from(knobs.consumer.partition_eof),
        |knobs, value| knobs.consumer.partition_eof = value != 0,
    ),
    Dial::new(
        "latency-us",
        1000,
        |knobs| knobs.network.latency.as_micros() as u64,
        |knobs, value| knobs.network.latency = Duration::from_micros(value),
    ),
    Dial::new(
        "jitter-us",
        0,
        |knobs| knobs.network.jitter.as_micros() as u64,
        |knobs, value| knobs.network.jitter = Duration::from_micros(value),
    ),
    Dial::new(
        "window",
        1048576,
        |knobs| knobs.network.window as u64,
        |knobs, value| knobs.network.window = value as usize,
    ),
    Dial::new(
        "cut-percent",
        0,
        |knobs| knobs.network.cut_percent,
        |knobs, value| knobs.network.cut_percent = value,
    ),
    Dial::new(
        "batch-records",
        10000,
        |knobs| knobs.producer.topic.batch.max_records as u64,
        |knobs, value| knobs.producer.topic.batch.max_records = value as usize,
    ),
    Dial::new(
        "queued-messages",
        100000,
        |knobs| knobs.producer.max_queued_messages,
        |knobs, value| knobs.producer.max_queued_messages = value,
    ),
    Dial::new(
        "in-flight",
        1,
        |knobs| knobs.producer.max_in_flight as u64,
        |knobs, value| knobs.producer.max_in_flight = value as usize,
    ),
];
