//! `ottla share-groups`: lists, describes, resets and deletes share groups, with the output of Kafka's kafka-share-groups.
//!
//! | file | subcommands |
//! |---|---|
//! | this one | list, describe, delete |
//! | `reset.rs` | reset-offsets, delete-offsets |

mod reset;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use ottla::{Admin, GroupFilter, GroupType, ShareGroupDescription};
use serde_json::Value;

use super::groups::{
    assignment, coordinator_text, delete_and_print, describe_with, finish, listing_failures, print_dry_run,
    resolve,
};
use crate::client_options::ClientOptions;
use crate::commands::table::Table;
use crate::commands::topics::TIMEOUT;
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Outcome};

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
    List(ListOptions),
    Describe(DescribeOptions),
    ResetOffsets(reset::ResetOptions),
    DeleteOffsets(reset::DeleteOffsetsOptions),
    Delete(DeleteOptions),
}

/// Print the IDs of the share groups
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    client: ClientOptions,

    /// Print the state of each group
    #[arg(short = 'l', long)]
    long: bool,

    /// Print the groups as JSON
    #[arg(long)]
    json: bool,
}

/// Print the state of share groups, their members, or the start offset and lag of each partition
#[derive(Args, Debug)]
struct DescribeOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(flatten)]
    selection: Selection,

    /// Print the members and their partitions
    #[arg(long, conflicts_with = "offsets")]
    members: bool,

    /// Print the start offset of each partition, and the number of records that are not finished
    #[arg(long)]
    offsets: bool,

    /// Print the rows as JSON
    #[arg(long)]
    json: bool,
}

/// Delete share groups without members, with their state
#[derive(Args, Debug)]
struct DeleteOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(flatten)]
    selection: Selection,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// The share groups that a subcommand is about.
#[derive(Args, Debug)]
struct Selection {
    /// IDs of the groups
    #[arg(value_name = "GROUP", required_unless_present = "all", add = crate::completion::groups())]
    groups: Vec<String>,

    /// All share groups
    #[arg(long, conflicts_with = "groups")]
    all: bool,
}

impl Selection {
    /// Returns the IDs of the groups, each once.
    fn resolve(&self, admin: &Admin) -> Outcome<Vec<String>> {
        let named = (!self.all).then_some(&*self.groups);
        resolve(named, || share_groups(admin), |_| true)
    }
}

fn share_groups(admin: &Admin) -> Outcome<ottla::GroupListings> {
    let filter = GroupFilter { types: vec![GroupType::Share], ..GroupFilter::default() };
    Ok(admin.list_groups(&filter, TIMEOUT)?)
}

/// Describes groups, and returns the errors of those that can't be described.
fn described(admin: &Admin, groups: &[String]) -> Outcome<(Vec<ShareGroupDescription>, Vec<String>)> {
    describe_with(groups, |names| admin.describe_share_groups(names, TIMEOUT))
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
        (Action::List(options), _) => list(options, &admin),
        (Action::Describe(options), _) if options.members => members(options, &admin),
        (Action::Describe(options), _) if options.offsets => offsets(options, &admin),
        (Action::Describe(options), _) => describe(options, &admin),
        (Action::ResetOffsets(options), Some(target)) => reset::run(options, target, &admin),
        (Action::ResetOffsets(_), None) => Ok(()),
        (Action::DeleteOffsets(options), _) => reset::run_delete(options, &admin),
        (Action::Delete(options), _) => delete(options, &admin),
    }
}

fn list(options: &ListOptions, admin: &Admin) -> Outcome {
    let listings = share_groups(admin)?;
    if options.long || options.json {
        let mut table = Table::new(&[("GROUP", "group", 15), ("STATE", "state", 0)]);
        for group in &listings.groups {
            table.add([group.group_id.as_str().into(), group.state.name().into()]);
        }
        table.print(options.json)?;
    } else {
        let mut out = io::stdout().lock();
        for group in &listings.groups {
            writeln!(out, "{}", group.group_id)?;
        }
    }
    finish(listing_failures(&listings))
}

fn describe(options: &DescribeOptions, admin: &Admin) -> Outcome {
    let (groups, failures) = described(admin, &options.selection.resolve(admin)?)?;
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("COORDINATOR (ID)", "coordinator", 25),
        ("STATE", "state", 15),
        ("#MEMBERS", "members", 0),
    ]);
    for group in groups {
        let coordinator = coordinator_text(group.coordinator.as_ref());
        table.add([
            group.group_id.into(),
            coordinator.into(),
            group.state.name().into(),
            group.members.len().into(),
        ]);
    }
    table.print(options.json)?;
    finish(failures)
}

fn members(options: &DescribeOptions, admin: &Admin) -> Outcome {
    let (groups, failures) = described(admin, &options.selection.resolve(admin)?)?;
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
            eprintln!("share group \"{}\" has no active members", group.group_id);
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
    for group in options.selection.resolve(admin)? {
        let listed = match admin.list_share_group_offsets(&group, None, TIMEOUT) {
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

fn delete(options: &DeleteOptions, admin: &Admin) -> Outcome {
    let groups = options.selection.resolve(admin)?;
    let (found, mut failures) = described(admin, &groups)?;
    if options.dry_run {
        print_dry_run(found.into_iter().map(|group| (group.group_id, group.members.len())), options.json)?;
        return finish(failures);
    }
    // A group of another type is not deleted by this command.
    let names: Vec<&str> = found.iter().map(|group| group.group_id.as_str()).collect();
    failures.extend(delete_and_print(admin, &names, "share group", options.json)?);
    finish(failures)
}
