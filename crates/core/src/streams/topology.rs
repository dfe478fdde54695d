//! The description of a topology, by which the coordinator computes tasks and internal topics.

use std::collections::BTreeMap;

use ottla_protocol::generated::streams_group_heartbeat::request;
use ottla_sorted::SortedSet;

use crate::error::{Error, ErrorKind};

/// What an application processes, as parts whose tasks the coordinator assigns independently (KIP-1071). All members of a
/// group have the same topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The epoch of the topology. Members with an earlier one than the group's get no tasks. Kafka 4.4 takes no other topology
    /// while the group exists.
    pub epoch: i32,
    /// The parts.
    pub subtopologies: Vec<Subtopology>,
}

/// A part of a topology. It has one task for each partition number of the topics that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtopology {
    /// The ID, unique in the topology.
    pub id: String,
    /// The topics that it reads, which must exist.
    pub source_topics: Vec<String>,
    /// Regular expressions of further topics that it reads. Kafka 4.4 has not implemented them.
    pub source_topic_regex: Vec<String>,
    /// The changelogs of its state. The coordinator creates them, with one partition per task.
    pub changelog_topics: Vec<InternalTopic>,
    /// The repartition topics that it writes to.
    pub repartition_sink_topics: Vec<String>,
    /// The repartition topics that it reads. The coordinator creates them.
    pub repartition_source_topics: Vec<InternalTopic>,
    /// Topics that must have the same number of partitions, because their records are joined.
    pub copartition_groups: Vec<CopartitionGroup>,
}

/// A topic that the coordinator creates for the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InternalTopic {
    /// The name.
    pub name: String,
    /// The number of partitions; `None` if it follows from other topics, as that of a changelog does.
    pub partitions: Option<i32>,
    /// The replication factor; `None` for the brokers' default.
    pub replication_factor: Option<i16>,
    /// The topic's configuration.
    pub configs: BTreeMap<String, String>,
}

/// Topics of a subtopology that must have the same number of partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopartitionGroup {
    /// Some of [`Subtopology::source_topics`].
    pub source_topics: Vec<String>,
    /// Some of [`Subtopology::source_topic_regex`].
    pub source_topic_regex: Vec<String>,
    /// Names of some of [`Subtopology::repartition_source_topics`].
    pub repartition_source_topics: Vec<String>,
}

impl Topology {
    /// Checks what the coordinator would refuse.
    ///
    /// # Errors
    ///
    /// There is no subtopology, an ID or a name is empty or occurs twice, a number is not positive, a changelog has a number
    /// of partitions, or a copartition group names a topic that the subtopology does not read.
    pub fn check(&self) -> Result<(), Error> {
        let mut ids = SortedSet::new();
        if self.epoch < 0 {
            return Err(invalid(format!("the topology's epoch is {}; it must not be negative", self.epoch)));
        }
        if self.subtopologies.is_empty() {
            return Err(invalid("the topology has no subtopology".to_owned()));
        }
        for part in &self.subtopologies {
            if part.id.is_empty() || !ids.insert(part.id.as_str()) {
                return Err(invalid(format!("subtopology ID \"{}\" is empty or not unique", part.id)));
            }
            part.check().map_err(|problem| invalid(format!("subtopology \"{}\" {problem}", part.id)))?;
        }
        Ok(())
    }

    /// Returns true if there is a subtopology of this ID.
    pub(super) fn has(&self, subtopology_id: &str) -> bool {
        self.subtopologies.iter().any(|part| part.id == subtopology_id)
    }

    pub(super) fn to_request(&self) -> request::Topology {
        let subtopologies = self.subtopologies.iter().map(Subtopology::to_request).collect();
        request::Topology { epoch: self.epoch, subtopologies }
    }
}

impl Subtopology {
    fn check(&self) -> Result<(), String> {
        let internal = || self.changelog_topics.iter().chain(&self.repartition_source_topics);
        let names =
            self.source_topics.iter().chain(&self.source_topic_regex).chain(&self.repartition_sink_topics);
        if names.chain(internal().map(|topic| &topic.name)).any(String::is_empty) {
            return Err("has a topic without a name".to_owned());
        }
        let is_source = !self.source_topics.is_empty() || !self.source_topic_regex.is_empty();
        if !is_source && self.repartition_source_topics.is_empty() {
            return Err("reads no topic".to_owned());
        }
        if let Some(topic) = self.changelog_topics.iter().find(|topic| topic.partitions.is_some()) {
            return Err(format!(
                "sets the number of partitions of changelog \"{}\", which has one per task",
                topic.name
            ));
        }
        let is_wrong = |topic: &&InternalTopic| {
            topic.partitions.is_some_and(|count| count < 1)
                || topic.replication_factor.is_some_and(|count| count < 1)
        };
        if let Some(topic) = internal().find(is_wrong) {
            return Err(format!(
                "has topic \"{}\" whose number of partitions or replicas is below 1",
                topic.name
            ));
        }
        self.copartition_groups.iter().try_for_each(|group| self.copartition_request(group).map(drop))
    }

    fn copartition_request(&self, group: &CopartitionGroup) -> Result<request::CopartitionGroup, String> {
        let repartition: Vec<&str> =
            self.repartition_source_topics.iter().map(|topic| topic.name.as_str()).collect();
        Ok(request::CopartitionGroup {
            source_topics: positions(&group.source_topics, &texts(&self.source_topics))?,
            source_topic_regex: positions(&group.source_topic_regex, &texts(&self.source_topic_regex))?,
            repartition_source_topics: positions(&group.repartition_source_topics, &repartition)?,
        })
    }

    fn to_request(&self) -> request::Subtopology {
        let groups = self.copartition_groups.iter();
        request::Subtopology {
            subtopology_id: self.id.clone(),
            source_topics: self.source_topics.clone(),
            source_topic_regex: self.source_topic_regex.clone(),
            state_changelog_topics: self.changelog_topics.iter().map(InternalTopic::to_changelog).collect(),
            repartition_sink_topics: self.repartition_sink_topics.clone(),
            repartition_source_topics: self
                .repartition_source_topics
                .iter()
                .map(InternalTopic::to_source)
                .collect(),
            copartition_groups: groups.filter_map(|group| self.copartition_request(group).ok()).collect(),
        }
    }
}

impl InternalTopic {
    fn configs(&self) -> impl Iterator<Item = request::TopicConfig> {
        let pair = |(key, value): (&String, &String)| request::TopicConfig {
            key: key.clone(),
            value: value.clone(),
        };
        self.configs.iter().map(pair)
    }

    fn to_changelog(&self) -> request::StateChangelogTopic {
        request::StateChangelogTopic {
            name: self.name.clone(),
            partitions: self.partitions.unwrap_or(0),
            replication_factor: self.replication_factor.unwrap_or(0),
            topic_configs: self.configs().collect(),
        }
    }

    fn to_source(&self) -> request::RepartitionSourceTopic {
        request::RepartitionSourceTopic {
            name: self.name.clone(),
            partitions: self.partitions.unwrap_or(0),
            replication_factor: self.replication_factor.unwrap_or(0),
            topic_configs: self.configs().collect(),
        }
    }
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Returns where the names of a copartition group stand in the subtopology.
fn positions(names: &[String], of: &[&str]) -> Result<Vec<i16>, String> {
    let position = |name: &String| {
        let at = of.iter().position(|known| known == name).and_then(|at| i16::try_from(at).ok());
        at.ok_or_else(|| format!("has a copartition group with \"{name}\", which it does not read"))
    };
    names.iter().map(position).collect()
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str) -> Subtopology {
        Subtopology { id: id.to_owned(), source_topics: vec!["in".to_owned()], ..Subtopology::default() }
    }

    fn problem(subtopologies: Vec<Subtopology>) -> String {
        let error = Topology { epoch: 0, subtopologies }.check().expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    }

    #[test]
    fn wrong_topologies_are_refused_with_their_reason() {
        assert!(problem(vec![]).contains("no subtopology"));
        assert!(problem(vec![part("a"), part("a")]).contains("\"a\" is empty or not unique"));
        assert!(problem(vec![part("")]).contains("\"\" is empty"));
        assert!(problem(vec![Subtopology { source_topics: vec![], ..part("a") }]).contains("reads no topic"));
        assert!(
            problem(vec![Subtopology { source_topics: vec![String::new()], ..part("a") }])
                .contains("without a name")
        );
        let topic = InternalTopic { name: "t".to_owned(), partitions: Some(3), ..InternalTopic::default() };
        let changelog = Subtopology { changelog_topics: vec![topic.clone()], ..part("a") };
        assert!(problem(vec![changelog]).contains("one per task"));
        let none = InternalTopic { partitions: Some(0), ..topic };
        let empty = Subtopology { repartition_source_topics: vec![none], ..part("a") };
        assert!(problem(vec![empty]).contains("below 1"));
        let group =
            CopartitionGroup { source_topics: vec!["other".to_owned()], ..CopartitionGroup::default() };
        let joined = Subtopology { copartition_groups: vec![group], ..part("a") };
        assert!(problem(vec![joined]).contains("\"other\", which it does not read"));
        let error =
            Topology { epoch: -1, subtopologies: vec![part("a")] }.check().expect_err("it is refused");
        assert!(error.to_string().contains("must not be negative"));
    }

    #[test]
    fn copartition_groups_are_sent_as_positions() {
        let group = CopartitionGroup {
            source_topics: vec!["b".to_owned()],
            repartition_source_topics: vec!["r".to_owned()],
            ..CopartitionGroup::default()
        };
        let part = Subtopology {
            source_topics: vec!["a".to_owned(), "b".to_owned()],
            repartition_source_topics: vec![InternalTopic {
                name: "r".to_owned(),
                ..InternalTopic::default()
            }],
            copartition_groups: vec![group],
            ..part("x")
        };
        let topology = Topology { epoch: 3, subtopologies: vec![part] };
        topology.check().expect("it is right");
        let request = topology.to_request();
        let group = &request.subtopologies[0].copartition_groups[0];
        assert_eq!(
            (request.epoch, &*group.source_topics, &*group.repartition_source_topics),
            (3, &[1][..], &[0][..])
        );
    }
}
