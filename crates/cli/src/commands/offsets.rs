//! `ottla offsets`: prints the offsets of partitions in the format of Kafka's GetOffsetShell.

use std::io::{self, Write};

use clap::Args;
use ottla::OffsetSpec;

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::topics::{partition_count, topic_names};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};

/// Print the offsets of partitions, as topic:partition:offset
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla offsets -b localhost:9092 -t demo\n  \
    ottla offsets -b localhost:9092 -t demo --time earliest\n  \
    ottla offsets -b localhost:9092 -t demo --time 1700000000000\n\n{EXIT_CODES}"))]
pub struct OffsetsOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Print only this topic; can be repeated [default: all topics]
    #[arg(short = 't', long)]
    topic: Vec<String>,

    /// Which offset to print: latest (-1), earliest (-2), max-timestamp (-3, of the record with the largest timestamp),
    /// earliest-local (-4, on the leader's own disk), latest-tiered (-5), earliest-pending-upload (-6, not in tiered storage yet), or
    /// a time in milliseconds since 1970 (of the first record that is not older)
    #[arg(long, default_value = "latest", allow_hyphen_values = true)]
    time: String,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &OffsetsOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let spec = parse_time(&options.time)?;
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    let topics = if options.topic.is_empty() { topic_names(&admin)? } else { options.topic.clone() };
    let mut questions = Vec::new();
    for topic in &topics {
        questions
            .extend((0..partition_count(&admin, topic)?).map(|partition| (topic.as_str(), partition, spec)));
    }
    let mut out = io::stdout().lock();
    let mut failure = None;
    for ((topic, partition, _), result) in
        questions.iter().zip(admin.list_offsets(&questions, call_timeout())?)
    {
        match result {
            // If no record has this timestamp or a later one, Kafka's tool prints an empty offset.
            Ok(listed) => {
                let offset = listed.offset.map_or_else(String::new, |offset| offset.to_string());
                writeln!(out, "{topic}:{partition}:{offset}")?;
            }
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

fn parse_time(time: &str) -> Outcome<OffsetSpec> {
    match time {
        "latest" | "-1" => Ok(OffsetSpec::Latest),
        "earliest" | "-2" => Ok(OffsetSpec::Earliest),
        "max-timestamp" | "-3" => Ok(OffsetSpec::MaxTimestamp),
        "earliest-local" | "-4" => Ok(OffsetSpec::EarliestLocal),
        "latest-tiered" | "-5" => Ok(OffsetSpec::LatestTiered),
        "earliest-pending-upload" | "-6" => Ok(OffsetSpec::EarliestPendingUpload),
        ms => match ms.parse() {
            Ok(ms @ 0..) => Ok(OffsetSpec::Timestamp(ms)),
            _ => Err(Failure::Usage(format!(
                "--time {ms}: must be latest, earliest, max-timestamp, earliest-local, latest-tiered, earliest-pending-upload or \
                 milliseconds since 1970"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_words_or_kafkas_numbers() {
        assert_eq!(parse_time("latest"), Ok(OffsetSpec::Latest));
        assert_eq!(parse_time("-2"), Ok(OffsetSpec::Earliest));
        assert_eq!(parse_time("5"), Ok(OffsetSpec::Timestamp(5)));
        assert_eq!(parse_time("earliest-local"), Ok(OffsetSpec::EarliestLocal));
        assert_eq!(parse_time("-5"), Ok(OffsetSpec::LatestTiered));
        assert_eq!(parse_time("-6"), Ok(OffsetSpec::EarliestPendingUpload));
        assert!(matches!(parse_time("-7"), Err(Failure::Usage(_))));
        assert!(matches!(parse_time("soon"), Err(Failure::Usage(_))));
    }
}
