//! `ottla consume`: messages to standard output.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use ottla::{Admin, Consumer, ConsumerEvent, Offset};

use crate::client_options::{ClientOptions, print_warnings, require_servers};
use crate::commands::topics::partition_count;
use crate::failure::{Failure, Outcome};
use crate::message_format::{FORMAT_HELP, MessageFormat, MessageParts, write_json};
use crate::metrics_port::MetricsServer;

/// Consume messages and print them
#[derive(Args, Debug)]
#[command(after_help = format!("{FORMAT_HELP}\n\nExamples:\n  \
    ottla consume -b localhost:9092 -t demo -o beginning -e\n  \
    ottla consume -b localhost:9092 -t demo -p 3 -o -10 -e -f '%p/%o %k: %s\\n'\n  \
    ottla consume -b localhost:9092 -t demo -o s@1700000000000 -o e@1700003600000 -J\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong options"))]
pub struct ConsumeOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// The topic
    #[arg(short = 't', long)]
    topic: Option<String>,

    /// Only this partition; may stand more than once
    #[arg(short = 'p', long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Vec<i32>,

    /// Where to start: beginning, end, an offset, -N for the last N, s@MS for a time; e@MS is where to stop
    #[arg(short = 'o', long, value_name = "OFFSET", allow_hyphen_values = true)]
    offset: Vec<String>,

    /// Stop after this many messages
    #[arg(short = 'c', long, value_name = "COUNT")]
    count: Option<u64>,

    /// Stop at the end of all partitions
    #[arg(short = 'e', long)]
    exit: bool,

    /// How to print a message; see below
    #[arg(short = 'f', long, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<String>,

    /// Print lines of JSON
    #[arg(short = 'J', long)]
    json: bool,

    /// Print keys too, with this behind them
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_delimiter: Option<String>,

    /// What is printed behind a message
    #[arg(short = 'D', long, value_name = "TEXT", default_value = "\\n")]
    delimiter: String,

    /// Print NULL for nulls
    #[arg(short = 'Z', long)]
    null: bool,

    /// Serve what the client counts, as text for Prometheus, on this port of this machine; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Say nothing but messages and errors
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// Consumes.
pub fn run(options: &ConsumeOptions) -> Outcome {
    if options.client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topic = options
        .topic
        .as_deref()
        .ok_or_else(|| Failure::Usage("no topic is named: give one with -t".into()))?;
    let (start, stop_ms) = parse_offsets(&options.offset)?;
    let format = match &options.format {
        Some(format) => MessageFormat::parse(format, options.null).map_err(Failure::Usage)?,
        None => MessageFormat::usual(options.key_delimiter.as_deref(), &options.delimiter, options.null),
    };
    let mut config = options.client.config()?;
    require_servers(&config)?;
    config.set("enable.partition.eof", "true")?;
    let consumer = Consumer::new(&config)?;
    print_warnings(consumer.warnings());
    let counted = consumer.clone();
    let _metrics = MetricsServer::start(options.metrics_port, move || counted.statistics())?;
    let partitions = match options.partition.as_slice() {
        [] => (0..partition_count(&Admin::new(&config)?, topic)?).collect(),
        partitions => partitions.to_vec(),
    };
    let assignment: Vec<_> = partitions.iter().map(|partition| (topic, *partition, start)).collect();
    consumer.assign(&assignment)?;
    // Partitions that are not at their end, or not at the time to stop at.
    let mut open: BTreeSet<i32> = partitions.iter().copied().collect();
    let mut left = options.count.unwrap_or(u64::MAX);
    let is_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    while left > 0 && !open.is_empty() {
        let records = consumer.poll(Duration::from_millis(500))?;
        let mut headers = Vec::new();
        for message in &records {
            if stop_ms.is_some_and(|stop| message.timestamp() >= stop) {
                open.remove(&message.partition());
                continue;
            }
            if left == 0 || !open.contains(&message.partition()) {
                continue;
            }
            left -= 1;
            headers.clear();
            headers.extend(message.headers().map(|header| (AsRef::<[u8]>::as_ref(header.key), header.value)));
            let parts = MessageParts {
                topic: message.topic(),
                partition: message.partition(),
                offset: message.offset(),
                timestamp: message.timestamp(),
                key: message.key(),
                value: message.value(),
                headers: &headers,
            };
            match options.json {
                true => write_json(&parts, &mut out)?,
                false => format.write(&parts, &mut out)?,
            }
        }
        if is_terminal || records.is_empty() {
            out.flush()?;
        }
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { partition, .. } => {
                    if !options.quiet {
                        out.flush()?;
                        eprintln!("% {event}");
                    }
                    if options.exit || stop_ms.is_some() {
                        open.remove(partition);
                    }
                }
                // Somebody who asks for an offset that not all partitions have gets what they have.
                ConsumerEvent::OffsetReset { .. } if options.quiet => {}
                _ => eprintln!("% {event}"),
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// Where to start, and the time to stop at.
fn parse_offsets(texts: &[String]) -> Outcome<(Offset, Option<i64>)> {
    let (mut start, mut stop) = (Offset::End, None);
    for text in texts {
        let wrong = || {
            Failure::Usage(format!(
                "-o {text}: it must be beginning, end, an offset, -N for the last N, s@MS or e@MS"
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
            "stored" => return Err(Failure::Usage("-o stored: consumer groups aren't built yet".into())),
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
