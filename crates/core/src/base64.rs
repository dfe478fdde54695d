//! Base64, with padding for SCRAM and in the form for URLs, without padding, for tokens.

/// The letters of the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`, with padding.
    Standard,
    /// `-` and `_`, without padding.
    Url,
}

impl Alphabet {
    const fn letters(self) -> &'static [u8; 64] {
        match self {
            Self::Standard => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            Self::Url => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        }
    }
}

/// Encodes bytes.
pub fn encode(alphabet: Alphabet, bytes: &[u8]) -> String {
    let letters = alphabet.letters();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(letters[(bits >> (18 - 6 * index) & 63) as usize] as char);
            } else if alphabet == Alphabet::Standard {
                text.push('=');
            }
        }
    }
    text
}

/// Decodes text; `None` if a letter, the length or the padding is wrong.
pub fn decode(alphabet: Alphabet, text: &str) -> Option<Vec<u8>> {
    let padded = text.len().is_multiple_of(4);
    let digits = match alphabet {
        Alphabet::Standard if !padded => return None,
        Alphabet::Standard => text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text),
        Alphabet::Url => text,
    };
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.as_bytes().chunks(4) {
        let mut bits = 0;
        for (index, letter) in chunk.iter().enumerate() {
            let value = alphabet.letters().iter().position(|known| known == letter)?;
            bits |= (value as u32) << (18 - 6 * index);
        }
        let count = chunk.len() - 1;
        // The bits behind the last byte must be zero, so that each value has one spelling.
        if bits.to_be_bytes()[1 + count..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_correspond() {
        for (bytes, standard, url) in [
            (&b""[..], "", ""),
            (b"f", "Zg==", "Zg"),
            (b"fo", "Zm8=", "Zm8"),
            (b"foo", "Zm9v", "Zm9v"),
            (b"\xfb\xff\xfe", "+//+", "-__-"),
        ] {
            assert_eq!(encode(Alphabet::Standard, bytes), standard);
            assert_eq!(encode(Alphabet::Url, bytes), url);
            assert_eq!(decode(Alphabet::Standard, standard).as_deref(), Some(bytes));
            assert_eq!(decode(Alphabet::Url, url).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["Z", "Zg", "Zg=", "Zh==", "Z===", "Zg==Zg==", "Zm9v\n", "Zm 9", "é==="] {
            assert_eq!(decode(Alphabet::Standard, text), None, "{text:?}");
        }
        assert_eq!(decode(Alphabet::Url, "Zg=="), None);
    }
}
