//! The last messages of a topic or partition.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ottla::{Config, Consumer, ConsumerEvent, MessageRef, Offset, TopicPartition};
use ottla_sorted::SortedMap;

use crate::events::describe;
use crate::top::figures::clean;

/// The number of messages that are shown.
const COUNT: usize = 100;
/// The most bytes of a key or value that are shown.
const MOST_BYTES: usize = 2000;
/// The number of bytes that a partition may send at once.
const FETCH_BYTES: &str = "262144";
/// The time after which what was read so far is shown.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where messages come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition; `None` for all of the topic.
    pub partition: Option<i32>,
}

/// A message as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The key, or nothing.
    pub key: String,
    /// The value, or nothing.
    pub value: String,
}

/// The messages of a source.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Where they come from; `None` before the first were requested.
    pub source: Option<Source>,
    /// The messages.
    pub lines: Vec<Line>,
    /// Whether they are being read.
    pub is_awaited: bool,
    /// Why some are missing.
    pub failure: Option<String>,
}

impl Messages {
    /// Messages that are being read.
    pub fn awaited(source: Source) -> Messages {
        Messages { source: Some(source), is_awaited: true, ..Messages::default() }
    }
}

/// Reads the last messages of partitions, each with its end.
pub fn read(config: &Config, source: Source, partitions: Vec<(TopicPartition, i64)>) -> Messages {
    let mut messages = Messages { source: Some(source), ..Messages::default() };
    messages.failure = fill(config, partitions, &mut messages.lines).err().map(|error| describe(&error));
    messages.lines.sort_by_key(|line| (line.time_ms, line.partition, line.offset));
    messages.lines.drain(..messages.lines.len().saturating_sub(COUNT));
    messages
}

fn fill(config: &Config, partitions: Vec<(TopicPartition, i64)>, lines: &mut Vec<Line>) -> ottla::Result<()> {
    let mut open: SortedMap<TopicPartition, i64> =
        partitions.into_iter().filter(|(_, end)| *end > 0).collect();
    if open.is_empty() {
        return Ok(());
    }
    // Of many partitions a few messages each are enough.
    let each = (COUNT / open.len()).max(5) as i64;
    let mut config = config.clone();
    let settings = [
        ("enable.partition.eof", "true"),
        ("enable.auto.commit", "false"),
        ("max.partition.fetch.bytes", FETCH_BYTES),
        ("group.id", ""),
    ];
    for (name, value) in settings {
        config
            .set(name, value)
            .map_err(|error| ottla::Error::new(ottla::ErrorKind::InvalidArgument, error.to_string()))?;
    }
    let consumer = Consumer::new(&config)?;
    let start = |key: &TopicPartition| (key.topic.to_string(), key.partition, Offset::Tail(each));
    consumer.assign(&open.keys().map(start).collect::<Vec<_>>())?;
    let began = Instant::now();
    while !open.is_empty() && began.elapsed() < PATIENCE {
        let records = consumer.poll(Duration::from_millis(100))?;
        for message in &records {
            let key = TopicPartition::new(message.topic(), message.partition());
            let Some(end) = open.get(&key).copied() else { continue };
            lines.push(line(&message));
            if message.offset() + 1 >= end {
                open.remove(&key);
            }
        }
        for event in records.events() {
            match event {
                ConsumerEvent::EndOfPartition { topic, partition, .. } => {
                    open.remove(&TopicPartition::new(&**topic, *partition));
                }
                ConsumerEvent::Error(error) if !error.is_retriable() => return Err(error.clone()),
                _ => {}
            }
        }
    }
    Ok(())
}

fn line(message: &MessageRef<'_>) -> Line {
    Line {
        time_ms: message.timestamp(),
        partition: message.partition(),
        offset: message.offset(),
        key: text(message.key()),
        value: text(message.value()),
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    clean(&String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_BYTES)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ottla::{Producer, Record};
    use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

    #[test]
    fn last_messages_of_all_partitions_come_in_their_order() {
        let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
        cluster.control(|control| control.create_topic("orders", 3, 1)).unwrap();
        let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
        let producer = Producer::new(&config).unwrap();
        for number in 0..300_i64 {
            let (key, value) = (number.to_string(), format!("v{number}\x1b[2J"));
            let record = Record::new().partition((number % 2) as i32).key(&key).value(&value);
            producer.topic("orders").send(record.timestamp(1_000_000 + number)).unwrap();
        }
        producer.flush(Duration::from_secs(60)).unwrap();
        let source = Source { topic: "orders".into(), partition: None };
        let ends = [(0, 150), (1, 150), (2, 0)].map(|(id, end)| (TopicPartition::new("orders", id), end));
        let messages = read(&config, source.clone(), ends.to_vec());
        assert_eq!((&messages.source, &messages.failure), (&Some(source), &None));
        assert_eq!(messages.lines.len(), COUNT);
        let keys: Vec<i64> = messages.lines.iter().map(|line| line.key.parse().unwrap()).collect();
        assert_eq!(keys, (200..300).collect::<Vec<_>>());
        assert_eq!(messages.lines[0].value, "v200·[2J");
    }
}
