//! The memory of batches that are being built: small chunks from a pool that works as a stack, so that the bytes
//! written last, which are still in the cache, are written next.
//!
//! A batch is a chain of chunks instead of one large buffer, because the memory that an application has open at the
//! same time determines what stays in the cache. The first chunks of a batch are small for producers with thousands of
//! partitions and a few records in each: the free part of the last chunk stays small compared with the batch. They are tiny if the
//! partition's last batch was, too: a batch that is known to become larger begins with one chunk instead of three.
//!
//! # Pitfalls
//!
//! - With 1,000 partitions most chunk memory was unused: a batch of a few KiB held a chunk of 4 KiB and one of 16 KiB.
//!   Chunks stay small until the batch is much larger than one of them
//!   (`thousand_batches_take_little_more_memory_than_their_records`).

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{checksum::Checksum, layout, prefetch::prefetch_for_writing};

/// The size of the first chunks of a batch that may stay tiny.
pub const TINY_CHUNK_BYTES: usize = 512;
/// The number of bytes of that batch in tiny chunks.
pub const TINY_UP_TO: usize = 2 * 1024;
/// The size of the chunks after them.
pub const SMALL_CHUNK_BYTES: usize = 4 * 1024;
/// The size of every chunk after the first [`SMALL_UP_TO`] bytes of a batch.
pub const CHUNK_BYTES: usize = 16 * 1024;
/// The number of bytes of a batch that are in small chunks. At most a third of a larger batch's memory is unused.
pub const SMALL_UP_TO: usize = 32 * 1024;
/// The divisor of a chunk's size that gives the largest rest which stays unused so that a record lies in one chunk.
const UNUSED_DIVISOR: usize = 8;

/// A pool of chunks. Cheap to clone; all clones share one stack of chunks.
#[derive(Clone, Default)]
pub struct ChunkPool {
    stock: Arc<Mutex<Stock>>,
}

#[derive(Default)]
struct Stock {
    /// The idle chunks of each of [`SIZES`].
    idle: [Idle; 3],
    in_use_bytes: usize,
}

/// The sizes of chunks.
const SIZES: [usize; 3] = [TINY_CHUNK_BYTES, SMALL_CHUNK_BYTES, CHUNK_BYTES];

/// An index into [`SIZES`].
#[derive(Clone, Copy)]
enum Size {
    Tiny,
    Small,
    Large,
}

/// Idle chunks of one size, the most recently used on top.
#[derive(Default)]
struct Idle {
    chunks: Vec<Box<[u8]>>,
    /// The lowest number of idle chunks since the last call of [`ChunkPool::trim`].
    fewest: usize,
}

impl Idle {
    const fn len(&self) -> usize {
        self.chunks.len()
    }

    fn pop(&mut self) -> Option<Box<[u8]>> {
        let chunk = self.chunks.pop();
        self.fewest = self.fewest.min(self.chunks.len());
        chunk
    }

    /// Takes the chunks that were idle all the time since the last call. They are at the bottom of the stack.
    fn take_unused(&mut self) -> Vec<Box<[u8]>> {
        let used = self.chunks.split_off(self.fewest.min(self.chunks.len()));
        self.fewest = used.len();
        mem::replace(&mut self.chunks, used)
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

    /// Frees the chunks that stayed idle since the previous call. Periodic calls give the pool the size of the working
    /// set between two of them: they shrink it after a peak without taking memory from a busy one.
    pub fn trim(&self) {
        let unused = {
            let mut stock = self.stock();
            stock.idle.each_mut().map(Idle::take_unused)
        };
        // Thousands of chunks may take milliseconds to free: batches take and return chunks meanwhile.
        drop(unused);
    }

    fn take(&self, size: Size) -> Chunk {
        let (index, size) = (size as usize, SIZES[size as usize]);
        let idle = {
            let mut stock = self.stock();
            stock.in_use_bytes += size;
            stock.idle[index].pop()
        };
        Chunk { bytes: idle.unwrap_or_else(|| vec![0; size].into_boxed_slice()), filled: 0 }
    }

    fn give_back(&self, chunks: impl Iterator<Item = Chunk>) {
        let mut stock = self.stock();
        // Last in, first out: the chunk that was filled last is used next.
        for chunk in chunks {
            let size = chunk.bytes.len();
            stock.in_use_bytes -= size;
            let index = match size {
                TINY_CHUNK_BYTES => Size::Tiny,
                SMALL_CHUNK_BYTES => Size::Small,
                _ => Size::Large,
            };
            stock.idle[index as usize].chunks.push(chunk.bytes);
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        // The pool is consistent after every statement, so a panic elsewhere does not corrupt it.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer from the pool.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Box<[u8]>,
    pub(super) filled: usize,
}

impl Chunk {
    /// Returns a chunk without memory.
    fn none() -> Self {
        Self { bytes: Box::default(), filled: 0 }
    }
}

/// A contiguous part of a batch.
#[derive(Debug)]
pub(super) enum Segment {
    /// Memory from the pool.
    Chunk(Chunk),
    /// A large value that is referenced instead of copied.
    External(Bytes),
}

impl Segment {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk) => &chunk.bytes[..chunk.filled],
            Self::External(bytes) => bytes,
        }
    }
}

/// The bytes of a batch as segments. Dropping it returns its chunks to the pool.
pub(super) struct ChunkChain {
    pool: ChunkPool,
    /// The full segments.
    full: Vec<Segment>,
    /// The chunk that is being filled; without memory before the first record.
    last: Chunk,
    full_len: usize,
    /// True if the first chunks are tiny.
    may_stay_tiny: bool,
    /// True if the checksum is computed while the batch grows, once it is large.
    sums_early: bool,
    /// The checksum of the records in the first segments. Boxed, because few batches are large enough to have one.
    summed: Option<Box<Summed>>,
}

/// The checksum of the leading segments.
#[derive(Debug)]
pub(super) struct Summed {
    pub(super) segments: usize,
    pub(super) bytes: usize,
    pub(super) checksum: Checksum,
}

/// The batch size in bytes below which joining two checksums takes longer than computing the whole checksum at the end.
const SUMMED_FROM: usize = 64 * 1024;

impl ChunkChain {
    pub(super) fn new(pool: &ChunkPool) -> Self {
        Self {
            pool: pool.clone(),
            full: Vec::new(),
            last: Chunk::none(),
            full_len: 0,
            may_stay_tiny: false,
            sums_early: false,
            summed: None,
        }
    }

    /// The batch will probably have this many bytes.
    pub(super) const fn expect(&mut self, bytes: usize) {
        self.may_stay_tiny = bytes <= TINY_UP_TO;
    }

    /// Computes the checksum of the bytes behind the header while the batch grows, once it is large.
    pub(super) const fn sum_early(&mut self) {
        self.sums_early = true;
    }

    /// Returns the checksum so far, if the batch was large enough to compute one.
    pub(super) fn summed(&self) -> Option<&Summed> {
        self.summed.as_deref()
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.full_len + self.last.filled
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let last = &self.last.bytes[..self.last.filled];
        self.full.iter().map(Segment::bytes).chain((!last.is_empty()).then_some(last))
    }

    /// Returns the segment at an index.
    #[inline]
    pub(super) fn segment(&self, index: usize) -> Option<&[u8]> {
        match self.full.get(index) {
            Some(segment) => Some(segment.bytes()),
            None => (index == self.full.len()).then(|| &self.last.bytes[..self.last.filled]),
        }
    }

    /// Takes the bytes so far, and leaves an empty chain.
    pub(super) fn take(&mut self) -> Self {
        let empty = Self::new(&self.pool);
        mem::replace(self, empty)
    }

    /// Copies the bytes to other chunks of the pool.
    pub(super) fn copy(&self) -> Self {
        let mut copy = Self::new(&self.pool);
        self.segments().for_each(|segment| copy.put(segment));
        copy
    }

    /// Returns the first segment's bytes, which contain the header.
    pub(super) fn head_mut(&mut self) -> &mut [u8] {
        match self.full.first_mut() {
            Some(Segment::Chunk(chunk)) => &mut chunk.bytes[..chunk.filled],
            Some(Segment::External(_)) => &mut [],
            None => &mut self.last.bytes[..self.last.filled],
        }
    }

    /// Returns `count` contiguous bytes at the end, if the last chunk has room for them. Begins the next chunk if only a
    /// small part of the last one stays unused.
    #[inline]
    pub(super) fn reserve(&mut self, count: usize) -> Option<&mut [u8]> {
        let unused = self.room().len();
        if unused < count && unused <= self.last.bytes.len() / UNUSED_DIVISOR {
            self.grow();
        }
        let end = self.last.filled + count;
        let room = self.last.bytes.get_mut(self.last.filled..end)?;
        self.last.filled = end;
        Some(room)
    }

    /// Returns the free part of the last chunk. Bytes written there belong to the batch once [`Self::advance`] counts
    /// them.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.last.bytes[self.last.filled..]
    }

    /// Counts bytes that were written to [`Self::room`], and prefetches the cache lines of the next record. The thread
    /// that sent the chunk's previous content had them last; without the prefetch the next record's writes stall.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.last.filled += count;
        prefetch_for_writing(&self.last.bytes[self.last.filled..], count);
    }

    /// Appends bytes, over as many chunks as needed.
    pub(super) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = &mut self.last.bytes[self.last.filled..];
            if room.is_empty() {
                self.grow();
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.last.filled += now.len();
            bytes = later;
        }
    }

    /// Appends bytes by reference.
    pub(super) fn put_external(&mut self, bytes: Bytes) {
        self.close_last();
        self.full_len += bytes.len();
        self.full.push(Segment::External(bytes));
    }

    fn grow(&mut self) {
        self.close_last();
        self.sum_full();
        // The bytes between large referenced values are few.
        let is_small = self.full_len < SMALL_UP_TO || !matches!(self.full.last(), Some(Segment::Chunk(_)));
        let is_tiny = self.may_stay_tiny && self.full_len < TINY_UP_TO;
        self.last = self.pool.take(match is_small {
            true if is_tiny => Size::Tiny,
            true => Size::Small,
            false => Size::Large,
        });
    }

    fn close_last(&mut self) {
        let last = mem::replace(&mut self.last, Chunk::none());
        self.full_len += last.filled;
        if !last.bytes.is_empty() {
            self.full.push(Segment::Chunk(last));
        }
    }

    /// Adds the full segments to the checksum.
    fn sum_full(&mut self) {
        if !self.sums_early || self.full_len < SUMMED_FROM {
            return;
        }
        let nothing = || Box::new(Summed { segments: 0, bytes: 0, checksum: Checksum::new() });
        let summed = self.summed.get_or_insert_with(nothing);
        for segment in &self.full[summed.segments..] {
            let header = if summed.segments == 0 { layout::RECORDS } else { 0 };
            let bytes = segment.bytes().get(header..).unwrap_or_default();
            summed.checksum.update(bytes);
            summed.bytes += bytes.len();
            summed.segments += 1;
        }
    }

    /// Returns all chunks to the pool.
    pub(super) fn clear(&mut self) {
        self.full_len = 0;
        self.summed = None;
        if self.full.is_empty() && self.last.bytes.is_empty() {
            // Taking the pool's lock for nothing would move it to this processor's cache.
            return;
        }
        let last = mem::replace(&mut self.last, Chunk::none());
        let chunks = self.full.drain(..).filter_map(|segment| match segment {
            Segment::Chunk(chunk) => Some(chunk),
            Segment::External(_) => None,
        });
        self.pool.give_back(chunks.chain(Some(last).filter(|last| !last.bytes.is_empty())));
    }
}

impl Drop for ChunkChain {
    fn drop(&mut self) {
        self.clear();
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

impl fmt::Debug for ChunkChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkChain({} bytes in {} segments)", self.len(), self.segments().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_intact_across_chunks_and_references() {
        let pool = ChunkPool::new();
        let mut chain = ChunkChain::new(&pool);
        let bytes: Vec<u8> = (0..50_000).map(|i| i as u8).collect();
        chain.put(&bytes);
        chain.put_external(Bytes::from_static(b"outside"));
        chain.put(b"end");
        let whole: Vec<u8> = chain.segments().flatten().copied().collect();
        assert_eq!(whole, [&bytes[..], b"outside", b"end"].concat());
        assert_eq!(chain.len(), whole.len());
    }

    #[test]
    fn chunks_return_to_the_pool_and_are_reused() {
        let pool = ChunkPool::new();
        let mut chain = ChunkChain::new(&pool);
        chain.put(&[1; 40_000]);
        assert_eq!(pool.in_use_bytes(), SMALL_UP_TO + CHUNK_BYTES);
        drop(chain);
        assert_eq!(pool.in_use_bytes(), 0);
        let mut chain = ChunkChain::new(&pool);
        chain.put(&[2; 40_000]);
        assert_eq!(pool.idle_bytes(), 0, "the idle chunks were taken");
    }

    #[test]
    fn trimming_frees_chunks_that_were_not_used() {
        let pool = ChunkPool::new();
        let fill = |bytes: usize| {
            let mut chain = ChunkChain::new(&pool);
            chain.put(&vec![1; bytes]);
            chain
        };
        drop(fill(SMALL_UP_TO + 10 * CHUNK_BYTES));
        pool.trim();
        assert_eq!(pool.idle_bytes(), SMALL_UP_TO + 10 * CHUNK_BYTES, "all of it was used");
        drop(fill(SMALL_UP_TO + 3 * CHUNK_BYTES));
        pool.trim();
        assert_eq!(pool.idle_bytes(), SMALL_UP_TO + 3 * CHUNK_BYTES);
        pool.trim();
        assert_eq!(pool.idle_bytes(), 0);
    }

    #[test]
    fn bytes_between_references_take_small_chunks() {
        let pool = ChunkPool::new();
        let mut chain = ChunkChain::new(&pool);
        for _ in 0..5 {
            chain.put(b"head");
            chain.put_external(Bytes::from_static(b"large value"));
        }
        assert_eq!(pool.in_use_bytes(), 5 * SMALL_CHUNK_BYTES);
    }

    #[test]
    fn batch_that_may_stay_tiny_takes_tiny_chunks_first() {
        let pool = ChunkPool::new();
        let mut chain = ChunkChain::new(&pool);
        chain.expect(TINY_UP_TO);
        chain.put(&[1; 400]);
        assert_eq!(pool.in_use_bytes(), TINY_CHUNK_BYTES);
        chain.put(&[1; 1400]);
        assert_eq!(pool.in_use_bytes(), TINY_UP_TO);
        chain.put(&[1; 900]);
        assert_eq!(pool.in_use_bytes(), TINY_UP_TO + SMALL_CHUNK_BYTES, "it has become larger");
        drop(chain);
        assert_eq!((pool.in_use_bytes(), pool.idle_bytes()), (0, TINY_UP_TO + SMALL_CHUNK_BYTES));
        let mut chain = ChunkChain::new(&pool);
        chain.expect(TINY_UP_TO + 1);
        chain.put(&[1; 900]);
        assert_eq!(pool.in_use_bytes(), SMALL_CHUNK_BYTES);
    }

    #[test]
    fn thousand_batches_take_little_more_memory_than_their_records() {
        for records in [1, 30, 100, 300, 1000] {
            let pool = ChunkPool::new();
            let mut bytes = 0;
            let chains: Vec<_> = (0..1000)
                .map(|_| {
                    let mut chain = ChunkChain::new(&pool);
                    (0..records).for_each(|_| chain.put(&[1; 108]));
                    bytes += chain.len();
                    chain
                })
                .collect();
            let free = pool.in_use_bytes() - bytes;
            assert!(free < (1000 * SMALL_CHUNK_BYTES).max(bytes / 2), "{records} records: {free} bytes free");
            drop(chains);
        }
    }
}
