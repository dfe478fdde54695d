//! A group member whose workers finish messages in any order, and that shuts down without losing or repeating one.
//!
//!     cargo run --package ottla --example graceful_shutdown

mod support;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use ottla::{Consumer, Producer, Rebalance, RebalanceListener, Record, TrackedMessage};

const TIMEOUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "example-graceful-shutdown";
const RECORDS: usize = 200;

/// Prints the changes of the assignment.
struct Printing;

impl RebalanceListener for Printing {
    fn on_assigned(&mut self, rebalance: Rebalance) {
        println!("assigned: {:?}", rebalance.partitions());
        rebalance.accept();
    }

    fn on_revoked(&mut self, rebalance: Rebalance) {
        // Finished messages are stored already, and committed after this.
        println!("given up: {:?}", rebalance.partitions());
        rebalance.accept();
    }
}

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let producer = Producer::new(&config)?;
    for number in 0..RECORDS {
        producer.send(TOPIC, Record::new().value(&number.to_string()))?;
    }
    producer.close(TIMEOUT)?;

    config.set("group.id", "example-graceful-shutdown")?.set("auto.offset.reset", "earliest")?;
    config.set("enable.auto.offset.store", "false")?;
    let consumer = Consumer::new(&config)?;
    consumer.set_rebalance_listener(Printing);
    consumer.subscribe(&[TOPIC])?;
    let messages = consumer.track_messages(50)?;

    // A signal handler would set this.
    let stop = AtomicBool::new(false);
    let finished = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel::<TrackedMessage>(10);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| -> support::Result {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().map(|receiver| receiver.recv());
                    let Ok(Ok(message)) = next else { return };
                    // ... process the message ...
                    message.finish();
                    if finished.fetch_add(1, Ordering::Relaxed) + 1 == RECORDS {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
        // 1. Stop taking messages.
        while !stop.load(Ordering::Relaxed) {
            if let Some(message) = messages.next(Duration::from_millis(100))? {
                sender.send(message)?;
            }
        }
        // 2. Let the workers finish: they end when the channel is empty and has no sender.
        drop(sender);
        Ok(())
    })?;
    // 3. Commit what is finished, and leave the group.
    for (partition, outcome) in consumer.commit_stored(TIMEOUT)? {
        println!("{partition}: {outcome:?}");
    }
    consumer.close(TIMEOUT)?;
    println!("{} messages processed", finished.into_inner());
    Ok(())
}
