//! `ottla broker --seed-topics`: topics and records that are there at the start.

use std::path::Path;
use std::time::Duration;

use ottla::{Admin, Config, ErrorCode, ErrorKind, NewTopic, Producer, SendError};
use ottla_sorted::SortedMap;
use serde_json::Value;

use crate::client_options::call_timeout;
use crate::commands::produce::draft::{Draft, Layout, Structured};
use crate::failure::{Failure, Outcome};

/// The time for the delivery of all records.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// A topic to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Topic {
    partitions: Option<i32>,
    config: Vec<(String, String)>,
}

/// The topics and records of a file.
#[derive(Debug, Default)]
pub struct Seed {
    topics: SortedMap<String, Topic>,
    records: Vec<(usize, Draft<'static>)>,
    name: String,
}

impl Seed {
    /// Reads a file: lines of `ottla consume -J`, and lines that create topics:
    /// `{"create": "orders", "partitions": 3, "config": {"retention.ms": "60000"}}`.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] with the number of the wrong line.
    pub fn read(path: &Path) -> Outcome<Seed> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("--seed-topics {name} can't be read: {error}")))?;
        let mut seed = Seed { name, ..Seed::default() };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |error: String| {
                Failure::Usage(format!("--seed-topics {}: line {}: {error}", path.display(), index + 1))
            };
            seed.add(index + 1, line).map_err(wrong)?;
        }
        Ok(seed)
    }

    fn add(&mut self, number: usize, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
        if let Some(name) = value.get("create") {
            let name = name.as_str().ok_or("create is not the name of a topic")?;
            self.topics.insert(name.to_owned(), topic(&value)?);
            return Ok(());
        }
        let draft = Layout::Json(Structured::default()).read(line.as_bytes())?;
        let topic = draft.topic.as_deref().ok_or("it names no topic")?.to_owned();
        let least = draft.partition.unwrap_or(0) + 1;
        let known = self.topics.entry(topic).or_default();
        known.partitions = Some(known.partitions.unwrap_or(1).max(least));
        self.records.push((number, owned(draft)));
        Ok(())
    }

    /// Creates the topics and sends the records, with the properties of a client.
    ///
    /// # Errors
    ///
    /// A topic or record is refused.
    pub fn sow(&self, properties: &str, replicas: i16) -> Outcome {
        let mut config = Config::new();
        config.load("the properties for clients", properties)?;
        let admin = Admin::new(&config)?;
        let new = |(name, topic): (&String, &Topic)| {
            let new = NewTopic::new(name, topic.partitions.unwrap_or(-1), replicas);
            topic.config.iter().fold(new, |new, (name, value)| new.config(name, value))
        };
        let topics: Vec<NewTopic> = self.topics.iter().map(new).collect();
        for (_, result) in admin.create_topics(&topics, call_timeout())? {
            if let Err(error) = result
                && error.kind() != ErrorKind::Broker(ErrorCode::TOPIC_ALREADY_EXISTS)
            {
                return Err(Failure::Usage(format!("--seed-topics {}: {error}", self.name)));
            }
        }
        let producer = Producer::new(&config)?;
        for (number, draft) in &self.records {
            self.send(&producer, *number, draft)?;
        }
        producer.flush(FLUSH_TIMEOUT)?;
        Ok(producer.close(FLUSH_TIMEOUT)?)
    }

    fn send(&self, producer: &Producer, number: usize, draft: &Draft<'_>) -> Outcome {
        let topic = producer.topic(draft.topic.as_deref().unwrap_or_default());
        match topic.send_blocking(draft.record(false), FLUSH_TIMEOUT) {
            Ok(()) => Ok(()),
            Err(SendError::QueueFull) => {
                Err(Failure::Failed("the brokers do not accept the records".to_owned()))
            }
            Err(error) => Err(Failure::Usage(format!("--seed-topics {}: line {number}: {error}", self.name))),
        }
    }
}

fn topic(value: &Value) -> Result<Topic, String> {
    let partitions = match value.get("partitions") {
        None => None,
        Some(count) => match count.as_i64() {
            Some(count @ 1..=100_000) => Some(count as i32),
            _ => return Err("partitions is not a number from 1 to 100000".to_owned()),
        },
    };
    let config = match value.get("config") {
        None => Vec::new(),
        Some(Value::Object(config)) => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            config.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        }
        Some(_) => return Err("config is not an object".to_owned()),
    };
    let known = ["create", "partitions", "config"];
    match value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys())
        .find(|key| !known.contains(&key.as_str()))
    {
        Some(unknown) => {
            Err(format!("the field \"{unknown}\" is unknown; possible are create, partitions and config"))
        }
        None => Ok(Topic { partitions, config }),
    }
}

fn owned(draft: Draft<'_>) -> Draft<'static> {
    let bytes = |bytes: std::borrow::Cow<'_, [u8]>| bytes.into_owned().into();
    Draft {
        topic: draft.topic.map(|topic| topic.into_owned().into()),
        partition: draft.partition,
        timestamp: draft.timestamp,
        key: draft.key.map(bytes),
        value: draft.value.map(bytes),
        headers: draft.headers.into_iter().map(|(name, value)| (bytes(name), value.map(bytes))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_create_topics_or_are_records_of_consume() {
        let mut seed = Seed::default();
        seed.add(1, r#"{"create": "a", "partitions": 3, "config": {"retention.ms": 60000}}"#).unwrap();
        seed.add(2, r#"{"topic": "b", "partition": 1, "payload": "x", "ts": 5}"#).unwrap();
        let config = vec![("retention.ms".to_owned(), "60000".to_owned())];
        assert_eq!(seed.topics.get("a"), Some(&Topic { partitions: Some(3), config }));
        assert_eq!(seed.topics.get("b").and_then(|topic| topic.partitions), Some(2));
        for (line, error) in [
            ("x", "not JSON"),
            (r#"{"create": 1}"#, "not the name"),
            (r#"{"create": "a", "partitions": 0}"#, "from 1 to"),
            (r#"{"create": "a", "replicas": 1}"#, "\"replicas\" is unknown"),
            (r#"{"payload": "x"}"#, "names no topic"),
        ] {
            assert!(seed.add(3, line).unwrap_err().contains(error), "{line}");
        }
    }
}
