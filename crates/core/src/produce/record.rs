//! The record that the application sends.

use std::fmt;

use bytes::Bytes;
use ottla_protocol::batch::HeaderRef;

use crate::{
    error::{Error, ErrorKind},
    shown::Shown,
};

/// A record to be sent. It borrows its bytes: `send` copies them into the batch, except for a large
/// [`Record::shared_value`].
///
/// ```
/// use ottla_core::produce::record::Record;
///
/// let order = Record::new().key("customer-7").value(r#"{"total": 12}"#).header("trace", "4bf92f").partition(3);
/// # let _ = order;
/// ```
#[derive(Clone, Default)]
pub struct Record<'a> {
    pub(crate) partition: Option<i32>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// The shared bytes of `value`, if the batch may refer to them.
    pub(crate) shared: Option<&'a Bytes>,
    pub(crate) headers: Vec<HeaderRef<'a>>,
    pub(crate) opaque: u64,
    /// True if the record's report shows it again.
    pub(crate) is_kept: bool,
}

impl<'a> Record<'a> {
    /// Checks the timestamp. [`ProducerShared::send`](super::shared::ProducerShared::send) passes any on to the brokers.
    pub const fn check_timestamp(&self) -> Result<(), SendError> {
        match self.timestamp {
            Some(timestamp) if timestamp < 0 => Err(SendError::InvalidTimestamp(timestamp)),
            _ => Ok(()),
        }
    }

    /// Creates a record with neither key nor value.
    pub const fn new() -> Self {
        Self {
            partition: None,
            timestamp: None,
            key: None,
            value: None,
            shared: None,
            headers: Vec::new(),
            opaque: 0,
            is_kept: false,
        }
    }

    /// Creates a record without headers from its parts: partition, timestamp in milliseconds since 1970, key, value, and the
    /// number that the delivery report returns.
    #[inline]
    pub const fn of(
        partition: Option<i32>,
        timestamp: Option<i64>,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
        opaque: u64,
    ) -> Self {
        Self { partition, timestamp, key, value, shared: None, headers: Vec::new(), opaque, is_kept: false }
    }

    /// Keeps the record in the memory of its batch until its report is dropped, which can read it
    /// ([`DeliveryBatch::records`](super::report::DeliveryBatch::records)).
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn kept_for_its_report(mut self, is_kept: bool) -> Self {
        self.is_kept = is_kept;
        self
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

    /// Sets the value. An uncompressed value of 16 KiB or more is not copied: the batch keeps a reference until the record is
    /// delivered or has failed.
    #[must_use]
    pub fn shared_value(mut self, value: &'a Bytes) -> Self {
        self.value = Some(value);
        self.shared = Some(value);
        self
    }

    /// Sets the partition. Without it the partitioner chooses one.
    #[must_use]
    pub const fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sets the timestamp in milliseconds since 1970. Without it the record has the time of the call.
    #[must_use]
    pub const fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// Appends a header. The same key may appear more than once. [`Record::null_header`] appends one without a value.
    #[must_use]
    pub fn header(
        mut self,
        key: &'a (impl AsRef<str> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        self.headers.push(HeaderRef { key: key.as_ref().as_bytes(), value: Some(value.as_ref()) });
        self
    }

    /// Appends a header whose value is null.
    #[must_use]
    pub fn null_header(mut self, key: &'a (impl AsRef<str> + ?Sized)) -> Self {
        self.headers.push(HeaderRef { key: key.as_ref().as_bytes(), value: None });
        self
    }

    /// Appends a header of a consumed record, whose key need not be UTF-8.
    #[must_use]
    pub fn raw_header(mut self, header: HeaderRef<'a>) -> Self {
        self.headers.push(header);
        self
    }

    /// Sets a number of the application's that the delivery report returns.
    #[must_use]
    pub const fn opaque(mut self, opaque: u64) -> Self {
        self.opaque = opaque;
        self
    }

    /// Returns the bytes of key, value and headers, which count for the queue's limit.
    #[inline]
    pub(crate) fn payload_bytes(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len)).sum();
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len) + headers
    }
}

/// Shows the bytes as text, shortened.
impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("partition", &self.partition)
            .field("timestamp", &self.timestamp)
            .field("key", &self.key.map(Shown))
            .field("value", &self.value.map(Shown))
            .field("headers", &self.headers.len())
            .field("opaque", &self.opaque)
            .finish()
    }
}

/// Error: a record was not queued. The call may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The limit `queue.buffering.max.messages` or `queue.buffering.max.kbytes` is reached: wait for deliveries.
    QueueFull,
    /// The record is larger than `message.max.bytes`.
    MessageTooLarge {
        /// The bytes of the record's key, value and headers.
        size: usize,
        /// The bytes that the encoding adds at most, which count for the limit too.
        overhead: usize,
        /// The limit.
        limit: usize,
    },
    /// The topic has no such partition.
    UnknownPartition {
        /// The requested partition.
        partition: i32,
        /// The number of partitions of the topic.
        count: i32,
    },
    /// The cluster refuses records for the topic.
    Topic(Error),
    /// The record's timestamp is before 1970.
    InvalidTimestamp(i64),
    /// The producer is closed or closing.
    Closed,
    /// The producer had a fatal error and accepts no more records.
    Fatal(Error),
    /// The producer is transactional, and no transaction accepts records.
    State(Error),
    /// The call would deadlock: a delivery callback runs on the thread that the call waits for.
    WouldDeadlock(Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull => ErrorKind::QueueFull.fmt(f),
            Self::MessageTooLarge { size, overhead, limit } => write!(
                f,
                "the message has {size} bytes and up to {overhead} more when encoded; message.max.bytes={limit}"
            ),
            Self::UnknownPartition { partition, count } => {
                write!(f, "partition {partition} does not exist: the topic has {count}")
            }
            Self::Topic(error) | Self::Fatal(error) | Self::State(error) | Self::WouldDeadlock(error) => {
                error.fmt(f)
            }
            Self::InvalidTimestamp(timestamp) => {
                write!(f, "the timestamp {timestamp} is negative; it is in milliseconds since 1970")
            }
            Self::Closed => ErrorKind::Closed.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        let kind = match &error {
            SendError::Topic(error)
            | SendError::Fatal(error)
            | SendError::State(error)
            | SendError::WouldDeadlock(error) => {
                return error.clone();
            }
            SendError::QueueFull => ErrorKind::QueueFull,
            SendError::MessageTooLarge { .. } => ErrorKind::MessageTooLarge,
            SendError::UnknownPartition { .. } => ErrorKind::UnknownPartition,
            SendError::InvalidTimestamp(_) => ErrorKind::InvalidArgument,
            SendError::Closed => ErrorKind::Closed,
        };
        let detail = match kind {
            ErrorKind::QueueFull | ErrorKind::Closed => String::new(),
            _ => error.to_string(),
        };
        Self::new(kind, detail)
    }
}
