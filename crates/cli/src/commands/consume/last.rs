//! `ottla consume --last`: the last messages of all partitions together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::time::Duration;

use ottla::{Consumer, ConsumerEvent, MessageRef, Offset, TopicPartition};
use ottla_sorted::SortedMap;

use super::ConsumeOptions;
use super::selection::{partitions_of, stop_offsets};
use crate::client_options::{ClientOptions, print_warnings};
use crate::events::EventWatch;
use crate::failure::{Failure, Outcome};
use crate::patience::Patience;
use crate::positions::Stop;
use crate::records::Printer;
use crate::signals::Interrupt;

/// Runs the command: reads the last `count` messages of each partition and prints the last `count` of all, the oldest first.
pub fn run(
    options: &ConsumeOptions,
    client: &ClientOptions,
    topics: &[String],
    count: usize,
    mut printer: Printer,
) -> Outcome {
    let mut config = client.config()?;
    config.set("enable.partition.eof", "true")?;
    config.set("enable.auto.commit", "false")?;
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let watch = EventWatch::start(consumer.admin());
    watch.wait_for_broker(client.timeout())?;
    let partitions = partitions_of(&consumer.admin(), topics, &options.partition)?;
    let mut open = stop_offsets(&consumer.admin(), &partitions, Some(Stop::Tail(0)))?;
    let events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    let start = |key: &TopicPartition| (key.topic.to_string(), key.partition, Offset::Tail(count as i64));
    consumer.assign(&partitions.iter().map(start).collect::<Vec<_>>())?;
    let mut out = io::stdout().lock();
    // The headings do not belong to the text of a message.
    printer.begin(&mut out)?;
    let mut patience = Patience::new(client.timeout);
    let mut last = Last { count, texts: BinaryHeap::new() };
    while !open.is_empty() && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        patience.renew_if(!records.is_empty());
        for message in &records {
            let key = TopicPartition::new(message.topic(), message.partition());
            let Some(stop) = open.get(&key).copied() else { continue };
            if stop.is_none_or(|stop| message.offset() < stop) {
                last.add(&message, &mut printer)?;
            }
            if stop.is_some_and(|stop| message.offset() + 1 >= stop) {
                open.remove(&key);
            }
        }
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, .. } => {
                    open.remove(&TopicPartition::new(&**topic, *partition));
                }
                ConsumerEvent::Error(error) => {
                    events.error(error);
                    if super::partitions::is_final(error) {
                        return Err(Failure::Failed(crate::events::describe(error)));
                    }
                }
                _ => {}
            }
        }
        patience.check(|| unreached(&open))?;
    }
    interrupt.check()?;
    for (.., text) in last.sorted() {
        out.write_all(&text)?;
    }
    out.flush()?;
    printer.warn();
    Ok(())
}

fn unreached(open: &SortedMap<TopicPartition, Option<i64>>) -> String {
    let names: Vec<String> = open.keys().map(|key| format!("{} [{}]", key.topic, key.partition)).collect();
    format!("the end of {} was not reached", names.join(", "))
}

/// The time and the place of a message, and its text.
type Printed = (i64, TopicPartition, i64, Vec<u8>);

/// The latest messages.
struct Last {
    count: usize,
    /// The oldest one on top.
    texts: BinaryHeap<Reverse<Printed>>,
}

impl Last {
    fn add(&mut self, message: &MessageRef<'_>, printer: &mut Printer) -> Outcome {
        let is_older = |oldest: &Reverse<Printed>| oldest.0.0 > message.timestamp();
        if self.texts.len() == self.count && self.texts.peek().is_some_and(is_older) {
            return Ok(());
        }
        let mut text = Vec::new();
        if printer.print(message, &mut text)? {
            let key = TopicPartition::new(message.topic(), message.partition());
            self.texts.push(Reverse((message.timestamp(), key, message.offset(), text)));
        }
        if self.texts.len() > self.count {
            self.texts.pop();
        }
        Ok(())
    }

    fn sorted(self) -> impl Iterator<Item = Printed> {
        let mut texts: Vec<_> = self.texts.into_iter().map(|Reverse(printed)| printed).collect();
        texts.sort();
        texts.into_iter()
    }
}
