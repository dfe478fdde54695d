//! The dials of worlds of transactions.

use std::time::Duration;

use super::Setup;
use crate::dials::{Dial, keep_partitions, keep_topics, most_partitions};

/// The dials, those that save most time first.
pub(super) const DIALS: [Dial<Setup>; 22] = [
    Dial::new(
        "suffers-ms",
        0,
        |knobs| knobs.suffers.as_millis() as u64,
        |knobs, value| knobs.suffers = Duration::from_millis(value),
    ),
    Dial::new(
        "producers",
        0,
        |knobs| knobs.producers as u64,
        |knobs, value| knobs.producers = value as usize,
    ),
    Dial::new("copiers", 0, |knobs| knobs.copiers as u64, |knobs, value| knobs.copiers = value as usize),
    Dial::new("readers", 0, |knobs| knobs.readers as u64, |knobs, value| knobs.readers = value as usize),
    Dial::new("brokers", 1, |knobs| knobs.brokers as u64, |knobs, value| knobs.brokers = value as i32),
    Dial::new(
        "partitions",
        1,
        |knobs| most_partitions(&knobs.topics),
        |knobs, value| keep_partitions(&mut knobs.topics, value),
    ),
    Dial::new(
        "topics",
        2,
        |knobs| knobs.topics.len() as u64,
        |knobs, value| keep_topics(&mut knobs.topics, value.max(2)),
    ),
    Dial::new("records", 1, |knobs| knobs.manners.records, |knobs, value| knobs.manners.records = value),
    Dial::new(
        "abort-percent",
        0,
        |knobs| knobs.manners.abort_percent,
        |knobs, value| knobs.manners.abort_percent = value,
    ),
    Dial::new(
        "thinks-ms",
        0,
        |knobs| knobs.manners.thinks.as_millis() as u64,
        |knobs, value| knobs.manners.thinks = Duration::from_millis(value),
    ),
    Dial::new(
        "rests-ms",
        1000,
        |knobs| knobs.manners.rests.as_millis() as u64,
        |knobs, value| knobs.manners.rests = Duration::from_millis(value),
    ),
    Dial::new(
        "switched",
        0,
        |knobs| u64::from(knobs.is_switched),
        |knobs, value| knobs.is_switched = value != 0,
    ),
    Dial::new("workers", 0, |knobs| u64::from(knobs.workers), |knobs, value| knobs.workers = value != 0),
    Dial::new(
        "loses-tails",
        0,
        |knobs| u64::from(knobs.loses_tails),
        |knobs, value| knobs.loses_tails = value != 0,
    ),
    Dial::new(
        "marker-delay-us",
        0,
        |knobs| knobs.marker_delay.as_micros() as u64,
        |knobs, value| knobs.marker_delay = Duration::from_micros(value),
    ),
    Dial::new(
        "replication-lag-us",
        0,
        |knobs| knobs.replication_lag.as_micros() as u64,
        |knobs, value| knobs.replication_lag = Duration::from_micros(value),
    ),
    Dial::new(
        "linger-us",
        0,
        |knobs| knobs.linger.as_micros() as u64,
        |knobs, value| knobs.linger = Duration::from_micros(value),
    ),
    Dial::new("rereads", 0, |knobs| knobs.rereads, |knobs, value| knobs.rereads = value),
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
];
