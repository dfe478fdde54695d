//! Messages whose processing fails: retried with back-off, and written to a dead letter topic after three attempts.
//!
//!     cargo run --package ottla --example dead_letters

mod support;

use std::time::Duration;

use ottla::{Consumer, Offset, Producer, Record, RetryPolicy};

const TIMEOUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "example-orders";
const DEAD_LETTERS: &str = "example-orders-dead";

/// Processes an order. Every order without a number fails.
fn process(order: &[u8]) -> Result<u32, std::num::ParseIntError> {
    String::from_utf8_lossy(order).parse()
}

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let producer = Producer::new(&config)?;
    for (customer, order) in [("ada", "1"), ("bob", "two"), ("ada", "3"), ("bob", "4")] {
        producer.deliver(TOPIC, Record::new().key(customer).value(order).partition(0), TIMEOUT)?;
    }

    config.set("group.id", "example-dead-letters")?.set("enable.auto.offset.store", "false")?;
    let consumer = Consumer::new(&config)?;
    consumer.assign(&[(TOPIC, 0, Offset::Beginning)])?;
    let policy = RetryPolicy::new().attempts(3).backoff(Duration::from_millis(10), Duration::from_secs(1));
    let messages = consumer.track_messages(100)?.with_retries(policy, &producer, DEAD_LETTERS);
    let mut processed = 0;
    // Any number of threads may do this. Order 4 of Bob waits for the outcome of his first one, and Ada's orders do not.
    while processed < 3 {
        let Some(message) = messages.next(TIMEOUT)? else { return Err("no order came".into()) };
        match process(message.value().unwrap_or_default()) {
            Ok(number) => {
                println!("order {number} of {}", String::from_utf8_lossy(message.key().unwrap_or_default()));
                message.finish();
                processed += 1;
            }
            Err(error) => match message.fail(&error) {
                Some(wait) => println!("an order failed: {error}; again in {wait:?}"),
                None => println!("an order failed for the last time: {error}"),
            },
        }
    }
    consumer.close(TIMEOUT)?;

    let reader = Consumer::new(&brokers.config()?)?;
    reader.assign(&[(DEAD_LETTERS, 0, Offset::Beginning)])?;
    let Some(letter) = reader.next(TIMEOUT)? else { return Err("no dead letter came".into()) };
    for header in letter.headers() {
        println!("{}: {}", header.key_str(), String::from_utf8_lossy(header.value.unwrap_or_default()));
    }
    reader.close(TIMEOUT)?;
    Ok(())
}
