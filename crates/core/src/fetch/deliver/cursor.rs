//! A cursor that takes records one by one.
//!
//! # Pitfalls
//!
//! - A fetch may return nothing but an aborted transaction, so the cursor has records of several fetches of a partition. Those
//!   of a paused partition go back to the queue together, or the position would go back when they are read
//!   (`position_does_not_go_back_when_an_aborted_transaction_is_set_aside`).
//! - Before a damaged record stops its partition, the records before it have to be handed out: they are not fetched again
//!   (`damaged_record_stops_behind_the_records_before_it`).

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::batch::{BatchHeader, Records as RecordWalk};

use super::{
    super::{partition::PartitionHandle, queue::FetchQueue},
    buffer::RecordBatch,
    event::{ConsumerEvent, EventSource},
    fetched::FetchedRecords,
    message::Message,
    records::Records,
};

/// A position in [`Records`] from which single records are taken.
#[derive(Debug, Default)]
pub struct RecordCursor {
    pub(super) rest: VecDeque<Arc<FetchedRecords>>,
    pub(super) batch: usize,
    /// The start of the next record in the batch, and the number of records left in the batch.
    pub(super) place: Option<(usize, i32)>,
    pub(super) events: VecDeque<(Option<EventSource>, ConsumerEvent)>,
}

/// The next item: a record or an event.
#[derive(Debug)]
pub enum Next {
    /// A record.
    Message(Message),
    /// An event.
    Event(ConsumerEvent),
}

impl RecordCursor {
    /// Appends records and events, to be returned after the current ones.
    pub fn push(&mut self, records: Records) {
        self.rest.extend(records.fetched);
        self.events.extend(records.sources.into_iter().zip(records.events));
    }

    /// Returns the next record; after the records, their events. Stale records are dropped; records of partitions that
    /// were paused meanwhile go back to `queue`.
    pub fn next(&mut self, queue: &FetchQueue) -> Option<Next> {
        while let Some(fetched) = self.rest.front() {
            if fetched.handle.version() != fetched.version {
                self.next_partition();
                continue;
            }
            if fetched.handle.is_paused() {
                let handle = Arc::clone(&fetched.handle);
                queue.set_all_aside(self.take_partition(&handle));
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
                        let epoch = batch.header.partition_leader_epoch;
                        fetched.handle.set_position(record.offset + 1, epoch);
                        return Some(Next::Message(message));
                    }
                }
                outcome => {
                    if outcome.is_some() {
                        queue.handle_bad_record(fetched, batch);
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

    /// Moves the remaining records into `into`.
    pub fn take(&mut self, into: &mut Records, queue: &Arc<FetchQueue>) {
        let mut paused = Vec::new();
        while let Some(rest) = self.take_rest() {
            if rest.handle.version() != rest.version {
                continue;
            }
            if rest.handle.is_paused() {
                paused.push(rest);
            } else {
                rest.handle.set_position(rest.next_offset, rest.last_epoch());
                into.push(queue, rest);
            }
        }
        queue.set_all_aside(paused);
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

    /// Puts the remaining records back to the front of `queue`; events that were not returned are dropped.
    pub fn give_back(&mut self, queue: &FetchQueue) {
        let rest: Vec<_> = std::iter::from_fn(|| self.take_rest()).collect();
        queue.set_all_aside(rest.into_iter().filter(|rest| rest.handle.version() == rest.version));
    }

    fn next_partition(&mut self) {
        if let Some(done) = self.rest.pop_front()
            && done.handle.version() == done.version
        {
            done.handle.set_position(done.next_offset, done.last_epoch());
        }
        self.batch = 0;
        self.place = None;
    }

    /// Takes the remaining records of this partition, which is that of the first ones, from all fetches.
    fn take_partition(&mut self, handle: &Arc<PartitionHandle>) -> Vec<FetchedRecords> {
        let mut taken: Vec<_> = self.take_rest().into_iter().collect();
        let (same, others) =
            std::mem::take(&mut self.rest).into_iter().partition(|rest| Arc::ptr_eq(&rest.handle, handle));
        self.rest = same;
        taken.extend(std::iter::from_fn(|| self.take_rest()));
        self.rest = others;
        taken
    }

    /// Takes the remaining records of the first fetch.
    pub(super) fn take_rest(&mut self) -> Option<FetchedRecords> {
        let fetched = self.rest.pop_front()?;
        let mut batches: Vec<RecordBatch> = fetched.batches.iter().skip(self.batch).cloned().collect();
        self.batch = 0;
        if let (Some((at, left)), Some(batch)) = (self.place.take(), batches.first_mut()) {
            batch.pass(at, left);
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
