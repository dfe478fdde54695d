//! Consuming: records in bulk and one by one, positions, and committed offsets.
//!
//!     cargo run --package ottla --example consume

mod support;

use std::time::Duration;

use ottla::{Consumer, ConsumerEvent, GroupOffset, Offset, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);
const TOPIC: &str = "example-consume";

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let producer = Producer::new(&config)?;
    for number in 0..100 {
        producer.send(TOPIC, Record::new().value(&format!("value {number}")).partition(0))?;
    }
    producer.close(TIMEOUT)?;

    config.set("group.id", "example-consume")?.set("enable.partition.eof", "true")?;
    let consumer = Consumer::new(&config)?;

    // In bulk: views into the buffers that came from the socket.
    consumer.assign(&[(TOPIC, 0, Offset::Beginning)])?;
    let mut bytes = 0;
    let mut is_at_end = false;
    while !is_at_end {
        let records = consumer.poll(TIMEOUT)?;
        for message in &records {
            bytes += message.value().map_or(0, <[u8]>::len);
        }
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { offset, .. } => {
                    println!("{bytes} bytes up to offset {offset}");
                    is_at_end = true;
                }
                ConsumerEvent::Error(error) => eprintln!("{error}"),
                other => println!("{other:?}"),
            }
        }
    }

    // One by one, from another position.
    consumer.seek(TOPIC, 0, Offset::Tail(10), TIMEOUT)?;
    let message = consumer.next(TIMEOUT)?.ok_or("no record within 10 s")?;
    println!("offset {}: {:?}", message.offset(), message.value().map(String::from_utf8_lossy));

    // Committed offsets: the next run of the group starts after this record.
    let done = GroupOffset::new(TOPIC, 0, message.offset() + 1);
    for result in consumer.commit(&[done], TIMEOUT)? {
        result?;
    }
    consumer.assign(&[(TOPIC, 0, Offset::Committed)])?;
    let next = consumer.next(TIMEOUT)?.ok_or("no record within 10 s")?;
    assert_eq!(next.offset(), message.offset() + 1);

    consumer.close(TIMEOUT)?;
    Ok(())
}
