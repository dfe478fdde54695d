//! `ottla groups`: lists, describes, changes and deletes consumer groups, with the output of Kafka's kafka-consumer-groups.
//!
//! | file | subcommands |
//! |---|---|
//! | `list.rs` | list |
//! | `describe.rs` | describe, members |
//! | `lag.rs` | lag |
//! | `reset.rs`, `target.rs` | reset-offsets: the new offsets, and how they are chosen |
//! | `delete.rs` | delete, delete-offsets |
//! | `remove.rs` | remove-members |

mod delete;
mod describe;
mod lag;
mod list;
mod remove;
mod reset;
mod target;

use std::io;

use clap::{Args, Subcommand};
use ottla::{Admin, GroupFilter, GroupListing, GroupListings};
use ottla_sorted::SortedSet;

use self::{
    delete::{DeleteOffsetsOptions, DeleteOptions},
    reset::ResetOptions,
};
pub(super) use self::{
    delete::{delete_and_print, print_dry_run},
    describe::{assignment, coordinator_text, describe_with},
    lag::committed_and_ends,
    reset::scoped_partitions,
    target::parse_datetime,
};
use crate::client_options::{ClientOptions, call_timeout};
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};

/// List, describe, change and delete consumer groups
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla groups -b localhost:9092 list\n  \
    ottla groups lag -b localhost:9092 billing\n  \
    ottla groups members -b localhost:9092 --assignments billing\n  \
    ottla groups reset-offsets -b localhost:9092 billing --topic orders --to-earliest             # shows the offsets\n  \
    ottla groups reset-offsets -b localhost:9092 billing --topic orders --to-earliest --execute   # commits them\n  \
    ottla groups remove-members -b localhost:9092 --dry-run --all billing\n  \
    ottla groups delete -b localhost:9092 --dry-run billing\n\n{EXIT_CODES}"))]
pub struct GroupsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    List(list::ListOptions),
    /// Print coordinator, assignor, state and number of members
    Describe(TableOptions),
    Members(describe::MembersOptions),
    /// Print committed offset, end offset and lag of each partition
    Lag(TableOptions),
    ResetOffsets(ResetOptions),
    Delete(DeleteOptions),
    DeleteOffsets(DeleteOffsetsOptions),
    RemoveMembers(remove::RemoveMembersOptions),
}

/// The groups that a subcommand is about.
#[derive(Args, Debug)]
struct Selection {
    /// IDs of the groups
    #[arg(value_name = "GROUP", required_unless_present = "all", add = crate::completion::groups())]
    groups: Vec<String>,

    /// All consumer groups
    #[arg(long, conflicts_with = "groups")]
    all: bool,
}

/// The groups whose table a subcommand prints.
#[derive(Args, Debug)]
pub struct TableOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(flatten)]
    selection: Selection,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

impl Selection {
    /// Returns the IDs of the groups, each once.
    fn resolve(&self, admin: &Admin) -> Outcome<Vec<String>> {
        let named = (!self.all).then_some(&*self.groups);
        let list = || Ok(admin.list_groups(&GroupFilter::default(), call_timeout())?);
        resolve(named, list, GroupListing::is_of_consumers)
    }
}

/// Returns the named groups, each once, or without names those of a list that `is_meant`. Error: a broker did not list its
/// groups.
pub(super) fn resolve(
    named: Option<&[String]>,
    list: impl FnOnce() -> Outcome<GroupListings>,
    is_meant: impl Fn(&GroupListing) -> bool,
) -> Outcome<Vec<String>> {
    if let Some(named) = named {
        return Ok(named.iter().cloned().collect::<SortedSet<_>>().into_iter().collect());
    }
    let listings = list()?;
    if let Some(failure) = listing_failures(&listings).into_iter().next() {
        return Err(Failure::Failed(failure));
    }
    let groups = listings.groups.into_iter().filter(is_meant);
    Ok(groups.map(|group| group.group_id).collect())
}

/// Returns an error text for each broker that did not list its groups.
pub(super) fn listing_failures(listings: &GroupListings) -> Vec<String> {
    let failures = listings.failed.iter();
    failures.map(|(broker, error)| format!("broker {broker} did not list its groups: {error}")).collect()
}

impl Action {
    fn client(&self) -> &ClientOptions {
        match self {
            Action::List(options) => &options.client,
            Action::Describe(options) => &options.client,
            Action::Members(options) => &options.table.client,
            Action::Lag(options) => &options.client,
            Action::ResetOffsets(options) => &options.client,
            Action::Delete(options) => &options.client,
            Action::DeleteOffsets(options) => &options.client,
            Action::RemoveMembers(options) => &options.client,
        }
    }
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &GroupsOptions, outer: &ClientOptions) -> Outcome {
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
        (Action::List(options), _) => list::run(options, &admin),
        (Action::Describe(options), _) => describe::run(options, &admin),
        (Action::Members(options), _) => describe::run_members(options, &admin),
        (Action::Lag(options), _) => lag::run(options, &admin),
        (Action::ResetOffsets(options), Some(target)) => reset::run(options, &target, &admin),
        (Action::ResetOffsets(_), None) => Ok(()),
        (Action::Delete(options), _) => delete::run(options, &admin),
        (Action::DeleteOffsets(options), _) => delete::run_offsets(options, &admin),
        (Action::RemoveMembers(options), _) => remove::run(options, &admin),
    }
}

/// Fails with all errors, one per line, if there are any.
pub(super) fn finish(failures: Vec<String>) -> Outcome {
    if failures.is_empty() { Ok(()) } else { Err(Failure::Failed(failures.join("\n"))) }
}
