//! A batch in its final encoding.

use std::{cell::RefCell, fmt};

use super::{
    BatchError, LegacyFormat, RecordBatchBuilder,
    checksum::{Checksum, concatenated},
    chunk::ChunkChain,
    kept::KeptRecords,
    layout,
    legacy::put_message_set,
    pool::ChunkPool,
    reader::{BatchHeader, RecordBatch, RecordView, Records},
};
use crate::compress::{CompressError, Compression, compress};

/// The options for sealing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealOptions {
    /// The codec.
    pub compression: Compression,
    /// The codec's level; `None` is the codec's default.
    pub level: Option<i32>,
    /// The producer's id, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence number, or -1.
    pub base_sequence: i32,
    /// True if the batch belongs to a transaction.
    pub is_transactional: bool,
    /// True if the batch holds a broker's marker.
    pub is_control: bool,
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
            is_control: false,
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
    kept: Kept,
}

/// The records for [`SealedBatch::into_kept`].
#[derive(Debug)]
enum Kept {
    /// None.
    No,
    /// Those of the batch itself, which is not compressed.
    Own,
    /// The uncompressed ones.
    Apart(Box<KeptRecords>),
}

/// Error: a batch could not be sealed.
#[derive(Debug)]
pub struct SealError {
    /// Why.
    pub kind: SealErrorKind,
    /// The unchanged batch.
    pub builder: RecordBatchBuilder,
}

/// The reason why a batch could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealErrorKind {
    /// The codec failed, or has no such level.
    Compress(CompressError),
    /// The batch is too large for the length field of its header, in bytes.
    TooLarge(usize),
}

thread_local! {
    /// The buffer for a codec's output, before its size is known.
    static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The capacity in bytes that [`COMPRESSED`] may keep between batches.
const LARGEST_KEPT: usize = 4 << 20;

impl SealedBatch {
    pub(super) fn new(
        mut builder: RecordBatchBuilder,
        options: &SealOptions,
    ) -> Result<Self, Box<SealError>> {
        builder.reserve_header();
        if i32::try_from(builder.len()).is_err() {
            return Err(Box::new(SealError { kind: SealErrorKind::TooLarge(builder.len()), builder }));
        }
        let mut attributes = 0;
        let mut kept = if builder.keeps_records { Kept::Own } else { Kept::No };
        if options.is_transactional {
            attributes |= layout::TRANSACTIONAL;
        }
        if options.is_control {
            attributes |= layout::CONTROL;
        }
        if options.compression != Compression::None {
            match compressed(&mut builder, options) {
                Ok(Some(records)) => {
                    attributes |= i16::from(options.compression.id());
                    if builder.keeps_records {
                        kept = Kept::Apart(Box::new(KeptRecords::new(builder.base_timestamp, records)));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    return Err(Box::new(SealError { kind: SealErrorKind::Compress(error), builder }));
                }
            }
        }
        let RecordBatchBuilder { mut chain, record_count, base_timestamp, max_timestamp, .. } = builder;
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
        let mut batch = Self { chain, record_count, max_timestamp, kept };
        batch.set_producer(options.producer_id, options.producer_epoch, options.base_sequence);
        Ok(batch)
    }

    /// Writes the producer's ID, epoch and sequence into the header, and updates the checksum.
    pub fn set_producer(&mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        let head = self.chain.head_mut();
        put(head, layout::PRODUCER_ID, &producer_id.to_be_bytes());
        put(head, layout::PRODUCER_EPOCH, &producer_epoch.to_be_bytes());
        put(head, layout::BASE_SEQUENCE, &base_sequence.to_be_bytes());
        let crc = self.checksum();
        put(self.chain.head_mut(), layout::CRC, &crc.to_be_bytes());
    }

    fn checksum(&self) -> u32 {
        let mut segments = self.chain.segments();
        let Some(summed) = self.chain.summed() else {
            let mut checksum = Checksum::new();
            let first = segments.next().unwrap_or_default();
            checksum.update(&first[layout::ATTRIBUTES..]);
            segments.for_each(|segment| checksum.update(segment));
            return checksum.value();
        };
        let mut head = Checksum::new();
        head.update(&segments.next().unwrap_or_default()[layout::ATTRIBUTES..layout::RECORDS]);
        let (mut records, mut len) = (summed.checksum, summed.bytes);
        for segment in segments.skip(summed.segments - 1) {
            records.update(segment);
            len += segment.len();
        }
        concatenated(head.value(), records.value(), len)
    }

    /// Ends the batch, and returns its uncompressed records if it was built to keep them.
    pub fn into_kept(self) -> Option<KeptRecords> {
        let base_timestamp = self.base_timestamp();
        match self.kept {
            Kept::No => None,
            Kept::Own => Some(KeptRecords::new(base_timestamp, self.chain)),
            Kept::Apart(records) => Some(*records),
        }
    }

    /// Takes the uncompressed records while a request still uses the batch: copies what it uses.
    pub fn copy_kept(&mut self) -> Option<KeptRecords> {
        match std::mem::replace(&mut self.kept, Kept::No) {
            Kept::No => None,
            Kept::Own => Some(KeptRecords::new(self.base_timestamp(), self.chain.copy())),
            Kept::Apart(records) => Some(*records),
        }
    }

    /// Returns the time to which the records' timestamps are relative.
    fn base_timestamp(&self) -> i64 {
        let head = self.chain.segments().next().and_then(|head| head.get(layout::BASE_TIMESTAMP..));
        head.and_then(<[u8]>::first_chunk).map_or(0, |bytes| i64::from_be_bytes(*bytes))
    }

    /// Returns the size in bytes on the wire.
    pub const fn len(&self) -> usize {
        self.chain.len()
    }

    /// Returns true if the batch has no bytes, which does not happen.
    pub const fn is_empty(&self) -> bool {
        self.chain.len() == 0
    }

    /// Returns the number of records.
    pub const fn record_count(&self) -> u32 {
        self.record_count
    }

    /// Returns the largest timestamp.
    pub const fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// Iterates over the batch's segments, which are written one after the other.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.segments()
    }

    /// Iterates over the segments from the one at an index on.
    pub fn segments_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        self.chain.segments_from(index)
    }

    /// Returns the bytes as one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.segments().for_each(|segment| bytes.extend_from_slice(segment));
        bytes
    }

    /// Calls `each` with every record in order. Decompresses them first if needed.
    pub fn for_each_record(&self, mut each: impl FnMut(RecordView<'_>)) -> Result<(), BatchError> {
        let bytes = self.to_vec();
        let header = BatchHeader::parse(&bytes)?;
        let records = RecordBatch::new(header, &bytes).records(usize::MAX)?;
        for record in Records::new(&header, &records) {
            each(record?);
        }
        Ok(())
    }

    /// Splits the batch in two, the first with `at` records; `None` if one of the two would be empty.
    pub fn split(&self, at: u32, pool: &ChunkPool, options: &SealOptions) -> Option<(Self, Self)> {
        if at == 0 || at >= self.record_count {
            return None;
        }
        let mut parts = [RecordBatchBuilder::new(pool), RecordBatchBuilder::new(pool)];
        if !matches!(self.kept, Kept::No) {
            parts.iter_mut().for_each(RecordBatchBuilder::keep_records);
        }
        self.for_each_record(|record| {
            let part = usize::from(parts[0].record_count() == at);
            let headers: Vec<_> = record.headers().collect();
            parts[part].append(record.timestamp, record.key, record.value, &headers);
        })
        .ok()?;
        let [first, second] = parts;
        Some((first.seal(options).ok()?, second.seal(options).ok()?))
    }

    /// Returns true if any record has headers. Reads every record.
    pub fn has_headers(&self) -> bool {
        let bytes = self.to_vec();
        let Ok(header) = BatchHeader::parse(&bytes) else { return false };
        let Ok(raw) = RecordBatch::new(header, &bytes).records(usize::MAX) else { return false };
        Records::new(&header, &raw).flatten().any(|record| record.headers().next().is_some())
    }

    /// Converts the records to a message set, for brokers before 0.11. These formats have no headers, format 0 has no
    /// timestamps, and zstd batches are written uncompressed.
    pub fn to_message_set(
        &self,
        format: LegacyFormat,
        options: &SealOptions,
    ) -> Result<Vec<u8>, MessageSetError> {
        let bytes = self.to_vec();
        let header = BatchHeader::parse(&bytes).map_err(MessageSetError::Batch)?;
        let batch = RecordBatch::new(header, &bytes);
        let raw = batch.records(usize::MAX).map_err(MessageSetError::Batch)?;
        let records: Result<Vec<_>, _> = Records::new(&header, &raw).collect();
        let records = records.map_err(MessageSetError::Batch)?;
        let codec = match options.compression {
            Compression::Zstd => Compression::None,
            codec => codec,
        };
        let mut out = Vec::new();
        put_message_set(format, codec, options.level, records.into_iter(), &mut out)
            .map_err(MessageSetError::Compress)?;
        Ok(out)
    }
}

/// The reason why a batch could not be turned into a message set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageSetError {
    /// The batch can't be read back.
    Batch(BatchError),
    /// The set can't be compressed.
    Compress(CompressError),
}

impl fmt::Display for MessageSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(error) => error.fmt(f),
            Self::Compress(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MessageSetError {}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SealErrorKind::Compress(error) => error.fmt(f),
            SealErrorKind::TooLarge(len) => write!(f, "a batch of {len} bytes; 2147483647 is the most"),
        }
    }
}

impl std::error::Error for SealError {}

/// Replaces the records in the chain by compressed ones, and returns the chain before. `None` if that would not make the batch
/// smaller, which also saves the reader the decompression.
fn compressed(
    builder: &mut RecordBatchBuilder,
    options: &SealOptions,
) -> Result<Option<ChunkChain>, CompressError> {
    COMPRESSED.with_borrow_mut(|out| {
        out.clear();
        let first = builder.chain.segments().next().and_then(|segment| segment.get(layout::RECORDS..));
        let records = first.into_iter().chain(builder.chain.segments().skip(1));
        compress(options.compression, options.level, records, out)?;
        let is_smaller = out.len() < builder.chain.len() - layout::RECORDS;
        let before = is_smaller.then(|| {
            let mut before = builder.chain.take();
            if !builder.keeps_records {
                // The compressed records go to the chunks of the others.
                before.clear();
            }
            builder.chain.put(&[0; layout::RECORDS]);
            builder.chain.put(out);
            before
        });
        if out.capacity() > LARGEST_KEPT {
            *out = Vec::new();
        }
        Ok(before)
    })
}

fn put(head: &mut [u8], at: usize, bytes: &[u8]) {
    head[at..at + bytes.len()].copy_from_slice(bytes);
}
