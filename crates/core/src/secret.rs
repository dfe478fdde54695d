//! Passwords, keys and tokens: erased from memory after use, and never shown.

use std::fmt;

use zeroize::Zeroizing;

/// Bytes that no log or error shows, and that are overwritten when they are dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes over the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Copies these parts into one secret, without leaving copies of it behind.
    pub fn concat(parts: &[&[u8]]) -> Self {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        Self::new(bytes)
    }

    /// Returns the bytes, to use them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

/// Shows nothing, not even the length.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_a_secret_shows_nothing() {
        assert_eq!(format!("{:?}", Some(Secret::from("hunter2"))), "Some(Secret)");
        assert_eq!(Secret::concat(&[b"a", b"", b"bc"]), Secret::from("abc"));
    }
}
