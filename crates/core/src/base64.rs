//! Base64, with padding for SCRAM and in the form for URLs, without padding, for tokens.

use base64::{
    Engine as _,
    engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE_NO_PAD},
};

/// The letters of the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`, with padding.
    Standard,
    /// `-` and `_`, without padding.
    Url,
}

impl Alphabet {
    const fn engine(self) -> &'static GeneralPurpose {
        match self {
            Self::Standard => &STANDARD,
            Self::Url => &URL_SAFE_NO_PAD,
        }
    }
}

/// Encodes bytes.
pub fn encode(alphabet: Alphabet, bytes: &[u8]) -> String {
    alphabet.engine().encode(bytes)
}

/// Decodes text; `None` if a letter, the length or the padding is wrong.
pub fn decode(alphabet: Alphabet, text: &str) -> Option<Vec<u8>> {
    alphabet.engine().decode(text).ok()
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
