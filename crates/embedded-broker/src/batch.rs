//! What a broker looks at in a record batch: its header.

use ottla_protocol::{error_code::ErrorCode, primitive::Reader};

/// The header of a record batch (magic 2) and where its fields are. The records behind it are never looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub attributes: u16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records: i32,
    /// The whole batch's size, header included.
    pub size: usize,
}

/// Bytes of a header.
pub(crate) const HEADER: usize = 61;
const COMPRESSION: u16 = 0x07;
const LOG_APPEND_TIME: u16 = 0x08;
const TRANSACTIONAL: u16 = 0x10;
const CONTROL: u16 = 0x20;
const ZSTD: u16 = 4;

impl BatchHeader {
    /// Reads the header of the batch at the start of `bytes`; an error if there isn't a whole batch of magic 2.
    pub fn read(bytes: &[u8]) -> Result<Self, ErrorCode> {
        if bytes.len() < HEADER {
            return Err(ErrorCode::CORRUPT_MESSAGE);
        }
        if bytes[16] != 2 {
            return Err(ErrorCode::INVALID_RECORD);
        }
        let size = usize::try_from(read_i32(bytes, 8)).map_err(|_| ErrorCode::CORRUPT_MESSAGE)? + 12;
        if size < HEADER || size > bytes.len() {
            return Err(ErrorCode::CORRUPT_MESSAGE);
        }
        Ok(Self {
            base_offset: read_i64(bytes, 0),
            leader_epoch: read_i32(bytes, 12),
            attributes: u16::from_be_bytes([bytes[21], bytes[22]]),
            last_offset_delta: read_i32(bytes, 23),
            base_timestamp: read_i64(bytes, 27),
            max_timestamp: read_i64(bytes, 35),
            producer_id: read_i64(bytes, 43),
            producer_epoch: i16::from_be_bytes([bytes[51], bytes[52]]),
            base_sequence: read_i32(bytes, 53),
            records: read_i32(bytes, 57),
            size,
        })
    }

    /// Refuses what Kafka refuses from a producer in a batch that is intact.
    pub fn check_content(&self) -> Result<(), &'static str> {
        if self.attributes & CONTROL != 0 {
            return Err("Clients are not allowed to write control records");
        }
        if self.records <= 0 {
            return Err("The record batch has no records");
        }
        if self.last_offset_delta != self.records - 1 {
            return Err("The record batch's last offset delta doesn't fit its number of records");
        }
        if self.has_producer_id() && self.base_sequence < 0 {
            return Err("The record batch has a producer id but no sequence number");
        }
        if self.attributes & TRANSACTIONAL != 0 && !self.has_producer_id() {
            return Err("The record batch is transactional but has no producer id");
        }
        Ok(())
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    pub fn is_zstd(&self) -> bool {
        self.attributes & COMPRESSION == ZSTD
    }

    /// The sequence number of the last record; they wrap from the largest one to 0.
    pub fn last_sequence(&self) -> i32 {
        add_to_sequence(self.base_sequence, self.last_offset_delta)
    }
}

/// The checksum in the header is that of the bytes behind it.
pub(crate) fn checksum_fits(batch: &[u8]) -> bool {
    u32::from_be_bytes([batch[17], batch[18], batch[19], batch[20]]) == crc32c(&batch[21..])
}

/// Writes what the leader decides into the header. The checksum doesn't cover it.
pub(crate) fn assign(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Makes the whole batch's timestamp the time of its appending.
pub(crate) fn assign_append_time(batch: &mut [u8], timestamp: i64) {
    batch[22] |= LOG_APPEND_TIME as u8;
    batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// The first record of a stored batch that is not older than `timestamp`, as (timestamp, offset).
pub(crate) fn first_record_reaching(batch: &[u8], timestamp: i64) -> Option<(i64, i64)> {
    let header = BatchHeader::read(batch).ok()?;
    if header.attributes & LOG_APPEND_TIME != 0 {
        return (header.max_timestamp >= timestamp).then_some((header.max_timestamp, header.base_offset));
    }
    let mut reader = Reader::new(&batch[HEADER..]);
    for _ in 0..header.records {
        let length = usize::try_from(reader.varint().ok()?).ok()?;
        let mut record = Reader::new(reader.bytes(length).ok()?);
        record.i8().ok()?;
        let at = header.base_timestamp.saturating_add(record.varlong().ok()?);
        let offset = header.base_offset + i64::from(record.varint().ok()?);
        if at >= timestamp {
            return Some((at, offset));
        }
    }
    None
}

/// `sequence + n`, wrapping from the largest one to 0.
pub(crate) fn add_to_sequence(sequence: i32, n: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(n);
    i32::try_from(sum % (i64::from(i32::MAX) + 1)).unwrap_or(0)
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn read_i64(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
