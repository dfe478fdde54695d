//! Appended records are read back unchanged: any records, codec and format, across chunk boundaries and with referenced
//! values.

use bytes::Bytes;
use ottla_protocol::{
    batch::{
        Batch, Batches, ChunkPool, HeaderRef, LegacyFormat, LegacyRecords, RecordBatchBuilder, RecordView,
        Records, SealOptions, SealedBatch,
    },
    compress::Compression,
};
use proptest::{collection::vec, option, prelude::*};

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
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![
        8 => 0..150_usize,
        2 => 8_100..8_200_usize,
        1 => 16_300..16_500_usize,
        1 => 0..60_000_usize,
    ];
    (length, any::<u8>(), 1..9_u8)
        .prop_map(|(length, first, step)| (0..length).map(|i| first.wrapping_add(i as u8 / step)).collect())
}

fn record() -> impl Strategy<Value = Owned> {
    let timestamp = prop_oneof![
        4 => 1_700_000_000_000..1_700_000_000_200_i64,
        1 => any::<i64>(),
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ];
    let headers = vec((vec(any::<u8>(), 0..5), option::of(vec(any::<u8>(), 0..100))), 0..4);
    let headers = prop_oneof![3 => Just(Vec::new()), 1 => headers];
    (timestamp, option::of(bytes()), option::of(bytes()), headers)
        .prop_map(|(timestamp, key, value, headers)| Owned { timestamp, key, value, headers })
}

fn codec() -> impl Strategy<Value = Compression> {
    prop::sample::select(Compression::ALL.to_vec())
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_round_trip_in_format_2(
        records in vec(record(), 1..60), codec in codec(), references in any::<bool>()
    ) {
        let pool = ChunkPool::new();
        let sealed = seal(&records, codec, references, &pool);
        prop_assert_eq!(&sealed.segments().flatten().copied().collect::<Vec<_>>(), &sealed.to_vec());
        prop_assert_eq!(read(&sealed.to_vec()), records);
        drop(sealed);
        prop_assert_eq!(pool.in_use_bytes(), 0);
    }

    #[test]
    fn records_round_trip_in_message_sets(
        records in vec(record(), 1..30), codec in codec(), is_format_1 in any::<bool>()
    ) {
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
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn new_producer_id_changes_only_its_fields(
        records in vec(record(), 1..10), codec in codec(), id in 0..i64::MAX, epoch in 0..i16::MAX, sequence in 0..i32::MAX
    ) {
        let mut sealed = seal(&records, codec, false, &ChunkPool::new());
        sealed.set_producer(id, epoch, sequence);
        let bytes = sealed.to_vec();
        prop_assert_eq!(read(&bytes), records);
        let Some(Ok(Batch::V2(batch))) = Batches::new(&bytes).next() else { panic!("no batch") };
        let header = batch.header();
        prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (id, epoch, sequence));
    }
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
