//! The dials of worlds of share groups.

use std::time::Duration;

use super::setup::Setup;
use crate::dials::Dial;

/// The dials, those that save most time first.
pub(super) const DIALS: [Dial<Setup>; 19] = [
    Dial::new(
        "suffers-ms",
        0,
        |knobs| knobs.suffers.as_millis() as u64,
        |knobs, value| knobs.suffers = Duration::from_millis(value),
    ),
    Dial::new(
        "writes-us",
        1000000,
        |knobs| knobs.writes.as_micros() as u64,
        |knobs, value| knobs.writes = Duration::from_micros(value),
    ),
    Dial::new("members", 0, |knobs| knobs.members as u64, |knobs, value| knobs.members = value as usize),
    Dial::new("brokers", 1, |knobs| knobs.brokers as u64, |knobs, value| knobs.brokers = value as i32),
    Dial::new(
        "partitions",
        1,
        |knobs| knobs.partitions as u64,
        |knobs, value| knobs.partitions = value as i32,
    ),
    Dial::new("releases", 0, |knobs| knobs.manners.releases, |knobs, value| knobs.manners.releases = value),
    Dial::new("rejects", 0, |knobs| knobs.manners.rejects, |knobs, value| knobs.manners.rejects = value),
    Dial::new("delays", 0, |knobs| knobs.manners.delays, |knobs, value| knobs.manners.delays = value),
    Dial::new(
        "processes-us",
        1000,
        |knobs| knobs.manners.processes.as_micros() as u64,
        |knobs, value| knobs.manners.processes = Duration::from_micros(value),
    ),
    Dial::new(
        "rests-us",
        30000,
        |knobs| knobs.manners.rests.as_micros() as u64,
        |knobs, value| knobs.manners.rests = Duration::from_micros(value),
    ),
    Dial::new("strict", 0, |knobs| u64::from(knobs.is_strict), |knobs, value| knobs.is_strict = value != 0),
    Dial::new(
        "renews-locks",
        0,
        |knobs| u64::from(knobs.renews_locks),
        |knobs, value| knobs.renews_locks = value != 0,
    ),
    Dial::new(
        "implicit",
        0,
        |knobs| u64::from(knobs.manners.is_implicit),
        |knobs, value| knobs.manners.is_implicit = value != 0,
    ),
    Dial::new(
        "max-record-locks",
        2000,
        |knobs| knobs.max_record_locks as u64,
        |knobs, value| knobs.max_record_locks = value as i32,
    ),
    Dial::new(
        "max-poll-records",
        500,
        |knobs| knobs.max_poll_records as u64,
        |knobs, value| knobs.max_poll_records = value as i32,
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
