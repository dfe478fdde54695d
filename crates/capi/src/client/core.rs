//! What runs below a client's handle.

use std::sync::Arc;

use ottla::{Consumer, Producer};

use crate::produce::report::Reports;

/// A producer or a consumer of `ottla`.
pub(super) enum Core {
    Producer(Producer, Arc<Reports>),
    Consumer(Consumer),
}

/// The way of a topic's messages to their producer.
#[derive(Debug)]
pub(crate) struct Producing {
    pub(crate) topic: ottla::Topic,
    /// Each record's number is its [`Produced`](crate::produce::produced::Produced).
    pub(crate) has_messages: bool,
    /// A message with more bytes than this is refused anyway: nothing is copied before.
    pub(crate) max_bytes: usize,
    /// The application chooses the partitions, in a function that may call the library.
    pub(crate) asks_partitioner: bool,
}
