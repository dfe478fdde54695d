//! Walks record batches in the buffer in which they came.

use std::{borrow::Cow, fmt};

use crc_fast::{CrcAlgorithm, checksum};

use super::{HeaderRef, LegacyMessage, layout, varint};
use crate::compress::{Compression, DecompressError, decompress};

/// Walks the batches of a fetch response's records. A batch that is cut off at the end is left out: brokers send as many
/// bytes as were asked for.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    over: bool,
}

/// A batch of any format.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Format 2.
    V2(RecordBatch<'a>),
    /// A message of format 0 or 1, which may wrap a compressed set of messages.
    Legacy(LegacyMessage<'a>),
}

/// A batch of format 2 with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RecordBatch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

/// The header of a batch of format 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The first record's offset.
    pub base_offset: i64,
    /// The whole batch's size in bytes.
    pub size: usize,
    /// The leader epoch at which it was written.
    pub partition_leader_epoch: i32,
    /// The checksum that it claims.
    pub crc: u32,
    /// Codec, timestamp type, transactional, control.
    pub attributes: i16,
    /// The last record's offset less the base offset.
    pub last_offset_delta: i32,
    /// What the records' timestamps are relative to.
    pub base_timestamp: i64,
    /// The largest timestamp.
    pub max_timestamp: i64,
    /// The idempotent producer's id, or -1.
    pub producer_id: i64,
    /// The idempotent producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence number, or -1.
    pub base_sequence: i32,
    /// How many records it claims to have.
    pub record_count: i32,
}

/// Walks the records of a batch.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    position: usize,
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
    /// The timestamp of all records, where the broker set it.
    log_append_time: Option<i64>,
}

/// A record where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// The offset in the partition.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    headers: &'a [u8],
    header_count: u32,
}

/// Walks the headers of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: u32,
}

/// What is wrong with a batch, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// What is wrong.
    pub kind: BatchErrorKind,
    /// The position in the bytes that were given.
    pub position: usize,
}

/// What is wrong with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchErrorKind {
    /// Shorter than its header.
    TooShort,
    /// A length that is negative or reaches beyond the end.
    Length,
    /// A format that is not known.
    Magic(i8),
    /// The checksum differs.
    Crc {
        /// What the batch claims.
        claimed: u32,
        /// What its bytes say.
        computed: u32,
    },
    /// A codec that is not known.
    Codec(u8),
    /// The compressed records are damaged or too large.
    Decompress(DecompressError),
    /// A number of records that can't be.
    RecordCount(i32),
    /// A record that breaks the format.
    Record,
    /// Bytes behind the last record.
    TrailingBytes(usize),
}

impl<'a> Batches<'a> {
    /// The batches in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, over: false }
    }

    /// Where the next batch starts.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// After an error: goes to where the length of the batch that can't be read says that the next one starts. False if it
    /// can't be there. The length may be what is damaged, so what is found there has to prove itself.
    pub fn skip_damaged(&mut self) -> bool {
        let rest = &self.bytes[self.position..];
        let length = field(rest, layout::LENGTH).map(i32::from_be_bytes);
        let length = length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length > 0);
        let size = length.map(|length| length + layout::LENGTH_PREFIX).filter(|size| *size <= rest.len());
        self.position += size.unwrap_or(0);
        self.over = size.is_none();
        size.is_some()
    }

    fn next_batch(&mut self) -> Result<Option<Batch<'a>>, BatchError> {
        let rest = &self.bytes[self.position..];
        let error = |kind| BatchError { kind, position: self.position };
        let (Some(length), Some(magic)) = (field(rest, layout::LENGTH), rest.get(layout::MAGIC)) else {
            return Ok(None);
        };
        let length =
            usize::try_from(i32::from_be_bytes(length)).map_err(|_| error(BatchErrorKind::Length))?;
        let size = length + layout::LENGTH_PREFIX;
        let Some(bytes) = rest.get(..size) else { return Ok(None) };
        let batch = match *magic as i8 {
            2 => Batch::V2(RecordBatch {
                header: BatchHeader::parse(bytes).map_err(|e| error(e.kind))?,
                bytes,
            }),
            0 | 1 => Batch::Legacy(
                LegacyMessage::parse(bytes)
                    .map_err(|e| BatchError { position: e.position + self.position, ..e })?,
            ),
            magic => return Err(error(BatchErrorKind::Magic(magic))),
        };
        self.position += size;
        Ok(Some(batch))
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.next_batch().transpose();
        // After an error nothing tells where the next batch would start.
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl BatchHeader {
    /// Reads a header. `bytes` may end with the header.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let error = |kind, position| BatchError { kind, position };
        let short = error(BatchErrorKind::TooShort, bytes.len());
        let magic = *bytes.get(layout::MAGIC).ok_or(short)? as i8;
        if magic != 2 {
            return Err(error(BatchErrorKind::Magic(magic), layout::MAGIC));
        }
        if bytes.len() < layout::RECORDS {
            return Err(short);
        }
        let i16_at = |at| field(bytes, at).map(i16::from_be_bytes).ok_or(short);
        let i32_at = |at| field(bytes, at).map(i32::from_be_bytes).ok_or(short);
        let i64_at = |at| field(bytes, at).map(i64::from_be_bytes).ok_or(short);
        let length = usize::try_from(i32_at(layout::LENGTH)?).ok();
        let size = length
            .map(|length| length + layout::LENGTH_PREFIX)
            .filter(|size| *size >= layout::RECORDS)
            .ok_or(error(BatchErrorKind::Length, layout::LENGTH))?;
        let header = Self {
            base_offset: i64_at(layout::BASE_OFFSET)?,
            size,
            partition_leader_epoch: i32_at(layout::PARTITION_LEADER_EPOCH)?,
            crc: i32_at(layout::CRC)? as u32,
            attributes: i16_at(layout::ATTRIBUTES)?,
            last_offset_delta: i32_at(layout::LAST_OFFSET_DELTA)?,
            base_timestamp: i64_at(layout::BASE_TIMESTAMP)?,
            max_timestamp: i64_at(layout::MAX_TIMESTAMP)?,
            producer_id: i64_at(layout::PRODUCER_ID)?,
            producer_epoch: i16_at(layout::PRODUCER_EPOCH)?,
            base_sequence: i32_at(layout::BASE_SEQUENCE)?,
            record_count: i32_at(layout::RECORD_COUNT)?,
        };
        if header.record_count < 0 || header.last_offset_delta < 0 {
            return Err(error(BatchErrorKind::RecordCount(header.record_count), layout::RECORD_COUNT));
        }
        Ok(header)
    }

    /// The codec.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        let id = (self.attributes & layout::COMPRESSION_MASK) as u8;
        Compression::from_id(id)
            .ok_or(BatchError { kind: BatchErrorKind::Codec(id), position: layout::ATTRIBUTES })
    }

    /// True if the records are control markers.
    pub const fn is_control(&self) -> bool {
        self.attributes & layout::CONTROL != 0
    }

    /// True if the batch belongs to a transaction.
    pub const fn is_transactional(&self) -> bool {
        self.attributes & layout::TRANSACTIONAL != 0
    }

    /// True if the broker set the timestamps.
    pub const fn is_log_append_time(&self) -> bool {
        self.attributes & layout::LOG_APPEND_TIME != 0
    }

    /// The last offset that the batch covers.
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta as i64)
    }
}

impl<'a> RecordBatch<'a> {
    /// A batch from its header and all of its bytes.
    pub const fn new(header: BatchHeader, bytes: &'a [u8]) -> Self {
        Self { header, bytes }
    }

    /// The header.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes, header included.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Compares the checksum.
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = checksum(CrcAlgorithm::Crc32Iscsi, &self.bytes[layout::ATTRIBUTES..]) as u32;
        if computed == self.header.crc {
            return Ok(());
        }
        let kind = BatchErrorKind::Crc { claimed: self.header.crc, computed };
        Err(BatchError { kind, position: layout::CRC })
    }

    /// The encoded records: in place, or uncompressed into at most `limit` bytes.
    pub fn records(&self, limit: usize) -> Result<Cow<'a, [u8]>, BatchError> {
        let compressed = &self.bytes[layout::RECORDS..];
        match self.header.compression()? {
            Compression::None => Ok(Cow::Borrowed(compressed)),
            codec => {
                let mut records = Vec::new();
                decompress(codec, compressed, limit, &mut records).map_err(|error| BatchError {
                    kind: BatchErrorKind::Decompress(error),
                    position: layout::RECORDS,
                })?;
                Ok(Cow::Owned(records))
            }
        }
    }
}

impl<'a> Records<'a> {
    /// The records of a batch with this header; `bytes` are its records, uncompressed.
    pub fn new(header: &BatchHeader, bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            left: header.record_count,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            log_append_time: header.is_log_append_time().then_some(header.max_timestamp),
        }
    }

    /// The records of a batch that has no header yet.
    pub(super) fn unsealed(count: u32, base_timestamp: i64, bytes: &'a [u8]) -> Self {
        let left = i32::try_from(count).unwrap_or(i32::MAX);
        Self { bytes, position: 0, left, base_offset: 0, base_timestamp, log_append_time: None }
    }

    /// Where the next record starts.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Behind the last record: there must be nothing more.
    #[cold]
    fn trailing(&self) -> Option<BatchError> {
        let count =
            self.bytes.len().checked_sub(self.position).filter(|count| *count > 0 && self.left == 0)?;
        Some(BatchError { kind: BatchErrorKind::TrailingBytes(count), position: self.position })
    }

    #[inline(always)]
    fn next_record(&mut self) -> Option<RecordView<'a>> {
        let mut rest = self.bytes.get(self.position..)?;
        let length = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (mut body, rest) = rest.split_at_checked(length)?;
        // The attributes have no meaning yet.
        body = body.get(1..)?;
        let timestamp_delta = varint::take(&mut body)?;
        let offset_delta = i32::try_from(varint::take(&mut body)?).ok()?;
        let key = take_field(&mut body)?;
        let value = take_field(&mut body)?;
        let header_count = varint::take(&mut body)?;
        if header_count != 0 || !body.is_empty() {
            check_headers(body, header_count)?;
        }
        self.position = self.bytes.len() - rest.len();
        Some(RecordView {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: self.log_append_time.unwrap_or(self.base_timestamp.wrapping_add(timestamp_delta)),
            key,
            value,
            headers: body,
            header_count: header_count as u32,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            let error = self.trailing()?;
            self.left = -1;
            return Some(Err(error));
        }
        match self.next_record() {
            Some(record) => {
                self.left -= 1;
                Some(Ok(record))
            }
            None => {
                self.left = -1;
                Some(Err(BatchError { kind: BatchErrorKind::Record, position: self.position }))
            }
        }
    }
}

impl<'a> RecordView<'a> {
    /// A record without headers, as the older formats have them.
    pub const fn without_headers(
        offset: i64,
        timestamp: i64,
        key: Option<&'a [u8]>,
        value: Option<&'a [u8]>,
    ) -> Self {
        Self { offset, timestamp, key, value, headers: &[], header_count: 0 }
    }

    /// The headers, in order.
    pub const fn headers(&self) -> Headers<'a> {
        Headers { bytes: self.headers, left: self.header_count }
    }
}

impl<'a> Headers<'a> {
    /// Headers again of which the bytes and the number were kept.
    pub const fn new(bytes: &'a [u8], count: u32) -> Self {
        Self { bytes, left: count }
    }

    /// The encoded headers.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderRef<'a>;

    fn next(&mut self) -> Option<HeaderRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        // They were walked once before the record was handed out, so none is missing here.
        Some(HeaderRef {
            key: take_field(&mut self.bytes).flatten().unwrap_or_default(),
            value: take_field(&mut self.bytes).flatten(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}

fn check_headers(mut bytes: &[u8], count: i64) -> Option<()> {
    // A header takes at least two bytes.
    if count < 0 || count > bytes.len() as i64 / 2 {
        return None;
    }
    for _ in 0..count {
        take_field(&mut bytes)??;
        take_field(&mut bytes)?;
    }
    bytes.is_empty().then_some(())
}

/// A length and that many bytes; `Some(None)` is null, `None` is an error.
#[inline(always)]
fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match varint::take(bytes)? {
        -1 => Some(None),
        length => {
            let (field, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            *bytes = rest;
            Some(Some(field))
        }
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BatchErrorKind::TooShort => f.write_str("the batch is shorter than its header")?,
            BatchErrorKind::Length => f.write_str("the batch's length can't be")?,
            BatchErrorKind::Magic(magic) => write!(f, "the batch has the unknown format {magic}")?,
            BatchErrorKind::Crc { claimed, computed } => {
                write!(f, "the batch's checksum is {claimed:#010x} but its bytes say {computed:#010x}")?;
            }
            BatchErrorKind::Codec(id) => write!(f, "the batch has the unknown codec {id}")?,
            BatchErrorKind::Decompress(error) => error.fmt(f)?,
            BatchErrorKind::RecordCount(count) => write!(f, "the batch claims {count} records")?,
            BatchErrorKind::Record => f.write_str("a record breaks the format")?,
            BatchErrorKind::TrailingBytes(count) => write!(f, "{count} bytes behind the last record")?,
        }
        write!(f, ", at byte {}", self.position)
    }
}

impl std::error::Error for BatchError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ChunkPool, RecordBatchBuilder, SealOptions};

    fn header<'a>(key: &'a str, value: Option<&'a [u8]>) -> HeaderRef<'a> {
        HeaderRef { key: key.as_bytes(), value }
    }

    type Fields<'a> = (i64, Option<&'a [u8]>, Option<&'a [u8]>, Vec<HeaderRef<'a>>);

    fn sealed(records: &[Fields<'_>]) -> Vec<u8> {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        for (timestamp, key, value, headers) in records {
            builder.append(*timestamp, *key, *value, headers);
        }
        builder.seal(&SealOptions::default()).unwrap().to_vec()
    }

    fn only_batch(bytes: &[u8]) -> RecordBatch<'_> {
        let mut batches = Batches::new(bytes);
        let Some(Ok(Batch::V2(batch))) = batches.next() else { panic!("no batch") };
        assert!(batches.next().is_none());
        batch
    }

    #[test]
    fn records_come_back_as_they_went_in() {
        let large = vec![7; 100_000];
        let bytes = sealed(&[
            (1000, Some(b"k"), Some(b"v"), vec![]),
            (
                900,
                None,
                Some(&large),
                vec![header("h", Some(b"1")), header("h", None), header("", Some(b""))],
            ),
            (i64::MAX, Some(b""), None, vec![]),
        ]);
        let batch = only_batch(&bytes);
        batch.verify_crc().unwrap();
        assert_eq!((batch.header().record_count, batch.header().max_timestamp), (3, i64::MAX));
        let raw = batch.records(usize::MAX).unwrap();
        let records: Vec<_> = Records::new(batch.header(), &raw).map(Result::unwrap).collect();
        assert_eq!(records[0].key, Some(&b"k"[..]));
        assert_eq!((records[1].offset, records[1].timestamp, records[1].value), (1, 900, Some(&large[..])));
        let headers: Vec<_> = records[1].headers().collect();
        assert_eq!(headers, [header("h", Some(b"1")), header("h", None), header("", Some(b""))]);
        assert_eq!((records[2].key, records[2].value), (Some(&b""[..]), None));
        assert_eq!(records[2].timestamp, i64::MAX);
    }

    #[test]
    fn a_batch_that_is_cut_off_is_left_out() {
        let one = sealed(&[(0, None, Some(b"v"), vec![])]);
        let two = [one.clone(), one.clone()].concat();
        for cut in one.len()..two.len() {
            let batches: Vec<_> = Batches::new(&two[..cut]).collect();
            assert_eq!(batches.len(), 1, "cut at {cut}");
            assert!(batches[0].is_ok());
        }
    }

    #[test]
    fn one_flipped_bit_is_found_by_the_checksum() {
        let bytes = sealed(&[(0, None, Some(b"some value"), vec![])]);
        for position in layout::ATTRIBUTES..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            let found = match Batches::new(&damaged).next() {
                Some(Ok(Batch::V2(batch))) => batch.verify_crc().is_err(),
                _ => true,
            };
            assert!(found, "byte {position}");
        }
    }

    #[test]
    fn lying_records_are_errors_and_never_more_than_one() {
        let bytes = sealed(&[(0, Some(b"key"), Some(b"value"), vec![header("h", Some(b"x"))])]);
        for position in layout::RECORDS..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] = value;
                let batch = only_batch(&damaged);
                let raw = batch.records(1000).unwrap();
                let errors = Records::new(batch.header(), &raw).filter(Result::is_err).count();
                assert!(errors <= 1);
            }
        }
        let mut more = bytes.clone();
        more[layout::RECORD_COUNT..layout::RECORDS].copy_from_slice(&1000i32.to_be_bytes());
        let batch = only_batch(&more);
        let raw = batch.records(1000).unwrap();
        assert_eq!(Records::new(batch.header(), &raw).count(), 2, "one record and one error");
        let mut fewer = bytes;
        fewer[layout::RECORD_COUNT..layout::RECORDS].copy_from_slice(&0i32.to_be_bytes());
        let batch = only_batch(&fewer);
        let raw = batch.records(1000).unwrap();
        let kinds: Vec<_> =
            Records::new(batch.header(), &raw).map(|record| record.unwrap_err().kind).collect();
        assert_eq!(kinds, [BatchErrorKind::TrailingBytes(raw.len())]);
    }

    #[test]
    fn a_batch_splits_into_two_with_all_records() {
        let pool = ChunkPool::new();
        let mut builder = RecordBatchBuilder::new(&pool);
        for i in 0..10i64 {
            builder.append(i, None, Some(&[i as u8]), &[]);
        }
        let whole = builder.seal(&SealOptions::default()).unwrap();
        let (first, second) = whole.split(5, &pool, &SealOptions::default()).unwrap();
        let mut values = Vec::new();
        for part in [first, second] {
            let bytes = part.to_vec();
            let batch = only_batch(&bytes);
            let raw = batch.records(1000).unwrap();
            values.extend(Records::new(batch.header(), &raw).map(|record| record.unwrap().value.unwrap()[0]));
        }
        assert_eq!(values, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(whole.split(10, &pool, &SealOptions::default()).is_none());
    }
}
