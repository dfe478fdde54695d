//! The dials of worlds of consumer groups.

use std::time::Duration;

use super::Setup;
use crate::dials::{Dial, keep_partitions, keep_topics, most_partitions};

/// The dials, those that save most time first.
pub(super) const DIALS: [Dial<Setup>; 17] = [
    Dial::new(
        "suffers-ms",
        0,
        |knobs| knobs.pace.suffers.as_millis() as u64,
        |knobs, value| knobs.pace.suffers = Duration::from_millis(value),
    ),
    Dial::new("records-of-a-send", 1, |knobs| knobs.pace.records, |knobs, value| knobs.pace.records = value),
    Dial::new("send-every", 100, |knobs| knobs.pace.send_every, |knobs, value| knobs.pace.send_every = value),
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
    Dial::new("static", 0, |knobs| u64::from(knobs.is_static), |knobs, value| knobs.is_static = value != 0),
    Dial::new("commits", 0, |knobs| knobs.manners.commits, |knobs, value| knobs.manners.commits = value),
    Dial::new(
        "stops-polling",
        0,
        |knobs| knobs.manners.stops_polling,
        |knobs, value| knobs.manners.stops_polling = value,
    ),
    Dial::new(
        "thinks-ms",
        0,
        |knobs| knobs.manners.thinks.as_millis() as u64,
        |knobs, value| knobs.manners.thinks = Duration::from_millis(value),
    ),
    Dial::new(
        "in-parts",
        0,
        |knobs| u64::from(knobs.manners.in_parts),
        |knobs, value| knobs.manners.in_parts = value != 0,
    ),
    Dial::new(
        "polls-while-asked",
        0,
        |knobs| u64::from(knobs.manners.polls_while_asked),
        |knobs, value| knobs.manners.polls_while_asked = value != 0,
    ),
    Dial::new(
        "initial-delay-ms",
        0,
        |knobs| knobs.initial_delay.as_millis() as u64,
        |knobs, value| knobs.initial_delay = Duration::from_millis(value),
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
];
