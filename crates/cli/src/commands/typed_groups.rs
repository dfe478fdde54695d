//! The parts that the commands about groups of one type share: `ottla share-groups` and `ottla streams-groups`.

use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, BrokerDescription, GroupFilter, GroupListings, GroupState, GroupType};

use super::groups::{coordinator_text, delete_and_print, finish, listing_failures, print_dry_run, resolve};
use super::table::Table;
use crate::client_options::{ClientOptions, call_timeout};
use crate::failure::Outcome;

/// The options of `list`.
#[derive(Args, Debug)]
pub struct ListOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Print the state of each group
    #[arg(short = 'l', long)]
    long: bool,

    /// Print the groups as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// The options of `describe`.
#[derive(Args, Debug)]
pub struct DescribeOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    #[command(flatten)]
    pub selection: Selection,

    /// Print the members and their work
    #[arg(long, conflicts_with = "offsets")]
    pub members: bool,

    /// Print the offset and the lag of each partition
    #[arg(long)]
    pub offsets: bool,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// The options of `delete`.
#[derive(Args, Debug)]
pub struct DeleteOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    #[command(flatten)]
    pub selection: Selection,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// The groups that a subcommand is about.
#[derive(Args, Debug)]
pub struct Selection {
    /// IDs of the groups
    #[arg(value_name = "GROUP", required_unless_present = "all", add = crate::completion::groups())]
    groups: Vec<String>,

    /// All groups of the type
    #[arg(long, conflicts_with = "groups")]
    all: bool,
}

/// The state of a group.
#[derive(Clone, Debug)]
pub struct GroupSummary {
    /// The group ID.
    pub group_id: String,
    /// The state.
    pub state: GroupState,
    /// The coordinator.
    pub coordinator: Option<BrokerDescription>,
    /// The number of members.
    pub members: usize,
}

impl Selection {
    /// Returns the IDs of the groups, each once.
    pub fn resolve(&self, admin: &Admin, kind: GroupType) -> Outcome<Vec<String>> {
        let named = (!self.all).then_some(&*self.groups);
        resolve(named, || listed(admin, kind), |_| true)
    }
}

fn listed(admin: &Admin, kind: GroupType) -> Outcome<GroupListings> {
    let filter = GroupFilter { types: vec![kind], ..GroupFilter::default() };
    Ok(admin.list_groups(&filter, call_timeout())?)
}

/// Runs `list`.
pub fn list(options: &ListOptions, admin: &Admin, kind: GroupType) -> Outcome {
    let listings = listed(admin, kind)?;
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

/// Prints the states of groups, and fails after that with the errors of the others.
pub fn describe((groups, failures): (Vec<GroupSummary>, Vec<String>), options: &DescribeOptions) -> Outcome {
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
            group.members.into(),
        ]);
    }
    table.print(options.json)?;
    finish(failures)
}

/// Deletes the groups that were described: a group of another type is not deleted. `what` names the type.
pub fn delete(
    (groups, mut failures): (Vec<GroupSummary>, Vec<String>),
    options: &DeleteOptions,
    admin: &Admin,
    what: &str,
) -> Outcome {
    if options.dry_run {
        print_dry_run(groups.into_iter().map(|group| (group.group_id, group.members)), options.json)?;
        return finish(failures);
    }
    let names: Vec<&str> = groups.iter().map(|group| group.group_id.as_str()).collect();
    failures.extend(delete_and_print(admin, &names, what, options.json)?);
    finish(failures)
}
