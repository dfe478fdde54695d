//! The brokers that a scenario runs on.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use ottla::{Admin, Config, NewTopic, Producer};
use ottla_embedded_broker::{ClusterOptions, Control, EmbeddedCluster};
use ottla_protocol::{
    error_code::ErrorCode,
    generated::create_topics::{
        CreateTopicsRequest,
        request::{Config as TopicConfig, Topic},
    },
    uuid::Uuid,
};

use crate::{
    not_checked,
    raw::{self, LoggedBatch, LoggedRecord, RawClient},
    reports::Reports,
    requirements,
};

/// The timeout for everything that should work, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Brokers to run a scenario on.
#[derive(Debug)]
pub struct Backend {
    brokers: Brokers,
}

#[derive(Debug)]
enum Brokers {
    Embedded(EmbeddedCluster),
    ApacheKafka(String),
}

impl Backend {
    /// Starts three embedded brokers behind local TCP ports, for this scenario alone.
    pub fn embedded() -> Self {
        Self::embedded_with(|_| {})
    }

    /// Starts embedded brokers with changed options.
    pub fn embedded_with(change: impl FnOnce(&mut ClusterOptions)) -> Self {
        let mut options = ClusterOptions::default();
        change(&mut options);
        let cluster = EmbeddedCluster::start(options).expect("embedded brokers can listen");
        Self { brokers: Brokers::Embedded(cluster) }
    }

    /// Returns the brokers that `OTTLA_BOOTSTRAP` names, which all scenarios share. Without them, and if they lack what the scenario
    /// needs, `what` is not checked.
    pub fn apache_kafka(what: &str) -> Option<Self> {
        let Some(servers) = env::var("OTTLA_BOOTSTRAP").ok().filter(|servers| !servers.is_empty()) else {
            not_checked(what, "OTTLA_BOOTSTRAP names no brokers of Apache Kafka");
            return None;
        };
        if let Some(why) = requirements::missing(&servers, what) {
            not_checked(what, &why);
            return None;
        }
        Some(Self { brokers: Brokers::ApacheKafka(servers) })
    }

    /// For `bootstrap.servers`.
    pub fn bootstrap_servers(&self) -> String {
        match &self.brokers {
            Brokers::Embedded(cluster) => cluster.bootstrap_servers(),
            Brokers::ApacheKafka(servers) => servers.clone(),
        }
    }

    /// True if an answer of brokers may depend on what other scenarios do at the same time, because they share the cluster.
    pub const fn is_shared(&self) -> bool {
        matches!(self.brokers, Brokers::ApacheKafka(_))
    }

    /// Controls the embedded brokers; other brokers can't be controlled.
    pub fn control<R>(&self, act: impl FnOnce(&mut Control<'_>) -> R) -> R {
        match &self.brokers {
            Brokers::Embedded(cluster) => cluster.control(act),
            Brokers::ApacheKafka(_) => panic!("list this scenario in run_on_embedded!"),
        }
    }

    /// Returns a configuration with these brokers and properties.
    pub fn config(&self, properties: &[(&str, &str)]) -> Config {
        config(&self.bootstrap_servers(), properties)
    }

    /// Creates a producer with these properties.
    pub fn producer(&self, properties: &[(&str, &str)]) -> Producer {
        Producer::new(&self.config(properties)).expect("the producer's configuration is right")
    }

    /// Creates a producer whose delivery reports are collected.
    pub fn producer_with_reports(&self, properties: &[(&str, &str)]) -> (Producer, Reports) {
        Reports::of(&self.config(properties))
    }

    /// Returns the number of replicas of a new topic. With followers, all scenarios take 170 instead of 100 s of CPU of
    /// Kafka's brokers; the scripts in `tests/kafka` have topics with followers.
    const fn replicas(&self) -> i16 {
        if self.is_shared() { 1 } else { 3 }
    }

    /// Creates a topic with a unique name.
    pub fn topic(&self, partitions: i32) -> String {
        self.topic_with(partitions, &[])
    }

    /// Creates a topic with a configuration.
    pub fn topic_with(&self, partitions: i32, configs: &[(&str, &str)]) -> String {
        let name = unused_topic_name();
        let topic = Topic {
            name: name.clone(),
            num_partitions: partitions,
            replication_factor: self.replicas(),
            configs: configs
                .iter()
                .map(|(name, value)| TopicConfig {
                    name: (*name).to_owned(),
                    value: Some((*value).to_owned()),
                })
                .collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
        let response = RawClient::connect(&self.bootstrap_servers()).controller().call(5, &request);
        assert_eq!(response.topics[0].error_code, ErrorCode::NONE, "{:?}", response.topics[0].error_message);
        let known = || raw::leaders(&self.bootstrap_servers(), &name).len() == partitions as usize;
        assert!(eventually(known), "{name} has leaders");
        if matches!(self.brokers, Brokers::ApacheKafka(_)) {
            // These leaders may not know of the topic at first.
            (0..partitions).for_each(|partition| assert!(self.batches(&name, partition).is_empty()));
        }
        name
    }

    /// Deletes a topic and creates it again, with one partition. Every broker knows of the new one: a leader that has
    /// not heard of it yet still writes to the old one, and acknowledges what will be gone. A client that asks for the
    /// topic in between may create it, too: that one is deleted again.
    pub fn recreate(&self, topic: &str, replicas: i16) {
        let mut brokers = raw::brokers(&self.bootstrap_servers());
        let old = brokers[0].topic_id(topic);
        let admin = Admin::new(&self.config(&[])).expect("the configuration is right");
        let created = eventually(|| {
            admin.delete_topics(&[topic], TIMEOUT).expect("a response");
            let created =
                admin.create_topics(&[NewTopic::new(topic, 1, replicas)], TIMEOUT).expect("a response");
            created.iter().all(|(_, result)| result.is_ok())
        });
        assert!(created, "{topic} can be created again");
        for broker in &mut brokers {
            let known = eventually(|| ![Uuid::ZERO, old].contains(&broker.topic_id(topic)));
            assert!(known, "each broker knows of the new {topic}");
        }
    }

    /// Returns the batches of a partition in the broker's log.
    pub fn batches(&self, topic: &str, partition: i32) -> Vec<LoggedBatch> {
        raw::read_log(&self.bootstrap_servers(), topic, partition)
    }

    /// Returns the records of a partition.
    pub fn records(&self, topic: &str, partition: i32) -> Vec<LoggedRecord> {
        self.batches(topic, partition).into_iter().flat_map(|batch| batch.records).collect()
    }

    /// Returns the records' values as text.
    pub fn values(&self, topic: &str, partition: i32) -> Vec<String> {
        self.records(topic, partition).iter().map(LoggedRecord::text).collect()
    }

    /// Checks that the numbers `0..count` are in the topic, each once, and ascend in each partition.
    pub fn assert_complete_and_in_order(&self, topic: &str, partitions: i32, count: usize) {
        let mut seen = vec![0u32; count];
        for partition in 0..partitions {
            let mut last = None;
            for value in self.values(topic, partition) {
                let number: usize = value.split(' ').next().unwrap_or("").parse().expect("a number");
                seen[number] += 1;
                assert!(last < Some(number), "{number} comes after {last:?} in {topic} [{partition}]");
                last = Some(number);
            }
        }
        let lost: Vec<usize> = (0..count).filter(|n| seen[*n] == 0).collect();
        let doubled: Vec<usize> = (0..count).filter(|n| seen[*n] > 1).collect();
        assert!(lost.is_empty() && doubled.is_empty(), "lost {lost:?}, doubled {doubled:?}");
    }
}

/// Returns a configuration with these servers and properties.
pub fn config(servers: &str, properties: &[(&str, &str)]) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", servers).expect("servers");
    for (name, value) in properties {
        config.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    config
}

/// Returns a unique topic name, also on brokers that outlive this process.
pub fn unused_topic_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("scenario-{}-{number}", since_1970.as_nanos() / 1000 % 1_000_000_000_000)
}

/// Waits until the condition holds; returns false if it doesn't within [`TIMEOUT`].
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > TIMEOUT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
