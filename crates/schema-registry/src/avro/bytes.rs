//! Avro's numbers, lengths and texts in binary.

use crate::{Error, Result};

/// The number of array and map items without bytes of their own that a record may have.
const MAX_EMPTY_ITEMS: usize = 1 << 20;
/// The largest depth of values within values.
const MAX_DEPTH: usize = 128;

/// Appends a zigzag varint.
#[inline]
pub fn write_long(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends bytes after their number.
#[inline]
pub fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

/// The bytes of a record, from which the next value is read.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    items_left: usize,
    depth: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, items_left: bytes.len() + MAX_EMPTY_ITEMS, depth: 0 }
    }

    /// An error at the present position.
    pub fn error(&self, why: impl Into<String>) -> Error {
        Error::record(self.at, why)
    }

    /// Returns an error if bytes are left.
    pub fn end(&self) -> Result<()> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => {
                Err(self.error(format!("{left} bytes follow the value; was it written with another schema?")))
            }
        }
    }

    /// Enters a value within a value.
    pub fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(self.error(format!("values are nested more than {MAX_DEPTH} deep"))),
            false => Ok(()),
        }
    }

    /// Leaves it.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => {
                Err(self
                    .error(format!("{count} bytes were expected, {} are left", self.bytes.len() - self.at)))
            }
        }
    }

    #[inline]
    pub fn long(&mut self) -> Result<i64> {
        let mut value = 0u64;
        for shift in 0..10 {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(self.error("the bytes end within a number"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(self.error("a number has more than 64 bits"))
    }

    pub fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        value.try_into().map_err(|_| self.error(format!("{value} is not an int, which has 32 bits")))
    }

    pub fn boolean(&mut self) -> Result<bool> {
        match self.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.error(format!("the byte {other} is not a boolean"))),
        }
    }

    pub fn float(&mut self) -> Result<f32> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    pub fn double(&mut self) -> Result<f64> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    #[inline]
    pub fn length(&mut self) -> Result<usize> {
        let length = self.long()?;
        usize::try_from(length).map_err(|_| self.error(format!("the length {length} is not possible")))
    }

    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.error("a string is not UTF-8"))
    }

    /// Reads an index below `count`.
    pub fn index(&mut self, count: usize, what: &str) -> Result<usize> {
        let index = self.long()?;
        match usize::try_from(index) {
            Ok(index) if index < count => Ok(index),
            _ => Err(self.error(format!("there is no {what} {index}; the schema has {count}"))),
        }
    }

    /// Reads the number of items of the next block of an array or a map; 0 ends it.
    pub fn block(&mut self) -> Result<usize> {
        let mut count = self.long()?;
        if count < 0 {
            self.long()?;
            count = count.checked_neg().unwrap_or(i64::MAX);
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match self.items_left.checked_sub(count) {
            Some(left) => {
                self.items_left = left;
                Ok(count)
            }
            None => Err(self.error(format!("{count} items are more than the record's bytes can have"))),
        }
    }
}
