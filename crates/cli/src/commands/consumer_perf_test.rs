//! `ottla consumer-perf-test`: has the options and the output of Kafka's ConsumerPerformance.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use ottla::{Admin, Config, Consumer, ConsumerEvent, Records};
use ottla_protocol::pattern::Pattern;

use crate::client_options::{
    ClientOptions, bound_calls, bound_connection_setup, load, print_warnings, require_servers, set_pair,
};
use crate::commands::topics::{partition_count, topic_names};
use crate::events::{EventPrinter, EventWatch};
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::perf::date;
use crate::perf::metrics::print_metrics;
use crate::progress::{StatusLine, above_bar};
use crate::report::run::Run;
use crate::report::{Counters, Latencies, ReportOptions, Sampling, options as report};
use crate::signals::Interrupt;
use crate::times::now_ms;
use crate::top::figures::short;

/// Measure consuming, with the options and the output of Kafka's kafka-consumer-perf-test
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("topics").required(true).args(["topic", "include"])),
    group(ArgGroup::new("how_many").required(true).args(["num_records", "messages"])),
    after_help = format!("Examples:\n  \
        ottla consumer-perf-test --bootstrap-server localhost:9092 --topic demo --num-records 5000000\n  \
        ottla consumer-perf-test --bootstrap-server localhost:9092 --topic demo --num-records 5000000 \\\n      \
            --show-detailed-stats --reporting-interval 1000\n\n\
        Times are in UTC. rebalance.time.ms is the time until the group has assigned partitions for the first time.\n\
        SIGINT (Ctrl-C) stops consuming and prints the summary. A second SIGINT ends at once.\n\n\
        {EXIT_CODES}")
)]
pub struct ConsumerPerfTestOptions {
    /// Brokers to connect to first, separated by commas; overrides the property bootstrap.servers
    #[arg(short = 'b', long, visible_alias = "broker-list", value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,

    /// Consume this topic
    #[arg(long)]
    topic: Option<String>,

    /// Consume the topics whose whole names match this regular expression
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,

    /// The number of records to consume
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    num_records: Option<u64>,

    /// The old name of --num-records
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    messages: Option<u64>,

    /// The consumer group [default: perf-consumer- and a number]
    #[arg(long, value_name = "ID")]
    group: Option<String>,

    /// The maximum number of bytes of a partition per request (max.partition.fetch.bytes)
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576)]
    fetch_size: u32,

    /// Start at the end of the partitions, not at the beginning
    #[arg(long)]
    from_latest: bool,

    /// The size of the socket's receive buffer (receive.buffer.bytes)
    #[arg(long, value_name = "BYTES", default_value_t = 2_097_152)]
    socket_buffer_size: u32,

    /// Set properties; they override those of files
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    command_property: Vec<String>,

    /// Set a property; can be repeated
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    property: Vec<String>,

    /// Read properties from a file
    #[arg(long, visible_short_alias = 'F', value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// The old name of --command-config
    #[arg(long = "consumer.config", value_name = "FILE")]
    consumer_config: Option<PathBuf>,

    /// Print metrics at the end
    #[arg(long)]
    print_metrics: bool,

    /// Print a line for each reporting interval instead of one line at the end
    #[arg(long)]
    show_detailed_stats: bool,

    /// Give up after this time without records, or if no broker responds within this time; in milliseconds, as in Kafka's tool
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout: u64,

    /// The interval of the lines
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    reporting_interval: u64,

    /// The format of times, in the pattern letters of Java's SimpleDateFormat
    #[arg(long, value_name = "FORMAT", default_value = "yyyy-MM-dd HH:mm:ss:SSS")]
    date_format: String,

    /// Serve the client's statistics in Prometheus format on this port of 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    #[command(flatten)]
    report: ReportOptions,

    /// Do not print the line of column names
    #[arg(long)]
    hide_header: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ConsumerPerfTestOptions, outer: &ClientOptions) -> Outcome {
    refuse_seconds(outer)?;
    let client = options.client().after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    date::format(&options.date_format, 0).map_err(|letter| {
        Failure::Usage(format!(
            "--date-format: unknown letter \"{letter}\"; the letters are those of Java's SimpleDateFormat"
        ))
    })?;
    let include = options.include.as_deref().map(compile).transpose()?;
    let mut config = options.config(&client)?;
    require_servers(&config)?;
    let timeout = Duration::from_millis(options.timeout);
    bound_connection_setup(&mut config, timeout)?;
    bound_calls(timeout);
    let recording = options.report.open()?;
    let mut measure = Measure::new(options);
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    let admin = consumer.admin();
    let watch = EventWatch::start(admin.clone());
    watch.wait_for_broker(timeout)?;
    // From here on the loop below handles the events.
    let printer = watch.into_printer();
    let mut out = io::stdout();
    if !options.hide_header {
        writeln!(out, "{}", header(options.show_detailed_stats))?;
    }
    let topics = options.topics(&admin, include)?;
    for topic in &topics {
        partition_count(&admin, topic)?;
    }
    if topics.is_empty() {
        let pattern = options.include.as_deref().unwrap_or_default();
        return Err(Failure::Failed(format!("no topic matches --include {pattern}")));
    }
    let interrupt = Interrupt::catch()?;
    consumer.subscribe(&topics)?;
    let mut sampling = report::sample(&recording, measure.start, measure.counters(&consumer));
    consume(&consumer, &mut measure, &printer, (&interrupt, sampling.as_ref()))?;
    sampling.iter_mut().for_each(Sampling::stop);
    let ended = Instant::now();
    // Kafka's tool leaves its group and commits, too.
    consumer.close(interrupt.bound(timeout))?;
    if !options.show_detailed_stats {
        writeln!(out, "{}", measure.total(ended))?;
    }
    if options.print_metrics {
        measure.print_metrics(&config.get("client.id").unwrap_or_default())?;
    }
    if let Some((recording, sampling)) = recording.zip(sampling) {
        recording.write(&sampling, &topics.join(","), options.reported(&config))?;
    }
    interrupt.check()
}

/// The measured loop: consumes until the requested number of records came, none came for the timeout, or a signal arrived.
fn consume(
    consumer: &Consumer,
    measure: &mut Measure<'_>,
    printer: &EventPrinter,
    (interrupt, sampling): (&Interrupt, Option<&Sampling>),
) -> Outcome {
    let options = measure.options;
    let mut status = sampling.and_then(Status::start);
    let target = options.num_records.or(options.messages).unwrap_or_default();
    let mut is_assigned = false;
    let mut last_came = Instant::now();
    while measure.records < target && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        let before = measure.records;
        if !is_assigned && !consumer.assignment().is_empty() {
            is_assigned = true;
            measure.assigned();
        }
        measure.count(&records, target);
        for event in records.events() {
            if let ConsumerEvent::Error(error) = event {
                printer.error(error);
            }
        }
        if measure.records > before {
            last_came = Instant::now();
        } else if last_came.elapsed() > Duration::from_millis(options.timeout) {
            print(&format!(
                "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can \
                 use the --timeout option to increase the timeout.",
                options.timeout
            ))?;
            break;
        }
        if options.show_detailed_stats
            && let Some(line) = measure.interval(Instant::now())
        {
            print(&line)?;
        }
        status.iter_mut().for_each(|status| status.show(measure.records));
    }
    Ok(())
}

/// Prints a line to standard output, above the line on the terminal.
fn print(line: &str) -> Outcome {
    let mut written = Ok(());
    above_bar(|| written = writeln!(io::stdout(), "{line}"));
    Ok(written?)
}

/// The line on the terminal: records, rate and ages.
struct Status<'a> {
    line: StatusLine,
    sampling: &'a Sampling,
    latency: Box<dyn Fn() -> String>,
    due: Instant,
}

impl<'a> Status<'a> {
    fn start(sampling: &'a Sampling) -> Option<Status<'a>> {
        let (line, latency) = (StatusLine::start()?, Box::new(sampling.live()));
        Some(Status { line, sampling, latency, due: Instant::now() })
    }

    fn show(&mut self, records: u64) {
        const INTERVAL: Duration = Duration::from_millis(250);
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + INTERVAL;
        let (rate, latency) = (short(self.sampling.live_rate()), (self.latency)());
        let age = if latency.is_empty() { String::new() } else { format!(", age {latency}") };
        self.line.set(format!("{records} records, {rate} records/s{age}"));
    }
}

impl ConsumerPerfTestOptions {
    /// Returns the topics to read: the named one, or those whose names match `include`.
    fn topics(&self, admin: &Admin, include: Option<Pattern>) -> Result<Vec<String>, Failure> {
        Ok(match (&self.topic, include) {
            (Some(topic), _) => vec![topic.clone()],
            (None, Some(include)) => {
                topic_names(admin)?.into_iter().filter(|topic| include.is_match(topic)).collect()
            }
            (None, None) => Vec::new(),
        })
    }

    /// Returns the common client options, which have Kafka's names in this command.
    fn client(&self) -> ClientOptions {
        ClientOptions {
            bootstrap_server: self.bootstrap_server.clone().into_iter().collect(),
            property: self.property.clone(),
            file: self.command_config.clone(),
            timeout: None,
            ..ClientOptions::default()
        }
    }

    fn config(&self, client: &ClientOptions) -> Outcome<Config> {
        let mut config = Config::new();
        config.set("client.id", "perf-consumer-client")?;
        client.apply_named_profile(&mut config)?;
        config.set("auto.offset.reset", if self.from_latest { "latest" } else { "earliest" })?;
        config.set("max.partition.fetch.bytes", &self.fetch_size.to_string())?;
        config.set("receive.buffer.bytes", &self.socket_buffer_size.to_string())?;
        for file in [&self.consumer_config, &client.file].into_iter().flatten() {
            load(&mut config, file)?;
        }
        for pair in self.command_property.iter().chain(&client.property) {
            set_pair(&mut config, pair)?;
        }
        if !client.bootstrap_server.is_empty() {
            config.set("bootstrap.servers", &client.bootstrap_server.join(","))?;
        }
        if let Some(group) = &self.group {
            config.set("group.id", group)?;
        } else if config.get("group.id").is_none_or(|group| group.is_empty()) {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            config.set("group.id", &format!("perf-consumer-{}", since.as_nanos() % 100_000))?;
        }
        Ok(config)
    }
}

impl ConsumerPerfTestOptions {
    /// Returns what the report says about the test besides its figures.
    fn reported(&self, config: &Config) -> Run {
        let target = self.num_records.or(self.messages).unwrap_or_default();
        let topic = self.topic.clone().or_else(|| self.include.clone()).unwrap_or_default();
        let mut settings = vec![("topic".to_owned(), topic), ("num-records".to_owned(), target.to_string())];
        settings.extend(report::shown_properties(config));
        Run {
            tool: "consumer-perf-test".into(),
            latency: "age of the record when it was consumed".into(),
            settings,
            ..Run::default()
        }
    }
}

/// Error: the options before the command have a timeout in seconds.
fn refuse_seconds(outer: &ClientOptions) -> Outcome {
    match outer.timeout {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(
            "--timeout before the command is in seconds, and that of consumer-perf-test is in milliseconds, as in Kafka's \
             tool; write it behind the command: consumer-perf-test --timeout MS"
                .into(),
        )),
    }
}

/// Compiles a regular expression that must match a whole name, as in Java.
fn compile(regex: &str) -> Outcome<Pattern> {
    Pattern::whole(regex).map_err(|error| Failure::Usage(format!("--include: {error}")))
}

fn header(is_detailed: bool) -> String {
    let first = if is_detailed { "time, threadId" } else { "start.time, end.time" };
    format!(
        "{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
         fetch.MB.sec, fetch.nMsg.sec"
    )
}

/// What a report counts.
#[derive(Default)]
struct Seen {
    records: u64,
    bytes: u64,
    latencies: Latencies,
}

/// The ages of the records of a response, most of which are equal to their neighbour's.
struct Ages {
    now_ms: i64,
    /// The last timestamp, and the number of records with it.
    run: (i64, u64),
    counted: Vec<(i64, u64)>,
}

impl Ages {
    fn new(now_ms: i64) -> Ages {
        Ages { now_ms, run: (-1, 0), counted: Vec::new() }
    }

    fn add(&mut self, timestamp: i64) {
        if timestamp != self.run.0 {
            self.counted.push(std::mem::replace(&mut self.run, (timestamp, 0)));
        }
        self.run.1 += 1;
    }

    /// Counts the ages; records without a timestamp have none.
    fn add_to(self, latencies: &mut Latencies) {
        for (timestamp, count) in self.counted.into_iter().chain([self.run]) {
            if timestamp >= 0 && count > 0 {
                let age_ms = u64::try_from(self.now_ms.saturating_sub(timestamp)).unwrap_or(0);
                latencies.add(age_ms.saturating_mul(1000), count);
            }
        }
    }
}

/// The counters of the measurement.
struct Measure<'a> {
    options: &'a ConsumerPerfTestOptions,
    start: Instant,
    start_unix_ms: u64,
    /// The time until the partitions were assigned, which Kafka's tool calls rebalance time.
    join_ms: u64,
    records: u64,
    bytes: u64,
    /// What the report counts, if there is one.
    seen: Option<Arc<Mutex<Seen>>>,
    interval_start: Instant,
    interval_records: u64,
    interval_bytes: u64,
    interval_join_ms: u64,
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

impl<'a> Measure<'a> {
    fn new(options: &'a ConsumerPerfTestOptions) -> Measure<'a> {
        let (now, unix) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        Measure {
            options,
            start: now,
            start_unix_ms: unix.as_millis() as u64,
            join_ms: 0,
            records: 0,
            bytes: 0,
            seen: None,
            interval_start: now,
            interval_records: 0,
            interval_bytes: 0,
            interval_join_ms: 0,
        }
    }

    /// Counts received messages up to the number that was requested.
    fn count(&mut self, messages: &Records, requested: u64) {
        let left = requested.saturating_sub(self.records);
        let mut ages = self.seen.as_ref().map(|_| Ages::new(now_ms()));
        for message in messages.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            let bytes = message.key().map_or(0, <[u8]>::len) + message.value().map_or(0, <[u8]>::len);
            self.bytes += bytes as u64;
            self.records += 1;
            if let Some(ages) = &mut ages {
                ages.add(message.timestamp());
            }
        }
        if let Some((seen, ages)) = self.seen.as_ref().zip(ages) {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            (seen.records, seen.bytes) = (self.records, self.bytes);
            ages.add_to(&mut seen.latencies);
        }
    }

    /// Returns what a report counts, from now on.
    fn counters(&mut self, consumer: &Consumer) -> impl FnMut() -> Counters + Send + 'static {
        let seen = Arc::new(Mutex::new(Seen::default()));
        self.seen = Some(Arc::clone(&seen));
        let (consumer, mut requests) = (consumer.clone(), 0);
        move || {
            requests = consumer.statistics().map_or(requests, |statistics| statistics.tx.max(0) as u64);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let latencies = std::mem::take(&mut seen.latencies);
            Counters { records: seen.records, bytes: seen.bytes, requests, latencies }
        }
    }

    /// Prints the metrics that Kafka's tool prints.
    fn print_metrics(&self, client_id: &str) -> Outcome {
        let seconds = self.start.elapsed().as_secs_f64();
        print_metrics(
            "consumer-fetch-manager-metrics",
            client_id,
            &[
                ("bytes-consumed-rate", self.bytes as f64 / seconds),
                ("bytes-consumed-total", self.bytes as f64),
                ("records-consumed-rate", self.records as f64 / seconds),
                ("records-consumed-total", self.records as f64),
            ],
        )?;
        Ok(())
    }

    fn assigned(&mut self) {
        self.join_ms = self.start.elapsed().as_millis() as u64;
        self.interval_join_ms = self.join_ms;
    }

    /// Returns the line of the interval if it has elapsed.
    fn interval(&mut self, now: Instant) -> Option<String> {
        let elapsed = now - self.interval_start;
        if elapsed < Duration::from_millis(self.options.reporting_interval) {
            return None;
        }
        let records = self.records - self.interval_records;
        let megabytes = (self.bytes - self.interval_bytes) as f64 / MEGABYTE;
        let line = self.line(
            &format!("{}, 0", self.time(now)),
            (megabytes, records),
            elapsed.as_millis() as u64,
            self.interval_join_ms,
        );
        (self.interval_start, self.interval_records, self.interval_bytes) = (now, self.records, self.bytes);
        self.interval_join_ms = 0;
        Some(line)
    }

    /// Returns the line of the whole measurement.
    fn total(&self, now: Instant) -> String {
        let elapsed_ms = (now - self.start).as_millis() as u64;
        let times = format!("{}, {}", self.time(self.start), self.time(now));
        self.line(&times, (self.bytes as f64 / MEGABYTE, self.records), elapsed_ms, self.join_ms)
    }

    fn line(&self, first: &str, (megabytes, records): (f64, u64), elapsed_ms: u64, join_ms: u64) -> String {
        let seconds = elapsed_ms.max(1) as f64 / 1000.0;
        let fetch_ms = elapsed_ms.saturating_sub(join_ms);
        let fetch_seconds = fetch_ms.max(1) as f64 / 1000.0;
        format!(
            "{first}, {:.4}, {:.4}, {}, {:.4}, {join_ms}, {fetch_ms}, {:.4}, {:.4}",
            self.bytes as f64 / MEGABYTE,
            megabytes / seconds,
            self.records,
            records as f64 / seconds,
            megabytes / fetch_seconds,
            records as f64 / fetch_seconds,
        )
    }

    fn time(&self, instant: Instant) -> String {
        let unix_ms = self.start_unix_ms + (instant - self.start).as_millis() as u64;
        date::format(&self.options.date_format, unix_ms).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ConsumerPerfTestOptions,
    }

    fn options(more: &[&str]) -> ConsumerPerfTestOptions {
        let line = ["x", "--topic", "t", "--num-records", "5"];
        Line::parse_from(line.iter().chain(more)).options
    }

    #[test]
    fn total_has_the_format_of_kafkas_tool() {
        let options = options(&[]);
        let mut measure = Measure::new(&options);
        measure.start_unix_ms = 1_795_228_947_708;
        (measure.bytes, measure.records, measure.join_ms) = (30_000_200, 300_002, 472);
        assert_eq!(
            measure.total(measure.start + Duration::from_millis(816)),
            "2026-11-21 02:42:27:708, 2026-11-21 02:42:28:524, 28.6104, 35.0618, 300002, 367649.5098, 472, 344, \
             83.1698, 872098.8372"
        );
    }

    #[test]
    fn interval_starts_at_the_end_of_the_previous_one() {
        let options = options(&["--show-detailed-stats", "--reporting-interval", "200"]);
        let mut measure = Measure::new(&options);
        measure.start_unix_ms = 1_795_228_949_659;
        (measure.bytes, measure.records, measure.interval_join_ms) = (100, 1, 285);
        let at = |ms| measure.start + Duration::from_millis(ms);
        let (first, second) = (at(339), at(539));
        assert_eq!(measure.interval(measure.start + Duration::from_millis(199)), None);
        assert_eq!(
            measure.interval(first).unwrap(),
            "2026-11-21 02:42:29:998, 0, 0.0001, 0.0003, 1, 2.9499, 285, 54, 0.0018, 18.5185"
        );
        (measure.bytes, measure.records) = (22_949_500, 229_495);
        assert_eq!(
            measure.interval(second).unwrap(),
            "2026-11-21 02:42:30:198, 0, 21.8863, 109.4313, 229495, 1147470.0000, 0, 200, 109.4313, 1147470.0000"
        );
    }

    #[test]
    fn ages_of_equal_timestamps_are_counted_together() {
        let mut ages = Ages::new(5000);
        [4000, 4000, 4900, -1, 6000, 4000].into_iter().for_each(|timestamp| ages.add(timestamp));
        assert_eq!(ages.counted.len(), 5);
        let mut latencies = Latencies::default();
        ages.add_to(&mut latencies);
        let counts: Vec<u64> = latencies.buckets().iter().map(|bucket| bucket.count).collect();
        assert_eq!(
            counts,
            [1, 1, 3],
            "a record of the future has no age; one without a timestamp does not count"
        );
    }

    #[test]
    fn regular_expression_matches_whole_names() {
        let regex = compile("demo|test.*").unwrap();
        assert!(regex.is_match("demo") && regex.is_match("test-1"));
        assert!(!regex.is_match("my-demo") && !regex.is_match("demo2"));
        assert!(matches!(compile("("), Err(Failure::Usage(_))));
    }
}
