//! The wire format: how a record names its schema.
//!
//! | where | bytes |
//! |---|---|
//! | before the data | 0, the ID as four bytes in big-endian order |
//! | before the data | 1, the GUID as 16 bytes |
//! | in the header `__key_schema_id` or `__value_schema_id` | the same, and the data stands alone |
//!
//! In Protobuf, the indexes of the message in its file follow ([`MessageIndexes`]).

mod guid;
mod message_indexes;

pub use guid::Guid;
pub use message_indexes::MessageIndexes;

use crate::{Error, Result};

const MAGIC_ID: u8 = 0;
const MAGIC_GUID: u8 = 1;

/// The header with the ID of the schema of the key.
pub const KEY_SCHEMA_ID_HEADER: &str = "__key_schema_id";
/// The header with the ID of the schema of the value.
pub const VALUE_SCHEMA_ID_HEADER: &str = "__value_schema_id";

/// What identifies a schema on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaId {
    /// The ID in one registry.
    Id(u32),
    /// The ID that is the same in all registries.
    Guid(Guid),
}

impl SchemaId {
    /// Appends the magic byte and the ID.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            SchemaId::Id(id) => {
                out.push(MAGIC_ID);
                out.extend_from_slice(&id.to_be_bytes());
            }
            SchemaId::Guid(guid) => {
                out.push(MAGIC_GUID);
                out.extend_from_slice(&guid.0);
            }
        }
    }

    /// Reads the magic byte and the ID, and returns what follows.
    ///
    /// # Errors
    ///
    /// The bytes are too few, or start with another magic byte.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let short = |needed: usize| {
            Error::record(
                0,
                format!(
                    "{} bytes are too few for the ID of a schema, which needs {needed}; was the record written \
                     without a schema registry?",
                    bytes.len()
                ),
            )
        };
        let Some((magic, rest)) = bytes.split_first() else { return Err(short(5)) };
        match *magic {
            MAGIC_ID => {
                let (id, rest) = rest.split_first_chunk().ok_or_else(|| short(5))?;
                let id = u32::from_be_bytes(*id);
                if i32::try_from(id).is_err() {
                    return Err(Error::record(
                        5,
                        format!("the ID of the schema, {id}, is beyond the range of IDs"),
                    ));
                }
                Ok((SchemaId::Id(id), rest))
            }
            MAGIC_GUID => {
                let (guid, rest) = rest.split_first_chunk().ok_or_else(|| short(17))?;
                Ok((SchemaId::Guid(Guid(*guid)), rest))
            }
            other => Err(Error::record(
                0,
                format!(
                    "the first byte is {other}, and 0 or 1 announces the ID of a schema; was the record written \
                     without a schema registry?"
                ),
            )),
        }
    }
}

impl std::fmt::Display for SchemaId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SchemaId::Id(id) => write!(f, "{id}"),
            SchemaId::Guid(guid) => write!(f, "{guid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_and_guid_are_read_as_written() {
        for id in [SchemaId::Id(0), SchemaId::Id(0x7fff_ffff), SchemaId::Guid(Guid([9; 16]))] {
            let mut bytes = Vec::new();
            id.write(&mut bytes);
            bytes.push(42);
            assert_eq!(SchemaId::read(&bytes).unwrap(), (id, &[42][..]));
        }
        let mut bytes = Vec::new();
        SchemaId::Id(258).write(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 1, 2]);
    }

    #[test]
    fn short_prefix_and_unknown_magic_byte_are_named() {
        for bytes in [&[][..], &[0], &[0, 1, 2, 3], &[1; 16]] {
            let error = SchemaId::read(bytes).unwrap_err().to_string();
            assert!(error.contains("too few for the ID"), "{error}");
        }
        let error = SchemaId::read(b"{\"a\":1}").unwrap_err().to_string();
        assert!(error.contains("the first byte is 123"), "{error}");
    }

    #[test]
    fn id_beyond_the_range_is_refused() {
        let error = SchemaId::read(&[0, 0x80, 0, 0, 0]).unwrap_err().to_string();
        assert!(error.contains("2147483648, is beyond the range"), "{error}");
    }
}
