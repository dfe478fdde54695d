//! Message sets: the formats 0 and 1 of brokers before 0.11.
//!
//! ```text
//!   0 offset (8)   8 length (4)   12 CRC32 of all that follows (4)   16 magic (1)   17 attributes (1)
//!  [18 timestamp (8), in format 1]   key length (4)   key   value length (4)   value
//! ```
//!
//! Every message is a batch of its own. A compressed set of messages is the value of a wrapper message. The wrapper's
//! offset is that of the last inner message; inner offsets are absolute in format 0 and start at 0 in format 1.
//!
//! Message sets are read like [`RecordBatch`](super::RecordBatch): [`LegacyMessage::verify_crc`],
//! [`LegacyMessage::records`], [`LegacyRecords`]. [`put_message_set`] writes them.

use std::borrow::Cow;

use super::{
    RecordView, layout,
    reader::{BatchError, BatchErrorKind},
};
use crate::compress::{CompressError, Compression, compress, compress_format_0, decompress};

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyFormat {
    /// Without timestamps.
    V0,
    /// With timestamps, since 0.10.
    V1,
}

/// A message of format 0 or 1, which may wrap a compressed set of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyMessage<'a> {
    /// The offset; a wrapper has that of its last message.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; a wrapper's value is the compressed set.
    pub value: Option<&'a [u8]>,
    format: LegacyFormat,
    attributes: u8,
    bytes: &'a [u8],
}

/// Iterates over the records of a message: the message itself, or those that it wraps.
#[derive(Clone, Debug)]
pub struct LegacyRecords<'a> {
    bytes: &'a [u8],
    position: usize,
    format: LegacyFormat,
    is_wrapped: bool,
    /// The number that is added to inner offsets.
    base_offset: i64,
    /// The timestamp of all records if the broker set it.
    log_append_time: Option<i64>,
}

const CRC: usize = 12;
const ATTRIBUTES: usize = 17;
const COMPRESSION_MASK: u8 = 0x07;
const LOG_APPEND_TIME: u8 = 0x08;

impl LegacyFormat {
    /// The number that messages carry.
    pub const fn magic(self) -> i8 {
        self as i8
    }

    /// Returns the format that a Produce request of this version carries; `None` if it carries record batches.
    pub const fn of_produce(version: i16) -> Option<Self> {
        match version {
            ..=1 => Some(Self::V0),
            2 => Some(Self::V1),
            _ => None,
        }
    }

    /// The format with this number.
    pub const fn from_magic(magic: i8) -> Option<Self> {
        match magic {
            0 => Some(Self::V0),
            1 => Some(Self::V1),
            _ => None,
        }
    }
}

impl<'a> LegacyMessage<'a> {
    /// Reads the message at the start of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let mut cursor = Cursor { bytes, position: 0 };
        let offset = i64::from_be_bytes(cursor.take()?);
        let length = i32::from_be_bytes(cursor.take()?);
        let end = usize::try_from(length)
            .ok()
            .map(|length| length + layout::LENGTH_PREFIX)
            .filter(|end| *end <= bytes.len())
            .ok_or(BatchError { kind: BatchErrorKind::Length, position: layout::LENGTH })?;
        cursor.bytes = &bytes[..end];
        let _crc: [u8; 4] = cursor.take()?;
        let [magic, attributes] = cursor.take()?;
        let magic = magic as i8;
        let format = LegacyFormat::from_magic(magic)
            .ok_or(BatchError { kind: BatchErrorKind::Magic(magic), position: layout::MAGIC })?;
        let timestamp = match format {
            LegacyFormat::V0 => -1,
            LegacyFormat::V1 => i64::from_be_bytes(cursor.take()?),
        };
        let key = cursor.nullable_bytes()?;
        let value = cursor.nullable_bytes()?;
        if cursor.position != end {
            return Err(BatchError { kind: BatchErrorKind::Record, position: cursor.position });
        }
        Ok(Self { offset, timestamp, key, value, format, attributes, bytes: cursor.bytes })
    }

    /// All bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The format.
    pub const fn format(&self) -> LegacyFormat {
        self.format
    }

    /// Returns the codec of the wrapped messages.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        let id = self.attributes & COMPRESSION_MASK;
        Compression::from_id(id).ok_or(BatchError { kind: BatchErrorKind::Codec(id), position: ATTRIBUTES })
    }

    /// Returns true if the broker set the timestamps.
    pub const fn is_log_append_time(&self) -> bool {
        matches!(self.format, LegacyFormat::V1) && self.attributes & LOG_APPEND_TIME != 0
    }

    /// Verifies the checksum, which covers the wrapped messages.
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let (claimed, covered) = self.bytes[CRC..]
            .split_first_chunk()
            .ok_or(BatchError { kind: BatchErrorKind::TooShort, position: CRC })?;
        let claimed = u32::from_be_bytes(*claimed);
        let computed = crc32fast::hash(covered);
        if computed == claimed {
            return Ok(());
        }
        Err(BatchError { kind: BatchErrorKind::Crc { claimed, computed }, position: CRC })
    }

    /// Returns the encoded messages: the message itself in place, or those that it wraps, decompressed into at most
    /// `limit` bytes.
    pub fn records(&self, limit: usize) -> Result<Cow<'a, [u8]>, BatchError> {
        let codec = self.compression()?;
        if codec == Compression::None {
            return Ok(Cow::Borrowed(self.bytes));
        }
        let mut records = Vec::new();
        let position = self.bytes.len() - self.value.map_or(0, <[u8]>::len);
        let compressed = self.value.ok_or(BatchError { kind: BatchErrorKind::Record, position })?;
        decompress(codec, compressed, limit, &mut records)
            .map_err(|error| BatchError { kind: BatchErrorKind::Decompress(error), position })?;
        Ok(Cow::Owned(records))
    }
}

impl<'a> LegacyRecords<'a> {
    /// Creates an iterator over the records of `message`; `bytes` is the result of [`LegacyMessage::records`].
    pub fn new(message: &LegacyMessage<'_>, bytes: &'a [u8]) -> Self {
        let is_wrapped = message.attributes & COMPRESSION_MASK != 0;
        let mut base_offset = 0;
        if is_wrapped && message.format == LegacyFormat::V1 {
            // Negative while no broker has assigned offsets.
            base_offset = message.offset.saturating_sub(last_offset(bytes).unwrap_or(0)).max(0);
        }
        let log_append_time = message.is_log_append_time().then_some(message.timestamp);
        Self { bytes, position: 0, format: message.format, is_wrapped, base_offset, log_append_time }
    }

    fn next_record(&mut self) -> Result<RecordView<'a>, BatchError> {
        let at = |error: BatchError| BatchError { position: error.position + self.position, ..error };
        let message = LegacyMessage::parse(&self.bytes[self.position..]).map_err(at)?;
        if message.format != self.format {
            let kind = BatchErrorKind::Magic(message.format.magic());
            return Err(at(BatchError { kind, position: layout::MAGIC }));
        }
        if self.is_wrapped && message.compression()? != Compression::None {
            // Nested compression is refused: no client writes it, and following it would not be bounded.
            return Err(at(BatchError { kind: BatchErrorKind::Record, position: ATTRIBUTES }));
        }
        self.position += message.bytes.len();
        Ok(RecordView::without_headers(
            self.base_offset.wrapping_add(message.offset),
            self.log_append_time.unwrap_or(message.timestamp),
            message.key,
            message.value,
        ))
    }
}

impl<'a> Iterator for LegacyRecords<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position == self.bytes.len() {
            return None;
        }
        let record = self.next_record();
        if record.is_err() {
            self.position = self.bytes.len();
        }
        Some(record)
    }
}

/// Appends `records` to `out` as a message set, with their offsets, compressed as a wrapper message if there is a
/// codec.
///
/// Headers are left out because these formats have none, and so are the timestamps in format 0. Zstd is an error,
/// because it is newer than these formats. The caller keeps the set below 2 GiB. After an error `out` is unchanged.
pub fn put_message_set<'a>(
    format: LegacyFormat,
    codec: Compression,
    level: Option<i32>,
    records: impl Iterator<Item = RecordView<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    if codec == Compression::Zstd {
        return Err(CompressError::Codec {
            codec,
            detail: "message sets of formats 0 and 1 do not support zstd",
        });
    }
    if codec == Compression::None {
        records.for_each(|record| put_message(format, codec, &record, out));
        return Ok(());
    }
    let mut inner = Vec::new();
    let mut first_offset = None;
    let mut wrapper = RecordView::without_headers(0, -1, None, None);
    for mut record in records {
        wrapper.offset = record.offset;
        wrapper.timestamp = wrapper.timestamp.max(record.timestamp);
        let first_offset = *first_offset.get_or_insert(record.offset);
        if format == LegacyFormat::V1 {
            record.offset = record.offset.wrapping_sub(first_offset);
        }
        put_message(format, Compression::None, &record, &mut inner);
    }
    if first_offset.is_none() {
        return Ok(());
    }
    let mut value = Vec::new();
    let pieces = std::iter::once(&inner[..]);
    match format {
        LegacyFormat::V0 => compress_format_0(codec, level, pieces, &mut value)?,
        LegacyFormat::V1 => compress(codec, level, pieces, &mut value)?,
    }
    let wrapper = RecordView::without_headers(wrapper.offset, wrapper.timestamp, None, Some(&value));
    put_message(format, codec, &wrapper, out);
    Ok(())
}

fn put_message(format: LegacyFormat, codec: Compression, record: &RecordView<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&record.offset.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&[format.magic() as u8, codec.id()]);
    if format == LegacyFormat::V1 {
        out.extend_from_slice(&record.timestamp.to_be_bytes());
    }
    for field in [record.key, record.value] {
        match field {
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(bytes) => {
                out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
    let message = &mut out[start..];
    let length = (message.len() - layout::LENGTH_PREFIX) as i32;
    message[layout::LENGTH..CRC].copy_from_slice(&length.to_be_bytes());
    let crc = crc32fast::hash(&message[layout::MAGIC..]);
    message[CRC..layout::MAGIC].copy_from_slice(&crc.to_be_bytes());
}

/// Returns the last message's offset as encoded.
fn last_offset(mut set: &[u8]) -> Option<i64> {
    let mut last = None;
    while let Some((offset, rest)) = set.split_first_chunk() {
        last = Some(i64::from_be_bytes(*offset));
        let (length, rest) = rest.split_first_chunk()?;
        set = rest.get(usize::try_from(i32::from_be_bytes(*length)).ok()?..)?;
    }
    last
}

struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BatchError> {
        let taken = self.bytes[self.position..].first_chunk().ok_or(self.error(BatchErrorKind::TooShort))?;
        self.position += N;
        Ok(*taken)
    }

    fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, BatchError> {
        let length = i32::from_be_bytes(self.take()?);
        if length == -1 {
            return Ok(None);
        }
        let bytes = usize::try_from(length).ok().and_then(|length| self.bytes[self.position..].get(..length));
        let bytes = bytes.ok_or(self.error(BatchErrorKind::Record))?;
        self.position += bytes.len();
        Ok(Some(bytes))
    }

    const fn error(&self, kind: BatchErrorKind) -> BatchError {
        BatchError { kind, position: self.position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Batches};

    const CODECS: [Compression; 4] =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];
    const FORMATS: [LegacyFormat; 2] = [LegacyFormat::V0, LegacyFormat::V1];

    fn records() -> Vec<RecordView<'static>> {
        vec![
            RecordView::without_headers(100, 5000, Some(b"key"), Some(b"value")),
            RecordView::without_headers(101, 7000, None, Some(b"")),
            RecordView::without_headers(103, 6000, Some(b""), None),
            RecordView::without_headers(104, 6001, None, Some(&[7; 5000])),
        ]
    }

    fn message_set(format: LegacyFormat, codec: Compression) -> Vec<u8> {
        let mut out = Vec::new();
        put_message_set(format, codec, None, records().into_iter(), &mut out).unwrap();
        out
    }

    type Fields = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

    /// Reads everything as a consumer does, checksums included.
    fn read(bytes: &[u8]) -> Result<Vec<Fields>, BatchError> {
        let mut found = Vec::new();
        for batch in Batches::new(bytes) {
            let Batch::Legacy(message) = batch? else { panic!("format 2") };
            message.verify_crc()?;
            let raw = message.records(100_000)?;
            for record in LegacyRecords::new(&message, &raw) {
                let record = record?;
                let owned = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
                found.push((record.offset, record.timestamp, owned(record.key), owned(record.value)));
            }
        }
        Ok(found)
    }

    #[test]
    fn records_round_trip() {
        for format in FORMATS {
            for codec in CODECS {
                let found = read(&message_set(format, codec)).unwrap();
                let expected: Vec<_> = records()
                    .into_iter()
                    .map(|record| {
                        let timestamp = if format == LegacyFormat::V0 { -1 } else { record.timestamp };
                        let owned = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
                        (record.offset, timestamp, owned(record.key), owned(record.value))
                    })
                    .collect();
                assert_eq!(found, expected, "{format:?} {codec}");
            }
        }
    }

    #[test]
    fn message_set_without_records_is_empty() {
        for codec in CODECS {
            let mut out = Vec::new();
            put_message_set(LegacyFormat::V1, codec, None, std::iter::empty(), &mut out).unwrap();
            assert!(out.is_empty());
        }
    }

    #[test]
    fn zstd_is_refused() {
        let error = put_message_set(
            LegacyFormat::V1,
            Compression::Zstd,
            None,
            records().into_iter(),
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(error.to_string().contains("zstd"), "{error}");
    }

    #[test]
    fn wrapper_has_the_offset_of_its_last_message() {
        for format in FORMATS {
            let set = message_set(format, Compression::Gzip);
            let wrapper = LegacyMessage::parse(&set).unwrap();
            assert_eq!((wrapper.offset, wrapper.key), (104, None));
            let inner = wrapper.records(100_000).unwrap();
            let first = LegacyMessage::parse(&inner).unwrap();
            assert_eq!(first.offset, if format == LegacyFormat::V0 { 100 } else { 0 });
        }
        // A producer's wrapper, to which no broker has assigned offsets.
        let mut set = message_set(LegacyFormat::V1, Compression::Gzip);
        set[..8].copy_from_slice(&0_i64.to_be_bytes());
        let offsets: Vec<_> = read(&set).unwrap().iter().map(|record| record.0).collect();
        assert_eq!(offsets, [0, 1, 3, 4]);
    }

    #[test]
    fn wrapper_timestamp_applies_if_the_broker_set_it() {
        let mut set = message_set(LegacyFormat::V1, Compression::Snappy);
        set[ATTRIBUTES] |= LOG_APPEND_TIME;
        let crc = crc32fast::hash(&set[layout::MAGIC..]);
        set[CRC..layout::MAGIC].copy_from_slice(&crc.to_be_bytes());
        assert!(read(&set).unwrap().iter().all(|record| record.1 == 7000));
    }

    #[test]
    fn truncated_message_is_omitted() {
        for format in FORMATS {
            for codec in CODECS {
                let set = message_set(format, codec);
                let whole = read(&set).unwrap().len();
                for end in 0..set.len() {
                    let found = read(&set[..end]).unwrap();
                    assert!(found.len() < whole, "{format:?} {codec} cut at {end}");
                }
            }
        }
    }

    #[test]
    fn checksum_detects_one_flipped_bit() {
        for format in FORMATS {
            for codec in CODECS {
                let set = message_set(format, codec);
                let first = LegacyMessage::parse(&set).unwrap().bytes.len();
                for at in CRC..first {
                    let mut damaged = set.clone();
                    damaged[at] ^= 0x10;
                    assert!(read(&damaged).is_err(), "{format:?} {codec} byte {at}");
                }
            }
        }
    }

    #[test]
    fn nested_wrapper_is_refused() {
        let inner = message_set(LegacyFormat::V1, Compression::Gzip);
        let mut value = Vec::new();
        compress(Compression::Gzip, None, [&inner[..]].into_iter(), &mut value).unwrap();
        let mut set = Vec::new();
        let wrapper = RecordView::without_headers(0, 0, None, Some(&value));
        put_message(LegacyFormat::V1, Compression::Gzip, &wrapper, &mut set);
        assert_eq!(read(&set).unwrap_err().kind, BatchErrorKind::Record);
        // A wrapper around an empty set.
        let mut set = Vec::new();
        let wrapper = RecordView::without_headers(0, 0, None, None);
        put_message(LegacyFormat::V1, Compression::Gzip, &wrapper, &mut set);
        assert_eq!(read(&set).unwrap_err().kind, BatchErrorKind::Record);
    }

    #[test]
    fn inner_messages_must_have_the_wrappers_format() {
        let inner = message_set(LegacyFormat::V0, Compression::None);
        let mut value = Vec::new();
        compress(Compression::Gzip, None, [&inner[..]].into_iter(), &mut value).unwrap();
        let mut set = Vec::new();
        let wrapper = RecordView::without_headers(0, 0, None, Some(&value));
        put_message(LegacyFormat::V1, Compression::Gzip, &wrapper, &mut set);
        assert_eq!(read(&set).unwrap_err().kind, BatchErrorKind::Magic(0));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for format in FORMATS {
            let mut set = Vec::new();
            let record = RecordView::without_headers(0, 0, Some(b"key"), Some(b"value"));
            put_message(format, Compression::None, &record, &mut set);
            let key_length = set.len() - b"value".len() - 4 - b"key".len() - 4;
            let value_length = set.len() - b"value".len() - 4;
            for at in [layout::LENGTH, key_length, value_length] {
                for lie in [-2_i32, i32::MIN, i32::MAX, 1, 0] {
                    let mut damaged = set.clone();
                    damaged[at..at + 4].copy_from_slice(&lie.to_be_bytes());
                    assert!(LegacyMessage::parse(&damaged).is_err(), "{format:?} {at} {lie}");
                }
            }
        }
    }
}
