//! One record, borrowed or owned; an owned record holds a reference to its buffer.

use std::{fmt, ops::Range, sync::Arc};

use ottla_protocol::{
    batch::{Headers, RecordView},
    vocabulary::NodeId,
};

use super::{
    super::{assignment::AssignmentVersion, partition::PartitionHandle},
    buffer::RecordBatch,
    fetched::FetchedRecords,
};
use crate::shown::Shown;

/// A record, borrowed from [`Records`](super::Records).
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    pub(super) fetched: &'a Arc<FetchedRecords>,
    pub(super) batch: &'a RecordBatch,
    pub(super) record: RecordView<'a>,
}

/// A record that keeps its buffer alive.
#[derive(Clone)]
pub struct Message {
    fetched: Arc<FetchedRecords>,
    /// The index of its batch in the fetched records.
    batch: usize,
    offset: i64,
    timestamp: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Range<usize>,
    header_count: u32,
}

impl<'a> MessageRef<'a> {
    /// The topic.
    #[inline]
    pub fn topic(&self) -> &'a str {
        self.fetched.handle.topic()
    }

    /// The partition.
    #[inline]
    pub fn partition(&self) -> i32 {
        self.fetched.handle.partition()
    }

    /// The offset in the partition.
    #[inline]
    pub const fn offset(&self) -> i64 {
        self.record.offset
    }

    /// The timestamp, in milliseconds since 1970; -1 without one.
    #[inline]
    pub const fn timestamp(&self) -> i64 {
        self.record.timestamp
    }

    /// Returns true if the timestamp is the time at which the broker appended the record.
    #[inline]
    pub const fn is_log_append_time(&self) -> bool {
        self.batch.header.is_log_append_time()
    }

    /// The leader epoch in which the record was written; -1 if its format has none.
    #[inline]
    pub const fn leader_epoch(&self) -> i32 {
        self.batch.header.partition_leader_epoch
    }

    /// The ID of the broker that the record was fetched from; `None` if it is unknown.
    #[inline]
    pub fn broker_id(&self) -> Option<i32> {
        self.fetched.broker_id.map(NodeId::get)
    }

    /// The key.
    #[inline]
    pub const fn key(&self) -> Option<&'a [u8]> {
        self.record.key
    }

    /// The value.
    #[inline]
    pub const fn value(&self) -> Option<&'a [u8]> {
        self.record.value
    }

    /// The headers, in the order in which they were written; a key may occur more than once.
    #[inline]
    pub const fn headers(&self) -> Headers<'a> {
        self.record.headers()
    }

    /// Returns an owned record that shares the buffer.
    pub fn to_message(&self) -> Message {
        let places = self.fetched.batches.iter();
        let batch = places.take_while(|batch| !std::ptr::eq(*batch, self.batch)).count();
        Message::new(self.fetched, batch, self.batch, &self.record)
    }
}

impl Message {
    #[inline]
    pub(super) fn new(
        fetched: &Arc<FetchedRecords>,
        place: usize,
        batch: &RecordBatch,
        record: &RecordView<'_>,
    ) -> Self {
        let buffer = &batch.buffer;
        Self {
            fetched: Arc::clone(fetched),
            batch: place,
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(|key| buffer.range_of(key)),
            value: record.value.map(|value| buffer.range_of(value)),
            headers: buffer.range_of(record.headers().bytes()),
            header_count: record.headers().len() as u32,
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.fetched.batches[self.batch].buffer.bytes
    }

    /// Returns the assignment that the record was fetched for.
    pub(crate) fn assignment(&self) -> (&Arc<PartitionHandle>, AssignmentVersion) {
        (&self.fetched.handle, self.fetched.version)
    }

    /// The leader epoch in which the record was written; -1 if its format has none.
    pub fn leader_epoch(&self) -> i32 {
        self.fetched.batches[self.batch].header.partition_leader_epoch
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.fetched.handle.topic()
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.fetched.handle.partition()
    }

    /// The offset in the partition.
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// The timestamp, in milliseconds since 1970; -1 without one.
    pub const fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// The key.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.clone().map(|range| &self.bytes()[range])
    }

    /// The value.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.clone().map(|range| &self.bytes()[range])
    }

    /// The headers, in the order in which they were written; a key may occur more than once.
    pub fn headers(&self) -> Headers<'_> {
        Headers::new(&self.bytes()[self.headers.clone()], self.header_count)
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageRef")
            .field("topic", &self.topic())
            .field("partition", &self.partition())
            .field("offset", &self.offset())
            .field("timestamp", &self.timestamp())
            .field("key", &self.key().map(Shown))
            .field("value", &self.value().map(Shown))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic())
            .field("partition", &self.partition())
            .field("offset", &self.offset)
            .field("timestamp", &self.timestamp)
            .field("key", &self.key().map(Shown))
            .field("value", &self.value().map(Shown))
            .finish_non_exhaustive()
    }
}
