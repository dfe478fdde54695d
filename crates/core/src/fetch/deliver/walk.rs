//! Iteration over records in runs.

use std::sync::Arc;

use ottla_protocol::batch::{BatchHeader, Records as RecordWalk};

use super::{
    super::queue::FetchQueue, buffer::RecordBatch, cursor::RecordCursor, fetched::FetchedRecords,
    message::MessageRef,
};

/// A cursor over the records of one partition in one fetch. Reading in runs does not move the partition's position.
#[derive(Clone, Debug)]
pub struct PieceWalk {
    pub(super) fetched: Arc<FetchedRecords>,
    pub(super) queue: Option<Arc<FetchQueue>>,
    pub(super) batch: usize,
    pub(super) place: Option<(usize, i32)>,
}

impl PieceWalk {
    /// Returns a cursor at the start of `fetched`, which skips damaged records without a report.
    pub const fn new(fetched: Arc<FetchedRecords>) -> Self {
        Self { fetched, queue: None, batch: 0, place: None }
    }

    /// Returns the fetched batches to walk through, which hold the memory of the records.
    pub const fn fetched(&self) -> &Arc<FetchedRecords> {
        &self.fetched
    }

    /// Calls `each` with up to `limit` records. Returns the number of records, 0 at the end.
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
                    // The records before it are handed out first.
                    Some(Err(_)) if count > 0 => break false,
                    Some(Err(_)) => {
                        if let Some(queue) = &self.queue {
                            queue.handle_bad_record(&self.fetched, batch);
                        }
                        break true;
                    }
                    None => break true,
                }
            };
            if over {
                let is_stopped = self.fetched.is_stopped();
                self.batch = if is_stopped { self.fetched.batches.len() } else { self.batch + 1 };
                self.place = None;
            } else {
                self.place = Some((at + walk.position(), left - walked));
                break;
            }
        }
        count
    }

    /// Returns the number of records that were not read yet, according to the headers of their batches.
    pub fn left(&self) -> usize {
        let of = |batch: &RecordBatch| usize::try_from(batch.header.record_count).unwrap_or(0);
        let Some(batch) = self.fetched.batches.get(self.batch) else { return 0 };
        let first = self.place.map_or_else(|| of(batch), |(_, left)| usize::try_from(left).unwrap_or(0));
        first + self.fetched.batches[self.batch + 1..].iter().map(of).sum::<usize>()
    }

    /// Returns the records that were not read yet.
    pub fn rest(self) -> Option<FetchedRecords> {
        let mut cursor = RecordCursor { batch: self.batch, place: self.place, ..RecordCursor::default() };
        cursor.rest.push_back(self.fetched);
        cursor.take_rest().filter(|rest| rest.messages > 0)
    }
}
