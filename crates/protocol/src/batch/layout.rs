//! The header of a record batch of format 2, as offsets.
//!
//! ```text
//!   0 base offset (8)   8 length (4)   12 leader epoch (4)   16 magic (1)   17 CRC32C of all that follows (4)
//!  21 attributes (2)   23 last offset delta (4)   27 base timestamp (8)   35 max timestamp (8)
//!  43 producer id (8)  51 producer epoch (2)      53 base sequence (4)    57 record count (4)   61 records
//! ```
//!
//! The first 17 bytes have the same meaning in the older message sets, so the magic can be read before the rest is
//! known.

/// First offset of the batch; assigned by the broker.
pub const BASE_OFFSET: usize = 0;
/// Bytes that follow this field.
pub const LENGTH: usize = 8;
/// Set by the broker.
pub const PARTITION_LEADER_EPOCH: usize = 12;
/// The format: 0, 1 or 2.
pub const MAGIC: usize = 16;
/// CRC32C of everything from [`ATTRIBUTES`] on.
pub const CRC: usize = 17;
/// Codec, timestamp type, transactional, control.
pub const ATTRIBUTES: usize = 21;
/// The last record's offset less the base offset.
pub const LAST_OFFSET_DELTA: usize = 23;
/// The timestamp that the records' deltas are relative to.
pub const BASE_TIMESTAMP: usize = 27;
/// The largest timestamp.
pub const MAX_TIMESTAMP: usize = 35;
/// The idempotent producer's id, or -1.
pub const PRODUCER_ID: usize = 43;
/// The idempotent producer's epoch, or -1.
pub const PRODUCER_EPOCH: usize = 51;
/// The first record's sequence number, or -1.
pub const BASE_SEQUENCE: usize = 53;
/// The number of records.
pub const RECORD_COUNT: usize = 57;
/// Where the records start.
pub const RECORDS: usize = 61;

/// The size of offset and length, which precede the counted bytes.
pub const LENGTH_PREFIX: usize = 12;

/// The codec's bits of the attributes.
pub const COMPRESSION_MASK: i16 = 0x07;
/// The broker set the timestamps.
pub const LOG_APPEND_TIME: i16 = 0x08;
/// The batch belongs to a transaction.
pub const TRANSACTIONAL: i16 = 0x10;
/// The batch holds markers, not records.
pub const CONTROL: i16 = 0x20;
