//! The global ID of a schema.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// The ID of a schema that is the same in all registries: 16 bytes, written as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Guid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits: Vec<u8> =
            text.chars().filter(|c| *c != '-').map_while(|c| c.to_digit(16)).map(|it| it as u8).collect();
        let is_whole = digits.len() == 32 && text.len() == 36;
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |sum, digit| sum << 4 | digit);
        }
        match is_whole {
            true => Ok(Self(bytes)),
            false => Err(Error::config(format!("{text:?} is not a GUID of a schema"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_is_read_as_written() {
        let text = "89791762-2336-4186-9674-299b90a802e2";
        assert_eq!(text.parse::<Guid>().unwrap().to_string(), text);
        for broken in
            ["", "89791762", "89791762-2336-4186-9674-299b90a802ex", "8979176223364186967429b90a802e2"]
        {
            assert!(broken.parse::<Guid>().is_err(), "{broken}");
        }
    }
}
