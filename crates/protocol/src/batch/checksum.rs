//! A batch's checksum: CRC-32C over everything behind it, in two parts. The records can be summed while the batch grows
//! and its bytes are still in the writer's cache; the few header bytes before them are known last.

/// An incremental checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    value: u32,
}

impl Checksum {
    /// Returns the checksum of no bytes.
    pub(super) const fn new() -> Self {
        Self { value: 0 }
    }

    /// Adds bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.value = crc32c::crc32c_append(self.value, bytes);
    }

    /// Returns the checksum of all bytes so far.
    pub(super) const fn value(self) -> u32 {
        self.value
    }
}

/// Returns the checksum of two adjacent byte ranges, from the checksum of each and the length of the second.
pub(super) const fn concatenated(first: u32, second: u32, second_len: usize) -> u32 {
    // Each following byte multiplies the earlier remainder by x^8. Squaring makes a thousand bytes as cheap as ten.
    let mut shifted = first;
    let mut power = X_8;
    let mut left = second_len;
    while left > 0 {
        if left & 1 == 1 {
            shifted = product(shifted, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    shifted ^ second
}

/// Returns the product of two polynomials over GF(2), modulo the CRC-32C polynomial. The highest bit is the constant.
const fn product(a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            sum ^= b;
        }
        b = (b >> 1) ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
        bit >>= 1;
    }
    sum
}

const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial x^8.
const X_8: u32 = 1 << 23;

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(bytes: &[u8]) -> u32 {
        let mut checksum = Checksum::new();
        checksum.update(bytes);
        checksum.value()
    }

    #[test]
    fn checksum_is_crc_32c_in_one_or_many_parts() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283, "the check value of the catalogue");
        let mut pieces = Checksum::new();
        b"123456789".chunks(2).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.value(), 0xe306_9283);
    }

    #[test]
    fn joined_checksums_are_the_checksum_of_both() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
        for at in [0, 1, 40, 4096, 99_999, 100_000] {
            let (first, second) = bytes.split_at(at);
            assert_eq!(
                concatenated(checksum(first), checksum(second), second.len()),
                checksum(&bytes),
                "{at}"
            );
        }
    }
}
