//! The bytes of an input, taken one after the other. Behind the end there are zeros.

/// The rest of an input.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Begins with the first byte.
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Returns true if nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes a byte for a choice below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    /// Takes two bytes for a choice below `count`.
    pub fn below_many(&mut self, count: usize) -> usize {
        usize::from(u16::from_be_bytes([self.byte(), self.byte()])) % count.max(1)
    }

    /// Takes up to `count` bytes.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    /// Takes bytes behind their length in one byte.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte());
        self.take(length)
    }

    /// Takes a number of eight bytes.
    pub fn number(&mut self) -> i64 {
        let mut value = [0; 8];
        let taken = self.take(8);
        value[..taken.len()].copy_from_slice(taken);
        i64::from_be_bytes(value)
    }
}
