//! The topics that are copied to, and where each partition continues.

use ottla::{Admin, ErrorCode, ErrorKind, NewTopic, Offset, TopicPartition};
use ottla_sorted::SortedMap;

use super::CopyOptions;
use super::renaming::Renaming;
use super::session::Source;
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::consume::{matching_topics, partitions_of, stop_offsets};
use crate::events::EventWatch;
use crate::failure::{Failure, Outcome};
use crate::positions::{Range, Stop, parse_range};
use crate::standard_error::note;

/// A partition to copy.
#[derive(Clone, Debug)]
pub struct Part {
    /// The partition of the source.
    pub key: TopicPartition,
    /// The topic of the target.
    pub target: String,
    /// Where to start.
    pub start: Offset,
    /// The offset to stop before, if there is one.
    pub stop: Option<i64>,
}

impl Part {
    /// Returns the start as a text.
    pub fn start_text(&self) -> String {
        match self.start {
            Offset::At(offset) => format!("offset {offset}"),
            Offset::Beginning => "the beginning".to_owned(),
            Offset::End => "the end".to_owned(),
            Offset::Tail(count) => format!("{count} before the end"),
            Offset::Timestamp(ms) => crate::times::iso_time(ms),
            Offset::Committed => "the committed offset".to_owned(),
        }
    }
}

/// What is copied to where.
#[derive(Debug)]
pub struct Copy {
    /// The partitions.
    pub partitions: Vec<Part>,
    /// The time to stop at, in milliseconds since 1970.
    pub stop_ms: Option<i64>,
    /// What the progress of a topic is marked with: another source must not continue it.
    pub marks: SortedMap<String, String>,
}

impl Copy {
    /// Starts the partitions where an earlier copy has come to. `is_stable` waits for open transactions that may change that.
    ///
    /// # Errors
    ///
    /// The group has the progress of another source, or it can't be read.
    pub fn resume(&mut self, group: &str, admin: &Admin, is_stable: bool) -> Outcome {
        let options = ottla::AdminOptions::new(call_timeout()).require_stable_offsets(is_stable);
        let mut found = SortedMap::new();
        for (key, result) in admin.list_group_offsets(group, None, options)? {
            let Some(mark) = self.marks.get(&*key.topic) else { continue };
            let Some(offset) = result? else { continue };
            if offset.metadata != *mark {
                return Err(Failure::Usage(format!(
                    "group \"{group}\" has the progress of another copy to topic \"{}\": name another group with --group",
                    key.topic
                )));
            }
            found.insert(key, offset.offset);
        }
        for part in &mut self.partitions {
            if let Some(offset) = found.get(&TopicPartition::new(&*part.target, part.key.partition)) {
                part.start = Offset::At(*offset);
            }
        }
        Ok(())
    }
}

/// Finds the partitions, and creates missing topics of the target. For `--dry-run` it also reads the progress.
///
/// # Errors
///
/// The names are ambiguous, a topic of the target has too few partitions, or what [`Copy::resume`] says.
pub fn plan(
    options: &CopyOptions,
    source: &Source,
    target: &ClientOptions,
    renaming: &Renaming,
    topics: &[String],
) -> Outcome<Copy> {
    let range = range(options)?;
    let admin = source.consumer.admin();
    let names = matching_topics(&admin, topics)?;
    let (target_admin, _watch) = EventWatch::connect_admin(target)?;
    let cluster = |admin: &Admin| {
        Ok::<_, Failure>(admin.describe_cluster(call_timeout())?.cluster_id.unwrap_or_default())
    };
    let (source_id, target_id) = (cluster(&admin)?, cluster(&target_admin)?);
    let targets = renaming.targets(&names, source_id == target_id)?;
    let names: Vec<String> = targets.keys().cloned().collect();
    let keys = partitions_of(&admin, &names, &options.partition)?;
    let stops = stop_offsets(&admin, &keys, range.stop)?;
    let mut counts: SortedMap<&str, i32> = SortedMap::new();
    for key in partitions_of(&admin, &names, &[])?.iter().map(|key| (&*key.topic, key.partition + 1)) {
        if let Some((topic, _)) = targets.get_key_value(key.0) {
            let count = counts.entry(topic.as_str()).or_default();
            *count = (*count).max(key.1);
        }
    }
    for (topic, count) in &counts {
        if let Some(name) = targets.get(*topic) {
            ensure(options, &target_admin, name, *count)?;
        }
    }
    let marks: SortedMap<String, String> =
        targets.iter().map(|(from, to)| (to.clone(), format!("{source_id}/{from}"))).collect();
    let part = |key: TopicPartition| {
        let target = targets.get(&*key.topic).cloned().unwrap_or_default();
        Part { start: range.start, stop: stops.get(&key).copied().flatten(), target, key }
    };
    let stop_ms = match range.stop {
        Some(Stop::Time(ms)) => Some(ms),
        _ => None,
    };
    let mut copy = Copy { partitions: keys.into_iter().map(part).collect(), stop_ms, marks };
    if options.dry_run {
        copy.resume(&options.group, &target_admin, false)?;
    }
    Ok(copy)
}

fn range(options: &CopyOptions) -> Outcome<Range> {
    let mut range = parse_range(&options.offset, options.until.as_deref())?;
    if options.offset.iter().all(|text| text.starts_with("e@")) {
        range.start = Offset::Beginning;
    }
    if range.stop.is_none() && !options.follow {
        range.stop = Some(Stop::Tail(0));
    }
    Ok(range)
}

/// Creates a topic of the target that does not exist, and checks that its partitions suffice for the progress.
fn ensure(options: &CopyOptions, admin: &Admin, name: &str, count: i32) -> Outcome {
    let found =
        admin.metadata(Some(&[name]), call_timeout())?.topics.into_iter().find(|topic| topic.name == name);
    let is_missing = match found.as_ref().map(|topic| &topic.error) {
        Some(None) => false,
        Some(Some(error)) if error.kind() != ErrorKind::UnknownTopic => return Err(error.clone().into()),
        _ => true,
    };
    if is_missing {
        if options.dry_run {
            return Ok(());
        }
        if options.no_create {
            return Err(Failure::Failed(format!(
                "topic \"{name}\" does not exist in the target cluster (--no-create)"
            )));
        }
        for (_, result) in admin.create_topics(&[NewTopic::new(name, count, -1)], call_timeout())? {
            match result {
                Err(error) if error.kind() != ErrorKind::Broker(ErrorCode::TOPIC_ALREADY_EXISTS) => {
                    return Err(error.into());
                }
                _ if options.quiet => {}
                _ => note!("% created topic \"{name}\" with {count} partitions"),
            }
        }
        return Ok(());
    }
    let has = found.map_or(0, |topic| topic.partitions.len()) as i32;
    if has < count {
        return Err(Failure::Failed(format!(
            "topic \"{name}\" of the target cluster has {has} of the {count} partitions of its source: \
             `ottla topics alter {name} --partitions {count}` adds some"
        )));
    }
    Ok(())
}
