//! `ottla broker --replay`: begins with the state that a file of `--record` ends with.
//!
//! The lines are read to the end before anything happens in the cluster: what was deleted later is not created at all.

use std::path::Path;

use ottla_embedded_broker::{Change, ChangedRecord, ConfiguredResource, EmbeddedCluster};
use ottla_sorted::SortedMap;
use serde_json::Value;

use super::recording::key_of;
use crate::commands::produce::draft::{Layout, Structured};
use crate::failure::{Failure, Outcome};

/// The largest number of records that are restored at once, so that the brokers answer meanwhile.
const AT_ONCE: usize = 1000;

/// A part of the state, with the number of the line that set it.
type Set<T> = (usize, T);
/// The committed offsets of a group, by topic and partition.
type Offsets = SortedMap<(String, i32), Set<Change>>;
/// Names and values.
type Settings = Vec<(String, String)>;

/// What a file ends with.
#[derive(Debug, Default)]
pub struct Replay {
    name: String,
    topics: SortedMap<String, Topic>,
    groups: SortedMap<String, Offsets>,
    /// Configurations of brokers, groups and client metrics.
    configs: SortedMap<(ConfiguredResource, String), Set<Settings>>,
}

#[derive(Debug, Default)]
struct Topic {
    line: usize,
    partitions: i32,
    configs: Settings,
    logs: SortedMap<i32, Log>,
}

#[derive(Debug, Default)]
struct Log {
    records: SortedMap<i64, Set<ChangedRecord>>,
    /// The offset after the last record.
    end: i64,
    /// The first offset that was not deleted, and the line.
    start: Option<Set<i64>>,
}

/// A line of JSON whose first field says what it does.
struct Line<'a> {
    number: usize,
    text: &'a str,
    value: Value,
}

impl Replay {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] with the number of the wrong line.
    pub fn read(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| Failure::Usage(format!("--replay {name} can't be read: {error}")))?;
        let mut replay = Self { name, ..Self::default() };
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            replay.add(index + 1, line).map_err(|error| replay.wrong(index + 1, &error))?;
        }
        Ok(replay)
    }

    fn wrong(&self, line: usize, error: &str) -> Failure {
        Failure::Usage(format!("--replay {}: line {line}: {error}", self.name))
    }

    fn add(&mut self, number: usize, line: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        if text.trim().is_empty() {
            return Ok(());
        }
        let value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let line = Line { number, text, value };
        if let Some(topic) = line.action("create", &["partitions", "config"])? {
            return self.create(&line, topic);
        }
        if let Some(topic) = line.action("delete", &[])? {
            self.topics.remove(topic).ok_or_else(|| unknown(topic))?;
            for offsets in self.groups.values_mut() {
                offsets.retain(|(name, _), _| name != topic);
            }
            return Ok(());
        }
        if let Some(topic) = line.action("add_partitions", &["partitions"])? {
            let partitions = line.partitions("partitions")?;
            let known = self.topics.get_mut(topic).ok_or_else(|| unknown(topic))?;
            if partitions <= known.partitions {
                return Err(format!("topic \"{topic}\" has {} partitions already", known.partitions));
            }
            (known.line, known.partitions) = (number, partitions);
            return Ok(());
        }
        if let Some(topic) = line.action("delete_records", &["partition", "before"])? {
            let (partition, before) = (line.partition()?, line.number("before")?);
            self.log(topic, partition)?.start = Some((number, before));
            return Ok(());
        }
        self.add_of_groups(&line)
    }

    /// Adds a line about groups or configurations, or a record.
    fn add_of_groups(&mut self, line: &Line<'_>) -> Result<(), String> {
        if let Some(group) = line.action("commit", &["topic", "partition", "offset", "metadata"])? {
            return self.commit(line, group);
        }
        if let Some(group) = line.action("delete_offset", &["topic", "partition"])? {
            let key = (line.string("topic")?.to_owned(), line.partition()?);
            let offsets = self.groups.get_mut(group);
            let removed = offsets.and_then(|offsets| offsets.remove(&key));
            return removed
                .map(drop)
                .ok_or_else(|| format!("group \"{group}\" has no offset of \"{}\" [{}]", key.0, key.1));
        }
        if let Some(group) = line.action("delete_group", &[])? {
            self.groups.remove(group);
            return Ok(());
        }
        for resource in [
            ConfiguredResource::Topic,
            ConfiguredResource::Broker,
            ConfiguredResource::Group,
            ConfiguredResource::ClientMetrics,
        ] {
            let Some(name) = line.action(key_of(resource), &["config"])? else { continue };
            let configs = line.configs()?;
            if resource == ConfiguredResource::Topic {
                let topic = self.topics.get_mut(name).ok_or_else(|| unknown(name))?;
                (topic.line, topic.configs) = (line.number, configs);
            } else {
                self.configs.insert((resource, name.to_owned()), (line.number, configs));
            }
            return Ok(());
        }
        self.add_record(line)
    }

    fn create(&mut self, line: &Line<'_>, topic: &str) -> Result<(), String> {
        if self.topics.contains_key(topic) {
            return Err(format!("topic \"{topic}\" was created before"));
        }
        let partitions = match line.value.get("partitions") {
            None => 1,
            Some(_) => line.partitions("partitions")?,
        };
        let created = Topic { line: line.number, partitions, configs: line.configs()?, ..Topic::default() };
        self.topics.insert(topic.to_owned(), created);
        Ok(())
    }

    fn commit(&mut self, line: &Line<'_>, group: &str) -> Result<(), String> {
        let (topic, partition) = (line.string("topic")?.to_owned(), line.partition()?);
        self.log(&topic, partition)?;
        let metadata = match line.value.get("metadata") {
            None | Some(Value::Null) => None,
            Some(_) => Some(line.string("metadata")?.to_owned()),
        };
        let offset = line.number("offset")?;
        let key = (topic.clone(), partition);
        let change = Change::OffsetCommitted { group: group.to_owned(), topic, partition, offset, metadata };
        self.groups.entry(group.to_owned()).or_default().insert(key, (line.number, change));
        Ok(())
    }

    /// Adds a line of `ottla consume -J`. Its topic need not have a line of its own.
    fn add_record(&mut self, line: &Line<'_>) -> Result<(), String> {
        let draft = Layout::Json(Structured::default()).read(line.text.as_bytes())?;
        let topic = draft.topic.as_deref().ok_or("it names neither an action nor a topic")?;
        let partition = draft.partition.unwrap_or(0);
        let known = self
            .topics
            .entry(topic.to_owned())
            .or_insert_with(|| Topic { line: line.number, ..Topic::default() });
        known.partitions = known.partitions.max(partition.saturating_add(1));
        let log = known.logs.entry(partition).or_default();
        let offset = match line.value.get("offset") {
            None | Some(Value::Null) => log.end,
            Some(_) => line.number("offset")?,
        };
        let owned = |bytes: Option<std::borrow::Cow<'_, [u8]>>| bytes.map(std::borrow::Cow::into_owned);
        let record = ChangedRecord {
            offset,
            timestamp: draft.timestamp.unwrap_or(-1),
            key: owned(draft.key),
            value: owned(draft.value),
            headers: draft
                .headers
                .into_iter()
                .map(|(name, value)| (name.into_owned(), owned(value)))
                .collect(),
        };
        log.end = log.end.max(offset.saturating_add(1));
        match log.records.insert(offset, (line.number, record)) {
            None => Ok(()),
            Some((before, _)) => Err(format!("line {before} has the same topic, partition and offset")),
        }
    }

    /// Returns a partition of a topic that exists.
    fn log(&mut self, topic: &str, partition: i32) -> Result<&mut Log, String> {
        let known = self.topics.get_mut(topic).ok_or_else(|| unknown(topic))?;
        if partition >= known.partitions {
            return Err(format!("topic \"{topic}\" has no partition {partition}"));
        }
        Ok(known.logs.entry(partition).or_default())
    }

    /// Creates the state in a cluster.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] with the number of the line that the cluster refuses.
    pub fn apply(&self, cluster: &EmbeddedCluster) -> Outcome {
        let restore = |line: usize, change: &Change| {
            cluster.control(|control| control.restore(change)).map_err(|error| self.wrong(line, &error))
        };
        for ((resource, name), (line, configs)) in &self.configs {
            let change =
                Change::ConfigsChanged { resource: *resource, name: name.clone(), configs: configs.clone() };
            restore(*line, &change)?;
        }
        for (name, topic) in &self.topics {
            restore(topic.line, &topic.created(name))?;
            for (partition, log) in &topic.logs {
                log.changes(name, *partition).try_for_each(|(line, change)| restore(line, &change))?;
            }
        }
        let offsets = self.groups.values().flat_map(SortedMap::values);
        offsets.into_iter().try_for_each(|(line, change)| restore(*line, change))
    }
}

impl Topic {
    fn created(&self, name: &str) -> Change {
        let (topic, partitions) = (name.to_owned(), self.partitions);
        Change::TopicCreated { topic, partitions, configs: self.configs.clone() }
    }
}

impl Log {
    /// Returns the changes that restore the partition, each with its line.
    fn changes<'a>(&'a self, topic: &'a str, partition: i32) -> impl Iterator<Item = (usize, Change)> + 'a {
        let all: Vec<&(usize, ChangedRecord)> = self.records.values().collect();
        let chunks: Vec<_> = all
            .chunks(AT_ONCE)
            .filter_map(|chunk| {
                let (line, _) = chunk.first()?;
                let records = chunk.iter().map(|(_, record)| record.clone()).collect();
                Some((*line, Change::RecordsAppended { topic: topic.to_owned(), partition, records }))
            })
            .collect();
        let deleted = self.start.map(|(line, before)| {
            (line, Change::RecordsDeleted { topic: topic.to_owned(), partition, before })
        });
        chunks.into_iter().chain(deleted)
    }
}

impl Line<'_> {
    /// Returns the name in field `action`, if the line has it. Error: it is not a string, or the line has fields besides it
    /// and `others`.
    fn action(&self, action: &str, others: &[&str]) -> Result<Option<&str>, String> {
        let Some(object) = self.value.as_object() else { return Err("it is not a JSON object".to_owned()) };
        if !object.contains_key(action) {
            return Ok(None);
        }
        match object.keys().find(|key| *key != action && !others.contains(&key.as_str())) {
            Some(unknown) => Err(format!("the field \"{unknown}\" is unknown in a line with \"{action}\"")),
            None => self.string(action).map(Some),
        }
    }

    fn string(&self, name: &str) -> Result<&str, String> {
        let value = self.value.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("{name} is not a string"))
    }

    fn number(&self, name: &str) -> Result<i64, String> {
        let number = self.value.get(name).and_then(Value::as_i64).filter(|number| *number >= 0);
        number.ok_or_else(|| format!("{name} is not a number from 0 on"))
    }

    fn partition(&self) -> Result<i32, String> {
        i32::try_from(self.number("partition")?).map_err(|_| "partition is too large".to_owned())
    }

    fn partitions(&self, name: &str) -> Result<i32, String> {
        match self.value.get(name).and_then(Value::as_i64) {
            Some(count @ 1..=100_000) => Ok(count as i32),
            _ => Err(format!("{name} is not a number from 1 to 100000")),
        }
    }

    fn configs(&self) -> Result<Vec<(String, String)>, String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match self.value.get("config") {
            None => Ok(Vec::new()),
            Some(Value::Object(configs)) => {
                Ok(configs.iter().map(|(name, value)| (name.clone(), text(value))).collect())
            }
            Some(_) => Err("config is not an object".to_owned()),
        }
    }
}

fn unknown(topic: &str) -> String {
    format!("topic \"{topic}\" does not exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(lines: &[&str]) -> Result<Replay, String> {
        let mut replay = Replay::default();
        for (index, line) in lines.iter().enumerate() {
            replay.add(index + 1, line.as_bytes()).map_err(|error| format!("line {}: {error}", index + 1))?;
        }
        Ok(replay)
    }

    const CREATE: &str = r#"{"create": "a", "partitions": 2}"#;

    #[test]
    fn last_state_counts_not_the_way_to_it() {
        let replay = replay(&[
            CREATE,
            r#"{"create": "b"}"#,
            r#"{"topic": "a", "partition": 1, "offset": 7, "payload": "late", "ts": 5}"#,
            r#"{"topic": "a", "partition": 1, "offset": 3, "payload": "early", "key": null, "ts": -1}"#,
            r#"{"commit": "g", "topic": "a", "partition": 1, "offset": 4, "metadata": null}"#,
            r#"{"commit": "g", "topic": "a", "partition": 1, "offset": 8, "metadata": "m"}"#,
            r#"{"commit": "g", "topic": "b", "partition": 0, "offset": 0}"#,
            r#"{"commit": "gone", "topic": "a", "partition": 0, "offset": 0}"#,
            r#"{"delete_group": "gone"}"#,
            r#"{"configure": "a", "config": {"retention.ms": 5}}"#,
            r#"{"add_partitions": "a", "partitions": 4}"#,
            r#"{"delete": "b"}"#,
            "",
        ])
        .unwrap();
        assert_eq!(replay.topics.keys().collect::<Vec<_>>(), ["a"]);
        let topic = &replay.topics.values().next().unwrap();
        assert_eq!(
            (topic.partitions, topic.configs.clone()),
            (4, vec![("retention.ms".to_owned(), "5".to_owned())])
        );
        let log = topic.logs.get(&1).unwrap();
        assert_eq!(log.records.keys().copied().collect::<Vec<_>>(), [3, 7]);
        let groups: Vec<_> =
            replay.groups.iter().map(|(name, offsets)| (name.as_str(), offsets.len())).collect();
        assert_eq!(groups, [("g", 1)]);
    }

    #[test]
    fn wrong_lines_are_named_with_their_number() {
        for (line, error) in [
            (r#"{"topic": "a", "part"#, "line 2: it is not JSON"),
            ("5", "it is not a JSON object"),
            (r#"{"create": "a"}"#, "was created before"),
            (r#"{"create": 5}"#, "create is not a string"),
            (r#"{"create": "b", "partitions": 0}"#, "from 1 to 100000"),
            (r#"{"create": "b", "replicas": 1}"#, "\"replicas\" is unknown"),
            (r#"{"delete": "b"}"#, "\"b\" does not exist"),
            (r#"{"add_partitions": "a", "partitions": 2}"#, "has 2 partitions already"),
            (r#"{"commit": "g", "topic": "a", "partition": 2, "offset": 0}"#, "has no partition 2"),
            (r#"{"commit": "g", "topic": "a", "partition": 0, "offset": -1}"#, "offset is not a number"),
            (r#"{"delete_offset": "g", "topic": "a", "partition": 0}"#, "has no offset"),
            (r#"{"payload": "x"}"#, "neither an action nor a topic"),
            (r#"{"topic": "a", "payload": "x", "payload_encoding": "hex"}"#, "it is not hexadecimal"),
        ] {
            let found = replay(&[CREATE, line]).unwrap_err();
            assert!(found.starts_with("line 2: ") && found.contains(error), "{line}: {found}");
        }
        let twice = r#"{"topic": "a", "offset": 5, "payload": "x"}"#;
        assert!(replay(&[CREATE, twice, twice]).unwrap_err().contains("line 3: line 2 has the same"));
        let mut damaged = Replay::default();
        assert!(damaged.add(1, b"{\"topic\": \"\xff\"}").unwrap_err().contains("not UTF-8"));
    }
}
