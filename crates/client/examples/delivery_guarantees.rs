//! Delivery guarantees: a report for every record, also of those that are lost.
//!
//!     cargo run --package ottla --example delivery_guarantees

mod support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ottla::{PersistenceStatus, Producer, Purge, Record};

const TIMEOUT: Duration = Duration::from_secs(10);

/// The numbers of records by what their reports say.
#[derive(Debug, Default)]
struct Counts {
    /// In the log, once.
    written: usize,
    /// Not in the log: these may be sent again.
    not_written: usize,
    /// Perhaps in the log: sending these again could duplicate them.
    unknown: usize,
}

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    // The defaults, spelled out: acknowledged by all in-sync replicas, written once and in order.
    config.set("acks", "all")?.set("enable.idempotence", "true")?;
    // A record that is not delivered by then is reported as failed.
    config.set("message.timeout.ms", "30000")?;

    let counts = Arc::new(Mutex::new(Counts::default()));
    let reported = Arc::clone(&counts);
    let producer = Producer::builder(&config)
        .on_delivery(move |batch| {
            let mut counts = reported.lock().unwrap();
            for report in batch.iter() {
                match report.status {
                    PersistenceStatus::Persisted => counts.written += 1,
                    PersistenceStatus::NotPersisted => counts.not_written += 1,
                    PersistenceStatus::PossiblyPersisted => counts.unknown += 1,
                }
            }
        })
        .build()?;
    let topic = producer.topic("example-delivery-guarantees");
    for number in 0..500 {
        // The opaque number comes back in the report, to find the record again.
        topic.send_blocking(Record::new().value(&number.to_string()).opaque(number), TIMEOUT)?;
    }
    producer.flush(TIMEOUT)?;
    assert_eq!(counts.lock().unwrap().written, 500);

    // Records that wait in the queue and are purged: they are reported, too.
    producer.pause(&[(topic.name(), 0)]);
    for number in 500..510 {
        topic.send(Record::new().value(&number.to_string()).partition(0).opaque(number))?;
    }
    producer.purge(Purge::ALL);
    // `close` waits for the remaining reports.
    producer.close(TIMEOUT)?;
    let counts = counts.lock().unwrap();
    println!("{counts:?}");
    assert_eq!(counts.written + counts.not_written + counts.unknown, 510);
    Ok(())
}
