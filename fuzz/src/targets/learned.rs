//! The names and IDs in a response, found by its schema.

use super::{
    bytes::Bytes,
    schema::{Base, Field, Primitive, Schema},
};

/// The most names, and the most IDs, that are kept.
const MOST: usize = 64;

/// What brokers said and expect to hear again: member IDs, topic IDs.
#[derive(Debug, Default)]
pub struct Learned {
    /// Texts.
    pub names: Vec<String>,
    /// UUIDs.
    pub ids: Vec<[u8; 16]>,
}

/// Reads a body that was checked by its decoder.
struct Walk<'a, 'b> {
    learned: &'a mut Learned,
    bytes: Bytes<'b>,
    version: i16,
    is_flexible: bool,
}

impl Learned {
    /// Adds what is in the body of a message.
    pub fn learn(&mut self, fields: &[Field], schema: &Schema, version: i16, body: &[u8]) {
        let is_flexible = schema.flexible_from.is_some_and(|from| version >= from);
        Walk { learned: self, bytes: Bytes::new(body), version, is_flexible }.structure(fields);
    }
}

impl Walk<'_, '_> {
    fn structure(&mut self, fields: &[Field]) {
        let version = self.version;
        let fields = fields.iter().filter(|it| it.versions.low <= version && version <= it.versions.high);
        for field in fields.filter(|field| field.tag.is_none()) {
            self.field(field);
        }
        if self.is_flexible {
            for _ in 0..self.uvarint() {
                self.uvarint();
                let length = self.uvarint();
                self.bytes.take(length);
            }
        }
    }

    fn field(&mut self, field: &Field) {
        let version = self.version;
        let may_be_null = field.nullable.is_some_and(|range| range.low <= version && version <= range.high);
        match &field.base {
            base if field.is_array => {
                for _ in 0..self.length(4).unwrap_or(0) {
                    if self.bytes.is_empty() {
                        return;
                    }
                    match base {
                        Base::Struct(fields) => self.structure(fields),
                        Base::Primitive(primitive) => self.primitive(*primitive),
                    }
                }
            }
            Base::Struct(_) if may_be_null && self.bytes.byte() == 255 => {}
            Base::Struct(fields) => self.structure(fields),
            Base::Primitive(primitive) => self.primitive(*primitive),
        }
    }

    fn primitive(&mut self, primitive: Primitive) {
        let width = match primitive {
            Primitive::Bool | Primitive::Int8 => 1,
            Primitive::Int16 | Primitive::Uint16 => 2,
            Primitive::Int32 | Primitive::Uint32 => 4,
            Primitive::Int64 | Primitive::Float64 => 8,
            Primitive::Uuid => {
                if let Ok(id) = self.bytes.take(16).try_into()
                    && id != [0; 16]
                {
                    keep(&mut self.learned.ids, id);
                }
                return;
            }
            Primitive::String => {
                let length = self.length(2).unwrap_or(0);
                let text = String::from_utf8_lossy(self.bytes.take(length)).into_owned();
                if !text.is_empty() {
                    keep(&mut self.learned.names, text);
                }
                return;
            }
            Primitive::Bytes | Primitive::Records => self.length(4).unwrap_or(0),
        };
        self.bytes.take(width);
    }

    /// Reads a length, which has this width in versions that are not flexible.
    fn length(&mut self, width: usize) -> Option<usize> {
        if self.is_flexible {
            return self.uvarint().checked_sub(1);
        }
        let bytes = self.bytes.take(width);
        let is_null = bytes.first().is_some_and(|first| first & 0x80 != 0);
        (!is_null).then(|| bytes.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    }

    fn uvarint(&mut self) -> usize {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes.byte();
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
}

fn keep<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if list.len() < MOST && !list.contains(&value) {
        list.push(value);
    }
}
