//! Records in the application's hands: views into the buffers that came from the socket.
//!
//! ```text
//!  Records ──► FetchedRecords (one partition of one fetch) ──► RecordBatch ──► bytes of a shared FetchBuffer
//!     │ iter()                                                                      ▲
//!     └──► MessageRef: borrowed            Message: owned, keeps the buffer alive ──┘
//! ```
//!
//! A buffer goes back to its pool when nothing looks into it any more.

use std::{collections::VecDeque, fmt, ops::Range, sync::Arc};

use ottla_protocol::batch::{BatchHeader, Headers, RecordView, Records as RecordWalk};

use super::{decode::Decoded, partition::PartitionHandle, queue::FetchQueue};
use crate::{
    broker::buffer::BufferPool, cluster::metadata::RecreatedTopic, config::OffsetReset, error::Error,
};

/// Bytes that came from the socket or out of a codec. They return to the pool with the last reference.
pub struct FetchBuffer {
    bytes: Vec<u8>,
    pool: BufferPool,
}

/// A batch of records that passed all checks, without copying it.
#[derive(Clone, Debug)]
pub(crate) struct RecordBatch {
    buffer: Arc<FetchBuffer>,
    /// The records' bytes, behind the batch's header.
    bytes: Range<usize>,
    header: BatchHeader,
    /// Records before this offset were not asked for.
    first_offset: i64,
}

/// What one fetch brought of one partition.
pub struct FetchedRecords {
    pub(crate) handle: Arc<PartitionHandle>,
    pub(crate) version: u64,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) next_offset: i64,
    /// Who they were fetched from; -1 if its id is not known.
    pub(crate) broker_id: i32,
}

/// What a consumer hands out at once: records of any number of partitions, and events.
#[derive(Debug, Default)]
pub struct Records {
    fetched: Vec<Arc<FetchedRecords>>,
    events: Vec<ConsumerEvent>,
    /// What each event is about, where it goes out of date with its partition.
    sources: Vec<Option<EventSource>>,
    bytes: usize,
    /// Told of records that turn out to be damaged.
    queue: Option<Arc<FetchQueue>>,
}

/// Something about a partition or about the client that comes between the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConsumerEvent {
    /// There is nothing more at the moment (`enable.partition.eof`).
    EndOfPartition {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset that the next record will get.
        offset: i64,
    },
    /// The partition's log was cut off behind what was read, by a leader that did not have it all (KIP-320): records from
    /// `divergence` on are gone, and it goes on with what is there now.
    LogTruncated {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// Where the application was.
        position: i64,
        /// The first offset that is not what was read; `None` if the leader can't tell, and it goes on as by
        /// `auto.offset.reset`.
        divergence: Option<i64>,
    },
    /// The leader has no such offset, and the partition goes on as by `auto.offset.reset`: records may be left out, or come
    /// again.
    OffsetReset {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset that was asked for.
        offset: i64,
        /// Where it goes on.
        to: OffsetReset,
    },
    /// A topic was deleted and made anew under its old name; `topic.recreate.policy` says how it goes on. Nothing of the
    /// old topic comes after this.
    TopicRecreated(RecreatedTopic),
    /// Something went wrong. The consumer goes on by itself, unless the error says otherwise.
    Error(Error),
}

/// The event as a sentence.
impl fmt::Display for ConsumerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfPartition { topic, partition, offset } => {
                write!(f, "end of {topic} [{partition}] at offset {offset}")
            }
            Self::LogTruncated { topic, partition, position, divergence } => {
                write!(
                    f,
                    "{topic} [{partition}]: the log was cut off: it was read up to offset {position}, and "
                )?;
                match divergence {
                    Some(offset) => write!(f, "the records from offset {offset} on are gone"),
                    None => write!(f, "the records from an unknown one on are gone"),
                }
            }
            Self::OffsetReset { topic, partition, offset, to } => {
                let to = match to {
                    OffsetReset::Beginning => "the beginning",
                    OffsetReset::End => "the end",
                    OffsetReset::Error => "where the application says",
                };
                write!(
                    f,
                    "{topic} [{partition}]: there is no offset {offset}; it goes on at {to} (auto.offset.reset)"
                )
            }
            Self::TopicRecreated(RecreatedTopic { name, .. }) => {
                write!(
                    f,
                    "{name}: the topic was deleted and made anew (topic.recreate.policy says how it goes on)"
                )
            }
            Self::Error(error) => error.fmt(f),
        }
    }
}

/// A partition with the version for which something was said of it.
type EventSource = (Arc<PartitionHandle>, u64);

/// A record, borrowed from [`Records`].
#[derive(Clone, Copy, Debug)]
pub struct MessageRef<'a> {
    fetched: &'a Arc<FetchedRecords>,
    batch: &'a RecordBatch,
    record: RecordView<'a>,
}

/// A record that keeps the buffer alive in which it is.
#[derive(Clone)]
pub struct Message {
    fetched: Arc<FetchedRecords>,
    /// Its batch's place there.
    batch: usize,
    offset: i64,
    timestamp: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Range<usize>,
    header_count: u32,
}

/// Walks through the records of [`Records`].
#[derive(Debug)]
pub struct MessageIter<'a> {
    rest: std::slice::Iter<'a, Arc<FetchedRecords>>,
    batches: std::slice::Iter<'a, RecordBatch>,
    current: Option<(&'a Arc<FetchedRecords>, &'a RecordBatch)>,
    walk: Option<RecordWalk<'a>>,
    queue: Option<&'a FetchQueue>,
}

impl FetchBuffer {
    /// Takes care of bytes.
    pub(crate) const fn new(bytes: Vec<u8>, pool: BufferPool) -> Self {
        Self { bytes, pool }
    }

    /// All of them, the ones behind the frame's end too.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where `part`, which was borrowed from this buffer, is in it.
    pub(crate) fn range_of(&self, part: &[u8]) -> Range<usize> {
        let start = part.as_ptr() as usize - self.bytes.as_ptr() as usize;
        start..start + part.len()
    }
}

impl Drop for FetchBuffer {
    fn drop(&mut self) {
        // A small answer's buffer has just its own size: the next large one could not use it.
        if self.bytes.capacity() >= SMALLEST_POOLED {
            self.pool.put(std::mem::take(&mut self.bytes));
        }
    }
}

const SMALLEST_POOLED: usize = 64 * 1024;

impl RecordBatch {
    /// A batch whose records, without the header, are in `buffer`.
    pub(crate) const fn new(
        buffer: Arc<FetchBuffer>,
        bytes: Range<usize>,
        header: BatchHeader,
        first_offset: i64,
    ) -> Self {
        Self { buffer, bytes, header, first_offset }
    }

    /// Its records are at the same place of another buffer.
    pub(crate) fn move_to(&mut self, buffer: &Arc<FetchBuffer>) {
        self.buffer = Arc::clone(buffer);
    }

    fn walk(&self) -> RecordWalk<'_> {
        RecordWalk::new(&self.header, &self.buffer.bytes[self.bytes.clone()])
    }
}

impl FetchedRecords {
    /// What was decoded of a partition.
    pub(crate) fn new(handle: Arc<PartitionHandle>, version: u64, broker_id: i32, decoded: Decoded) -> Self {
        let Decoded { batches, next_offset, messages, bytes, .. } = decoded;
        Self { handle, version, batches, messages, bytes, next_offset, broker_id }
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        self.handle.topic()
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.handle.partition()
    }

    /// False if the application meanwhile wants the partition from elsewhere, or not at all.
    pub fn is_current(&self) -> bool {
        self.handle.version() == self.version
    }

    /// True while nothing of the partition is handed out.
    pub fn is_paused(&self) -> bool {
        self.handle.is_paused()
    }

    /// The next record that will be handed out is this one.
    pub fn set_position(&self, offset: i64) {
        if self.is_current() {
            self.handle.set_position(offset);
        }
    }

    /// Behind the last record.
    pub const fn next_offset(&self) -> i64 {
        self.next_offset
    }
}

impl Records {
    /// True if there is neither a record nor an event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.fetched.iter().all(|fetched| fetched.messages == 0)
    }

    /// How many records there are, as their batches say; records before the offset that was asked for count too.
    pub fn len(&self) -> usize {
        self.fetched.iter().map(|fetched| fetched.messages).sum()
    }

    /// The records' bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many pieces there are: one per partition and fetch.
    pub const fn piece_count(&self) -> usize {
        self.fetched.len()
    }

    /// The pieces: what each fetch brought of each partition, with its records.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = (&FetchedRecords, MessageIter<'_>)> {
        self.fetched.iter().map(|fetched| {
            (&**fetched, MessageIter::new(std::slice::from_ref(fetched), self.queue.as_deref()))
        })
    }

    /// What else is to be said.
    pub fn events(&self) -> &[ConsumerEvent] {
        &self.events
    }

    /// All records.
    pub fn iter(&self) -> MessageIter<'_> {
        MessageIter::new(&self.fetched, self.queue.as_deref())
    }

    pub(crate) fn push(&mut self, queue: &Arc<FetchQueue>, fetched: FetchedRecords) {
        if self.queue.is_none() {
            self.queue = Some(Arc::clone(queue));
        }
        self.bytes += fetched.bytes;
        self.fetched.push(Arc::new(fetched));
    }

    /// The pieces to be walked through one by one, and the events.
    pub fn into_walks(self) -> (Vec<PieceWalk>, Vec<ConsumerEvent>) {
        let queue = self.queue;
        let walk = |fetched| PieceWalk { fetched, queue: queue.clone(), batch: 0, place: None };
        (self.fetched.into_iter().map(walk).collect(), self.events)
    }

    /// Adds an event.
    pub fn push_event(&mut self, event: ConsumerEvent) {
        self.events.push(event);
        self.sources.push(None);
    }

    /// Adds an event that goes out of date with its partition.
    pub(crate) fn push_note(&mut self, handle: Arc<PartitionHandle>, version: u64, event: ConsumerEvent) {
        self.events.push(event);
        self.sources.push(Some((handle, version)));
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = MessageRef<'a>;
    type IntoIter = MessageIter<'a>;

    fn into_iter(self) -> MessageIter<'a> {
        self.iter()
    }
}

impl<'a> MessageIter<'a> {
    fn new(fetched: &'a [Arc<FetchedRecords>], queue: Option<&'a FetchQueue>) -> Self {
        let mut iter = Self { rest: fetched.iter(), batches: [].iter(), current: None, walk: None, queue };
        iter.next_batch();
        iter
    }

    /// Goes to the next batch, of the same partition or of the next one; false at the end.
    #[cold]
    fn next_batch(&mut self) -> bool {
        loop {
            if let (Some(batch), Some((fetched, _))) = (self.batches.next(), self.current) {
                self.current = Some((fetched, batch));
                self.walk = Some(batch.walk());
                return true;
            }
            let Some(fetched) = self.rest.next() else {
                self.walk = None;
                return false;
            };
            let mut batches = fetched.batches.iter();
            if let Some(first) = batches.next() {
                self.batches = batches;
                self.current = Some((fetched, first));
                self.walk = Some(first.walk());
                return true;
            }
        }
    }

    #[cold]
    fn report(&self) {
        if let (Some(queue), Some((fetched, batch))) = (self.queue, self.current) {
            queue.report_bad_record(&fetched.handle, fetched.version, batch.header.base_offset);
        }
    }
}

impl<'a> Iterator for MessageIter<'a> {
    type Item = MessageRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<MessageRef<'a>> {
        loop {
            match self.walk.as_mut()?.next() {
                Some(Ok(record)) => {
                    let (fetched, batch) = self.current?;
                    if record.offset >= batch.first_offset {
                        return Some(MessageRef { fetched, batch, record });
                    }
                }
                Some(Err(_)) => self.report(),
                None => {
                    self.next_batch();
                }
            }
        }
    }
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

    /// The timestamp, in milliseconds since 1970; -1 if there is none.
    #[inline]
    pub const fn timestamp(&self) -> i64 {
        self.record.timestamp
    }

    /// True if the timestamp is the time at which the broker wrote the record.
    pub const fn is_log_append_time(&self) -> bool {
        self.batch.header.is_log_append_time()
    }

    /// The leader epoch with which it was written; -1 if its format has none.
    #[inline]
    pub const fn leader_epoch(&self) -> i32 {
        self.batch.header.partition_leader_epoch
    }

    /// The broker that it was fetched from; `None` if its id is not known.
    #[inline]
    pub fn broker_id(&self) -> Option<i32> {
        Some(self.fetched.broker_id).filter(|id| *id >= 0)
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

    /// The headers, in the order in which they were written; a key may come more than once.
    pub const fn headers(&self) -> Headers<'a> {
        self.record.headers()
    }

    /// The record with a share in its buffer.
    pub fn to_message(&self) -> Message {
        let places = self.fetched.batches.iter();
        let batch = places.take_while(|batch| !std::ptr::eq(*batch, self.batch)).count();
        Message::new(self.fetched, batch, self.batch, &self.record)
    }
}

impl Message {
    #[inline]
    fn new(
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

    /// The timestamp, in milliseconds since 1970; -1 if there is none.
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

    /// The headers, in the order in which they were written; a key may come more than once.
    pub fn headers(&self) -> Headers<'_> {
        Headers::new(&self.bytes()[self.headers.clone()], self.header_count)
    }
}

/// A place in [`Records`] from which single records are taken.
#[derive(Debug, Default)]
pub struct RecordCursor {
    rest: VecDeque<Arc<FetchedRecords>>,
    batch: usize,
    /// Where the next record begins in the batch, and how many are left in it.
    place: Option<(usize, i32)>,
    events: VecDeque<(Option<EventSource>, ConsumerEvent)>,
}

/// A place in what one fetch brought of one partition, from which records are taken in runs. It moves no position.
#[derive(Clone, Debug)]
pub struct PieceWalk {
    fetched: Arc<FetchedRecords>,
    queue: Option<Arc<FetchQueue>>,
    batch: usize,
    place: Option<(usize, i32)>,
}

impl PieceWalk {
    /// What is walked through; holds the memory that the records are in.
    pub const fn fetched(&self) -> &Arc<FetchedRecords> {
        &self.fetched
    }

    /// Shows up to `limit` records to `each`; answers how many they were, 0 at the end.
    pub fn run(&mut self, limit: usize, mut each: impl FnMut(&MessageRef<'_>)) -> usize {
        let mut count = 0;
        while count < limit
            && let Some(batch) = self.fetched.batches.get(self.batch)
        {
            let (at, left) = self.place.unwrap_or((batch.bytes.start, batch.header.record_count));
            let header = BatchHeader { record_count: left, ..batch.header };
            let mut walk = RecordWalk::new(&header, &batch.buffer.bytes[at..batch.bytes.end]);
            let mut walked = 0;
            let over = loop {
                if count == limit {
                    break false;
                }
                match walk.next() {
                    Some(Ok(record)) => {
                        walked += 1;
                        if record.offset >= batch.first_offset {
                            count += 1;
                            each(&MessageRef { fetched: &self.fetched, batch, record });
                        }
                    }
                    Some(Err(_)) => {
                        if let Some(queue) = &self.queue {
                            let (handle, version) = (&self.fetched.handle, self.fetched.version);
                            queue.report_bad_record(handle, version, batch.header.base_offset);
                        }
                        break true;
                    }
                    None => break true,
                }
            };
            if over {
                self.batch += 1;
                self.place = None;
            } else {
                self.place = Some((at + walk.position(), left - walked));
            }
        }
        count
    }

    /// What was not shown yet.
    pub fn rest(self) -> Option<FetchedRecords> {
        let mut cursor = RecordCursor { batch: self.batch, place: self.place, ..RecordCursor::default() };
        cursor.rest.push_back(self.fetched);
        cursor.take_rest().filter(|rest| rest.messages > 0)
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// A record.
    Message(Message),
    /// An event.
    Event(ConsumerEvent),
}

impl RecordCursor {
    /// Goes on with these records and events when the ones before are through.
    pub fn push(&mut self, records: Records) {
        self.rest.extend(records.fetched);
        self.events.extend(records.sources.into_iter().zip(records.events));
    }

    /// The next record; then the events that came with the records. What is out of date meanwhile vanishes; what is
    /// paused meanwhile goes back to `queue`.
    pub fn next(&mut self, queue: &FetchQueue) -> Option<Next> {
        while let Some(fetched) = self.rest.front() {
            if fetched.handle.version() != fetched.version {
                self.next_partition();
                continue;
            }
            if fetched.handle.is_paused() {
                if let Some(rest) = self.take_rest() {
                    queue.set_aside(rest);
                }
                continue;
            }
            let Some(batch) = fetched.batches.get(self.batch) else {
                self.next_partition();
                continue;
            };
            let (at, left) = self.place.unwrap_or((batch.bytes.start, batch.header.record_count));
            let header = BatchHeader { record_count: left, ..batch.header };
            let mut walk = RecordWalk::new(&header, &batch.buffer.bytes[at..batch.bytes.end]);
            match walk.next() {
                Some(Ok(record)) => {
                    self.place = Some((at + walk.position(), left - 1));
                    if record.offset >= batch.first_offset {
                        let message = Message::new(fetched, self.batch, batch, &record);
                        fetched.handle.set_position(record.offset + 1);
                        return Some(Next::Message(message));
                    }
                }
                outcome => {
                    if outcome.is_some() {
                        queue.report_bad_record(&fetched.handle, fetched.version, batch.header.base_offset);
                    }
                    self.batch += 1;
                    self.place = None;
                }
            }
        }
        while let Some((source, event)) = self.events.pop_front() {
            if source.is_none_or(|(handle, version)| handle.version() == version) {
                return Some(Next::Event(event));
            }
        }
        None
    }

    /// What is left, as records again.
    pub fn take(&mut self, into: &mut Records, queue: &Arc<FetchQueue>) {
        while let Some(rest) = self.take_rest() {
            if rest.handle.version() != rest.version {
                continue;
            }
            if rest.handle.is_paused() {
                queue.set_aside(rest);
            } else {
                rest.handle.set_position(rest.next_offset);
                into.push(queue, rest);
            }
        }
        for (source, event) in self.events.drain(..) {
            match source {
                Some((handle, version)) if handle.version() == version => {
                    into.push_note(handle, version, event);
                }
                Some(_) => {}
                None => into.push_event(event),
            }
        }
    }

    fn next_partition(&mut self) {
        if let Some(done) = self.rest.pop_front()
            && done.handle.version() == done.version
        {
            done.handle.set_position(done.next_offset);
        }
        self.batch = 0;
        self.place = None;
    }

    /// The first partition's records that were not taken yet.
    fn take_rest(&mut self) -> Option<FetchedRecords> {
        let fetched = self.rest.pop_front()?;
        let mut batches: Vec<RecordBatch> = fetched.batches.iter().skip(self.batch).cloned().collect();
        self.batch = 0;
        if let (Some((at, left)), Some(batch)) = (self.place.take(), batches.first_mut()) {
            batch.bytes.start = at;
            batch.header.record_count = left;
        }
        Some(FetchedRecords {
            handle: Arc::clone(&fetched.handle),
            version: fetched.version,
            messages: batches.iter().map(|batch| batch.header.record_count as usize).sum(),
            bytes: batches.iter().map(|batch| batch.bytes.len()).sum(),
            next_offset: fetched.next_offset,
            broker_id: fetched.broker_id,
            batches,
        })
    }
}

impl fmt::Debug for FetchBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchBuffer({} bytes)", self.bytes.len())
    }
}

impl fmt::Debug for FetchedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedRecords")
            .field("partition", &self.handle)
            .field("messages", &self.messages)
            .field("next_offset", &self.next_offset)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic())
            .field("partition", &self.partition())
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
