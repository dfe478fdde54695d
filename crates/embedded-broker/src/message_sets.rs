//! Message sets of formats 0 and 1, for clients from before 0.11. The log contains only record batches.

use ottla_protocol::{
    batch::{
        Batch, Batches, ChunkPool, LegacyFormat, LegacyRecords, RecordBatch, RecordBatchBuilder, Records,
        SealOptions, put_message_set,
    },
    compress::Compression,
    error_code::ErrorCode,
};

use crate::batch::read_header;

/// The maximum size of a decompressed message set, in bytes.
const UNCOMPRESSED_LIMIT: usize = 256 << 20;

/// Converts a message set to a record batch.
pub(crate) fn to_batch(message_set: &[u8]) -> Result<Vec<u8>, ErrorCode> {
    let corrupt = ErrorCode::CORRUPT_MESSAGE;
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    let mut codec = Compression::None;
    let mut batches = Batches::new(message_set);
    for batch in &mut batches {
        let Batch::Legacy(message) = batch.map_err(|_| corrupt)? else {
            return Err(ErrorCode::INVALID_RECORD);
        };
        message.verify_crc().map_err(|_| corrupt)?;
        codec = message.compression().map_err(|_| corrupt)?;
        let records = message.records(UNCOMPRESSED_LIMIT).map_err(|_| corrupt)?;
        for record in LegacyRecords::new(&message, &records) {
            let record = record.map_err(|_| corrupt)?;
            builder.append(record.timestamp, record.key, record.value, &[]);
        }
    }
    if batches.position() != message_set.len() || builder.is_empty() {
        return Err(corrupt);
    }
    let sealed =
        builder.seal(&SealOptions { compression: codec, ..Default::default() }).map_err(|_| corrupt)?;
    Ok(sealed.to_vec())
}

/// Converts a record batch to a message set and appends it to `out`.
pub(crate) fn put_batch(format: LegacyFormat, batch: &[u8], out: &mut Vec<u8>) -> Result<(), ErrorCode> {
    let header = read_header(batch)?;
    let records = RecordBatch::new(header, batch)
        .records(UNCOMPRESSED_LIMIT)
        .map_err(|_| ErrorCode::CORRUPT_MESSAGE)?;
    let codec = match header.compression() {
        Ok(Compression::Zstd) | Err(_) => Compression::None,
        Ok(codec) => codec,
    };
    let records = Records::new(&header, &records).map_while(Result::ok);
    put_message_set(format, codec, None, records, out).map_err(|_| ErrorCode::UNKNOWN_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the second message in format 1, in bytes.
    const SECOND: usize = 37;
    /// Worth being compressed.
    const ONE: &[u8] = &[b'1'; 300];

    /// Two messages.
    fn message_set(format: LegacyFormat, codec: Compression) -> Vec<u8> {
        let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
        builder.append(1000, Some(b"k"), Some(ONE), &[]);
        builder.append(1001, None, Some(b"two"), &[]);
        let batch = builder.seal(&SealOptions { compression: codec, ..Default::default() }).unwrap().to_vec();
        let mut set = Vec::new();
        put_batch(format, &batch, &mut set).unwrap();
        set
    }

    #[test]
    fn message_set_becomes_a_batch_with_the_same_records() {
        for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
            for (format, timestamps) in [(LegacyFormat::V0, [-1, -1]), (LegacyFormat::V1, [1000, 1001])] {
                let batch = to_batch(&message_set(format, codec)).unwrap();
                let header = read_header(&batch).unwrap();
                assert_eq!(
                    (header.record_count, header.compression()),
                    (2, Ok(codec)),
                    "{codec:?} {format:?}"
                );
                let bytes = RecordBatch::new(header, &batch).records(1000).unwrap();
                let records: Vec<_> = Records::new(&header, &bytes).map(Result::unwrap).collect();
                assert_eq!(records.iter().map(|r| r.timestamp).collect::<Vec<_>>(), timestamps);
                assert_eq!((records[0].key, records[0].value), (Some(&b"k"[..]), Some(ONE)));
                assert_eq!((records[1].key, records[1].value), (None, Some(&b"two"[..])));
            }
        }
    }

    #[test]
    fn damaged_or_truncated_message_set_is_refused() {
        let set = message_set(LegacyFormat::V1, Compression::None);
        for cut in 0..set.len() {
            assert_eq!(to_batch(&set[..cut]).is_ok(), cut == set.len() - SECOND, "cut at {cut}");
        }
        let second = set.len() - SECOND;
        for at in (12..second).chain(second + 12..set.len()) {
            let mut damaged = set.clone();
            damaged[at] ^= 0x55;
            assert!(to_batch(&damaged).is_err(), "byte {at}");
        }
    }
}
