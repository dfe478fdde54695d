//! Bytes and text of others, in a form that errors and logs may contain.

use std::fmt;

/// Shows bytes as text: at most [`Shown::LIMIT`] bytes, escaped where they are not printable.
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl Shown<'_> {
    /// The number of bytes that are shown.
    const LIMIT: usize = 64;
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..Self::LIMIT).unwrap_or(self.0);
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() { write!(f, "... ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

/// Returns text of a peer in a form that errors and logs may contain: without control characters, at most 500 characters.
pub fn quoted(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_text_up_to_a_limit() {
        assert_eq!(format!("{:?}", Shown(b"a \"key\"\xff")), r#""a \"key\"\xff""#);
        let long = format!("{:?}", Shown(&[b'x'; 1000]));
        assert!(long.len() < 90 && long.ends_with("... (1000 bytes)"), "{long}");
    }
}
