//! `ottla groups delete` and `ottla groups delete-offsets`.

use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, TopicPartition};
use serde_json::Value;

use super::{Selection, describe::described, finish};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::table::Table;
use crate::failure::Outcome;

/// Delete groups without members, with their committed offsets
#[derive(Args, Debug)]
pub struct DeleteOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    #[command(flatten)]
    selection: Selection,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Delete committed offsets of topics that no member of the group subscribes to
#[derive(Args, Debug)]
pub struct DeleteOffsetsOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// ID of the group
    #[arg(value_name = "GROUP", add = crate::completion::groups())]
    group: String,

    /// Delete the offsets of this topic; can be repeated
    #[arg(long, value_name = "TOPIC", required = true)]
    topic: Vec<String>,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs `delete`.
pub fn run(options: &DeleteOptions, admin: &Admin) -> Outcome {
    let groups = options.selection.resolve(admin)?;
    if options.dry_run {
        let (found, failures) = described(admin, &groups)?;
        print_dry_run(found.into_iter().map(|group| (group.group_id, group.members.len())), options.json)?;
        return finish(failures);
    }
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    finish(delete_and_print(admin, &names, "group", options.json)?)
}

fn results() -> Table {
    Table::new(&[("GROUP", "group", 15), ("STATUS", "status", 0)])
}

/// Prints which of these groups, with their numbers of members, would be deleted.
pub fn print_dry_run(groups: impl Iterator<Item = (String, usize)>, json: bool) -> Outcome {
    let mut table = results();
    for (group, members) in groups {
        let status = match members {
            0 => "would be deleted".to_owned(),
            members => format!("has {members} members and can't be deleted"),
        };
        table.add([group.into(), status.into()]);
    }
    table.print(json)
}

/// Deletes groups, if there are any, and prints those that are deleted. Returns the errors of the others.
pub fn delete_and_print(admin: &Admin, names: &[&str], what: &str, json: bool) -> Outcome<Vec<String>> {
    let (mut table, mut failures) = (results(), Vec::new());
    if names.is_empty() {
        table.print(json)?;
        return Ok(failures);
    }
    for (group, result) in admin.delete_groups(names, call_timeout())? {
        match result {
            Ok(()) if json => table.add([group.into(), Value::from("deleted")]),
            Ok(()) => writeln!(io::stdout(), "deleted {what} {group}")?,
            Err(error) => {
                table.add([group.as_str().into(), error.to_string().into()]);
                failures.push(format!("group \"{group}\": {error}"));
            }
        }
    }
    if json {
        table.print(true)?;
    }
    Ok(failures)
}

/// Runs `delete-offsets`.
pub fn run_offsets(options: &DeleteOffsetsOptions, admin: &Admin) -> Outcome {
    let committed = admin.list_group_offsets(&options.group, None, call_timeout())?;
    let is_named = |key: &TopicPartition| options.topic.iter().any(|topic| **topic == *key.topic);
    let partitions: Vec<TopicPartition> =
        committed.into_iter().map(|(key, _)| key).filter(|key| is_named(key)).collect();
    let mut table =
        Table::new(&[("TOPIC", "topic", 15), ("PARTITION", "partition", 10), ("STATUS", "status", 0)]);
    let mut add = |key: &TopicPartition, status: String| {
        table.add([(*key.topic).into(), key.partition.into(), status.into()]);
    };
    let mut failures: Vec<String> = Vec::new();
    for topic in &options.topic {
        if !partitions.iter().any(|key| *key.topic == **topic) {
            failures
                .push(format!("group \"{}\" has no committed offsets of topic \"{topic}\"", options.group));
        }
    }
    if options.dry_run {
        partitions.iter().for_each(|key| add(key, "would be deleted".to_owned()));
    } else if !partitions.is_empty() {
        let named: Vec<_> = partitions.iter().map(|key| (&*key.topic, key.partition)).collect();
        for (key, result) in admin.delete_group_offsets(&options.group, &named, call_timeout())? {
            match result {
                Ok(()) => add(&key, "Successful".to_owned()),
                Err(error) => {
                    add(&key, format!("Error: {error}"));
                    failures.push(error.to_string());
                }
            }
        }
    }
    table.print(options.json)?;
    finish(failures)
}
