//! A bounds-checked cursor over a received frame.

use super::{DecodeError, DecodeErrorKind, Int32Array};
use crate::{error_code::ErrorCode, message::ReadFrom, uuid::Uuid};

/// The limit of the memory that a decoded message may allocate, in multiples of the bytes received.
///
/// A length on the wire is only a claim. Arrays are allocated before their elements are read, so each is first charged
/// against this limit.
pub const ALLOCATION_FACTOR: usize = 16;

type Result<T> = std::result::Result<T, DecodeError>;

/// A cursor that decodes Kafka's primitive types.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    allocation_left: usize,
    flexible: bool,
    field: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`, not flexible.
    pub const fn new(bytes: &'a [u8]) -> Self {
        let allocation_left = bytes.len().saturating_mul(ALLOCATION_FACTOR);
        Self { bytes, position: 0, allocation_left, flexible: false, field: "" }
    }

    /// Bytes read so far.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// True if lengths are compact and structs end with tagged fields.
    pub const fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Sets whether the following fields are flexible. Messages and headers do this themselves.
    pub const fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// Names the field that is read next, for the text of an error.
    pub const fn at(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Returns an error at the current position and field.
    pub const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { kind, position: self.position, field: self.field }
    }

    /// Fails if unread bytes remain.
    pub fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            count => Err(self.error(DecodeErrorKind::TrailingBytes(count))),
        }
    }

    /// Takes the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes[self.position..].get(..count) {
            Some(bytes) => {
                self.position += count;
                Ok(bytes)
            }
            None => Err(self.unexpected_end(count)),
        }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes[self.position..].first_chunk::<N>() {
            Some(bytes) => {
                self.position += N;
                Ok(*bytes)
            }
            None => Err(self.unexpected_end(N)),
        }
    }

    #[cold]
    fn unexpected_end(&self, needed: usize) -> DecodeError {
        self.error(DecodeErrorKind::UnexpectedEnd { needed, remaining: self.remaining() })
    }

    /// An int8.
    pub fn i8(&mut self) -> Result<i8> {
        self.fixed().map(i8::from_be_bytes)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        self.fixed().map(u8::from_be_bytes)
    }

    /// An int16.
    pub fn i16(&mut self) -> Result<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    /// A uint16.
    pub fn u16(&mut self) -> Result<u16> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// An int32.
    pub fn i32(&mut self) -> Result<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// A uint32.
    pub fn u32(&mut self) -> Result<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// An int64.
    pub fn i64(&mut self) -> Result<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// A float64.
    pub fn f64(&mut self) -> Result<f64> {
        self.fixed().map(f64::from_be_bytes)
    }

    /// A boolean: any byte but zero is true, as in Kafka.
    pub fn bool(&mut self) -> Result<bool> {
        self.u8().map(|byte| byte != 0)
    }

    /// A uuid.
    pub fn uuid(&mut self) -> Result<Uuid> {
        self.fixed().map(Uuid)
    }

    /// An error code; unknown codes are preserved.
    pub fn error_code(&mut self) -> Result<ErrorCode> {
        self.i16().map(ErrorCode)
    }

    /// An unsigned variable-length integer of 32 bits.
    pub fn uvarint(&mut self) -> Result<u32> {
        match self.variable(5)? {
            value if value <= u64::from(u32::MAX) => Ok(value as u32),
            _ => Err(self.error(DecodeErrorKind::InvalidVarint)),
        }
    }

    /// A zigzag variable-length integer of 32 bits.
    pub fn varint(&mut self) -> Result<i32> {
        self.uvarint().map(|value| (value >> 1) as i32 ^ -((value & 1) as i32))
    }

    /// A zigzag variable-length integer of 64 bits.
    pub fn varlong(&mut self) -> Result<i64> {
        self.variable(10).map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn variable(&mut self, most: usize) -> Result<u64> {
        let mut value = 0_u64;
        for (index, byte) in self.bytes[self.position..].iter().take(most).enumerate() {
            // The tenth byte has only one significant bit.
            if index == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.position += index + 1;
                return Ok(value);
            }
        }
        if self.remaining() < most {
            Err(self.unexpected_end(self.remaining() + 1))
        } else {
            Err(self.error(DecodeErrorKind::InvalidVarint))
        }
    }

    /// A string in place.
    pub fn str(&mut self) -> Result<&'a str> {
        self.nullable_str()?.ok_or_else(|| self.error(DecodeErrorKind::UnexpectedNull))
    }

    /// A string in place, or null.
    pub fn nullable_str(&mut self) -> Result<Option<&'a str>> {
        let length = if self.flexible { self.compact_length()? } else { self.short_length()? };
        let Some(length) = length else { return Ok(None) };
        if length > i16::MAX as usize {
            return Err(self.error(DecodeErrorKind::InvalidLength(length as i64)));
        }
        let start = self.position;
        match std::str::from_utf8(self.bytes(length)?) {
            Ok(string) => Ok(Some(string)),
            Err(error) => {
                self.position = start + error.valid_up_to();
                Err(self.error(DecodeErrorKind::InvalidUtf8))
            }
        }
    }

    /// A string.
    pub fn string(&mut self) -> Result<String> {
        let string = self.str()?;
        self.charge(string.len())?;
        Ok(string.to_owned())
    }

    /// A string, or null.
    pub fn nullable_string(&mut self) -> Result<Option<String>> {
        let string = self.nullable_str()?;
        self.charge(string.map_or(0, str::len))?;
        Ok(string.map(str::to_owned))
    }

    /// A byte string with its length before it, in place.
    pub fn byte_slice(&mut self) -> Result<&'a [u8]> {
        self.nullable_byte_slice()?.ok_or_else(|| self.error(DecodeErrorKind::UnexpectedNull))
    }

    /// A byte string or records in place, or null.
    pub fn nullable_byte_slice(&mut self) -> Result<Option<&'a [u8]>> {
        match self.length()? {
            Some(length) => self.bytes(length).map(Some),
            None => Ok(None),
        }
    }

    /// A byte string with its length before it.
    pub fn byte_vec(&mut self) -> Result<Vec<u8>> {
        let bytes = self.byte_slice()?;
        self.charge(bytes.len())?;
        Ok(bytes.to_vec())
    }

    /// A byte string or records, or null.
    pub fn nullable_byte_vec(&mut self) -> Result<Option<Vec<u8>>> {
        let bytes = self.nullable_byte_slice()?;
        self.charge(bytes.map_or(0, <[u8]>::len))?;
        Ok(bytes.map(<[u8]>::to_vec))
    }

    /// An array of int32 in place.
    pub fn int32_array(&mut self) -> Result<Int32Array<'a>> {
        let count = self.non_null_array_length()?;
        self.bytes(count.saturating_mul(4)).map(Int32Array::new)
    }

    /// The number of elements of an array, or null. Never more than the number of remaining bytes.
    pub fn array_length(&mut self) -> Result<Option<usize>> {
        let length = self.length()?;
        match length {
            // Every element of every array takes at least one byte.
            Some(count) if count > self.remaining() => Err(self.unexpected_end(count)),
            _ => Ok(length),
        }
    }

    /// The number of elements of an array that may not be null.
    pub fn non_null_array_length(&mut self) -> Result<usize> {
        match self.array_length()? {
            Some(count) => Ok(count),
            None => Err(self.error(DecodeErrorKind::UnexpectedNull)),
        }
    }

    // One small loop per element type, because there are hundreds of them.

    /// An array.
    pub(crate) fn array<T: ReadFrom<'a>>(&mut self, version: i16) -> Result<Vec<T>> {
        let count = self.non_null_array_length()?;
        self.elements(version, count)
    }

    /// An array, or null.
    pub(crate) fn nullable_array<T: ReadFrom<'a>>(&mut self, version: i16) -> Result<Option<Vec<T>>> {
        match self.array_length()? {
            Some(count) => self.elements(version, count).map(Some),
            None => Ok(None),
        }
    }

    fn elements<T: ReadFrom<'a>>(&mut self, version: i16, count: usize) -> Result<Vec<T>> {
        self.charge(count.saturating_mul(size_of::<T>()))?;
        let mut array = Vec::with_capacity(count);
        for _ in 0..count {
            array.push(T::read_from(self, version)?);
        }
        Ok(array)
    }

    /// A struct that may be null, as indicated by the byte before it.
    pub(crate) fn nullable_struct<T: ReadFrom<'a>>(&mut self, version: i16) -> Result<Option<T>> {
        if self.i8()? < 0 { Ok(None) } else { T::read_from(self, version).map(Some) }
    }

    /// Skips the tagged fields at the end of a struct that defines none; does nothing if the message is not flexible.
    pub fn skip_tagged_fields(&mut self) -> Result<()> {
        for _ in 0..self.tagged_field_count()? {
            let (_, end) = self.tagged_field()?;
            self.position = end;
        }
        Ok(())
    }

    /// The number of tagged fields at the end of a struct.
    pub(crate) fn tagged_field_count(&mut self) -> Result<u32> {
        if self.flexible { self.at("tagged fields").uvarint() } else { Ok(0) }
    }

    /// The tag of a tagged field, and the position where its content ends.
    pub(crate) fn tagged_field(&mut self) -> Result<(u32, usize)> {
        let tag = self.at("tagged fields").uvarint()?;
        let size = self.uvarint()? as usize;
        if size > self.remaining() {
            return Err(self.unexpected_end(size));
        }
        Ok((tag, self.position + size))
    }

    /// Goes to the end of an unknown tagged field.
    pub(crate) const fn skip_to(&mut self, end: usize) {
        self.position = end;
    }

    /// Checks that a tagged field's content ended where its size said.
    pub(crate) fn end_tagged_field(&self, tag: u32, end: usize) -> Result<()> {
        if self.position == end {
            Ok(())
        } else {
            Err(self.error(DecodeErrorKind::InvalidTaggedField { tag }))
        }
    }

    /// The length of a byte string or an array, or null.
    fn length(&mut self) -> Result<Option<usize>> {
        if self.flexible {
            return self.compact_length();
        }
        match self.i32()? {
            -1 => Ok(None),
            length if length < 0 => Err(self.error(DecodeErrorKind::InvalidLength(length.into()))),
            length => Ok(Some(length as usize)),
        }
    }

    fn short_length(&mut self) -> Result<Option<usize>> {
        match self.i16()? {
            -1 => Ok(None),
            length if length < 0 => Err(self.error(DecodeErrorKind::InvalidLength(length.into()))),
            length => Ok(Some(length as usize)),
        }
    }

    fn compact_length(&mut self) -> Result<Option<usize>> {
        self.uvarint().map(|length| (length as usize).checked_sub(1))
    }

    /// Subtracts `bytes` from the allocation limit.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        match self.allocation_left.checked_sub(bytes) {
            Some(left) => {
                self.allocation_left = left;
                Ok(())
            }
            None => Err(self.error(DecodeErrorKind::AllocationLimit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitive::Writer;

    #[test]
    fn variable_length_integers_round_trip_at_their_edges() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, false);
        let ints = [0, 1, -1, 63, 64, -64, -65, i32::MAX, i32::MIN];
        let longs = [0, -1, i64::from(i32::MAX) + 1, i64::MAX, i64::MIN];
        for value in ints {
            writer.varint(value);
            writer.uvarint(value as u32);
        }
        for value in longs {
            writer.varlong(value);
        }
        let mut reader = Reader::new(&out);
        for value in ints {
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.uvarint(), Ok(value as u32));
        }
        for value in longs {
            assert_eq!(reader.varlong(), Ok(value));
        }
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn variable_length_integers_that_are_too_large_are_refused() {
        let kind = |bytes: &[u8]| Reader::new(bytes).uvarint().map_err(|error| error.kind);
        assert_eq!(kind(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        assert_eq!(kind(&[0xff, 0xff, 0xff, 0xff, 0x1f]), Err(DecodeErrorKind::InvalidVarint));
        assert_eq!(kind(&[0xff, 0xff, 0xff, 0xff, 0xff, 0]), Err(DecodeErrorKind::InvalidVarint));
        assert_eq!(kind(&[0xff, 0xff]), Err(DecodeErrorKind::UnexpectedEnd { needed: 3, remaining: 2 }));
        let long = Reader::new(&[0xff; 11]).varlong().map_err(|error| error.kind);
        assert_eq!(long, Err(DecodeErrorKind::InvalidVarint));
    }

    #[test]
    fn decode_error_names_position_and_field() {
        let mut reader = Reader::new(&[0, 3, b'a', 0xff, b'c']);
        let error = reader.at("MetadataResponse.Topic.name").string().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a string that is not UTF-8, at byte 3, in MetadataResponse.Topic.name"
        );
    }

    #[test]
    fn length_of_two_gibibytes_is_refused_without_allocation() {
        let mut reader = Reader::new(&[0x7f, 0xff, 0xff, 0xff, 0]);
        let error = reader.array::<String>(0).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::UnexpectedEnd { needed: 0x7fff_ffff, remaining: 1 });
    }

    #[test]
    fn array_beyond_the_allocation_limit_is_refused() {
        let mut bytes = vec![0; 4 + 100];
        bytes[3] = 100;
        let error = Reader::new(&bytes).array::<String>(0).unwrap_err();
        assert_eq!((error.kind, error.position), (DecodeErrorKind::AllocationLimit, 4));
    }

    #[test]
    fn unknown_tagged_fields_are_skipped() {
        let mut reader = Reader::new(&[2, 0, 1, 0xaa, 7, 0, 9]);
        reader.set_flexible(true);
        assert_eq!(reader.skip_tagged_fields(), Ok(()));
        assert_eq!(reader.u8(), Ok(9));
    }
}
