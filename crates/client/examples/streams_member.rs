//! A member of a streams group: it counts the records of the tasks that the coordinator assigns.
//!
//!     cargo run --package ottla --example streams_member

mod support;

use std::time::Duration;

use ottla::{
    Consumer, Offset, Producer, Record,
    streams::{StreamsEvent, StreamsMember, Subtopology, Topology},
};

const TIMEOUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "example-clicks";

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let mut config = brokers.config()?;
    let producer = Producer::new(&config)?;
    for page in ["/", "/help", "/", "/buy"] {
        producer.deliver(TOPIC, Record::new().value(page).partition(0), TIMEOUT)?;
    }
    // The consumer has no group: the member says which partitions it reads.
    let consumer = Consumer::new(&config)?;

    config.set("group.id", "example-counter")?;
    let counting =
        Subtopology { id: "counting".into(), source_topics: vec![TOPIC.into()], ..Subtopology::default() };
    let member = StreamsMember::new(&config, Topology { epoch: 0, subtopologies: vec![counting] })?;
    member.join()?;
    let mut counted = 0;
    while counted < 4 {
        let wait = if consumer.assignment().is_empty() { TIMEOUT } else { Duration::ZERO };
        match member.poll(wait)? {
            Some(StreamsEvent::Assigned(tasks)) => {
                for task in tasks.active {
                    println!("start {} [{}]", task.subtopology_id, task.partition);
                    consumer.incremental_assign(&[(TOPIC, task.partition, Offset::Beginning)])?;
                }
            }
            Some(StreamsEvent::Revoked(revocation)) => {
                for task in &revocation.tasks.active {
                    println!("stop {} [{}]", task.subtopology_id, task.partition);
                    consumer.incremental_unassign(&[(TOPIC, task.partition)])?;
                }
                member.acknowledge(revocation)?;
            }
            Some(event) => println!("{event:?}"),
            None => counted += consumer.poll(Duration::from_millis(100))?.iter().count(),
        }
    }
    println!("{counted} clicks");
    member.close(TIMEOUT)?;
    Ok(())
}
