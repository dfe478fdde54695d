//! Testing with the embedded broker: a cluster inside the process, which the test disturbs.
//!
//!     cargo run --package ottla --example embedded_broker

use std::time::Duration;

use ottla::{Config, Consumer, Offset, Producer, Record};
use ottla_embedded_broker::{
    ApiKey, BrokerId, ClusterOptions, EmbeddedCluster, ErrorCode, Fault, FaultAction,
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the example.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 3, ..ClusterOptions::default() })?;
    cluster.control(|control| control.create_topic("orders", 2, 3)).map_err(|code| code.name())?;
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())])?;
    let producer = Producer::new(&config)?;
    let topic = producer.topic("orders");
    topic.deliver(Record::new().value("1").partition(0), TIMEOUT)?;

    // A broker refuses a request: the client retries, and the record is written once.
    let refusal = Fault::new(FaultAction::Error(ErrorCode::NOT_ENOUGH_REPLICAS));
    cluster.control(|control| control.inject(refusal.api(ApiKey::Produce).times(1)));
    topic.deliver(Record::new().value("2").partition(0), TIMEOUT)?;

    // A connection breaks after the records are written and before the response: no duplicate.
    let broken = Fault::new(FaultAction::TruncateResponse(3)).api(ApiKey::Produce).times(1);
    cluster.control(|control| control.inject(broken));
    topic.deliver(Record::new().value("3").partition(0), TIMEOUT)?;

    // The leader moves: the client finds the new one.
    let has_moved = cluster.control(|control| control.move_leader("orders", 0, Some(BrokerId(2))));
    assert!(has_moved);
    topic.deliver(Record::new().value("4").partition(0), TIMEOUT)?;
    producer.close(TIMEOUT)?;

    let consumer = Consumer::new(&config)?;
    consumer.assign(&[("orders", 0, Offset::Beginning)])?;
    for expected in ["1", "2", "3", "4"] {
        let message = consumer.next(TIMEOUT)?.ok_or("a record is missing")?;
        assert_eq!(message.value(), Some(expected.as_bytes()));
    }
    println!("four records, each once and in order");
    Ok(())
}
