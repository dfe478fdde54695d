//! Random bodies, generated directly from the schema.

use std::{fs, path::Path};

use crate::schema::{Base, Field, Primitive, Schema, Versions};

/// Returns all APIs of `schema/`.
pub fn schemas() -> Vec<Schema> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    let mut schemas = Vec::new();
    for entry in fs::read_dir(&folder).expect("schema/ is there") {
        let path = entry.expect("schema/ is readable").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a schema is readable");
            schemas.push(Schema::parse(&stem, &text).expect("a schema is well-formed"));
        }
    }
    schemas.retain(|schema| schema.api_key.is_some());
    schemas.sort_by_key(|schema| schema.api_key);
    schemas
}

/// Pseudo-random numbers (splitmix64).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Returns true once in `times` calls, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Returns the body of a message in a version, as a peer that follows the schema would write it.
///
/// Tagged fields are present only if they differ from their default, so that encoding the value again gives the same
/// bytes. Strings and arrays are short but seldom empty, as in real traffic.
pub fn body(fields: &[Field], schema: &Schema, version: i16, random: &mut Random) -> Vec<u8> {
    body_in_style(Style::Ordinary, fields, schema, version, random)
}

/// Returns a body whose decoded size is as large as realistic: nullable fields are null, strings have three letters,
/// the outermost arrays have thirty elements and inner ones have one.
pub fn dense_body(fields: &[Field], schema: &Schema, version: i16, random: &mut Random) -> Vec<u8> {
    body_in_style(Style::Dense, fields, schema, version, random)
}

fn body_in_style(
    style: Style,
    fields: &[Field],
    schema: &Schema,
    version: i16,
    random: &mut Random,
) -> Vec<u8> {
    let flexible = schema.flexible_from.is_some_and(|from| version >= from);
    let mut frame = Frame { out: Vec::new(), flexible, version, style, depth: 0, random };
    frame.structure(fields, false);
    frame.out
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Ordinary,
    Dense,
}

struct Frame<'a> {
    out: Vec<u8>,
    flexible: bool,
    version: i16,
    style: Style,
    /// The number of arrays around the current field.
    depth: usize,
    random: &'a mut Random,
}

impl Frame<'_> {
    fn structure(&mut self, fields: &[Field], unlike_default: bool) {
        let has = |versions: Versions| versions.low <= self.version && self.version <= versions.high;
        let fields: Vec<&Field> = fields.iter().filter(|field| has(field.versions)).collect();
        for field in fields.iter().filter(|field| field.tag.is_none()) {
            self.field(field, unlike_default);
        }
        if !self.flexible {
            return;
        }
        let mut tagged: Vec<&Field> = fields.into_iter().filter(|field| field.tag.is_some()).collect();
        tagged.retain(|_| self.style == Style::Ordinary && !self.random.once_in(3));
        tagged.sort_by_key(|field| field.tag);
        self.uvarint(tagged.len());
        for field in tagged {
            let outer = std::mem::take(&mut self.out);
            self.field(field, true);
            let content = std::mem::replace(&mut self.out, outer);
            self.uvarint(field.tag.unwrap_or_default() as usize);
            self.uvarint(content.len());
            self.out.extend(content);
        }
    }

    fn field(&mut self, field: &Field, unlike_default: bool) {
        let may_be_null = field
            .nullable
            .is_some_and(|versions| versions.low <= self.version && self.version <= versions.high);
        let is_dense = self.style == Style::Dense;
        let is_null = may_be_null && !unlike_default && (is_dense || self.random.once_in(4));
        if field.is_array {
            let count = match self.depth {
                _ if unlike_default => 1,
                0 if is_dense => 30,
                _ if is_dense => 1,
                _ => [0, 1, 1, 2, 3][self.random.below(5)],
            };
            self.depth += 1;
            self.length((!is_null).then_some(count));
            for _ in 0..if is_null { 0 } else { count } {
                match &field.base {
                    Base::Struct(fields) => self.structure(fields, unlike_default),
                    Base::Primitive(primitive) => {
                        self.primitive(*primitive, false, unlike_default.then_some(field))
                    }
                }
            }
            return;
        }
        match &field.base {
            Base::Struct(fields) => {
                if may_be_null {
                    self.out.push(if is_null { 0xff } else { 1 });
                }
                if !is_null {
                    self.structure(fields, unlike_default);
                }
            }
            Base::Primitive(primitive) => {
                self.primitive(*primitive, is_null, unlike_default.then_some(field))
            }
        }
    }

    fn primitive(&mut self, primitive: Primitive, is_null: bool, unlike: Option<&Field>) {
        match primitive {
            Primitive::Bool => {
                let value = self.random.once_in(2);
                self.out.push(unlike.map_or(value, |field| field.default.as_deref() != Some("true")).into());
            }
            Primitive::Int8 => self.integer(1, unlike),
            Primitive::Int16 | Primitive::Uint16 => self.integer(2, unlike),
            Primitive::Int32 | Primitive::Uint32 => self.integer(4, unlike),
            Primitive::Int64 => self.integer(8, unlike),
            Primitive::Float64 => {
                let value = self.random.below(1_000_000) as f64 / 64.0;
                self.out.extend(value.to_be_bytes());
            }
            Primitive::Uuid => {
                let (high, low) = (self.random.next(), self.random.next());
                self.out.extend(high.to_be_bytes());
                self.out.extend(low.to_be_bytes());
            }
            Primitive::String => {
                let text = self.text();
                let length = (!is_null).then_some(text.len());
                if self.flexible {
                    self.length(length);
                } else {
                    self.out.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
                }
                if !is_null {
                    self.out.extend(text.bytes());
                }
            }
            Primitive::Bytes | Primitive::Records => {
                let bytes: Vec<u8> =
                    (0..1 + self.random.below(12)).map(|_| self.random.next() as u8).collect();
                self.length((!is_null).then_some(bytes.len()));
                if !is_null {
                    self.out.extend(bytes);
                }
            }
        }
    }

    /// Returns a number, sometimes an extreme one; no default is between 20 and 100.
    fn integer(&mut self, width: usize, unlike: Option<&Field>) {
        let value = match self.random.below(8) {
            _ if unlike.is_some() => 20 + self.random.below(80) as i64,
            0 => [0, -1, i64::MAX, i64::MIN][self.random.below(4)],
            1..=3 => self.random.next() as i64,
            _ => 1 + self.random.below(100) as i64,
        };
        self.out.extend(&value.to_be_bytes()[8 - width..]);
    }

    fn text(&mut self) -> String {
        if self.style == Style::Dense {
            return "abc".to_owned();
        }
        let words = [
            "orders",
            "broker-1.example",
            "__consumer_offsets",
            "größe",
            "日本",
            "a.b_c-d",
            "\u{1f980}",
            "key",
        ];
        let mut text = words[self.random.below(words.len())].to_owned();
        if self.random.once_in(16) {
            text = text.repeat(10);
        }
        text
    }

    fn length(&mut self, length: Option<usize>) {
        if self.flexible {
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
