//! Measures how long commits take while the consumer waits for records at the end of its partitions:
//! `commit_latency SERVERS TOPIC COMMITS`.
//!
//! The group's coordinator also leads partitions, so that a long-polling Fetch (`fetch.wait.max.ms=500`) is in flight to the
//! broker that each commit goes to.

use std::{
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Consumer, GroupOffset, Offset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, servers, topic, commits] = &arguments[..] else {
        return Err("SERVERS TOPIC COMMITS".into());
    };
    let mut config = Config::new();
    config.set("bootstrap.servers", servers)?;
    config.set("group.id", "commit-latency")?;
    config.set("fetch.wait.max.ms", "500")?;
    let consumer = Consumer::new(&config)?;
    consumer.assign(&[(&**topic, 0, Offset::End)])?;
    // The first fetch begins, and the coordinator is found.
    consumer.poll(Duration::from_secs(1))?;
    let mut times = Vec::new();
    for number in 0..commits.parse()? {
        let offset = GroupOffset::new(&**topic, 0, number);
        let start = Instant::now();
        for outcome in consumer.commit(&[offset], Duration::from_secs(10))? {
            outcome?;
        }
        times.push(start.elapsed());
        thread::sleep(Duration::from_millis(7));
    }
    times.sort_unstable();
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!(
        "{} commits: p50 {:.3} ms, p99 {:.3} ms, slowest {:.3} ms",
        times.len(),
        percentile(50),
        percentile(99),
        percentile(100)
    );
    consumer.close(Duration::from_secs(5))?;
    Ok(())
}
