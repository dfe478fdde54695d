//! The memory of batches when no batch has it: stacks of chunks and of lists, so that what was used last, which is still in the
//! cache, is used next.
//!
//! A batch takes its lists and its first chunk in one step, under one lock, and gives back all that it has in another. Neither calls
//! the allocator while the pool has what the batch needs.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::chunk::{CHUNK_BYTES, Chunk, SMALL_CHUNK_BYTES, Segment, TINY_CHUNK_BYTES, TINY_UP_TO};

/// A pool of the memory of batches. Cheap to clone; all clones share one stock.
#[derive(Clone, Default)]
pub struct ChunkPool {
    stock: Arc<Mutex<Stock>>,
}

#[derive(Default)]
struct Stock {
    /// The idle chunks of each of [`SIZES`].
    idle: [Idle<Box<[u8]>>; SIZES.len()],
    lists: Idle<Lists>,
    in_use_bytes: usize,
}

/// The sizes of chunks, in ascending order.
const SIZES: [usize; 5] =
    [TINY_CHUNK_BYTES, 2 * TINY_CHUNK_BYTES, TINY_UP_TO, SMALL_CHUNK_BYTES, CHUNK_BYTES];

/// The lists of a batch, without entries.
#[derive(Default)]
pub(super) struct Lists {
    /// The segments in front of the chunk that is being filled.
    pub(super) full: Vec<Segment>,
    /// A number for each record, which the batch itself does not use.
    pub(super) numbers: Vec<u64>,
}

/// The largest numbers of entries that a list keeps room for while it is idle: 2 and 8 KiB.
const MOST_SEGMENTS: usize = 64;
const MOST_NUMBERS: usize = 1024;

/// Idle memory of one kind, the most recently used on top.
struct Idle<T> {
    items: Vec<T>,
    /// The lowest number of idle items since the last call of [`ChunkPool::trim`].
    fewest: usize,
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self { items: Vec::new(), fewest: 0 }
    }
}

impl<T> Idle<T> {
    const fn len(&self) -> usize {
        self.items.len()
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.items.pop();
        self.fewest = self.fewest.min(self.items.len());
        item
    }

    /// Takes the items that were idle all the time since the last call. They are at the bottom of the stack.
    fn take_unused(&mut self) -> Vec<T> {
        let used = self.items.split_off(self.fewest.min(self.items.len()));
        self.fewest = used.len();
        mem::replace(&mut self.items, used)
    }
}

impl Lists {
    /// Removes the entries, and the room of lists that were large.
    fn cleared(mut self) -> Self {
        self.full.clear();
        self.numbers.clear();
        if self.full.capacity() > MOST_SEGMENTS {
            self.full = Vec::new();
        }
        if self.numbers.capacity() > MOST_NUMBERS {
            self.numbers = Vec::new();
        }
        self
    }
}

impl ChunkPool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes in chunks that batches hold.
    pub fn in_use_bytes(&self) -> usize {
        self.stock().in_use_bytes
    }

    /// Returns the number of bytes in idle chunks.
    pub fn idle_bytes(&self) -> usize {
        let stock = self.stock();
        SIZES.iter().zip(&stock.idle).map(|(size, idle)| size * idle.len()).sum()
    }

    /// Frees the memory that stayed idle since the previous call. Periodic calls give the pool the size of the working
    /// set between two of them: they shrink it after a peak without taking memory from a busy one.
    pub fn trim(&self) {
        let unused = {
            let mut stock = self.stock();
            (stock.idle.each_mut().map(Idle::take_unused), stock.lists.take_unused())
        };
        // Thousands of chunks may take milliseconds to free: batches take and return chunks meanwhile.
        drop(unused);
    }

    /// Takes a chunk of at least `bytes`, or the largest.
    pub(super) fn take(&self, bytes: usize) -> Chunk {
        let (idle, size) = self.stock().take(bytes);
        Chunk::of(idle, size)
    }

    /// Takes lists, and the first chunk of a batch with at least `bytes`.
    pub(super) fn take_first(&self, bytes: usize) -> (Lists, Chunk) {
        let (lists, (idle, size)) = {
            let mut stock = self.stock();
            (stock.lists.pop(), stock.take(bytes))
        };
        (lists.unwrap_or_default(), Chunk::of(idle, size))
    }

    /// Takes back the chunks of a batch, and its lists.
    pub(super) fn give_back(&self, last: Chunk, mut lists: Lists) {
        // Values of the application, which a batch refers to, are freed without the lock.
        lists.full.retain(|segment| matches!(segment, Segment::Chunk(_)));
        let mut stock = self.stock();
        // Last in, first out: the chunk that was filled last is used next.
        for segment in lists.full.drain(..) {
            if let Segment::Chunk(chunk) = segment {
                stock.put(chunk);
            }
        }
        stock.put(last);
        let lists = lists.cleared();
        if lists.full.capacity() > 0 || lists.numbers.capacity() > 0 {
            stock.lists.items.push(lists);
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        // The pool is consistent after every statement, so a panic elsewhere does not corrupt it.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    /// Counts a chunk of at least `bytes`, or the largest, and returns its size and the memory, if there is some.
    fn take(&mut self, bytes: usize) -> (Option<Box<[u8]>>, usize) {
        let index = SIZES.iter().position(|size| *size >= bytes).unwrap_or(SIZES.len() - 1);
        self.in_use_bytes += SIZES[index];
        (self.idle[index].pop(), SIZES[index])
    }

    fn put(&mut self, chunk: Chunk) {
        let size = chunk.bytes.len();
        if let Some(index) = SIZES.iter().position(|known| *known == size) {
            self.in_use_bytes -= size;
            self.idle[index].items.push(chunk.bytes);
        }
    }
}

impl fmt::Debug for ChunkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stock = self.stock();
        f.debug_struct("ChunkPool")
            .field("in_use_bytes", &stock.in_use_bytes)
            .field("idle", &stock.idle.iter().map(Idle::len).sum::<usize>())
            .finish()
    }
}
