//! An Apache Kafka client: producer, consumer and admin, blocking and async, without a runtime.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use ottla::{Config, Producer, Record};
//!
//! let mut config = Config::new();
//! config.set("bootstrap.servers", "127.0.0.1:9092")?;
//! let producer = Producer::new(&config)?;
//! let topic = producer.topic("greetings");
//! topic.send(Record::new().key("en").value("hello"))?;
//! let written = topic.send_tracked(Record::new().key("de").value("hallo"))?.wait(Duration::from_secs(10))?;
//! println!("partition {}, offset {:?}", written.partition, written.offset);
//! producer.close(Duration::from_secs(10))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod admin;
mod config;
mod consumer;
mod moment;
mod producer;
mod self_test;
mod start;
mod topic_builder;
mod wait;

pub use admin::{Admin, AdminOptions};
/// Shared bytes, for [`Record::shared_value`].
pub use bytes::Bytes;
pub use config::{Config, check_config};
pub use consumer::{Consumer, ConsumerBuilder, MessageStream, Seek};
pub use moment::Moment;
pub use ottla_core::config::table as properties;
pub use ottla_core::produce::partitioner as partitioners;
pub use ottla_core::{
    admin::{
        configs::{
            ConfigChange, ConfigChanges, ConfigEntry, ConfigOperation, ConfigResource, ConfigResults,
            ConfigSynonym, ResourceKind,
        },
        describe::{
            AuthorizedOperations, BrokerDescription, ClusterDescription, PartitionDescription,
            TopicDescription,
        },
        topics::{NewPartitions, NewTopic, TopicResults},
    },
    cluster::metadata::RecreatedTopic,
    config::{ConfigError, ConfigErrorKind, Entry as ConfigValue, OffsetReset, Profile, RawConfig},
    error::{Culprit, Error, ErrorContext, ErrorKind, Result},
    event::{Event, Throttle},
    fetch::{
        deliver::{ConsumerEvent, FetchedRecords, Message, MessageRef, PieceWalk, Records},
        offsets::{ListedOffset, OffsetSpec},
        position::Offset,
        stored::{CommitAnswer, CommittedAnswer, GroupOffset},
    },
    observer::{Exchange, Observer, Peer},
    produce::{
        order::{Comparison, QueueOrder, QueuedRecord},
        partitioner::{PartitionChoice, Partitioner},
        record::{Record, SendError},
        report::{DeliveryBatch, DeliveryReport, DeliverySink, PersistenceStatus},
        sender::Purge,
    },
    stats::{
        BrokerStatistics, CollectorStatistics, EosStatistics, GroupStatistics, PartitionStatistics,
        Statistics, TopicStatistics, Window, table as statistics_table,
    },
};
pub use ottla_net::{SystemTransport, Transport};
pub use ottla_protocol::{
    api::ApiKey,
    batch::{HeaderRef, Headers},
    error_code::ErrorCode,
};
pub use producer::{Delivery, Producer, ProducerBuilder, RecordMetadata, SendBatchError, Topic};
pub use self_test::self_test;
pub use start::running_threads;
pub use topic_builder::{TopicBuilder, check_topic_config};

/// The README's examples are compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
