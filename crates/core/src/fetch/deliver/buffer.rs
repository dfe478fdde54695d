//! The bytes read from the socket, and the record batches in them.

use std::{fmt, ops::Range, sync::Arc};

use ottla_protocol::batch::{BatchHeader, Records as RecordWalk};

use crate::connection::buffer::BufferPool;

/// Bytes from the socket or from a codec. They return to the pool when the last reference is dropped.
pub struct FetchBuffer {
    pub(super) bytes: Vec<u8>,
    pool: BufferPool,
}

/// A batch of records that passed all checks. Its bytes are not copied.
#[derive(Clone, Debug)]
pub(crate) struct RecordBatch {
    pub(super) buffer: Arc<FetchBuffer>,
    /// The range of the records' bytes, after the batch header.
    pub(super) bytes: Range<usize>,
    pub(super) header: BatchHeader,
    /// The first requested offset; records before it are skipped.
    pub(super) first_offset: i64,
}

impl FetchBuffer {
    /// Wraps bytes that return to `pool`.
    pub(crate) const fn new(bytes: Vec<u8>, pool: BufferPool) -> Self {
        Self { bytes, pool }
    }

    /// Returns all bytes, including those after the end of the frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the range of `part`, which was borrowed from this buffer.
    #[inline]
    pub(crate) fn range_of(&self, part: &[u8]) -> Range<usize> {
        let start = part.as_ptr() as usize - self.bytes.as_ptr() as usize;
        start..start + part.len()
    }
}

impl Drop for FetchBuffer {
    fn drop(&mut self) {
        // The buffer of a small response has exactly the size of the response, too small for the next large one.
        if self.bytes.capacity() >= SMALLEST_POOLED {
            self.pool.put(std::mem::take(&mut self.bytes));
        }
    }
}

const SMALLEST_POOLED: usize = 64 * 1024;

impl RecordBatch {
    /// Creates a batch whose records, without the header, are in `buffer`.
    pub(crate) const fn new(
        buffer: Arc<FetchBuffer>,
        bytes: Range<usize>,
        header: BatchHeader,
        first_offset: i64,
    ) -> Self {
        Self { buffer, bytes, header, first_offset }
    }

    /// Replaces the buffer by one with the records at the same range.
    pub(crate) fn move_to(&mut self, buffer: &Arc<FetchBuffer>) {
        self.buffer = Arc::clone(buffer);
    }

    /// Returns the batch header.
    pub(crate) const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Returns the offset behind the last record that can be read and was not read before.
    pub(crate) fn readable_end(&self) -> i64 {
        let last = self.walk().map_while(Result::ok).last();
        last.map_or(self.first_offset, |record| self.first_offset.max(record.offset.saturating_add(1)))
    }

    /// Takes the records away that were read: those before the byte `at`, so that `left` are left.
    pub(super) fn pass(&mut self, at: usize, left: i32) {
        let read = usize::try_from(self.header.record_count - left).unwrap_or(0);
        let last = self.walk().map_while(Result::ok).take(read).last();
        if let Some(record) = last {
            self.first_offset = self.first_offset.max(record.offset.saturating_add(1));
        }
        self.bytes.start = at;
        self.header.record_count = left;
    }

    /// Returns an iterator over the records.
    pub(crate) fn walk(&self) -> RecordWalk<'_> {
        RecordWalk::new(&self.header, &self.buffer.bytes[self.bytes.clone()])
    }
}

impl fmt::Debug for FetchBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchBuffer({} bytes)", self.bytes.len())
    }
}
