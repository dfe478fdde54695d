//! Bodies of requests made of bytes: each field of the schema takes a few bytes, which choose among values that mean something to
//! the brokers, or say the value.

use std::{fs, path::Path};

use super::{
    bytes::Bytes,
    learned::Learned,
    schema::{Base, Field, Primitive, Schema, Versions},
};

/// Numbers that mean something: extremes, timeouts, sizes, the first producer IDs and epochs.
const NUMBERS: [i64; 24] = [
    -1,
    0,
    1,
    2,
    3,
    7,
    100,
    1000,
    1001,
    1002,
    6000,
    10_000,
    60_000,
    1 << 20,
    i8::MAX as i64,
    i8::MIN as i64,
    i16::MAX as i64,
    i16::MIN as i64,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
    -2,
    -3,
];

/// Names that mean something to the brokers.
const NAMES: [&str; 22] = [
    "t",
    "u",
    "g",
    "h",
    "x",
    "consumer",
    "range",
    "alice",
    "",
    "*",
    "1",
    "kafka-cluster",
    "retention.ms",
    "cleanup.policy",
    "min.insync.replicas",
    "group.version",
    "transaction.version",
    "user",
    "/kafka/logs-0",
    "uniform",
    "^t",
    "PLAIN",
];

/// Returns the APIs of `schema/`, in the order of their keys.
///
/// # Panics
///
/// `schema/` can't be read.
pub fn schemas(folder: &Path) -> Vec<Schema> {
    let mut schemas: Vec<Schema> = fs::read_dir(folder)
        .expect("schema/ is there")
        .map(|entry| entry.expect("schema/ is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a schema is readable");
            Schema::parse(&stem, &text).expect("a schema is well-formed")
        })
        .filter(|schema| schema.api_key.is_some())
        .collect();
    schemas.sort_by_key(|schema| schema.api_key);
    schemas
}

/// Writes a body.
#[derive(Debug)]
pub struct Body<'a, 'b> {
    input: &'a mut Bytes<'b>,
    learned: &'a Learned,
    version: i16,
    is_flexible: bool,
    out: Vec<u8>,
}

/// Returns a body that the bytes describe.
pub fn body(
    fields: &[Field],
    schema: &Schema,
    version: i16,
    input: &mut Bytes<'_>,
    learned: &Learned,
) -> Vec<u8> {
    let is_flexible = schema.flexible_from.is_some_and(|from| version >= from);
    let mut body = Body { input, learned, version, is_flexible, out: Vec::new() };
    body.structure(fields);
    body.out
}

impl Body<'_, '_> {
    fn structure(&mut self, fields: &[Field]) {
        let version = self.version;
        let has = |versions: Versions| versions.low <= version && version <= versions.high;
        let fields = fields.iter().filter(|field| has(field.versions));
        let (tagged, plain): (Vec<_>, Vec<_>) = fields.partition(|field| field.tag.is_some());
        for field in plain {
            self.field(field);
        }
        if self.is_flexible {
            self.tags(tagged);
        }
    }

    fn tags(&mut self, mut fields: Vec<&Field>) {
        fields.sort_by_key(|field| field.tag);
        fields.retain(|_| self.input.byte() & 1 == 1);
        self.uvarint(fields.len());
        for field in fields {
            let outer = std::mem::take(&mut self.out);
            self.field(field);
            let content = std::mem::replace(&mut self.out, outer);
            self.uvarint(field.tag.unwrap_or_default() as usize);
            self.uvarint(content.len());
            self.out.extend(content);
        }
    }

    fn field(&mut self, field: &Field) {
        let version = self.version;
        let may_be_null = field.nullable.is_some_and(|range| range.low <= version && version <= range.high);
        match &field.base {
            base if field.is_array => {
                let choice = self.input.byte();
                if may_be_null && choice == 255 {
                    return self.length(None);
                }
                let count = usize::from(choice % 4);
                self.length(Some(count));
                for _ in 0..count {
                    match base {
                        Base::Struct(fields) => self.structure(fields),
                        Base::Primitive(primitive) => self.primitive(*primitive, false),
                    }
                }
            }
            Base::Struct(fields) => {
                let is_null = may_be_null && self.input.byte() == 255;
                if may_be_null {
                    self.out.push(if is_null { 255 } else { 1 });
                }
                if !is_null {
                    self.structure(fields);
                }
            }
            Base::Primitive(primitive) => self.primitive(*primitive, may_be_null),
        }
    }

    fn primitive(&mut self, primitive: Primitive, may_be_null: bool) {
        match primitive {
            Primitive::Bool => {
                let value = self.input.byte() & 1;
                self.out.push(value);
            }
            Primitive::Int8 => self.integer(1),
            Primitive::Int16 | Primitive::Uint16 => self.integer(2),
            Primitive::Int32 | Primitive::Uint32 => self.integer(4),
            Primitive::Int64 | Primitive::Float64 => self.integer(8),
            Primitive::Uuid => {
                let choice = usize::from(self.input.byte());
                let known = self.learned.ids.get(choice).copied();
                self.out.extend(known.unwrap_or([choice as u8; 16]));
            }
            Primitive::String => self.text(may_be_null),
            Primitive::Bytes => self.bytes(may_be_null, false),
            Primitive::Records => self.bytes(may_be_null, true),
        }
    }

    /// Writes a small number, one that means something, or any.
    fn integer(&mut self, width: usize) {
        let value = match self.input.byte() {
            small @ 0..200 => i64::from(small),
            250.. => self.input.number(),
            choice => NUMBERS[usize::from(choice - 200) % NUMBERS.len()],
        };
        self.out.extend(&value.to_be_bytes()[8 - width..]);
    }

    fn text(&mut self, may_be_null: bool) {
        let choice = usize::from(self.input.byte());
        let text = match choice {
            255 if may_be_null => None,
            240.. => Some(String::from_utf8_lossy(self.input.piece()).into_owned()),
            choice => {
                let known = self.learned.names.iter().map(String::as_str);
                NAMES.into_iter().chain(known).nth(choice).or(Some("t")).map(str::to_owned)
            }
        };
        let length = text.as_ref().map(String::len);
        if self.is_flexible {
            self.length(length);
        } else {
            self.out.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
        }
        self.out.extend(text.unwrap_or_default().bytes());
    }

    fn bytes(&mut self, may_be_null: bool, is_records: bool) {
        let choice = self.input.byte();
        let bytes = match choice {
            255 if may_be_null => return self.length(None),
            0..100 if is_records => batch(self.input),
            100..150 => subscription(self.input),
            _ => self.input.piece().to_vec(),
        };
        self.length(Some(bytes.len()));
        self.out.extend(bytes);
    }

    fn length(&mut self, length: Option<usize>) {
        if self.is_flexible {
            self.uvarint(length.map_or(0, |length| length + 1));
        } else {
            self.out.extend(length.map_or(-1, |length| length as i32).to_be_bytes());
        }
    }

    fn uvarint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }
}

/// Returns a record batch whose checksum is right.
pub fn batch(input: &mut Bytes<'_>) -> Vec<u8> {
    let (count, attributes) = (input.below(5) as i32, u16::from(input.byte()));
    let (producer_id, epoch) = (i64::from(input.byte()) + 999, i16::from(input.byte()));
    let producer =
        if producer_id == 999 { (-1, -1, -1) } else { (producer_id, epoch, i32::from(input.byte())) };
    let mut checked = Vec::new();
    checked.extend(attributes.to_be_bytes());
    checked.extend((count - 1).to_be_bytes());
    checked.extend(1000_i64.to_be_bytes());
    checked.extend((1000 + i64::from(count)).to_be_bytes());
    checked.extend(producer.0.to_be_bytes());
    checked.extend(producer.1.to_be_bytes());
    checked.extend(producer.2.to_be_bytes());
    checked.extend(count.to_be_bytes());
    for index in 0..count as u8 {
        // Length, attributes, and the deltas of timestamp and offset; no key; a value of one byte; no header.
        checked.extend([14, 0, 2 * index, 2 * index, 1, 2, b'v', 0]);
    }
    checked.extend(input.piece());
    let mut batch = vec![0; 8];
    batch.extend((checked.len() as i32 + 9).to_be_bytes());
    batch.extend([0xff, 0xff, 0xff, 0xff, 2]);
    batch.extend(crc32c::crc32c(&checked).to_be_bytes());
    batch.extend(checked);
    batch
}

/// Returns the subscription or the assignment of a member of a classic group.
fn subscription(input: &mut Bytes<'_>) -> Vec<u8> {
    let version = i16::from(input.byte() % 4);
    let mut bytes = version.to_be_bytes().to_vec();
    let topics = input.below(3);
    bytes.extend((topics as i32).to_be_bytes());
    for _ in 0..topics {
        let name = NAMES[input.below(NAMES.len())];
        bytes.extend((name.len() as i16).to_be_bytes());
        bytes.extend(name.bytes());
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes.extend(input.piece());
    bytes
}
