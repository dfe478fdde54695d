//! Latencies as Kafka's producer tool counts them: whole milliseconds from send to acknowledgement.
//!
//! A record's opaque contains the send time, the size, and whether the warm-up had ended. Therefore a delivery needs no
//! lookup, and the clock is read once per batch. Reports also have latencies in tenths of a millisecond.

use ottla_sorted::SortedMap;
use std::fmt;

use crate::report::Latencies;

/// The properties of a record that its delivery needs, in the 64 bits of its opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u64);

impl Tag {
    /// The bit above the time, which is in units of 0.1 ms and lasts for ten days.
    const STEADY: u64 = 1 << 33;
    /// The unit of the time, in microseconds.
    const UNIT: u64 = 100;

    /// A record of `bytes`, at most 1 GiB, sent `sent_us` microseconds after the start.
    pub fn new(sent_us: u64, bytes: usize, is_steady: bool) -> Tag {
        let steady = if is_steady { Tag::STEADY } else { 0 };
        Tag((bytes as u64) << 34 | steady | ((sent_us / Tag::UNIT) & (Tag::STEADY - 1)))
    }

    fn sent_us(self) -> u64 {
        (self.0 & (Tag::STEADY - 1)) * Tag::UNIT
    }

    fn sent_ms(self) -> u64 {
        self.sent_us() / 1000
    }

    fn bytes(self) -> u64 {
        self.0 >> 34
    }

    fn is_steady(self) -> bool {
        self.0 & Tag::STEADY != 0
    }
}

/// The delivered records: all, and those after the warm-up.
#[derive(Debug, Default)]
pub struct Stats {
    all: Counts,
    steady: Counts,
    window: Window,
    steady_window: Window,
    /// The time when the first record after the warm-up was acknowledged, which Kafka's tool uses as the start.
    steady_since_ms: Option<u64>,
    was_steady: bool,
    /// The latencies since they were taken last, if anybody takes them.
    recorded: Option<Latencies>,
}

#[derive(Debug, Default)]
struct Counts {
    count: u64,
    bytes: u64,
    total_ms: u64,
    max_ms: u64,
    /// The number of records per latency in whole milliseconds.
    by_ms: Vec<u64>,
    /// The same for more than [`MANY_MS`].
    slow: SortedMap<u64, u64>,
}

/// The size of the list of counters: for higher latencies, a list would waste memory.
const MANY_MS: u64 = 1 << 16;

#[derive(Debug, Default)]
struct Window {
    since_ms: u64,
    count: u64,
    bytes: u64,
    total_ms: u64,
    max_ms: u64,
}

impl Stats {
    /// Returns the latencies since the last call. They are counted from the first call on.
    pub fn take_latencies(&mut self) -> Latencies {
        self.recorded.replace(Latencies::default()).unwrap_or_default()
    }

    /// Counts the records of a batch that was acknowledged `now_us` microseconds after the start.
    pub fn record(&mut self, now_us: u64, tags: impl Iterator<Item = Tag>) {
        // Most records of a batch were sent within the same millisecond, so runs of equal tags are counted together.
        let mut run: Option<(Tag, u64)> = None;
        for tag in tags {
            match &mut run {
                Some((same, count)) if *same == tag => *count += 1,
                _ => {
                    if let Some((tag, count)) = run.replace((tag, 1)) {
                        self.record_run(now_us, tag, count);
                    }
                }
            }
        }
        if let Some((tag, count)) = run {
            self.record_run(now_us, tag, count);
        }
    }

    fn record_run(&mut self, now_us: u64, tag: Tag, count: u64) {
        // Kafka's tool reads a clock of milliseconds at both ends.
        let latency = (now_us / 1000).saturating_sub(tag.sent_ms());
        if let Some(recorded) = &mut self.recorded {
            recorded.add(now_us.saturating_sub(tag.sent_us()), count);
        }
        self.all.add(latency, count, tag.bytes());
        if tag.is_steady() {
            let since = *self.steady_since_ms.get_or_insert(tag.sent_ms());
            if self.steady.count == 0 {
                self.steady_window.since_ms = since;
            }
            self.steady.add(latency, count, tag.bytes());
            self.steady_window.add(latency, count, tag.bytes());
        } else {
            self.window.add(latency, count, tag.bytes());
        }
    }

    /// Returns the lines for the time since the last call, and starts a new window. `None` if nothing was acknowledged
    /// yet.
    pub fn window(&mut self, now_ms: u64) -> Option<String> {
        let is_steady = self.steady.count > 0;
        let window = if is_steady { &mut self.steady_window } else { &mut self.window };
        if window.count == 0 {
            return None;
        }
        let line = window.line(now_ms);
        *window = Window { since_ms: now_ms, ..Window::default() };
        let first = is_steady && !std::mem::replace(&mut self.was_steady, is_steady);
        Some(if first { format!("In steady state.\n{line}") } else { line })
    }

    /// Returns the last lines: for all records, and for those after the warm-up if there was one.
    pub fn summary(&self, now_ms: u64) -> String {
        let all = self.all.line(now_ms, "records sent");
        match self.steady_since_ms {
            Some(since) => format!(
                "{all}\n{}",
                self.steady.line(now_ms - since.min(now_ms), "steady state records sent")
            ),
            None => all,
        }
    }

    /// Returns the number of acknowledged records.
    pub fn count(&self) -> u64 {
        self.all.count
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.all.bytes
    }

    /// Returns the mean and the maximum latency.
    pub fn latency_ms(&self) -> (f64, u64) {
        (self.all.mean_ms(), self.all.max_ms)
    }
}

impl Counts {
    fn add(&mut self, latency: u64, count: u64, bytes_each: u64) {
        self.count += count;
        self.bytes += bytes_each * count;
        self.total_ms += latency * count;
        self.max_ms = self.max_ms.max(latency);
        if latency < MANY_MS {
            let index = latency as usize;
            if index >= self.by_ms.len() {
                self.by_ms.resize(index + 1, 0);
            }
            self.by_ms[index] += count;
        } else {
            *self.slow.entry(latency).or_default() += count;
        }
    }

    fn mean_ms(&self) -> f64 {
        self.total_ms as f64 / self.count.max(1) as f64
    }

    /// Returns the latency at this fraction of the sorted latencies; the index is rounded down.
    fn percentile(&self, fraction: f64) -> u64 {
        let place = (fraction * self.count as f64) as u64;
        let counters = self.by_ms.iter().enumerate().map(|(ms, count)| (ms as u64, *count));
        let mut below = 0;
        for (ms, count) in counters.chain(self.slow.iter().map(|(ms, count)| (*ms, *count))) {
            below += count;
            if place < below {
                return ms;
            }
        }
        self.max_ms
    }

    fn line(&self, elapsed_ms: u64, what: &str) -> String {
        let Rate { records, megabytes } = Rate::new(self.count, self.bytes, elapsed_ms);
        format!(
            "{} {what}, {records:.6} records/sec ({megabytes:.2} MB/sec), {:.2} ms avg latency, {:.2} ms max latency, \
             {} ms 50th, {} ms 95th, {} ms 99th, {} ms 99.9th.",
            self.count,
            self.mean_ms(),
            self.max_ms as f64,
            self.percentile(0.5),
            self.percentile(0.95),
            self.percentile(0.99),
            self.percentile(0.999),
        )
    }
}

impl Window {
    fn add(&mut self, latency: u64, count: u64, bytes_each: u64) {
        self.count += count;
        self.bytes += bytes_each * count;
        self.total_ms += latency * count;
        self.max_ms = self.max_ms.max(latency);
    }

    fn line(&self, now_ms: u64) -> String {
        let Rate { records, megabytes } =
            Rate::new(self.count, self.bytes, now_ms - self.since_ms.min(now_ms));
        format!(
            "{} records sent, {records:.1} records/sec ({megabytes:.2} MB/sec), {:.1} ms avg latency, {:.1} ms max latency.",
            self.count,
            self.total_ms as f64 / self.count.max(1) as f64,
            self.max_ms as f64,
        )
    }
}

/// Per second.
pub struct Rate {
    /// Records.
    pub records: f64,
    /// Megabytes, of 1,048,576 bytes as in Kafka's tools.
    pub megabytes: f64,
}

impl Rate {
    /// Computes the rate of this number of records and bytes in `elapsed_ms` milliseconds.
    pub fn new(records: u64, bytes: u64, elapsed_ms: u64) -> Rate {
        let seconds = elapsed_ms.max(1) as f64 / 1000.0;
        Rate { records: records as f64 / seconds, megabytes: bytes as f64 / seconds / (1024.0 * 1024.0) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} records/sec ({:.2} MB/sec)", self.records, self.megabytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that was sent at this millisecond.
    fn tag(sent_ms: u64, bytes: usize, is_steady: bool) -> Tag {
        Tag::new(sent_ms * 1000, bytes, is_steady)
    }

    /// Counts records that were acknowledged at this millisecond.
    fn record(stats: &mut Stats, now_ms: u64, tags: impl Iterator<Item = Tag>) {
        stats.record(now_ms * 1000, tags);
    }

    #[test]
    fn tag_round_trips() {
        for (sent_us, bytes, is_steady) in
            [(0, 0, false), (5300, 100, true), (((1 << 33) - 1) * 100, 1_000_000_000, true)]
        {
            let tag = Tag::new(sent_us, bytes, is_steady);
            assert_eq!((tag.sent_us(), tag.bytes(), tag.is_steady()), (sent_us, bytes as u64, is_steady));
        }
        assert_eq!(Tag::new(1_299_999, 1, false).sent_ms(), 1299);
    }

    #[test]
    fn latencies_are_counted_once_somebody_takes_them() {
        let mut stats = Stats::default();
        stats.record(1000, [Tag::new(0, 1, false)].into_iter());
        let count = |latencies: Latencies| latencies.buckets().iter().map(|one| one.count).sum::<u64>();
        assert_eq!(count(stats.take_latencies()), 0);
        stats.record(2500, [Tag::new(300, 1, false), Tag::new(300, 1, true)].into_iter());
        let taken = stats.take_latencies();
        assert_eq!(taken.quantile(1.0).map(|ms| (ms * 10.0).round()), Some(22.0));
        assert_eq!((count(taken), count(stats.take_latencies())), (2, 0));
    }

    #[test]
    fn summary_has_the_format_of_kafkas_tool() {
        let mut stats = Stats::default();
        // 1,000 records of 100 bytes, sent one a millisecond from 0 to 999 and all acknowledged at 1,000.
        record(&mut stats, 1000, (0..1000).map(|sent| tag(sent, 100, false)));
        assert_eq!(
            stats.summary(1000),
            "1000 records sent, 1000.000000 records/sec (0.10 MB/sec), 500.50 ms avg latency, 1000.00 ms max latency, \
             501 ms 50th, 951 ms 95th, 991 ms 99th, 1000 ms 99.9th."
        );
        assert_eq!((stats.count(), stats.bytes()), (1000, 100_000));
    }

    #[test]
    fn window_starts_at_the_end_of_the_previous_one() {
        let mut stats = Stats::default();
        assert_eq!(stats.window(10), None);
        record(&mut stats, 900, (0..500).map(|_| tag(800, 100, false)));
        assert_eq!(
            stats.window(1000).unwrap(),
            "500 records sent, 500.0 records/sec (0.05 MB/sec), 100.0 ms avg latency, 100.0 ms max latency."
        );
        record(&mut stats, 1100, [tag(1099, 100, false)].into_iter());
        assert_eq!(
            stats.window(2000).unwrap(),
            "1 records sent, 1.0 records/sec (0.00 MB/sec), 1.0 ms avg latency, 1.0 ms max latency."
        );
    }

    #[test]
    fn steady_state_counts_only_records_after_the_warm_up() {
        let mut stats = Stats::default();
        record(&mut stats, 400, (0..10).map(|_| tag(0, 100, false)));
        assert!(!stats.window(500).unwrap().contains("steady"));
        record(&mut stats, 1500, (0..10).map(|_| tag(1000, 100, true)));
        let window = stats.window(1600).unwrap();
        assert!(window.starts_with("In steady state.\n10 records sent, 16.7 records/sec"), "{window}");
        record(&mut stats, 1700, (0..1).map(|_| tag(1000, 100, true)));
        assert!(stats.window(1800).unwrap().starts_with("1 records sent"));
        let summary = stats.summary(2000);
        let (all, steady) = summary.split_once('\n').unwrap();
        assert!(all.starts_with("21 records sent, 10.5"), "{all}");
        assert!(steady.starts_with("11 steady state records sent, 11.0"), "{steady}");
    }

    #[test]
    fn latencies_of_minutes_are_counted() {
        let mut stats = Stats::default();
        record(&mut stats, 200_000, [tag(0, 1, false), tag(199_999, 1, false)].into_iter());
        assert_eq!((stats.all.percentile(0.0), stats.all.percentile(0.5)), (1, 200_000));
    }

    #[test]
    fn summary_is_printed_without_acknowledged_records() {
        assert!(
            Stats::default()
                .summary(0)
                .starts_with("0 records sent, 0.000000 records/sec (0.00 MB/sec), 0.00 ms")
        );
    }
}
