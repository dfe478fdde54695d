//! Producing: the ways to send records.
//!
//!     cargo run --package ottla --example produce
//!
//! Set `BOOTSTRAP_SERVERS` to use other brokers than those that the example starts itself.

mod support;

use std::time::Duration;

use ottla::{Bytes, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    config.set("linger.ms", "5")?.set("compression.type", "lz4")?;
    let producer = Producer::new(&config)?;
    let topic = producer.topic("example-produce");

    // In the background: returns when the record is in the queue.
    topic.send(Record::new().key("order-1").value(r#"{"total": 12}"#).header("source", "web"))?;
    // A null value deletes the key from a compacted topic.
    topic.send(Record::new().key("order-1").null_header("reason"))?;

    // With the result: waits until the brokers have acknowledged the record.
    let written = topic.deliver(Record::new().key("order-2").value("{}"), TIMEOUT)?;
    println!("{} [{}] at offset {:?}", written.topic, written.partition, written.offset);

    // Many records with a result each: all of them are in flight at the same time, and share batches.
    let values: Vec<String> = (0..1000).map(|number| format!("value {number}")).collect();
    let mut deliveries = Vec::new();
    for value in &values {
        deliveries.push(topic.send_tracked(Record::new().value(value))?);
    }
    for delivery in deliveries {
        delivery.wait(TIMEOUT)?;
    }

    // Many records at once, at the lowest cost.
    let records: Vec<Record<'_>> =
        values.iter().map(|value| Record::new().value(value).partition(0)).collect();
    topic.send_batch(&records)?;

    // A large value that is not copied.
    let large = Bytes::from(vec![b'x'; 100_000]);
    topic.send_blocking(Record::new().shared_value(&large), TIMEOUT)?;

    producer.close(TIMEOUT)?;
    println!("all records are delivered");
    Ok(())
}
