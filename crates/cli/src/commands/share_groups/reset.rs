//! `ottla share-groups reset-offsets` and `delete-offsets`: where a share group without members starts.

use clap::{ArgGroup, Args};
use ottla::{Admin, OffsetSpec, TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::{finish, parse_datetime, scoped_partitions};
use crate::commands::table::Table;
use crate::failure::Outcome;
use crate::standard_error::note;

/// Print where a share group would start, and set it with --execute
///
/// The group must not have members: stop its consumers first. What was acknowledged from the new offset on is delivered
/// again, and what is before it is not.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("scope").required(true).args(["topic", "all_topics"])),
    group(ArgGroup::new("to").required(true).args(["to_earliest", "to_latest", "to_offset", "to_datetime"]))
)]
pub struct ResetOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// ID of the group
    #[arg(value_name = "GROUP", add = crate::completion::groups())]
    group: String,

    /// Reset this topic, or with TOPIC:0,1 only these partitions; can be repeated
    #[arg(long, value_name = "TOPIC[:PARTITIONS]")]
    topic: Vec<String>,

    /// Reset all topics that the group has a state for
    #[arg(long)]
    all_topics: bool,

    /// Start at the first record
    #[arg(long)]
    to_earliest: bool,

    /// Start at the end
    #[arg(long)]
    to_latest: bool,

    /// Start at this offset
    #[arg(long, value_name = "OFFSET", value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,

    /// Start at the first record that is not older than YYYY-MM-DDTHH:mm:SS.sss, in UTC or with ±HH:mm behind it
    #[arg(long, value_name = "TIME")]
    to_datetime: Option<String>,

    /// Set the offsets
    #[arg(long)]
    execute: bool,

    /// Only print the offsets: the default
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,

    /// Print the offsets as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Delete the state of a share group in topics: it starts there as a new group
#[derive(Args, Debug)]
pub struct DeleteOffsetsOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// ID of the group
    #[arg(value_name = "GROUP", add = crate::completion::groups())]
    group: String,

    /// Delete the state of this topic; can be repeated
    #[arg(long, value_name = "TOPIC", required = true)]
    topic: Vec<String>,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Where the group starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The first record.
    Earliest,
    /// The end.
    Latest,
    /// This offset.
    Offset(i64),
    /// The first record that is not older, in milliseconds since 1970.
    Time(i64),
}

impl ResetOptions {
    /// Returns where the group is to start. Error: the time is no time.
    pub fn target(&self) -> Outcome<Target> {
        Ok(match (&self.to_datetime, self.to_offset) {
            (Some(time), _) => Target::Time(parse_datetime(time)?),
            (None, Some(offset)) => Target::Offset(offset),
            (None, None) if self.to_earliest => Target::Earliest,
            (None, None) => Target::Latest,
        })
    }

    fn partitions(&self, admin: &Admin) -> Outcome<SortedSet<TopicPartition>> {
        if self.all_topics {
            let listed = admin.list_share_group_offsets(&self.group, None, call_timeout())?;
            return Ok(listed.into_iter().map(|(key, _)| key).collect());
        }
        scoped_partitions(admin, &self.topic)
    }
}

/// Runs `reset-offsets`.
pub fn run(options: &ResetOptions, target: Target, admin: &Admin) -> Outcome {
    let partitions = options.partitions(admin)?;
    let offsets: Vec<(TopicPartition, i64)> =
        target_offsets(admin, target, &partitions)?.into_iter().collect();
    let mut failures = Vec::new();
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("TOPIC", "topic", 15),
        ("PARTITION", "partition", 10),
        ("NEW-OFFSET", "new_offset", 0),
    ]);
    let mut refused = SortedSet::new();
    if options.execute && !offsets.is_empty() {
        for (key, result) in admin.alter_share_group_offsets(&options.group, &offsets, call_timeout())? {
            if let Err(error) = result {
                failures.push(error.to_string());
                refused.insert(key);
            }
        }
    }
    for (key, offset) in offsets.iter().filter(|(key, _)| !refused.contains(key)) {
        table.add([
            options.group.as_str().into(),
            (*key.topic).into(),
            key.partition.into(),
            (*offset).into(),
        ]);
    }
    table.print(options.json)?;
    if !options.execute && !options.json {
        note!("\nNothing was changed: add --execute to set these offsets");
    }
    finish(failures)
}

/// Returns the offsets that the rule selects, within the range of each partition.
fn target_offsets(
    admin: &Admin,
    target: Target,
    partitions: &SortedSet<TopicPartition>,
) -> Outcome<SortedMap<TopicPartition, i64>> {
    let first = listed(admin, partitions, OffsetSpec::Earliest)?;
    let last = listed(admin, partitions, OffsetSpec::Latest)?;
    let at_time = match target {
        Target::Time(millis) => listed(admin, partitions, OffsetSpec::Timestamp(millis))?,
        _ => SortedMap::new(),
    };
    let offset_of = |key: &TopicPartition| {
        let (first, last) = (first[key].unwrap_or(0), last[key].unwrap_or(0));
        let offset = match target {
            Target::Earliest => first,
            Target::Latest => last,
            Target::Offset(offset) => offset.min(last).max(first),
            // Without a record of this time or later, the group starts at the end.
            Target::Time(_) => at_time[key].unwrap_or(last),
        };
        (key.clone(), offset)
    };
    Ok(partitions.iter().map(offset_of).collect())
}

fn listed(
    admin: &Admin,
    partitions: &SortedSet<TopicPartition>,
    spec: OffsetSpec,
) -> Outcome<SortedMap<TopicPartition, Option<i64>>> {
    if partitions.is_empty() {
        return Ok(SortedMap::new());
    }
    let questions: Vec<_> = partitions.iter().map(|key| (&*key.topic, key.partition, spec)).collect();
    let results = partitions.iter().zip(admin.list_offsets(&questions, call_timeout())?);
    results.map(|(key, result)| Ok((key.clone(), result?.offset))).collect()
}

/// Runs `delete-offsets`.
pub fn run_delete(options: &DeleteOffsetsOptions, admin: &Admin) -> Outcome {
    let mut table = Table::new(&[("TOPIC", "topic", 15), ("STATUS", "status", 0)]);
    let mut failures = Vec::new();
    let topics: SortedSet<&str> = options.topic.iter().map(String::as_str).collect();
    if options.dry_run {
        let listed = admin.list_share_group_offsets(&options.group, None, call_timeout())?;
        for topic in topics {
            if listed.iter().any(|(key, _)| *key.topic == *topic) {
                table.add([topic.into(), "would be deleted".into()]);
            } else {
                failures.push(format!("group \"{}\" has no state of topic \"{topic}\"", options.group));
            }
        }
    } else {
        let topics: Vec<&str> = topics.into_iter().collect();
        for (topic, result) in admin.delete_share_group_offsets(&options.group, &topics, call_timeout())? {
            match result {
                Ok(()) => table.add([topic.as_str().into(), "Successful".into()]),
                Err(error) => {
                    table.add([topic.as_str().into(), format!("Error: {error}").into()]);
                    failures.push(error.to_string());
                }
            }
        }
    }
    table.print(options.json)?;
    finish(failures)
}
