//! `ottla offsets`: prints the offsets of partitions in the format of Kafka's GetOffsetShell.

use std::io::{self, Write};

use clap::Args;
use ottla::OffsetSpec;

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::consume::matching_topics;
use crate::commands::table::Table;
use crate::commands::topics::{partition_count, topic_names};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::partition_list::{PartitionList, contain, parse_partitions};
use crate::times::{now_ms, parse_time};

/// Print the offsets of partitions, as topic:partition:offset
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla offsets -b localhost:9092 -t demo\n  \
    ottla offsets -b localhost:9092 -t demo --time earliest\n  \
    ottla offsets -b localhost:9092 -t demo --time -1h\n\n{EXIT_CODES}"))]
pub struct OffsetsOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Print only this topic, or those whose names match ^PATTERN; can be repeated [default: all topics]
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Vec<String>,

    /// Print only these partitions, such as 0,2-4; can be repeated [default: all partitions]
    #[arg(short = 'p', long, value_name = "LIST", value_parser = parse_partitions)]
    partition: Vec<PartitionList>,

    /// Print the offsets as JSON
    #[arg(short = 'J', long)]
    json: bool,

    /// More topics, as with -t
    #[arg(value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,

    /// Which offset to print: latest (-1), earliest (-2), max-timestamp (-3, of the record with the largest timestamp),
    /// earliest-local (-4, on the leader's own disk), latest-tiered (-5), earliest-pending-upload (-6, not in tiered storage yet), or
    /// a time (of the first record that is not older): -1h, 2026-11-29T10:00, or milliseconds since 1970
    #[arg(long, default_value = "latest", allow_hyphen_values = true)]
    time: String,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &OffsetsOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let spec = parse_spec(&options.time)?;
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    let named: Vec<String> = options.topic.iter().chain(&options.topics).cloned().collect();
    let topics = if named.is_empty() { topic_names(&admin)? } else { matching_topics(&admin, &named)? };
    let mut questions = Vec::new();
    for topic in &topics {
        let chosen =
            (0..partition_count(&admin, topic)?).filter(|partition| contain(&options.partition, *partition));
        questions.extend(chosen.map(|partition| (topic.as_str(), partition, spec)));
    }
    let mut out = io::stdout().lock();
    let mut table =
        Table::new(&[("TOPIC", "topic", 0), ("PARTITION", "partition", 0), ("OFFSET", "offset", 0)]);
    let mut failure = None;
    for ((topic, partition, _), result) in
        questions.iter().zip(admin.list_offsets(&questions, call_timeout())?)
    {
        match result {
            Ok(listed) if options.json => {
                table.add([(*topic).into(), (*partition).into(), listed.offset.into()])
            }
            // If no record has this timestamp or a later one, Kafka's tool prints an empty offset.
            Ok(listed) => {
                let offset = listed.offset.map_or_else(String::new, |offset| offset.to_string());
                writeln!(out, "{topic}:{partition}:{offset}")?;
            }
            Err(error) => failure = Some(error),
        }
    }
    drop(out);
    if options.json {
        table.print(true)?;
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

fn parse_spec(time: &str) -> Outcome<OffsetSpec> {
    match time {
        "latest" | "-1" => Ok(OffsetSpec::Latest),
        "earliest" | "-2" => Ok(OffsetSpec::Earliest),
        "max-timestamp" | "-3" => Ok(OffsetSpec::MaxTimestamp),
        "earliest-local" | "-4" => Ok(OffsetSpec::EarliestLocal),
        "latest-tiered" | "-5" => Ok(OffsetSpec::LatestTiered),
        "earliest-pending-upload" | "-6" => Ok(OffsetSpec::EarliestPendingUpload),
        time => parse_time(time, now_ms()).map(OffsetSpec::Timestamp).map_err(|error| {
            Failure::Usage(format!(
                "--time {time}: must be latest, earliest, max-timestamp, earliest-local, latest-tiered, earliest-pending-upload or \
                 a time: {error}"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_words_or_kafkas_numbers() {
        assert_eq!(parse_spec("latest"), Ok(OffsetSpec::Latest));
        assert_eq!(parse_spec("-2"), Ok(OffsetSpec::Earliest));
        assert_eq!(parse_spec("5"), Ok(OffsetSpec::Timestamp(5)));
        assert_eq!(parse_spec("earliest-local"), Ok(OffsetSpec::EarliestLocal));
        assert_eq!(parse_spec("-5"), Ok(OffsetSpec::LatestTiered));
        assert_eq!(parse_spec("-6"), Ok(OffsetSpec::EarliestPendingUpload));
        assert!(matches!(parse_spec("-7"), Err(Failure::Usage(_))));
        assert!(matches!(parse_spec("soon"), Err(Failure::Usage(_))));
    }
}
