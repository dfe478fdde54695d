//! `ottla consumer-perf-test`: Kafka's ConsumerPerformance with its options and lines.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use ottla::{Admin, Config, Consumer, ConsumerEvent, Offset};
use regex_lite::Regex;

use crate::client_options::{load, print_warnings, require_servers, set_pair};
use crate::commands::topics::{partition_count, topic_names};
use crate::failure::{Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::perf::date;
use crate::perf::metrics::print_metrics;

/// Measure consuming, with the options and the output of Kafka's kafka-consumer-perf-test
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("topics").required(true).args(["topic", "include"])),
    group(ArgGroup::new("how_many").required(true).args(["num_records", "messages"])),
    after_help = "Examples:\n  \
        ottla consumer-perf-test --bootstrap-server localhost:9092 --topic demo --num-records 5000000\n  \
        ottla consumer-perf-test --bootstrap-server localhost:9092 --topic demo --num-records 5000000 \\\n      \
            --show-detailed-stats --reporting-interval 1000\n\n\
        Times are in UTC. All partitions are assigned: consumer groups aren't built yet.\n\
        Exit codes: 0 done, 1 failed, 2 wrong options"
)]
pub struct ConsumerPerfTestOptions {
    /// Brokers to ask first
    #[arg(short = 'b', long, visible_alias = "broker-list", value_name = "SERVERS")]
    bootstrap_server: Option<String>,

    /// The topic to consume
    #[arg(long)]
    topic: Option<String>,

    /// A regular expression of topics to consume
    #[arg(long, value_name = "REGEX")]
    include: Option<String>,

    /// How many records to consume
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    num_records: Option<u64>,

    /// The old name of --num-records
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    messages: Option<u64>,

    /// The consumer group (without effect: partitions are assigned)
    #[arg(long, value_name = "ID")]
    group: Option<String>,

    /// The most bytes of a partition per request
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576)]
    fetch_size: u32,

    /// Start at the end, not at the beginning
    #[arg(long)]
    from_latest: bool,

    /// The size of the socket's receive buffer
    #[arg(long, value_name = "BYTES", default_value_t = 2_097_152)]
    socket_buffer_size: u32,

    /// Set properties; they go before those of files
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    command_property: Vec<String>,

    /// Set a property; may stand more than once
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

    /// Print a line for every reporting interval, in place of the one at the end
    #[arg(long)]
    show_detailed_stats: bool,

    /// Give up after this long without records
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout: u64,

    /// How often a line is printed
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    reporting_interval: u64,

    /// How times are printed, in the letters of Java's SimpleDateFormat
    #[arg(long, value_name = "FORMAT", default_value = "yyyy-MM-dd HH:mm:ss:SSS")]
    date_format: String,

    /// Serve what the client counts, as text for Prometheus, on this port of this machine; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Don't print the line of column names
    #[arg(long)]
    hide_header: bool,
}

/// Measures.
pub fn run(options: &ConsumerPerfTestOptions) -> Outcome {
    date::format(&options.date_format, 0)
        .map_err(|letter| Failure::Usage(format!("--date-format: the letter {letter} isn't known")))?;
    let include = options.include.as_deref().map(compile).transpose()?;
    let config = options.config()?;
    require_servers(&config)?;
    if !options.hide_header {
        println!("{}", header(options.show_detailed_stats));
    }
    let wanted = options.num_records.or(options.messages).unwrap_or_default();
    let mut measure = Measure::new(options);
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    let admin = Admin::new(&config)?;
    let topics = match (&options.topic, include) {
        (Some(topic), _) => vec![topic.clone()],
        (None, Some(include)) => {
            topic_names(&admin)?.into_iter().filter(|topic| include.is_match(topic)).collect()
        }
        (None, None) => Vec::new(),
    };
    let start = if options.from_latest { Offset::End } else { Offset::Beginning };
    let mut assignment = Vec::new();
    for topic in &topics {
        let partitions = partition_count(&admin, topic)?;
        assignment.extend((0..partitions).map(|partition| (topic.as_str(), partition, start)));
    }
    if assignment.is_empty() {
        return Err(Failure::Failed("no topic matches --include".into()));
    }
    consumer.assign(&assignment)?;
    measure.assigned();
    let timeout = Duration::from_millis(options.timeout);
    let mut last_came = Instant::now();
    while measure.records < wanted {
        let records = consumer.poll(Duration::from_millis(100))?;
        let before = measure.records;
        for message in &records {
            let bytes = message.key().map_or(0, <[u8]>::len) + message.value().map_or(0, <[u8]>::len);
            measure.bytes += bytes as u64;
            measure.records += 1;
            if measure.records == wanted {
                break;
            }
        }
        for event in records.events() {
            if let ConsumerEvent::Error(error) = event {
                eprintln!("{error}");
            }
        }
        if measure.records > before {
            last_came = Instant::now();
        } else if last_came.elapsed() > timeout {
            println!(
                "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can \
                 use the --timeout option to increase the timeout.",
                options.timeout
            );
            break;
        }
        if options.show_detailed_stats
            && let Some(line) = measure.interval(Instant::now())
        {
            println!("{line}");
        }
    }
    if !options.show_detailed_stats {
        println!("{}", measure.total(Instant::now()));
    }
    if options.print_metrics {
        let seconds = measure.start.elapsed().as_secs_f64();
        print_metrics(
            "consumer-fetch-manager-metrics",
            &config.get("client.id").unwrap_or_default(),
            &[
                ("bytes-consumed-rate", measure.bytes as f64 / seconds),
                ("bytes-consumed-total", measure.bytes as f64),
                ("records-consumed-rate", measure.records as f64 / seconds),
                ("records-consumed-total", measure.records as f64),
            ],
        );
    }
    Ok(())
}

impl ConsumerPerfTestOptions {
    fn config(&self) -> Outcome<Config> {
        let mut config = Config::new();
        config.set("client.id", "perf-consumer-client")?;
        config.set("max.partition.fetch.bytes", &self.fetch_size.to_string())?;
        config.set("receive.buffer.bytes", &self.socket_buffer_size.to_string())?;
        for file in [&self.consumer_config, &self.command_config].into_iter().flatten() {
            load(&mut config, file)?;
        }
        for pair in self.command_property.iter().chain(&self.property) {
            set_pair(&mut config, pair)?;
        }
        if let Some(servers) = &self.bootstrap_server {
            config.set("bootstrap.servers", servers)?;
        }
        Ok(config)
    }
}

/// A whole name has to match, as in Java.
fn compile(regex: &str) -> Outcome<Regex> {
    Regex::new(&format!("^(?:{regex})$")).map_err(|error| Failure::Usage(format!("--include: {error}")))
}

fn header(is_detailed: bool) -> String {
    let first = if is_detailed { "time, threadId" } else { "start.time, end.time" };
    format!(
        "{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
         fetch.MB.sec, fetch.nMsg.sec"
    )
}

/// What came, and when.
struct Measure<'a> {
    options: &'a ConsumerPerfTestOptions,
    start: Instant,
    start_unix_ms: u64,
    /// How long it took to get the partitions, which Kafka's tool calls rebalance time.
    join_ms: u64,
    records: u64,
    bytes: u64,
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
            interval_start: now,
            interval_records: 0,
            interval_bytes: 0,
            interval_join_ms: 0,
        }
    }

    fn assigned(&mut self) {
        self.join_ms = self.start.elapsed().as_millis() as u64;
        self.interval_join_ms = self.join_ms;
    }

    /// The line of the interval that is over, if one is.
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

    /// The line of everything.
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
    fn the_total_is_kafkas_line() {
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
    fn an_interval_counts_from_the_one_before() {
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
    fn a_regular_expression_matches_whole_names() {
        let regex = compile("demo|test.*").unwrap();
        assert!(regex.is_match("demo") && regex.is_match("test-1"));
        assert!(!regex.is_match("my-demo") && !regex.is_match("demo2"));
        assert!(matches!(compile("("), Err(Failure::Usage(_))));
    }
}
