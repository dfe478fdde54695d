//! An Apache Kafka client: producer, consumer and admin, blocking and async, without a runtime.
//!
//! It keeps librdkafka's property names and behaviour, with safe defaults. This page is a guide; the folder `examples` has a
//! program for each section.
//!
//! # Producing
//!
//! A [`Producer`] has a queue. [`Topic::send`] copies a record into a batch of its partition and returns at once; I/O threads
//! send the batches. [`Topic`] lists the calls: they differ in what they do when the queue is full, and in what they wait
//! for.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use ottla::{Config, Producer, Record};
//! use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
//!
//! let cluster = EmbeddedCluster::start(ClusterOptions::default())?; // brokers in this process, for the example
//! let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())])?;
//! let seconds = Duration::from_secs(10);
//!
//! let producer = Producer::new(&config)?;
//! let topic = producer.topic("greetings");
//! topic.send(Record::new().key("en").value("hello").header("tone", "formal"))?; // is sent in the background
//! let written = topic.deliver(Record::new().key("de").value("hallo"), seconds)?; // waits for the broker
//! println!("partition {}, offset {:?}", written.partition, written.offset);
//! producer.close(seconds)?; // waits for records that are left
//! # Ok(())
//! # }
//! ```
//!
//! In async code, [`Topic::deliver_async`] waits for room and for the delivery; [`Topic::send_tracked`] returns the
//! [`Delivery`] as a future, so that many records are in flight at the same time.
//!
//! # Consuming
//!
//! A [`Consumer`] reads the partitions that it is assigned, or subscribes to topics as a member of a group
//! ([`Consumer::subscribe`]), which divides the partitions among its members. [`Consumer::poll`] returns many records as views into the bytes
//! from the socket; [`Consumer::next`], [`Consumer::next_async`] and [`Consumer::stream`] return one record at a time.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! # use ottla::{Config, Producer, Record};
//! # use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
//! # let cluster = EmbeddedCluster::start(ClusterOptions::default())?;
//! # let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())])?;
//! # let seconds = Duration::from_secs(10);
//! # let record = Record::new().value("hello").partition(0);
//! # Producer::new(&config)?.deliver("greetings", record, seconds)?;
//! use ottla::{Consumer, GroupOffset, Offset};
//!
//! config.set("group.id", "greeters")?; // for committed offsets and subscriptions
//! let consumer = Consumer::new(&config)?;
//! consumer.assign(&[("greetings", 0, Offset::Beginning)])?;
//! for message in &consumer.poll(seconds)? {
//!     println!("{}: {:?}", message.offset(), message.value());
//! }
//! let position = consumer.position("greetings", 0).ok_or("no record")?;
//! for committed in consumer.commit(&[GroupOffset::new("greetings", 0, position)], seconds)? {
//!     committed?;
//! }
//! consumer.close(seconds)?;
//! # Ok(())
//! # }
//! ```
//!
//! A member of a group commits what it processed: [`Consumer::commit_message`] and [`Consumer::commit_records`], or
//! [`Consumer::track_messages`] for workers that finish messages in any order. [`Consumer::rebalances`] and
//! [`RebalanceListener`] report which partitions come and go, [`Consumer::partition_stream`] reads one of them, and a
//! [`PartitionAssignor`] decides who gets which.
//!
//! # Delivery guarantees
//!
//! With the defaults (`acks=all`, `enable.idempotence=true`) a record is acknowledged when all in-sync replicas have it. It is
//! written once and in the order of the calls, whatever fails in between. Every record gets exactly one report:
//!
//! | report | [`PersistenceStatus`] | the record |
//! |---|---|---|
//! | delivered | `Persisted` | is in the log, at the reported offset |
//! | delivered with `acks=0` | `PossiblyPersisted` | was sent; nothing is known of it |
//! | failed before it was sent | `NotPersisted` | is not in the log and may be sent again |
//! | failed after it was sent | `PossiblyPersisted` | may be in the log; sending it again may duplicate it |
//!
//! A record fails when `message.timeout.ms` has passed, when a broker refuses it, or when it is purged. A consumer
//! delivers *at least once* if it commits after processing, *at most once* if it commits before.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! use ottla::{Config, ErrorKind, PersistenceStatus, Producer, Record};
//!
//! let config = Config::from_properties([
//!     ("bootstrap.servers", "127.0.0.1:1"), // no broker listens there
//!     ("message.timeout.ms", "50"),
//!     ("linger.ms", "1"),
//! ])?;
//! let producer = Producer::builder(&config)
//!     .on_delivery(|batch| assert_eq!(batch.status(), PersistenceStatus::NotPersisted))
//!     .build()?;
//! let delivery = producer.topic("greetings").send_tracked(Record::new().value("hello"))?;
//! let error = delivery.wait(Duration::from_secs(10)).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::MessageTimedOutInQueue);
//! # Ok(())
//! # }
//! ```
//!
//! # Transactions
//!
//! A producer with `transactional.id` writes to many partitions, and commits the offsets that it consumed, all or nothing.
//! [`Producer::begin`] returns a [`Transaction`]: a value that is consumed by its commit or abort, and whose drop aborts it.
//! Consumers with `isolation.level=read_committed` see committed records only.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! use ottla::{Config, Consumer, Producer, Record, TransactionError};
//!
//! let seconds = Duration::from_secs(30);
//! let servers = [("bootstrap.servers", "127.0.0.1:9092")];
//! let mut config = Config::from_properties(servers)?;
//! let producer = Producer::new(config.set("transactional.id", "billing-1")?)?;
//! producer.init_transactions(seconds)?; // fences an earlier producer with this ID
//!
//! let mut config = Config::from_properties(servers)?;
//! config.set("group.id", "billing")?.set("enable.auto.commit", "false")?.set("isolation.level", "read_committed")?;
//! let consumer = Consumer::new(&config)?;
//! consumer.subscribe(&["orders"])?;
//! loop {
//!     let orders = consumer.poll(seconds)?;
//!     let transaction = producer.begin()?;
//!     for order in &orders {
//!         transaction.send("bills", Record::new().value(order.value().unwrap_or_default()))?;
//!     }
//!     transaction.send_records(&consumer, &orders, seconds)?;
//!     match transaction.commit(seconds) {
//!         Ok(()) => {}
//!         Err(TransactionError::Retriable(_)) => producer.resume_transaction(seconds)?, // its outcome is open
//!         Err(error) => return Err(error.into()), // Abort: it was aborted, and the orders can be read again
//!     }
//! }
//! # }
//! ```
//!
//! | [`TransactionError`] | meaning |
//! |---|---|
//! | `Retriable` | not done in time; [`Producer::resume_transaction`] continues |
//! | `Abort` | the transaction can't be committed; the producer can begin another one |
//! | `Fatal` | another producer with the same ID took over, or permissions are missing: close this one |
//! | `Refused` | the call does not fit the state, and had no effect |
//!
//! The client is stricter than the protocol. After a request whose outcome is unknown it gets a higher epoch before the next
//! transaction, so that a delayed request can't become part of that one. It counts `transaction.timeout.ms` down: at 80 % it
//! reports [`Event::TransactionOverdue`], and shortly before the end it makes the transaction abortable, instead of being fenced.
//! A commit that was sent is never declared failed: its outcome is open until the coordinator reports it.
//!
//! # Threads
//!
//! All clients of a process share a few I/O threads. Clients and topics are [`Send`] and [`Sync`] and cheap to clone: one
//! producer serves all threads of a program. Callbacks run on the I/O threads and must not block; a call that would wait
//! there fails at once. Futures need no particular runtime.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! # use ottla::{Config, Producer, Record};
//! # use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
//! # let cluster = EmbeddedCluster::start(ClusterOptions::default())?;
//! # let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())])?;
//! let producer = Producer::new(&config)?;
//! std::thread::scope(|threads| {
//!     for number in 0..4 {
//!         let topic = producer.topic("greetings");
//!         threads.spawn(move || topic.send(Record::new().value(&format!("hello from thread {number}"))));
//!     }
//! });
//! producer.close(Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! A call about several topics, partitions or groups has a result for each of them. An [`Error`] has a [kind](ErrorKind), the
//! [party at fault](Culprit), and a [context](ErrorContext): broker, API, topic and partition. Its text says what failed, why, and
//! what to do. Errors that belong to no call, such as a lost connection, are events ([`Producer::poll_event`]); the client recovers
//! from them by itself.
//!
//! ```
//! # fn main() -> ottla::Result<()> {
//! use ottla::{Admin, Config, Culprit, ErrorKind, NewTopic};
//!
//! let admin = Admin::new(&Config::from_properties([("bootstrap.servers", "127.0.0.1:1")])?)?;
//! let topics = [NewTopic::new("not a name", 1, 1)];
//! let results = admin.create_topics(&topics, std::time::Duration::from_secs(10))?;
//! let (_, Err(error)) = &results[0] else { panic!("a topic with this name can't exist") };
//! assert_eq!((error.kind(), error.culprit()), (ErrorKind::InvalidArgument, Culprit::Application));
//! assert!(!error.is_retriable());
//! println!("{error}");
//! # Ok(())
//! # }
//! ```
//!
//! # Configuration
//!
//! [`Config`] takes the property names of librdkafka and of the Java client as text. A wrong name or value is an error that
//! names similar properties or the valid range. Clients list contradictions that are not errors in
//! [`warnings`](Producer::warnings). [`Producer::topic_builder`] gives a topic properties of its own.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ottla::Config;
//!
//! let mut config = Config::new();
//! config.set("bootstrap.servers", "127.0.0.1:9092")?.set("compression.type", "zstd")?;
//! let error = config.set("compresion.type", "zstd").unwrap_err();
//! assert!(error.to_string().contains("compression.type"));
//! # Ok(())
//! # }
//! ```
//!
//! The feature `log` (on by default) writes errors and events through the [`log`](https://docs.rs/log) facade, with client,
//! broker, topic and partition as fields. `debug=all`, or single contexts as in `debug=broker,fetch`, adds lines of level
//! debug with the targets `ottla::broker`, `ottla::fetch` and so on.
//!
//! The feature `tracing` writes the same lines as events of [`tracing`](https://docs.rs/tracing) if the application has a subscriber.
//! Their fields `facility` and `severity` are those of the C library's lines. Their parent is the current span of the thread, or
//! else the span in which the client was created, which the client does not keep open.
//!
//! The feature `opentelemetry` writes the current span of [OpenTelemetry](https://docs.rs/opentelemetry) into the headers of records,
//! and makes it the remote parent of spans at the receiver ([`TracePropagation`], [`TraceContext`]). The layer of
//! [`tracing-opentelemetry`](https://docs.rs/tracing-opentelemetry) makes each entered span of `tracing` the current one.
//!
//! # Testing with the embedded broker
//!
//! The crate `ottla-embedded-broker` is a Kafka cluster inside the process of a test: several brokers on local ports, which
//! start within milliseconds, and which a test can disturb.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! use ottla::{Config, Producer, Record};
//! use ottla_embedded_broker::{ApiKey, ClusterOptions, EmbeddedCluster, ErrorCode, Fault, FaultAction};
//!
//! let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 2, ..ClusterOptions::default() })?;
//! let refuse = FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
//! cluster.control(|control| control.inject(Fault::new(refuse).api(ApiKey::Produce).times(2)));
//! let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())])?;
//! let written = Producer::new(&config)?.deliver("orders", Record::new().value("1"), Duration::from_secs(10))?;
//! assert_eq!(written.offset, Some(0)); // retried, and written once
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod admin;
mod background;
mod config;
mod consumer;
mod guard;
#[cfg(test)]
mod idle;
mod interceptors;
mod logging;
mod metrics;
mod oidc;
#[cfg(feature = "opentelemetry")]
mod open_telemetry;
mod producer;
mod sasl;
mod share;
mod start;
pub mod streams;
mod topic_name;
mod trace_context;
mod wait;

pub use admin::{
    Admin, AdminFuture, AdminOptions, AlterConfigsResults, GroupResults, RecordsToDelete, TransactionResults,
};
#[cfg(feature = "capi")]
#[doc(hidden)]
pub use background::spawn;
/// Shared bytes, for [`Record::shared_value`].
pub use bytes::Bytes;
pub use config::Config;
pub use consumer::{
    Consumer, ConsumerBuilder, GroupEvent, MessageStream, PartitionCommits, PartitionStream, Rebalance,
    RebalanceListener, Rebalances, RetryingMessage, RetryingMessages, TrackedMessage, TrackedMessages,
    TrackedStream,
};
pub use interceptors::{ConsumerInterceptor, InterceptorCounts, ProducerInterceptor};
pub use metrics::{Metric, MetricKind, MetricValue, MetricsSnapshot};
pub use ottla_core::config::table as properties;
pub use ottla_core::group::{
    assignor::{
        GroupMember, GroupTable, TopicTable,
        custom::{GroupAssignment, MemberAssignment, PartitionAssignor},
    },
    departure::GroupMembershipOperation,
    shared::{RebalanceKind, RebalanceProtocol},
};
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
        groups::{
            GroupState, GroupType,
            delete::{MemberToRemove, RemovedMembers},
            describe::{GroupDescription, MemberDescription},
            list::{GroupFilter, GroupListing, GroupListings},
            offsets::PartitionResults,
            remove_all::RemovedFromGroup,
            share_groups::{ShareGroupDescription, ShareMemberDescription, ShareOffset},
        },
        topics::{NewPartitions, NewTopic, TopicResults},
        transactions::{
            TransactionState,
            abort::HangingTransaction,
            describe::TransactionDescription,
            list::{TransactionFilter, TransactionListing, TransactionListings},
            producers::{ActiveProducer, ActiveProducers},
        },
    },
    config::{ConfigError, ConfigErrorKind, OffsetReset},
    contract::purge::Purge,
    error::{Culprit, Error, ErrorContext, ErrorKind, NextCall, Result},
    event::{
        ClusterChange, CredentialsEvent, Event, PollOverdue, RecreatedTopic, TelemetryEvent, Throttle,
        TransactionOverdue,
    },
    fetch::{
        deliver::{ConsumerEvent, Message, MessageRef, Records},
        position::Offset,
        retries::RetryPolicy,
    },
    observer::{Exchange, Observer, Peer},
    offsets::{
        committed::{CommitResult, CommittedResult, GroupOffset},
        list_offsets::{ListedOffset, OffsetSpec},
    },
    produce::{
        order::{Comparison, QueueOrder, QueuedRecord},
        outgoing::OutgoingRecord,
        partitioner::{PartitionChoice, Partitioner},
        record::{Record, SendError},
        report::{DeliveryBatch, DeliveryReport, DeliverySink, PersistenceStatus},
        transaction::error::{TransactionError, TransactionResult},
    },
    share::{
        acknowledgement::AcknowledgeType,
        shared::{AcknowledgeOutcome, LockedRecords, ShareEvent},
    },
    stats::{
        BrokerStatistics, CollectorStatistics, ConsumerStatistics, EosStatistics, GroupStatistics,
        PartitionStatistics, Statistics, TopicStatistics, Window, table as statistics_table,
    },
    telemetry::application::ApplicationMetrics,
    txn::command::ConsumerGroupMetadata,
};
pub use ottla_net::{
    CertificateCallback, CertificateInChain, PassedCredentials, Secret, SystemTransport, Transport,
};
pub use ottla_protocol::{
    api::ApiKey,
    batch::{HeaderRef, Headers},
    error_code::ErrorCode,
    uuid::Uuid,
    vocabulary::{Generation, LeaderEpoch, TopicPartition},
};
pub use producer::{
    DeliverFuture, Delivery, Producer, ProducerBuilder, RecordMetadata, SendBatchError, Topic, TopicBuilder,
    Transaction, TrySendError,
};
#[cfg(feature = "capi")]
pub use sasl::Sasl;
pub use sasl::{OauthToken, TokenProvider};
pub use share::{ShareCommit, ShareConsumer, ShareConsumerBuilder, ShareRecord, ShareRecords};
pub use trace_context::{TraceContext, TracePropagation};

/// The examples of both READMEs are compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the pages that begin with Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/start/rust.md")]
#[doc = include_str!("../../../docs/guide/testing.md")]
struct Pages;
