//! What the application hands in.

use std::fmt;

use bytes::Bytes;
use ottla_protocol::batch::HeaderRef;

use crate::error::{Error, ErrorKind};

/// A record to be sent. It borrows its bytes; `send` copies them into the batch, but for what [`Record::shared_value`] shares.
#[derive(Clone, Debug, Default)]
pub struct Record<'a> {
    pub(crate) partition: Option<i32>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// What `value` is a view of, if it may be referenced.
    pub(crate) shared: Option<&'a Bytes>,
    pub(crate) headers: Vec<HeaderRef<'a>>,
    pub(crate) opaque: u64,
}

impl<'a> Record<'a> {
    /// A record with neither key nor value.
    pub const fn new() -> Self {
        Self {
            partition: None,
            timestamp: None,
            key: None,
            value: None,
            shared: None,
            headers: Vec::new(),
            opaque: 0,
        }
    }

    /// A record without headers from its parts, for callers that have them at hand: partition, timestamp in milliseconds since
    /// 1970, key, value, and the number that comes back in the delivery report.
    #[inline]
    pub const fn of(
        partition: Option<i32>,
        timestamp: Option<i64>,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
        opaque: u64,
    ) -> Self {
        Self { partition, timestamp, key, value, shared: None, headers: Vec::new(), opaque }
    }

    /// Sets the key. Records with the same key go to the same partition, unless the partitioner is random.
    #[must_use]
    pub fn key(mut self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.key = Some(key.as_ref());
        self
    }

    /// Sets the value.
    #[must_use]
    pub fn value(mut self, value: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.value = Some(value.as_ref());
        self.shared = None;
        self
    }

    /// Sets the value. From 16 KiB on it is not copied but kept until the record's fate is known, if it is sent uncompressed.
    #[must_use]
    pub fn shared_value(mut self, value: &'a Bytes) -> Self {
        self.value = Some(value);
        self.shared = Some(value);
        self
    }

    /// Chooses the partition instead of the partitioner.
    #[must_use]
    pub const fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sets the timestamp in milliseconds since 1970; the time of the call otherwise.
    #[must_use]
    pub const fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// Appends a header. The same key may appear more than once; the value may be null.
    #[must_use]
    pub fn header(mut self, key: &'a str, value: Option<&'a [u8]>) -> Self {
        self.headers.push(HeaderRef { key: key.as_bytes(), value });
        self
    }

    /// A number that comes back in the delivery report.
    #[must_use]
    pub const fn opaque(mut self, opaque: u64) -> Self {
        self.opaque = opaque;
        self
    }

    /// What the record counts for in the queue's limit: the bytes of key, value and headers.
    #[inline]
    pub(crate) fn payload_bytes(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len)).sum();
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len) + headers
    }
}

/// Why a record was not taken. Nothing of it was kept; the call may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// `queue.buffering.max.messages` or `queue.buffering.max.kbytes` is reached: wait for deliveries.
    QueueFull,
    /// The record is larger than `message.max.bytes`.
    MessageTooLarge {
        /// The record's size in bytes when encoded.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The topic has no such partition.
    UnknownPartition {
        /// What was asked for.
        partition: i32,
        /// How many partitions there are.
        count: i32,
    },
    /// The topic can't be written to, as the cluster says.
    Topic(Error),
    /// The producer is closed or closing.
    Closed,
    /// The producer can't go on.
    Fatal(Error),
    /// The call would wait for the very thread that it is made on: a delivery callback's.
    WouldDeadlock(Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull => ErrorKind::QueueFull.fmt(f),
            Self::MessageTooLarge { size, limit } => {
                write!(f, "the message takes {size} bytes, more than message.max.bytes={limit}")
            }
            Self::UnknownPartition { partition, count } => {
                write!(f, "partition {partition} does not exist: the topic has {count}")
            }
            Self::Topic(error) | Self::Fatal(error) | Self::WouldDeadlock(error) => error.fmt(f),
            Self::Closed => ErrorKind::Closed.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        let kind = match &error {
            SendError::Topic(error) | SendError::Fatal(error) | SendError::WouldDeadlock(error) => {
                return error.clone();
            }
            SendError::QueueFull => ErrorKind::QueueFull,
            SendError::MessageTooLarge { .. } => ErrorKind::MessageTooLarge,
            SendError::UnknownPartition { .. } => ErrorKind::UnknownPartition,
            SendError::Closed => ErrorKind::Closed,
        };
        let detail = match kind {
            ErrorKind::QueueFull | ErrorKind::Closed => String::new(),
            _ => error.to_string(),
        };
        Self::new(kind, detail)
    }
}
