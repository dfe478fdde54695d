//! A share group: two members process the records of one partition, and acknowledge each record (KIP-932).
//!
//!     cargo run --package ottla --example share_group

mod support;

use std::time::{Duration, Instant};

use ottla::{Admin, ConfigChange, ConfigResource, Producer, Record, ShareConsumer};

const TIMEOUT: Duration = Duration::from_secs(10);
const TOPIC: &str = "example-share-group";
const GROUP: &str = "example-share-group";

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let producer = Producer::new(&config)?;
    for number in 0..100 {
        producer.send(TOPIC, Record::new().value(&format!("job {number}")).partition(0))?;
    }
    producer.close(TIMEOUT)?;

    // A new share group starts at the end of its topics, unless its configuration says otherwise.
    let admin = Admin::new(&config)?;
    let changes = vec![ConfigChange::set("share.auto.offset.reset", "earliest")];
    admin.incremental_alter_configs(&vec![(ConfigResource::group(GROUP), changes)], TIMEOUT)?;

    config.set("group.id", GROUP)?.set("max.poll.records", "10")?;
    let members = [ShareConsumer::new(&config)?, ShareConsumer::new(&config)?];
    for member in &members {
        member.subscribe(&[TOPIC])?;
    }

    let mut done = [0, 0];
    let deadline = Instant::now() + 3 * TIMEOUT;
    while done.iter().sum::<usize>() < 100 && Instant::now() < deadline {
        for (member, done) in members.iter().zip(&mut done) {
            for record in member.poll(Duration::from_millis(200))? {
                // Every tenth job fails at first. Its record is delivered again, perhaps to the other member.
                if record.offset() % 10 == 9 && record.delivery_count() == 1 {
                    record.release()?;
                } else {
                    record.accept()?;
                    *done += 1;
                }
            }
            // Each partition has a result: the broker may have given a record to another member meanwhile.
            for (partition, result) in member.commit_sync(TIMEOUT)?.partitions {
                if let Err(error) = result {
                    eprintln!("{partition}: {error}");
                }
            }
            while let Some(event) = member.poll_event() {
                eprintln!("{event:?}");
            }
        }
    }
    println!("jobs of each member: {done:?}");
    assert!(done.iter().sum::<usize>() >= 100, "every job is done at least once");

    for member in &members {
        member.close(TIMEOUT)?;
    }
    Ok(())
}
