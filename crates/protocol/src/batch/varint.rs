//! Zig-zag variable-length integers, as in records.

/// Returns the encoded size of `value` in bytes: between 1 and 10.
#[inline]
pub const fn size(value: i64) -> usize {
    let zigzag = zigzag(value);
    // Lengths and deltas are mostly small, and predicted branches cost less than counting bits.
    match zigzag {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => (64 - zigzag.leading_zeros() as usize).div_ceil(7),
    }
}

/// Writes `value` at the start of `out` and returns its encoded size. `out` must be long enough.
#[inline(always)]
pub fn put(out: &mut [u8], value: i64) -> usize {
    let zigzag = zigzag(value);
    if zigzag < 0x80 {
        out[0] = zigzag as u8;
        1
    } else if zigzag < 0x4000 {
        out[..2].copy_from_slice(&[zigzag as u8 | 0x80, (zigzag >> 7) as u8]);
        2
    } else {
        put_long(out, zigzag)
    }
}

fn put_long(out: &mut [u8], mut rest: u64) -> usize {
    let mut at = 0;
    while rest >= 0x80 {
        out[at] = rest as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    out[at] = rest as u8;
    at + 1
}

/// Takes an integer from the front of `bytes`; `None` if it is incomplete or too long.
// Always inlined: it is called five times per record, and a call costs as much as the decoding.
#[inline(always)]
pub fn take(bytes: &mut &[u8]) -> Option<i64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(unzigzag(u64::from(first)));
    }
    let (&second, rest) = rest.split_first()?;
    if second < 0x80 {
        *bytes = rest;
        return Some(unzigzag(u64::from(first & 0x7f) | u64::from(second) << 7));
    }
    take_long(bytes)
}

/// The next eight bytes, from which several short integers are taken: their bounds are checked once.
pub struct Ahead {
    word: u64,
    taken: usize,
}

impl Ahead {
    /// Looks at the first eight bytes; `None` if there are fewer.
    #[inline(always)]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Self { word: u64::from_le_bytes(*bytes), taken: 0 })
    }

    /// Takes an integer of one or two bytes; `None` if it is longer. The caller takes at most eight bytes in all.
    #[inline(always)]
    pub fn take(&mut self) -> Option<i64> {
        let word = self.word;
        if word & 0x80 == 0 {
            self.skip();
            return Some(unzigzag(word & 0x7f));
        }
        if word & 0x8000 != 0 {
            return None;
        }
        self.word >>= 16;
        self.taken += 2;
        Some(unzigzag(word & 0x7f | word >> 1 & 0x3f80))
    }

    /// Takes one byte.
    #[inline(always)]
    pub const fn skip(&mut self) {
        self.word >>= 8;
        self.taken += 1;
    }

    /// Returns the number of bytes taken.
    pub const fn taken(&self) -> usize {
        self.taken
    }
}

#[cold]
fn take_long(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(unzigzag(value));
        }
    }
    None
}

#[inline]
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_round_trips() {
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_sub(1), (1i64 << shift).wrapping_neg()] {
                let mut out = [0; 10];
                let written = put(&mut out, value);
                assert_eq!(written, size(value), "{value}");
                let mut rest = &out[..];
                assert_eq!(take(&mut rest), Some(value));
                assert_eq!(rest.len(), out.len() - written);
                assert_eq!(take(&mut &out[..written - 1]), None, "cut short");
            }
        }
        assert_eq!(take(&mut &[0xff; 11][..]), None, "no end");
    }

    #[test]
    fn short_integers_are_taken_from_a_word() {
        for value in [0, -1, 1, 63, -64, 64, -65, 8191, -8192] {
            let mut out = [0xff; 8];
            let written = put(&mut out, value);
            let mut ahead = Ahead::of(&out).unwrap();
            assert_eq!(ahead.take(), Some(value));
            assert_eq!(ahead.taken(), written);
        }
        assert!(Ahead::of(&[0; 7]).is_none(), "too few bytes");
        let mut out = [0; 8];
        put(&mut out, 8192);
        assert_eq!(Ahead::of(&out).unwrap().take(), None, "three bytes");
    }
}
