//! Walks record batches in the buffer in which they were received.

use std::{borrow::Cow, fmt};

use super::{HeaderRef, LegacyMessage, layout, prefetch::prefetch_ahead, varint};
use crate::compress::{Compression, DecompressError, decompress};

/// Iterates over the batches of a Fetch response's records. An incomplete batch at the end is left out: brokers cut the
/// records at the requested number of bytes.
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
    /// The checksum in the header.
    pub crc: u32,
    /// Codec, timestamp type, transactional, control.
    pub attributes: i16,
    /// The last record's offset less the base offset.
    pub last_offset_delta: i32,
    /// The timestamp that the records' deltas are relative to.
    pub base_timestamp: i64,
    /// The largest timestamp.
    pub max_timestamp: i64,
    /// The idempotent producer's id, or -1.
    pub producer_id: i64,
    /// The idempotent producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence number, or -1.
    pub base_sequence: i32,
    /// The number of records in the header, not verified yet.
    pub record_count: i32,
}

/// Iterates over the records of a batch.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    position: usize,
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
    /// The timestamp of all records if the broker set it.
    log_append_time: Option<i64>,
}

/// A record that borrows from the batch's bytes.
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

/// Iterates over the headers of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: u32,
}

/// Error: a batch can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// The kind of damage.
    pub kind: BatchErrorKind,
    /// The position in the bytes that the caller passed.
    pub position: usize,
}

/// The kinds of [`BatchError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchErrorKind {
    /// The batch is shorter than its header.
    TooShort,
    /// A length is negative or reaches beyond the end.
    Length,
    /// The format is unknown.
    Magic(i8),
    /// The checksum differs.
    Crc {
        /// The checksum in the header.
        claimed: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The codec is unknown.
    Codec(u8),
    /// The compressed records are damaged or too large.
    Decompress(DecompressError),
    /// The number of records is impossible.
    RecordCount(i32),
    /// A record violates the format.
    Record,
    /// Bytes follow the last record.
    TrailingBytes(usize),
}

impl<'a> Batches<'a> {
    /// Creates an iterator over the batches in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, over: false }
    }

    /// Returns the position of the next batch.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// After an error, moves to the position after the unreadable batch, by its length field. Returns false if no batch
    /// can start there. The length itself may be damaged, so the next batch is verified like any other.
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
        // After an error the position of the next batch is unknown.
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl BatchHeader {
    /// Parses a header. `bytes` may end with the header.
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

    /// Returns true if the records are control markers.
    pub const fn is_control(&self) -> bool {
        self.attributes & layout::CONTROL != 0
    }

    /// Returns true if the batch belongs to a transaction.
    pub const fn is_transactional(&self) -> bool {
        self.attributes & layout::TRANSACTIONAL != 0
    }

    /// Returns true if the broker set the timestamps.
    pub const fn is_log_append_time(&self) -> bool {
        self.attributes & layout::LOG_APPEND_TIME != 0
    }

    /// The last offset that the batch covers.
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta as i64)
    }
}

impl<'a> RecordBatch<'a> {
    /// Creates a batch from its header and all of its bytes.
    pub const fn new(header: BatchHeader, bytes: &'a [u8]) -> Self {
        Self { header, bytes }
    }

    /// The header.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Returns all bytes, header included.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Verifies the checksum.
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[layout::ATTRIBUTES..]);
        if computed == self.header.crc {
            return Ok(());
        }
        let kind = BatchErrorKind::Crc { claimed: self.header.crc, computed };
        Err(BatchError { kind, position: layout::CRC })
    }

    /// Returns the encoded records: in place, or decompressed into at most `limit` bytes.
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
    /// Creates an iterator over the records of a batch with this header; `bytes` are its decompressed records.
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

    /// Creates an iterator over the records of a batch that has no header yet.
    pub(super) fn unsealed(count: u32, base_timestamp: i64, bytes: &'a [u8]) -> Self {
        let left = i32::try_from(count).unwrap_or(i32::MAX);
        Self { bytes, position: 0, left, base_offset: 0, base_timestamp, log_append_time: None }
    }

    /// Returns the position of the next record.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Checks that nothing follows the last record.
    #[cold]
    fn trailing(&self) -> Option<BatchError> {
        let count =
            self.bytes.len().checked_sub(self.position).filter(|count| *count > 0 && self.left == 0)?;
        Some(BatchError { kind: BatchErrorKind::TrailingBytes(count), position: self.position })
    }

    #[inline(always)]
    fn next_record(&mut self) -> Option<RecordView<'a>> {
        let rest = self.bytes.get(self.position..)?;
        prefetch_ahead(rest);
        let RecordHead { timestamp_delta, offset_delta, mut body, rest } =
            RecordHead::short(rest).or_else(|| RecordHead::any(rest))?;
        let key = take_field(&mut body)?;
        let value = take_field(&mut body)?;
        let header_count = varint::take(&mut body)?;
        if header_count != 0 || !body.is_empty() {
            check_headers(body, header_count)?;
        }
        let offset = self.base_offset.wrapping_add(i64::from(i32::try_from(offset_delta).ok()?));
        self.position = self.bytes.len() - rest.len();
        Some(RecordView {
            offset,
            timestamp: self.log_append_time.unwrap_or(self.base_timestamp.wrapping_add(timestamp_delta)),
            key,
            value,
            headers: body,
            header_count: header_count as u32,
        })
    }
}

/// The first fields of a record.
struct RecordHead<'a> {
    timestamp_delta: i64,
    offset_delta: i64,
    /// What follows in the record.
    body: &'a [u8],
    /// What follows the record.
    rest: &'a [u8],
}

impl<'a> RecordHead<'a> {
    /// Reads fields of one or two bytes each, as almost all records have.
    #[inline(always)]
    fn short(bytes: &'a [u8]) -> Option<Self> {
        let mut ahead = varint::Ahead::of(bytes)?;
        let length = usize::try_from(ahead.take()?).ok()?;
        let start = ahead.taken();
        // The attributes have no defined bits.
        ahead.skip();
        let (timestamp_delta, offset_delta) = (ahead.take()?, ahead.take()?);
        let (record, rest) = bytes.split_at_checked(start + length)?;
        Some(Self { timestamp_delta, offset_delta, body: record.get(ahead.taken()..)?, rest })
    }

    #[cold]
    fn any(mut bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(varint::take(&mut bytes)?).ok()?;
        let (body, rest) = bytes.split_at_checked(length)?;
        let mut body = body.get(1..)?;
        let (timestamp_delta, offset_delta) = (varint::take(&mut body)?, varint::take(&mut body)?);
        Some(Self { timestamp_delta, offset_delta, body, rest })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    // Into each loop over records, which reads a few fields of each: a call and the result in memory cost 60 instructions.
    #[inline(always)]
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
    /// Creates a record without headers, as in the older formats.
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
    /// Restores headers from their encoded bytes and their number.
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
        // They were validated before the record was returned, so none is missing here.
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

/// Takes a length and the bytes that it counts; `Some(None)` is null, `None` is an error.
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
            BatchErrorKind::Length => f.write_str("the batch's length is impossible")?,
            BatchErrorKind::Magic(magic) => write!(f, "the batch has the unknown format {magic}")?,
            BatchErrorKind::Crc { claimed, computed } => {
                write!(f, "the batch's checksum is {claimed:#010x} but its bytes have {computed:#010x}")?;
            }
            BatchErrorKind::Codec(id) => write!(f, "the batch has the unknown codec {id}")?,
            BatchErrorKind::Decompress(error) => error.fmt(f)?,
            BatchErrorKind::RecordCount(count) => write!(f, "the batch claims {count} records")?,
            BatchErrorKind::Record => f.write_str("a record violates the format")?,
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
    fn records_round_trip() {
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
    fn truncated_batch_is_omitted() {
        let one = sealed(&[(0, None, Some(b"v"), vec![])]);
        let two = [one.clone(), one.clone()].concat();
        for cut in one.len()..two.len() {
            let batches: Vec<_> = Batches::new(&two[..cut]).collect();
            assert_eq!(batches.len(), 1, "cut at {cut}");
            assert!(batches[0].is_ok());
        }
    }

    #[test]
    fn checksum_detects_one_flipped_bit() {
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
    fn invalid_records_cause_exactly_one_error() {
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
    fn batch_splits_into_two_with_all_records() {
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
