//! `ottla offsets`: the offsets of partitions, as Kafka's GetOffsetShell prints them.

use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, OffsetSpec};

use crate::client_options::{ClientOptions, require_servers};
use crate::commands::topics::{TIMEOUT, partition_count, topic_names};
use crate::failure::{Failure, Outcome};

/// Print the offsets of partitions, as topic:partition:offset
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    ottla offsets -b localhost:9092 -t demo\n  \
    ottla offsets -b localhost:9092 -t demo --time earliest\n  \
    ottla offsets -b localhost:9092 -t demo --time 1700000000000")]
pub struct OffsetsOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// The topic; may stand more than once. All topics where none is given
    #[arg(short = 't', long)]
    topic: Vec<String>,

    /// latest (-1), earliest (-2), max-timestamp (-3), or milliseconds since 1970
    #[arg(long, default_value = "latest", allow_hyphen_values = true)]
    time: String,
}

/// Prints them.
pub fn run(options: &OffsetsOptions) -> Outcome {
    if options.client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let spec = parse_time(&options.time)?;
    let config = options.client.config()?;
    require_servers(&config)?;
    let admin = Admin::new(&config)?;
    let topics = if options.topic.is_empty() { topic_names(&admin)? } else { options.topic.clone() };
    let mut questions = Vec::new();
    for topic in &topics {
        questions
            .extend((0..partition_count(&admin, topic)?).map(|partition| (topic.as_str(), partition, spec)));
    }
    let mut out = io::stdout().lock();
    let mut failure = None;
    for ((topic, partition, _), answer) in questions.iter().zip(admin.list_offsets(&questions, TIMEOUT)?) {
        match answer {
            // No record is so late: Kafka's tool prints nothing then but the colon.
            Ok(listed) if listed.offset < 0 => writeln!(out, "{topic}:{partition}:")?,
            Ok(listed) => writeln!(out, "{topic}:{partition}:{}", listed.offset)?,
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
        ms => match ms.parse() {
            Ok(ms @ 0..) => Ok(OffsetSpec::Timestamp(ms)),
            _ => Err(Failure::Usage(format!(
                "--time {ms}: it must be latest, earliest, max-timestamp or milliseconds since 1970"
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
        assert!(matches!(parse_time("-4"), Err(Failure::Usage(_))));
        assert!(matches!(parse_time("soon"), Err(Failure::Usage(_))));
    }
}
