//! Requests, responses, headers and the group members' protocol: two bytes choose the type, one the version, one another version.
//!
//! A decoder allocates at most 16 times the bytes. What it accepts can be encoded, decodes to the same value, and can be encoded
//! in another version or is refused there.

use std::sync::LazyLock;

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

use super::{
    bytes::Bytes,
    codecs::{Codec, codecs},
    memory,
};

static CODECS: LazyLock<Vec<Codec>> = LazyLock::new(codecs);

type Decode = fn(&mut Reader<'_>, i16) -> Result<(), DecodeError>;

/// The types that are not the body of an API.
const OTHERS: [Decode; 8] = [
    |reader, version| ProduceRequestView::decode(reader, version).map(drop),
    |reader, version| ProduceResponseView::decode(reader, version).map(drop),
    |reader, version| FetchResponseView::decode(reader, version).map(drop),
    |reader, version| MetadataResponseView::decode(reader, version).map(drop),
    |reader, _| RequestHeader::decode(reader).map(drop),
    |reader, version| ResponseHeader::decode(reader, ApiKey::Fetch, version).map(drop),
    |reader, version| ConsumerProtocolSubscription::decode(reader, version).map(drop),
    |reader, version| ConsumerProtocolAssignment::decode(reader, version).map(drop),
];

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut input = Bytes::new(input);
    let index = input.below_many(CODECS.len() + OTHERS.len());
    let (version, other) = (i16::from(input.byte()), i16::from(input.byte()));
    let bytes = input.rest();
    match CODECS.get(index) {
        Some(codec) => {
            let (low, high) = codec.api.versions().into_inner();
            let within = |version: i16| low + version % (high - low + 1);
            check(codec, within(version), within(other), bytes);
        }
        None => {
            let decode = OTHERS[index - CODECS.len()];
            bounded(bytes, |reader| decode(reader, version % 20)).ok();
        }
    }
}

/// Decodes within the memory that the bytes allow.
fn bounded(
    bytes: &[u8],
    decode: impl Fn(&mut Reader<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let (result, used) = memory::count(|| decode(&mut Reader::new(bytes)));
    assert!(used.total <= ALLOCATION_FACTOR * bytes.len(), "{} bytes for {}", used.total, bytes.len());
    result.inspect_err(|error| {
        assert!(error.position <= bytes.len() && !error.field.is_empty(), "{error:?}");
        assert!(!error.to_string().is_empty());
    })
}

fn check(codec: &Codec, version: i16, other: i16, bytes: &[u8]) {
    if bounded(bytes, |reader| (codec.decode)(reader, version)).is_err() {
        return;
    }
    let what = || format!("{} {} v{version}", codec.api, codec.kind);
    let written = (codec.rewrite)(&mut Reader::new(bytes), version, version);
    let Ok(Ok(written)) = written else { panic!("{}: {written:?}", what()) };
    let is_limited = |error: &DecodeError| error.kind == DecodeErrorKind::AllocationLimit;
    let again = (codec.rewrite)(&mut Reader::new(&written), version, version);
    // Without the skipped bytes the encoding may exceed the allocation factor.
    if !again.as_ref().is_err_and(is_limited) {
        assert_eq!(again, Ok(Ok(written)), "{}", what());
    }
    // An older version may lack a field, or its null.
    if let Ok(Ok(converted)) = (codec.rewrite)(&mut Reader::new(bytes), version, other) {
        let read = (codec.decode)(&mut Reader::new(&converted), other);
        assert!(read.as_ref().map_or_else(is_limited, |()| true), "{} as v{other}: {read:?}", what());
    }
}
