//! A batch's checksum, CRC-32C over everything behind it, in two parts: the records, which can be summed while the batch
//! grows and its bytes are still in the writer's cache, and the few bytes of the header before them, which are known last.

use crc_fast::{CrcAlgorithm, Digest};

/// A checksum that bytes are added to. Four bytes instead of the hundreds of the library's own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    state: u32,
}

impl Checksum {
    /// The checksum of nothing.
    pub(super) const fn new() -> Self {
        Self { state: !0 }
    }

    /// Adds bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(self.state));
        digest.update(bytes);
        self.state = digest.get_state() as u32;
    }

    /// The checksum of all bytes so far.
    pub(super) const fn value(self) -> u32 {
        !self.state
    }
}

/// The checksum of two pieces behind each other, from the checksum of each and the length of the second.
pub(super) const fn concatenated(first: u32, second: u32, second_len: usize) -> u32 {
    // Each byte that follows multiplies what stood before by x^8: by squaring, for a thousand as quick as for ten.
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

/// The product of two polynomials over two elements, modulo the one of CRC-32C. The highest bit is the constant.
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
/// x to the eighth.
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
    fn it_is_crc_32c_in_one_piece_or_in_many() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283, "the check value of the catalogue");
        let mut pieces = Checksum::new();
        b"123456789".chunks(2).for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.value(), 0xe306_9283);
    }

    #[test]
    fn two_checksums_make_the_checksum_of_both() {
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
