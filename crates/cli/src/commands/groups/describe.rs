//! `ottla groups describe` and `ottla groups members`.

use clap::Args;
use ottla::{Admin, BrokerDescription, GroupDescription, TopicPartition};
use serde_json::Value;

use super::{TableOptions, finish};
use crate::client_options::call_timeout;
use crate::commands::table::Table;
use crate::failure::Outcome;
use crate::standard_error::note;

/// Print the members of groups
#[derive(Args, Debug)]
pub struct MembersOptions {
    #[command(flatten)]
    pub table: TableOptions,

    /// Print the partitions of each member; JSON has them always
    #[arg(long, visible_alias = "verbose")]
    assignments: bool,
}

/// Describes groups, and returns the errors of those that can't be described.
pub fn described(admin: &Admin, groups: &[String]) -> Outcome<(Vec<GroupDescription>, Vec<String>)> {
    describe_with(groups, |names| admin.describe_groups(names, call_timeout()))
}

/// Describes groups with `call`, unless there are none. Returns the descriptions, and the errors of the other groups.
pub fn describe_with<D, C: IntoIterator<Item = (String, ottla::Result<D>)>>(
    groups: &[String],
    call: impl FnOnce(&[&str]) -> ottla::Result<C>,
) -> Outcome<(Vec<D>, Vec<String>)> {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    if groups.is_empty() {
        return Ok((found, failures));
    }
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    for (group, result) in call(&names)? {
        match result {
            Ok(description) => found.push(description),
            Err(error) => failures.push(format!("group \"{group}\": {error}")),
        }
    }
    Ok((found, failures))
}

/// Returns the address and ID of a coordinator, as Kafka's tools print them.
pub fn coordinator_text(coordinator: Option<&BrokerDescription>) -> Option<String> {
    coordinator.map(|node| format!("{}:{} ({})", node.host, node.port, node.id))
}

/// Runs `describe`.
pub fn run(options: &TableOptions, admin: &Admin) -> Outcome {
    let (groups, failures) = described(admin, &options.selection.resolve(admin)?)?;
    let mut table = Table::new(&[
        ("GROUP", "group", 15),
        ("COORDINATOR (ID)", "coordinator", 25),
        ("ASSIGNMENT-STRATEGY", "assignment_strategy", 20),
        ("STATE", "state", 20),
        ("#MEMBERS", "members", 0),
    ]);
    for group in groups {
        let coordinator = coordinator_text(group.coordinator.as_ref());
        table.add([
            group.group_id.into(),
            coordinator.into(),
            group.assignor.into(),
            group.state.name().into(),
            group.members.len().into(),
        ]);
    }
    table.print(options.json)?;
    finish(failures)
}

/// Runs `members`.
pub fn run_members(
    MembersOptions { table: options, assignments }: &MembersOptions,
    admin: &Admin,
) -> Outcome {
    let (groups, failures) = described(admin, &options.selection.resolve(admin)?)?;
    let columns = &[
        ("GROUP", "group", 15),
        ("CONSUMER-ID", "consumer_id", 15),
        ("HOST", "host", 15),
        ("CLIENT-ID", "client_id", 15),
        ("GROUP-INSTANCE-ID", "group_instance_id", 0),
        ("#PARTITIONS", "partitions", 0),
        ("ASSIGNMENT", "assignment", 0),
    ];
    let with_assignments = *assignments || options.json;
    let mut table = Table::new(if with_assignments { columns } else { &columns[..6] });
    for group in groups {
        if group.members.is_empty() && !options.json {
            note!("group \"{}\" has no active members", group.group_id);
        }
        for member in group.members {
            let mut row: Vec<Value> = vec![
                group.group_id.clone().into(),
                member.member_id.into(),
                member.host.into(),
                member.client_id.into(),
                member.instance_id.into(),
                member.assignment.len().into(),
            ];
            if with_assignments {
                row.push(assignment(&member.assignment).into());
            }
            table.add(row);
        }
    }
    table.print(options.json)?;
    finish(failures)
}

/// Formats partitions as Kafka's tool does: `orders:0,1;payments:2`.
pub fn assignment(partitions: &[TopicPartition]) -> String {
    let mut text = String::new();
    for topic in partitions.chunk_by(|one, next| one.topic == next.topic) {
        let numbers: Vec<String> = topic.iter().map(|key| key.partition.to_string()).collect();
        let separator = if text.is_empty() { "" } else { ";" };
        text.push_str(&format!("{separator}{}:{}", topic[0].topic, numbers.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignment_names_each_topic_once() {
        let partitions = [("a", 0), ("a", 2), ("b", 1)].map(TopicPartition::from);
        assert_eq!(assignment(&partitions), "a:0,2;b:1");
        assert_eq!(assignment(&[]), "");
    }
}
