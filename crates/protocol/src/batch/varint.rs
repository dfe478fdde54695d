//! Zig-zag integers of variable length, as records use them.

/// The bytes of `value`: between 1 and 10.
#[inline]
pub const fn size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Writes `value` at the start of `out` and answers how many bytes that took. `out` is long enough.
#[inline]
pub fn put(out: &mut [u8], value: i64) -> usize {
    let mut rest = zigzag(value);
    if rest < 0x80 {
        out[0] = rest as u8;
        return 1;
    }
    let mut at = 0;
    while rest >= 0x80 {
        out[at] = rest as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    out[at] = rest as u8;
    at + 1
}

/// Reads an integer at `*position` and moves it on; `None` if it does not end or is too long.
#[inline]
pub fn read(bytes: &[u8], position: &mut usize) -> Option<i64> {
    let first = *bytes.get(*position)?;
    *position += 1;
    if first < 0x80 {
        return Some(unzigzag(u64::from(first)));
    }
    let mut value = u64::from(first & 0x7f);
    let mut shift = 7;
    while shift < 64 {
        let byte = *bytes.get(*position)?;
        *position += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(unzigzag(value));
        }
        shift += 7;
    }
    None
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

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
                let mut position = 0;
                assert_eq!(read(&out[..written], &mut position), Some(value));
                assert_eq!(position, written);
                assert_eq!(read(&out[..written - 1], &mut 0), None, "cut short");
            }
        }
        assert_eq!(read(&[0xff; 11], &mut 0), None, "no end");
    }
}
