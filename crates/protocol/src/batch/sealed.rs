//! A batch whose bytes are final.

use crc_fast::{CrcAlgorithm, Digest};

use super::{
    RecordBatchBuilder,
    chunk::{ChunkChain, ChunkPool},
    layout,
    reader::{BatchHeader, RecordBatch, Records},
};
use crate::compress::{CompressError, Compression, compress};

/// How a batch is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealOptions {
    /// The codec.
    pub compression: Compression,
    /// The codec's level; `None` is its own default.
    pub level: Option<i32>,
    /// The producer's id, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence number, or -1.
    pub base_sequence: i32,
    /// The batch belongs to a transaction.
    pub is_transactional: bool,
}

impl Default for SealOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            level: None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            is_transactional: false,
        }
    }
}

/// A batch whose bytes are final: header filled, compressed, checksum computed. Its base offset is 0; the broker assigns
/// the real one.
#[derive(Debug)]
pub struct SealedBatch {
    chain: ChunkChain,
    record_count: u32,
    max_timestamp: i64,
}

impl SealedBatch {
    pub(super) fn new(
        mut chain: ChunkChain,
        record_count: u32,
        base_timestamp: i64,
        max_timestamp: i64,
        options: &SealOptions,
    ) -> Result<Self, CompressError> {
        if chain.len() == 0 {
            chain.put(&[0; layout::RECORDS]);
        }
        let mut attributes = if options.is_transactional { layout::TRANSACTIONAL } else { 0 };
        if options.compression != Compression::None {
            let mut compressed = vec![0; layout::RECORDS];
            let first = chain.segments().next().map(|segment| &segment[layout::RECORDS..]);
            let records = first.into_iter().chain(chain.segments().skip(1));
            compress(options.compression, options.level, records, &mut compressed)?;
            // What does not shrink is sent as it is: the reader saves the work.
            if compressed.len() < chain.len() {
                attributes |= i16::from(options.compression.id());
                compressed.shrink_to_fit();
                chain = ChunkChain::of(chain.pool(), compressed);
            }
        }
        let length = (chain.len() - layout::LENGTH_PREFIX) as i32;
        let head = chain.head_mut();
        put(head, layout::BASE_OFFSET, &0i64.to_be_bytes());
        put(head, layout::LENGTH, &length.to_be_bytes());
        put(head, layout::PARTITION_LEADER_EPOCH, &(-1i32).to_be_bytes());
        put(head, layout::MAGIC, &[2]);
        put(head, layout::ATTRIBUTES, &attributes.to_be_bytes());
        put(head, layout::LAST_OFFSET_DELTA, &(record_count as i32 - 1).to_be_bytes());
        put(head, layout::BASE_TIMESTAMP, &base_timestamp.to_be_bytes());
        put(head, layout::MAX_TIMESTAMP, &max_timestamp.to_be_bytes());
        put(head, layout::RECORD_COUNT, &(record_count as i32).to_be_bytes());
        let mut batch = Self { chain, record_count, max_timestamp };
        batch.set_producer(options.producer_id, options.producer_epoch, options.base_sequence);
        Ok(batch)
    }

    /// Writes who sends the batch into its header, and the checksum anew.
    pub fn set_producer(&mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        let head = self.chain.head_mut();
        put(head, layout::PRODUCER_ID, &producer_id.to_be_bytes());
        put(head, layout::PRODUCER_EPOCH, &producer_epoch.to_be_bytes());
        put(head, layout::BASE_SEQUENCE, &base_sequence.to_be_bytes());
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        let mut skip = layout::ATTRIBUTES;
        for segment in self.chain.segments() {
            digest.update(&segment[skip..]);
            skip = 0;
        }
        let crc = digest.finalize() as u32;
        put(self.chain.head_mut(), layout::CRC, &crc.to_be_bytes());
    }

    /// The size in bytes, as it is sent.
    pub const fn len(&self) -> usize {
        self.chain.len()
    }

    /// True if it has no bytes, which does not happen.
    pub const fn is_empty(&self) -> bool {
        self.chain.len() == 0
    }

    /// How many records it has.
    pub const fn record_count(&self) -> u32 {
        self.record_count
    }

    /// The largest timestamp.
    pub const fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// The bytes in pieces, to be written one after the other.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.segments()
    }

    /// The bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.segments().for_each(|segment| bytes.extend_from_slice(segment));
        bytes
    }

    /// Two batches, the first with `at` records; `None` if there are no two parts.
    pub fn split(&self, at: u32, pool: &ChunkPool, options: &SealOptions) -> Option<(Self, Self)> {
        if at == 0 || at >= self.record_count {
            return None;
        }
        let bytes = self.to_vec();
        let header = BatchHeader::parse(&bytes).ok()?;
        let batch = RecordBatch::new(header, &bytes);
        let records = batch.records(usize::MAX).ok()?;
        let mut parts = [RecordBatchBuilder::new(pool), RecordBatchBuilder::new(pool)];
        for (index, record) in Records::new(&header, records.as_ref()).enumerate() {
            let record = record.ok()?;
            let headers: Vec<_> = record.headers().collect();
            let part = usize::from(index >= at as usize);
            parts[part].append(record.timestamp, record.key, record.value, &headers);
        }
        let [first, second] = parts;
        Some((first.seal(options).ok()?, second.seal(options).ok()?))
    }
}

fn put(head: &mut [u8], at: usize, bytes: &[u8]) {
    head[at..at + bytes.len()].copy_from_slice(bytes);
}
