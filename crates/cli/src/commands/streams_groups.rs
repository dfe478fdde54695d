//! `ottla streams-groups`: lists, describes and deletes the groups of Kafka Streams applications (KIP-1071), with the output of
//! Kafka's kafka-streams-groups.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use ottla::admin::{StreamsGroupDescription, StreamsTask, StreamsTasks};
use ottla::streams::{StoredDescription, TopologyDescription, TopologyNode, TopologyNodeKind};
use ottla::{Admin, AdminOptions, GroupType};
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
    ottla streams-groups describe -b localhost:9092 --topology wordcount\n  \
    ottla streams-groups delete -b localhost:9092 --dry-run wordcount\n\n\
    A streams group has committed offsets as a consumer group has: `ottla groups reset-offsets` moves them, and\n\
    `ottla groups delete-offsets` deletes them.\n\n{EXIT_CODES}"))]
pub struct StreamsGroupsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

/// The options of `describe`.
#[derive(Args, Debug)]
struct StreamsDescribeOptions {
    #[command(flatten)]
    common: DescribeOptions,

    /// Print the nodes of the topology, which a plug-in of the brokers stores (KIP-1331)
    #[arg(long, conflicts_with_all = ["members", "offsets", "json"])]
    topology: bool,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the IDs of the streams groups
    List(ListOptions),
    /// Print the state of streams groups, their members and tasks, their committed offsets, or the nodes of their topologies
    Describe(StreamsDescribeOptions),
    /// Delete streams groups without members, with their committed offsets
    Delete(DeleteOptions),
}

/// Describes groups, and returns the errors of those that can't be described.
fn described(
    admin: &Admin,
    groups: &[String],
    options: AdminOptions,
) -> Outcome<(Vec<StreamsGroupDescription>, Vec<String>)> {
    describe_with(groups, |names| admin.describe_streams_groups(names, options))
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
        Action::Describe(options) => &options.common.client,
        Action::Delete(options) => &options.client,
    };
    let client = client.after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    match &options.action {
        Action::List(options) => typed_groups::list(options, &admin, KIND),
        Action::Describe(StreamsDescribeOptions { common, topology }) => {
            let included = AdminOptions::new(call_timeout()).topology_description(*topology);
            let found = described(&admin, &common.selection.resolve(&admin, KIND)?, included)?;
            match (topology, common.members, common.offsets) {
                (true, ..) => topologies(found),
                (_, true, _) => members(found, common),
                (.., true) => offsets(found, common, &admin),
                _ => typed_groups::describe(summaries(found), common),
            }
        }
        Action::Delete(options) => {
            let found = described(&admin, &options.selection.resolve(&admin, KIND)?, call_timeout().into())?;
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

/// Prints the stored descriptions of topologies.
fn topologies((groups, mut failures): (Vec<StreamsGroupDescription>, Vec<String>)) -> Outcome {
    let mut out = io::stdout().lock();
    for group in groups {
        let missing = match group.topology_description {
            StoredDescription::Available(description) => {
                write!(out, "{}:\n{}", group.group_id, topology_text(&description))?;
                continue;
            }
            StoredDescription::NotRequested => "the brokers are older than Kafka 4.4, which has them",
            StoredDescription::NotStored => {
                "none is stored; it needs group.streams.topology.description.plugin.class on the brokers, and a member that sends it"
            }
            _ => "the coordinator could not read it; look into its log",
        };
        failures.push(format!("description of the topology of group \"{}\": {missing}", group.group_id));
    }
    finish(failures)
}

/// Formats a topology as Kafka's tool does.
fn topology_text(description: &TopologyDescription) -> String {
    let mut text = "Topologies:\n".to_owned();
    for part in &description.subtopologies {
        text += &format!("   Sub-topology: {}\n", part.id);
        let nodes: Vec<&TopologyNode> = part.nodes.iter().collect();
        nodes.iter().for_each(|node| text += &node_text(node, &nodes));
    }
    for (number, store) in (description.subtopologies.len()..).zip(&description.global_stores) {
        text += &format!("   Sub-topology: {number} for global store (will not generate tasks)\n");
        let nodes = [&store.source, &store.processor];
        nodes.iter().for_each(|node| text += &node_text(node, &nodes));
    }
    text
}

/// Formats a node with its neighbours among `nodes`.
fn node_text(node: &TopologyNode, nodes: &[&TopologyNode]) -> String {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names.join(", ")
    };
    let neighbours = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => sorted(names),
    };
    let before = nodes.iter().filter(|other| other.successors.contains(&node.name));
    let before = neighbours(&before.map(|other| other.name.clone()).collect::<Vec<_>>());
    let (name, after) = (&node.name, neighbours(&node.successors));
    match &node.kind {
        TopologyNodeKind::Source { topics } => {
            format!("    Source: {name} (topics: [{}])\n      --> {after}\n", sorted(topics))
        }
        TopologyNodeKind::Processor { stores } => format!(
            "    Processor: {name} (stores: [{}])\n      --> {after}\n      <-- {before}\n",
            sorted(stores)
        ),
        TopologyNodeKind::Sink { topic } => format!(
            "    Sink: {name} (topic: {})\n      <-- {before}\n",
            topic.as_deref().unwrap_or("chosen by each record")
        ),
    }
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
    use ottla::streams::{GlobalStore, SubtopologyDescription};

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

    #[test]
    fn topology_is_printed_with_the_neighbours_of_each_node() {
        let node = |name: &str, kind, next: &[&str]| TopologyNode {
            name: name.to_owned(),
            kind,
            successors: next.iter().map(|name| (*name).to_owned()).collect(),
        };
        let source = |topic: &str| TopologyNodeKind::Source { topics: vec![topic.to_owned()] };
        let processor = || TopologyNodeKind::Processor { stores: vec!["counts".to_owned()] };
        let sink = TopologyNodeKind::Sink { topic: Some("out".to_owned()) };
        let nodes = vec![
            node("in", source("lines"), &["count"]),
            node("count", processor(), &["out"]),
            node("out", sink, &[]),
        ];
        let description = TopologyDescription {
            subtopologies: vec![SubtopologyDescription { id: "0".to_owned(), nodes }],
            global_stores: vec![GlobalStore {
                source: node("pages", source("pages"), &["keep"]),
                processor: node("keep", processor(), &[]),
            }],
        };
        let expected = "Topologies:\n   Sub-topology: 0\n    Source: in (topics: [lines])\n      --> count\n    \
            Processor: count (stores: [counts])\n      --> out\n      <-- in\n    \
            Sink: out (topic: out)\n      <-- count\n   \
            Sub-topology: 1 for global store (will not generate tasks)\n    \
            Source: pages (topics: [pages])\n      --> keep\n    \
            Processor: keep (stores: [counts])\n      --> none\n      <-- pages\n";
        assert_eq!(topology_text(&description), expected);
    }
}
