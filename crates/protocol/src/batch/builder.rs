//! Encodes records directly into their wire format.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::{
    HeaderRef,
    chunk::ChunkChain,
    kept::KeptRecords,
    layout,
    pool::ChunkPool,
    reader::{RecordView, Records},
    sealed::{SealError, SealOptions, SealedBatch},
    varint,
};

/// A batch of format 2 that takes records.
#[derive(Debug)]
pub struct RecordBatchBuilder {
    pub(super) chain: ChunkChain,
    pub(super) record_count: u32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    /// True if its records can be read after it was sent.
    pub(super) keeps_records: bool,
}

/// The records of a batch that is not sealed yet.
#[derive(Debug)]
pub struct CopiedRecords {
    /// The encoded records, behind room for the batch's header.
    bytes: Vec<u8>,
    record_count: u32,
    base_timestamp: i64,
}

impl CopiedRecords {
    /// Iterates over the records in order; offsets count from 0.
    pub fn iter(&self) -> impl Iterator<Item = RecordView<'_>> {
        let bytes = self.bytes.get(layout::RECORDS..).unwrap_or_default();
        // This builder encoded them.
        Records::unsealed(self.record_count, self.base_timestamp, bytes).map_while(Result::ok)
    }
}

/// The size in bytes from which values passed as [`Bytes`] are referenced instead of copied.
pub const REFERENCED_FROM: usize = 16 * 1024;

impl RecordBatchBuilder {
    /// Creates an empty batch. The first record allocates memory.
    pub fn new(pool: &ChunkPool) -> Self {
        Self::of(ChunkChain::new(pool))
    }

    /// Creates an empty batch that will probably have this many bytes of records, with memory for the first of them. A small one
    /// takes less memory.
    pub fn expecting(pool: &ChunkPool, bytes: usize) -> Self {
        Self::of(ChunkChain::expecting(pool, bytes.saturating_add(layout::RECORDS)))
    }

    const fn of(chain: ChunkChain) -> Self {
        Self { chain, record_count: 0, base_timestamp: 0, max_timestamp: i64::MIN, keeps_records: false }
    }

    /// Computes the checksum while records are appended, once the batch is large. For batches that will not be
    /// compressed.
    #[must_use]
    pub const fn summed_early(mut self) -> Self {
        self.chain.sum_early();
        self
    }

    /// Takes an empty list for a number per record, which may have room that an earlier batch needed.
    /// [`KeptRecords::return_numbers`] gives it to a later one.
    pub fn take_numbers(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.chain.numbers)
    }

    /// Keeps the records in their uncompressed form after the batch is sealed and sent, until [`Self::take_kept`] or
    /// [`SealedBatch::into_kept`].
    #[inline]
    pub const fn keep_records(&mut self) {
        self.keeps_records = true;
    }

    /// Returns whether it keeps its records.
    pub const fn keeps_records(&self) -> bool {
        self.keeps_records
    }

    /// Takes the records, if it keeps them. The batch can't be sealed any more.
    pub fn take_kept(&mut self) -> Option<KeptRecords> {
        self.keeps_records.then(|| KeptRecords::new(self.base_timestamp, self.chain.take()))
    }

    /// Returns the number of records.
    pub const fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Returns the uncompressed size in bytes, header included.
    pub const fn len(&self) -> usize {
        self.chain.len()
    }

    /// Returns true if the batch has no records.
    pub const fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Returns the largest timestamp so far.
    pub const fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Appends a record. The caller keeps the batch below 2 GiB, or [`Self::seal`] fails.
    #[inline]
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        if !(headers.is_empty() && self.append_plain(timestamp, key, value)) {
            self.append_any(timestamp, key, value, headers);
        }
    }

    /// Appends a record of any kind. Never inlined: when it was, a compiler that hoists loop invariants out of the
    /// caller's loop also computed the sizes for records that [`Self::append_plain`] writes, which cost 60 instructions
    /// per record.
    #[inline(never)]
    fn append_any(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        let head = self.begin(timestamp, key, value.map(<[u8]>::len), headers);
        if let Some(room) = self.chain.reserve(head.size) {
            let mut out = Out { bytes: room, at: 0 };
            out.head(&head);
            out.field(key);
            out.field(value);
            out.varint(headers.len() as i64);
            for header in headers {
                out.field(Some(header.key));
                out.field(header.value);
            }
        } else {
            self.append_over_border(&head, key, value, headers);
        }
    }

    /// Appends a record whose value is referenced if it is large.
    pub fn append_shared(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: &Bytes,
        headers: &[HeaderRef<'_>],
    ) {
        if value.len() < REFERENCED_FROM {
            return self.append(timestamp, key, Some(value), headers);
        }
        let head = self.begin(timestamp, key, Some(value.len()), headers);
        self.put_head(&head, key);
        self.put_varint(value.len() as i64);
        self.chain.put_external(value.clone());
        self.put_headers(headers);
    }

    /// Copies the records so far, so that other batches can be built from them.
    pub fn copied(&self) -> CopiedRecords {
        let mut bytes = Vec::with_capacity(self.len());
        self.chain.segments().for_each(|segment| bytes.extend_from_slice(segment));
        CopiedRecords { bytes, record_count: self.record_count, base_timestamp: self.base_timestamp }
    }

    /// Compresses the records, fills the header, and computes the checksum.
    pub fn seal(self, options: &SealOptions) -> Result<SealedBatch, Box<SealError>> {
        SealedBatch::new(self, options)
    }

    /// Reserves the header's bytes unless they are reserved already.
    pub(super) fn reserve_header(&mut self) {
        if self.chain.len() == 0 {
            self.chain.put(&[0; layout::RECORDS]);
        }
    }

    /// Appends a record of the most common kind: no headers, not the first, and with a size whose varint certainly
    /// takes two bytes. Returns false if the record is of another kind or the chunk may be too small.
    #[inline(always)]
    fn append_plain(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> bool {
        let payload = key.map_or(0, <[u8]>::len).wrapping_add(value.map_or(0, <[u8]>::len));
        let index = i64::from(self.record_count);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let room = self.chain.room();
        if !TWO_BYTES.contains(&payload) || index == 0 || room.len() < payload + LARGEST_OVERHEAD {
            return false;
        }
        let mut out = Out { bytes: room, at: 2 };
        // The attributes, which have no defined bits.
        out.byte(0);
        out.varint(timestamp_delta);
        out.varint(index);
        out.field(key);
        out.field(value);
        // No headers.
        out.byte(0);
        let size = out.at;
        out.at = 0;
        out.varint(size as i64 - 2);
        self.chain.advance(size);
        self.record_count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        true
    }

    /// Counts the record, reserves the batch's header before the first one, and computes the record's sizes.
    #[inline(always)]
    fn begin(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value_len: Option<usize>,
        headers: &[HeaderRef<'_>],
    ) -> Head {
        let index = i64::from(self.record_count);
        if index == 0 {
            self.base_timestamp = timestamp;
            self.reserve_header();
        }
        self.record_count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let mut body = 1
            + varint::size(timestamp_delta)
            + varint::size(index)
            + field_size(key.map(<[u8]>::len))
            + field_size(value_len)
            + varint::size(headers.len() as i64);
        for header in headers {
            body += field_size(Some(header.key.len())) + field_size(header.value.map(<[u8]>::len));
        }
        Head { body, size: varint::size(body as i64) + body, timestamp_delta, index }
    }

    /// Appends a record when the last chunk has too little room.
    #[cold]
    fn append_over_border(
        &mut self,
        head: &Head,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        self.put_head(head, key);
        self.put_bytes(value);
        self.put_headers(headers);
    }

    fn put_head(&mut self, head: &Head, key: Option<&[u8]>) {
        self.put_varint(head.body as i64);
        self.chain.put(&[0]);
        self.put_varint(head.timestamp_delta);
        self.put_varint(head.index);
        self.put_bytes(key);
    }

    fn put_headers(&mut self, headers: &[HeaderRef<'_>]) {
        self.put_varint(headers.len() as i64);
        for header in headers {
            self.put_bytes(Some(header.key));
            self.put_bytes(header.value);
        }
    }

    fn put_bytes(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.put_varint(-1),
            Some(bytes) => {
                self.put_varint(bytes.len() as i64);
                self.chain.put(bytes);
            }
        }
    }

    fn put_varint(&mut self, value: i64) {
        let mut out = [0; 10];
        let size = varint::put(&mut out, value);
        self.chain.put(&out[..size]);
    }
}

/// The fields of a record in front of its key.
struct Head {
    /// The record's size without the size field.
    body: usize,
    /// The record's total size.
    size: usize,
    timestamp_delta: i64,
    index: i64,
}

/// Writes a record contiguously into a slice of exactly its size. Its methods are always inlined: with many callers the
/// compiler would not inline them, which takes twice the time.
struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    #[inline(always)]
    fn head(&mut self, head: &Head) {
        self.varint(head.body as i64);
        // The attributes, which have no defined bits.
        self.byte(0);
        self.varint(head.timestamp_delta);
        self.varint(head.index);
    }

    #[inline(always)]
    fn field(&mut self, field: Option<&[u8]>) {
        match field {
            None => self.byte(NULL),
            Some(bytes) => {
                self.varint(bytes.len() as i64);
                self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
                self.at += bytes.len();
            }
        }
    }

    #[inline(always)]
    fn varint(&mut self, value: i64) {
        self.at += varint::put(&mut self.bytes[self.at..], value);
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }
}

/// The sizes of key plus value with which a record's size takes two bytes for any values of the other fields.
const TWO_BYTES: RangeInclusive<usize> = 64..=8191 - LARGEST_OVERHEAD;
/// The largest number of bytes that a record without headers has besides key and value: size, attributes, timestamp,
/// offset, two lengths and the number of headers.
const LARGEST_OVERHEAD: usize = 5 + 1 + 10 + 5 + 5 + 5 + 1;
/// The encoded length of null, -1.
const NULL: u8 = 1;

#[inline(always)]
const fn field_size(len: Option<usize>) -> usize {
    match len {
        None => 1,
        Some(len) => varint::size(len as i64) + len,
    }
}
