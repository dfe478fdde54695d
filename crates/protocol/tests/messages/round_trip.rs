//! The generated code reads and writes what the schema defines.

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        fetch::FetchResponseView,
        metadata::MetadataResponseView,
        produce::{
            ProduceRequestView, ProduceResponse, ProduceResponseView,
            response::{PartitionResponse, Response},
        },
    },
    primitive::{DecodeErrorKind, EncodeErrorKind, Reader},
};

use crate::{
    codecs::codecs,
    frames::{Random, body, dense_body, schemas},
    tree::Tree,
};

#[test]
fn every_message_version_is_read_and_written_by_its_schema() {
    let mut random = Random(2);
    let schemas = schemas();
    for (index, codec) in codecs().into_iter().enumerate() {
        let schema = &schemas[index / 2];
        let message = &schema.messages[index % 2];
        assert_eq!((Some(codec.api.as_i16()), codec.kind), (schema.api_key, message.kind.as_str()));
        for version in codec.api.versions() {
            for _ in 0..40 {
                let bytes = body(&message.fields, schema, version, &mut random);
                let mut reader = Reader::new(&bytes);
                let rewritten = (codec.rewrite)(&mut reader, version, version);
                assert_eq!(rewritten, Ok(Ok(bytes.clone())), "{} {} v{version}", codec.api, codec.kind);
                assert_eq!(reader.finish(), Ok(()));
            }
        }
    }
}

#[test]
fn defaults_are_writable_in_every_version_or_name_the_missing_field() {
    for codec in codecs() {
        for version in codec.api.versions() {
            match (codec.default)(version) {
                Ok(bytes) => {
                    let rewritten = (codec.rewrite)(&mut Reader::new(&bytes), version, version);
                    assert_eq!(rewritten, Ok(Ok(bytes)), "{} {} v{version}", codec.api, codec.kind);
                }
                Err(error) => {
                    assert_eq!(error.kind, EncodeErrorKind::UnexpectedNull, "{}: {error}", codec.api)
                }
            }
        }
    }
}

#[test]
fn versions_that_do_not_exist_are_refused() {
    for codec in codecs() {
        let versions = codec.api.versions();
        for version in [versions.start() - 1, versions.end() + 1, i16::MIN, i16::MAX] {
            let error = (codec.decode)(&mut Reader::new(&[0; 64]), version).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::UnsupportedVersion(version));
            let error = (codec.default)(version).unwrap_err();
            assert_eq!(error.kind, EncodeErrorKind::UnsupportedVersion(version));
        }
    }
}

#[test]
fn unsupported_value_is_an_error_and_leaves_the_buffer_unchanged() {
    let mut random = Random(3);
    let schemas = schemas();
    let (mut written, mut refused) = (0, 0);
    for (index, codec) in codecs().into_iter().enumerate() {
        let schema = &schemas[index / 2];
        let message = &schema.messages[index % 2];
        for version in codec.api.versions() {
            for other in codec.api.versions() {
                let bytes = body(&message.fields, schema, version, &mut random);
                match (codec.rewrite)(&mut Reader::new(&bytes), version, other) {
                    Ok(Ok(rewritten)) => {
                        written += 1;
                        let mut reader = Reader::new(&rewritten);
                        assert_eq!((codec.decode)(&mut reader, other), Ok(()), "{}", codec.api);
                        assert_eq!(reader.finish(), Ok(()));
                    }
                    Ok(Err(error)) => {
                        refused += 1;
                        assert!(
                            matches!(
                                error.kind,
                                EncodeErrorKind::NotInVersion(_) | EncodeErrorKind::UnexpectedNull
                            ),
                            "{error}"
                        );
                        assert!(error.field.starts_with(codec.api.name()), "{error}");
                    }
                    Err(error) => panic!("{} {} v{version}: {error}", codec.api, codec.kind),
                }
            }
        }
    }
    assert!(written > 1000 && refused > 100, "{written} written, {refused} refused");
}

#[test]
fn unknown_tagged_fields_are_skipped_in_every_flexible_version() {
    let mut random = Random(7);
    let schemas = schemas();
    let mut versions = 0;
    for (index, codec) in codecs().into_iter().enumerate() {
        let schema = &schemas[index / 2];
        let fields = &schema.messages[index % 2].fields;
        for version in codec.api.versions().filter(|version| codec.api.is_flexible(*version)) {
            versions += 1;
            let plain = dense_body(fields, schema, version, &mut random);
            let mut tagged = plain.clone();
            assert_eq!(tagged.pop(), Some(0), "a body without tagged fields ends with their number");
            tagged.extend([2, 100, 3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]);
            let mut reader = Reader::new(&tagged);
            assert_eq!(
                (codec.rewrite)(&mut reader, version, version),
                Ok(Ok(plain)),
                "{} v{version}",
                codec.api
            );
            assert_eq!(reader.finish(), Ok(()));
        }
    }
    assert!(versions > 200);
}

#[test]
fn unknown_error_codes_are_carried() {
    let partition = PartitionResponse { error_code: ErrorCode(12_345), ..Default::default() };
    let topic = Response { partition_responses: vec![partition], ..Default::default() };
    let response = ProduceResponse { responses: vec![topic], ..Default::default() };
    for version in ApiKey::Produce.versions() {
        let mut bytes = Vec::new();
        response.encode(version, &mut bytes).unwrap();
        assert_eq!(ProduceResponse::decode(&mut Reader::new(&bytes), version).as_ref(), Ok(&response));
    }
}

#[test]
fn views_and_owned_messages_agree() {
    let mut random = Random(4);
    let schemas = schemas();
    type Debug = fn(&[u8], i16) -> String;
    let views: [(ApiKey, usize, Debug); 4] = [
        (ApiKey::Produce, 0, |bytes, version| {
            format!("{:?}", ProduceRequestView::decode(&mut Reader::new(bytes), version).unwrap())
        }),
        (ApiKey::Produce, 1, |bytes, version| {
            format!("{:?}", ProduceResponseView::decode(&mut Reader::new(bytes), version).unwrap())
        }),
        (ApiKey::Fetch, 1, |bytes, version| {
            format!("{:?}", FetchResponseView::decode(&mut Reader::new(bytes), version).unwrap())
        }),
        (ApiKey::Metadata, 1, |bytes, version| {
            format!("{:?}", MetadataResponseView::decode(&mut Reader::new(bytes), version).unwrap())
        }),
    ];
    for (api, kind, view) in views {
        let index = ApiKey::ALL.iter().position(|each| *each == api).unwrap_or_default();
        let owned = codecs()[2 * index + kind];
        let schema = &schemas[index];
        for version in api.versions() {
            for _ in 0..20 {
                let bytes = body(&schema.messages[kind].fields, schema, version, &mut random);
                let owned = (owned.debug)(&mut Reader::new(&bytes), version).unwrap();
                assert_eq!(Tree::parse(&view(&bytes, version)), Tree::parse(&owned), "{api} v{version}");
            }
        }
    }
}

#[test]
fn messages_as_dense_as_they_get_in_life_stay_within_the_memory_allowed() {
    let mut random = Random(6);
    let schemas = schemas();
    for (index, codec) in codecs().into_iter().enumerate() {
        let schema = &schemas[index / 2];
        let fields = &schema.messages[index % 2].fields;
        for version in codec.api.versions() {
            let bytes = dense_body(fields, schema, version, &mut random);
            let decoded = (codec.decode)(&mut Reader::new(&bytes), version);
            assert_eq!(decoded, Ok(()), "{} {} v{version}", codec.api, codec.kind);
        }
    }
}
