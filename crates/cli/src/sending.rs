//! Waits for queue room and for deliveries, which a signal or `--timeout` ends.

use std::time::Duration;

use ottla::{ErrorKind, Producer, Record, SendError, Topic};

use crate::failure::{Failure, Outcome};
use crate::patience::Patience;
use crate::signals::Interrupt;
use crate::standard_error::note;

/// The interval at which a wait checks for a signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

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

/// How a command waits for its producer.
#[derive(Clone)]
pub struct Sending {
    producer: Producer,
    interrupt: Interrupt,
    /// `--timeout`, if it is set. Messages leave the queue after `message.timeout.ms` at the latest.
    limit: Option<Duration>,
}

impl Sending {
    /// Returns the waits of this producer. If a signal has to end one of them, the messages in the queue are counted.
    pub fn new(producer: &Producer, interrupt: &Interrupt, limit: Option<Duration>) -> Sending {
        let counted = producer.clone();
        interrupt.set_unfinished(move || not_delivered(counted.in_queue()));
        Sending { producer: producer.clone(), interrupt: interrupt.clone(), limit }
    }

    /// Sends a record, and waits while the queue is full.
    pub fn send(&self, topic: &Topic, record: &Record<'_>) -> Outcome<Result<(), SendError>> {
        let mut patience = Patience::new(self.limit);
        let mut before = self.producer.in_queue();
        loop {
            match topic.send_blocking(record.clone(), CHECK_INTERVAL) {
                Err(SendError::QueueFull) => self.interrupt.check()?,
                sent => return Ok(sent),
            }
            let left = self.producer.in_queue();
            patience.renew_if(left < before);
            before = left;
            patience.check(|| format!("the queue is full of {left} messages"))?;
        }
    }

    /// Waits until every message is delivered or failed. Error: a signal or `--timeout` ended the wait. The caller
    /// must not drop the last handle of the producer then, which would wait again.
    pub fn flush(&self) -> Outcome {
        let mut patience = Patience::new(self.limit);
        let mut before = self.producer.in_queue();
        let mut is_announced = false;
        loop {
            if self.interrupt.is_requested() && !is_announced {
                is_announced = true;
                match self.producer.in_queue() {
                    0 => note!("% interrupted"),
                    left => note!(
                        "% interrupted; waiting for the delivery of {left} messages (a second signal ends at once)"
                    ),
                }
            }
            match self.producer.flush(CHECK_INTERVAL) {
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                flushed => return flushed.map_err(Failure::from),
            }
            let left = self.producer.in_queue();
            patience.renew_if(left < before);
            before = left;
            patience.check(|| not_delivered(left).unwrap_or_default())?;
            if self.interrupt.is_over() {
                not_delivered(left).iter().for_each(|text| note!("{text}"));
                return self.interrupt.check();
            }
        }
    }

    /// Returns how long a call may last that would last for `wait`.
    pub fn bound(&self, wait: Duration) -> Duration {
        self.interrupt.bound(self.limit.map_or(wait, |limit| limit.min(wait)))
    }
}

/// Says how many messages were not delivered; `None` if all were.
fn not_delivered(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 message was not delivered".to_owned()),
        count => Some(format!("{count} messages were not delivered")),
    }
}
