//! `ottla check end-to-end`: produces a message and waits until it can be consumed.

use std::time::{Duration, Instant};

use clap::Args;
use ottla::{Consumer, Offset, Producer, Record};

use super::report::{CommonOptions, Metric, Report};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::topics::partition_count;
use crate::events::EventWatch;
use crate::failure::{Failure, Outcome};
use crate::signals::Interrupt;
use crate::times::parse_duration;

const PRODUCE: Metric =
    Metric { name: "ottla_produce_seconds", help: "Longest time until a message was acknowledged." };
const END_TO_END: Metric =
    Metric { name: "ottla_end_to_end_seconds", help: "Longest time from sending a message to receiving it." };

/// Check how long messages take from a producer to a consumer, one through each partition
#[derive(Args, Debug)]
pub struct EndToEndOptions {
    #[command(flatten)]
    pub common: CommonOptions,

    /// The topic, which must exist. Its messages have the key ottla-check: use one that nobody else reads
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: String,

    /// The longest time that a message may take, such as 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    max: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Some(ms @ 1..=3_600_000) => Ok(Duration::from_millis(ms as u64)),
        _ => Err("it must be a time from 1ms to 1h, such as 500ms or 2s".to_owned()),
    }
}

/// Runs the check.
pub fn run(options: &EndToEndOptions, client: &ClientOptions) -> Outcome {
    let mut config = client.config()?;
    config.set("enable.auto.commit", "false")?;
    let consumer = Consumer::new(&config)?;
    let watch = EventWatch::start(consumer.admin());
    watch.wait_for_broker(client.timeout())?;
    let topic = options.topic.as_str();
    let count = partition_count(&consumer.admin(), topic)?;
    let _events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    let producer = Producer::new(&client.config()?)?;
    let (mut report, mut slowest) = (Report::default(), (Duration::ZERO, Duration::ZERO));
    for partition in 0..count {
        interrupt.check()?;
        let one = through(&producer, &consumer, topic, partition, options.max)?;
        slowest = (slowest.0.max(one.0), slowest.1.max(one.1));
    }
    report.add(PRODUCE, &[("topic", topic)], slowest.0.as_secs_f64(), None);
    report.add(END_TO_END, &[("topic", topic)], slowest.1.as_secs_f64(), Some(options.max.as_secs_f64()));
    report.finish("end-to-end", &options.common)
}

/// Sends a message through a partition. Returns the time to its acknowledgement, and to its arrival, which is longer than `max`
/// if it does not arrive by then.
fn through(
    producer: &Producer,
    consumer: &Consumer,
    topic: &str,
    partition: i32,
    max: Duration,
) -> Outcome<(Duration, Duration)> {
    let (_, end) = consumer.watermarks(topic, partition, call_timeout())?;
    consumer.assign(&[(topic, partition, Offset::At(end))])?;
    let began = Instant::now();
    let record = Record::new().partition(partition).key("ottla-check").value("ottla-check");
    let metadata = producer.deliver(topic, record, max.max(call_timeout()))?;
    let acknowledged = began.elapsed();
    let offset = metadata
        .offset
        .ok_or_else(|| Failure::Usage("acks=0 can't be checked: it returns no offset".to_owned()))?;
    loop {
        let left = max.saturating_sub(began.elapsed());
        let records = consumer.poll(left.max(Duration::from_millis(1)))?;
        let has_arrived = records.iter().any(|message| message.offset() >= offset);
        let elapsed = began.elapsed();
        if has_arrived || elapsed > max {
            return Ok((acknowledged, elapsed));
        }
    }
}
