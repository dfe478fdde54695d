//! Which message of a Protobuf file a record is.

use crate::{Error, Result};

/// The largest depth of nested messages.
const MAX_DEPTH: i64 = 100;

/// The position of a message in its file: the index of the outermost message, then of each nested one.
///
/// On the wire a list of zigzag varints after their number; the first message of a file is a single 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageIndexes(pub Vec<i32>);

impl MessageIndexes {
    /// Appends the indexes.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.0 == [0] {
            return out.push(0);
        }
        write_varint(out, self.0.len() as i64);
        self.0.iter().for_each(|index| write_varint(out, i64::from(*index)));
    }

    /// Reads the indexes and returns what follows.
    ///
    /// # Errors
    ///
    /// The bytes end before, or a number is negative or too large.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let (count, mut rest) = read_varint(bytes)?;
        if count == 0 {
            return Ok((Self(vec![0]), rest));
        }
        if !(1..=MAX_DEPTH).contains(&count) {
            return Err(Error::record(0, format!("{count} indexes of a Protobuf message are not possible")));
        }
        let mut indexes = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (index, after) = read_varint(rest)?;
            rest = after;
            match i32::try_from(index) {
                Ok(index @ 0..) => indexes.push(index),
                _ => {
                    return Err(Error::record(
                        0,
                        format!("the index {index} of a Protobuf message is not possible"),
                    ));
                }
            }
        }
        Ok((Self(indexes), rest))
    }
}

fn write_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn read_varint(bytes: &[u8]) -> Result<(i64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(((value >> 1) as i64 ^ -((value & 1) as i64), &bytes[at + 1..]));
        }
    }
    let why = if bytes.len() < 10 { "are truncated" } else { "have a number of more than 64 bits" };
    Err(Error::record(bytes.len().min(10), format!("the indexes of the Protobuf message {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_message_is_a_single_zero() {
        let mut bytes = Vec::new();
        MessageIndexes(vec![0]).write(&mut bytes);
        assert_eq!(bytes, [0]);
        assert_eq!(MessageIndexes::read(&[0, 7]).unwrap(), (MessageIndexes(vec![0]), &[7][..]));
        assert_eq!(MessageIndexes::read(&[2, 0, 7]).unwrap(), (MessageIndexes(vec![0]), &[7][..]));
    }

    #[test]
    fn indexes_are_zigzag_varints() {
        let mut bytes = Vec::new();
        MessageIndexes(vec![1, 0, 200]).write(&mut bytes);
        assert_eq!(bytes, [6, 2, 0, 0x90, 3]);
        assert_eq!(MessageIndexes::read(&bytes).unwrap(), (MessageIndexes(vec![1, 0, 200]), &[][..]));
    }

    #[test]
    fn truncated_or_absurd_indexes_are_refused() {
        for (bytes, part) in [
            (&[][..], "truncated"),
            (&[0x80], "truncated"),
            (&[4, 2], "truncated"),
            (&[1], "not possible"),
            (&[2, 1], "index -1"),
            (&[0xff; 12], "more than 64 bits"),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f, 0], "not possible"),
        ] {
            let error = MessageIndexes::read(bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{bytes:?}: {error}");
        }
    }
}
