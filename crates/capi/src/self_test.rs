//! A self-test of the library on this machine: known values of checksums, hashes and numbers, and batches that are
//! encoded and decoded. Checksums and codecs contain code for particular processors, which other tests may not have run
//! on.

use std::panic::catch_unwind;

use ottla_core::produce::partitioner::{consistent, fnv1a, murmur2};
use ottla_protocol::{
    batch::{Batch, Batches, ChunkPool, HeaderRef, RecordBatchBuilder, Records, SealOptions, layout},
    compress::Compression,
    primitive::{Reader, Writer},
};

/// A test: its name and its function.
type Case = (&'static str, fn() -> Result<(), String>);

const CASES: [Case; 7] = [
    ("CRC-32C of a batch", checksum),
    ("CRC-32", crc32),
    ("murmur2", murmur),
    ("FNV-1a", fnv),
    ("variable-length numbers", numbers),
    ("batches in every codec", batches),
    ("damage is noticed", damage),
];

/// Tests checksums, hashes and codecs on this machine. Returns a sentence for each failure.
pub(crate) fn self_test() -> Vec<String> {
    failures(&CASES)
}

fn failures(cases: &[Case]) -> Vec<String> {
    let failure = |(name, test): &Case| match catch_unwind(test) {
        Ok(result) => result.err().map(|error| format!("{name}: {error}")),
        Err(_) => Some(format!("{name}: it panicked")),
    };
    cases.iter().filter_map(failure).collect()
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?} and not {expected:?}")) }
}

/// Computes the checksum bit by bit, from the polynomial.
fn crc32c_by_bits(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
        }
    }
    !crc
}

fn checksum() -> Result<(), String> {
    equal("the checksum of 123456789", &crc32c_by_bits(b"123456789"), &0xe306_9283)?;
    // Long and short batches take different code paths.
    for records in [1, 10, 1000] {
        let bytes = batch(records, Compression::None)?;
        let stored = bytes.get(layout::CRC..layout::CRC + 4).and_then(|crc| crc.try_into().ok());
        let summed = bytes.get(layout::ATTRIBUTES..).unwrap_or_default();
        equal("the checksum", &stored.map(u32::from_be_bytes), &Some(crc32c_by_bits(summed)))?;
    }
    Ok(())
}

fn crc32() -> Result<(), String> {
    for (bytes, expected) in [
        (&b""[..], 0),
        (b"123456789", 0xcbf4_3926),
        (b"The quick brown fox jumps over the lazy dog", 0x414f_a339),
    ] {
        equal("a checksum", &consistent::crc32(bytes), &expected)?;
    }
    Ok(())
}

/// Values of Kafka's `Utils.murmur2`.
fn murmur() -> Result<(), String> {
    for (bytes, expected) in [
        (&b"21"[..], -973_932_308),
        (b"foobar", -790_332_482),
        (b"a-little-bit-long-string", -985_981_536),
        (b"a-little-bit-longer-string", -1_486_304_829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        (b"abc", 479_470_107),
    ] {
        equal("a hash", &(murmur2::murmur2(bytes) as i32), &expected)?;
    }
    Ok(())
}

fn fnv() -> Result<(), String> {
    for (bytes, expected) in [(&b""[..], 0x811c_9dc5), (b"a", 0xe40c_292c), (b"foobar", 0xbf9c_f968)] {
        equal("a hash", &fnv1a::fnv1a(bytes), &expected)?;
    }
    Ok(())
}

fn numbers() -> Result<(), String> {
    for (number, expected) in [
        (0i32, &b"\x00"[..]),
        (-1, b"\x01"),
        (1, b"\x02"),
        (-64, b"\x7f"),
        (64, b"\x80\x01"),
        (i32::MAX, b"\xfe\xff\xff\xff\x0f"),
        (i32::MIN, b"\xff\xff\xff\xff\x0f"),
    ] {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, false).varint(number);
        equal("a number's bytes", &bytes.as_slice(), &expected)?;
        equal("a number", &Reader::new(expected).varint().ok(), &Some(number))?;
    }
    for number in (0..64).flat_map(|bit| [1i64 << bit, (1i64 << bit).wrapping_sub(1), -1i64 << bit]) {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, false).varlong(number);
        equal("a long number", &Reader::new(&bytes).varlong().ok(), &Some(number))?;
    }
    Ok(())
}

fn batches() -> Result<(), String> {
    for codec in Compression::ALL {
        for records in [1, 10, 1000] {
            let read = read(&batch(records, codec)?).map_err(|error| format!("{codec:?}: {error}"))?;
            if read != (0..records).map(record).collect::<Vec<_>>() {
                return Err(format!("{codec:?}: {records} decoded records differ from the encoded ones"));
            }
        }
    }
    Ok(())
}

fn damage() -> Result<(), String> {
    let whole = batch(10, Compression::None)?;
    for at in layout::ATTRIBUTES..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        if read(&damaged).is_ok() {
            return Err(format!("a changed byte at {at} of a batch was not detected"));
        }
    }
    Ok(())
}

/// A record: timestamp, key, value, and a header's value.
type Written = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>);

fn record(number: usize) -> Written {
    let key = (!number.is_multiple_of(3)).then(|| number.to_string().into_bytes());
    let value = (!number.is_multiple_of(5)).then(|| number.to_string().repeat(number % 100).into_bytes());
    let header = (!number.is_multiple_of(7)).then(|| vec![number as u8; number % 9]);
    (1_700_000_000_000 + number as i64 * 11, key, value, header)
}

fn batch(records: usize, compression: Compression) -> Result<Vec<u8>, String> {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    for (timestamp, key, value, header) in (0..records).map(record) {
        let headers = [HeaderRef { key: b"header", value: header.as_deref() }];
        builder.append(timestamp, key.as_deref(), value.as_deref(), &headers);
    }
    let sealed = builder.seal(&SealOptions { compression, ..SealOptions::default() });
    sealed.map(|batch| batch.to_vec()).map_err(|error| format!("a batch can't be sealed: {error:?}"))
}

fn read(bytes: &[u8]) -> Result<Vec<Written>, String> {
    let mut read = Vec::new();
    for batch in Batches::new(bytes) {
        let Batch::V2(batch) = batch.map_err(|error| format!("{error:?}"))? else {
            return Err("a batch of another format".to_owned());
        };
        batch.verify_crc().map_err(|error| format!("{error:?}"))?;
        let records = batch.records(1 << 24).map_err(|error| format!("{error:?}"))?;
        for record in Records::new(batch.header(), &records) {
            let record = record.map_err(|error| format!("{error:?}"))?;
            let header = record.headers().next().and_then(|header| header.value);
            let [key, value, header] =
                [record.key, record.value, header].map(|bytes| bytes.map(<[u8]>::to_vec));
            read.push((record.timestamp, key, value, header));
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_test_passes_on_this_machine() {
        assert_eq!(self_test(), Vec::<String>::new());
    }

    #[test]
    fn self_test_reports_wrong_values_and_panics() {
        let wrong: [Case; 3] = [
            ("wrong", || equal("one", &1, &2)),
            ("right", || equal("one", &1, &1)),
            ("panics", || panic!("on purpose")),
        ];
        assert_eq!(failures(&wrong), ["wrong: one is 1 and not 2", "panics: it panicked"]);
    }
}
