//! Compares `broker.linger.ms=auto` with every fixed linger, over loads of five orders of magnitude and round trips of
//! 0.2 to 200 ms, in virtual time: the real collector, and a broker that serves one request after the other.
//!
//! `OTTLA_WRITE_DOCS=1 cargo test -p ottla-core --test adaptive_linger` writes docs/internals/adaptive-linger.md.

use std::{cmp::Reverse, collections::BinaryHeap, fmt::Write, time::Duration};

use ottla_core::{
    machine::{Instant, earliest},
    produce::{
        adaptive::Outcome,
        collector::{Collector, Linger},
    },
    rng::Rng,
};

const PARTITIONS: usize = 24;
const MAX_IN_FLIGHT: usize = 5;
const MESSAGE_BYTES: usize = 110;
/// The time that a broker takes for a request, and for a message.
const PER_REQUEST: Duration = Duration::from_micros(50);
const PER_MESSAGE: Duration = Duration::from_nanos(200);
const LARGEST_REQUEST: usize = 1_000_000 / MESSAGE_BYTES;
const LOADS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const ROUND_TRIPS: [Duration; 4] = [
    Duration::from_micros(200),
    Duration::from_millis(2),
    Duration::from_millis(20),
    Duration::from_millis(200),
];
const FIXED_MS: [u64; 6] = [0, 1, 5, 20, 100, 500];

/// A part of a run: a number of messages, their rate, and the round trip of the broker.
#[derive(Clone, Copy)]
struct Phase {
    per_second: u64,
    round_trip: Duration,
    messages: u64,
}

impl Phase {
    /// The number of messages that one event represents; more than one at high loads.
    const fn weight(self) -> usize {
        if self.per_second > MOST_EVENTS { (self.per_second / MOST_EVENTS) as usize } else { 1 }
    }
}

/// The maximum number of events per second.
const MOST_EVENTS: u64 = 20_000;

#[derive(Clone, Copy, Debug)]
struct Measured {
    throughput: f64,
    p50: Duration,
    p99: Duration,
    messages_per_request: f64,
}

/// A producer with one broker.
struct Model {
    now: Instant,
    collector: Collector,
    waiting: Vec<Vec<Instant>>,
    in_flight: usize,
    /// The time of each response, the time at which its request was sent, and the arrival times of its messages.
    responses: BinaryHeap<Reverse<(Instant, Instant, Vec<Instant>)>>,
    broker_free_at: Instant,
    waits: Vec<Duration>,
    requests: u64,
}

impl Model {
    fn new(linger: Linger) -> Self {
        Self {
            now: Instant::from_nanos(1),
            collector: Collector::new(linger, None, MAX_IN_FLIGHT),
            waiting: vec![Vec::new(); PARTITIONS],
            in_flight: 0,
            responses: BinaryHeap::new(),
            broker_free_at: Instant::ZERO,
            waits: Vec::new(),
            requests: 0,
        }
    }

    /// Runs a phase with random arrivals, and waits for the responses to all messages.
    fn run(&mut self, phase: Phase, rng: &mut Rng) -> Measured {
        self.waits.clear();
        self.requests = 0;
        let began = self.now;
        let mut left = phase.messages;
        let mut next = Some(self.now);
        while let Some(at) = earliest(earliest(next, self.response_at()), self.deadline()) {
            self.now = self.now.max(at);
            while let Some(Reverse((at, ..))) = self.responses.peek()
                && *at <= self.now
                && let Some(Reverse((_, sent, messages))) = self.responses.pop()
            {
                let bytes = messages.len() * phase.weight() * MESSAGE_BYTES;
                self.collector.pace().record_response(
                    self.now,
                    self.in_flight,
                    self.now - sent,
                    bytes,
                    Outcome::Good,
                );
                self.in_flight -= 1;
                self.waits.extend(messages.into_iter().map(|arrived| self.now - arrived));
            }
            while let Some(arrives) = next
                && arrives <= self.now
            {
                let partition = rng.below(PARTITIONS as u64) as usize;
                if self.waiting[partition].is_empty() {
                    self.collector.add(partition, arrives, false);
                }
                self.waiting[partition].push(arrives);
                left -= 1;
                // Two uniform distances on average one: random enough, and exact in the mean.
                let mean = 1_000_000_000 * phase.weight() as u64 / phase.per_second;
                next = (left > 0).then(|| arrives + Duration::from_nanos(rng.below(2 * mean + 1)));
            }
            self.send(phase);
        }
        let seconds = (self.now - began).as_secs_f64();
        self.waits.sort_unstable();
        let percentile = |percent: usize| self.waits[(self.waits.len() - 1) * percent / 100];
        Measured {
            throughput: (phase.messages * phase.weight() as u64) as f64 / seconds,
            p50: percentile(50),
            p99: percentile(99),
            messages_per_request: (phase.messages * phase.weight() as u64) as f64 / self.requests as f64,
        }
    }

    fn response_at(&self) -> Option<Instant> {
        self.responses.peek().map(|Reverse((at, ..))| *at)
    }

    fn deadline(&self) -> Option<Instant> {
        (self.in_flight < MAX_IN_FLIGHT).then(|| self.collector.deadline(self.in_flight)).flatten()
    }

    fn send(&mut self, phase: Phase) {
        while self.in_flight < MAX_IN_FLIGHT
            && self.collector.due(self.now, false, false, self.in_flight).is_some()
        {
            let mut messages = Vec::new();
            while messages.len() * phase.weight() < LARGEST_REQUEST
                && let Some((partition, _)) = self.collector.peek_due()
            {
                self.collector.remove(partition);
                messages.append(&mut self.waiting[partition]);
            }
            if messages.is_empty() {
                return;
            }
            let arrives = (self.now + phase.round_trip / 2).max(self.broker_free_at);
            self.broker_free_at =
                arrives + PER_REQUEST + PER_MESSAGE * (messages.len() * phase.weight()) as u32;
            self.responses.push(Reverse((self.broker_free_at + phase.round_trip / 2, self.now, messages)));
            self.in_flight += 1;
            self.requests += 1;
            self.collector.pace().sent(self.now);
        }
    }
}

fn measure(linger: Linger, per_second: u64, round_trip: Duration) -> Measured {
    // Enough messages for a hundred round trips and for percentiles.
    let messages = (per_second.min(MOST_EVENTS) * 5).clamp(5_000, 60_000);
    Model::new(linger).run(Phase { per_second, round_trip, messages }, &mut Rng::from_seed(7))
}

/// Returns the fixed linger with the shortest p99 among those that reach the rate.
fn best_fixed(per_second: u64, round_trip: Duration) -> (u64, Measured) {
    let all = FIXED_MS.map(|millis| {
        (millis, measure(Linger::Broker(Duration::from_millis(millis)), per_second, round_trip))
    });
    let most = all.iter().map(|(_, measured)| measured.throughput).fold(0.0, f64::max);
    let fast = all.into_iter().filter(|(_, measured)| measured.throughput >= 0.98 * most);
    fast.min_by_key(|(_, measured)| measured.p99).expect("one of them is the fastest")
}

#[test]
fn adaptive_linger_matches_the_best_fixed_linger() {
    let mut table = String::from(HEAD);
    for round_trip in ROUND_TRIPS {
        for per_second in LOADS {
            let (fixed_ms, fixed) = best_fixed(per_second, round_trip);
            let auto = measure(Linger::Auto, per_second, round_trip);
            let what = format!("{per_second}/s, {round_trip:?}: {auto:?} against {fixed_ms} ms: {fixed:?}");
            assert!(auto.throughput >= 0.97 * fixed.throughput, "{what}");
            // Below a millisecond the cost of a request on both sides sets the pace, not the lowest latency.
            let allowed = if round_trip < Duration::from_millis(1) {
                Duration::from_millis(1)
            } else {
                fixed.p99.mul_f64(if round_trip < Duration::from_millis(100) { 1.1 } else { 1.25 })
            };
            assert!(auto.p99 <= allowed, "{what}");
            let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
            writeln!(
                table,
                "| {} ms | {per_second} | {:.0} | {:.1} | {:.2} | {:.2} | {fixed_ms} ms | {:.0} | {:.1} | {:.2} | {:.2} |",
                ms(round_trip),
                auto.throughput,
                auto.messages_per_request,
                ms(auto.p50),
                ms(auto.p99),
                fixed.throughput,
                fixed.messages_per_request,
                ms(fixed.p50),
                ms(fixed.p99),
            )
            .expect("a string takes everything");
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/adaptive-linger.md");
    if std::env::var_os("OTTLA_WRITE_DOCS").is_some() {
        std::fs::write(path, &table).expect("docs/internals/adaptive-linger.md can be written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == table,
        "docs/internals/adaptive-linger.md is stale; run the test with OTTLA_WRITE_DOCS=1"
    );
}

#[test]
fn it_follows_a_load_and_a_broker_that_change() {
    let mut model = Model::new(Linger::Auto);
    let mut rng = Rng::from_seed(11);
    let millis = Duration::from_millis;
    let steps = [
        (100, millis(2)),
        (100_000, millis(2)),
        (1_000, millis(200)),
        (1_000_000, millis(2)),
        (100, millis(20)),
        (10_000, Duration::from_micros(200)),
    ];
    for (per_second, round_trip) in steps {
        let messages = per_second.min(MOST_EVENTS);
        let phase = Phase { per_second, round_trip, messages };
        // The linger gets a second to adapt.
        model.run(phase, &mut rng);
        let measured = model.run(Phase { messages: 5 * messages, ..phase }, &mut rng);
        // The duration includes the last message's round trip.
        let offered = per_second as f64 * 5.0 / (5.0 + round_trip.as_secs_f64());
        let what = format!("{per_second}/s, {round_trip:?}: {measured:?}");
        assert!(measured.throughput >= 0.97 * offered, "{what}");
        assert!(measured.p99 <= round_trip * 5 / 2 + millis(2), "{what}");
    }
}

const HEAD: &str = "\
# Adaptive linger, simulated

<!-- Written by crates/core/tests/adaptive_linger.rs. -->

A comparison of `broker.linger.ms=auto` with the best fixed `broker.linger.ms` of 0, 1, 5, 20, 100 and 500 ms, which differs by
load and broker. The simulation runs the real collector in virtual time, with 24 partitions, at most five requests in flight, and
one broker that takes 50 microseconds for a request and 0.2 for a message. The client's CPU costs nothing here, so no linger is
best at a round trip of 0.2 ms. A real client can't send 5,000 requests a second and do its other work, so `auto` never plans
more than 2,000.

| round trip | messages/s | auto: messages/s | per request | p50 ms | p99 ms | best fixed | messages/s | per request | p50 ms | p99 ms |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";
