//! Waits for queue room and for deliveries that a signal can interrupt.

use std::time::{Duration, Instant};

use ottla::{ErrorKind, Producer, Record, SendError, Topic};

use crate::failure::{Failure, Outcome};
use crate::signals::Interrupt;
use crate::standard_error::note;

/// The interval at which a wait checks for a signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum time that a record waits for queue room. Messages leave the queue after `message.timeout.ms` at the
/// latest.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(300);

/// Waits until the partitions of a topic are known. Brokers may create the topic meanwhile; if they do not, the command
/// fails here and not when its messages time out.
pub fn require_topic(producer: &Producer, topic: &str, timeout: Duration) -> Outcome {
    match producer.partition_count(topic, timeout) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(Failure::Failed(format!(
            "topic \"{topic}\": the brokers did not report its partitions within {} s (--timeout); if it does not exist, \
             create it with `ottla topics create {topic}`",
            timeout.as_secs_f64()
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Sends a record, and waits while the queue is full; a signal ends the wait.
pub fn send_interruptibly(
    topic: &Topic,
    record: &Record<'_>,
    interrupt: &Interrupt,
) -> Outcome<Result<(), SendError>> {
    let start = Instant::now();
    loop {
        match topic.send_blocking(record.clone(), CHECK_INTERVAL) {
            Err(SendError::QueueFull) if start.elapsed() < QUEUE_TIMEOUT => interrupt.check()?,
            sent => return Ok(sent),
        }
    }
}

/// Waits until every message is delivered or failed. The first signal during the wait prints a line, and the wait
/// continues; the second signal ends the process.
pub fn flush_interruptibly(producer: &Producer, interrupt: &Interrupt) -> Outcome {
    let mut is_announced = false;
    loop {
        if interrupt.is_requested() && !is_announced {
            is_announced = true;
            match producer.in_queue() {
                0 => note!("% interrupted"),
                left => note!(
                    "% interrupted; waiting for the delivery of {left} messages (a second signal ends at once)"
                ),
            }
        }
        match producer.flush(CHECK_INTERVAL) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {}
            flushed => return flushed.map_err(Failure::from),
        }
    }
}
