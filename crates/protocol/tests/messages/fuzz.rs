//! Any bytes decode to a value or to an error with a position, without a panic, and within 16 times their memory.

use ottla_protocol::{
    api::ApiKey,
    consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription},
    generated::{
        fetch::FetchResponseView,
        metadata::MetadataResponseView,
        produce::{ProduceRequestView, ProduceResponseView},
    },
    header::{RequestHeader, ResponseHeader},
    primitive::{ALLOCATION_FACTOR, DecodeError, DecodeErrorKind, Reader},
};

use crate::{
    allocations,
    codecs::{Codec, codecs},
    frames::{Random, body, schemas},
    schema::Schema,
};

/// The environment variable that sets the number of frames, to fuzz for longer than the tests do.
const FRAMES_VARIABLE: &str = "OTTLA_FUZZ_FRAMES";
const FRAMES: usize = 200_000;

#[test]
fn any_bytes_decode_to_a_value_or_error_within_the_memory_limit() {
    let frames = match std::env::var(FRAMES_VARIABLE) {
        Ok(frames) => frames.parse().expect("OTTLA_FUZZ_FRAMES is a number"),
        Err(_) => FRAMES,
    };
    let schemas = schemas();
    let codecs = codecs();
    let mut random = Random(5);
    let mut tally = Tally::default();
    for _ in 0..frames {
        if random.once_in(16) {
            check_other_types(&schemas, &codecs, &mut random);
            continue;
        }
        let index = random.below(codecs.len());
        let codec = &codecs[index];
        let versions = codec.api.versions();
        let version =
            versions.start() + random.below((versions.end() - versions.start() + 1) as usize) as i16;
        let bytes = frame(&schemas[index / 2], index % 2, version, &mut random);
        check(codec, version, &bytes, &mut tally);
    }
    println!(
        "{frames} frames: {} values, {} errors, at most {:.1} times the memory",
        tally.values, tally.errors, tally.worst
    );
    assert!(tally.values * 20 > frames && tally.errors * 20 > frames, "both happen: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    values: usize,
    errors: usize,
    worst: f64,
}

fn check(codec: &Codec, version: i16, bytes: &[u8], tally: &mut Tally) {
    let what = || format!("{} {} v{version}: {bytes:02x?}", codec.api, codec.kind);
    let mut reader = Reader::new(bytes);
    let (result, allocated) = allocations::count(|| (codec.decode)(&mut reader, version));
    assert!(allocated <= ALLOCATION_FACTOR * bytes.len(), "{allocated} bytes for {}", what());
    tally.worst = tally.worst.max(allocated as f64 / bytes.len().max(1) as f64);
    match result {
        Err(error) => {
            tally.errors += 1;
            assert!(error.position <= bytes.len() && !error.field.is_empty(), "{error:?} for {}", what());
        }
        Ok(()) => {
            tally.values += 1;
            // A decoded value can be encoded, and decodes to the same value.
            let written = (codec.rewrite)(&mut Reader::new(bytes), version, version);
            let Ok(Ok(written)) = written else { panic!("{written:?} for {}", what()) };
            let again = (codec.rewrite)(&mut Reader::new(&written), version, version);
            if again.as_ref().is_err_and(|error| error.kind == DecodeErrorKind::AllocationLimit) {
                // Without the skipped bytes the encoding may exceed the allocation factor.
                assert!(written.len() < bytes.len(), "{}", what());
            } else {
                assert_eq!(again, Ok(Ok(written)), "{}", what());
            }
        }
    }
}

/// Checks the types that are not bodies of an API: headers, views, and the group members' protocol.
fn check_other_types(schemas: &[Schema], codecs: &[Codec], random: &mut Random) {
    type Decode = fn(&mut Reader<'_>, i16) -> Result<(), DecodeError>;
    let others: [(ApiKey, usize, Decode); 8] = [
        (ApiKey::Produce, 0, |reader, version| ProduceRequestView::decode(reader, version).map(drop)),
        (ApiKey::Produce, 1, |reader, version| ProduceResponseView::decode(reader, version).map(drop)),
        (ApiKey::Fetch, 1, |reader, version| FetchResponseView::decode(reader, version).map(drop)),
        (ApiKey::Metadata, 1, |reader, version| MetadataResponseView::decode(reader, version).map(drop)),
        // The bytes need not be of these types: damaged input is the point of this check.
        (ApiKey::JoinGroup, 0, |reader, _| RequestHeader::decode(reader).map(drop)),
        (ApiKey::JoinGroup, 1, |reader, version| {
            ResponseHeader::decode(reader, ApiKey::Fetch, version).map(drop)
        }),
        (ApiKey::SyncGroup, 0, |reader, version| {
            ConsumerProtocolSubscription::decode(reader, version.clamp(0, 3)).map(drop)
        }),
        (ApiKey::SyncGroup, 1, |reader, version| {
            ConsumerProtocolAssignment::decode(reader, version.clamp(0, 3)).map(drop)
        }),
    ];
    let (api, kind, decode) = others[random.below(others.len())];
    let index = codecs.iter().position(|codec| codec.api == api).unwrap_or_default() / 2;
    let version = random.below(*api.versions().end() as usize + 1) as i16;
    let bytes = frame(&schemas[index], kind, version, random);
    let mut reader = Reader::new(&bytes);
    let (result, allocated) = allocations::count(|| decode(&mut reader, version));
    assert!(
        allocated <= ALLOCATION_FACTOR * bytes.len(),
        "{allocated} bytes for {api} v{version}: {bytes:02x?}"
    );
    if let Err(error) = result {
        assert!(
            error.position <= bytes.len() && !error.field.is_empty(),
            "{error:?} for {api} v{version}: {bytes:02x?}"
        );
    }
}

/// Returns random bytes, or a valid body with up to three damages.
fn frame(schema: &Schema, kind: usize, version: i16, random: &mut Random) -> Vec<u8> {
    if random.once_in(8) {
        return (0..random.below(200)).map(|_| random.next() as u8).collect();
    }
    let mut bytes = body(&schema.messages[kind].fields, schema, version, random);
    for _ in 0..random.below(4) {
        damage(&mut bytes, random);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        3 => {
            let lengths: [&[u8]; 8] = [
                &[0x7f, 0xff, 0xff, 0xff],
                &[0xff, 0xff, 0xff, 0xff, 0x0f],
                &[0x80, 0, 0, 0],
                &[0xff, 0xff, 0xff, 0xfe],
                &[0xff, 0xff],
                &[0x7f, 0xff],
                &[0, 0, 0, 0x40],
                &[0xc0, 0x01],
            ];
            let length = lengths[random.below(lengths.len())];
            let end = (at + length.len()).min(bytes.len());
            bytes.splice(at..end, length.iter().copied());
        }
        4 => bytes.insert(at, random.next() as u8),
        5 => {
            let end = (at + random.below(40)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            // Zeros look like many empty elements.
            let count = random.below(64);
            bytes.splice(at..at, std::iter::repeat_n(0, count));
        }
    }
}

#[test]
fn a_frame_that_claims_many_elements_is_refused_before_they_are_allocated() {
    for codec in codecs() {
        for version in codec.api.versions() {
            for claim in
                [[0x7f_u8, 0xff, 0xff, 0xff].as_slice(), &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0, 0, 0, 0x5a]]
            {
                for before in 0..24 {
                    let mut bytes = vec![0; before];
                    bytes.extend(claim);
                    bytes.resize(96, 1);
                    check(&codec, version, &bytes, &mut Tally::default());
                }
            }
        }
    }
}
