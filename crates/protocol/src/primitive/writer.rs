//! Appends Kafka's primitive types to a buffer.

use super::{EncodeError, EncodeErrorKind};
use crate::{error_code::ErrorCode, message::WriteTo, uuid::Uuid};

type Result = std::result::Result<(), EncodeError>;

/// Appends to a buffer; the counterpart of [`Reader`](super::Reader).
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    flexible: bool,
    field: &'static str,
}

/// A position in the buffer to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'a> Writer<'a> {
    /// Creates a writer at the end of `out`.
    pub const fn new(out: &'a mut Vec<u8>, flexible: bool) -> Self {
        Self { out, flexible, field: "" }
    }

    /// True if lengths are compact and structs end with tagged fields.
    pub const fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Returns the current length of the buffer.
    pub const fn position(&self) -> usize {
        self.out.len()
    }

    /// Names the field that is written next, for the text of an error.
    pub const fn at(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Returns an error in the current field.
    pub const fn error(&self, kind: EncodeErrorKind) -> EncodeError {
        EncodeError { kind, field: self.field }
    }

    /// Fails if the current field, which `version` does not have, is set.
    pub(crate) const fn not_in_version(&self, is_set: bool, version: i16) -> Result {
        if is_set { Err(self.error(EncodeErrorKind::NotInVersion(version))) } else { Ok(()) }
    }

    /// Appends the bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// An int8.
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// An int16.
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// A uint16.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// An int32.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// A uint32.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// An int64.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// A float64.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        self.out.push(value.into());
    }

    /// A uuid.
    pub fn uuid(&mut self, value: Uuid) {
        self.raw(&value.0);
    }

    /// An error code.
    pub fn error_code(&mut self, value: ErrorCode) {
        self.i16(value.0);
    }

    /// An unsigned variable-length integer of 32 bits.
    pub fn uvarint(&mut self, value: u32) {
        self.variable(value.into());
    }

    /// A zigzag variable-length integer of 32 bits.
    pub fn varint(&mut self, value: i32) {
        self.uvarint(((value << 1) ^ (value >> 31)) as u32);
    }

    /// A zigzag variable-length integer of 64 bits.
    pub fn varlong(&mut self, value: i64) {
        self.variable(((value << 1) ^ (value >> 63)) as u64);
    }

    fn variable(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// A string.
    pub fn string(&mut self, value: &str) -> Result {
        self.nullable_string(Some(value))
    }

    /// A string, or null.
    pub fn nullable_string(&mut self, value: Option<&str>) -> Result {
        let length = value.map(str::len);
        if length > Some(i16::MAX as usize) {
            return Err(self.error(EncodeErrorKind::TooLong(length.unwrap_or_default())));
        }
        if self.flexible {
            self.length(length)?;
        } else {
            self.i16(length.map_or(-1, |length| length as i16));
        }
        self.raw(value.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// A string that may be null in other versions, not in this one.
    pub(crate) fn non_null_string(&mut self, value: Option<&str>) -> Result {
        match value {
            Some(value) => self.string(value),
            None => Err(self.error(EncodeErrorKind::UnexpectedNull)),
        }
    }

    /// A byte string, preceded by its length.
    pub fn bytes(&mut self, value: &[u8]) -> Result {
        self.nullable_bytes(Some(value))
    }

    /// A byte string or records, or null.
    pub fn nullable_bytes(&mut self, value: Option<&[u8]>) -> Result {
        self.length(value.map(<[u8]>::len))?;
        self.raw(value.unwrap_or_default());
        Ok(())
    }

    /// The length of a byte string, of records, or of an array.
    pub fn length(&mut self, length: Option<usize>) -> Result {
        let Some(length) = length else {
            if self.flexible {
                self.uvarint(0)
            } else {
                self.i32(-1)
            }
            return Ok(());
        };
        match i32::try_from(length) {
            Ok(length) if self.flexible => self.uvarint(length as u32 + 1),
            Ok(length) => self.i32(length),
            Err(_) => return Err(self.error(EncodeErrorKind::TooLong(length))),
        }
        Ok(())
    }

    // One small loop per element type, because there are hundreds of them.

    /// An array.
    pub(crate) fn array<T: WriteTo>(&mut self, version: i16, value: &[T]) -> Result {
        self.length(Some(value.len()))?;
        for element in value {
            element.write_to(self, version)?;
        }
        Ok(())
    }

    /// An array, or null.
    pub(crate) fn nullable_array<T: WriteTo>(&mut self, version: i16, value: Option<&[T]>) -> Result {
        match value {
            Some(value) => self.array(version, value),
            None => self.length(None),
        }
    }

    /// An array that may be null in other versions, not in this one.
    pub(crate) fn non_null_array<T: WriteTo>(&mut self, version: i16, value: Option<&[T]>) -> Result {
        match value {
            Some(value) => self.array(version, value),
            None => Err(self.error(EncodeErrorKind::UnexpectedNull)),
        }
    }

    /// A struct that may be null, as indicated by the byte before it.
    pub(crate) fn nullable_struct<T: WriteTo>(&mut self, version: i16, value: Option<&T>) -> Result {
        match value {
            Some(value) => {
                self.i8(1);
                value.write_to(self, version)
            }
            None => {
                self.i8(-1);
                Ok(())
            }
        }
    }

    /// The end of a struct without tagged fields.
    pub fn no_tagged_fields(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }

    /// Begins the tagged fields of a struct with a count of zero. No message has more than 127, so the count is one
    /// byte.
    pub(crate) fn begin_tagged_fields(&mut self) -> Mark {
        self.out.push(0);
        Mark(self.out.len() - 1)
    }

    /// Begins a tagged field; the bytes written before [`Self::end_tagged_field`] are its content.
    pub(crate) fn begin_tagged_field(&mut self, fields: Mark, tag: u32) -> Mark {
        self.out[fields.0] += 1;
        self.uvarint(tag);
        Mark(self.out.len())
    }

    /// Ends a tagged field: inserts the size before its content.
    pub(crate) fn end_tagged_field(&mut self, start: Mark) -> Result {
        let size = self.out.len() - start.0;
        let size = u32::try_from(size).map_err(|_| self.error(EncodeErrorKind::TooLong(size)))?;
        let end = self.out.len();
        self.uvarint(size);
        let width = self.out.len() - end;
        self.out[start.0..].rotate_right(width);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_field_has_its_size_before_its_content() {
        let mut out = vec![9];
        let mut writer = Writer::new(&mut out, true);
        let fields = writer.begin_tagged_fields();
        let field = writer.begin_tagged_field(fields, 3);
        writer.raw(&[0xab; 200]);
        writer.end_tagged_field(field).unwrap();
        assert_eq!(out[..6], [9, 1, 3, 0xc8, 1, 0xab]);
        assert_eq!(out.len(), 5 + 200);
    }

    #[test]
    fn string_too_long_for_its_length_is_an_error_with_the_field_name() {
        let mut out = Vec::new();
        let long = "x".repeat(40_000);
        let error =
            Writer::new(&mut out, true).at("ProduceRequest.TopicData.name").string(&long).unwrap_err();
        assert_eq!(error.to_string(), "ProduceRequest.TopicData.name is too long: 40000");
    }
}
