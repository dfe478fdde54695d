//! The parts of a client that belong to the core.

use std::sync::Arc;

use ottla::{Consumer, Producer, ShareConsumer};

use crate::produce::report::Reports;

/// The kinds of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Producer,
    Consumer,
    /// The client below an `rd_kafka_share_t`.
    ShareConsumer,
}

/// A producer or a consumer of `ottla`.
pub(super) enum Core {
    Producer(Producer, Arc<Reports>),
    Consumer(Consumer),
    Share(ShareConsumer),
}

/// The link from a topic to the producer.
#[derive(Debug)]
pub(crate) struct Producing {
    pub(crate) topic: ottla::Topic,
    /// The opaque number of each record is its [`Produced`](crate::produce::produced::Produced).
    pub(crate) has_messages: bool,
    /// The maximum size of a message: larger ones are refused before anything is copied.
    pub(crate) max_bytes: usize,
    /// True if the application's partitioner, which may call the library, chooses the partitions.
    pub(crate) asks_partitioner: bool,
}
