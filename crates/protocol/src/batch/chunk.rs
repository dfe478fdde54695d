//! The memory of batches that are being built: small chunks from a [pool](super::pool).
//!
//! A batch is a chain of chunks instead of one large buffer, because the memory that an application has open at the
//! same time determines what stays in the cache. The first chunks of a batch are small for producers with thousands of
//! partitions and a few records in each: the free part of the last chunk stays small compared with the batch. They are smaller if the
//! partition's last batch was, too: the first chunk then has room for as many bytes.
//!
//! # Pitfalls
//!
//! - With 1,000 partitions most chunk memory was unused: a batch of a few KiB held a chunk of 4 KiB and one of 16 KiB.
//!   Chunks stay small until the batch is much larger than one of them
//!   (`thousand_batches_take_little_more_memory_than_their_records`).

use std::{fmt, mem};

use bytes::Bytes;

use super::{
    checksum::Checksum,
    layout,
    pool::{ChunkPool, Lists},
    prefetch::prefetch_for_writing,
};

/// The size of the first chunks of a batch that may stay tiny.
pub const TINY_CHUNK_BYTES: usize = 512;
/// The number of bytes of that batch in tiny chunks, unless its first chunk has room for all that are expected.
pub const TINY_UP_TO: usize = 2 * 1024;
/// The size of the chunks after them.
pub const SMALL_CHUNK_BYTES: usize = 4 * 1024;
/// The size of every chunk after the first [`SMALL_UP_TO`] bytes of a batch.
pub const CHUNK_BYTES: usize = 16 * 1024;
/// The number of bytes of a batch that are in small chunks. At most a third of a larger batch's memory is unused.
pub const SMALL_UP_TO: usize = 32 * 1024;
/// The divisor of a chunk's size that gives the largest rest which stays unused so that a record lies in one chunk.
const UNUSED_DIVISOR: usize = 8;

/// A buffer from the pool.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Box<[u8]>,
    pub(super) filled: usize,
}

impl Chunk {
    /// Returns an empty chunk with idle memory, or new memory of this size.
    pub(super) fn of(idle: Option<Box<[u8]>>, size: usize) -> Self {
        Self { bytes: idle.unwrap_or_else(|| vec![0; size].into_boxed_slice()), filled: 0 }
    }

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
    /// An empty list for whoever builds the batch, which goes back to the pool with it.
    pub(super) numbers: Vec<u64>,
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
            numbers: Vec::new(),
            last: Chunk::none(),
            full_len: 0,
            may_stay_tiny: false,
            sums_early: false,
            summed: None,
        }
    }

    /// Creates the chain of a batch that will probably have this many bytes. Takes its first chunk.
    pub(super) fn expecting(pool: &ChunkPool, bytes: usize) -> Self {
        let may_stay_tiny = bytes <= TINY_UP_TO;
        let (Lists { full, numbers }, last) =
            pool.take_first(if may_stay_tiny { bytes } else { SMALL_CHUNK_BYTES });
        let mut chain = Self::new(pool);
        (chain.full, chain.numbers, chain.last, chain.may_stay_tiny) = (full, numbers, last, may_stay_tiny);
        chain
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
        self.segments_from(0)
    }

    /// Returns the segments from the one at an index on.
    #[inline]
    pub(super) fn segments_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let full = self.full.get(index..).unwrap_or_default();
        let last = &self.last.bytes[..self.last.filled];
        let has_last = !last.is_empty() && index <= self.full.len();
        full.iter().map(Segment::bytes).chain(has_last.then_some(last))
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
            true if is_tiny => TINY_CHUNK_BYTES,
            true => SMALL_CHUNK_BYTES,
            false => CHUNK_BYTES,
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

    /// Returns all memory to the pool.
    pub(super) fn clear(&mut self) {
        self.full_len = 0;
        self.summed = None;
        let lists = Lists { full: mem::take(&mut self.full), numbers: mem::take(&mut self.numbers) };
        if lists.full.is_empty() && self.last.bytes.is_empty() {
            // Taking the pool's lock for nothing would move it to this processor's cache.
            return;
        }
        self.pool.give_back(mem::replace(&mut self.last, Chunk::none()), lists);
    }
}

impl Drop for ChunkChain {
    fn drop(&mut self) {
        self.clear();
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
    fn first_chunk_has_room_for_the_bytes_that_are_expected() {
        let pool = ChunkPool::new();
        for (expected, first) in [(1, 512), (512, 512), (513, 1024), (1025, 2048), (2048, 2048), (2049, 4096)]
        {
            let mut chain = ChunkChain::expecting(&pool, expected);
            assert_eq!(pool.in_use_bytes(), first, "{expected}");
            chain.put(&vec![1; expected]);
            assert_eq!((pool.in_use_bytes(), chain.segments().count()), (first, 1), "{expected}");
        }
        assert_eq!(pool.in_use_bytes(), 0);
    }

    #[test]
    fn batch_that_may_stay_tiny_takes_tiny_chunks_first() {
        let pool = ChunkPool::new();
        let mut chain = ChunkChain::expecting(&pool, 1);
        chain.put(&[1; 400]);
        assert_eq!(pool.in_use_bytes(), TINY_CHUNK_BYTES);
        chain.put(&[1; 1400]);
        assert_eq!(pool.in_use_bytes(), TINY_UP_TO);
        chain.put(&[1; 900]);
        assert_eq!(pool.in_use_bytes(), TINY_UP_TO + SMALL_CHUNK_BYTES, "it has become larger");
        drop(chain);
        assert_eq!((pool.in_use_bytes(), pool.idle_bytes()), (0, TINY_UP_TO + SMALL_CHUNK_BYTES));
    }

    #[test]
    fn lists_of_a_batch_are_used_again_unless_they_were_large() {
        let pool = ChunkPool::new();
        let fill = |numbers: usize| {
            let mut chain = ChunkChain::expecting(&pool, 100);
            let had_room = (chain.full.capacity() > 0, chain.numbers.capacity() > 0);
            chain.put(&[1; 2000]);
            chain.numbers = vec![7; numbers];
            had_room
        };
        assert_eq!(fill(10), (false, false));
        assert_eq!(fill(5000), (true, true));
        assert_eq!(fill(10), (true, false), "the long list was freed");
        let chain = ChunkChain::expecting(&pool, 100);
        assert!(chain.numbers.is_empty() && chain.full.is_empty());
        drop(chain);
        pool.trim();
        pool.trim();
        assert_eq!(fill(10), (false, false), "idle lists were freed");
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
