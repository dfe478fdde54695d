//! `ottla copy`: copies topics within a cluster or to another one.
//!
//! Each record is sent in a transaction of the target cluster, and the transaction also commits how far the source was read: as
//! offsets of a group of the target cluster, under the names of the target topics. So a copy that is interrupted continues without
//! gaps and without records twice, in one cluster or between two.
//!
//! | file | what it does |
//! |---|---|
//! | `renaming.rs` | the names of the target topics |
//! | `targets.rs` | creates and checks the target topics, finds the progress of an earlier copy |
//! | `session.rs` | copies |

mod renaming;
mod session;
mod targets;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use self::renaming::Renaming;
use crate::client_options::ClientOptions;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::partition_list::{PartitionList, parse_partitions};
use crate::records::{Decoders, FILTER_HELP, Filter};

/// Copy topics with keys, headers, timestamps and partitions, within a cluster or to another one
#[derive(Args, Debug)]
#[command(after_help = format!("{FILTER_HELP}\n\nExamples:\n  \
    ottla copy -b localhost:9092 orders --to-topic orders.copy\n  \
    ottla copy -b old:9092 --to new:9092 '^orders' payments\n  \
    ottla copy --profile prod --to-profile test orders -o -1h --filter 'value.total > 100' --rate 500\n  \
    ottla copy -b old:9092 --to new:9092 '^' --rename '^(.*)$=old.$1' --follow\n\n\
    The progress is committed with the records, in transactions of the target cluster: a copy that was interrupted continues where\n\
    it was, and readers with isolation.level=read_committed see each record once. It is that of the group --group there, under the\n\
    names of the target topics. `ottla groups delete` forgets it.\n\n{EXIT_CODES}"))]
pub struct CopyOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Copy these topics, or those whose names match the regular expression ^PATTERN
    #[arg(value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,

    /// More topics
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Vec<String>,

    /// Brokers of the target cluster, separated by commas; can be repeated [default: the same cluster]
    #[arg(long, value_name = "HOST:PORT,...")]
    to: Vec<String>,

    /// The profile of the target cluster
    #[arg(long, value_name = "NAME", add = crate::completion::profiles())]
    to_profile: Option<String>,

    /// Read properties of clients of the target cluster from a file of name=value lines
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,

    /// Set a property of the producer; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    to_property: Vec<String>,

    /// The name of the target topic; {topic} stands for the name of the source
    #[arg(long, value_name = "NAME", conflicts_with = "rename")]
    to_topic: Option<String>,

    /// Replace what matches the regular expression in the name of a topic; $1 is its first group. Can be repeated; the first one
    /// that matches counts
    #[arg(long, value_name = "PATTERN=REPLACEMENT")]
    rename: Vec<String>,

    /// Copy only these partitions, such as 0,2-4; can be repeated [default: all partitions]
    #[arg(short = 'p', long, value_name = "LIST", value_parser = parse_partitions)]
    partition: Vec<PartitionList>,

    /// Let the partitioner choose the partitions of the target, by the keys
    #[arg(long)]
    repartition: bool,

    /// Where to start in partitions of which nothing was copied yet [default: beginning]: see `ottla consume --help`
    #[arg(short = 'o', long, value_name = "OFFSET", allow_hyphen_values = true)]
    offset: Vec<String>,

    /// Where to stop [default: end, as it is now]: an offset, -N or a time; see `ottla consume --help`
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true, conflicts_with = "follow")]
    until: Option<String>,

    /// Go on at the end, until SIGINT (Ctrl-C)
    #[arg(long)]
    follow: bool,

    /// Copy only messages for which this expression is true; see below
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,

    /// The group of the target cluster that has the progress
    #[arg(short = 'G', long, value_name = "ID", default_value = "ottla-copy")]
    group: String,

    /// Copy at most this many messages per second
    #[arg(long, value_name = "COUNT", value_parser = super::produce::parse_rate)]
    rate: Option<f64>,

    /// Do not create topics of the target that do not exist
    #[arg(long)]
    no_create: bool,

    /// Only print what would be copied to where
    #[arg(long)]
    dry_run: bool,

    /// Print only errors
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// The smallest `--rate`: the time between two messages is well below `transaction.timeout.ms`.
const SLOWEST: f64 = 0.1;

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &CopyOptions, outer: &ClientOptions) -> Outcome {
    let client = options.client.after(outer);
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let topics: Vec<String> = options.topics.iter().chain(&options.topic).cloned().collect();
    if topics.is_empty() {
        return Err(Failure::Usage("no topic is named".into()));
    }
    if options.rate.is_some_and(|rate| rate < SLOWEST) {
        return Err(Failure::Usage(format!(
            "--rate: at least {SLOWEST} messages per second, because a transaction stays open between two of them"
        )));
    }
    let renaming = Renaming::parse(options.to_topic.as_deref(), &options.rename)?;
    let filter =
        options.filter.as_deref().map(|text| Filter::parse(text, &Decoders::default())).transpose()?;
    let target = options.target(&client);
    let source = session::Source::open(&client)?;
    let copy = targets::plan(options, &source, &target, &renaming, &topics)?;
    if options.dry_run {
        let mut out = io::stdout().lock();
        for one in &copy.partitions {
            writeln!(
                out,
                "would copy {} [{}] to {} from {}",
                one.key.topic,
                one.key.partition,
                one.target,
                one.start_text()
            )?;
        }
        return Ok(());
    }
    session::run(options, source, &target, copy, filter)
}

impl CopyOptions {
    /// Returns the options of clients of the target.
    fn target(&self, source: &ClientOptions) -> ClientOptions {
        let is_other = !self.to.is_empty() || self.to_profile.is_some() || self.to_file.is_some();
        let mut target = match is_other {
            true => ClientOptions {
                bootstrap_server: self.to.clone(),
                profile: self.to_profile.clone(),
                file: self.to_file.clone(),
                timeout: source.timeout,
                ..ClientOptions::default()
            },
            false => source.clone(),
        };
        target.property.extend(self.to_property.iter().cloned());
        target
    }
}
