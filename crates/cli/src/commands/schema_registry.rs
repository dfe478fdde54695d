//! The registry of `ottla broker --schema-registry`, whose records are in the topic `_schemas` of the embedded brokers.

use std::time::Duration;

use ottla::{Config, Producer, Record, Topic};
use ottla_embedded_broker::EmbeddedCluster;
use ottla_schema_registry::server::{EmbeddedRegistry, Storage, StoredRecord};

use crate::failure::{Failure, Outcome};

/// The topic that Confluent's registry has, too.
const TOPIC: &str = "_schemas";
/// The time for a record to be written.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps records in the topic.
struct TopicStorage {
    topic: Topic,
    /// Keeps the connection.
    _producer: Producer,
}

impl Storage for TopicStorage {
    /// The brokers keep everything in memory, so their topic is empty when they start.
    fn load(&mut self) -> Result<Vec<StoredRecord>, String> {
        Ok(Vec::new())
    }

    fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        let record = Record::new().key(key);
        let record = match value {
            Some(value) => record.value(value),
            None => record,
        };
        self.topic.deliver(record, TIMEOUT).map(drop).map_err(|error| error.to_string())
    }
}

/// Starts a registry for these brokers. `properties` are those of a client, a line each.
pub fn start(
    address: &str,
    cluster: &EmbeddedCluster,
    brokers: i32,
    properties: &str,
) -> Outcome<EmbeddedRegistry> {
    cluster
        .control(|control| control.create_topic(TOPIC, 1, brokers.min(3) as i16))
        .map_err(|error| Failure::Failed(format!("the topic {TOPIC} can't be created: {error:?}")))?;
    let mut config = Config::new();
    for (name, value) in properties.lines().filter_map(|line| line.split_once('=')) {
        config.set(name, value)?;
    }
    config.set("client.id", "schema-registry")?.set("linger.ms", "0")?;
    let producer = Producer::new(&config)?;
    let storage = TopicStorage { topic: producer.topic(TOPIC), _producer: producer };
    EmbeddedRegistry::start(address, storage).map_err(|error| {
        Failure::Failed(format!("--schema-registry: the registry can't listen on {address}: {error}"))
    })
}
