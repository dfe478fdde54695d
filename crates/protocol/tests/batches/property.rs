//! Appended records are read back unchanged: any records, codec and format, across chunk boundaries and with referenced
//! values.

use std::hash::{BuildHasher, RandomState};

use arbtest::{
    arbitrary::{Result, Unstructured},
    arbtest,
};
use bytes::Bytes;
use ottla_protocol::{
    batch::{
        Batch, Batches, ChunkPool, HeaderRef, LegacyFormat, LegacyRecords, RecordBatchBuilder, RecordView,
        Records, SealOptions, SealedBatch,
    },
    compress::Compression,
};

type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

impl Owned {
    fn of(record: &RecordView<'_>) -> Self {
        let owned = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
        Self {
            timestamp: record.timestamp,
            key: owned(record.key),
            value: owned(record.value),
            headers: record.headers().map(|header| (header.key.to_vec(), owned(header.value))).collect(),
        }
    }
}

/// Lengths around those where a varint grows or a chunk ends.
fn bytes(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let length: usize = match u.int_in_range(0..=11)? {
        0..=7 => u.int_in_range(0..=149)?,
        8 | 9 => u.int_in_range(8_100..=8_199)?,
        10 => u.int_in_range(16_300..=16_499)?,
        _ => u.int_in_range(0..=59_999)?,
    };
    let (first, step): (u8, u8) = (u.arbitrary()?, u.int_in_range(1..=8)?);
    Ok((0..length).map(|i| first.wrapping_add(i as u8 / step)).collect())
}

fn some<T>(u: &mut Unstructured<'_>, value: fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Option<T>> {
    if u.arbitrary()? { Ok(Some(value(u)?)) } else { Ok(None) }
}

fn header(u: &mut Unstructured<'_>) -> Result<OwnedHeader> {
    fn short<const MAX: usize>(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let length = u.int_in_range(0..=MAX)?;
        (0..length).map(|_| u.arbitrary()).collect()
    }
    Ok((short::<4>(u)?, some(u, short::<99>)?))
}

fn record(u: &mut Unstructured<'_>) -> Result<Owned> {
    let timestamp = match u.int_in_range(0..=6)? {
        0..=3 => u.int_in_range(1_700_000_000_000..=1_700_000_000_199)?,
        4 => u.arbitrary()?,
        5 => i64::MAX,
        _ => i64::MIN,
    };
    let headers = if u.ratio(3, 4)? { 0 } else { u.int_in_range(0..=3)? };
    let headers = (0..headers).map(|_| header(u)).collect::<Result<_>>()?;
    Ok(Owned { timestamp, key: some(u, bytes)?, value: some(u, bytes)?, headers })
}

/// Returns at least one and at most `most` records.
fn records(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<Owned>> {
    (0..u.int_in_range(1..=most)?).map(|_| record(u)).collect()
}

fn codec(u: &mut Unstructured<'_>) -> Result<Compression> {
    u.choose(&Compression::ALL).copied()
}

/// Tries a property with fresh input. A failure prints the seed, which `arbtest(..).seed(..)` repeats and `minimize()` shrinks.
fn always(property: impl Fn(&mut Unstructured<'_>) -> Result<()>) {
    const CASES: u64 = 150;
    // The lower half of a seed is the length of the input, in bytes.
    const LENGTHS: u64 = 8_192;
    for case in 0..CASES {
        let seed = (RandomState::new().hash_one(case) << 32) | (LENGTHS / CASES * (case + 1));
        arbtest(&property).seed(seed);
    }
}

fn seal(records: &[Owned], codec: Compression, references: bool, pool: &ChunkPool) -> SealedBatch {
    let mut builder = RecordBatchBuilder::new(pool);
    for record in records {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() }).collect();
        let (timestamp, key) = (record.timestamp, record.key.as_deref());
        match &record.value {
            Some(value) if references => {
                builder.append_shared(timestamp, key, &Bytes::copy_from_slice(value), &headers);
            }
            value => builder.append(timestamp, key, value.as_deref(), &headers),
        }
    }
    let before = builder.len();
    let sealed = builder.seal(&SealOptions { compression: codec, ..SealOptions::default() }).unwrap();
    assert!(sealed.len() <= before, "sealing makes nothing larger");
    sealed
}

fn read(bytes: &[u8]) -> Vec<Owned> {
    let mut batches = Batches::new(bytes);
    let Some(Ok(Batch::V2(batch))) = batches.next() else { panic!("no batch") };
    assert!(batches.next().is_none());
    batch.verify_crc().unwrap();
    let header = batch.header();
    let raw = batch.records(64 << 20).unwrap();
    let records: Vec<_> = Records::new(header, &raw).map(Result::unwrap).collect();
    assert!(records.iter().map(|record| record.offset).eq(0..records.len() as i64));
    assert_eq!(header.last_offset_delta as usize, records.len() - 1);
    assert_eq!(header.max_timestamp, records.iter().map(|record| record.timestamp).max().unwrap());
    records.iter().map(Owned::of).collect()
}

#[test]
fn records_round_trip_in_format_2() {
    always(|u| {
        let (records, codec, references) = (records(u, 59)?, codec(u)?, u.arbitrary()?);
        let pool = ChunkPool::new();
        let sealed = seal(&records, codec, references, &pool);
        assert_eq!(&sealed.segments().flatten().copied().collect::<Vec<_>>(), &sealed.to_vec());
        assert_eq!(read(&sealed.to_vec()), records);
        drop(sealed);
        assert_eq!(pool.in_use_bytes(), 0);
        Ok(())
    });
}

#[test]
fn records_round_trip_in_message_sets() {
    always(|u| {
        let (records, codec, is_format_1) = (records(u, 29)?, codec(u)?, u.arbitrary()?);
        let format = if is_format_1 { LegacyFormat::V1 } else { LegacyFormat::V0 };
        let options = SealOptions { compression: codec, ..SealOptions::default() };
        let set = seal(&records, codec, false, &ChunkPool::new()).to_message_set(format, &options).unwrap();
        let mut found = Vec::new();
        for batch in Batches::new(&set) {
            let Ok(Batch::Legacy(message)) = batch else { panic!("not a message") };
            message.verify_crc().unwrap();
            let raw = message.records(64 << 20).unwrap();
            found.extend(LegacyRecords::new(&message, &raw).map(|record| Owned::of(&record.unwrap())));
        }
        let expected: Vec<_> = records
            .into_iter()
            .map(|record| Owned {
                timestamp: if is_format_1 { record.timestamp } else { -1 },
                headers: Vec::new(),
                ..record
            })
            .collect();
        assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn new_producer_id_changes_only_its_fields() {
    always(|u| {
        let (records, codec) = (records(u, 9)?, codec(u)?);
        let id = u.int_in_range(0..=i64::MAX - 1)?;
        let epoch = u.int_in_range(0..=i16::MAX - 1)?;
        let sequence = u.int_in_range(0..=i32::MAX - 1)?;
        let mut sealed = seal(&records, codec, false, &ChunkPool::new());
        sealed.set_producer(id, epoch, sequence);
        let bytes = sealed.to_vec();
        assert_eq!(read(&bytes), records);
        let Some(Ok(Batch::V2(batch))) = Batches::new(&bytes).next() else { panic!("no batch") };
        let header = batch.header();
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (id, epoch, sequence));
        Ok(())
    });
}

#[test]
fn payload_sizes_around_the_boundaries_round_trip() {
    // Records of common sizes take a different code path than others.
    let pool = ChunkPool::new();
    for sizes in [0..300, 2000..2100, 8000..8300] {
        let records: Vec<_> = sizes
            .map(|size| Owned {
                timestamp: 1_700_000_000_000 + size,
                key: (size % 3 == 0).then(|| vec![b'k'; 7]),
                value: Some(vec![b'v'; size as usize]),
                headers: Vec::new(),
            })
            .collect();
        assert_eq!(read(&seal(&records, Compression::None, false, &pool).to_vec()), records);
    }
}

#[test]
fn invalid_level_returns_the_records() {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    builder.append(5, None, Some(b"value"), &[]);
    let options = SealOptions { compression: Compression::Gzip, level: Some(77), ..SealOptions::default() };
    let error = builder.seal(&options).unwrap_err();
    assert_eq!(error.to_string(), "gzip has no level 77: use 0 to 9");
    let sealed = error.builder.seal(&SealOptions::default()).unwrap();
    assert_eq!(read(&sealed.to_vec())[0].value.as_deref(), Some(&b"value"[..]));
}

#[test]
fn incremental_checksum_gives_the_same_bytes() {
    let pool = ChunkPool::new();
    for (records, large) in [(1, false), (100, false), (700, false), (5_000, false), (40, true)] {
        let build = |mut builder: RecordBatchBuilder| {
            for number in 0..records {
                if large {
                    builder.append_shared(number, None, &Bytes::from(vec![number as u8; 20_000]), &[]);
                } else {
                    builder.append(number, Some(b"key"), Some(&[number as u8; 100]), &[]);
                }
            }
            let mut sealed = builder.seal(&SealOptions::default()).unwrap();
            let first = sealed.to_vec();
            sealed.set_producer(7, 1, 99);
            (first, sealed.to_vec())
        };
        let early = build(RecordBatchBuilder::new(&pool).summed_early());
        assert!(early == build(RecordBatchBuilder::new(&pool)), "{records} records");
        for bytes in [early.0, early.1] {
            let Some(Ok(Batch::V2(batch))) = Batches::new(&bytes).next() else { panic!("no batch") };
            batch.verify_crc().unwrap();
        }
    }
}

#[test]
fn incompressible_batch_stays_uncompressed() {
    let mut builder = RecordBatchBuilder::new(&ChunkPool::new());
    builder.append(5, None, Some(b"v"), &[]);
    let len = builder.len();
    let sealed =
        builder.seal(&SealOptions { compression: Compression::Zstd, ..SealOptions::default() }).unwrap();
    let bytes = sealed.to_vec();
    let Some(Ok(Batch::V2(batch))) = Batches::new(&bytes).next() else { panic!("no batch") };
    assert_eq!((batch.header().compression(), bytes.len()), (Ok(Compression::None), len));
}
