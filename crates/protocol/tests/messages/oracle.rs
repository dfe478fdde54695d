//! The crate `kafka-protocol` decodes our encoding to the same values, and the reverse.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, Message, VersionRange};
use ottla_protocol::{api::ApiKey, primitive::Reader};

use crate::{
    codecs::codecs,
    frames::{Random, body, schemas},
    tree::Tree,
};

const BODIES_PER_VERSION: usize = 30;

struct Oracle {
    /// The versions that the crate knows; `None` for an unknown message.
    versions: Option<VersionRange>,
    rewrite: fn(&[u8], i16) -> Result<Rewritten, String>,
}

/// A body that was decoded and encoded again.
struct Rewritten {
    printed: String,
    bytes: Vec<u8>,
}

/// Returns two oracles per API: request and response.
fn oracles() -> Vec<Oracle> {
    macro_rules! each {
        (($($done:expr),*)) => { vec![$($done),*] };
        // The crate has no messages of the streams protocol, and none of Kafka 4.4.
        (($($done:expr),*) streams_group_heartbeat $request:ident $response:ident; $($rest:tt)*) => {
            each!(($($done,)* unknown(), unknown()) $($rest)*)
        };
        (($($done:expr),*) streams_group_describe $request:ident $response:ident; $($rest:tt)*) => {
            each!(($($done,)* unknown(), unknown()) $($rest)*)
        };
        (($($done:expr),*) streams_group_topology_description_update $request:ident $response:ident; $($rest:tt)*) => {
            each!(($($done,)* unknown(), unknown()) $($rest)*)
        };
        (($($done:expr),*) unregister_controller $request:ident $response:ident; $($rest:tt)*) => {
            each!(($($done,)* unknown(), unknown()) $($rest)*)
        };
        (($($done:expr),*) $module:ident $request:ident $response:ident; $($rest:tt)*) => {
            each!((
                $($done,)*
                oracle::<kafka_protocol::messages::$request>(),
                oracle::<kafka_protocol::messages::$response>()
            ) $($rest)*)
        };
    }
    ottla_protocol::for_every_api!(each, ())
}

fn unknown() -> Oracle {
    Oracle { versions: None, rewrite: |_, _| Err("unknown".to_owned()) }
}

fn oracle<M: Message + Decodable + Encodable + Debug>() -> Oracle {
    Oracle {
        versions: Some(M::VERSIONS),
        rewrite: |bytes, version| {
            let mut buffer = Bytes::copy_from_slice(bytes);
            let message = M::decode(&mut buffer, version).map_err(|error| error.to_string())?;
            if !buffer.is_empty() {
                return Err(format!("{} bytes left over", buffer.len()));
            }
            let mut out = BytesMut::new();
            message.encode(&mut out, version).map_err(|error| error.to_string())?;
            Ok(Rewritten { printed: format!("{message:?}"), bytes: out.to_vec() })
        },
    }
}

#[test]
fn kafka_protocol_reads_what_we_write_and_we_read_what_it_writes() {
    let mut random = Random(1);
    let mut failures = Vec::new();
    let (mut messages, mut versions, mut bodies) = (0, 0, 0);
    for (index, (codec, oracle)) in codecs().iter().zip(oracles()).enumerate() {
        let schemas = schemas();
        let schema = &schemas[index / 2];
        let message = &schema.messages[index % 2];
        messages += 1;
        let is_renamed = codec.api == ApiKey::TxnOffsetCommit;
        let renamed = if is_renamed { "generation_id" } else { "generation_id_or_member_epoch" };
        let shared = |version: &i16| {
            oracle.versions.is_some_and(|range| range.min <= *version && *version <= range.max)
        };
        'versions: for version in codec.api.versions().filter(shared) {
            versions += 1;
            for _ in 0..BODIES_PER_VERSION {
                let bytes = body(&message.fields, schema, version, &mut random);
                bodies += 1;
                let mut fail =
                    |why: String| failures.push(format!("{} {} v{version}: {why}", codec.api, codec.kind));
                let (Ok(printed), Ok(Ok(ours))) = (
                    (codec.debug)(&mut Reader::new(&bytes), version),
                    (codec.rewrite)(&mut Reader::new(&bytes), version, version),
                ) else {
                    fail("we do not read it".to_owned());
                    break 'versions;
                };
                match (oracle.rewrite)(&ours, version) {
                    Err(error) => fail(format!("refused: {error}")),
                    Ok(theirs) => {
                        // The name that the field has since Kafka 4.4.
                        let printed = printed.replace("generation_id_or_member_epoch", renamed);
                        let difference = Tree::parse(&printed).difference(&Tree::parse(&theirs.printed));
                        match difference {
                            Some(difference) => fail(difference),
                            None if theirs.bytes != ours => fail("it writes other bytes".to_owned()),
                            None => continue,
                        }
                    }
                }
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} of {versions} versions:\n{}", failures.len(), failures.join("\n"));
    println!("{bodies} bodies of {messages} messages in {versions} versions");
    assert!(messages == codecs().len() && versions > 500);
}
