//! Reads DER, the encoding of certificates, keys and key stores.
//!
//! Every length is checked against the bytes that are left, so that nothing is allocated by an announced length, and the
//! readers nest as deep as the callers' code does.

/// The tags of the types that occur.
pub mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const OID: u8 = 0x06;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    pub const CONTEXT_0: u8 = 0xa0;
    pub const CONTEXT_3: u8 = 0xa3;
}

/// A sequence of values that is read from front to back.
#[derive(Clone, Copy, Debug)]
pub struct Der<'a> {
    rest: &'a [u8],
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// The value with its tag and length.
    pub whole: &'a [u8],
}

/// The reason why bytes are not the expected DER.
pub type DerError = &'static str;

impl<'a> Der<'a> {
    /// Reads from these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns true if no value is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that are left.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the tag of the next value.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads the next value.
    pub fn any(&mut self) -> Result<Value<'a>, DerError> {
        const CUT: DerError = "the DER data ends too early";
        let [tag, first, behind @ ..] = self.rest else { return Err(CUT) };
        let (length, header) = match *first {
            short @ 0..0x80 => (usize::from(short), 2),
            0x80 => return Err("the data is BER with indefinite lengths and not DER"),
            long => {
                let count = usize::from(long & 0x7f);
                let digits = behind.get(..count).ok_or(CUT)?;
                if count > 4 {
                    return Err("a DER length has more than four bytes");
                }
                (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), 2 + count)
            }
        };
        let end = header.checked_add(length).ok_or(CUT)?;
        let whole = self.rest.get(..end).ok_or(CUT)?;
        self.rest = &self.rest[end..];
        Ok(Value { tag: *tag, content: &whole[header..], whole })
    }

    /// Reads the next value's content, which must have this tag.
    pub fn expect(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        let value = self.any()?;
        if value.tag == tag { Ok(value.content) } else { Err("the DER data has another structure") }
    }

    /// Reads the next value's content as a sequence of values.
    pub fn inside(&mut self, tag: u8) -> Result<Self, DerError> {
        self.expect(tag).map(Self::new)
    }

    /// Reads the next value's content if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, DerError> {
        if self.peek() == Some(tag) { self.expect(tag).map(Some) } else { Ok(None) }
    }

    /// Reads a non-negative integer of at most four bytes.
    pub fn small(&mut self) -> Result<u32, DerError> {
        let digits = self.expect(tag::INTEGER)?;
        let digits = if let [0, digits @ ..] = digits { digits } else { digits };
        if digits.len() > 4 {
            return Err("a number in the DER data is too large");
        }
        Ok(digits.iter().fold(0, |sum, digit| sum << 8 | u32::from(*digit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_the_data_are_errors() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 5, 1],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x89],
            &[4, 0x80],
        ] {
            assert!(Der::new(bytes).any().is_err(), "{bytes:?}");
        }
        let mut der = Der::new(&[2, 1, 7, 2, 2, 1, 0]);
        assert_eq!((der.small(), der.small(), der.is_empty()), (Ok(7), Ok(256), true));
    }
}
