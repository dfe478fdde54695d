//! Record batches, message sets and codecs. The first byte says what the others are.

use ottla_protocol::{
    batch::{Batch, BatchError, Batches, LegacyRecords, Records, layout},
    compress::{Compression, compress, decompress},
};

use super::{bytes::Bytes, memory};

const LIMIT: usize = 256 << 10;
/// What a read may allocate in all: output that grows in steps with a final growth, and the contexts of the codecs.
const MOST_ALLOCATED: usize = 4 * LIMIT + (512 << 10);

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let mode = input.byte();
    let (codec, bytes) = (Compression::ALL[usize::from(mode / 4) % 5], input.rest());
    match mode % 4 {
        0 => {
            let _ = read(bytes);
        }
        1 => {
            // A checksum hides the rest of a batch from a fuzzer.
            let mut bytes = bytes.to_vec();
            repair(&mut bytes);
            let _ = read(&bytes);
        }
        2 => {
            let mut out = Vec::new();
            let (result, used) = memory::count(|| decompress(codec, bytes, LIMIT, &mut out));
            assert!(used.total <= MOST_ALLOCATED, "{codec}: {} bytes for {}", used.total, bytes.len());
            assert!(out.len() <= LIMIT && (result.is_ok() || out.is_empty()), "{codec}: {} bytes", out.len());
        }
        _ => there_and_back(codec, bytes),
    }
}

fn there_and_back(codec: Compression, bytes: &[u8]) {
    let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
    let middle = bytes.len() / 3;
    let pieces = [&bytes[..middle], &bytes[middle..]];
    compress(codec, None, pieces.into_iter(), &mut packed).expect("everything can be compressed");
    decompress(codec, &packed, LIMIT, &mut unpacked).expect("what was compressed can be decompressed");
    assert_eq!(unpacked, bytes, "{codec}");
}

/// Corrects length and checksum of each batch, or of the only one if a length is wrong.
fn repair(bytes: &mut [u8]) {
    let mut start = 0;
    while bytes.len() - start > layout::RECORDS {
        let rest = &mut bytes[start..];
        let announced = rest[layout::LENGTH..].first_chunk().map_or(0, |length| u32::from_be_bytes(*length));
        let end = (announced as usize).saturating_add(layout::LENGTH_PREFIX);
        let end = if (layout::RECORDS..=rest.len()).contains(&end) { end } else { rest.len() };
        repair_one(&mut rest[..end]);
        start += end;
    }
}

fn repair_one(bytes: &mut [u8]) {
    let length = (bytes.len() - layout::LENGTH_PREFIX) as u32;
    bytes[layout::LENGTH..layout::LENGTH + 4].copy_from_slice(&length.to_be_bytes());
    if bytes[layout::MAGIC] == 2 {
        let crc = crc32c::crc32c(&bytes[layout::ATTRIBUTES..]);
        bytes[layout::CRC..layout::ATTRIBUTES].copy_from_slice(&crc.to_be_bytes());
    } else {
        let crc = crc32fast::hash(&bytes[layout::MAGIC..]);
        bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}

/// Reads all records, and what follows a damaged batch.
fn read(bytes: &[u8]) -> Result<(), BatchError> {
    let mut batches = Batches::new(bytes);
    while let Some(batch) = batches.next() {
        let ((result, count), used) = memory::count(|| {
            let mut count = 0;
            (batch.and_then(|batch| read_one(&batch, &mut count)), count)
        });
        assert!(used.total <= MOST_ALLOCATED, "{} bytes for {}", used.total, bytes.len());
        assert!(count <= LIMIT, "{count} records");
        if result.is_err() && !batches.skip_damaged() {
            return result;
        }
    }
    Ok(())
}

fn read_one(batch: &Batch<'_>, count: &mut usize) -> Result<(), BatchError> {
    match batch {
        Batch::V2(batch) => {
            batch.verify_crc()?;
            let raw = batch.records(LIMIT)?;
            for record in Records::new(batch.header(), &raw) {
                *count += 1;
                let record = record?;
                let _ = record.headers().filter(|header| header.key_str().is_empty()).count();
            }
        }
        Batch::Legacy(message) => {
            message.verify_crc()?;
            let raw = message.records(LIMIT)?;
            for record in LegacyRecords::new(message, &raw) {
                *count += 1;
                record?;
            }
        }
    }
    Ok(())
}
