//! Errors: of calls, of records, and of the client itself.
//!
//!     cargo run --package ottla --example errors

mod support;

use std::time::{Duration, Instant};

use ottla::{Admin, Config, Culprit, ErrorKind, Event, NewTopic, Producer, Record, SendError};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let config = brokers.config()?;

    // The call fails: nothing says where the brokers are.
    let error = Producer::new(&Config::new()).unwrap_err();
    println!("the application's fault: {error}");
    assert_eq!(error.culprit(), Culprit::Application);

    // The call succeeds; one of the topics is invalid, and a broker refuses the other.
    let admin = Admin::new(&config)?;
    let topics = [NewTopic::new("no spaces, please", 1, 1), NewTopic::new("example-errors", 1, 99)];
    let results = admin.create_topics(&topics, TIMEOUT)?;
    let culprits: Vec<_> =
        results.iter().map(|(_, result)| result.as_ref().map_err(|error| error.culprit())).collect();
    assert_eq!(culprits, [Err(Culprit::Application), Err(Culprit::Broker)]);
    for (topic, result) in results {
        if let Err(error) = result {
            println!("{topic} is refused: {error}");
            assert!(!error.is_retriable());
        }
    }

    // The record is refused: the queue is full, and the record is returned.
    let mut small = Config::new();
    small.set("queue.buffering.max.messages", "1")?.set("drop.timeout.ms", "0")?;
    small.set("bootstrap.servers", "127.0.0.1:1")?.set("message.timeout.ms", "200")?;
    let producer = Producer::new(&small)?;
    let topic = producer.topic("example-errors");
    let delivery = topic.send_tracked(Record::new().value("first"))?;
    let refused = topic.try_send(Record::new().value("second")).unwrap_err();
    assert_eq!(refused.error, SendError::QueueFull);
    println!("{:?} is not queued: {refused}", refused.record);

    // The record fails later.
    let error = delivery.wait(TIMEOUT).unwrap_err();
    println!("not delivered: {error}");
    assert_eq!(error.kind(), ErrorKind::MessageTimedOutInQueue);

    // The client reports by events what belongs to no call, and continues.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match producer.poll_event() {
            Some(Event::AllBrokersDown(error)) => {
                println!("event: {error}");
                return Ok(());
            }
            Some(event) => println!("event: {event:?}"),
            None if Instant::now() > deadline => return Err("no event".into()),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
