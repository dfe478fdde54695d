//! Configuration: properties as text, files, topics with properties of their own, and warnings.
//!
//!     cargo run --package ottla --example configuration

mod support;

use std::time::Duration;

use ottla::{Consumer, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);

const FILE: &str = "
# As for the Java client.
client.id=example
linger.ms=5
max.in.flight.requests.per.connection=5
";

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    config.load("client.properties", FILE)?;
    println!("set: {config:?}");
    println!("the default of acks: {:?}", config.get("acks"));

    // Errors name the valid range, or a property of a similar name.
    for (name, value) in [("linger", "5"), ("linger.ms", "soon"), ("linger.ms", "-3")] {
        println!("{}", config.set(name, value).unwrap_err());
    }

    // A topic with properties of its own shares everything else with the producer.
    let producer = Producer::new(&config)?;
    let metrics = producer.topic_with("example-metrics", &[("acks", "1"), ("compression.type", "zstd")]);
    // An idempotent producer needs acks=all for all its topics.
    println!("{}", metrics.unwrap_err());
    let metrics = producer.topic_with("example-metrics", &[("compression.type", "zstd")])?;
    metrics.deliver(Record::new().value("load 0.7"), TIMEOUT)?;
    producer.close(TIMEOUT)?;

    // A property of producers has no effect on a consumer, which warns.
    let consumer = Consumer::new(&config)?;
    consumer.warnings().iter().for_each(|warning| println!("warning: {warning}"));
    consumer.close(TIMEOUT)?;
    Ok(())
}
