//! `ottla consume`: prints messages to standard output.

use ottla_sorted::SortedSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use ottla::{Config, Consumer, ConsumerEvent, Error, ErrorKind, MessageRef, Offset, Records};

use crate::client_options::{ClientOptions, print_warnings};
use crate::commands::{consume_group, consume_share, topics::partition_count};
use crate::events::{EventPrinter, EventWatch, describe};
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::message_format::{FORMAT_HELP, MessageFormat, MessageParts, write_json};
use crate::metrics_port::MetricsServer;
use crate::patience::Patience;
use crate::signals::Interrupt;
use crate::standard_error::note;

/// Consume messages and print them
#[derive(Args, Debug)]
#[command(after_help = format!("{FORMAT_HELP}\n\nExamples:\n  \
    ottla consume -b localhost:9092 -t demo -o beginning -e\n  \
    ottla consume -b localhost:9092 -t demo -p 3 -o -10 -e -f '%p/%o %k: %s\\n'\n  \
    ottla consume -b localhost:9092 -t demo -o s@1700000000000 -o e@1700003600000 -J\n  \
    ottla consume -b localhost:9092 -G billing -t orders -t '^payments-' -o beginning\n  \
    ottla consume -b localhost:9092 --share-group jobs -t jobs -o beginning\n\n\
    With -G the members of the group share the partitions of all topics. It continues at the committed offsets; -o beginning\n\
    or -o end is for partitions without one. The offsets of printed messages are committed every auto.commit.interval.ms and\n\
    at the end, also after SIGINT, unless enable.auto.commit=false is set.\n\n\
    With --share-group the members share the messages of each partition (KIP-932). Printed messages are accepted; those that\n\
    were not printed go to other members. -o beginning or -o end sets where the group starts if it is new.\n\n\
    Without -c, -e or -o e@MS it runs until SIGINT (Ctrl-C) or until every partition has failed.\n\n\
    {EXIT_CODES}"))]
pub struct ConsumeOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Consume this topic (required). With --group it can be repeated, and ^PATTERN is a regular expression of topic names
    #[arg(short = 't', long, add = crate::completion::topics())]
    pub(super) topic: Vec<String>,

    /// Consume as a member of this group
    #[arg(short = 'G', long, value_name = "ID", conflicts_with = "partition")]
    pub(super) group: Option<String>,

    /// Consume as a member of this share group
    #[arg(long, value_name = "ID", conflicts_with_all = ["group", "partition", "exit"])]
    share_group: Option<String>,

    /// Consume only this partition; can be repeated [default: all partitions]
    #[arg(short = 'p', long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Vec<i32>,

    /// Where to start in each partition [default: end]: beginning, end, an offset, -N for the last N messages of each
    /// partition, or s@MS for a time. e@MS is the time to stop at; both times are in milliseconds since 1970
    #[arg(short = 'o', long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub(super) offset: Vec<String>,

    /// Stop after this many messages
    #[arg(short = 'c', long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// Exit when the end of every partition is reached
    #[arg(short = 'e', long)]
    pub(super) exit: bool,

    /// The format of a message; see below
    #[arg(short = 'f', long, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<String>,

    /// Print each message as a line of JSON
    #[arg(short = 'J', long)]
    json: bool,

    /// Print the key, followed by this text, before each message
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// The text after each message
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Print null keys and values as NULL
    #[arg(short = 'Z', long)]
    null: bool,

    /// Serve the client's statistics in Prometheus format on this port of 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    pub(super) metrics_port: Option<u16>,

    /// Print only messages and errors
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ConsumeOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topic =
        options.topic.first().ok_or_else(|| Failure::Usage("no topic is named: add -t TOPIC".into()))?;
    let format = match &options.format {
        Some(format) => MessageFormat::parse(format, options.null).map_err(Failure::Usage)?,
        None => MessageFormat::usual(options.key_delimiter.as_deref(), &options.delimiter, options.null),
    };
    if let Some(group) = &options.group {
        return consume_group::run(options, &client, group, &format);
    }
    if let Some(group) = &options.share_group {
        return consume_share::run(options, &client, group, &format);
    }
    let (start, stop_ms) = parse_offsets(&options.offset)?;
    if options.topic.len() > 1 {
        return Err(Failure::Usage("several topics need a group: add -G ID".into()));
    }
    let mut config = client.config()?;
    print_warnings(&without_effect(&config, start));
    config.set("enable.partition.eof", "true")?;
    // Without -G nothing is committed, whatever group the configuration names.
    config.set("enable.auto.commit", "false")?;
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let watch = EventWatch::start(consumer.admin());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    watch.wait_for_broker(client.timeout())?;
    let partitions = choose_partitions(&consumer, topic, &options.partition)?;
    // From here on the poll below returns the events.
    let printer = watch.into_printer();
    let interrupt = Interrupt::catch()?;
    let assignment: Vec<_> = partitions.iter().map(|partition| (topic, *partition, start)).collect();
    consumer.assign(&assignment)?;
    let mut session = Session {
        options,
        format,
        stop_ms,
        stops_on_recreation: stops_on_recreation(&config),
        open: partitions.into_iter().collect(),
        left: options.count.unwrap_or(u64::MAX),
        first_failure: None,
        printer: &printer,
        // A user who did not choose the end may wonder why nothing is printed.
        waits_at_end: (options.offset.is_empty() && !options.quiet && !options.exit).then(SortedSet::new),
        patience: Patience::new(client.timeout.filter(|_| options.exit || stop_ms.is_some())),
    };
    let is_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    while session.left > 0 && !session.open.is_empty() && !interrupt.is_requested() {
        let records = consumer.poll(Duration::from_millis(100))?;
        session.print_messages(&records, &mut out)?;
        if is_terminal || records.is_empty() {
            out.flush()?;
        }
        session.handle_events(&records, &mut out)?;
        session.check_patience(topic, &records)?;
    }
    out.flush()?;
    interrupt.check()?;
    match session.first_failure {
        Some(failure) if session.left > 0 => Err(Failure::Failed(failure)),
        _ => Ok(()),
    }
}

/// Returns the requested partitions, or all of the topic's; fails if one does not exist.
fn choose_partitions(consumer: &Consumer, topic: &str, requested: &[i32]) -> Outcome<Vec<i32>> {
    let count = partition_count(&consumer.admin(), topic)?;
    if let Some(missing) = requested.iter().find(|partition| **partition >= count) {
        return Err(Failure::Failed(format!(
            "-p {missing}: topic \"{topic}\" has {count} partitions, numbered from 0"
        )));
    }
    Ok(if requested.is_empty() { (0..count).collect() } else { requested.to_vec() })
}

fn stops_on_recreation(config: &Config) -> bool {
    config.get("topic.recreate.policy").as_deref() == Some("error")
}

impl ConsumeOptions {
    /// Prints a message.
    pub(super) fn print(
        &self,
        format: &MessageFormat,
        message: &MessageRef<'_>,
        out: &mut impl Write,
    ) -> Outcome {
        let headers: Vec<_> =
            message.headers().map(|header| (AsRef::<[u8]>::as_ref(header.key), header.value)).collect();
        let parts = MessageParts {
            topic: message.topic(),
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp(),
            key: message.key(),
            value: message.value(),
            headers: &headers,
        };
        self.print_parts(format, &parts, out)
    }

    /// Prints the parts of a message.
    pub(super) fn print_parts(
        &self,
        format: &MessageFormat,
        parts: &MessageParts<'_>,
        out: &mut impl Write,
    ) -> Outcome {
        match self.json {
            true => write_json(parts, out)?,
            false => format.write(parts, out)?,
        }
        Ok(())
    }
}

/// The state of the print loop.
struct Session<'a> {
    options: &'a ConsumeOptions,
    format: MessageFormat,
    stop_ms: Option<i64>,
    /// True if a recreated topic ends its partitions (`topic.recreate.policy=error`).
    stops_on_recreation: bool,
    /// Partitions that have neither failed nor reached the point to stop at.
    open: SortedSet<i32>,
    /// The number of messages still to print.
    left: u64,
    first_failure: Option<String>,
    printer: &'a EventPrinter,
    /// The partitions whose end was reached, until a message comes or the user is told that the command waits there.
    waits_at_end: Option<SortedSet<i32>>,
    patience: Patience,
}

impl Session<'_> {
    fn print_messages(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        for message in records {
            if self.stop_ms.is_some_and(|stop| message.timestamp() >= stop) {
                self.open.remove(&message.partition());
                continue;
            }
            if self.left == 0 || !self.open.contains(&message.partition()) {
                continue;
            }
            self.left -= 1;
            self.waits_at_end = None;
            self.options.print(&self.format, &message, out)?;
        }
        Ok(())
    }

    /// Says that the command waits for new messages, once every partition is at its end.
    fn say_where_it_waits(&mut self, partition: i32) {
        let Some(reached) = &mut self.waits_at_end else { return };
        reached.insert(partition);
        if self.open.is_subset(reached) {
            note!("% at the end; -o beginning reads from the start");
            self.waits_at_end = None;
        }
    }

    /// Error: nothing came for too long.
    fn check_patience(&mut self, topic: &str, records: &Records) -> Outcome {
        let reached_end = |event: &ConsumerEvent| matches!(event, ConsumerEvent::EndOfPartition { .. });
        self.patience.renew_if(!records.is_empty() || records.events().iter().any(reached_end));
        if self.open.is_empty() || self.left == 0 {
            return Ok(());
        }
        self.patience.check(|| {
            let partitions: Vec<_> = self.open.iter().map(i32::to_string).collect();
            format!("topic \"{topic}\": the end of partition {} was not reached", partitions.join(", "))
        })
    }

    fn handle_events(&mut self, records: &Records, out: &mut impl Write) -> Outcome {
        for event in records.events() {
            // After the last requested message, events refer to messages that are not printed.
            if self.left == 0 {
                return Ok(());
            }
            match event {
                ConsumerEvent::EndOfPartition { partition, .. } => {
                    if !self.options.quiet && self.open.contains(partition) {
                        out.flush()?;
                        note!("% {event}");
                    }
                    self.say_where_it_waits(*partition);
                    if self.options.exit || self.stop_ms.is_some() {
                        self.open.remove(partition);
                    }
                }
                // It is normal that only some partitions have the requested offset; the others reset.
                ConsumerEvent::OffsetReset { .. } if self.options.quiet => {}
                ConsumerEvent::TopicRecreated(_) if self.stops_on_recreation => {
                    note!("% {event}");
                    self.open.clear();
                    self.first_failure.get_or_insert_with(|| event.to_string());
                }
                ConsumerEvent::Error(error) => {
                    self.printer.error(error);
                    if let Some(partition) = error.context().partition.filter(|_| is_final(error))
                        && self.open.remove(&partition)
                    {
                        self.first_failure.get_or_insert_with(|| describe(error));
                    }
                }
                _ => self.printer.line(&event.to_string(), Instant::now()),
            }
        }
        Ok(())
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
fn is_final(error: &Error) -> bool {
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

/// Parses the start position and the end time.
fn parse_offsets(texts: &[String]) -> Outcome<(Offset, Option<i64>)> {
    let (mut start, mut stop) = (Offset::End, None);
    for text in texts {
        let wrong = || {
            Failure::Usage(format!(
                "-o {text}: must be beginning, end, an offset, -N for the last N messages of each partition, s@MS or e@MS"
            ))
        };
        let number = |digits: &str| match digits.bytes().all(|digit| digit.is_ascii_digit()) {
            true => digits.parse::<i64>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        if let Some(time) = text.strip_prefix("e@") {
            stop = Some(number(time)?);
            continue;
        }
        start = match text.as_str() {
            "beginning" | "earliest" => Offset::Beginning,
            "end" | "latest" => Offset::End,
            "stored" => {
                let text = "-o stored: a group (-G ID) continues at its committed offsets without -o";
                return Err(Failure::Usage(text.into()));
            }
            text => match (text.strip_prefix("s@"), text.strip_prefix('-')) {
                (Some(time), _) => Offset::Timestamp(number(time)?),
                (None, Some(count)) => Offset::Tail(number(count)?),
                (None, None) => Offset::At(number(text)?),
            },
        };
    }
    Ok((start, stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_written_as_in_kcat() {
        let parse =
            |texts: &[&str]| parse_offsets(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        assert_eq!(parse(&[]), Ok((Offset::End, None)));
        assert_eq!(parse(&["beginning"]), Ok((Offset::Beginning, None)));
        assert_eq!(parse(&["42"]), Ok((Offset::At(42), None)));
        assert_eq!(parse(&["-42"]), Ok((Offset::Tail(42), None)));
        assert_eq!(parse(&["s@5", "e@7"]), Ok((Offset::Timestamp(5), Some(7))));
        for wrong in ["", "x", "--1", "s@", "e@x", "99999999999999999999", "+1", "stored"] {
            assert!(matches!(parse(&[wrong]), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
