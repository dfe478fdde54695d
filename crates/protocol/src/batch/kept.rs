//! The records of a batch, kept after it was sent, so that its delivery reports can show them without another copy.
//!
//! # Pitfalls
//!
//! - A record that lies in two chunks has no contiguous key and value in the batch. It is copied when it is read, not when it
//!   is appended (`records_are_read_back_across_chunks`). That is slow, so only large records lie in two chunks
//!   (`small_records_are_read_back_without_a_copy`).

use super::{
    chunk::ChunkChain,
    layout,
    prefetch::prefetch_at,
    reader::{RecordView, Records},
    varint,
};

/// Reserved for a record that is copied: most need no second allocation.
const TYPICAL_BYTES: usize = 256;

/// The encoded, uncompressed records of a batch in their chunks. Dropping it returns these to the pool.
#[derive(Debug)]
pub struct KeptRecords {
    chain: ChunkChain,
    base_timestamp: i64,
}

/// The position of the next record that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    segment: usize,
    at: usize,
}

impl Default for RecordPosition {
    /// Returns the position of the first record, behind the batch's header.
    fn default() -> Self {
        Self { segment: 0, at: layout::RECORDS }
    }
}

impl KeptRecords {
    pub(super) const fn new(base_timestamp: i64, chain: ChunkChain) -> Self {
        Self { chain, base_timestamp }
    }

    /// Returns the list of [`RecordBatchBuilder::take_numbers`](super::RecordBatchBuilder::take_numbers), for a later batch.
    pub fn return_numbers(&mut self, numbers: Vec<u64>) {
        self.chain.numbers = numbers;
    }

    /// Returns the record at `position` and moves to the next one; `None` at the end. The record is in the batch's memory,
    /// or in `joined` if it lies in more than one chunk.
    #[inline]
    pub fn next<'a>(
        &'a self,
        position: &mut RecordPosition,
        joined: &'a mut Vec<u8>,
    ) -> Option<RecordView<'a>> {
        let rest = self.rest(position)?;
        let mut records = Records::unsealed(1, self.base_timestamp, rest);
        match records.next() {
            Some(Ok(record)) => {
                let size = records.position();
                position.at += size;
                // The next records are probably as large as this one.
                prefetch_at(rest, 2 * size);
                prefetch_at(rest, 3 * size);
                Some(record)
            }
            _ => self.next_joined(position, joined),
        }
    }

    /// Returns the rest of the position's segment, or at its end the next segment; `None` at the end of the batch.
    #[inline]
    fn rest(&self, position: &mut RecordPosition) -> Option<&[u8]> {
        let mut rest = self.chain.segment(position.segment)?.get(position.at..)?;
        while rest.is_empty() {
            *position = RecordPosition { segment: position.segment + 1, at: 0 };
            rest = self.chain.segment(position.segment)?;
        }
        Some(rest)
    }

    /// Reads a record that does not end in its first chunk.
    #[cold]
    fn next_joined<'a>(
        &'a self,
        position: &mut RecordPosition,
        joined: &'a mut Vec<u8>,
    ) -> Option<RecordView<'a>> {
        joined.clear();
        joined.reserve(TYPICAL_BYTES);
        let mut at = *position;
        let mut body = loop {
            self.take(&mut at, 1, joined)?;
            if joined.last().is_some_and(|last| last & 0x80 == 0) {
                break usize::try_from(varint::take(&mut &joined[..])?).ok()?;
            }
        };
        joined.reserve_exact(body);
        while body > 0 {
            body -= self.take(&mut at, body, joined)?;
        }
        *position = at;
        Records::unsealed(1, self.base_timestamp, joined).next()?.ok()
    }

    /// Appends up to `most` bytes of one segment, and returns how many; `None` at the end.
    fn take(&self, at: &mut RecordPosition, most: usize, into: &mut Vec<u8>) -> Option<usize> {
        let rest = self.rest(at)?;
        let taken = &rest[..most.min(rest.len())];
        into.extend_from_slice(taken);
        at.at += taken.len();
        Some(taken.len())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        batch::{ChunkPool, RecordBatchBuilder, SealOptions},
        compress::Compression,
    };

    /// A key and a value of record `index`, of many sizes.
    fn parts(index: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let byte = index as u8;
        let key = (!index.is_multiple_of(3)).then(|| vec![byte; index % 7]);
        let value = (!index.is_multiple_of(5)).then(|| vec![byte; (index * 397) % 6_000]);
        (key, value)
    }

    fn builder(pool: &ChunkPool, count: usize) -> RecordBatchBuilder {
        let mut builder = RecordBatchBuilder::new(pool);
        builder.keep_records();
        for index in 0..count {
            let (key, value) = parts(index);
            builder.append(1_000 + index as i64, key.as_deref(), value.as_deref(), &[]);
        }
        builder
    }

    fn assert_all(kept: &KeptRecords, count: usize) {
        let (mut position, mut joined) = (RecordPosition::default(), Vec::new());
        for index in 0..count {
            let record = kept.next(&mut position, &mut joined).expect("a record");
            let (key, value) = parts(index);
            assert_eq!((record.key, record.value), (key.as_deref(), value.as_deref()), "{index}");
            assert_eq!(record.timestamp, 1_000 + index as i64);
        }
        assert_eq!(kept.next(&mut position, &mut joined), None);
    }

    #[test]
    fn records_are_read_back_across_chunks() {
        let pool = ChunkPool::new();
        for count in [1, 2, 40, 500] {
            let mut open = builder(&pool, count);
            assert_all(&open.take_kept().expect("it keeps them"), count);
            for compression in [Compression::None, Compression::Lz4] {
                let options = SealOptions { compression, ..SealOptions::default() };
                let mut sealed = builder(&pool, count).seal(&options).unwrap();
                let sent = sealed.to_vec();
                assert_all(&sealed.copy_kept().expect("it keeps them"), count);
                assert_eq!(sealed.to_vec(), sent, "the request goes on");
                let sealed = builder(&pool, count).seal(&options).unwrap();
                assert_all(&sealed.into_kept().expect("it keeps them"), count);
            }
        }
        assert_eq!(pool.in_use_bytes(), 0);
    }

    #[test]
    fn small_records_are_read_back_without_a_copy() {
        let pool = ChunkPool::new();
        let mut builder = RecordBatchBuilder::new(&pool);
        builder.keep_records();
        let value = [7; 500];
        for _ in 0..1_000 {
            builder.append(0, None, Some(&value), &[]);
        }
        let kept = builder.take_kept().expect("it keeps them");
        let (mut position, mut joined) = (RecordPosition::default(), Vec::new());
        for _ in 0..1_000 {
            assert_eq!(kept.next(&mut position, &mut joined).unwrap().value, Some(&value[..]));
        }
        assert!(joined.is_empty(), "no record was copied");
        assert!(pool.in_use_bytes() < 1_000 * 500 * 9 / 8);
    }

    #[test]
    fn referenced_value_is_read_back() {
        let pool = ChunkPool::new();
        let mut builder = RecordBatchBuilder::new(&pool);
        builder.keep_records();
        let large = Bytes::from(vec![7; 100_000]);
        builder.append_shared(5, Some(b"k"), &large, &[]);
        builder.append(6, None, Some(b"v"), &[]);
        let kept = builder.take_kept().expect("it keeps them");
        let (mut position, mut joined) = (RecordPosition::default(), Vec::new());
        assert_eq!(kept.next(&mut position, &mut joined).unwrap().value, Some(&large[..]));
        assert_eq!(kept.next(&mut position, &mut joined).unwrap().value, Some(&b"v"[..]));
    }

    #[test]
    fn halves_keep_their_own_records_and_others_none() {
        let pool = ChunkPool::new();
        let options = SealOptions { compression: Compression::Lz4, ..SealOptions::default() };
        let sealed = builder(&pool, 10).seal(&options).unwrap();
        let (first, second) = sealed.split(4, &pool, &options).expect("two halves");
        assert_all(&first.into_kept().expect("it keeps them"), 4);
        let (mut position, mut joined) = (RecordPosition::default(), Vec::new());
        let second = second.into_kept().expect("it keeps them");
        assert_eq!(second.next(&mut position, &mut joined).unwrap().timestamp, 1_004);
        let mut builder = RecordBatchBuilder::new(&pool);
        builder.append(0, None, Some(b"v"), &[]);
        assert!(builder.seal(&options).unwrap().into_kept().is_none());
    }
}
