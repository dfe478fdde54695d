//! Measures how long records take while a connection authenticates again: `reauthentication_latency TOPIC SECONDS
//! PROPERTY=VALUE...`.
//!
//! Sends a record every 20 ms to partition 0. Brokers end sessions after `connections.max.reauth.ms`. A row is a sequence of
//! records that took more than one and a half times as long as the median.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use ottla::{Config, Delivery, Event, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, topic, seconds, properties @ ..] = &arguments[..] else {
        return Err("TOPIC SECONDS PROPERTY=VALUE...".into());
    };
    let mut config = Config::new();
    config.set("linger.ms", "0")?;
    for property in properties {
        let (name, value) = property.split_once('=').ok_or("PROPERTY=VALUE")?;
        config.set(name, value)?;
    }
    let producer = Producer::new(&config)?;
    // The connections are made.
    producer.deliver(topic, Record::new().value("first").partition(0), TIMEOUT)?;
    let (records, sent) = mpsc::channel::<(Instant, Delivery)>();
    let latencies = thread::spawn(move || {
        let latency = |(at, delivery): (Instant, Delivery)| delivery.wait(TIMEOUT).map(|_| at.elapsed());
        sent.into_iter().map(latency).collect::<Result<Vec<_>, _>>()
    });
    let until = Instant::now() + Duration::from_secs(seconds.parse()?);
    let handle = producer.topic(topic);
    while Instant::now() < until {
        records.send((Instant::now(), handle.send_tracked(Record::new().value("x").partition(0))?))?;
        thread::sleep(Duration::from_millis(20));
    }
    drop(records);
    let latencies = latencies.join().map_err(|_| "the thread that waits panicked")??;
    while let Some(event) = producer.poll_event() {
        if let Event::Error(error) = event {
            return Err(error.into());
        }
    }
    let millis = |latency: &Duration| latency.as_secs_f64() * 1e3;
    let mut sorted = latencies.clone();
    sorted.sort_unstable();
    let percentile = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    let is_slow = |latency: &Duration| *latency > percentile(50) * 3 / 2;
    let rows = latencies.chunk_by(|a, b| is_slow(a) == is_slow(b)).filter(|row| is_slow(&row[0]));
    let rows: Vec<String> =
        rows.filter_map(|row| row.iter().max()).map(|latency| format!("{:.1}", millis(latency))).collect();
    println!(
        "{} records: p50 {:.1} ms, p99 {:.1} ms, slowest {:.1} ms; slowest of each row of slow records: {}",
        latencies.len(),
        millis(&percentile(50)),
        millis(&percentile(99)),
        millis(&percentile(100)),
        rows.join(" ")
    );
    producer.close(TIMEOUT)?;
    Ok(())
}
