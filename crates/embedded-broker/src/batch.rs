//! Parts of a record batch that a broker reads or writes: the header, and the records only to find a timestamp.

use ottla_protocol::{
    batch::{
        layout,
        reader::{BatchErrorKind, BatchHeader, RecordBatch, Records},
    },
    compress::Compression,
    error_code::ErrorCode,
};

use crate::rewriting::seal;

/// The maximum size of decompressed records, in bytes.
pub(crate) const UNCOMPRESSED_LIMIT: usize = 256 << 20;

/// Reads the header of the batch at the start of `bytes`. Error: there isn't a whole batch of magic 2.
pub(crate) fn read_header(bytes: &[u8]) -> Result<BatchHeader, ErrorCode> {
    let header = BatchHeader::parse(bytes).map_err(|error| match error.kind {
        BatchErrorKind::Magic(_) | BatchErrorKind::RecordCount(_) => ErrorCode::INVALID_RECORD,
        _ => ErrorCode::CORRUPT_MESSAGE,
    })?;
    if header.size > bytes.len() { Err(ErrorCode::CORRUPT_MESSAGE) } else { Ok(header) }
}

/// Rejects an intact batch that Kafka does not accept from a producer.
pub(crate) fn check_content(header: &BatchHeader) -> Result<(), &'static str> {
    if header.is_control() {
        return Err("Clients are not allowed to write control records");
    }
    if header.record_count <= 0 {
        return Err("The record batch has no records");
    }
    if header.last_offset_delta != header.record_count - 1 {
        return Err("The record batch's last offset delta doesn't fit its number of records");
    }
    if has_producer_id(header) && header.base_sequence < 0 {
        return Err("The record batch has a producer id but no sequence number");
    }
    if header.is_transactional() && !has_producer_id(header) {
        return Err("The record batch is transactional but has no producer id");
    }
    Ok(())
}

/// Returns true if the bytes are a batch with transactional records; they may be damaged.
pub(crate) fn is_transactional(bytes: &[u8]) -> bool {
    let attributes = bytes.get(layout::ATTRIBUTES..).and_then(|rest| rest.first_chunk());
    let has_bit = |bytes: &[u8; 2]| i16::from_be_bytes(*bytes) & layout::TRANSACTIONAL != 0;
    bytes.get(layout::MAGIC) == Some(&2) && attributes.is_some_and(has_bit)
}

/// Returns true if an idempotent producer wrote the batch.
pub(crate) fn has_producer_id(header: &BatchHeader) -> bool {
    header.producer_id >= 0
}

pub(crate) fn is_zstd(header: &BatchHeader) -> bool {
    header.compression() == Ok(Compression::Zstd)
}

/// Returns the sequence number of the last record.
pub(crate) fn last_sequence(header: &BatchHeader) -> i32 {
    add_to_sequence(header.base_sequence, header.last_offset_delta)
}

/// Returns `sequence + n`, wrapping from the largest sequence number to 0.
pub(crate) fn add_to_sequence(sequence: i32, n: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(n);
    i32::try_from(sum % (i64::from(i32::MAX) + 1)).unwrap_or(0)
}

/// Returns true if the checksum in the header matches the batch.
pub(crate) fn checksum_fits(header: BatchHeader, batch: &[u8]) -> bool {
    RecordBatch::new(header, batch).verify_crc().is_ok()
}

/// Writes base offset and leader epoch into the header. The checksum doesn't cover them.
pub(crate) fn assign(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    batch[layout::BASE_OFFSET..][..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[layout::PARTITION_LEADER_EPOCH..][..4].copy_from_slice(&leader_epoch.to_be_bytes());
}

/// Sets the timestamp of the whole batch to its append time.
pub(crate) fn assign_append_time(header: BatchHeader, batch: &mut [u8], timestamp: i64) {
    let attributes = header.attributes | layout::LOG_APPEND_TIME;
    batch[layout::ATTRIBUTES..][..2].copy_from_slice(&attributes.to_be_bytes());
    batch[layout::MAX_TIMESTAMP..][..8].copy_from_slice(&timestamp.to_be_bytes());
    seal(batch);
}

/// Returns (timestamp, offset) of the first record of a stored batch with at least this timestamp.
pub(crate) fn first_record_reaching(batch: &[u8], timestamp: i64) -> Option<(i64, i64)> {
    let header = read_header(batch).ok()?;
    if header.is_log_append_time() {
        return (header.max_timestamp >= timestamp).then_some((header.max_timestamp, header.base_offset));
    }
    let records = RecordBatch::new(header, batch).records(UNCOMPRESSED_LIMIT).ok()?;
    let mut records = Records::new(&header, &records).map_while(Result::ok);
    records.find(|record| record.timestamp >= timestamp).map(|record| (record.timestamp, record.offset))
}
