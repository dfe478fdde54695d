//! An array of int32 that borrows from the received frame.

use std::fmt;

/// An array of big-endian 32-bit integers, read in place. Broker IDs and partitions use it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Int32Array<'a> {
    bytes: &'a [u8],
}

impl<'a> Int32Array<'a> {
    /// Creates an array over `bytes`, whose length must be a multiple of four; excess bytes are ignored.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The number of integers.
    pub const fn len(&self) -> usize {
        self.bytes.len() / 4
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integer at `index`.
    pub fn get(&self, index: usize) -> Option<i32> {
        self.iter().nth(index)
    }

    /// Whether one of the integers is `value`.
    pub fn contains(&self, value: i32) -> bool {
        self.iter().any(|each| each == value)
    }

    /// The integers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i32> + 'a {
        self.bytes.as_chunks::<4>().0.iter().map(|chunk| i32::from_be_bytes(*chunk))
    }

    /// The integers, copied.
    pub fn to_vec(&self) -> Vec<i32> {
        self.iter().collect()
    }
}

impl fmt::Debug for Int32Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq<[i32]> for Int32Array<'_> {
    fn eq(&self, other: &[i32]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_big_endian_integers_in_place() {
        let array = Int32Array::new(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!((array.len(), array.get(0), array.get(1), array.get(2)), (2, Some(1), Some(-1), None));
        assert!(array.contains(-1) && !array.contains(2));
        assert_eq!(array, [1, -1][..]);
        assert_eq!(format!("{array:?}"), "[1, -1]");
        assert!(Int32Array::default().is_empty());
    }
}
