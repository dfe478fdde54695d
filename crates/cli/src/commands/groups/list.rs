//! `ottla groups list`.

use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, GroupFilter, GroupState, GroupType};

use super::{finish, listing_failures};
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::table::Table;
use crate::failure::Outcome;

/// Print the IDs of the consumer groups
#[derive(Args, Debug)]
pub struct ListOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Only groups in this state, such as Stable or Empty; can be repeated
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<GroupState>,

    /// Only groups of this type: Classic, Consumer, Share or Streams; can be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = group_type)]
    group_type: Vec<GroupType>,

    /// Print groups of all applications, and not only of consumers
    #[arg(long)]
    all: bool,

    /// Print type, protocol and state of each group
    #[arg(short = 'l', long)]
    long: bool,

    /// Print the groups as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

fn state(name: &str) -> Result<GroupState, String> {
    match GroupState::from_name(name) {
        GroupState::Unknown => {
            let known = GroupState::ALL.iter().skip(1).map(|state| state.name()).collect::<Vec<_>>();
            Err(format!("there is no state \"{name}\"; use one of {}", known.join(", ")))
        }
        state => Ok(state),
    }
}

fn group_type(name: &str) -> Result<GroupType, String> {
    match GroupType::from_name(name) {
        GroupType::Unknown => {
            Err(format!("there is no type \"{name}\"; use one of Classic, Consumer, Share, Streams"))
        }
        kind => Ok(kind),
    }
}

/// Lists the groups of all brokers; fails after that if a broker did.
pub fn run(options: &ListOptions, admin: &Admin) -> Outcome {
    let filter = GroupFilter { states: options.state.clone(), types: options.group_type.clone() };
    let listings = admin.list_groups(&filter, call_timeout())?;
    let every = options.all || !options.group_type.is_empty();
    let groups: Vec<_> = listings.groups.iter().filter(|group| every || group.is_of_consumers()).collect();
    if options.long || options.json {
        let columns = &[
            ("GROUP", "group", 15),
            ("TYPE", "type", 10),
            ("PROTOCOL", "protocol", 10),
            ("STATE", "state", 0),
        ];
        let mut table = Table::new(columns);
        for group in groups {
            let (kind, state) = (group.group_type.name(), group.state.name());
            table.add([group.group_id.as_str(), kind, group.protocol_type.as_str(), state].map(Into::into));
        }
        table.print(options.json)?;
    } else {
        let mut out = io::stdout().lock();
        for group in groups {
            writeln!(out, "{}", group.group_id)?;
        }
    }
    finish(listing_failures(&listings))
}
