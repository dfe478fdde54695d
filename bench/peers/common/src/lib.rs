//! The common parts of the Rust peers: the command line, the payloads, and the JSON line at the end.
//!
//! A peer is one process that does one job: `produce`, `consume`, `latency` or `steady` (records at a fixed rate, each
//! timed from send to acknowledgement). All peers, in all languages, take the same arguments, do the same work (the
//! length and the first byte of each received payload are read) and print one line of JSON. CPU time and memory are
//! measured from outside, over the whole life of the process.

#![forbid(unsafe_code)]

use std::{
    collections::HashMap,
    env, fs,
    time::{Duration, Instant},
};

/// The job of the command line: `peer JOB --name value ...`.
#[derive(Debug)]
pub struct Job {
    pub kind: String,
    values: HashMap<String, String>,
    /// `--set name=value`: additional properties of the client, with its own names.
    pub properties: Vec<(String, String)>,
}

impl Job {
    pub fn from_args() -> Self {
        let mut args = env::args().skip(1);
        let kind = args.next().expect("usage: peer produce|consume|latency|steady --name value ...");
        let mut values = HashMap::new();
        let mut properties = Vec::new();
        while let Some(name) = args.next() {
            let name = name.strip_prefix("--").expect("a name starts with --").to_owned();
            let value = args.next().expect("a name is followed by its value");
            if name == "set" {
                let (name, value) = value.split_once('=').expect("--set name=value");
                properties.push((name.to_owned(), value.to_owned()));
            } else {
                values.insert(name, value);
            }
        }
        Self { kind, values, properties }
    }

    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("--{name} is missing"))
    }

    pub fn optional(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_else(|_| panic!("--{name} is not a number"))
    }

    /// Partition 0, 1, 2, ... in turn, in place of the client's own partitioner.
    pub fn round_robin(&self) -> bool {
        self.optional("spread") == Some("round-robin")
    }

    pub fn payloads(&self) -> Payloads {
        let bytes = fs::read(self.text("payloads")).expect("the payload file can be read");
        let size = self.number("size") as usize;
        assert!(size > 0 && bytes.len() >= size, "the payload file is too short");
        Payloads { bytes, size, next: 0 }
    }
}

/// Payloads of one size, concatenated in a file and used in turn.
#[derive(Debug)]
pub struct Payloads {
    bytes: Vec<u8>,
    size: usize,
    next: usize,
}

impl Payloads {
    #[inline]
    pub fn next_payload(&mut self) -> &[u8] {
        let start = self.next_start();
        self.at(start)
    }

    /// Returns the position of the next payload, for [`Payloads::at`], so that several can be borrowed at once.
    #[inline]
    pub fn next_start(&mut self) -> usize {
        if self.next + self.size > self.bytes.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += self.size;
        start
    }

    #[inline]
    pub fn at(&self, start: usize) -> &[u8] {
        &self.bytes[start..start + self.size]
    }
}

/// `--transaction N`: a transaction per N messages. `--flush N`: a flush per N messages, which waits as often, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    Whole,
    Transactions(u64),
    Flushes(u64),
}

impl Parts {
    pub fn of(job: &Job) -> Self {
        let number = |name: &str| job.optional(name).map(|_| job.number(name).max(1));
        match (number("transaction"), number("flush")) {
            (Some(size), _) => Self::Transactions(size),
            (None, Some(size)) => Self::Flushes(size),
            (None, None) => Self::Whole,
        }
    }

    /// Returns true if a part begins with this message.
    #[inline]
    pub const fn begin_at(self, number: u64) -> bool {
        match self {
            Self::Whole => false,
            Self::Transactions(size) | Self::Flushes(size) => number.is_multiple_of(size),
        }
    }
}

/// `--aborts yes`: every other transaction is aborted, and its messages are not counted in `--messages`.
pub fn aborts(job: &Job) -> bool {
    job.optional("aborts") == Some("yes")
}

/// The totals of the received records, enough to detect missing records and unread payloads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    pub messages: u64,
    pub bytes: u64,
    pub check: u64,
}

impl Received {
    #[inline]
    pub fn add(&mut self, payload: &[u8]) {
        self.messages += 1;
        self.bytes += payload.len() as u64;
        self.check = self.check.wrapping_add(u64::from(payload.first().copied().unwrap_or(0)));
    }
}

/// The line at the end of a job over many messages.
pub fn report(version: &str, began: Instant, messages: u64, errors: u64, bytes: u64) {
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{{\"version\":\"{version}\",\"messages\":{messages},\"errors\":{errors},\"bytes\":{bytes},\"seconds\":{seconds:.6}}}"
    );
}

/// The line at the end of a job in transactions: `ends` are the durations of the commits or flushes.
pub fn report_parts(version: &str, began: Instant, messages: u64, errors: u64, mut ends: Vec<Duration>) {
    if ends.is_empty() {
        return report(version, began, messages, errors, 0);
    }
    let seconds = began.elapsed().as_secs_f64();
    ends.sort();
    let at = |share: f64| ends[((ends.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1000.0;
    println!(
        "{{\"version\":\"{version}\",\"messages\":{messages},\"errors\":{errors},\"bytes\":0,\"seconds\":{seconds:.6},\"p50_us\":{:.1},\"p99_us\":{:.1},\"p999_us\":{:.1}}}",
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

/// The line at the end of a job that sends one message at a time: percentiles in microseconds.
pub fn report_latency(version: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1000.0;
    println!(
        "{{\"version\":\"{version}\",\"messages\":{},\"errors\":0,\"p50_us\":{:.1},\"p99_us\":{:.1},\"p999_us\":{:.1}}}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

/// The schedule of `steady`: a record at fixed intervals, independent of earlier ones.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub rate: u64,
    /// The number of records at the start that are not counted.
    pub warm: u64,
    pub messages: u64,
    /// `--tick MS`: sleeps at least this long, then sends all due records; a sleep per record would cost more than
    /// sending.
    tick: Duration,
    /// `--spread random`: random partitions instead of taking turns; the same ones for every peer.
    random: bool,
}

impl Pace {
    pub fn of(job: &Job) -> Self {
        let (rate, warm) = (job.number("rate"), job.number("warm"));
        let tick = job.optional("tick").map_or(0, |tick| tick.parse().expect("--tick is a number"));
        Self {
            rate,
            warm: warm * rate,
            messages: (warm + job.number("seconds")) * rate,
            tick: Duration::from_millis(tick),
            random: job.optional("spread") == Some("random"),
        }
    }

    /// Returns the time until record `number` is due.
    pub fn wait(&self, began: Instant, number: u64) -> Duration {
        let due = Duration::from_nanos((u128::from(number) * 1_000_000_000 / u128::from(self.rate)) as u64);
        let wait = due.saturating_sub(began.elapsed());
        if wait.is_zero() { wait } else { wait.max(self.tick) }
    }

    /// Returns the partition of record `number`.
    pub fn partition(&self, number: u64, partitions: u64) -> i32 {
        let chosen = if self.random { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 } else { number };
        (chosen % partitions) as i32
    }
}

/// The line at the end of `steady`: what each record took, in nanoseconds, how many requests
/// that took, and the longest wait in Ottla's collector; -1 where it is not known. `quick` are the records of partitions
/// that a slow broker doesn't lead, if that is measured.
pub fn report_steady(
    version: &str,
    mut times: Vec<u64>,
    mut quick: Vec<u64>,
    errors: u64,
    requests: i64,
    longest_wait_us: i64,
) {
    times.sort_unstable();
    quick.sort_unstable();
    let of = |times: &[u64], share: f64| {
        times
            .get(((times.len().max(1) - 1) as f64 * share) as usize)
            .map_or(-1.0, |time| *time as f64 / 1000.0)
    };
    let at = |share: f64| of(&times, share);
    println!(
        "{{\"version\":\"{version}\",\"messages\":{},\"errors\":{errors},\"p50_us\":{:.1},\"p99_us\":{:.1},\"p999_us\":{:.1},\"max_us\":{:.1},\"requests\":{requests},\"longest_wait_us\":{longest_wait_us},\"quick_p50_us\":{:.1},\"quick_p99_us\":{:.1}}}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        of(&quick, 0.5),
        of(&quick, 0.99)
    );
}
