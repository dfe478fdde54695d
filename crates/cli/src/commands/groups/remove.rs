//! `ottla groups remove-members`.

use clap::{ArgGroup, Args};
use ottla::{Admin, MemberToRemove};
use ottla_sorted::SortedSet;

use super::finish;
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::table::Table;
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// Remove members from a group, as if they had left
///
/// A member that still runs joins again: stop it first. The other members get its partitions at once, and not only after
/// its session timeout.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("which").required(true).multiple(true).args(["instance", "member", "all"])))]
pub struct RemoveMembersOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// ID of the group
    #[arg(value_name = "GROUP", add = crate::completion::groups())]
    group: String,

    /// Remove the static member with this group.instance.id; can be repeated
    #[arg(long, value_name = "ID")]
    instance: Vec<String>,

    /// Remove the member with this member ID; can be repeated
    #[arg(long, value_name = "ID")]
    member: Vec<String>,

    /// Remove all members that the group has
    #[arg(long, conflicts_with_all = ["instance", "member"])]
    all: bool,

    /// The reason, which appears in the coordinator's log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Only print which members would be removed
    #[arg(long)]
    dry_run: bool,

    /// Print the results as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

impl RemoveMembersOptions {
    /// Returns the members that are named, each once.
    fn named(&self) -> Vec<MemberToRemove> {
        let distinct = |ids: &[String]| ids.iter().cloned().collect::<SortedSet<_>>();
        let instances = distinct(&self.instance).into_iter().map(MemberToRemove::Instance);
        instances.chain(distinct(&self.member).into_iter().map(MemberToRemove::Member)).collect()
    }
}

/// Runs `remove-members`.
pub fn run(options: &RemoveMembersOptions, admin: &Admin) -> Outcome {
    let reason = options.reason.as_deref();
    let results = if options.dry_run {
        dry_run(options, admin)?
    } else if options.all {
        let removed = admin.remove_all_members(&options.group, reason, call_timeout())?;
        removed
            .into_iter()
            .map(|(member, result)| (member, result.map_err(|error| error.to_string())))
            .collect()
    } else {
        let members = options.named();
        let removed = admin.remove_members(&options.group, &members, reason, call_timeout())?;
        let removed = removed.into_iter().map(|result| result.map_err(|error| error.to_string()));
        members.into_iter().zip(removed).collect()
    };
    print(options, results)
}

type Results = Vec<(MemberToRemove, Result<(), String>)>;

/// Returns the members that would be removed. A named member that the group does not have is an error.
fn dry_run(options: &RemoveMembersOptions, admin: &Admin) -> Outcome<Results> {
    let described = admin.describe_groups(&[&options.group], call_timeout())?;
    let Some((_, group)) = described.into_iter().next() else {
        return Err(Failure::Failed(format!("group \"{}\" is not described", options.group)));
    };
    let members = group?.members;
    if options.all {
        let all = members.into_iter().map(|member| match member.instance_id {
            Some(instance) => MemberToRemove::Instance(instance),
            None => MemberToRemove::Member(member.member_id),
        });
        return Ok(all.map(|member| (member, Ok(()))).collect());
    }
    let result = |named: MemberToRemove| {
        let is_member = members.iter().any(|member| match &named {
            MemberToRemove::Instance(id) => member.instance_id.as_ref() == Some(id),
            MemberToRemove::Member(id) => member.member_id == *id,
            _ => false,
        });
        let result = if is_member { Ok(()) } else { Err("the group has no such member".to_owned()) };
        (named, result)
    };
    Ok(options.named().into_iter().map(result).collect())
}

fn print(options: &RemoveMembersOptions, results: Results) -> Outcome {
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("GROUP-INSTANCE-ID", "group_instance_id", 20),
        ("CONSUMER-ID", "consumer_id", 15),
        ("STATUS", "status", 0),
    ]);
    if results.is_empty() && !options.json {
        note!("group \"{}\" has no active members", options.group);
    }
    let mut failures = Vec::new();
    for (member, result) in results {
        let (instance, id, name) = match member {
            MemberToRemove::Instance(id) => (Some(id.clone()), None, format!("instance \"{id}\"")),
            MemberToRemove::Member(id) => (None, Some(id.clone()), format!("member \"{id}\"")),
            _ => continue,
        };
        let status = match result {
            Ok(()) if options.dry_run => "would be removed".to_owned(),
            Ok(()) => "removed".to_owned(),
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                error
            }
        };
        table.add([options.group.as_str().into(), instance.into(), id.into(), status.into()]);
    }
    table.print(options.json)?;
    finish(failures)
}
