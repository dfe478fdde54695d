//! `ottla share-groups`: lists, describes, resets and deletes share groups, with the output of Kafka's kafka-share-groups.
//!
//! | file | subcommands |
//! |---|---|
//! | this one, [`typed_groups`] | list, describe, delete |
//! | `reset.rs` | reset-offsets, delete-offsets |

mod reset;

use std::io;

use clap::{Args, Subcommand};
use ottla::{Admin, GroupType, ShareGroupDescription};
use serde_json::Value;

use super::groups::{assignment, describe_with, finish};
use super::typed_groups::{self, DeleteOptions, DescribeOptions, GroupSummary, ListOptions};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::table::Table;
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Outcome};
use crate::standard_error::note;

const KIND: GroupType = GroupType::Share;

/// List, describe, reset and delete share groups
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla share-groups -b localhost:9092 list\n  \
    ottla share-groups describe -b localhost:9092 --members jobs\n  \
    ottla share-groups describe -b localhost:9092 --offsets jobs\n  \
    ottla share-groups reset-offsets -b localhost:9092 jobs --topic orders --to-earliest             # shows the offsets\n  \
    ottla share-groups reset-offsets -b localhost:9092 jobs --topic orders --to-earliest --execute   # sets them\n  \
    ottla share-groups delete -b localhost:9092 --dry-run jobs\n\n\
    A share group has no committed offsets. It starts at the first record of a partition that is not finished; resetting\n\
    forgets what was acknowledged from there on.\n\n{EXIT_CODES}"))]
pub struct ShareGroupsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the IDs of the share groups
    List(ListOptions),
    /// Print the state of share groups, their members, or the start offset and lag of each partition
    Describe(DescribeOptions),
    ResetOffsets(reset::ResetOptions),
    DeleteOffsets(reset::DeleteOffsetsOptions),
    /// Delete share groups without members, with their state
    Delete(DeleteOptions),
}

/// Describes groups, and returns the errors of those that can't be described.
fn described(admin: &Admin, groups: &[String]) -> Outcome<(Vec<ShareGroupDescription>, Vec<String>)> {
    describe_with(groups, |names| admin.describe_share_groups(names, call_timeout()))
}

fn summaries(admin: &Admin, groups: &[String]) -> Outcome<(Vec<GroupSummary>, Vec<String>)> {
    let (groups, failures) = described(admin, groups)?;
    let summary = |group: ShareGroupDescription| GroupSummary {
        group_id: group.group_id,
        state: group.state,
        coordinator: group.coordinator,
        members: group.members.len(),
    };
    Ok((groups.into_iter().map(summary).collect(), failures))
}

impl Action {
    fn client(&self) -> &ClientOptions {
        match self {
            Action::List(options) => &options.client,
            Action::Describe(options) => &options.client,
            Action::ResetOffsets(options) => &options.client,
            Action::DeleteOffsets(options) => &options.client,
            Action::Delete(options) => &options.client,
        }
    }
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &ShareGroupsOptions, outer: &ClientOptions) -> Outcome {
    let client = options.action.client().after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    // Wrong arguments are reported before a connection is made.
    let target = match &options.action {
        Action::ResetOffsets(options) => Some(options.target()?),
        _ => None,
    };
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    match (&options.action, target) {
        (Action::List(options), _) => typed_groups::list(options, &admin, KIND),
        (Action::Describe(options), _) if options.members => members(options, &admin),
        (Action::Describe(options), _) if options.offsets => offsets(options, &admin),
        (Action::Describe(options), _) => {
            let groups = options.selection.resolve(&admin, KIND)?;
            typed_groups::describe(summaries(&admin, &groups)?, options)
        }
        (Action::ResetOffsets(options), Some(target)) => reset::run(options, target, &admin),
        (Action::ResetOffsets(_), None) => Ok(()),
        (Action::DeleteOffsets(options), _) => reset::run_delete(options, &admin),
        (Action::Delete(options), _) => {
            let groups = options.selection.resolve(&admin, KIND)?;
            typed_groups::delete(summaries(&admin, &groups)?, options, &admin, "share group")
        }
    }
}

fn members(options: &DescribeOptions, admin: &Admin) -> Outcome {
    let (groups, failures) = described(admin, &options.selection.resolve(admin, KIND)?)?;
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("CONSUMER-ID", "consumer_id", 15),
        ("HOST", "host", 15),
        ("CLIENT-ID", "client_id", 15),
        ("#PARTITIONS", "partitions", 0),
        ("ASSIGNMENT", "assignment", 0),
    ]);
    for group in groups {
        if group.members.is_empty() && !options.json {
            note!("share group \"{}\" has no active members", group.group_id);
        }
        for member in group.members {
            table.add([
                Value::from(group.group_id.clone()),
                member.member_id.into(),
                member.host.into(),
                member.client_id.into(),
                member.assignment.len().into(),
                assignment(&member.assignment).into(),
            ]);
        }
    }
    table.print(options.json)?;
    finish(failures)
}

fn offsets(options: &DescribeOptions, admin: &Admin) -> Outcome {
    let mut failures = Vec::new();
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("TOPIC", "topic", 15),
        ("PARTITION", "partition", 10),
        ("START-OFFSET", "start_offset", 15),
        ("LAG", "lag", 0),
    ]);
    for group in options.selection.resolve(admin, KIND)? {
        let listed = match admin.list_share_group_offsets(&group, None, call_timeout()) {
            Ok(listed) => listed,
            Err(error) => {
                failures.push(format!("group \"{group}\": {error}"));
                continue;
            }
        };
        for (key, result) in listed {
            match result {
                Ok(offset) => table.add([
                    group.as_str().into(),
                    (*key.topic).into(),
                    key.partition.into(),
                    offset.start_offset.into(),
                    offset.lag.into(),
                ]),
                Err(error) => failures.push(error.to_string()),
            }
        }
    }
    table.print(options.json)?;
    finish(failures)
}
