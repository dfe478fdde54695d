//! `ottla producer-perf-test`: has the options and the output of Kafka's ProducerPerformance. Without bootstrap servers
//! it starts an embedded cluster, and reads and verifies all records after producing.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args};
use ottla::{Config, Consumer, DeliveryBatch, Offset, Producer, Record, SendError, Topic, TrySendError};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

use crate::client_options::{
    ClientOptions, bound_connection_setup, load, parse_seconds, print_warnings, set_pair,
};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::in_transactions::{Transactions, ensure_id};
use crate::metrics_port::MetricsServer;
use crate::perf::latency::{Rate, Stats, Tag};
use crate::perf::metrics::print_metrics;
use crate::perf::pace::Pace;
use crate::perf::payload::Payloads;
use crate::perf::verify::Verifier;
use crate::progress::Progress;
use crate::report::run::Run as ReportedRun;
use crate::report::{Counters, Recording, ReportOptions, Sampling, options as report};
use crate::sending::{Sending, require_topic};
use crate::signals::Interrupt;
use crate::standard_error::note;

/// Measure producing, with the options and the output of Kafka's kafka-producer-perf-test
///
/// Without bootstrap.servers it starts an embedded cluster of 3 brokers in this process, creates the topic, produces, reads
/// everything back, and checks that each record arrived once and in order within its partition.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("payload").required(true).args(["record_size", "payload_file", "payload_monotonic"])),
    after_help = format!("Examples:\n  \
        ottla producer-perf-test --topic demo --num-records 5000000 --record-size 100 --throughput -1\n  \
        ottla producer-perf-test --topic demo --num-records 100000 --record-size 1000 --throughput 10000 \\\n      \
            --bootstrap-server localhost:9092 --command-property acks=1 compression.type=lz4\n\n\
        SIGINT (Ctrl-C) stops sending, waits for deliveries and prints the summary. A second SIGINT ends at once.\n\n\
        {EXIT_CODES}")
)]
pub struct ProducerPerfTestOptions {
    /// Brokers to connect to first, separated by commas; overrides the property bootstrap.servers
    #[arg(short = 'b', long, visible_alias = "broker-list", value_name = "HOST:PORT,...")]
    bootstrap_server: Option<String>,

    /// Produce to this topic
    #[arg(long)]
    topic: String,

    /// The number of records to produce
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    num_records: u64,

    /// The size of a record's value in bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    record_size: Option<u32>,

    /// Choose payloads from this file at random
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,

    /// The text that separates payloads in the file
    #[arg(long, value_name = "TEXT", default_value = "\\n")]
    payload_delimiter: String,

    /// Use the numbers 0, 1, 2, ... as payloads
    #[arg(long)]
    payload_monotonic: bool,

    /// Send at most about this many records per second; -1 is as many as possible
    #[arg(long, value_name = "RECORDS", default_value = "-1", allow_hyphen_values = true)]
    throughput: f64,

    /// Set properties; they override those of files
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    command_property: Vec<String>,

    /// The old name of --command-property
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    producer_props: Vec<String>,

    /// Set a property; can be repeated
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    property: Vec<String>,

    /// Read properties from a file
    #[arg(long, visible_short_alias = 'F', value_name = "FILE")]
    command_config: Option<PathBuf>,

    /// The old name of --command-config
    #[arg(long = "producer.config", value_name = "FILE")]
    producer_config: Option<PathBuf>,

    /// Print metrics at the end
    #[arg(long)]
    print_metrics: bool,

    /// Produce in transactions with this transactional.id [default with --transaction-duration-ms: a new one]
    #[arg(long, value_name = "ID")]
    transactional_id: Option<String>,

    /// Commit the transaction when it has lasted this long [default in transactions: 3000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    transaction_duration_ms: Option<u64>,

    /// Exclude the first records from the steady-state statistics, which are a line of their own
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    warmup_records: u64,

    /// The interval of the lines that are printed while records are sent
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    reporting_interval: u64,

    /// Serve the client's statistics in Prometheus format on this port of 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Give up if no broker responds within this time, and a wait if nothing happens for this time [default:
    /// default.api.timeout.ms if it is set, or else 10 for the first broker; other waits end as the properties say]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,

    #[command(flatten)]
    report: ReportOptions,

    /// Partitions of the topic in the embedded cluster
    #[arg(long, value_name = "COUNT", default_value_t = 6, value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: i32,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ProducerPerfTestOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client().after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let mut config = options.config(&client)?;
    let recording = options.report.open()?;
    let mut payloads = options.payloads()?;
    let cluster = match config.get("bootstrap.servers").filter(|servers| !servers.is_empty()) {
        Some(_) => None,
        None => Some(start_cluster(options)?),
    };
    if let Some(cluster) = &cluster {
        config.set("bootstrap.servers", &cluster.bootstrap_servers())?;
    }
    bound_connection_setup(&mut config, client.timeout())?;
    produce(options, &config, &client, &mut payloads, recording)?;
    match &cluster {
        Some(cluster) => verify(options, cluster, &payloads),
        None => Ok(()),
    }
}

impl ProducerPerfTestOptions {
    /// Returns the common client options, which have Kafka's names in this command.
    fn client(&self) -> ClientOptions {
        ClientOptions {
            bootstrap_server: self.bootstrap_server.clone().into_iter().collect(),
            property: self.property.clone(),
            file: self.command_config.clone(),
            timeout: self.timeout,
            ..ClientOptions::default()
        }
    }

    fn config(&self, client: &ClientOptions) -> Outcome<Config> {
        if self.warmup_records >= self.num_records {
            return Err(Failure::Usage("--warmup-records must be less than --num-records".into()));
        }
        if !(self.throughput > 0.0 || self.throughput == -1.0) {
            return Err(Failure::Usage(format!(
                "--throughput {}: must be more than 0, or -1 for as much as possible",
                self.throughput
            )));
        }
        let mut config = Config::new();
        config.set("client.id", "perf-producer-client")?;
        client.apply_named_profile(&mut config)?;
        for file in [&self.producer_config, &client.file].into_iter().flatten() {
            load(&mut config, file)?;
        }
        for pair in self.producer_props.iter().chain(&self.command_property).chain(&client.property) {
            set_pair(&mut config, pair)?;
        }
        if !client.bootstrap_server.is_empty() {
            config.set("bootstrap.servers", &client.bootstrap_server.join(","))?;
        }
        if let Some(id) = &self.transactional_id {
            config.set("transactional.id", id)?;
        } else if self.transaction_duration_ms.is_some() {
            ensure_id(&mut config, "performance-producer")?;
        }
        Ok(config)
    }

    /// Starts transactions, if the configuration has a transactional ID.
    fn transactions<'a>(
        &self,
        producer: &'a Producer,
        config: &Config,
        sending: &Sending,
    ) -> Outcome<Option<Transactions<'a>>> {
        const DEFAULT_DURATION_MS: u64 = 3000;
        if config.get("transactional.id").is_none_or(|id| id.is_empty()) {
            return Ok(None);
        }
        let duration = self.transaction_duration_ms.unwrap_or(DEFAULT_DURATION_MS);
        Transactions::start(producer, config, Duration::from_millis(duration), sending).map(Some)
    }

    /// Returns what the report says about the test besides its figures.
    fn reported(&self, config: &Config) -> ReportedRun {
        let mut settings = vec![
            ("topic".to_owned(), self.topic.clone()),
            ("num-records".to_owned(), self.num_records.to_string()),
            ("throughput".to_owned(), self.throughput.to_string()),
        ];
        settings.extend(self.record_size.map(|bytes| ("record-size".to_owned(), bytes.to_string())));
        settings.extend(report::shown_properties(config));
        ReportedRun {
            tool: "producer-perf-test".into(),
            latency: "from send to acknowledgement".into(),
            settings,
            ..ReportedRun::default()
        }
    }

    fn payloads(&self) -> Outcome<Payloads> {
        if let Some(size) = self.record_size {
            return Ok(Payloads::random(size as usize));
        }
        let Some(file) = &self.payload_file else { return Ok(Payloads::monotonic()) };
        let payloads = Payloads::file(file, &self.payload_delimiter)?;
        writeln!(io::stdout(), "Reading payloads from: {}", std::path::absolute(file)?.display())?;
        writeln!(io::stdout(), "Number of records read: {}", payloads.len().unwrap_or_default())?;
        Ok(payloads)
    }
}

/// State that the delivery reports and the printing thread share with the sending loop.
struct Run {
    start: OnceLock<Instant>,
    sent: AtomicU64,
    stats: Mutex<Stats>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    count: u64,
    first: Option<String>,
}

impl Run {
    fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    fn now_us(&self) -> u64 {
        self.start().elapsed().as_micros() as u64
    }

    /// When the measurement started: at the first call.
    fn start(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    /// Returns what a report counts. The number of requests stays the same once the client does not respond.
    fn counters(self: &Arc<Self>, producer: &Producer) -> impl FnMut() -> Counters + Send + 'static {
        let (run, producer, mut requests) = (Arc::clone(self), producer.clone(), 0);
        move || {
            requests = producer.statistics().map_or(requests, |statistics| statistics.tx.max(0) as u64);
            let mut stats = lock(&run.stats);
            Counters {
                records: stats.count(),
                bytes: stats.bytes(),
                requests,
                latencies: stats.take_latencies(),
            }
        }
    }

    fn deliver(&self, batch: &DeliveryBatch) {
        match batch.error() {
            None => {
                let tags = batch.opaques().iter().map(|opaque| Tag(*opaque));
                lock(&self.stats).record(self.now_us(), tags);
            }
            Some(error) => lock(&self.failures).add(batch.len() as u64, error),
        }
    }
}

impl Failures {
    fn add(&mut self, count: u64, error: &dyn std::fmt::Display) {
        self.count += count;
        self.first.get_or_insert_with(|| error.to_string());
    }
}

fn produce(
    options: &ProducerPerfTestOptions,
    config: &Config,
    client: &ClientOptions,
    payloads: &mut Payloads,
    recording: Option<Recording>,
) -> Outcome {
    if options.warmup_records > 0 {
        writeln!(
            io::stdout(),
            "Warmup first {} records. Steady state results will print after the complete test summary.",
            options.warmup_records
        )?;
    }
    let run = Arc::new(Run {
        start: OnceLock::new(),
        sent: AtomicU64::new(0),
        stats: Mutex::default(),
        failures: Mutex::default(),
    });
    let sink = Arc::clone(&run);
    let producer = Producer::builder(config).on_delivery(move |batch| sink.deliver(batch)).build()?;
    print_warnings(producer.warnings());
    let watch = EventWatch::start(producer.admin());
    let counted = producer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    require_topic(&producer, &options.topic, client.timeout())?;
    let interrupt = Interrupt::catch()?;
    let sending = Sending::new(&producer, &interrupt, client.timeout);
    let topic = producer.topic(&options.topic);
    let mut transactions = options.transactions(&producer, config, &sending)?;
    // The measurement does not include the wait for the first broker, nor for the producer ID.
    run.start();
    let mut sampling = report::sample(&recording, run.start(), run.counters(&producer));
    let progress = {
        let (window, sent) = (Arc::clone(&run), Arc::clone(&run));
        let latency = sampling.as_ref().map(Sampling::live);
        Progress::start(
            options.num_records,
            Duration::from_millis(options.reporting_interval),
            move || lock(&window.stats).window(window.now_ms()),
            move || {
                (sent.sent.load(Ordering::Relaxed), latency.as_ref().map_or_else(String::new, |say| say()))
            },
        )
    };
    let sent = send_all(options, &run, (&topic, &mut transactions), payloads, (&sending, &interrupt));
    if !matches!(sent, Ok(()) | Err(Failure::Interrupted(_))) {
        return sent;
    }
    let ended = transactions.as_mut().map_or(Ok(()), Transactions::commit);
    // Reports arrive by message.timeout.ms at the latest.
    let flushed = sending.flush();
    progress.stop();
    sampling.iter_mut().for_each(Sampling::stop);
    drop(watch);
    let elapsed_ms = run.now_ms();
    let stats = lock(&run.stats);
    writeln!(io::stdout(), "{}", stats.summary(elapsed_ms))?;
    if let Some((recording, sampling)) = recording.zip(sampling) {
        recording.write(&sampling, &options.topic, options.reported(config))?;
    }
    let failures = lock(&run.failures);
    if options.print_metrics {
        let rate = Rate::new(stats.count(), stats.bytes(), elapsed_ms);
        let (mean_ms, max_ms) = stats.latency_ms();
        print_metrics(
            "producer-metrics",
            &config.get("client.id").unwrap_or_default(),
            &[
                ("byte-total", stats.bytes() as f64),
                ("record-error-total", failures.count as f64),
                ("record-latency-avg", mean_ms),
                ("record-latency-max", max_ms as f64),
                ("record-send-rate", rate.records),
                ("record-send-total", stats.count() as f64),
            ],
        )?;
    }
    ended.and(flushed)?;
    producer.close(interrupt.bound(Duration::from_secs(10)))?;
    match &failures.first {
        Some(first) => {
            Err(Failure::Failed(format!("records not delivered: {}; first error: {first}", failures.count)))
        }
        None => interrupt.check(),
    }
}

/// The measured loop.
fn send_all(
    options: &ProducerPerfTestOptions,
    run: &Run,
    (topic, transactions): (&Topic, &mut Option<Transactions<'_>>),
    payloads: &mut Payloads,
    (sending, interrupt): (&Sending, &Interrupt),
) -> Outcome {
    /// The number of records per clock reading; reading the clock costs as much as sending a record.
    const CLOCK_EVERY: u64 = 32;
    let pace = (options.throughput > 0.0).then(|| Pace::new(run.start(), options.throughput));
    let mut now_us = 0;
    for number in 0..options.num_records {
        if number % CLOCK_EVERY == 0 {
            run.sent.store(number, Ordering::Relaxed);
            now_us = run.now_us();
            interrupt.check()?;
            if let Some(transactions) = transactions {
                transactions.before_message()?;
            }
        }
        if let Some(pace) = &pace {
            pace.keep(number, interrupt)?;
            now_us = run.now_us();
        }
        let payload = payloads.get(number);
        let tag =
            Tag::new(now_us, payload.len(), options.warmup_records > 0 && number >= options.warmup_records);
        let sent = match topic.try_send(Record::new().value(payload).opaque(tag.0)) {
            Err(TrySendError { record, error: SendError::QueueFull }) => {
                run.sent.store(number, Ordering::Relaxed);
                let sent = sending.send(topic, &record)?;
                now_us = run.now_us();
                sent
            }
            sent => sent.map_err(SendError::from),
        };
        match sent {
            Ok(()) => {}
            // Every further record would fail with these errors, too.
            Err(
                error @ (SendError::Topic(_)
                | SendError::Fatal(_)
                | SendError::State(_)
                | SendError::Closed
                | SendError::QueueFull),
            ) => {
                return Err(Failure::Failed(format!("record {number} was not accepted: {error}")));
            }
            Err(error @ SendError::MessageTooLarge { .. }) if options.record_size.is_some() => {
                return Err(Failure::Failed(error.to_string()));
            }
            Err(error) => lock(&run.failures).add(1, &error),
        }
    }
    run.sent.store(options.num_records, Ordering::Relaxed);
    Ok(())
}

fn start_cluster(options: &ProducerPerfTestOptions) -> Outcome<EmbeddedCluster> {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 3, ..ClusterOptions::default() })
        .map_err(|error| Failure::Failed(format!("the embedded cluster can't start: {error}")))?;
    cluster
        .control(|control| control.create_topic(&options.topic, options.partitions, 3))
        .map_err(|code| Failure::Usage(format!("--topic {}: {}", options.topic, code.description())))?;
    note!(
        "embedded cluster of 3 brokers, {} partitions, at {}",
        options.partitions,
        cluster.bootstrap_servers()
    );
    Ok(cluster)
}

/// Reads everything back from the embedded cluster and checks it.
fn verify(options: &ProducerPerfTestOptions, cluster: &EmbeddedCluster, payloads: &Payloads) -> Outcome {
    let written: u64 = (0..options.partitions)
        .filter_map(|partition| cluster.control(|control| control.partition(&options.topic, partition)))
        .map(|partition| partition.high_watermark as u64)
        .sum();
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers())?;
    let consumer = Consumer::new(&config)?;
    let assignment: Vec<_> =
        (0..options.partitions).map(|partition| (&options.topic, partition, Offset::Beginning)).collect();
    consumer.assign(&assignment)?;
    let start = Instant::now();
    let mut last_came = start;
    let mut verifier = Verifier::new(options.num_records, options.partitions as usize, payloads.numbering());
    while verifier.records() < written && last_came.elapsed() < Duration::from_secs(30) {
        let before = verifier.records();
        let records = consumer.poll(Duration::from_millis(500))?;
        for message in &records {
            verifier.record(message.partition(), message.value().unwrap_or_default());
        }
        if verifier.records() > before {
            last_came = Instant::now();
        }
    }
    let rate = Rate::new(verifier.records(), verifier.bytes(), start.elapsed().as_millis() as u64);
    consumer.close(Duration::from_secs(10))?;
    match verifier.verdict() {
        Ok(verdict) => {
            writeln!(io::stdout(), "verified: {verdict}, {rate}")?;
            Ok(())
        }
        Err(verdict) => Err(Failure::Failed(format!("verification failed: {verdict}"))),
    }
}

/// Locks the state, even if a thread panicked while it held the lock: the state is only printed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
