//! `ottla consume`: prints messages to standard output.
//!
//! | file | what it does |
//! |---|---|
//! | `partitions.rs` | reads partitions without a group |
//! | `selection.rs` | finds the partitions of topics and patterns, and where each of them ends |
//! | `last.rs` | `--last`: the last messages of all partitions together |
//! | `group.rs`, `share.rs` | reads as a member of a group, or of a share group |

mod group;
mod last;
mod partitions;
mod selection;
mod share;

use std::io;

use clap::Args;

pub(super) use self::partitions::is_final;
pub(super) use self::selection::{matching_topics, partitions_of, stop_offsets};
use crate::client_options::ClientOptions;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::partition_list::{PartitionList, parse_partitions};
use crate::records::{FILTER_HELP, FORMAT_HELP, FORMAT_LIST, OutputOptions};

/// Consume messages and print them
#[derive(Args, Debug)]
#[command(after_help = format!("{FORMAT_HELP}\n\nFormats of -s:\n{FORMAT_LIST}\n\n{FILTER_HELP}\n\nExamples:\n  \
    ottla consume -b localhost:9092 -t demo -o beginning -e\n  \
    ottla consume -b localhost:9092 -t demo -p 0,2-4 -o -10 -e -f '%p/%o %k: %s\\n'\n  \
    ottla consume -b localhost:9092 -t demo -o -1h --until now -J\n  \
    ottla consume -b localhost:9092 -t demo -o 2026-11-29T10:00 --until 2026-11-29T11:00 --csv\n  \
    ottla consume -b localhost:9092 -t demo --last 10\n  \
    ottla consume -b localhost:9092 -t orders -t '^payments-' -o beginning -e --filter 'value.total > 100'\n  \
    ottla consume -b localhost:9092 -t orders -s key=string,value=avro --registry http://localhost:8081 -J\n  \
    ottla consume -b localhost:9092 -t orders -s value=protobuf:order.proto#shop.Order -I protos\n  \
    ottla consume -b localhost:9092 -G billing -t orders -o beginning\n  \
    ottla consume -b localhost:9092 --share-group jobs -t jobs -o beginning\n\n\
    With -G the members of the group share the partitions of all topics. It continues at the committed offsets; -o beginning\n\
    or -o end is for partitions without one. The offsets of printed messages are committed every auto.commit.interval.ms and\n\
    at the end, also after SIGINT, unless enable.auto.commit=false is set.\n\n\
    With --share-group the members share the messages of each partition (KIP-932). Printed messages are accepted; those that\n\
    were not printed go to other members. -o beginning or -o end sets where the group starts if it is new.\n\n\
    Without -c, -e, --until, --last or -o e@TIME it runs until SIGINT (Ctrl-C) or until every partition has failed.\n\n\
    {EXIT_CODES}"))]
pub struct ConsumeOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(flatten)]
    output: OutputOptions,

    /// Consume this topic, or those whose names match the regular expression ^PATTERN; can be repeated (required)
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Vec<String>,

    /// Consume as a member of this group
    #[arg(short = 'G', long, value_name = "ID", conflicts_with = "partition", add = crate::completion::groups())]
    group: Option<String>,

    /// Consume as a member of this share group
    #[arg(long, value_name = "ID", conflicts_with_all = ["group", "partition", "exit"])]
    share_group: Option<String>,

    /// Consume only these partitions, such as 0,2-4; can be repeated [default: all partitions]
    #[arg(short = 'p', long, value_name = "LIST", value_parser = parse_partitions)]
    partition: Vec<PartitionList>,

    /// Where to start in each partition [default: end]: beginning, end, an offset, -N for the last N messages of each
    /// partition, or a time: -1h, 2026-11-29T10:00, @MILLISECONDS since 1970. s@TIME is a time, e@TIME is one to stop at
    #[arg(short = 'o', long, value_name = "OFFSET", allow_hyphen_values = true)]
    offset: Vec<String>,

    /// Where to stop in each partition, or at its end: end (as it is now), an offset, -N for N messages before the end, or a
    /// time as with -o
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true, conflicts_with_all = ["group", "share_group"])]
    until: Option<String>,

    /// Print the last messages of all partitions together, ordered by time, and exit
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        conflicts_with_all = ["group", "share_group", "offset", "until", "count"]
    )]
    last: Option<u32>,

    /// Stop after this many messages
    #[arg(short = 'c', long, value_name = "COUNT")]
    count: Option<u64>,

    /// Exit when the end of every partition is reached
    #[arg(short = 'e', long)]
    exit: bool,

    /// Serve the client's statistics in Prometheus format on this port of 127.0.0.1; 0 chooses a free port
    #[arg(long, value_name = "PORT")]
    metrics_port: Option<u16>,

    /// Print only messages and errors
    #[arg(short = 'q', long)]
    quiet: bool,

    /// More topics, as with -t
    #[arg(value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ConsumeOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topics: Vec<String> = options.topic.iter().chain(&options.topics).cloned().collect();
    if topics.is_empty() {
        return Err(Failure::Usage("no topic is named: add -t TOPIC".into()));
    }
    let printer = options.output.printer(&client)?;
    if let Some(group) = &options.group {
        return group::run(options, &client, &topics, group, printer);
    }
    if let Some(group) = &options.share_group {
        return share::run(options, &client, &topics, group, printer);
    }
    match options.last {
        Some(count) => last::run(options, &client, &topics, count as usize, printer),
        None => partitions::run(options, &client, &topics, printer),
    }
}
