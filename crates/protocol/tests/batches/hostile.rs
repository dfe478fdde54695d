//! Malformed batches with valid checksums give an error or other records, but no panic, no hang, and no more memory
//! than the reader allows.

use std::time::{Duration, Instant};

use ottla_protocol::{
    batch::{Batch, BatchError, BatchErrorKind, Batches, LegacyFormat, LegacyRecords, Records, layout},
    compress::{Compression, DecompressError, compress, compress_format_0},
};

use crate::{allocations, golden};

const LIMIT: usize = 256 << 10;
/// The allocation limit of a read: output that grows in steps plus a final growth, and the per-thread codec contexts.
const MOST_ALLOCATED: usize = 4 * LIMIT + (512 << 10);

/// A deterministic pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Changes some bytes: to random values, to extreme lengths, or by moving a range.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
                3 => bytes[at..]
                    .iter_mut()
                    .take(5)
                    .zip([0xfe, 0xff, 0xff, 0xff, 0x0f])
                    .for_each(|(a, b)| *a = b),
                4 => bytes.truncate(at),
                _ => {
                    let part = bytes[at..].iter().copied().take(self.below(300)).collect::<Vec<_>>();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
    }
}

/// Corrects the length and checksum of a batch.
fn repair(bytes: &mut [u8]) {
    let Some(length) = bytes.len().checked_sub(layout::LENGTH_PREFIX) else { return };
    if bytes.len() < layout::ATTRIBUTES {
        return;
    }
    bytes[layout::LENGTH..layout::LENGTH + 4].copy_from_slice(&(length as i32).to_be_bytes());
    if bytes[layout::MAGIC] == 2 {
        let crc = crc32c::crc32c(&bytes[layout::ATTRIBUTES..]);
        bytes[layout::CRC..layout::ATTRIBUTES].copy_from_slice(&crc.to_be_bytes());
    } else {
        let crc = crc32fast::hash(&bytes[layout::MAGIC..]);
        bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}

/// Reads all records and returns their number.
fn read(bytes: &[u8]) -> Result<usize, BatchError> {
    let mut count = 0;
    for batch in Batches::new(bytes) {
        match batch? {
            Batch::V2(batch) => {
                batch.verify_crc()?;
                let raw = batch.records(LIMIT)?;
                for record in Records::new(batch.header(), &raw) {
                    count +=
                        1 + record?.headers().filter(|header| header.value == Some(b"no such value")).count();
                }
            }
            Batch::Legacy(message) => {
                message.verify_crc()?;
                let raw = message.records(LIMIT)?;
                for record in LegacyRecords::new(&message, &raw) {
                    record?;
                    count += 1;
                }
            }
        }
    }
    Ok(count)
}

/// Reads all records, and fails if that takes too much time or memory.
fn read_within_bounds(bytes: &[u8], case: &str) -> Result<usize, BatchError> {
    let start = Instant::now();
    let (result, allocated) = allocations::count(|| read(bytes));
    assert!(allocated <= MOST_ALLOCATED, "{case}: {allocated} bytes allocated for {}", bytes.len());
    assert!(start.elapsed() < Duration::from_secs(5), "{case}: {:?}", start.elapsed());
    if let Ok(count) = result {
        assert!(count <= LIMIT, "{case}: {count} records");
    }
    result
}

#[test]
fn damaged_batches_with_valid_checksums_never_panic() {
    let mut numbers = Numbers(42);
    let (mut fine, mut refused) = (0, 0);
    for name in golden::names() {
        let original = golden::file(&format!("{name}.bin"));
        for round in 0..if name.ends_with("-large") { 60 } else { 400 } {
            let mut bytes = original.clone();
            numbers.damage(&mut bytes);
            repair(&mut bytes);
            match read_within_bounds(&bytes, &format!("{name}, round {round}")) {
                Ok(_) => fine += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(fine > 1000 && refused > 10_000, "{fine} {refused}");
}

#[test]
fn damaged_compressed_data_never_panics() {
    let mut numbers = Numbers(43);
    let mut refused = 0;
    for name in golden::names().into_iter().filter(|name| !name.ends_with("-large")) {
        let original = golden::file(&format!("{name}.bin"));
        for round in 0..200 {
            let bytes = match Batches::new(&original).next().unwrap().unwrap() {
                Batch::V2(batch) => {
                    let mut raw = batch.records(LIMIT).unwrap().into_owned();
                    numbers.damage(&mut raw);
                    let mut bytes = original[..layout::RECORDS].to_vec();
                    let codec = batch.header().compression().unwrap();
                    compress(codec, None, [&raw[..]].into_iter(), &mut bytes).unwrap();
                    bytes
                }
                Batch::Legacy(message) => {
                    let mut raw = message.records(LIMIT).unwrap().into_owned();
                    numbers.damage(&mut raw);
                    wrapper(message.format(), message.compression().unwrap(), &raw)
                }
            };
            let mut bytes = bytes;
            repair(&mut bytes);
            refused += usize::from(read_within_bounds(&bytes, &format!("{name}, round {round}")).is_err());
        }
    }
    assert!(refused > 3000, "{refused}");
}

/// Returns a message that wraps the bytes `raw`.
fn wrapper(format: LegacyFormat, codec: Compression, raw: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    match format {
        LegacyFormat::V0 => compress_format_0(codec, None, [raw].into_iter(), &mut value).unwrap(),
        LegacyFormat::V1 => compress(codec, None, [raw].into_iter(), &mut value).unwrap(),
    }
    let mut bytes = vec![0; 16];
    bytes.extend([format.magic() as u8, codec.id()]);
    if format == LegacyFormat::V1 {
        bytes.extend([0; 8]);
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes.extend((value.len() as i32).to_be_bytes());
    bytes.extend(value);
    repair(&mut bytes);
    bytes
}

#[test]
fn bombs_are_refused_in_every_codec_and_format() {
    let bomb = vec![0; 32 << 20];
    let header = golden::file("java-v2-none.bin")[..layout::RECORDS].to_vec();
    for codec in Compression::ALL.into_iter().skip(1) {
        let mut batch = header.clone();
        batch[layout::ATTRIBUTES + 1] = codec.id();
        compress(codec, None, [&bomb[..]].into_iter(), &mut batch).unwrap();
        repair(&mut batch);
        let mut batches = vec![("format 2", batch)];
        if codec != Compression::Zstd {
            batches.push(("format 0", wrapper(LegacyFormat::V0, codec, &bomb)));
            batches.push(("format 1", wrapper(LegacyFormat::V1, codec, &bomb)));
        }
        for (format, bytes) in batches {
            let error = read_within_bounds(&bytes, &format!("{codec} in {format}")).unwrap_err();
            let too_large = BatchErrorKind::Decompress(DecompressError::TooLarge { limit: LIMIT });
            assert_eq!(error.kind, too_large, "{codec} in {format}");
        }
    }
}

#[test]
fn batch_that_claims_two_billion_records_is_one_error() {
    for codec in Compression::ALL {
        let mut bytes = golden::file(&format!("java-v2-{codec}.bin"));
        bytes[layout::RECORD_COUNT..layout::RECORDS].copy_from_slice(&i32::MAX.to_be_bytes());
        repair(&mut bytes);
        let error = read_within_bounds(&bytes, codec.name()).unwrap_err();
        assert_eq!(error.kind, BatchErrorKind::Record, "{codec}");
    }
}

#[test]
fn reading_any_bytes_terminates() {
    let mut numbers = Numbers(44);
    for round in 0..20_000 {
        let length = numbers.below(300);
        let mut bytes: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        if length > layout::ATTRIBUTES + 1 {
            bytes[layout::MAGIC] = (round % 3) as u8;
            bytes[if round % 3 == 2 { layout::ATTRIBUTES + 1 } else { layout::CRC }] &= 7;
            repair(&mut bytes);
        }
        let _ = read_within_bounds(&bytes, "noise");
    }
}
