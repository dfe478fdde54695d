//! Measures the CPU time of pushing metrics once a second: `telemetry_cpu [PRODUCERS [SECONDS]]`. Idle producers with and
//! without metrics take turns, against embedded brokers in this process; only the client's I/O threads count.

use std::{fs, thread, time::Duration};

use ottla::{Config, Producer, Record};
use ottla_embedded_broker::{ClientTelemetry, ClusterOptions, EmbeddedCluster};

const TIMEOUT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let producers: u32 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let options = ClusterOptions { client_telemetry: ClientTelemetry::Kafka, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options)?;
    cluster.control(|control| {
        control.telemetry().set_requested_metrics(["*"]);
        control.telemetry().set_push_interval(INTERVAL);
    });
    let (mut spent, mut pushes) = ([Duration::ZERO; 2], 0);
    for round in 0..4 {
        let pushes_metrics = round % 2 == 1;
        let all = start(&cluster, producers, pushes_metrics)?;
        // The first pushes come within one and a half intervals.
        thread::sleep(INTERVAL * 2);
        cluster.control(|control| control.telemetry().take_pushes());
        let before = cpu_time()?;
        thread::sleep(Duration::from_secs(seconds));
        spent[usize::from(pushes_metrics)] += cpu_time()? - before;
        pushes += cluster.control(|control| control.telemetry().take_pushes()).len();
        for producer in all {
            producer.close(TIMEOUT)?;
        }
    }
    let per_second =
        |spent: Duration| spent.as_secs_f64() * 1e6 / (2.0 * seconds as f64 * f64::from(producers));
    let [without, with] = spent.map(per_second);
    println!(
        "{producers} producers, {pushes} pushes: {with:.1} us CPU per producer and second with metrics, {without:.1} without: {:.4} % of a core for each",
        (with - without) / 1e4
    );
    Ok(())
}

/// Starts producers, each with a connection.
fn start(cluster: &EmbeddedCluster, count: u32, pushes_metrics: bool) -> Result<Vec<Producer>> {
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers())?;
    config.set("enable.metrics.push", if pushes_metrics { "true" } else { "false" })?;
    let mut all = Vec::new();
    for _ in 0..count {
        let producer = Producer::new(&config)?;
        producer.topic("measured").send(Record::new().value("x"))?;
        producer.flush(TIMEOUT)?;
        all.push(producer);
    }
    Ok(all)
}

/// The CPU time of the client's I/O threads.
fn cpu_time() -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.starts_with("ottla-io") {
            let times = fs::read_to_string(task.join("schedstat"))?;
            sum += Duration::from_nanos(times.split(' ').next().ok_or("no time")?.parse()?);
        }
    }
    Ok(sum)
}
