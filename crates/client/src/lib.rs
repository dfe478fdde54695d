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

mod config;
mod producer;
mod start;
mod wait;

pub use config::Config;
pub use ottla_core::config::table as properties;
pub use ottla_core::{
    config::ConfigError,
    error::{Culprit, Error, ErrorContext, ErrorKind, Result},
    event::Event,
    produce::{
        partitioner::{PartitionChoice, Partitioner},
        record::{Record, SendError},
        report::{DeliveryBatch, DeliveryReport, PersistenceStatus},
        sender::Purge,
    },
};
pub use ottla_protocol::error_code::ErrorCode;
pub use producer::{Delivery, Producer, ProducerBuilder, RecordMetadata, Topic};
