//! The partitions of topics and patterns, and the offset at which each of them ends.

use ottla::{Admin, ErrorKind, OffsetSpec, TopicDescription, TopicPartition};
use ottla_sorted::{SortedMap, SortedSet};
use regex_automata::meta::Regex;

use crate::client_options::call_timeout;
use crate::failure::{Failure, Outcome};
use crate::partition_list::{PartitionList, contain, first_missing};
use crate::positions::Stop;

/// Returns the names of the topics: those that are named, and those that match a pattern, each once. A pattern matches a topic
/// whose name begins with `__` only if it begins with `^__`.
///
/// # Errors
///
/// [`Failure::Usage`] if a pattern is wrong, [`Failure::Failed`] if no topic matches it.
pub fn matching_topics(admin: &Admin, topics: &[String]) -> Outcome<Vec<String>> {
    let mut names: SortedSet<String> =
        topics.iter().filter(|topic| !topic.starts_with('^')).cloned().collect();
    let patterns: Vec<&String> = topics.iter().filter(|topic| topic.starts_with('^')).collect();
    if patterns.is_empty() {
        return Ok(names.into_iter().collect());
    }
    let existing = admin.list_topics(call_timeout())?;
    for pattern in patterns {
        let regex = Regex::new(pattern).map_err(|error| {
            Failure::Usage(format!("-t {pattern}: it is not a regular expression: {error}"))
        })?;
        let matches = existing.iter().filter(|name| {
            (!name.starts_with("__") || pattern.starts_with("^__")) && regex.is_match(name.as_bytes())
        });
        let before = names.len();
        names.extend(matches.cloned());
        if names.len() == before && !existing.iter().any(|name| regex.is_match(name.as_bytes())) {
            return Err(Failure::Failed(format!(
                "no topic matches {pattern}; `ottla topics list` prints all topics"
            )));
        }
    }
    Ok(names.into_iter().collect())
}

/// Returns the requested partitions of the topics, or all of them.
///
/// # Errors
///
/// A topic or partition does not exist.
pub fn partitions_of(
    admin: &Admin,
    topics: &[String],
    requested: &[PartitionList],
) -> Outcome<Vec<TopicPartition>> {
    let names = matching_topics(admin, topics)?;
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut partitions = Vec::new();
    for topic in admin.metadata(Some(&named), call_timeout())?.topics {
        let count = count_of(&topic)?;
        if let Some(missing) = first_missing(requested, count) {
            return Err(Failure::Failed(format!(
                "-p {missing}: topic \"{}\" has {count} partitions, numbered from 0",
                topic.name
            )));
        }
        let chosen = (0..count).filter(|partition| contain(requested, *partition));
        partitions.extend(chosen.map(|partition| TopicPartition::new(&*topic.name, partition)));
    }
    if partitions.is_empty() {
        return Err(Failure::Failed("the metadata response has no partition of the topics".to_owned()));
    }
    Ok(partitions)
}

fn count_of(topic: &TopicDescription) -> Outcome<i32> {
    match &topic.error {
        Some(error) if error.kind() == ErrorKind::UnknownTopic => Err(Failure::Failed(format!(
            "topic \"{0}\" does not exist; `ottla topics list` prints all topics, `ottla topics create {0}` creates it",
            topic.name
        ))),
        Some(error) => Err(error.clone().into()),
        None => Ok(topic.partitions.len() as i32),
    }
}

/// Returns the offset before which each partition ends; `None` if it has no such offset.
///
/// # Errors
///
/// The end of a partition can't be looked up.
pub fn stop_offsets(
    admin: &Admin,
    partitions: &[TopicPartition],
    stop: Option<Stop>,
) -> Outcome<SortedMap<TopicPartition, Option<i64>>> {
    let back = match stop {
        Some(Stop::Tail(back)) => back,
        Some(Stop::Offset(offset)) => {
            return Ok(partitions.iter().map(|key| (key.clone(), Some(offset))).collect());
        }
        Some(Stop::Time(_)) | None => return Ok(partitions.iter().map(|key| (key.clone(), None)).collect()),
    };
    let questions: Vec<_> =
        partitions.iter().map(|key| (&*key.topic, key.partition, OffsetSpec::Latest)).collect();
    let mut stops = SortedMap::new();
    for (key, listed) in partitions.iter().zip(admin.list_offsets(&questions, call_timeout())?) {
        let end = listed.map_err(|error| error.with_partition(&*key.topic, key.partition))?.offset;
        stops.insert(key.clone(), end.map(|end| (end - back).max(0)));
    }
    Ok(stops)
}
