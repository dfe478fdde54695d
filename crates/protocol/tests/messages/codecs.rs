//! The generated types, behind function pointers, by API and kind.

use std::fmt::Debug;

use ottla_protocol::{
    api::ApiKey,
    message::Message,
    primitive::{DecodeError, EncodeError, Reader},
};

/// A body that was decoded and encoded again; the errors are those of decoding and of encoding.
pub type Rewritten = Result<Result<Vec<u8>, EncodeError>, DecodeError>;

/// The functions that decode and encode one message.
#[derive(Clone, Copy)]
pub struct Codec {
    pub api: ApiKey,
    pub kind: &'static str,
    /// Decodes a body and drops it.
    pub decode: fn(&mut Reader<'_>, i16) -> Result<(), DecodeError>,
    /// Decodes a body and formats it with `{:?}`.
    pub debug: fn(&mut Reader<'_>, i16) -> Result<String, DecodeError>,
    /// Decodes a body and encodes it again, optionally in another version.
    pub rewrite: fn(&mut Reader<'_>, i16, i16) -> Rewritten,
    /// Encodes a message with default values.
    pub default: fn(i16) -> Result<Vec<u8>, EncodeError>,
}

/// Returns two codecs per API: request and response.
pub fn codecs() -> Vec<Codec> {
    macro_rules! each {
        ($($module:ident $request:ident $response:ident;)*) => {
            vec![$(
                codec::<ottla_protocol::generated::$module::$request>("request"),
                codec::<ottla_protocol::generated::$module::$response>("response"),
            )*]
        };
    }
    ottla_protocol::for_every_api!(each)
}

fn codec<M: Message + Debug>(kind: &'static str) -> Codec {
    Codec {
        api: M::API_KEY,
        kind,
        decode: |reader, version| M::decode(reader, version).map(drop),
        debug: |reader, version| M::decode(reader, version).map(|message| format!("{message:?}")),
        rewrite: |reader, version, other| {
            let message = M::decode(reader, version)?;
            let mut out = Vec::new();
            Ok(message.encode(other, &mut out).map(|()| out))
        },
        default: |version| {
            let mut out = Vec::new();
            M::default().encode(version, &mut out).map(|()| out)
        },
    }
}
