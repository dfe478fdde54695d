//! Encodes records straight into the form in which they are sent.

use bytes::Bytes;

use super::{
    HeaderRef,
    chunk::ChunkChain,
    chunk::ChunkPool,
    layout,
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
}

/// Values from this size on are referenced instead of copied, where they come as [`Bytes`].
pub const REFERENCED_FROM: usize = 16 * 1024;

impl RecordBatchBuilder {
    /// An empty batch. Memory is taken with the first record.
    pub fn new(pool: &ChunkPool) -> Self {
        Self { chain: ChunkChain::new(pool), record_count: 0, base_timestamp: 0, max_timestamp: i64::MIN }
    }

    /// How many records it has.
    pub const fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Its size in bytes, uncompressed, with its header.
    pub const fn len(&self) -> usize {
        self.chain.len()
    }

    /// True if it has no record.
    pub const fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// The largest timestamp so far.
    pub const fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Appends a record. The caller keeps the batch below 2 GiB.
    #[inline]
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        let sizes = self.begin(timestamp, key, value.map(<[u8]>::len), headers);
        let delta = timestamp.wrapping_sub(self.base_timestamp);
        let index = i64::from(self.record_count);
        self.record_count += 1;
        if headers.is_empty()
            && let Some(out) = self.chain.reserve(sizes.total)
        {
            let mut at = varint::put(out, sizes.body as i64);
            out[at] = 0;
            at += 1;
            at += varint::put(&mut out[at..], delta);
            at += varint::put(&mut out[at..], index);
            for field in [key, value] {
                match field {
                    None => {
                        out[at] = 1;
                        at += 1;
                    }
                    Some(bytes) => {
                        at += varint::put(&mut out[at..], bytes.len() as i64);
                        out[at..at + bytes.len()].copy_from_slice(bytes);
                        at += bytes.len();
                    }
                }
            }
            out[at] = 0;
            return;
        }
        self.put_start(sizes.body, delta, index, key);
        self.put_bytes(value);
        self.put_headers(headers);
    }

    /// Appends a record whose value is referenced if it is large.
    pub fn append_shared(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Bytes,
        headers: &[HeaderRef<'_>],
    ) {
        if value.len() < REFERENCED_FROM {
            return self.append(timestamp, key, Some(&value), headers);
        }
        let sizes = self.begin(timestamp, key, Some(value.len()), headers);
        let delta = timestamp.wrapping_sub(self.base_timestamp);
        let index = i64::from(self.record_count);
        self.record_count += 1;
        self.put_start(sizes.body, delta, index, key);
        self.put_varint(value.len() as i64);
        self.chain.put_external(value);
        self.put_headers(headers);
    }

    /// Compresses, fills the header, and computes the checksum.
    pub fn seal(self, options: &SealOptions) -> Result<SealedBatch, Box<SealError>> {
        SealedBatch::new(self, options)
    }

    /// Makes room for the header, if that has not been done yet.
    pub(super) fn reserve_header(&mut self) {
        if self.chain.len() == 0 {
            self.chain.put(&[0; layout::RECORDS]);
        }
    }

    /// Notes the timestamp, makes room for the header before the first record, and measures the record.
    #[inline]
    fn begin(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value_len: Option<usize>,
        headers: &[HeaderRef<'_>],
    ) -> Sizes {
        if self.record_count == 0 {
            self.base_timestamp = timestamp;
            self.reserve_header();
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let delta = timestamp.wrapping_sub(self.base_timestamp);
        let mut body = 1
            + varint::size(delta)
            + varint::size(i64::from(self.record_count))
            + field_size(key.map(<[u8]>::len))
            + field_size(value_len)
            + varint::size(headers.len() as i64);
        for header in headers {
            body += field_size(Some(header.key.len())) + field_size(header.value.map(<[u8]>::len));
        }
        Sizes { body, total: varint::size(body as i64) + body }
    }

    fn put_start(&mut self, body: usize, delta: i64, index: i64, key: Option<&[u8]>) {
        self.put_varint(body as i64);
        self.chain.put(&[0]);
        self.put_varint(delta);
        self.put_varint(index);
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

/// A record's size without and with its own length.
struct Sizes {
    body: usize,
    total: usize,
}

#[inline]
const fn field_size(len: Option<usize>) -> usize {
    match len {
        None => 1,
        Some(len) => varint::size(len as i64) + len,
    }
}
