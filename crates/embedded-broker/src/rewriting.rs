//! Writes record batches anew: with fewer records (`cleanup.policy=compact`), or with another codec (`compression.type`).
//!
//! A batch keeps its base offset, its last offset and its first sequence number, whatever records it loses: readers find the
//! next offset, and a producer's sequence goes on.

use ottla_protocol::{
    batch::{
        layout,
        reader::{BatchErrorKind, BatchHeader, RecordBatch, RecordView},
    },
    compress::{CompressError, Compression, compress},
};

/// The bit of a batch's attributes that says that its base timestamp is a delete horizon (KIP-534).
pub(crate) const DELETE_HORIZON: i16 = 0x40;

/// How a batch is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewriting {
    pub codec: Compression,
    pub level: Option<i32>,
    /// The time, in milliseconds since 1970, from which on the tombstones or the marker of the batch may be removed.
    pub delete_horizon: Option<i64>,
}

/// Returns the delete horizon of a batch, if compaction has set one.
pub(crate) fn delete_horizon(header: &BatchHeader) -> Option<i64> {
    (header.attributes & DELETE_HORIZON != 0).then_some(header.base_timestamp)
}

/// Returns a batch with these records of `header`'s batch, of which there is at least one.
///
/// # Errors
///
/// The codec can't compress them.
pub(crate) fn rewrite(
    header: &BatchHeader,
    records: &[RecordView<'_>],
    rewriting: Rewriting,
) -> Result<Vec<u8>, CompressError> {
    let first_timestamp = records.first().map_or(header.base_timestamp, |record| record.timestamp);
    let base_timestamp = rewriting.delete_horizon.unwrap_or(first_timestamp);
    let mut body = Vec::new();
    for record in records {
        put_record(&mut body, record, header.base_offset, base_timestamp);
    }
    let max_timestamp = match header.is_log_append_time() {
        true => header.max_timestamp,
        false => records.iter().map(|record| record.timestamp).max().unwrap_or(-1),
    };
    let kept = header.attributes & !(layout::COMPRESSION_MASK | DELETE_HORIZON);
    let horizon = if rewriting.delete_horizon.is_some() { DELETE_HORIZON } else { 0 };
    let attributes = kept | horizon | i16::from(rewriting.codec.id());
    let mut batch = vec![0; layout::RECORDS];
    match rewriting.codec {
        Compression::None => batch.extend_from_slice(&body),
        codec => compress(codec, rewriting.level, std::iter::once(&body[..]), &mut batch)?,
    }
    let record_count = i32::try_from(records.len()).unwrap_or(i32::MAX);
    put_header(
        &mut batch,
        &BatchHeader { attributes, base_timestamp, max_timestamp, record_count, ..*header },
    );
    Ok(batch)
}

/// Returns a batch without records in place of `header`'s batch: it keeps the offsets and the producer's last sequence number.
pub(crate) fn without_records(header: &BatchHeader) -> Vec<u8> {
    let attributes = header.attributes & !(layout::COMPRESSION_MASK | DELETE_HORIZON);
    let mut batch = vec![0; layout::RECORDS];
    put_header(&mut batch, &BatchHeader { attributes, base_timestamp: -1, record_count: 0, ..*header });
    batch
}

/// Writes length, checksum, and all fields of a header to the start of a batch.
fn put_header(batch: &mut [u8], header: &BatchHeader) {
    let counted = i32::try_from(batch.len() - layout::LENGTH_PREFIX).unwrap_or(i32::MAX);
    let mut put = |at: usize, bytes: &[u8]| batch[at..at + bytes.len()].copy_from_slice(bytes);
    put(layout::BASE_OFFSET, &header.base_offset.to_be_bytes());
    put(layout::LENGTH, &counted.to_be_bytes());
    put(layout::PARTITION_LEADER_EPOCH, &header.partition_leader_epoch.to_be_bytes());
    put(layout::MAGIC, &[2]);
    put(layout::ATTRIBUTES, &header.attributes.to_be_bytes());
    put(layout::LAST_OFFSET_DELTA, &header.last_offset_delta.to_be_bytes());
    put(layout::BASE_TIMESTAMP, &header.base_timestamp.to_be_bytes());
    put(layout::MAX_TIMESTAMP, &header.max_timestamp.to_be_bytes());
    put(layout::PRODUCER_ID, &header.producer_id.to_be_bytes());
    put(layout::PRODUCER_EPOCH, &header.producer_epoch.to_be_bytes());
    put(layout::BASE_SEQUENCE, &header.base_sequence.to_be_bytes());
    put(layout::RECORD_COUNT, &header.record_count.to_be_bytes());
    seal(batch);
}

/// Writes the checksum into a batch whose bytes have changed.
pub(crate) fn seal(batch: &mut [u8]) {
    if let Ok(header) = BatchHeader::parse(batch)
        && let Err(error) = RecordBatch::new(header, batch).verify_crc()
        && let BatchErrorKind::Crc { computed, .. } = error.kind
    {
        batch[layout::CRC..][..4].copy_from_slice(&computed.to_be_bytes());
    }
}

fn put_record(out: &mut Vec<u8>, record: &RecordView<'_>, base_offset: i64, base_timestamp: i64) {
    // The attributes have no defined bits.
    let mut body = vec![0];
    put_varint(&mut body, record.timestamp.wrapping_sub(base_timestamp));
    put_varint(&mut body, record.offset.wrapping_sub(base_offset));
    put_bytes(&mut body, record.key);
    put_bytes(&mut body, record.value);
    let headers = record.headers();
    put_varint(&mut body, headers.len() as i64);
    for header in headers {
        put_bytes(&mut body, Some(header.key));
        put_bytes(&mut body, header.value);
    }
    put_varint(out, body.len() as i64);
    out.extend_from_slice(&body);
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_varint(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
    out.extend_from_slice(bytes.unwrap_or_default());
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use ottla_protocol::batch::{ChunkPool, HeaderRef, RecordBatchBuilder, Records, SealOptions};

    use super::*;

    fn batch() -> Vec<u8> {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        let header = HeaderRef { key: b"h", value: Some(b"1") };
        builder.append(1000, Some(b"a"), Some(&[7; 300]), &[header, HeaderRef { key: b"n", value: None }]);
        builder.append(900, None, Some(b"second"), &[]);
        builder.append(1100, Some(b"b"), None, &[]);
        let mut batch = builder.seal(&SealOptions::default()).unwrap().to_vec();
        crate::batch::assign(&mut batch, 50, 3);
        batch
    }

    #[test]
    fn records_keep_offset_time_and_headers_in_every_codec() {
        let original = batch();
        let header = BatchHeader::parse(&original).unwrap();
        let raw = RecordBatch::new(header, &original).records(1000).unwrap();
        let records: Vec<_> = Records::new(&header, &raw).map(Result::unwrap).collect();
        for codec in Compression::ALL {
            for delete_horizon in [None, Some(77_000)] {
                let rewriting = Rewriting { codec, level: None, delete_horizon };
                let written = rewrite(&header, &[records[0], records[2]], rewriting).unwrap();
                let anew = BatchHeader::parse(&written).unwrap();
                RecordBatch::new(anew, &written).verify_crc().unwrap();
                assert_eq!((anew.base_offset, anew.last_offset()), (50, 52), "{codec}");
                assert_eq!((anew.size, anew.record_count), (written.len(), 2));
                assert_eq!((anew.compression(), anew.max_timestamp), (Ok(codec), 1100));
                assert_eq!((anew.partition_leader_epoch, super::delete_horizon(&anew)), (3, delete_horizon));
                let raw = RecordBatch::new(anew, &written).records(1000).unwrap();
                let left: Vec<_> = Records::new(&anew, &raw).map(Result::unwrap).collect();
                assert_eq!(left, [records[0], records[2]], "{codec}");
            }
        }
    }

    #[test]
    fn batch_without_records_keeps_offsets_and_sequence() {
        let mut original = batch();
        original[layout::BASE_SEQUENCE..][..4].copy_from_slice(&12i32.to_be_bytes());
        let header = BatchHeader::parse(&original).unwrap();
        let empty = without_records(&header);
        let anew = BatchHeader::parse(&empty).unwrap();
        RecordBatch::new(anew, &empty).verify_crc().unwrap();
        assert_eq!((anew.base_offset, anew.last_offset(), anew.record_count), (50, 52, 0));
        assert_eq!((anew.base_sequence, anew.max_timestamp, empty.len()), (12, 1100, layout::RECORDS));
    }
}
