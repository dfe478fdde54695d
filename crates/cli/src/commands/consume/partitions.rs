//! `ottla consume` without a group: reads partitions from a start to an end.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

use ottla::{Config, Consumer, ConsumerEvent, Error, ErrorKind, MessageRef, Offset, Records, TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use super::ConsumeOptions;
use super::selection::{partitions_of, stop_offsets};
use crate::client_options::{ClientOptions, print_warnings};
use crate::events::{EventPrinter, EventWatch, describe};
use crate::failure::{Failure, Outcome};
use crate::metrics_port::MetricsServer;
use crate::patience::Patience;
use crate::positions::{Stop, parse_range};
use crate::records::Printer;
use crate::signals::Interrupt;
use crate::standard_error::note;

/// Runs the command.
pub fn run(
    options: &ConsumeOptions,
    client: &ClientOptions,
    topics: &[String],
    mut printer: Printer,
) -> Outcome {
    let range = parse_range(&options.offset, options.until.as_deref())?;
    let mut config = client.config()?;
    print_warnings(&without_effect(&config, range.start));
    config.set("enable.partition.eof", "true")?;
    // Without -G nothing is committed, whatever group the configuration names.
    config.set("enable.auto.commit", "false")?;
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let watch = EventWatch::start(consumer.admin());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    let partitions = partitions_of(&consumer.admin(), topics, &options.partition)?;
    let open = stop_offsets(&consumer.admin(), &partitions, range.stop)?;
    // From here on the poll below returns the events.
    let events = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    let start = |key: &TopicPartition| (key.topic.to_string(), key.partition, range.start);
    consumer.assign(&partitions.iter().map(start).collect::<Vec<_>>())?;
    let is_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    printer.begin(&mut out)?;
    let mut session = Session {
        options,
        printer,
        stop_ms: range.stop.and_then(|stop| if let Stop::Time(ms) = stop { Some(ms) } else { None }),
        ends: options.exit || range.stop.is_some(),
        stops_on_recreation: stops_on_recreation(&config),
        open,
        left: options.count.unwrap_or(u64::MAX),
        first_failure: None,
        events: &events,
        // A user who did not choose the end may wonder why nothing is printed.
        waits_at_end: (options.offset.is_empty() && !options.quiet && !options.exit).then(SortedSet::new),
        patience: Patience::new(client.timeout.filter(|_| options.exit || range.stop.is_some())),
    };
    while session.left > 0 && !session.open.is_empty() && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        session.print_messages(&records, &mut out)?;
        if is_terminal || records.is_empty() {
            out.flush()?;
        }
        session.handle_events(&records, &mut out)?;
        session.check_patience(&records)?;
    }
    out.flush()?;
    session.printer.warn();
    interrupt.check()?;
    match session.first_failure {
        Some(failure) if session.left > 0 => Err(Failure::Failed(failure)),
        _ => Ok(()),
    }
}

fn stops_on_recreation(config: &Config) -> bool {
    config.get("topic.recreate.policy").as_deref() == Some("error")
}

/// The state of the print loop.
struct Session<'a> {
    options: &'a ConsumeOptions,
    printer: Printer,
    stop_ms: Option<i64>,
    /// True if a partition ends at its end.
    ends: bool,
    /// True if a recreated topic ends its partitions (`topic.recreate.policy=error`).
    stops_on_recreation: bool,
    /// Partitions that have neither failed nor reached the point to stop at, with the offset to stop before.
    open: SortedMap<TopicPartition, Option<i64>>,
    /// The number of messages still to print.
    left: u64,
    first_failure: Option<String>,
    events: &'a EventPrinter,
    /// The partitions whose end was reached, until a message comes or the user is told that the command waits there.
    waits_at_end: Option<SortedSet<TopicPartition>>,
    patience: Patience,
}

impl Session<'_> {
    fn print_messages(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        // All messages of a piece are of one partition.
        for (_, mut messages) in records.pieces() {
            let Some(first) = messages.next() else { continue };
            let key = TopicPartition::new(first.topic(), first.partition());
            let Some(stop) = self.open.get(&key).copied() else { continue };
            if !self.print_piece(std::iter::once(first).chain(messages), stop.unwrap_or(i64::MAX), out)? {
                self.open.remove(&key);
            }
        }
        Ok(())
    }

    /// Prints messages of a partition. Returns false if it has reached the point to stop at.
    fn print_piece<'m>(
        &mut self,
        messages: impl Iterator<Item = MessageRef<'m>>,
        stop: i64,
        out: &mut impl Write,
    ) -> Outcome<bool> {
        for message in messages {
            if message.offset() >= stop || self.stop_ms.is_some_and(|stop| message.timestamp() >= stop) {
                return Ok(false);
            }
            if self.left == 0 {
                return Ok(true);
            }
            self.waits_at_end = None;
            if self.printer.print(&message, out)? {
                self.left -= 1;
            }
            if message.offset() + 1 >= stop {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says that the command waits for new messages, once every partition is at its end.
    fn say_where_it_waits(&mut self, partition: TopicPartition) {
        let Some(reached) = &mut self.waits_at_end else { return };
        reached.insert(partition);
        if self.open.keys().all(|key| reached.contains(key)) {
            note!("% at the end; -o beginning reads from the start");
            self.waits_at_end = None;
        }
    }

    /// Error: nothing came for too long.
    fn check_patience(&mut self, records: &Records) -> Outcome {
        let reached_end = |event: &ConsumerEvent| matches!(event, ConsumerEvent::EndOfPartition { .. });
        self.patience.renew_if(!records.is_empty() || records.events().iter().any(reached_end));
        if self.open.is_empty() || self.left == 0 {
            return Ok(());
        }
        self.patience.check(|| {
            let names: Vec<_> =
                self.open.keys().map(|key| format!("{} [{}]", key.topic, key.partition)).collect();
            format!("the end of {} was not reached", names.join(", "))
        })
    }

    fn handle_events(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        for event in records.events() {
            // After the last requested message, events refer to messages that are not printed.
            if self.left == 0 {
                return Ok(());
            }
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, .. } => {
                    let key = TopicPartition::new(&**topic, *partition);
                    if !self.options.quiet && self.open.contains_key(&key) {
                        out.flush()?;
                        note!("% {event}");
                    }
                    if self.ends {
                        self.open.remove(&key);
                    }
                    self.say_where_it_waits(key);
                }
                // It is normal that only some partitions have the requested offset; the others reset.
                ConsumerEvent::OffsetReset { .. } if self.options.quiet => {}
                ConsumerEvent::TopicRecreated(_) if self.stops_on_recreation => {
                    note!("% {event}");
                    self.open.clear();
                    self.first_failure.get_or_insert_with(|| event.to_string());
                }
                ConsumerEvent::Error(error) => {
                    self.events.error(error);
                    if is_final(error) && self.close(error) {
                        self.first_failure.get_or_insert_with(|| describe(error));
                    }
                }
                _ => self.events.line(&event.to_string(), Instant::now()),
            }
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Ends the partitions that an error is about. Returns false if there are none.
    fn close(&mut self, error: &Error) -> bool {
        let context = error.context();
        let Some(partition) = context.partition else { return false };
        let is_meant = |key: &TopicPartition| {
            key.partition == partition && context.topic.as_deref().is_none_or(|topic| *topic == *key.topic)
        };
        let before = self.open.len();
        self.open.retain(|key, _| !is_meant(key));
        self.open.len() < before
    }
}

/// Returns warnings about properties that are for members of groups.
fn without_effect(config: &Config, start: Offset) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(group) = config.get("group.id").filter(|group| !group.is_empty()) {
        warnings.push(format!(
            "group.id has no effect without -G: every partition is read, and no offsets are committed; -G {group} consumes as a \
             member of the group"
        ));
    }
    // A requested offset may be out of range.
    if config.is_modified("auto.offset.reset") && !matches!(start, Offset::At(_)) {
        warnings.push(
            "auto.offset.reset has no effect without -G: -o beginning or -o end sets where to start"
                .to_owned(),
        );
    }
    warnings
}

/// True if this error stops its partition until the application acts.
pub fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::UnknownTopic
        | ErrorKind::UnknownPartition
        | ErrorKind::OffsetReset
        | ErrorKind::LogTruncated
        | ErrorKind::TopicRecreated => true,
        ErrorKind::Broker(code) => !code.is_retriable() && error.context().next_attempt.is_none(),
        _ => false,
    }
}
