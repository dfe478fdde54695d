//! The traits of requests and responses.

use crate::{
    api::ApiKey,
    primitive::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, Writer},
    uuid::Uuid,
};

/// The body of a request or a response.
pub trait Message: Sized + Default {
    /// The message's API.
    const API_KEY: ApiKey;

    /// Appends the body in `version` to `out`. After an error `out` is unchanged.
    ///
    /// A field that `version` does not have is left out if the loss is harmless; otherwise it is an error.
    fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Decodes the body in `version`. Bytes that follow it stay in `reader`.
    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError>;
}

/// The body of a request.
pub trait Request: Message {
    /// The body of the response.
    type Response: Message;
}

/// A type that is decoded from the wire, in a given version.
pub(crate) trait ReadFrom<'a>: Sized {
    fn read_from(r: &mut Reader<'a>, version: i16) -> Result<Self, DecodeError>;
}

/// A type that is encoded to the wire, in a given version.
pub(crate) trait WriteTo {
    fn write_to(&self, w: &mut Writer<'_>, version: i16) -> Result<(), EncodeError>;
}

/// The versions of a message, and the first flexible one.
pub(crate) struct Versions {
    pub(crate) name: &'static str,
    pub(crate) oldest: i16,
    pub(crate) latest: i16,
    pub(crate) flexible_from: i16,
}

impl Versions {
    const fn contains(&self, version: i16) -> bool {
        self.oldest <= version && version <= self.latest
    }
}

pub(crate) fn encode(
    message: &dyn WriteTo,
    versions: &Versions,
    version: i16,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let mut writer = Writer::new(out, version >= versions.flexible_from);
    if !versions.contains(version) {
        return Err(writer.at(versions.name).error(EncodeErrorKind::UnsupportedVersion(version)));
    }
    message.write_to(&mut writer, version).inspect_err(|_| out.truncate(start))
}

pub(crate) fn decode<'a, T: ReadFrom<'a>>(
    versions: &Versions,
    reader: &mut Reader<'a>,
    version: i16,
) -> Result<T, DecodeError> {
    begin_decode(versions, reader, version)?;
    T::read_from(reader, version)
}

fn begin_decode(versions: &Versions, reader: &mut Reader<'_>, version: i16) -> Result<(), DecodeError> {
    if !versions.contains(version) {
        return Err(reader.at(versions.name).error(DecodeErrorKind::UnsupportedVersion(version)));
    }
    reader.set_flexible(version >= versions.flexible_from);
    Ok(())
}

/// Defines the public methods of a message.
macro_rules! message {
    ($name:ident, $versions:expr) => {
        impl $name {
            /// Appends the body in `version` to `out`. After an error `out` is unchanged.
            pub fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), $crate::primitive::EncodeError> {
                $crate::message::encode(self, &$versions, version, out)
            }
        }
        $crate::message::message!(decode $name, $versions, "body");
    };
    (decode $name:ident, $versions:expr, $what:literal) => {
        impl $name {
            #[doc = concat!("Reads the ", $what, " in `version`. What follows it is left in `reader`.")]
            pub fn decode(
                reader: &mut $crate::primitive::Reader<'_>,
                version: i16,
            ) -> Result<Self, $crate::primitive::DecodeError> {
                $crate::message::decode(&$versions, reader, version)
            }
        }
    };
    ($name:ident, $versions:expr, ApiKey::$key:ident) => {
        $crate::message::message!($name, $versions);
        impl $crate::message::Message for $name {
            const API_KEY: $crate::api::ApiKey = $crate::api::ApiKey::$key;
            fn encode(&self, version: i16, out: &mut Vec<u8>) -> Result<(), $crate::primitive::EncodeError> {
                Self::encode(self, version, out)
            }
            fn decode(
                reader: &mut $crate::primitive::Reader<'_>,
                version: i16,
            ) -> Result<Self, $crate::primitive::DecodeError> {
                Self::decode(reader, version)
            }
        }
    };
    (view $name:ident, $versions:expr) => {
        impl<'a> $name<'a> {
            /// Decodes the body in `version`; strings and bytes borrow from the received frame.
            pub fn decode(
                reader: &mut $crate::primitive::Reader<'a>,
                version: i16,
            ) -> Result<Self, $crate::primitive::DecodeError> {
                $crate::message::decode(&$versions, reader, version)
            }
        }
    };
}
pub(crate) use message;

/// Implements reading and writing for array elements that are not structs.
macro_rules! element {
    ($type:ty, $read:ident, $write:ident) => {
        impl ReadFrom<'_> for $type {
            fn read_from(r: &mut Reader<'_>, _version: i16) -> Result<Self, DecodeError> {
                r.$read()
            }
        }
        impl WriteTo for $type {
            fn write_to(&self, w: &mut Writer<'_>, _version: i16) -> Result<(), EncodeError> {
                w.$write(*self);
                Ok(())
            }
        }
    };
}
element!(i8, i8, i8);
element!(i16, i16, i16);
element!(i32, i32, i32);
element!(i64, i64, i64);
element!(Uuid, uuid, uuid);

impl ReadFrom<'_> for String {
    fn read_from(r: &mut Reader<'_>, _version: i16) -> Result<Self, DecodeError> {
        r.string()
    }
}

impl WriteTo for String {
    fn write_to(&self, w: &mut Writer<'_>, _version: i16) -> Result<(), EncodeError> {
        w.string(self)
    }
}

impl<'a> ReadFrom<'a> for &'a str {
    fn read_from(r: &mut Reader<'a>, _version: i16) -> Result<Self, DecodeError> {
        r.str()
    }
}
