//! Threads: one producer for many threads, one consumer for several workers.
//!
//!     cargo run --package ottla --example threads

mod support;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use ottla::{Consumer, ErrorKind, Offset, Producer, Record};

const TIMEOUT: Duration = Duration::from_secs(10);
const THREADS: usize = 4;
const RECORDS: usize = 250;

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let config = brokers.config()?;
    let producer = Producer::new(&config)?;
    thread::scope(|threads| {
        for number in 0..THREADS {
            // Clones share the queue and the connections.
            let topic = producer.topic("example-threads");
            threads.spawn(move || {
                for record in 0..RECORDS {
                    let value = format!("{record} of thread {number}");
                    // Blocks while the queue is full.
                    topic.send_blocking(Record::new().value(&value).partition(0), TIMEOUT)?;
                }
                Ok::<(), ottla::Error>(())
            });
        }
    });
    producer.close(TIMEOUT)?;

    let consumer = Consumer::new(&config)?;
    consumer.assign(&[("example-threads", 0, Offset::Beginning)])?;
    let seen = AtomicUsize::new(0);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                // Each record goes to one of the workers.
                loop {
                    match consumer.next(TIMEOUT) {
                        Ok(Some(_)) if seen.fetch_add(1, Ordering::SeqCst) + 1 < THREADS * RECORDS => {}
                        // The last record, or a timeout: the other workers' calls end with an error.
                        Ok(_) => return consumer.close(TIMEOUT),
                        Err(error) if error.kind() == ErrorKind::Closed => return Ok(()),
                        Err(error) => eprintln!("{error}"),
                    }
                }
            });
        }
    });
    println!("{} records with {} I/O threads", seen.load(Ordering::SeqCst), consumer.io_threads());
    assert_eq!(seen.load(Ordering::SeqCst), THREADS * RECORDS);
    Ok(())
}
