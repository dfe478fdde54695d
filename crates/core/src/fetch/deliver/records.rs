//! The records and events that one poll returns, and an iterator over the records.

use std::sync::Arc;

use ottla_protocol::batch::Records as RecordWalk;

use super::{
    super::{assignment::AssignmentVersion, partition::PartitionHandle, queue::FetchQueue},
    buffer::RecordBatch,
    event::{ConsumerEvent, EventSource},
    fetched::FetchedRecords,
    message::MessageRef,
    walk::PieceWalk,
};

/// The result of one poll: records of any number of partitions, and events.
#[derive(Debug, Default)]
pub struct Records {
    pub(super) fetched: Vec<Arc<FetchedRecords>>,
    pub(super) events: Vec<ConsumerEvent>,
    /// The partition of each event that becomes stale when the assignment changes.
    pub(super) sources: Vec<Option<EventSource>>,
    bytes: usize,
    /// The queue to which damaged records are reported.
    queue: Option<Arc<FetchQueue>>,
}

/// An iterator over the records of [`Records`].
#[derive(Debug)]
pub struct MessageIter<'a> {
    rest: std::slice::Iter<'a, Arc<FetchedRecords>>,
    batches: std::slice::Iter<'a, RecordBatch>,
    current: Option<(&'a Arc<FetchedRecords>, &'a RecordBatch)>,
    walk: Option<RecordWalk<'a>>,
    queue: Option<&'a FetchQueue>,
}

impl Records {
    /// True if there is neither a record nor an event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.fetched.iter().all(|fetched| fetched.messages == 0)
    }

    /// Returns the number of records according to their batch headers, including records before the requested offset.
    pub fn len(&self) -> usize {
        self.fetched.iter().map(|fetched| fetched.messages).sum()
    }

    /// Returns the size of the records in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of chunks: one per partition and fetch.
    pub const fn piece_count(&self) -> usize {
        self.fetched.len()
    }

    /// Returns the chunks: the result of each fetch for each partition, with an iterator over its records.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = (&FetchedRecords, MessageIter<'_>)> {
        self.fetched.iter().map(|fetched| {
            (&**fetched, MessageIter::new(std::slice::from_ref(fetched), self.queue.as_deref()))
        })
    }

    /// Returns the events.
    pub fn events(&self) -> &[ConsumerEvent] {
        &self.events
    }

    /// Iterates over all records.
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

    /// Returns the chunks, for iterating over each in runs, and the events.
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

    /// Adds an event that becomes stale with the assignment of its partition.
    pub(crate) fn push_note(
        &mut self,
        handle: Arc<PartitionHandle>,
        version: AssignmentVersion,
        event: ConsumerEvent,
    ) {
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

    /// Advances to the next batch, of the same or the next partition. Returns false at the end.
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
            let mut batches = fetched.readable().iter();
            if let Some(first) = batches.next() {
                self.batches = batches;
                self.current = Some((fetched, first));
                self.walk = Some(first.walk());
                return true;
            }
        }
    }

    /// Handles a record that can't be read: nothing behind it is returned, unless the batch's rest may be left out.
    #[cold]
    fn handle_damage(&mut self) {
        let Some((fetched, batch)) = self.current else { return };
        if let Some(queue) = self.queue {
            queue.handle_bad_record(fetched, batch);
        }
        if fetched.is_stopped() {
            self.batches = [].iter();
        }
        self.next_batch();
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
                Some(Err(_)) => self.handle_damage(),
                None => {
                    self.next_batch();
                }
            }
        }
    }
}
