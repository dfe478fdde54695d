//! Measures the CPU time of reading a producer's statistics: `statistics_cpu [PARTITIONS [SNAPSHOTS]]`, against embedded
//! brokers in this process, which have nothing to do meanwhile. Before each snapshot 64 MiB are walked through, because
//! what is read once a second isn't in the cache; what that costs alone is subtracted.

use std::{hint::black_box, time::Duration};

use ottla::{Config, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let partitions: i32 = arguments.next().map_or(Ok(5000), |text| text.parse())?;
    let snapshots: u32 = arguments.next().map_or(Ok(300), |text| text.parse())?;
    let options = ClusterOptions { partitions, ..ClusterOptions::default() };
    let cluster = EmbeddedCluster::start(options)?;
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers())?;
    let producer = Producer::new(&config)?;
    let topic = producer.topic("measured");
    producer.partition_count("measured", TIMEOUT)?;
    for round in 0..20 {
        for partition in 0..partitions {
            topic.send_blocking(Record::new().value(&[round; 100]).partition(partition), TIMEOUT)?;
        }
        producer.flush(TIMEOUT)?;
    }
    let mut walked = vec![1u8; 64 << 20];
    let mut spent = |snapshot: &dyn Fn() -> Result<usize, ottla::Error>| {
        let (before, mut bytes) = (cpu_time()?, 0);
        for _ in 0..snapshots {
            walked.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&walked);
            bytes = snapshot()?;
        }
        Ok::<_, Box<dyn std::error::Error>>((cpu_time()? - before, bytes))
    };
    let (walking, _) = spent(&|| Ok(0))?;
    let (gathered, _) = spent(&|| Ok(producer.statistics()?.topics.len()))?;
    let (written, bytes) = spent(&|| Ok(producer.statistics()?.to_json().len()))?;
    let each = |total: Duration| total.saturating_sub(walking).as_secs_f64() * 1000.0 / f64::from(snapshots);
    println!(
        "{partitions} partitions, {snapshots} snapshots: {:.2} ms CPU for a snapshot, {:.2} ms with its JSON of {bytes} bytes",
        each(gathered),
        each(written)
    );
    producer.close(TIMEOUT)?;
    Ok(())
}

/// User and system time of this process.
fn cpu_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').ok_or("no stat")?.1.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
