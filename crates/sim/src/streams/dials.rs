//! The dials of worlds of streams groups.

use std::time::Duration;

use super::setup::Setup;
use crate::dials::Dial;

/// The dials, those that save most time first.
pub(super) const DIALS: [Dial<Setup>; 10] = [
    Dial::new(
        "suffers-ms",
        0,
        |knobs| knobs.suffers.as_millis() as u64,
        |knobs, value| knobs.suffers = Duration::from_millis(value),
    ),
    Dial::new("members", 0, |knobs| knobs.members as u64, |knobs, value| knobs.members = value as usize),
    Dial::new("brokers", 1, |knobs| knobs.brokers as u64, |knobs, value| knobs.brokers = value as i32),
    Dial::new(
        "partitions",
        1,
        |knobs| knobs.partitions as u64,
        |knobs, value| knobs.partitions = value as i32,
    ),
    Dial::new(
        "standby-replicas",
        0,
        |knobs| knobs.standby_replicas as u64,
        |knobs, value| knobs.standby_replicas = value as usize,
    ),
    Dial::new(
        "gives-up-ms",
        10,
        |knobs| knobs.gives_up.as_millis() as u64,
        |knobs, value| knobs.gives_up = Duration::from_millis(value),
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
