//! The topics of a topology: the number of its tasks, and the internal topics that are missing.

use ottla_protocol::generated::streams_group_heartbeat::{request, response};
use ottla_sorted::{SortedMap, SortedSet};

use super::tasks::{Task, by_subtopology};
use crate::topics::Topics;

/// What a topology needs of the cluster's topics.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    /// The number of tasks of each subtopology; `None` while topics are missing.
    pub tasks: Option<SortedMap<String, i32>>,
    /// The internal topics that do not exist.
    pub missing: Vec<MissingTopic>,
    /// A status code and its text.
    problem: Option<(i8, String)>,
}

/// An internal topic that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingTopic {
    pub name: String,
    pub partitions: i32,
    /// -1 for the default.
    pub replication_factor: i16,
    pub configs: SortedMap<String, String>,
}

/// The codes of statuses.
const MISSING_SOURCES: i8 = 1;
const WRONGLY_PARTITIONED: i8 = 2;
const MISSING_INTERNAL: i8 = 3;

impl Ready {
    /// Returns what members are told.
    pub fn status(&self) -> Vec<response::Status> {
        let problem = self.problem.clone().into_iter();
        problem.map(|(status_code, status_detail)| response::Status { status_code, status_detail }).collect()
    }

    fn not_yet(code: i8, detail: String) -> Self {
        Self { tasks: None, missing: Vec::new(), problem: Some((code, detail)) }
    }
}

/// Looks up the topics of a topology. A repartition topic without a number of partitions has as many as its subtopology's other
/// topics, or the most of those that write to it.
pub(super) fn configure(topology: &request::Topology, topics: &Topics) -> Ready {
    let existing = |name: &str| {
        let topic = topics.by_name(name).and_then(|index| topics.get(index));
        topic.map(|topic| i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX))
    };
    let sources = topology.subtopologies.iter().flat_map(|part| &part.source_topics);
    let missing: Vec<&str> = sources.filter(|name| existing(name).is_none()).map(String::as_str).collect();
    if !missing.is_empty() {
        let detail = format!("Source topics {} are missing.", missing.join(", "));
        return Ready::not_yet(MISSING_SOURCES, detail);
    }
    if let Some(detail) = wrongly_partitioned(topology, &existing) {
        return Ready::not_yet(WRONGLY_PARTITIONED, detail);
    }
    let counts = counts_of(topology, &existing);
    let mut missing = Vec::new();
    for part in &topology.subtopologies {
        let count = counts.get(&part.subtopology_id).copied().unwrap_or(0).max(1);
        let changelogs = part
            .state_changelog_topics
            .iter()
            .map(|it| (&it.name, 0, it.replication_factor, &it.topic_configs));
        let sources = part.repartition_source_topics.iter();
        let sources = sources.map(|it| (&it.name, it.partitions, it.replication_factor, &it.topic_configs));
        for (name, partitions, replicas, configs) in changelogs.chain(sources) {
            if existing(name).is_none() {
                missing.push(MissingTopic {
                    name: name.clone(),
                    partitions: if partitions > 0 { partitions } else { count },
                    replication_factor: if replicas > 0 { replicas } else { -1 },
                    configs: configs
                        .iter()
                        .map(|config| (config.key.clone(), config.value.clone()))
                        .collect(),
                });
            }
        }
    }
    if missing.is_empty() {
        return Ready { tasks: Some(counts), missing, problem: None };
    }
    let names: Vec<&str> = missing.iter().map(|topic| topic.name.as_str()).collect();
    let detail = format!("Internal topics are missing: [{}]", names.join(", "));
    Ready { tasks: None, missing, problem: Some((MISSING_INTERNAL, detail)) }
}

/// Returns the number of tasks of each subtopology: the most partitions of a topic that it reads. Subtopologies that read what others
/// write are looked at again until nothing changes.
fn counts_of(
    topology: &request::Topology,
    existing: &impl Fn(&str) -> Option<i32>,
) -> SortedMap<String, i32> {
    let mut writers: SortedMap<&str, Vec<&str>> = SortedMap::new();
    for part in &topology.subtopologies {
        for topic in &part.repartition_sink_topics {
            writers.entry(topic).or_default().push(&part.subtopology_id);
        }
    }
    let mut counts: SortedMap<String, i32> = SortedMap::new();
    loop {
        let before = counts.clone();
        for part in &topology.subtopologies {
            let of_sources = part.source_topics.iter().filter_map(|name| existing(name));
            let of_repartition = part.repartition_source_topics.iter().map(|topic| {
                let of_writer = |writer: &&str| counts.get(*writer).copied();
                let written = writers.get(&*topic.name).into_iter().flatten().filter_map(of_writer).max();
                let fixed = Some(topic.partitions).filter(|count| *count > 0);
                existing(&topic.name).or(fixed).or(written).unwrap_or(0)
            });
            let count = of_sources.chain(of_repartition).max().unwrap_or(0);
            counts.insert(part.subtopology_id.clone(), count);
        }
        // A count only grows, up to the largest of a topic that exists or has a number.
        if counts == before {
            return counts;
        }
    }
}

fn wrongly_partitioned(
    topology: &request::Topology,
    existing: &impl Fn(&str) -> Option<i32>,
) -> Option<String> {
    topology.subtopologies.iter().find_map(|part| {
        part.copartition_groups.iter().find_map(|group| {
            let at = |index: &i16| part.source_topics.get(usize::try_from(*index).ok()?);
            let names: Vec<&String> = group.source_topics.iter().filter_map(at).collect();
            let counts: SortedSet<i32> = names.iter().filter_map(|name| existing(name)).collect();
            (counts.len() > 1)
                .then(|| format!("Following topics do not have the same number of partitions: {names:?}"))
        })
    })
}

/// Returns the partitions that tasks read, by topic.
pub(super) fn sources(topology: &request::Topology, tasks: &SortedSet<Task>) -> SortedMap<String, Vec<i32>> {
    let mut found: SortedMap<String, Vec<i32>> = SortedMap::new();
    for (id, partitions) in by_subtopology(tasks) {
        let part = topology.subtopologies.iter().find(|part| part.subtopology_id == id);
        for part in part.iter() {
            let internal = part.repartition_source_topics.iter().map(|topic| &topic.name);
            for name in part.source_topics.iter().chain(internal) {
                found.insert(name.clone(), partitions.clone());
            }
        }
    }
    found
}
