//! Percent-encoding of paths and queries.

#[cfg(feature = "client")]
use std::fmt::Write as _;

/// Encodes a part of a path or a value of a query.
#[cfg(feature = "client")]
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes it. What is not encoded stays.
pub fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let digit = |byte: Option<u8>| byte.and_then(|it| char::from(it).to_digit(16));
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                bytes = ahead;
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_as_encoded() {
        for text in ["", "a/b c:.ä%41", "100%", "%zz"] {
            assert_eq!(decoded(&encoded(text)), text);
        }
        assert_eq!(decoded("100%"), "100%");
    }
}
