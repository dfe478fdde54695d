//! How `consume` prints records, and how `produce` encodes them.
//!
//! | file | what it has |
//! |---|---|
//! | `printer.rs` | filter, decode, print: what the commands call |
//! | `filter.rs` | `--filter` |
//! | `part_format.rs`, `pack.rs`, `registry.rs` | `-s`: the formats of keys and values |
//! | `decoder.rs` | how their bytes become values |
//! | `encoder.rs`, `registry_writer.rs` | how values become their bytes, for `produce` |
//! | `format.rs` | `-f` |
//! | `json.rs`, `csv.rs` | `-J` and `--csv` |
//! | `without_filter.rs`, `without_registry.rs` | what stands for two of them in a program without the features `filter` and `schemas` |

mod csv;
mod decoder;
mod encoder;
#[cfg(feature = "filter")]
mod filter;
mod format;
mod json;
mod pack;
mod part_format;
mod printer;
#[cfg(feature = "schemas")]
mod registry;
#[cfg(feature = "schemas")]
mod registry_writer;
#[cfg(not(feature = "filter"))]
mod without_filter;
#[cfg(not(feature = "schemas"))]
mod without_registry;

pub use decoder::Decoders;
pub use encoder::{Encoded, Encoders};
pub use filter::{FILTER_HELP, Filter};
pub use format::FORMAT_HELP;
pub use part_format::{FORMAT_LIST, PartFormats};
pub use printer::{OutputOptions, Printer};
pub use registry::WriterOptions;
#[cfg(not(feature = "filter"))]
use without_filter as filter;
#[cfg(not(feature = "schemas"))]
use without_registry as registry;

/// A record as the printers see it.
#[derive(Clone, Copy, Debug)]
pub struct RecordParts<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// Whether a key or a value is decoded or encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Key => "key",
            Part::Value => "value",
        })
    }
}

/// Calls a function with the parts of a [`Message`](ottla::Message) or [`MessageRef`](ottla::MessageRef).
macro_rules! with_parts {
    ($message:expr, |$parts:ident| $then:expr) => {{
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            $message.headers().map(|header| (header.key.as_ref(), header.value)).collect();
        let $parts = &$crate::records::RecordParts {
            topic: $message.topic(),
            partition: $message.partition(),
            offset: $message.offset(),
            timestamp: $message.timestamp(),
            key: $message.key(),
            value: $message.value(),
            headers: &headers,
        };
        $then
    }};
}

use with_parts;

impl RecordParts<'_> {
    /// The bytes of key, value and headers.
    fn size(&self) -> usize {
        let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + length(*value)).sum();
        length(self.key) + length(self.value) + headers
    }
}

/// A key or value after its decoder: `None` for null.
type Decoded<'a> = Option<decoder::Decoded<'a>>;

/// A record with decoded key and value.
#[derive(Debug)]
struct DecodedRecord<'a> {
    parts: RecordParts<'a>,
    key: Result<Decoded<'a>, String>,
    value: Result<Decoded<'a>, String>,
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
const RECORD: RecordParts<'static> = RecordParts {
    topic: "demo",
    partition: 3,
    offset: 42,
    timestamp: 1_700_000_000_000,
    key: Some(b"k"),
    value: Some(b"hello"),
    headers: &[(b"a", Some(b"1")), (b"a", None)],
};

/// Prints a record as a line of `ottla consume -J`, without a decoder.
///
/// # Errors
///
/// That of the output.
pub fn write_plain_json(parts: RecordParts<'_>, out: &mut impl std::io::Write) -> std::io::Result<()> {
    json::write_json(&plain(parts), out)
}

fn plain(parts: RecordParts<'_>) -> DecodedRecord<'_> {
    let bytes = |bytes: Option<_>| Ok(bytes.map(decoder::Decoded::Bytes));
    DecodedRecord { parts, key: bytes(parts.key), value: bytes(parts.value) }
}
