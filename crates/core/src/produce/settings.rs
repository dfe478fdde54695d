//! The settings of a producer.

use std::{sync::Arc, time::Duration};

use super::{collector::Linger, partitioner::Partitioner, topic_settings::TopicSettings};
use crate::config::{EffectiveConfig, TopicRecreatePolicy};

/// The settings of a producer.
#[derive(Clone, Debug)]
pub struct ProducerSettings {
    /// The settings of topics that have none of their own.
    pub topic: TopicSettings,
    /// `socket.timeout.ms`: the time that a broker has to respond.
    pub response_timeout: Duration,
    /// `message.send.max.retries`.
    pub max_retries: u32,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `max.in.flight.requests.per.connection`, at most 5 for an idempotent producer.
    pub max_in_flight: usize,
    /// `broker.linger.ms` or `linger.ms`.
    pub linger: Linger,
    /// `broker.batch.max.partitions`; `None` means no limit.
    pub max_partitions: Option<usize>,
    /// `broker.batch.max.bytes`; `None` means no limit.
    pub max_bytes: Option<u64>,
    /// `message.max.bytes`: the largest record.
    pub max_message_bytes: usize,
    /// `max.request.size`: the largest request, unless a single batch is larger.
    pub max_request_bytes: usize,
    /// `queue.buffering.max.messages`; 0 means no limit.
    pub max_queued_messages: u64,
    /// `queue.buffering.max.kbytes`, in bytes.
    pub max_queued_bytes: u64,
    /// `client.memory.max.bytes`: the most memory of the queue and its batches, compressed ones included; `None` means no limit.
    pub max_memory: Option<usize>,
    /// `topic.metadata.propagation.max.ms`: the time for which a topic may be unknown before records for it fail.
    pub topic_propagation: Duration,
    /// `sticky.partitioning.linger.ms`; zero picks a partition for every record.
    pub sticky_linger: Duration,
    /// True if only `sticky_linger` ends the choice of a partition for records without a key; else sending its batch ends
    /// the choice, too.
    pub sticky_is_timed: bool,
    /// How the load of partitions decides where records without a key go next; `None` chooses at random.
    pub load_choice: Option<LoadChoice>,
    /// `client.rack`, if `partitioner.rack.aware` is set: records without a key prefer leaders there (KIP-1123).
    pub rack: Option<String>,
    /// `queue.buffering.backpressure.threshold`, if it is set: the number of unsent requests from which on a broker gets no
    /// further one.
    pub max_unsent_requests: Option<usize>,
    /// `enable.idempotence`: each record is written once and in order, whatever is sent again.
    pub idempotence: bool,
    /// `transactional.id`, if the producer is transactional.
    pub transactional_id: Option<Arc<str>>,
    /// `transaction.timeout.ms`.
    pub transaction_timeout: Duration,
    /// `enable.gapless.guarantee`: a record that fails permanently stops the producer.
    pub gapless: bool,
    /// `topic.recreate.policy`: with `Error`, records accepted for a topic fail if the topic was deleted and recreated.
    pub topic_recreate: TopicRecreatePolicy,
    /// `max.block.ms`, if it is set: the longest wait of calls without a timeout argument.
    pub max_block: Option<Duration>,
    /// `metadata.max.idle.ms`, if it is set: topics without messages for this long are left out of the periodic metadata
    /// refresh.
    pub metadata_max_idle: Option<Duration>,
    /// True if reports carry the application's number of each record.
    pub keep_opaques: bool,
}

impl Default for ProducerSettings {
    fn default() -> Self {
        Self {
            topic: TopicSettings::default(),
            response_timeout: Duration::from_secs(60),
            max_retries: i32::MAX as u32,
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            max_in_flight: 5,
            linger: Linger::Broker(Duration::from_millis(5)),
            max_partitions: None,
            max_bytes: None,
            max_message_bytes: 1_000_000,
            max_request_bytes: 1_000_000,
            max_queued_messages: 100_000,
            max_queued_bytes: 1 << 30,
            max_memory: None,
            topic_propagation: Duration::from_secs(30),
            sticky_linger: Duration::from_millis(10),
            sticky_is_timed: false,
            load_choice: None,
            rack: None,
            max_unsent_requests: None,
            idempotence: true,
            transactional_id: None,
            transaction_timeout: Duration::from_secs(60),
            gapless: false,
            topic_recreate: TopicRecreatePolicy::Reset,
            max_block: None,
            metadata_max_idle: None,
            keep_opaques: true,
        }
    }
}

/// How the load of partitions decides where records without a key go next (KIP-794).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadChoice {
    /// `partitioner.adaptive.partitioning.enable`: of two random partitions, the one with fewer waiting bytes.
    pub prefers_shorter_queue: bool,
    /// `partitioner.availability.timeout.ms`: partitions whose records wait longer are avoided.
    pub availability_timeout: Option<Duration>,
}

impl LoadChoice {
    fn new(config: &EffectiveConfig<'_>) -> Option<Self> {
        const ADAPTIVE: &str = "partitioner.adaptive.partitioning.enable";
        let choice = Self {
            prefers_shorter_queue: config.is_modified(ADAPTIVE) && config.boolean(ADAPTIVE),
            availability_timeout: config.positive_millis("partitioner.availability.timeout.ms"),
        };
        (choice.prefers_shorter_queue || choice.availability_timeout.is_some()).then_some(choice)
    }
}

impl ProducerSettings {
    /// Reads the settings from the configuration. Reports carry the application's numbers.
    pub fn new(config: &EffectiveConfig<'_>) -> Self {
        let linger = Linger::new(config);
        let sticky_is_timed = config.is_modified("sticky.partitioning.linger.ms");
        Self {
            topic: TopicSettings::new(config),
            response_timeout: config.millis("socket.timeout.ms"),
            max_retries: config.size("retries") as u32,
            retry_backoff: config.millis("retry.backoff.ms"),
            retry_backoff_max: config.millis("retry.backoff.max.ms"),
            max_in_flight: config.size("max.in.flight"),
            linger,
            max_partitions: config.positive("broker.batch.max.partitions"),
            max_bytes: config.positive("broker.batch.max.bytes").map(|bytes| bytes as u64),
            max_message_bytes: config.size("message.max.bytes"),
            max_request_bytes: config.size("max.request.size"),
            max_queued_messages: config.size("queue.buffering.max.messages") as u64,
            max_queued_bytes: config.size("queue.buffering.max.kbytes") as u64 * 1024,
            max_memory: config.positive("client.memory.max.bytes"),
            topic_propagation: config.millis("topic.metadata.propagation.max.ms"),
            sticky_linger: match linger {
                Linger::Broker(linger) | Linger::Partition(linger) if !sticky_is_timed => linger * 2,
                _ => config.millis("sticky.partitioning.linger.ms"),
            },
            sticky_is_timed,
            load_choice: LoadChoice::new(config),
            rack: config.non_empty("client.rack").filter(|_| config.boolean("partitioner.rack.aware")),
            max_unsent_requests: Some("queue.buffering.backpressure.threshold")
                .filter(|name| config.is_modified(name))
                .and_then(|name| config.positive(name)),
            idempotence: config.boolean("enable.idempotence"),
            transactional_id: config.non_empty("transactional.id").map(Arc::from),
            transaction_timeout: config.millis("transaction.timeout.ms"),
            gapless: config.boolean("enable.gapless.guarantee"),
            topic_recreate: TopicRecreatePolicy::new(config),
            max_block: config.modified_millis("max.block.ms"),
            metadata_max_idle: config.modified_millis("metadata.max.idle.ms"),
            keep_opaques: true,
        }
    }
}

impl ProducerSettings {
    /// Replaces the partitioner of topics that have none of their own.
    #[must_use]
    pub fn with_partitioner(mut self, partitioner: Partitioner) -> Self {
        self.topic.partitioner = Arc::new(partitioner);
        self
    }
}

impl Linger {
    /// Reads `linger.ms` and `broker.linger.ms`, of which the latter takes precedence.
    fn new(config: &EffectiveConfig<'_>) -> Self {
        if config.is_modified("linger.ms") && !config.is_modified("broker.linger.ms") {
            Self::Partition(config.float_millis("linger.ms"))
        } else if config.text("broker.linger.ms") == "auto" {
            Self::Auto
        } else {
            Self::Broker(config.float_millis("broker.linger.ms"))
        }
    }

    /// Reads the linger of a topic from its configuration: its own `broker.linger.ms`, or a default that was shortened
    /// to fit its `message.timeout.ms`. Returns None if the topic has the producer's linger.
    pub fn of_topic(config: &EffectiveConfig<'_>) -> Option<Duration> {
        let name = "broker.linger.ms";
        config.differs_from_client(name).then(|| config.float_millis(name))
    }
}
