//! `ottla groups reset-offsets`: moves the committed offsets of a group without members.

use ottla_sorted::{SortedMap, SortedSet};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use ottla::{Admin, ErrorCode, ErrorKind, GroupOffset, OffsetSpec, TopicPartition};

use super::finish;
use super::target::{Target, parse_datetime, parse_duration};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::table::Table;
use crate::commands::topics::partition_count;
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;
use crate::times::now_ms;

/// Print the offsets that a group would continue at, and commit them with --execute
///
/// The group must not have members: stop its consumers first.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("scope").required(true).multiple(true).args(["topic", "all_topics", "from_file"])),
    group(ArgGroup::new("to").required(true).args([
        "to_earliest", "to_latest", "to_current", "to_offset", "shift_by", "to_datetime", "by_duration", "from_file",
    ]))
)]
pub struct ResetOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// ID of the group
    #[arg(value_name = "GROUP")]
    group: String,

    /// Reset this topic, or with TOPIC:0,1 only these partitions; can be repeated
    #[arg(long, value_name = "TOPIC[:PARTITIONS]")]
    topic: Vec<String>,

    /// Reset all topics that the group has committed offsets of
    #[arg(long, conflicts_with = "topic")]
    all_topics: bool,

    /// Continue at the first record
    #[arg(long)]
    to_earliest: bool,

    /// Continue at the end
    #[arg(long)]
    to_latest: bool,

    /// Continue at the committed offset; at the end without one
    #[arg(long)]
    to_current: bool,

    /// Continue at this offset
    #[arg(long, value_name = "OFFSET", value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,

    /// Continue this many records further, or back if it is negative
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    shift_by: Option<i64>,

    /// Continue at the first record that is not older than this: -1h, 2026-11-29, 2026-11-29T10:00:05.250, in UTC or with ±HH:mm
    /// behind it, or @MILLISECONDS since 1970
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to_datetime: Option<String>,

    /// Continue at the first record that is not older than this duration, such as 36h or P1DT12H
    #[arg(long, value_name = "DURATION")]
    by_duration: Option<String>,

    /// Continue at the offsets of a file with lines TOPIC,PARTITION,OFFSET, as --export prints them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["topic", "all_topics"])]
    from_file: Option<PathBuf>,

    /// Commit the offsets
    #[arg(long)]
    execute: bool,

    /// Only print the offsets: the default
    #[arg(long, conflicts_with = "execute")]
    dry_run: bool,

    /// Print lines TOPIC,PARTITION,OFFSET for --from-file
    #[arg(long, conflicts_with = "json")]
    export: bool,

    /// Print the offsets as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// The new offsets: chosen by a rule, or listed in a file.
#[derive(Debug)]
pub enum Plan {
    /// The rule for all partitions.
    Target(Target),
    /// The offset of each partition.
    File(SortedMap<TopicPartition, i64>),
}

impl ResetOptions {
    /// Returns where the offsets are moved to. Error: an argument or the file is wrong.
    pub fn target(&self) -> Outcome<Plan> {
        if let Some(file) = &self.from_file {
            let name = file.display();
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::Usage(format!("--from-file {name}: {error}")))?;
            return parse_file(&text).map(Plan::File).map_err(|line| {
                Failure::Usage(format!("--from-file {name}: line {line} is not a TOPIC,PARTITION,OFFSET"))
            });
        }
        let target = if self.to_earliest {
            Target::Earliest
        } else if self.to_latest {
            Target::Latest
        } else if let Some(offset) = self.to_offset {
            Target::Offset(offset)
        } else if let Some(count) = self.shift_by {
            Target::Shift(count)
        } else if let Some(time) = &self.to_datetime {
            Target::Time(parse_datetime(time)?)
        } else if let Some(duration) = &self.by_duration {
            Target::Time((now_ms() - parse_duration(duration)?).max(0))
        } else {
            Target::Current
        };
        Ok(Plan::Target(target))
    }

    /// Returns the partitions to reset.
    fn partitions(
        &self,
        admin: &Admin,
        committed: &SortedMap<TopicPartition, i64>,
    ) -> Outcome<SortedSet<TopicPartition>> {
        if self.all_topics {
            return Ok(committed.keys().cloned().collect());
        }
        scoped_partitions(admin, &self.topic)
    }
}

/// Returns the partitions of topics that are named with or without partitions. Error: a topic or partition does not exist.
pub fn scoped_partitions(admin: &Admin, scopes: &[String]) -> Outcome<SortedSet<TopicPartition>> {
    let mut partitions = SortedSet::new();
    for scope in scopes {
        let (topic, numbers) = parse_scope(scope)?;
        let count = partition_count(admin, topic)?;
        if let Some(missing) = numbers.iter().flatten().find(|number| **number >= count) {
            let text = format!("--topic {scope}: topic \"{topic}\" has no partition {missing}");
            return Err(Failure::Failed(text));
        }
        let numbers = numbers.unwrap_or_else(|| (0..count).collect());
        partitions.extend(numbers.into_iter().map(|number| TopicPartition::new(topic, number)));
    }
    Ok(partitions)
}

/// Parses a topic with optional partitions.
pub fn parse_scope(scope: &str) -> Outcome<(&str, Option<Vec<i32>>)> {
    let Some((topic, numbers)) = scope.split_once(':') else { return Ok((scope, None)) };
    let numbers: Option<Vec<i32>> =
        numbers.split(',').map(|number| number.parse().ok().filter(|number| *number >= 0)).collect();
    let wrong = || Failure::Usage(format!("--topic {scope}: write it as TOPIC or TOPIC:0,1,2"));
    Ok((topic, Some(numbers.ok_or_else(wrong)?)))
}

/// Parses lines `topic,partition,offset`. Error: the number of the wrong line.
fn parse_file(text: &str) -> Result<SortedMap<TopicPartition, i64>, usize> {
    let mut offsets = SortedMap::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
        let parsed = match &fields[..] {
            [topic, partition, offset] if !topic.is_empty() => {
                partition.parse::<i32>().ok().zip(offset.parse::<i64>().ok()).map(|numbers| (*topic, numbers))
            }
            _ => None,
        };
        match parsed {
            Some((topic, (partition @ 0.., offset @ 0..))) => {
                offsets.insert(TopicPartition::new(topic, partition), offset);
            }
            _ => return Err(index + 1),
        }
    }
    Ok(offsets)
}

/// Runs `reset-offsets`.
pub fn run(options: &ResetOptions, plan: &Plan, admin: &Admin) -> Outcome {
    let group = &options.group;
    let mut committed = SortedMap::new();
    for (key, result) in admin.list_group_offsets(group, None, call_timeout())? {
        committed.extend(result?.map(|offset| (key, offset.offset)));
    }
    check_is_inactive(admin, group)?;
    let requested = match plan {
        Plan::File(offsets) => offsets.clone(),
        Plan::Target(target) => {
            let partitions = options.partitions(admin, &committed)?;
            target_offsets(admin, target, &partitions, &committed)?
        }
    };
    let partitions: SortedSet<TopicPartition> = requested.keys().cloned().collect();
    let (first, last) =
        (listed(admin, &partitions, OffsetSpec::Earliest)?, listed(admin, &partitions, OffsetSpec::Latest)?);
    let mut offsets = Vec::new();
    for (key, requested) in requested {
        // A topic that was recreated in between can end before it began.
        let offset = requested.min(known(last[&key])).max(known(first[&key]));
        if offset != requested {
            note!("{key}: offset {requested} is out of range, using {offset}");
        }
        offsets.push(GroupOffset::new(&*key.topic, key.partition, offset));
    }
    let failures = if options.execute { commit(admin, group, &mut offsets)? } else { Vec::new() };
    print(options, &offsets)?;
    if !options.execute && !options.export && !options.json {
        note!("\nNothing was changed: add --execute to commit these offsets");
    }
    finish(failures)
}

/// Error: the group has members, which would ignore and overwrite the offsets.
fn check_is_inactive(admin: &Admin, group: &str) -> Outcome {
    let not_found = ErrorKind::Broker(ErrorCode::GROUP_ID_NOT_FOUND);
    let described = admin.describe_groups(&[group], call_timeout())?;
    for (_, result) in described {
        match result {
            Ok(description) if !description.members.is_empty() => {
                let (members, state) = (description.members.len(), description.state.name());
                let text = format!(
                    "group \"{group}\" is {state} with {members} members; stop its consumers before its offsets are reset"
                );
                return Err(Failure::Failed(text));
            }
            Err(error) if error.kind() != not_found => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The first or last offset of a partition, which always has both.
fn known(offset: Option<i64>) -> i64 {
    offset.unwrap_or(0)
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

/// Returns the offsets that the rule selects, before they are limited to the range of the partition.
fn target_offsets(
    admin: &Admin,
    target: &Target,
    partitions: &SortedSet<TopicPartition>,
    committed: &SortedMap<TopicPartition, i64>,
) -> Outcome<SortedMap<TopicPartition, i64>> {
    let spec = match target {
        Target::Earliest => OffsetSpec::Earliest,
        Target::Time(millis) => OffsetSpec::Timestamp(*millis),
        _ => OffsetSpec::Latest,
    };
    let found = listed(admin, partitions, spec)?;
    let ends = match target {
        Target::Time(_) => listed(admin, partitions, OffsetSpec::Latest)?,
        _ => SortedMap::new(),
    };
    let mut offsets = SortedMap::new();
    for key in partitions {
        let offset = match target {
            Target::Earliest | Target::Latest => known(found[key]),
            // Without a record of this time or later, the group continues at the end.
            Target::Time(_) => found[key].unwrap_or_else(|| known(ends[key])),
            Target::Current => committed.get(key).copied().unwrap_or_else(|| known(found[key])),
            Target::Offset(offset) => *offset,
            Target::Shift(count) => {
                let Some(current) = committed.get(key) else {
                    let text = format!("{key}: the group has no committed offset, which --shift-by needs");
                    return Err(Failure::Failed(text));
                };
                current.saturating_add(*count)
            }
        };
        offsets.insert(key.clone(), offset);
    }
    Ok(offsets)
}

/// Commits offsets. Those that the coordinator refuses are removed from the list; returns their errors.
fn commit(admin: &Admin, group: &str, offsets: &mut Vec<GroupOffset>) -> Outcome<Vec<String>> {
    if offsets.is_empty() {
        return Ok(Vec::new());
    }
    let results = admin.alter_group_offsets(group, offsets, call_timeout())?;
    let errors: Vec<Option<String>> =
        results.into_iter().map(|(_, result)| result.err().map(|error| error.to_string())).collect();
    let mut refused = errors.iter().map(Option::is_some);
    offsets.retain(|_| !refused.next().unwrap_or(false));
    Ok(errors.into_iter().flatten().collect())
}

fn print(options: &ResetOptions, offsets: &[GroupOffset]) -> Outcome {
    use std::io::Write;

    if options.export {
        let mut out = std::io::stdout().lock();
        for offset in offsets {
            writeln!(out, "\"{}\",{},{}", offset.topic, offset.partition, offset.offset)?;
        }
        return Ok(());
    }
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("TOPIC", "topic", 15),
        ("PARTITION", "partition", 10),
        ("NEW-OFFSET", "new_offset", 0),
    ]);
    for offset in offsets {
        let group = options.group.as_str();
        table.add([group.into(), (*offset.topic).into(), offset.partition.into(), offset.offset.into()]);
    }
    table.print(options.json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_the_topic() {
        assert_eq!(parse_scope("orders"), Ok(("orders", None)));
        assert_eq!(parse_scope("orders:0,2"), Ok(("orders", Some(vec![0, 2]))));
        for wrong in ["orders:", "orders:x", "orders:-1", "orders:0,"] {
            assert!(matches!(parse_scope(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn files_have_a_topic_a_partition_and_an_offset_per_line() {
        let offsets = parse_file("\"a\",0,5\n\nb, 1, 7\n").expect("the lines are right");
        let expected = [(TopicPartition::from(("a", 0)), 5), (TopicPartition::from(("b", 1)), 7)];
        assert_eq!(offsets, expected.into());
        for wrong in ["a,0", "a,x,1", "a,0,-1", ",0,1", "a,-1,1", "a,0,1,2"] {
            assert_eq!(parse_file(wrong), Err(1), "{wrong}");
        }
    }
}
