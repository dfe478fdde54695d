//! `ottla streams-groups`: lists, describes and deletes the groups of Kafka Streams applications (KIP-1071), with the output of
//! Kafka's kafka-streams-groups.

use std::io;

use clap::{Args, Subcommand};
use ottla::admin::{StreamsGroupDescription, StreamsTask, StreamsTasks};
use ottla::{Admin, GroupType};
use serde_json::Value;

use super::groups::{committed_and_ends, describe_with, finish};
use super::table::Table;
use super::typed_groups::{self, DeleteOptions, DescribeOptions, GroupSummary, ListOptions};
use crate::client_options::{ClientOptions, call_timeout};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Outcome};
use crate::standard_error::note;

/// List, describe and delete streams groups
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla streams-groups -b localhost:9092 list\n  \
    ottla streams-groups describe -b localhost:9092 --members wordcount\n  \
    ottla streams-groups describe -b localhost:9092 --offsets wordcount\n  \
    ottla streams-groups delete -b localhost:9092 --dry-run wordcount\n\n\
    A streams group has committed offsets as a consumer group has: `ottla groups reset-offsets` moves them, and\n\
    `ottla groups delete-offsets` deletes them.\n\n{EXIT_CODES}"))]
pub struct StreamsGroupsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the IDs of the streams groups
    List(ListOptions),
    /// Print the state of streams groups, their members and tasks, or their committed offsets
    Describe(DescribeOptions),
    /// Delete streams groups without members, with their committed offsets
    Delete(DeleteOptions),
}

/// Describes groups, and returns the errors of those that can't be described.
fn described(admin: &Admin, groups: &[String]) -> Outcome<(Vec<StreamsGroupDescription>, Vec<String>)> {
    describe_with(groups, |names| admin.describe_streams_groups(names, call_timeout()))
}

fn summaries(
    (groups, failures): (Vec<StreamsGroupDescription>, Vec<String>),
) -> (Vec<GroupSummary>, Vec<String>) {
    let summary = |group: StreamsGroupDescription| GroupSummary {
        group_id: group.group_id,
        state: group.state,
        coordinator: group.coordinator,
        members: group.members.len(),
    };
    (groups.into_iter().map(summary).collect(), failures)
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &StreamsGroupsOptions, outer: &ClientOptions) -> Outcome {
    const KIND: GroupType = GroupType::Streams;
    let client = match &options.action {
        Action::List(options) => &options.client,
        Action::Describe(options) => &options.client,
        Action::Delete(options) => &options.client,
    };
    let client = client.after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    match &options.action {
        Action::List(options) => typed_groups::list(options, &admin, KIND),
        Action::Describe(options) => {
            let found = described(&admin, &options.selection.resolve(&admin, KIND)?)?;
            match (options.members, options.offsets) {
                (true, _) => members(found, options),
                (_, true) => offsets(found, options, &admin),
                _ => typed_groups::describe(summaries(found), options),
            }
        }
        Action::Delete(options) => {
            let found = described(&admin, &options.selection.resolve(&admin, KIND)?)?;
            typed_groups::delete(summaries(found), options, &admin, "streams group")
        }
    }
}

fn members(
    (groups, failures): (Vec<StreamsGroupDescription>, Vec<String>),
    options: &DescribeOptions,
) -> Outcome {
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("MEMBER", "member", 15),
        ("PROCESS", "process", 15),
        ("CLIENT-ID", "client_id", 15),
        ("ASSIGNMENTS", "assignments", 0),
    ]);
    for group in groups {
        if group.members.is_empty() && !options.json {
            note!("streams group \"{}\" has no active members", group.group_id);
        }
        for member in group.members {
            table.add([
                Value::from(group.group_id.clone()),
                member.member_id.into(),
                member.process_id.into(),
                member.client_id.into(),
                tasks(&member.assignment).into(),
            ]);
        }
    }
    table.print(options.json)?;
    finish(failures)
}

fn offsets(
    (groups, mut failures): (Vec<StreamsGroupDescription>, Vec<String>),
    options: &DescribeOptions,
    admin: &Admin,
) -> Outcome {
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("TOPIC", "topic", 15),
        ("PARTITION", "partition", 10),
        ("CURRENT-OFFSET", "current_offset", 15),
        ("LOG-END-OFFSET", "log_end_offset", 15),
        ("LAG", "lag", 0),
    ]);
    for group in groups {
        for (key, (committed, end)) in committed_and_ends(admin, &group.group_id, &mut failures)? {
            let lag = committed.zip(end).map(|(committed, end)| (end - committed).max(0));
            table.add([
                group.group_id.as_str().into(),
                (*key.topic).into(),
                key.partition.into(),
                committed.into(),
                end.into(),
                lag.into(),
            ]);
        }
    }
    table.print(options.json)?;
    finish(failures)
}

/// Formats tasks as Kafka's tool does: `ACTIVE: 0:[0,1]; STANDBY: 1:[0];`.
fn tasks(tasks: &StreamsTasks) -> String {
    let kinds = [("ACTIVE", &tasks.active), ("STANDBY", &tasks.standby), ("WARMUP", &tasks.warmup)];
    let kinds = kinds.into_iter().filter(|(_, tasks)| !tasks.is_empty());
    let texts: Vec<String> =
        kinds.map(|(kind, tasks)| format!("{kind}: {};", by_subtopology(tasks))).collect();
    texts.join(" ")
}

fn by_subtopology(tasks: &[StreamsTask]) -> String {
    let subtopologies = tasks.chunk_by(|one, next| one.subtopology_id == next.subtopology_id);
    let texts: Vec<String> = subtopologies
        .map(|tasks| {
            let numbers: Vec<String> = tasks.iter().map(|task| task.partition.to_string()).collect();
            format!("{}:[{}]", tasks[0].subtopology_id, numbers.join(","))
        })
        .collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_grouped_by_kind_and_subtopology() {
        let task = |id: &str, partition| StreamsTask { subtopology_id: id.to_owned(), partition };
        let mut all = StreamsTasks::default();
        assert_eq!(tasks(&all), "");
        all.active = vec![task("0", 0), task("0", 1), task("1", 0)];
        all.warmup = vec![task("1", 1)];
        assert_eq!(tasks(&all), "ACTIVE: 0:[0,1] 1:[0]; WARMUP: 1:[1];");
    }
}
