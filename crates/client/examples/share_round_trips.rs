//! Measures a share consumer at brokers that respond after some milliseconds: `share_round_trips [MILLISECONDS [RECORDS]]`.
//! Prints the throughput of partitions with one leader and with three, and the latency of `commit_sync` in round trips, while
//! there are further records and at the end of the partition.

use std::time::{Duration, Instant};

use ottla::{Config, Producer, Record, ShareConsumer};
use ottla_embedded_broker::{BrokerId, ClusterOptions, EmbeddedCluster, ShareGroupOptions, ShareOffsetReset};

const TIMEOUT: Duration = Duration::from_secs(60);
/// The records of a batch, and of a poll.
const BATCH: usize = 500;
const COMMITS: usize = 40;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let millis: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let records: usize = arguments.next().map_or(Ok(90_000), |text| text.parse())?;
    let latency = Duration::from_millis(millis);
    let share_groups =
        ShareGroupOptions { auto_offset_reset: ShareOffsetReset::Earliest, ..ShareGroupOptions::default() };
    let cluster = EmbeddedCluster::start(ClusterOptions { share_groups, ..ClusterOptions::default() })?;
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers())?;
    config.set("batch.num.messages", &BATCH.to_string())?;
    config.set("linger.ms", "50")?;
    let producer = Producer::new(&config)?;
    for (topic, leaders) in [("one", [1, 1, 1]), ("three", [1, 2, 3])] {
        cluster.control(|control| {
            control.create_topic(topic, 3, 3).map_err(|error| format!("{error:?}"))?;
            for (partition, leader) in (0..).zip(leaders) {
                control.move_leader(topic, partition, Some(BrokerId(leader)));
            }
            Ok::<_, String>(())
        })?;
        for number in 0..records {
            let partition = (number / BATCH % 3) as i32;
            producer
                .topic(topic)
                .send_blocking(Record::new().value(&[7; 100]).partition(partition), TIMEOUT)?;
        }
        producer.flush(TIMEOUT)?;
    }
    for broker in 1..=3 {
        cluster.control(|control| control.set_latency(BrokerId(broker), latency));
    }
    let one = throughput(&config, "one", records)?;
    let three = throughput(&config, "three", records)?;
    println!("{one:.0} records/s from one leader, {three:.0} from three: {:.2} times", three / one);
    commits(&config, &producer, latency)
}

fn member(config: &Config, topic: &str) -> Result<ShareConsumer> {
    let mut config = config.clone();
    config.set("group.id", topic)?;
    let consumer = ShareConsumer::new(&config)?;
    consumer.subscribe(&[topic])?;
    Ok(consumer)
}

/// Returns the records per second after the first poll.
fn throughput(config: &Config, topic: &str, records: usize) -> Result<f64> {
    let consumer = member(config, topic)?;
    let mut seen = 0;
    let mut began = None;
    while seen < records {
        let polled = consumer.poll(TIMEOUT)?;
        if began.is_some() {
            seen += polled.len();
        } else if !polled.is_empty() {
            began = Some((Instant::now(), polled.len()));
            seen += polled.len();
        }
        polled.accept_all();
    }
    let (began, first) = began.ok_or("no records")?;
    let rate = (seen - first) as f64 / began.elapsed().as_secs_f64();
    consumer.close(TIMEOUT)?;
    Ok(rate)
}

/// Prints the latency of commits while there are records, and of commits of single records.
fn commits(config: &Config, producer: &Producer, latency: Duration) -> Result<()> {
    let send = |count: usize| {
        for _ in 0..count {
            producer.topic("commits").send_blocking(Record::new().value("x").partition(0), TIMEOUT)?;
        }
        producer.flush(TIMEOUT)
    };
    send(COMMITS * BATCH)?;
    let consumer = member(config, "commits")?;
    for (what, single) in [("while there are records", false), ("at the end of the partition", true)] {
        let mut times = Vec::new();
        let mut rest = COMMITS * BATCH;
        while if single { times.len() < COMMITS } else { rest > 0 } {
            if single {
                send(1)?;
            }
            let polled = consumer.poll(TIMEOUT)?;
            rest = rest.saturating_sub(polled.len());
            polled.accept_all();
            let began = Instant::now();
            consumer.commit_sync(TIMEOUT)?.into_result()?;
            times.push(began.elapsed().as_secs_f64() / latency.as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        println!(
            "commit_sync {what}: {:.2} round trips in the median, {:.2} at most, of {}",
            times[times.len() / 2],
            times[times.len() - 1],
            times.len()
        );
    }
    consumer.close(TIMEOUT)?;
    Ok(())
}
